//! Canonical JSON (RFC 8785) and the digests made from it.
//!
//! Numbers of 64 bits are strings in anything that is hashed, since RFC 8785 rounds integers
//! above 2^53; such a number is refused, so that no two values share their bytes. Every digest is
//! named, so that one value's digest is never mistaken for another's.

use crate::limits::INTEGER_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
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
    /// As [`canonical_json`].
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
/// Meant for values without float fields, as all of the contract's are: JSON has no form for a
/// float that is not finite, and it would be written as null.
///
/// # Errors
/// [`NotCanonical`] if the value has an integer above 2^53 - 1 or a key that is not text.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>, NotCanonical> {
    let tree = serde_json::to_value(value).map_err(|_| NotCanonical)?;
    if !keeps_integers(&tree) {
        return Err(NotCanonical);
    }
    serde_json_canonicalizer::to_vec(&tree).map_err(|_| NotCanonical)
}

/// Says whether every integer is one that RFC 8785 does not round.
fn keeps_integers(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number <= INTEGER_MAX,
            (None, Some(number)) => number.unsigned_abs() <= INTEGER_MAX,
            (None, None) => true,
        },
        Value::Array(items) => items.iter().all(keeps_integers),
        Value::Object(entries) => entries.values().all(keeps_integers),
    }
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
    fn an_integer_that_would_be_rounded_is_refused() {
        assert!(canonical_json(&json!({ "a": [INTEGER_MAX, -9_007_199_254_740_991_i64] })).is_ok());
        for wrong in [json!(INTEGER_MAX + 1), json!(u64::MAX), json!(i64::MIN)] {
            assert_eq!(canonical_json(&json!({ "a": [wrong] })), Err(NotCanonical));
        }
    }

    #[test]
    fn only_lowercase_hex_is_a_digest() {
        assert!(Digest::parse(&"a".repeat(64)).is_some());
        assert!(Digest::parse(&"A".repeat(64)).is_none());
        assert!(Digest::parse(&"a".repeat(63)).is_none());
    }
}
