//! Names of environment variables.

use crate::limits::ID_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $first:expr, $rule:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(String);

        impl $name {
            /// Parses a name.
            pub fn parse(text: &str) -> Option<Self> {
                let first: fn(u8) -> bool = $first;
                (is_name(text) && first(text.as_bytes()[0])).then(|| Self(text.to_owned()))
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom($rule))
            }
        }
    )+};
}

names! {
    /// The name of an environment variable: `[A-Z_][A-Z0-9_]*`, at most 160 bytes.
    EnvironmentName: |first| !first.is_ascii_digit(),
        "must be an environment name of A-Z, 0-9 and underscore";
    /// The name of a variable that receives a secret: `[A-Z][A-Z0-9_]*`, at most 160 bytes.
    Destination: |first| first.is_ascii_uppercase(),
        "must be an environment name of A-Z, 0-9 and underscore that starts with a letter";
}

fn is_name(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(fine)
}

impl From<Destination> for EnvironmentName {
    fn from(destination: Destination) -> Self {
        Self(destination.0)
    }
}
