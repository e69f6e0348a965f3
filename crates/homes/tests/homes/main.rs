//! What holds for the root, its attempts and their logs: one module per subject.

#[cfg(test)]
mod alive;
#[cfg(test)]
mod attempt;
#[cfg(test)]
mod files_protected;
#[cfg(test)]
mod files_published;
#[cfg(test)]
mod files_support;
#[cfg(test)]
mod log_acknowledge;
#[cfg(test)]
mod log_damage;
#[cfg(test)]
mod log_follow;
#[cfg(test)]
mod log_properties;
#[cfg(test)]
mod log_trim;
#[cfg(test)]
mod log_write;
#[cfg(test)]
mod login_retained;
#[cfg(test)]
mod login_seed;
#[cfg(test)]
mod ordinary_user;
#[cfg(test)]
mod root;
#[cfg(test)]
mod session;
#[cfg(test)]
mod settled;
#[cfg(test)]
mod support;
#[cfg(test)]
mod temporary;
