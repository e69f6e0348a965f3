//! Physical paths and write roots.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::Scratch;
use placement_paths::{
    NotAdmitted, PathRefused, ResolveError, WithinError, WriteRoots, WriteRootsError,
    directory_within, resolve_directory,
};

/// `root/in`, `root-more`, `root/out -> ../other`, `root/back -> in`, `other`, `alias -> root`.
fn world() -> Scratch {
    let scratch = Scratch::new();
    for name in ["root/in", "root-more", "other"] {
        fs::create_dir_all(scratch.path(name)).unwrap();
    }
    symlink("../other", scratch.path("root/out")).unwrap();
    symlink("in", scratch.path("root/back")).unwrap();
    symlink("root", scratch.path("alias")).unwrap();
    scratch
}

#[test]
fn links_and_dots_are_resolved() {
    let scratch = world();
    let direct = resolve_directory(scratch.path("root/in")).unwrap();
    assert_eq!(resolve_directory(scratch.path("alias/../root/./back")).unwrap(), direct);
}

#[test]
fn what_is_no_directory_path_is_refused() {
    let scratch = world();
    fs::write(scratch.path("file"), b"").unwrap();
    symlink("loop", scratch.path("loop")).unwrap();
    let refused = |path: &str| resolve_directory(path).expect_err("the path must be refused");
    assert!(matches!(refused("relative"), ResolveError::NotAbsolute));
    assert!(matches!(refused(""), ResolveError::NotAbsolute));
    assert!(matches!(refused("/a\nb"), ResolveError::ControlCharacter));
    assert!(matches!(refused(&format!("/{}", "a".repeat(8192))), ResolveError::TooLong));
    assert!(matches!(refused(&format!("/{}", "n".repeat(300))), ResolveError::TooLong));
    let refused = |name: &str| resolve_directory(scratch.path(name)).expect_err("refused");
    assert!(matches!(refused("missing"), ResolveError::Missing));
    assert!(matches!(refused("file"), ResolveError::NotADirectory));
    assert!(matches!(refused("loop"), ResolveError::LinkLoop));
}

#[test]
fn a_link_whose_target_has_a_control_character_is_refused() {
    let scratch = world();
    fs::create_dir(scratch.path("bad\u{1}name")).unwrap();
    symlink("bad\u{1}name", scratch.path("good")).unwrap();
    let outcome = resolve_directory(scratch.path("good"));
    assert!(matches!(outcome, Err(ResolveError::ControlCharacter)));
}

#[test]
fn a_path_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::OsStr::from_bytes(b"/\xff");
    assert!(matches!(resolve_directory(path), Err(ResolveError::NotUtf8)));
}

#[test]
fn a_root_admits_itself_and_what_lies_inside() {
    let scratch = world();
    let roots = WriteRoots::new([scratch.path("root")]).unwrap();
    roots.admit(scratch.path("root")).unwrap();
    roots.admit(scratch.path("root/in")).unwrap();
    roots.admit(scratch.path("alias/in")).unwrap();
}

#[test]
fn a_sibling_with_the_same_prefix_is_outside() {
    let scratch = world();
    let roots = WriteRoots::new([scratch.path("root")]).unwrap();
    let outcome = roots.admit(scratch.path("root-more"));
    assert!(matches!(outcome, Err(NotAdmitted::Outside)));
}

#[test]
fn a_link_out_of_the_root_is_outside() {
    let scratch = world();
    let roots = WriteRoots::new([scratch.path("root")]).unwrap();
    for path in ["root/out", "root/..", "other"] {
        let outcome = roots.admit(scratch.path(path));
        assert!(matches!(outcome, Err(NotAdmitted::Outside)), "{path}");
    }
}

#[test]
fn a_linked_root_admits_by_its_physical_form() {
    let scratch = world();
    let roots = WriteRoots::new([scratch.path("alias")]).unwrap();
    roots.admit(scratch.path("root/in")).unwrap();
}

#[test]
fn the_file_system_root_admits_everything_and_no_root_nothing() {
    let scratch = world();
    WriteRoots::new(["/"]).unwrap().admit(scratch.path("other")).unwrap();
    let none = WriteRoots::new(Vec::<String>::new()).unwrap();
    assert!(matches!(none.admit("/"), Err(NotAdmitted::Outside)));
}

#[test]
fn a_missing_candidate_and_a_missing_root_are_refused() {
    let scratch = world();
    let roots = WriteRoots::new([scratch.path("root")]).unwrap();
    let outcome = roots.admit(scratch.path("root/missing"));
    assert!(matches!(outcome, Err(NotAdmitted::Resolve(ResolveError::Missing))));
    let outcome = WriteRoots::new([scratch.path("root"), scratch.path("missing")]);
    assert!(matches!(outcome, Err(WriteRootsError::Resolve { position: 1, .. })));
}

#[test]
fn roots_are_deduplicated_sorted_and_bounded() {
    let scratch = world();
    let roots = WriteRoots::new(["root", "other", "alias"].map(|name| scratch.path(name))).unwrap();
    let names: Vec<_> =
        roots.as_slice().iter().filter_map(|root| root.as_path().file_name()).collect();
    assert_eq!(names, ["other", "root"]);
    let outcome = WriteRoots::new(std::iter::repeat_n("/", 257));
    assert!(matches!(outcome, Err(WriteRootsError::TooMany)));
}

#[test]
fn a_subpath_inside_is_resolved_and_the_empty_one_is_the_root() {
    let scratch = world();
    let root = resolve_directory(scratch.path("root")).unwrap();
    assert_eq!(directory_within(&root, "").unwrap(), root);
    let inside = directory_within(&root, "back").unwrap();
    assert!(inside.as_path().ends_with("root/in"));
}

#[test]
fn a_subpath_that_leads_out_is_refused() {
    let scratch = world();
    let root = resolve_directory(scratch.path("root")).unwrap();
    let outcome = directory_within(&root, "out");
    assert!(matches!(outcome, Err(WithinError::Escapes)));
    let outcome = directory_within(&root, "../other");
    assert!(matches!(outcome, Err(WithinError::Subpath(PathRefused::DotSegment))));
    let outcome = directory_within(&root, "/etc");
    assert!(matches!(outcome, Err(WithinError::Subpath(PathRefused::Absolute))));
    let outcome = directory_within(&root, "missing");
    assert!(matches!(outcome, Err(WithinError::Resolve(ResolveError::Missing))));
}
