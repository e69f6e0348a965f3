//! Which grants are admitted, and what becomes of a directory that changes afterwards.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use camino::Utf8PathBuf;
use placement_contract::{Access, Code, Purpose, ResourceGrant, RootRef};
use placement_policy::{SESSION_ROOT, Snapshot};
use placement_resources::{OwnHome, ReopenError, ResolvedGrant, admit, reopen};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

struct Place {
    _scratch: TempDir,
    project: Utf8PathBuf,
    outside: Utf8PathBuf,
    snapshot: Snapshot,
    root_ref: String,
}

/// A root `project` with `sub/deep`, admitted for `access`, beside a directory `outside`.
fn place(access: Access) -> Place {
    let scratch = tempfile::tempdir().unwrap();
    let base = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().unwrap()).unwrap();
    let project = base.join("project");
    let outside = base.join("outside");
    fs::create_dir_all(project.join("sub/deep")).unwrap();
    fs::create_dir(&outside).unwrap();
    let mut snapshot = Snapshot::embedded();
    let root_ref = snapshot.admit(&project, access).unwrap().as_str().to_owned();
    Place { _scratch: scratch, project, outside, snapshot, root_ref }
}

fn grant(root_ref: &str, subpath: &str, access: &str) -> ResourceGrant {
    serde_json::from_value(serde_json::json!({
        "name": "project", "grant_ref": "g", "root_ref": root_ref, "subpath": subpath,
        "access": access, "purpose": "project",
    }))
    .unwrap()
}

/// Where the launch's own home would be; nothing is there.
fn own() -> OwnHome<'static> {
    OwnHome { root: "/placement".into(), home: "/placement/sessions/0/home".into() }
}

fn admitted(place: &Place, subpath: &str, access: &str) -> ResolvedGrant {
    admit(&[grant(&place.root_ref, subpath, access)], &place.snapshot, own()).unwrap().remove(0)
}

fn refused(place: &Place, root_ref: &str, subpath: &str, access: &str) -> (Code, String) {
    let refusal = admit(&[grant(root_ref, subpath, access)], &place.snapshot, own()).unwrap_err();
    assert!(!refusal.message.contains(place.project.as_str()), "{refusal}");
    (refusal.code, refusal.message)
}

#[test]
fn a_root_is_granted_whole() {
    let place = place(Access::Write);
    let granted = admitted(&place, "", "write");
    assert_eq!(granted.directory, place.project);
    assert_eq!(reopen(&granted).unwrap().path().unwrap(), place.project);
}

#[test]
fn a_subpath_is_granted_below_its_root() {
    let place = place(Access::Write);
    let granted = admitted(&place, "sub/deep", "read");
    assert_eq!(granted.directory, place.project.join("sub/deep"));
    assert_eq!(granted.root, place.project);
}

#[test]
fn an_unlisted_root_is_forbidden() {
    let place = place(Access::Write);
    let (code, message) = refused(&place, "dir:unknown", "", "read");
    assert_eq!(code, Code::Forbidden);
    assert_eq!(message, "the resource project names a root that the host does not admit");
}

#[test]
fn writing_below_a_read_root_is_forbidden() {
    let place = place(Access::Read);
    assert_eq!(refused(&place, &place.root_ref, "", "write").0, Code::Forbidden);
}

#[test]
fn reading_below_a_read_root_is_admitted() {
    let place = place(Access::Read);
    assert_eq!(admitted(&place, "sub", "read").access, Access::Read);
}

#[test]
fn a_root_that_is_gone_is_invalid() {
    let place = place(Access::Write);
    fs::rename(&place.project, place.outside.join("moved")).unwrap();
    let (code, message) = refused(&place, &place.root_ref, "", "read");
    assert_eq!(code, Code::Invalid);
    assert!(message.ends_with("has a root that does not exist"), "{message}");
}

#[test]
fn a_file_is_not_a_directory() {
    let place = place(Access::Write);
    fs::write(place.project.join("file"), b"x").unwrap();
    let (code, message) = refused(&place, &place.root_ref, "file", "read");
    assert_eq!(code, Code::Invalid);
    assert!(message.ends_with("has a subpath that is not a directory"), "{message}");
}

#[test]
fn a_missing_subpath_is_invalid() {
    let place = place(Access::Write);
    assert_eq!(refused(&place, &place.root_ref, "nowhere", "read").0, Code::Invalid);
}

#[test]
fn a_link_out_of_the_root_is_forbidden() {
    let place = place(Access::Write);
    symlink(&place.outside, place.project.join("out")).unwrap();
    let (code, message) = refused(&place, &place.root_ref, "out", "read");
    assert_eq!(code, Code::Forbidden);
    assert!(message.ends_with("has a subpath that leads out of its root"), "{message}");
}

#[test]
fn a_link_inside_the_root_is_resolved() {
    let place = place(Access::Write);
    symlink("sub", place.project.join("link")).unwrap();
    let granted = admitted(&place, "link/deep", "read");
    assert_eq!(granted.directory, place.project.join("sub/deep"));
    assert!(reopen(&granted).is_ok());
}

