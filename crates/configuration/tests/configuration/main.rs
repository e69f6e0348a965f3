//! What holds for configuration as text: one module per subject.

#[cfg(test)]
mod compose_json;
#[cfg(test)]
mod compose_toml;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod support;
