//! A host's configuration as one launch sees it, from admission to materialization.

use crate::definitions::{
    BINDING_REVISION, Definitions, LaunchPolicy, POLICY_REVISION, PROFILE_REVISION,
};
use crate::limits::ADMITTED_ROOTS_MAX;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{
    Access, BindingRef, Digest, EnvironmentName, PolicyRef, ProfileId, RootRef,
};
use std::collections::BTreeMap;

/// Where programs are looked for unless the host says otherwise.
pub const SEARCH_PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A name and the measured digest of what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<R> {
    /// The name.
    pub r#ref: R,
    /// The digest of its definition.
    pub digest: Digest,
}

/// A directory that the host admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedRoot {
    /// Its name, which is made from the directory and so the same for every run.
    pub root_ref: RootRef,
    /// Its physical path.
    pub directory: Utf8PathBuf,
    /// The most that a grant on it may allow.
    pub access: Access,
}

/// A host's configuration: what requests must name, and what they may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    binding: Named<BindingRef>,
    profile: Named<ProfileId>,
    policy: Named<PolicyRef>,
    rules: LaunchPolicy,
    admitted_roots: Vec<AdmittedRoot>,
    search_path: String,
    environment: BTreeMap<EnvironmentName, String>,
}

/// A directory cannot be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// The path is not absolute.
    #[error("an admitted directory must be an absolute path")]
    NotAbsolute,
    /// There are as many as there may be.
    #[error("at most 256 directories can be admitted")]
    TooMany,
}

impl Snapshot {
    /// Takes the definitions that are built in, the default search path, no roots and no
    /// environment.
    pub fn embedded() -> Self {
        Self::new(Definitions::embedded())
    }

