//! The alternatives by which a login is told.

use crate::exact::{Line, some_list, some_ranged};
use crate::limits::{HOME_FILES_MAX, LOGIN_LINE_BYTES_MAX, LOGIN_NAMES_MAX};
use crate::request::{EnvironmentName, RelativePath};
use serde::{Deserialize, Serialize};

/// One way to tell of a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum LoginEvidence {
    /// One of these files exists.
    FileExists {
        /// The files, 1 to 8.
        paths: Vec<RelativePath>,
        /// The variable that names their directory.
        variable: Option<EnvironmentName>,
        /// The directory where the variable is not set, at most 128 bytes; needs the variable.
        directory: Option<RelativePath>,
    },
    /// One of these variables is set.
    EnvPresent {
        /// Their names, 1 to 16.
        names: Vec<EnvironmentName>,
    },
    /// A status command of the program says so.
    AuthStatus {
        /// Its arguments, 1 to 8.
        argv: Vec<Line<LOGIN_LINE_BYTES_MAX>>,
        /// The code with which it says so.
        success_exit_code: u8,
        /// How long it may take, in milliseconds, 1 to 30 000.
        timeout_ms: u32,
    },
}

/// How a login is told.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EvidenceForm {
    FileExists,
    EnvPresent,
    AuthStatus,
}

/// The fields of every form, of which one form's are there.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    kind: EvidenceForm,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, HOME_FILES_MAX>"
    )]
    paths: Option<Vec<RelativePath>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variable: Option<EnvironmentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<RelativePath>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, LOGIN_NAMES_MAX>"
    )]
    names: Option<Vec<EnvironmentName>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, 8>"
    )]
    argv: Option<Vec<Line<LOGIN_LINE_BYTES_MAX>>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, 0, 255>"
    )]
    success_exit_code: Option<u64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, 1, 30_000>"
    )]
    timeout_ms: Option<u64>,
}

impl Fields {
    const fn none(kind: EvidenceForm) -> Self {
        Self {
            kind,
            paths: None,
            variable: None,
            directory: None,
            names: None,
            argv: None,
            success_exit_code: None,
            timeout_ms: None,
        }
    }
}

impl TryFrom<Fields> for LoginEvidence {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        match fields {
            Fields {
                kind: EvidenceForm::FileExists,
                paths: Some(paths),
                variable,
                directory,
                names: None,
                argv: None,
                success_exit_code: None,
                timeout_ms: None,
            } => {
                let long = |path: &RelativePath| path.as_str().len() > LOGIN_LINE_BYTES_MAX;
                if directory.as_ref().is_some_and(long) {
                    return Err("must have a directory of at most 128 bytes");
                }
                if directory.is_some() && variable.is_none() {
                    return Err("must have a variable where it has a directory");
                }
                Ok(Self::FileExists { paths, variable, directory })
            }
            Fields {
                kind: EvidenceForm::EnvPresent,
                paths: None,
                variable: None,
                directory: None,
                names: Some(names),
                argv: None,
                success_exit_code: None,
                timeout_ms: None,
            } => Ok(Self::EnvPresent { names }),
            Fields {
                kind: EvidenceForm::AuthStatus,
                paths: None,
                variable: None,
                directory: None,
                names: None,
                argv: Some(argv),
                success_exit_code: Some(code),
                timeout_ms: Some(timeout_ms),
            } => Ok(Self::AuthStatus {
                argv,
                success_exit_code: u8::try_from(code).expect("at most 255"),
                timeout_ms: u32::try_from(timeout_ms).expect("at most 30 000"),
            }),
            Fields { kind: EvidenceForm::FileExists, .. } => {
                Err("must have paths, perhaps variable and directory, and no other field")
            }
            Fields { kind: EvidenceForm::EnvPresent, .. } => {
                Err("must have names and no other field")
            }
            Fields { kind: EvidenceForm::AuthStatus, .. } => {
                Err("must have argv, success_exit_code and timeout_ms and no other field")
            }
        }
    }
}

impl From<LoginEvidence> for Fields {
    fn from(evidence: LoginEvidence) -> Self {
        match evidence {
            LoginEvidence::FileExists { paths, variable, directory } => Self {
                paths: Some(paths),
                variable,
                directory,
                ..Self::none(EvidenceForm::FileExists)
            },
            LoginEvidence::EnvPresent { names } => {
                Self { names: Some(names), ..Self::none(EvidenceForm::EnvPresent) }
            }
            LoginEvidence::AuthStatus { argv, success_exit_code, timeout_ms } => Self {
                argv: Some(argv),
                success_exit_code: Some(success_exit_code.into()),
                timeout_ms: Some(timeout_ms.into()),
                ..Self::none(EvidenceForm::AuthStatus)
            },
        }
    }
}