#[test]
fn a_grant_for_a_session_is_the_launchs_own_home_whatever_the_host_lists() {
    let mut place = place(Access::Write);
    place.snapshot = place.snapshot.with_listed_roots_only();
    let mut asked = grant(SESSION_ROOT, "", "write");
    let refusal = admit(&[asked.clone()], &place.snapshot, own()).unwrap_err();
    assert_eq!(refusal.code, Code::Forbidden, "it is for a project");
    asked.purpose = Purpose::Session;
    let granted = admit(&[asked.clone()], &place.snapshot, own()).unwrap().remove(0);
    assert_eq!((granted.root.as_path(), granted.directory.as_path()), (own().root, own().home));
    asked.root_ref = RootRef::parse(&place.root_ref).unwrap();
    let refusal = admit(&[asked], &place.snapshot, own()).unwrap_err();
    assert_eq!(refusal.code, Code::Forbidden, "it is a caller's directory");
}

#[test]
fn one_refused_grant_refuses_all() {
    let place = place(Access::Write);
    let asked = [grant(&place.root_ref, "", "read"), grant(&place.root_ref, "nowhere", "read")];
    assert!(admit(&asked, &place.snapshot, own()).is_err());
}

#[test]
fn a_grant_survives_its_stored_form() {
    let place = place(Access::Write);
    let granted = admitted(&place, "sub", "write");
    let stored = serde_json::to_string(&granted).unwrap();
    assert_eq!(serde_json::from_str::<ResolvedGrant>(&stored).unwrap(), granted);
}

#[test]
fn a_directory_replaced_by_a_link_out_is_not_reopened() {
    let place = place(Access::Write);
    let granted = admitted(&place, "sub", "write");
    fs::rename(place.project.join("sub"), place.project.join("was")).unwrap();
    symlink(&place.outside, place.project.join("sub")).unwrap();
    assert!(matches!(reopen(&granted), Err(ReopenError::Escapes)));
}

#[test]
fn a_directory_replaced_by_a_link_inside_is_not_reopened() {
    let place = place(Access::Write);
    let granted = admitted(&place, "sub", "write");
    fs::rename(place.project.join("sub"), place.project.join("was")).unwrap();
    symlink("was", place.project.join("sub")).unwrap();
    assert!(matches!(reopen(&granted), Err(ReopenError::Moved)));
}

#[test]
fn a_root_replaced_by_a_link_is_not_reopened() {
    let place = place(Access::Write);
    let granted = admitted(&place, "", "write");
    fs::rename(&place.project, place.outside.join("was")).unwrap();
    symlink(place.outside.join("was"), &place.project).unwrap();
    assert!(matches!(reopen(&granted), Err(ReopenError::Moved)));
}

#[test]
fn a_directory_that_is_gone_is_not_reopened() {
    let place = place(Access::Write);
    let granted = admitted(&place, "sub/deep", "write");
    fs::remove_dir(place.project.join("sub/deep")).unwrap();
    assert!(matches!(reopen(&granted), Err(ReopenError::Resolve(_))));
}

#[test]
fn a_named_directory_that_now_leads_out_of_its_listed_one_is_refused() {
    let mut place = place(Access::Write);
    let mut snapshot = place.snapshot.clone().with_listed_roots_only();
    let name = snapshot.admit_named(place.project.join("sub"), Access::Write).unwrap();
    place.snapshot = snapshot;
    let asked = || admit(&[grant(name.as_str(), "", "write")], &place.snapshot, own());
    assert_eq!(asked().unwrap()[0].directory, place.project.join("sub"));
    fs::rename(place.project.join("sub"), place.project.join("kept")).unwrap();
    symlink(&place.outside, place.project.join("sub")).unwrap();
    let (code, message) = refused(&place, name.as_str(), "", "write");
    assert_eq!(code, Code::Forbidden, "{message}");
}

#[test]
fn the_innermost_listed_directory_decides_also_for_a_subpath_and_behind_a_link() {
    let mut place = place(Access::Write);
    let mut snapshot = Snapshot::embedded();
    snapshot.admit(&place.project, Access::Write).unwrap();
    snapshot.admit(place.project.join("sub"), Access::Read).unwrap();
    fs::create_dir(place.project.join("one")).unwrap();
    snapshot = snapshot.with_listed_roots_only();
    let named = snapshot.admit_named(place.project.join("one"), Access::Write).unwrap();
    place.snapshot = snapshot;
    let (code, message) = refused(&place, &place.root_ref, "sub/deep", "write");
    assert_eq!(code, Code::Forbidden, "{message}");
    assert_eq!(admitted(&place, "sub/deep", "read").directory, place.project.join("sub/deep"));
    fs::remove_dir(place.project.join("one")).unwrap();
    symlink("sub/deep", place.project.join("one")).unwrap();
    let (code, message) = refused(&place, named.as_str(), "", "write");
    assert_eq!(code, Code::Forbidden, "{message}");
}
