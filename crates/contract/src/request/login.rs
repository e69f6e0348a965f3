//! How a login is told without opening it.

use super::home::{HostFile, check_host_files};
use super::login_evidence::LoginEvidence;
use crate::exact::{DecodeError, Line, invalid, list, some_list};
use crate::id::Id;
use crate::limits::{HOME_FILES_MAX, LOGIN_ALTERNATIVES_MAX, LOGIN_LINE_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// How the login of a provider is told, and what to run where there is none.
///
/// Advice only: it grants nothing and is never read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The provider.
    pub provider: Id,
    /// The command that signs in, for display.
    pub command: Line<LOGIN_LINE_BYTES_MAX>,
    /// Files that tell of a login, 1 to 8; none is enough where there are alternatives.
    #[serde(deserialize_with = "list::<_, _, 0, HOME_FILES_MAX>")]
    pub files: Vec<HostFile>,
    /// Alternatives, 1 to 8; one that holds is enough.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, LOGIN_ALTERNATIVES_MAX>"
    )]
    pub any_of: Option<Vec<LoginEvidence>>,
}

impl Login {
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        let Some(alternatives) = &self.any_of else {
            if self.files.is_empty() {
                return Err(invalid("launch.login.files", "must have 1 to 8 items"));
            }
            return check_host_files("launch.login.files", &self.files);
        };
        let paths = alternatives.iter().map(|evidence| match evidence {
            LoginEvidence::FileExists { paths, .. } => paths.len(),
            LoginEvidence::EnvPresent { .. } | LoginEvidence::AuthStatus { .. } => 0,
        });
        if paths.sum::<usize>() > HOME_FILES_MAX {
            return Err(invalid("launch.login.any_of", "must name at most 8 paths in all"));
        }
        check_host_files("launch.login.files", &self.files)
    }
}
