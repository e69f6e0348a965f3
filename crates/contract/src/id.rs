//! Identifiers: one type per meaning, all of the same shape.

use crate::limits::{ID_BYTES_MAX, RECIPIENT_BYTES_MAX};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Why a text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than the bound.
    #[error("must be at most {0} bytes")]
    TooLong(usize),
    /// The text has a control character.
    #[error("must not contain control characters")]
    Control,
}

fn check(text: &str, bytes_max: usize) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > bytes_max {
        return Err(IdError::TooLong(bytes_max));
    }
    if text.chars().any(char::is_control) {
        return Err(IdError::Control);
    }
    Ok(())
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $bytes_max:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(String);

        impl $name {
            /// Parses an identifier: not empty, bounded, without control characters.
            ///
            /// # Errors
            /// [`IdError`] names the rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check(text, $bytes_max)?;
                Ok(Self(text.to_owned()))
            }

            /// Returns the identifier as text.
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
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// An identifier without a meaning of its own.
    Id: ID_BYTES_MAX;
    /// One attempt; unique in a store.
    AttemptId: ID_BYTES_MAX;
    /// Who owns an attempt.
    OwnerId: ID_BYTES_MAX;
    /// The owner's action that an attempt serves.
    ActionId: ID_BYTES_MAX;
    /// The owner's key under which a launch happens at most once.
    IdempotencyKey: ID_BYTES_MAX;
    /// A driver binding.
    BindingRef: ID_BYTES_MAX;
    /// A launch policy.
    PolicyRef: ID_BYTES_MAX;
    /// A profile of a driver.
    ProfileId: ID_BYTES_MAX;
    /// A root directory that the host admits.
    RootRef: ID_BYTES_MAX;
    /// The owner's name for a grant.
    GrantRef: ID_BYTES_MAX;
    /// A resource's name within one launch.
    ResourceName: ID_BYTES_MAX;
    /// One runner process.
    RunnerId: ID_BYTES_MAX;
    /// A retained session of an owner.
    SessionRef: ID_BYTES_MAX;
    /// A placement binding.
    PlacementBindingRef: ID_BYTES_MAX;
    /// A placement profile.
    PlacementProfileRef: ID_BYTES_MAX;
    /// What a launch policy selects as the source of a configuration.
    ProviderRef: ID_BYTES_MAX;
    /// A credential projection.
    ProjectionId: ID_BYTES_MAX;
    /// A tool of a gateway.
    ToolName: ID_BYTES_MAX;
    /// A hook event of a gateway.
    HookEvent: ID_BYTES_MAX;
    /// Who receives an attempt's output.
    RecipientId: RECIPIENT_BYTES_MAX;
}

/// Counts the attachments of an attempt; a newer one fences every older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation(u64);

impl Generation {
    /// No recipient was attached yet.
    pub const NONE: Self = Self(0);
    /// The attachment of the host that started the attempt.
    pub const FIRST: Self = Self(1);

    /// Makes a generation from its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_bounds() {
        assert_eq!(AttemptId::parse(""), Err(IdError::Empty));
        assert_eq!(AttemptId::parse(&"x".repeat(161)), Err(IdError::TooLong(160)));
        assert_eq!(AttemptId::parse("a\nb"), Err(IdError::Control));
        assert!(AttemptId::parse(&"x".repeat(160)).is_ok());
    }

    #[test]
    fn decoding_applies_the_bounds() {
        assert!(serde_json::from_str::<OwnerId>("\"\"").is_err());
        assert!(serde_json::from_str::<OwnerId>("\"local:0\"").is_ok());
    }
}
