//! What holds below a directory held by descriptor: one module per operation.

#[cfg(test)]
mod create;
#[cfg(test)]
mod mounts;
#[cfg(test)]
mod open;
#[cfg(test)]
mod ordinary_user;
#[cfg(test)]
mod private;
#[cfg(test)]
mod publish;
#[cfg(test)]
mod remove;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod support;
