//! Canonical JSON (RFC 8785) and the digests made from it.
//!
//! Numbers of 64 bits are strings in anything that is hashed, since RFC 8785 rounds integers
//! above 2^53. Every digest is named, so that one value's digest is never mistaken for another's.

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest as 64 lowercase hexadecimal characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Digest(String);

/// A value could not be written as canonical JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value has no canonical form")]
pub struct NotCanonical;

impl Digest {
    /// Parses 64 lowercase hexadecimal characters.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = text.len() == 64
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        valid.then(|| Self(text.to_owned()))
    }

    /// Hashes bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::from_sha256(Sha256::digest(bytes).into())
    }

    /// Writes a finished SHA-256 value as a digest.
    pub fn from_sha256(value: [u8; 32]) -> Self {
        use fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in value {
            write!(text, "{byte:02x}").expect("writing to a string does not fail");
        }
        Self(text)
    }

    /// Hashes the canonical JSON of `{"revision": name, "value": value}`.
    ///
    /// # Errors
    /// [`NotCanonical`] if the value has a non-finite number or a key that is not text.
    pub fn of_value<T: Serialize>(name: &str, value: &T) -> Result<Self, NotCanonical> {
        #[derive(Serialize)]
        struct Named<'a, T> {
            revision: &'a str,
            value: &'a T,
        }
        Ok(Self::of_bytes(&canonical_json(&Named { revision: name, value })?))
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("must be 64 lowercase hexadecimal characters"))
    }
}

/// Writes a value as canonical JSON.
///
/// # Errors
/// [`NotCanonical`] if the value has a non-finite number or a key that is not text.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>, NotCanonical> {
    serde_json_canonicalizer::to_vec(value).map_err(|_| NotCanonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_give_equal_digests_whatever_the_order() {
        let one = Digest::of_value("test@1", &json!({"a": 1, "b": [true, null]}));
        let two = Digest::of_value("test@1", &json!({"b": [true, null], "a": 1}));
        assert_eq!(one, two);
        assert_ne!(one, Digest::of_value("test@2", &json!({"a": 1, "b": [true, null]})));
    }

    #[test]
    fn only_lowercase_hex_is_a_digest() {
        assert!(Digest::parse(&"a".repeat(64)).is_some());
        assert!(Digest::parse(&"A".repeat(64)).is_none());
        assert!(Digest::parse(&"a".repeat(63)).is_none());
    }
}
