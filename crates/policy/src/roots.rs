//! The directories that a host admits.

use crate::limits::ADMITTED_ROOTS_MAX;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Access, Code, Digest, Refusal, RootRef};
use placement_paths::resolve_directory;

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

/// Which directories launches may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UsableRoots {
    /// Any; whoever may launch may use what the user may.
    Any,
    /// Those that the host lists, and what is in them.
    Listed(Vec<AdmittedRoot>),
}

impl UsableRoots {
    /// Checks a directory by its physical path. The innermost listed one around it decides: one that
    /// is listed for reading stays so inside one for writing.
    ///
    /// # Errors
    /// FORBIDDEN.
    pub(crate) fn check(&self, physical: &Utf8Path, access: Access) -> Result<(), Refusal> {
        let Self::Listed(listed) = self else { return Ok(()) };
        let refused = |phrase: &str| {
            Refusal::new(Code::Forbidden, phrase)
                .with_hint("name a directory that the configuration file admits, or add it there")
        };
        let around = listed.iter().filter(|root| physical.starts_with(&root.directory));
        let Some(innermost) = around.max_by_key(|root| root.directory.as_str().len()) else {
            return Err(refused("lies in no directory that the configuration admits"));
        };
        if innermost.access < access {
            return Err(refused(
                "lies in a directory that the configuration admits for reading only",
            ));
        }
        Ok(())
    }
}

/// Admits one more directory, or widens the access of one that is admitted.
pub(crate) fn admit(
    roots: &mut Vec<AdmittedRoot>,
    directory: &Utf8Path,
    access: Access,
) -> Result<RootRef, Refusal> {
    if !directory.is_absolute() {
        let message = "an admitted directory must be an absolute path";
        return Err(Refusal::new(Code::Invalid, message));
    }
    let directory = physical(directory);
    let root_ref = root_ref_of(&directory);
    if let Some(known) = roots.iter_mut().find(|root| root.root_ref == root_ref) {
        known.access = known.access.max(access);
        return Ok(root_ref);
    }
    if roots.len() >= ADMITTED_ROOTS_MAX {
        let message = format!("at most {ADMITTED_ROOTS_MAX} directories can be admitted");
        return Err(Refusal::new(Code::Invalid, message));
    }
    roots.push(AdmittedRoot { root_ref: root_ref.clone(), directory, access });
    Ok(root_ref)
}

/// Admits a directory that a launch names, if it may be used.
pub(crate) fn admit_usable(
    roots: &mut Vec<AdmittedRoot>,
    usable: &UsableRoots,
    directory: &Utf8Path,
    access: Access,
) -> Result<RootRef, Refusal> {
    usable.check(&physical(directory), access)?;
    admit(roots, directory, access)
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
    use crate::Snapshot;
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

    fn listed() -> Snapshot {
        let mut snapshot = Snapshot::embedded();
        snapshot.admit("/srv/projects", Access::Write).unwrap();
        snapshot.admit("/srv/projects/vendored", Access::Read).unwrap();
        snapshot.with_listed_roots_only()
    }

    #[test]
    fn a_directory_in_a_listed_one_has_the_name_that_it_always_has() {
        let mut snapshot = listed();
        let name = snapshot.admit_named("/srv/projects/one", Access::Write).unwrap();
        assert_eq!(snapshot.root(&name).unwrap().directory, "/srv/projects/one");
        assert_eq!(Snapshot::embedded().admit_named("/srv/projects/one", Access::Write), Ok(name));
    }

    #[test]
    fn a_directory_that_a_launch_named_lists_no_other() {
        let mut snapshot = listed();
        snapshot.admit_named("/srv/projects/vendored/one", Access::Read).unwrap();
        assert!(snapshot.check_use("/srv/projects/vendored/one", Access::Write).is_err());
        assert!(snapshot.check_use("/srv/projects/two", Access::Write).is_ok());
    }

    #[test]
    fn a_directory_outside_of_the_list_is_refused() {
        for (directory, access) in [
            ("/srv", Access::Read),
            ("/srv/projects-of-others", Access::Read),
            ("/srv/projects/vendored/crate", Access::Write),
        ] {
            let refused = listed().admit_named(directory, access);
            let code = refused.map_err(|refusal| refusal.code);
            assert_eq!(code, Err(Code::Forbidden), "{directory}");
        }
        assert!(listed().admit_named("/srv/projects/vendored/crate", Access::Read).is_ok());
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
}
