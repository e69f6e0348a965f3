//! Why a text is not a value of the contract.

use crate::error::{Code, Refusal};

/// Why a value is refused: the field and the rule, never the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct DecodeError {
    /// The field, as a path such as `launch.argv[3]`.
    pub field: String,
    /// The rule that it breaks, in a fixed phrase.
    pub rule: String,
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::new(Code::Invalid, error.to_string())
    }
}

pub(crate) fn invalid(field: impl Into<String>, rule: impl Into<String>) -> DecodeError {
    DecodeError { field: field.into(), rule: rule.into() }
}
