//! Relative paths that cannot leave what they are below.

use crate::limits::SUBPATH_BYTES_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A relative path without a way out: no leading slash, backslash, control character, empty, `.`
/// or `..` part; at most 512 bytes. May be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Subpath(String);

/// A [`Subpath`] that is not empty: a file or a directory below a home.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RelativePath(String);

/// Why a text is not a subpath.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubpathError {
    /// The text is empty where something must be named.
    #[error("must not be empty")]
    Empty,
    /// The text starts with a slash.
    #[error("must be relative")]
    Absolute,
    /// The text has an empty, `.` or `..` part.
    #[error("must not contain an empty, . or .. part")]
    Escapes,
    /// The text has a backslash or a control character.
    #[error("must not contain a backslash or a control character")]
    Character,
    /// The text is longer than the bound.
    #[error("must be at most 512 bytes")]
    TooLong,
}

impl Subpath {
    /// Parses a subpath.
    ///
    /// # Errors
    /// [`SubpathError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, SubpathError> {
        if text.len() > SUBPATH_BYTES_MAX {
            return Err(SubpathError::TooLong);
        }
        if text.starts_with('/') {
            return Err(SubpathError::Absolute);
        }
        if text.chars().any(|c| c == '\\' || c.is_control()) {
            return Err(SubpathError::Character);
        }
        let escapes = |part: &str| matches!(part, "" | "." | "..");
        if !text.is_empty() && text.split('/').any(escapes) {
            return Err(SubpathError::Escapes);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Subpath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl RelativePath {
    /// Parses a path.
    ///
    /// # Errors
    /// [`SubpathError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, SubpathError> {
        if text.is_empty() {
            return Err(SubpathError::Empty);
        }
        Subpath::parse(text).map(|path| Self(path.0))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says whether one of both is the other one or lies below it.
    pub fn overlaps(&self, other: &Self) -> bool {
        let below = |inner: &Self, outer: &Self| {
            inner
                .0
                .strip_prefix(&outer.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        below(self, other) || below(other, self)
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RelativePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
