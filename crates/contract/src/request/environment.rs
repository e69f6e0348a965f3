//! Names of environment variables.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The name of an environment variable: `[A-Z_][A-Z0-9_]*`, at most 160 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        let first = *text.as_bytes().first()?;
        let valid = text.len() <= crate::limits::ID_BYTES_MAX
            && (first.is_ascii_uppercase() || first == b'_')
            && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        valid.then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EnvironmentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("must be an environment name of A-Z, 0-9 and underscore")
        })
    }
}
