//! To what a host lets saved preferences set an option.

use crate::exact::{some_list, some_ranged};
use crate::limits::{OPTION_TEXT_BYTES_MAX, OPTION_VALUES_MAX};
use crate::request::OptionValue;
use serde::{Deserialize, Serialize};

/// To what saved preferences may set an option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum OptionRule {
    /// To one of these values, 1 to 32.
    Enum(Vec<OptionValue>),
    /// To a text of at most so many bytes, 1 to 512.
    Text {
        /// The bound.
        max_bytes: usize,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Enum,
    Text,
}

/// The fields of both forms, of which one form's are there.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    kind: Form,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, OPTION_VALUES_MAX>"
    )]
    values: Option<Vec<OptionValue>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, 1, { OPTION_TEXT_BYTES_MAX as u64 }>"
    )]
    max_bytes: Option<u64>,
}

impl OptionRule {
    /// Says whether preferences may set the option to this value; `1` and `1.0` are not the same.
    pub fn allows(&self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Enum(values), value) => values.contains(value),
            (Self::Text { max_bytes }, OptionValue::Text(text)) => {
                (1..=*max_bytes).contains(&text.len())
            }
            (Self::Text { .. }, OptionValue::Flag(_) | OptionValue::Number(_)) => false,
        }
    }
}

impl TryFrom<Fields> for OptionRule {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        match (fields.kind, fields.values, fields.max_bytes) {
            (Form::Enum, Some(values), None) => Ok(Self::Enum(values)),
            (Form::Text, None, Some(max_bytes)) => {
                Ok(Self::Text { max_bytes: usize::try_from(max_bytes).expect("at most 512") })
            }
            (Form::Enum, ..) => Err("must have values and no other field"),
            (Form::Text, ..) => Err("must have max_bytes and no other field"),
        }
    }
}

impl From<OptionRule> for Fields {
    fn from(rule: OptionRule) -> Self {
        match rule {
            OptionRule::Enum(values) => {
                Self { kind: Form::Enum, values: Some(values), max_bytes: None }
            }
            OptionRule::Text { max_bytes } => {
                Self { kind: Form::Text, values: None, max_bytes: Some(max_bytes as u64) }
            }
        }
    }
}
