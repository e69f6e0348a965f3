//! Saved preferences of an owner, which the launch policy admits one by one.

use crate::exact::{DecodeError, Prose, invalid, map, object, some_distinct};
use crate::id::ToolName;
use crate::limits::{
    INSTRUCTIONS_BYTES_MAX, INTEGER_MAX, OPTION_NAME_BYTES_MAX, OPTION_TEXT_BYTES_MAX,
    PREFERENCE_OPTIONS_MAX, PREFERENCE_TOOLS_MAX,
};
use crate::state::labels;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeMap;
use std::fmt;

/// Names that a launch has for other things than options.
const RESERVED_NAMES: &[&str] =
    &["brief", "gateway_hooks", "gateway_tools", "permission_exchange", "profile_id", "resume_ref"];

labels! {
    /// Who answers what the program asks to be permitted.
    PermissionAnswers {
        /// The provider's own prompts.
        Provider = "provider",
        /// The owner is asked.
        Ask = "ask",
        /// Nobody; it is denied.
        Deny = "deny",
    }
}

/// The values of a saved profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preferences {
    /// Values of options, at most 9.
    #[serde(deserialize_with = "map::<_, _, _, PREFERENCE_OPTIONS_MAX>")]
    pub options: BTreeMap<OptionName, OptionValue>,
    /// The tools to have instead of the policy's, at most 64, each once.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_distinct::<_, _, 0, PREFERENCE_TOOLS_MAX>"
    )]
    pub mcp_tools: Option<Vec<ToolName>>,
    /// Standing instructions, at most 4096 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Prose<INSTRUCTIONS_BYTES_MAX>>,
    /// Preferences that are not the driver's.
    #[serde(skip_serializing_if = "BeePreferences::is_empty", deserialize_with = "object")]
    pub bee: BeePreferences,
}

/// Preferences that are not the driver's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BeePreferences {
    /// Who answers what the program asks to be permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_answers: Option<PermissionAnswers>,
}

/// The name of an option: `[a-z][a-z0-9_]*`, at most 80 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct OptionName(String);

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// Yes or no.
    Flag(bool),
    /// A finite number; a whole one of at most 2^53 - 1.
    Number(Number),
    /// A text of at most 512 bytes without control characters.
    Text(String),
}

impl Preferences {
    /// Says whether nothing is preferred.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), DecodeError> {
        if let Some(name) = self.options.keys().find(|name| name.is_reserved()) {
            let field = format!("preferences.options.{name}");
            return Err(invalid(field, "is not the name of an option"));
        }
        Ok(())
    }
}

impl BeePreferences {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl OptionName {
    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let valid = text.len() <= OPTION_NAME_BYTES_MAX
            && text.bytes().all(fine)
            && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
        valid.then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says whether a launch has this name for something else than an option of a profile.
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.contains(&self.as_str())
    }
}

impl fmt::Display for OptionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for OptionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            Error::custom("must be a name of a-z, 0-9 and underscore, at most 80 bytes")
        })
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = OptionValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, a number or a boolean")
    }

    fn visit_bool<E>(self, value: bool) -> Result<OptionValue, E> {
        Ok(OptionValue::Flag(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<OptionValue, E> {
        if value <= INTEGER_MAX { Ok(OptionValue::Number(value.into())) } else { Err(too_large()) }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<OptionValue, E> {
        if value.unsigned_abs() <= INTEGER_MAX {
            Ok(OptionValue::Number(value.into()))
        } else {
            Err(too_large())
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<OptionValue, E> {
        Number::from_f64(value)
            .map(OptionValue::Number)
            .ok_or_else(|| Error::custom("must be a finite number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<OptionValue, E> {
        if value.len() <= OPTION_TEXT_BYTES_MAX && !value.chars().any(char::is_control) {
            Ok(OptionValue::Text(value.to_owned()))
        } else {
            Err(Error::custom("must be at most 512 bytes without control characters"))
        }
    }
}

fn too_large<E: Error>() -> E {
    Error::custom("must be a whole number of at most 2^53 - 1")
}
