//! Directories that a launch may use.

use crate::id::{GrantRef, ResourceName, RootRef};
use crate::limits::SUBPATH_BYTES_MAX;
use crate::state::labels;
use serde::{Deserialize, Deserializer, Serialize};

labels! {
    /// What a grant allows.
    Access {
        /// Reading.
        Read = "read",
        /// Reading and writing.
        Write = "write",
    }
    /// What a grant is for.
    Purpose {
        /// The project that is worked on.
        Project = "project",
        /// Where results go.
        Output = "output",
        /// What may be thrown away.
        Cache = "cache",
        /// The retained home of a session.
        Session = "session",
    }
}

/// One directory that a launch may use, named below a root that the host admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceGrant {
    /// Its name within the launch.
    pub name: ResourceName,
    /// The owner's name for the grant; with host-configured roots it grants nothing.
    pub grant_ref: GrantRef,
    /// The root.
    pub root_ref: RootRef,
    /// The directory below the root; empty for the root itself.
    #[serde(default)]
    pub subpath: Subpath,
    /// What is allowed.
    pub access: Access,
    /// What it is for.
    pub purpose: Purpose,
}

/// A relative path without a way out: no leading slash, backslash, control character, empty, `.`
/// or `..` part; at most 512 bytes. May be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Subpath(String);

/// Why a text is not a subpath.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubpathError {
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
