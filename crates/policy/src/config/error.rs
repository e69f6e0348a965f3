//! Why a configuration file is refused.

use super::lines::Document;
use placement_contract::{Code, Refusal};
use std::fmt;

/// Why a configuration file is refused: the key, its line and the rule, never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1, where one can be named.
    pub line: Option<usize>,
    /// The key, as a path such as `resources.admitted[0].access`.
    pub key: String,
    /// The rule that it breaks, in a fixed phrase.
    pub rule: String,
}

impl ConfigError {
    pub(super) fn of_file(line: Option<usize>, rule: &str) -> Self {
        Self { line, key: "configuration".to_owned(), rule: rule.to_owned() }
    }

    pub(super) fn at(document: &Document<'_>, key: &str, rule: &str) -> Self {
        let rule = match rule {
            "is not a field of this object" => "is not a known key",
            "has the wrong type, expected an object" => "has the wrong type, expected a table",
            "has the wrong type, expected a list" => "has the wrong type, expected an array",
            rule => rule,
        };
        Self { line: document.line_of(key), key: key.to_owned(), rule: rule.to_owned() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        write!(formatter, "{}: {}", self.key, self.rule)
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::new(Code::Invalid, format!("configuration file, {error}"))
            .with_hint("correct the named key of the configuration file")
    }
}
