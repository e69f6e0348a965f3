//! Files that a program finds in its home.

use crate::exact::{DecodeError, invalid, list};
use crate::id::Id;
use crate::limits::{EXTRA_VARIABLES_MAX, HOME_FILES_MAX};
use crate::request::{EnvironmentName, RelativePath};
use crate::state::labels;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

labels! {
    /// What a file of a provider's home is.
    HomeFileKind {
        /// The login.
        Login = "login",
        /// Configuration that is copied from the host.
        Config = "config",
        /// What the program needs to be there and writes itself.
        State = "state",
    }
}

/// A file that must be on the host, or that tells of a login; only its existence is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// The variable that names the directory.
    pub variable: EnvironmentName,
    /// The file below it.
    pub path: RelativePath,
    /// The directory below the home where the variable is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_directory: Option<RelativePath>,
}

/// A provider's home as a driver declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderHome {
    /// The provider.
    pub provider: Id,
    /// Whether it is a private one.
    pub private: bool,
    /// The variable that points into it; there with `directory` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<EnvironmentName>,
    /// The directory that the variable points to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<RelativePath>,
    /// Further variables, at most 4.
    #[serde(default, deserialize_with = "list::<_, _, 0, EXTRA_VARIABLES_MAX>")]
    pub extra_variables: Vec<HomeVariable>,
    /// Its files, 1 to 8, each path once.
    #[serde(deserialize_with = "list::<_, _, 1, HOME_FILES_MAX>")]
    pub files: Vec<HomeFile>,
}

/// A variable that points into a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeVariable {
    /// The variable.
    pub variable: EnvironmentName,
    /// The directory that it points to.
    pub directory: RelativePath,
}

/// A file of a provider's home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeFile {
    /// Where it comes from on the host; a state file comes from nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<RelativePath>,
    /// Where it goes.
    pub path: RelativePath,
    /// What it is.
    pub kind: HomeFileKind,
    /// Whether it may be missing.
    #[serde(default = "yes")]
    pub optional: bool,
    /// Whether a changed one goes back to the broker; a login only.
    #[serde(default)]
    pub write_back: bool,
}

const fn yes() -> bool {
    true
}

/// Refuses a file that is named twice.
pub(super) fn check_host_files(field: &str, files: &[HostFile]) -> Result<(), DecodeError> {
    let distinct: BTreeSet<_> = files.iter().map(|file| (&file.variable, &file.path)).collect();
    if distinct.len() == files.len() {
        Ok(())
    } else {
        Err(invalid(field, "must not name a file twice"))
    }
}

impl ProviderHome {
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        const FIELD: &str = "launch.provider_home";
        if self.variable.is_some() != self.directory.is_some() {
            return Err(invalid(FIELD, "must have both of variable and directory or neither"));
        }
        let extra = self.extra_variables.iter().map(|extra| &extra.variable);
        let variables: Vec<_> = self.variable.iter().chain(extra).collect();
        if variables.iter().collect::<BTreeSet<_>>().len() != variables.len() {
            let field = format!("{FIELD}.extra_variables");
            return Err(invalid(field, "must not name a variable twice"));
        }
        let paths: BTreeSet<_> = self.files.iter().map(|file| &file.path).collect();
        if paths.len() != self.files.len() {
            return Err(invalid(format!("{FIELD}.files"), "must not name a path twice"));
        }
        for (index, file) in self.files.iter().enumerate() {
            file.check(&format!("{FIELD}.files[{index}]"))?;
        }
        Ok(())
    }
}

impl HomeFile {
    fn check(&self, field: &str) -> Result<(), DecodeError> {
        let source = format!("{field}.source_path");
        match (self.kind, &self.source_path) {
            (HomeFileKind::Login | HomeFileKind::Config, None) => {
                return Err(invalid(source, "is needed by a login and by configuration"));
            }
            (HomeFileKind::State, Some(_)) => {
                return Err(invalid(source, "must be left out of a state file"));
            }
            (HomeFileKind::Login | HomeFileKind::Config, Some(_)) | (HomeFileKind::State, None) => {
            }
        }
        if self.write_back && self.kind != HomeFileKind::Login {
            return Err(invalid(format!("{field}.write_back"), "is for a login only"));
        }
        Ok(())
    }
}
