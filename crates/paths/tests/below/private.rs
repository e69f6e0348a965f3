//! What counts as private.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Scratch, is_root};
use placement_paths::{CreateError, PrivateDir, PrivateError};

fn with_mode(scratch: &Scratch, mode: u32) {
    fs::create_dir_all(scratch.path("d")).unwrap();
    fs::set_permissions(scratch.path("d"), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn any_right_of_others_refuses_and_the_mode_is_named() {
    let scratch = Scratch::new();
    for mode in [0o701, 0o702, 0o704, 0o710, 0o720, 0o740, 0o755, 0o777, 0o1777] {
        with_mode(&scratch, mode);
        for opened in
            [PrivateDir::open(scratch.path("d")), PrivateDir::create_or_open(scratch.path("d"))]
        {
            let Err(PrivateError::NotPrivate { mode: seen, .. }) = opened else {
                panic!("mode {mode:o} must be refused");
            };
            assert_eq!(seen, mode);
        }
        let kept = fs::metadata(scratch.path("d")).unwrap().permissions().mode();
        assert_eq!(kept & 0o7777, mode, "a refused directory is left as it is");
    }
}

#[test]
fn a_directory_of_the_owner_alone_is_private() {
    let scratch = Scratch::new();
    with_mode(&scratch, 0o700);
    PrivateDir::open(scratch.path("d")).unwrap();
    with_mode(&scratch, 0o500);
    PrivateDir::open(scratch.path("d")).unwrap();
}

#[test]
fn somebody_elses_directory_is_refused() {
    let scratch = Scratch::new();
    let path = if is_root() {
        with_mode(&scratch, 0o700);
        std::os::unix::fs::chown(scratch.path("d"), Some(65534), None).unwrap();
        scratch.path("d")
    } else {
        "/".into()
    };
    let Err(PrivateError::NotOwned { owner, .. }) = PrivateDir::open(path) else {
        panic!("another owner must be refused");
    };
    assert_eq!(owner, if is_root() { 65534 } else { 0 });
}

#[test]
fn a_missing_directory_and_a_file_are_told_apart() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"").unwrap();
    let missing = PrivateDir::open(scratch.path("x"));
    assert!(matches!(missing, Err(PrivateError::Missing { .. })));
    let file = PrivateDir::open(scratch.path("f"));
    assert!(matches!(file, Err(PrivateError::NotADirectory { .. })));
    let below = PrivateDir::create_or_open(scratch.path("f/x"));
    assert!(matches!(below, Err(PrivateError::NotADirectory { .. })));
}

#[test]
fn missing_parents_are_created_private_and_existing_ones_kept() {
    let scratch = Scratch::new();
    with_mode(&scratch, 0o755);
    PrivateDir::create_or_open(scratch.path("d/e/f")).unwrap();
    for (name, mode) in [("d", 0o755), ("d/e", 0o700), ("d/e/f", 0o700)] {
        let seen = fs::metadata(scratch.path(name)).unwrap().permissions().mode();
        assert_eq!(seen & 0o7777, mode, "{name}");
    }
}

#[test]
fn dots_below_something_missing_are_not_created() {
    let scratch = Scratch::new();
    let outcome = PrivateDir::create_or_open(scratch.path("x/../y"));
    assert!(matches!(outcome, Err(PrivateError::Missing { .. })), "{outcome:?}");
    assert!(crate::support::names(&scratch.dir()).is_empty());
}

#[test]
fn a_name_with_a_control_character_is_not_created() {
    let scratch = Scratch::new();
    let outcome = PrivateDir::create_or_open(scratch.path("x\ny"));
    assert!(matches!(outcome, Err(PrivateError::Create(CreateError::Path { .. }))));
}

#[test]
fn a_dangling_link_is_not_created_through() {
    let scratch = Scratch::new();
    symlink("elsewhere", scratch.path("d")).unwrap();
    assert!(PrivateDir::create_or_open(scratch.path("d")).is_err());
    assert!(!scratch.path("elsewhere").exists());
}

#[test]
fn many_processes_may_create_one_root_at_once() {
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| PrivateDir::create_or_open(scratch.path("a/b/c")).unwrap());
        }
    });
}

#[test]
fn a_relative_path_is_taken_from_the_working_directory() {
    let scratch = Scratch::new();
    let working = std::env::current_dir().unwrap().canonicalize().unwrap();
    let up = "../".repeat(working.components().count() - 1);
    let physical = scratch.path("").canonicalize().unwrap();
    let relative = format!("{up}{}", physical.strip_prefix("/").unwrap().display());
    let made = PrivateDir::create_or_open(format!("{relative}/a/b")).unwrap();
    assert_eq!(made.path().unwrap(), physical.join("a/b"));
}
