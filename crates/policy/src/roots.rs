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
    /// The listed directory that it must lie in whenever it is used, if a launch named it below one.
    pub within: Option<Utf8PathBuf>,
}

/// Which directories a launch may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedRoots {
    /// Any; whoever may launch may use what the user may.
    Any,
    /// Those in a directory that the host lists.
    InListed,
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
    roots.push(AdmittedRoot { root_ref: root_ref.clone(), directory, access, within: None });
    Ok(root_ref)
}

/// Admits a directory that a launch names, if it lies in one that the host lists.
pub(crate) fn admit_in_listed(
    roots: &mut Vec<AdmittedRoot>,
    directory: &Utf8Path,
    access: Access,
) -> Result<RootRef, Refusal> {
    let refused = |phrase: &str| {
        Refusal::new(Code::Forbidden, phrase)
            .with_hint("name a directory that the configuration file admits, or add it there")
    };
    let physical = physical(directory);
    let listed = roots.iter().filter(|root| root.within.is_none());
    let around = listed.filter(|root| physical.starts_with(&root.directory));
    // The innermost decides: a directory listed for reading stays so inside one for writing.
    let Some(innermost) = around.max_by_key(|root| root.directory.as_str().len()) else {
        return Err(refused("lies in no directory that the configuration admits"));
    };
    if innermost.access < access {
        return Err(refused("lies in a directory that the configuration admits for reading only"));
    }
    let within = innermost.directory.clone();
    let root_ref = admit(roots, &physical, access)?;
    if let Some(root) = roots.iter_mut().find(|root| root.root_ref == root_ref)
        && root.directory != within
    {
        root.within = Some(within);
    }
    Ok(root_ref)
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
    fn a_directory_in_a_listed_one_is_admitted_and_bound_to_it() {
        let mut snapshot = listed();
        let name = snapshot.admit_named("/srv/projects/one", Access::Write).unwrap();
        let root = snapshot.root(&name).unwrap();
        assert_eq!(root.directory, "/srv/projects/one");
        assert_eq!(root.within.as_deref(), Some(Utf8Path::new("/srv/projects")));
        assert_eq!(Snapshot::embedded().admit_named("/srv/projects/one", Access::Write), Ok(name));
    }

    #[test]
    fn a_listed_directory_itself_is_bound_to_nothing_else() {
        let mut snapshot = listed();
        let name = snapshot.admit_named("/srv/projects", Access::Read).unwrap();
        assert_eq!(snapshot.root(&name).unwrap().within, None);
        assert_eq!(snapshot.root(&name).unwrap().access, Access::Write);
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
