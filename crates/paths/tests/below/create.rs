//! Creating directories and files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Scratch, names, relative};
use placement_paths::{CreateError, OpenError};

#[test]
fn an_existing_entry_of_any_kind_refuses() {
    let scratch = Scratch::new();
    let dir = scratch.dir();
    fs::create_dir(scratch.path("d")).unwrap();
    fs::write(scratch.path("f"), b"old").unwrap();
    symlink("nowhere", scratch.path("l")).unwrap();
    for name in ["d", "f", "l"] {
        let made = dir.create_dir(name, 0o700);
        assert!(matches!(made, Err(CreateError::AlreadyExists { .. })), "{name}");
        let made = dir.create_file(name, 0o600);
        assert!(matches!(made, Err(CreateError::AlreadyExists { .. })), "{name}");
    }
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"old");
    assert!(!scratch.path("nowhere").exists());
}

#[test]
fn a_name_that_is_a_path_is_refused() {
    let scratch = Scratch::new();
    for name in ["a/b", "..", ".", "", "/a", "a\nb"] {
        let made = scratch.dir().create_dir(name, 0o700);
        assert!(matches!(made, Err(CreateError::Path { .. })), "{name:?}");
    }
    assert!(names(&scratch.dir()).is_empty());
}

#[test]
fn a_mode_with_set_id_and_sticky_bits_is_exact() {
    let scratch = Scratch::new();
    let made = scratch.dir().create_dir("d", 0o1711).unwrap();
    assert_eq!(made.facts().unwrap().mode, 0o1711);
}

#[test]
fn a_parent_that_hands_down_its_group_does_not_widen_the_mode() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("shared")).unwrap();
    fs::set_permissions(scratch.path("shared"), fs::Permissions::from_mode(0o2777)).unwrap();
    let shared = scratch.dir().open_dir(&relative("shared")).unwrap();
    assert_eq!(shared.create_dir("d", 0o700).unwrap().facts().unwrap().mode, 0o700);
}

#[test]
fn missing_components_are_created_and_existing_ones_kept() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("a")).unwrap();
    fs::set_permissions(scratch.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    let made = scratch.dir().ensure_dir(&relative("a/b/c"), 0o700).unwrap();
    assert_eq!(made.facts().unwrap().mode, 0o700);
    let kept = scratch.dir().open_dir(&relative("a")).unwrap();
    assert_eq!(kept.facts().unwrap().mode, 0o755);
}

#[test]
fn missing_components_are_not_created_behind_a_link() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("outside")).unwrap();
    symlink("outside", scratch.path("a")).unwrap();
    let made = scratch.dir().ensure_dir(&relative("a/b"), 0o700);
    assert!(matches!(made, Err(CreateError::Open(OpenError::SymbolicLink { .. }))));
    assert!(!scratch.path("outside/b").exists());
}

#[test]
fn a_rename_replaces_and_a_missing_source_is_named() {
    let scratch = Scratch::new();
    fs::write(scratch.path("a"), b"new").unwrap();
    fs::write(scratch.path("b"), b"old").unwrap();
    scratch.dir().rename("a", "b").unwrap();
    assert_eq!(fs::read(scratch.path("b")).unwrap(), b"new");
    let again = scratch.dir().rename("a", "b");
    assert!(matches!(again, Err(CreateError::Missing { .. })));
}

#[test]
fn removing_a_link_keeps_what_it_leads_to() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"x").unwrap();
    symlink("f", scratch.path("l")).unwrap();
    scratch.dir().remove_file("l").unwrap();
    assert_eq!(names(&scratch.dir()), ["f"]);
    let again = scratch.dir().remove_file("l");
    assert!(matches!(again, Err(CreateError::Missing { .. })));
}
