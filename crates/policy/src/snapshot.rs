//! A host's configuration as one launch sees it, from admission to materialization.

use crate::definitions::{
    BINDING_REVISION, Definitions, LaunchPolicy, POLICY_REVISION, PROFILE_REVISION,
};
use crate::limits::ADMITTED_ROOTS_MAX;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::limits::ENVIRONMENT_VALUE_BYTES_MAX;
use placement_contract::{
    Access, BindingRef, Code, Digest, EnvironmentName, PolicyRef, ProfileId, Refusal, RootRef,
};
use placement_paths::resolve_directory;
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
    /// Its physical path, as far as it existed when it was admitted.
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

    /// Takes those values of the host's environment that the launch policy lets through; one that
    /// is longer than a launch itself may supply is as if not set.
    #[must_use]
    pub fn with_environment(mut self, values: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = values
            .into_iter()
            .filter_map(|(name, value)| Some((EnvironmentName::parse(&name)?, value)))
            .filter(|(name, value)| {
                let fits = value.len() <= ENVIRONMENT_VALUE_BYTES_MAX && !value.contains('\0');
                fits && self.rules.environment_pass.contains(name)
            })
            .collect();
        self
    }

    /// Admits a directory and returns the name that grants use for it.
    ///
    /// The name is `dir:` and 32 hexadecimal characters of the SHA-256 of the physical path, so
    /// that a request made again names the same root. A directory that is admitted twice keeps the
    /// wider access. One that is not there is admitted all the same, under the path that it would
    /// have: a replay needs its name only, and a new launch is refused when its grants are
    /// resolved.
    ///
    /// # Errors
    /// INVALID for a relative path or too many roots.
    pub fn admit(
        &mut self,
        directory: impl AsRef<Utf8Path>,
        access: Access,
    ) -> Result<RootRef, Refusal> {
        let directory = directory.as_ref();
        if !directory.is_absolute() {
            let message = "an admitted directory must be an absolute path";
            return Err(Refusal::new(Code::Invalid, message));
        }
        let directory = physical(directory);
        let root_ref = root_ref_of(&directory);
        if let Some(known) = self.admitted_roots.iter_mut().find(|root| root.root_ref == root_ref) {
            known.access = known.access.max(access);
            return Ok(root_ref);
        }
        if self.admitted_roots.len() >= ADMITTED_ROOTS_MAX {
            return Err(Refusal::new(Code::Invalid, "at most 256 directories can be admitted"));
        }
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

/// Resolves what exists of a path and appends the rest as it is given.
fn physical(directory: &Utf8Path) -> Utf8PathBuf {
    for existing in directory.ancestors() {
        if let Ok(resolved) = resolve_directory(existing) {
            let rest = directory.strip_prefix(existing).expect("an ancestor is a prefix");
            return match rest.as_str() {
                "" => resolved.as_path().to_owned(),
                _ => resolved.as_path().join(rest),
            };
        }
    }
    directory.to_owned()
}

fn root_ref_of(directory: &Utf8Path) -> RootRef {
    let digest = Digest::of_bytes(directory.as_str().as_bytes());
    RootRef::parse(&format!("dir:{}", &digest.as_str()[..32])).expect("36 printable characters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn a_root_keeps_its_name_from_run_to_run() {
        let mut one = Snapshot::embedded();
        let mut two = Snapshot::embedded();
        two.admit("/var", Access::Read).unwrap();
        let name = one.admit("/srv/project", Access::Write).unwrap();
        assert_eq!(two.admit("/srv/project", Access::Write), Ok(name.clone()));
        assert!(name.as_str().starts_with("dir:"));
        assert_eq!(name.as_str().len(), 36);
    }

    #[test]
    fn a_root_is_named_by_its_physical_path() {
        let scratch = TempRoot::new();
        std::fs::create_dir(scratch.join("real")).unwrap();
        std::os::unix::fs::symlink("real", scratch.join("link")).unwrap();
        let mut snapshot = Snapshot::embedded();
        let name = snapshot.admit(scratch.join("real"), Access::Read).unwrap();
        assert_eq!(snapshot.admit(scratch.join("link"), Access::Read), Ok(name.clone()));
        assert_eq!(snapshot.admit(scratch.join("link/../real"), Access::Read), Ok(name));
        assert_eq!(snapshot.admitted_roots()[0].directory, scratch.join("real"));
    }

    #[test]
    fn a_root_that_is_gone_keeps_its_name() {
        let scratch = TempRoot::new();
        std::fs::create_dir_all(scratch.join("real/project")).unwrap();
        std::os::unix::fs::symlink("real", scratch.join("link")).unwrap();
        let mut snapshot = Snapshot::embedded();
        let name = snapshot.admit(scratch.join("link/project"), Access::Read).unwrap();
        std::fs::remove_dir(scratch.join("real/project")).unwrap();
        assert_eq!(snapshot.admit(scratch.join("link/project"), Access::Read), Ok(name));
    }

    #[test]
    fn the_wider_access_stays() {
        let mut snapshot = Snapshot::embedded();
        let name = snapshot.admit("/srv", Access::Write).unwrap();
        snapshot.admit("/srv", Access::Read).unwrap();
        assert_eq!(snapshot.admitted_roots().len(), 1);
        assert_eq!(snapshot.root(&name).map(|root| root.access), Some(Access::Write));
    }

    #[test]
    fn a_relative_directory_is_refused() {
        let refused = Snapshot::embedded().admit("srv", Access::Read);
        assert_eq!(refused.map_err(|refusal| refusal.code), Err(Code::Invalid));
    }

    #[test]
    fn roots_are_bounded() {
        let mut snapshot = Snapshot::embedded();
        for number in 0..ADMITTED_ROOTS_MAX {
            snapshot.admit(format!("/srv/{number}"), Access::Read).unwrap();
        }
        let refused = snapshot.admit("/srv/one-more", Access::Read);
        assert_eq!(refused.map_err(|refusal| refusal.code), Err(Code::Invalid));
        assert!(snapshot.admit("/srv/0", Access::Write).is_ok());
    }

    #[test]
    fn only_names_of_the_policy_pass() {
        let pairs = [("LANG", "C.UTF-8"), ("PATH", "/x"), ("CLAUDECODE", "1"), ("TZ", "a\0b")];
        let host = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let snapshot = Snapshot::embedded().with_environment(host);
        let names: Vec<_> = snapshot.environment().keys().map(EnvironmentName::as_str).collect();
        assert_eq!(names, ["LANG"]);
    }

    #[test]
    fn a_value_that_no_order_carries_does_not_pass() {
        let value = |length| [("LANG".to_owned(), "x".repeat(length))];
        let longest = Snapshot::embedded().with_environment(value(ENVIRONMENT_VALUE_BYTES_MAX));
        assert_eq!(longest.environment().len(), 1);
        let longer = Snapshot::embedded().with_environment(value(ENVIRONMENT_VALUE_BYTES_MAX + 1));
        assert!(longer.environment().is_empty());
    }
}
