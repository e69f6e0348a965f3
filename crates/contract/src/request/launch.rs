//! What a driver declares: the program, its arguments, input and environment names.

use super::environment::EnvironmentName;
use super::home::{HostFile, ProviderHome};
use super::login::Login;
use super::planned::SessionEnd;
use crate::exact::{list, sized};
use crate::id::ResourceName;
use crate::limits::{ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, ENVIRONMENT_MAX, HOME_FILES_MAX};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The program to launch and what it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program: an absolute path, or a name that is searched on the host's PATH.
    pub executable: Argument,
    /// Its arguments without its own name, at most 128.
    #[serde(deserialize_with = "list::<_, _, 0, ARGUMENTS_MAX>")]
    pub argv: Vec<Argument>,
    /// Initial input, at most 65 536 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Whether input is closed after the initial input; needs `stdin`.
    #[serde(default)]
    pub stdin_eof: bool,
    /// How a session of the program ends; not with `stdin_eof`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_end: Option<SessionEnd>,
    /// Names that the environment must supply, at most 64, each once.
    #[serde(default, deserialize_with = "list::<_, _, 0, ENVIRONMENT_MAX>")]
    pub environment: Vec<EnvironmentName>,
    /// The resource that is the working directory; the home where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory_ref: Option<ResourceName>,
    /// The resource that is the retained home: for a session, with write access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_ref: Option<ResourceName>,
    /// Files that must be on the host, at most 8; only their existence is looked at.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, HOME_FILES_MAX>"
    )]
    pub required_files: Vec<HostFile>,
    /// How a login of the provider is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// The provider's home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_home: Option<ProviderHome>,
    /// How readiness is told, 1 to 256 bytes.
    #[serde(deserialize_with = "sized::<_, 1, 256>")]
    pub readiness: String,
}

impl Launch {
    /// Makes a launch of a program that needs nothing.
    pub fn of(executable: Argument) -> Self {
        Self {
            executable,
            argv: Vec::new(),
            stdin: None,
            stdin_eof: false,
            session_end: None,
            environment: Vec::new(),
            working_directory_ref: None,
            home_ref: None,
            required_files: Vec::new(),
            login: None,
            provider_home: None,
            readiness: "started".to_owned(),
        }
    }
}

/// A program name or argument: at most 16 384 bytes, no NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Argument(String);

impl Argument {
    /// Parses an argument.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = text.len() <= ARGUMENT_BYTES_MAX && !text.contains('\0');
        valid.then(|| Self(text.to_owned()))
    }

    /// Returns the argument as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("must be at most 16384 bytes without NUL"))
    }
}