    /// Takes definitions, the default search path, no roots and no environment.
    pub fn new(definitions: Definitions) -> Self {
        let Definitions { binding, profile, policy } = definitions;
        Self {
            binding: Named { digest: binding.digest(BINDING_REVISION), r#ref: binding.r#ref },
            profile: Named { digest: profile.digest(PROFILE_REVISION), r#ref: profile.r#ref },
            policy: Named { digest: policy.digest(POLICY_REVISION), r#ref: policy.r#ref },
            rules: policy.definition,
            admitted_roots: Vec::new(),
            search_path: SEARCH_PATH_DEFAULT.to_owned(),
            environment: BTreeMap::new(),
        }
    }

    /// Takes another search path; it is the `PATH` of every child too.
    #[must_use]
    pub fn with_search_path(mut self, search_path: impl Into<String>) -> Self {
        self.search_path = search_path.into();
        self
    }

    /// Takes those values of the host's environment that the launch policy lets through.
    #[must_use]
    pub fn with_environment(mut self, values: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = values
            .into_iter()
            .filter_map(|(name, value)| Some((EnvironmentName::parse(&name)?, value)))
            .filter(|(name, value)| {
                self.rules.environment_pass.contains(name) && !value.contains('\0')
            })
            .collect();
        self
    }

    /// Admits a directory by its physical path and returns the name that grants use for it.
    ///
    /// The name is `dir:` and 32 hexadecimal characters of the path's SHA-256, so that a request
    /// made again names the same root. A directory that is admitted twice keeps the wider access.
    ///
    /// # Errors
    /// [`AdmitError`] for a relative path or too many roots.
    pub fn admit(&mut self, directory: &Utf8Path, access: Access) -> Result<RootRef, AdmitError> {
        if !directory.is_absolute() {
            return Err(AdmitError::NotAbsolute);
        }
        let root_ref = root_ref_of(directory);
        if let Some(known) = self.admitted_roots.iter_mut().find(|root| root.root_ref == root_ref) {
            known.access = known.access.max(access);
            return Ok(root_ref);
        }
        if self.admitted_roots.len() >= ADMITTED_ROOTS_MAX {
            return Err(AdmitError::TooMany);
        }
        let directory = directory.to_owned();
        self.admitted_roots.push(AdmittedRoot { root_ref: root_ref.clone(), directory, access });
        Ok(root_ref)
    }

    /// Returns the driver binding that requests must name.
    pub const fn binding(&self) -> &Named<BindingRef> {
        &self.binding
    }

    /// Returns the profile that requests must name.
    pub const fn profile(&self) -> &Named<ProfileId> {
        &self.profile
    }

    /// Returns the launch policy that requests must name.
    pub const fn policy(&self) -> &Named<PolicyRef> {
        &self.policy
    }

    /// Returns what the launch policy allows.
    pub const fn rules(&self) -> &LaunchPolicy {
        &self.rules
    }

    /// Finds an admitted directory.
    pub fn root(&self, root_ref: &RootRef) -> Option<&AdmittedRoot> {
        self.admitted_roots.iter().find(|root| root.root_ref == *root_ref)
    }

    /// Returns the admitted directories in the order in which they were admitted.
    pub fn admitted_roots(&self) -> &[AdmittedRoot] {
        &self.admitted_roots
    }

    /// Returns where programs are looked for.
    pub fn search_path(&self) -> &str {
        &self.search_path
    }

    /// Returns the values of the host's environment that reach every child.
    pub const fn environment(&self) -> &BTreeMap<EnvironmentName, String> {
        &self.environment
    }
}

fn root_ref_of(directory: &Utf8Path) -> RootRef {
    let digest = Digest::of_bytes(directory.as_str().as_bytes());
    RootRef::parse(&format!("dir:{}", &digest.as_str()[..32])).expect("36 printable characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_keeps_its_name_from_run_to_run() {
        let mut one = Snapshot::embedded();
        let mut two = Snapshot::embedded();
        two.admit(Utf8Path::new("/var"), Access::Read).unwrap();
        let name = one.admit(Utf8Path::new("/srv/project"), Access::Write).unwrap();
        assert_eq!(two.admit(Utf8Path::new("/srv/project"), Access::Write), Ok(name.clone()));
        assert!(name.as_str().starts_with("dir:"));
        assert_eq!(name.as_str().len(), 36);
    }

    #[test]
    fn the_wider_access_stays() {
        let mut snapshot = Snapshot::embedded();
        let name = snapshot.admit(Utf8Path::new("/srv"), Access::Write).unwrap();
        snapshot.admit(Utf8Path::new("/srv"), Access::Read).unwrap();
        assert_eq!(snapshot.admitted_roots().len(), 1);
        assert_eq!(snapshot.root(&name).map(|root| root.access), Some(Access::Write));
    }

    #[test]
    fn a_relative_directory_is_refused() {
        let refused = Snapshot::embedded().admit(Utf8Path::new("srv"), Access::Read);
        assert_eq!(refused, Err(AdmitError::NotAbsolute));
    }

    #[test]
    fn roots_are_bounded() {
        let mut snapshot = Snapshot::embedded();
        for number in 0..ADMITTED_ROOTS_MAX {
            snapshot.admit(Utf8Path::new(&format!("/srv/{number}")), Access::Read).unwrap();
        }
        let refused = snapshot.admit(Utf8Path::new("/srv/one-more"), Access::Read);
        assert_eq!(refused, Err(AdmitError::TooMany));
        assert!(snapshot.admit(Utf8Path::new("/srv/0"), Access::Write).is_ok());
    }

    #[test]
    fn only_names_of_the_policy_pass() {
        let pairs = [("LANG", "C.UTF-8"), ("PATH", "/x"), ("CLAUDECODE", "1"), ("TZ", "a\0b")];
        let host = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let snapshot = Snapshot::embedded().with_environment(host);
        let names: Vec<_> = snapshot.environment().keys().map(EnvironmentName::as_str).collect();
        assert_eq!(names, ["LANG"]);
    }
}
