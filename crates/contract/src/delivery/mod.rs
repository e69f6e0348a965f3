//! What a driver's configuration adds to a launch: arguments, files and environment values.
//!
//! A delivery is placement's own: it is rendered once, stored with the intent and never taken from
//! a caller. [`Delivery::decode_reply`] reads a driver's reply, [`Delivery::decode_stored`] what
//! was stored, by the same rules.

mod admit;
mod composition;
mod file;

pub use admit::{Admission, GATEWAY_SOURCE, INSTRUCTIONS_SOURCE, LOGIN_SOURCE, OPTIONS_SOURCE};
pub use composition::{Composition, KeyPath, Operation, OperationKind};
pub use file::{DeliveredFile, SecretField};

use crate::exact::{self, DecodeError, Exact, invalid, list, map};
use crate::limits::{
    DELIVERY_ARGUMENTS_BYTES_MAX, DELIVERY_ARGUMENTS_MAX, DELIVERY_BYTES_MAX,
    DELIVERY_FILES_BYTES_MAX, DELIVERY_FILES_MAX, DELIVERY_VALUE_BYTES_MAX, ENVIRONMENT_MAX,
};
use crate::request::{Argument, EnvironmentName};
use crate::state::labels;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

labels! {
    /// How a program is told of further writable roots.
    WritableRootsAdapter {
        /// By Codex's sandbox configuration.
        CodexWorkspaceWrite = "codex_workspace_write",
        /// By Claude Code's `--add-dir`.
        ClaudeAddDir = "claude_add_dir",
        /// By Agy's `--add-dir`.
        AgyAddDir = "agy_add_dir",
    }
}

/// What a driver's configuration adds to a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delivery {
    /// Arguments before those of the launch, at most 32 and 16 384 bytes together.
    #[serde(deserialize_with = "list::<_, _, 0, DELIVERY_ARGUMENTS_MAX>")]
    pub arguments: Vec<Argument>,
    /// Files in the private home, at most 8 and 24 576 bytes together, each path once.
    #[serde(deserialize_with = "list::<_, _, 0, DELIVERY_FILES_MAX>")]
    pub files: Vec<DeliveredFile>,
    /// Environment values, at most 64.
    #[serde(deserialize_with = "map::<_, _, _, ENVIRONMENT_MAX>")]
    pub environment: BTreeMap<DeliveredName, String>,
    /// How the program is told of further writable roots; from the activated profile, never from
    /// a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_writable_roots_adapter: Option<WritableRootsAdapter>,
}

/// The name of a variable that a delivery may set: `[A-Z][A-Z0-9_]*`, neither PATH, TMPDIR or HOME
/// nor ending in `_HOME` or starting with `BEE_` or `PLACEMENT_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DeliveredName(EnvironmentName);

impl Delivery {
    /// Decodes the delivery of a driver's reply.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks, never its value.
    pub fn decode_reply(bytes: &[u8]) -> Result<Self, DecodeError> {
        let delivery: Self = exact::decode(bytes)?;
        if delivery.git_writable_roots_adapter.is_some() {
            return Err(invalid("git_writable_roots_adapter", "is not a field of this object"));
        }
        Ok(delivery)
    }

    /// Decodes a delivery that was stored with its intent, and checks it again from its bytes.
    ///
    /// # Errors
    /// [`DecodeError`] as for a reply; the stored content is damaged then.
    pub fn decode_stored(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Checks a delivery that was built in the program by the rules of [`Delivery::decode_stored`].
    ///
    /// # Errors
    /// As [`Delivery::decode_stored`].
    pub fn checked(self) -> Result<Self, DecodeError> {
        exact::checked(&self)
    }
}

impl Exact for Delivery {
    const NAME: &str = "delivery";
    const BYTES_MAX: usize = DELIVERY_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        let bytes: usize = self.arguments.iter().map(|argument| argument.as_str().len()).sum();
        if bytes > DELIVERY_ARGUMENTS_BYTES_MAX {
            return Err(invalid("arguments", "must be at most 16384 bytes together"));
        }
        let paths: BTreeSet<_> = self.files.iter().map(|file| &file.path).collect();
        if paths.len() != self.files.len() {
            return Err(invalid("files", "must not name a path twice"));
        }
        if self.files.iter().map(|file| file.content.len()).sum::<usize>()
            > DELIVERY_FILES_BYTES_MAX
        {
            return Err(invalid("files", "must be at most 24576 bytes together"));
        }
        for (index, file) in self.files.iter().enumerate() {
            file.check(&format!("files[{index}]"))?;
        }
        for (name, value) in &self.environment {
            if value.len() > DELIVERY_VALUE_BYTES_MAX || value.contains('\0') {
                let field = format!("environment.{}", name.as_str());
                return Err(invalid(field, "must be at most 4096 bytes without NUL"));
            }
        }
        Ok(())
    }
}

impl DeliveredName {
    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        let ours = matches!(text, "HOME" | "PATH" | "TMPDIR")
            || text.ends_with("_HOME")
            || text.starts_with("BEE_")
            || text.starts_with("PLACEMENT_")
            || text.starts_with('_');
        (!ours).then(|| EnvironmentName::parse(text).map(Self)).flatten()
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl<'de> Deserialize<'de> for DeliveredName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| Error::custom("must be an environment name that a delivery may set"))
    }
}
