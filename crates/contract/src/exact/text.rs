//! Texts and numbers with bounds.

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use std::fmt;

/// One line of 1 to `BYTES_MAX` bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line<const BYTES_MAX: usize>(String);

/// Text of at most `BYTES_MAX` bytes whose only control characters are tab, LF and CR.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prose<const BYTES_MAX: usize>(String);

fn is_line(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl<const BYTES_MAX: usize> Line<BYTES_MAX> {
    /// Parses a line.
    pub fn parse(text: &str) -> Option<Self> {
        is_line(text, BYTES_MAX).then(|| Self(text.to_owned()))
    }

    /// Returns the line as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const BYTES_MAX: usize> Prose<BYTES_MAX> {
    /// Parses a text.
    pub fn parse(text: &str) -> Option<Self> {
        let fine = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
        (text.len() <= BYTES_MAX && text.chars().all(fine)).then(|| Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_forms {
    ($($name:ident: $rule:literal;)+) => {$(
        impl<const BYTES_MAX: usize> fmt::Display for $name<BYTES_MAX> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl<const BYTES_MAX: usize> Serialize for $name<BYTES_MAX> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de, const BYTES_MAX: usize> Deserialize<'de> for $name<BYTES_MAX> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| Error::custom(format_args!($rule)))
            }
        }
    )+};
}

text_forms! {
    Line: "must be 1 to {BYTES_MAX} bytes without control characters";
    Prose: "must be at most {BYTES_MAX} bytes, its only control characters tab, LF and CR";
}

/// Reads a text of `MIN` to `MAX` bytes.
pub(crate) fn sized<'de, D, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    if (MIN..=MAX).contains(&text.len()) {
        Ok(text)
    } else if MIN == 0 {
        Err(Error::custom(format_args!("must be at most {MAX} bytes")))
    } else {
        Err(Error::custom(format_args!("must be {MIN} to {MAX} bytes")))
    }
}

/// Reads a whole number from `MIN` to `MAX`.
pub(crate) fn ranged<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    let value = u64::deserialize(deserializer)?;
    if (MIN..=MAX).contains(&value) {
        Ok(value)
    } else {
        Err(Error::custom(format_args!("must be a whole number from {MIN} to {MAX}")))
    }
}

/// Reads a whole number from `MIN` to `MAX` of an optional field; `null` is no number.
pub(crate) fn some_ranged<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    ranged::<D, MIN, MAX>(deserializer).map(Some)
}
