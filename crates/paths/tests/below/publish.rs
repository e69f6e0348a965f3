//! Publishing files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Scratch, names, relative};
use placement_paths::{OpenError, PrivateDir, PublishError, Replacement};

fn publish(scratch: &Scratch, path: &str, replacement: Replacement) -> Result<(), PublishError> {
    scratch.dir().publish(&relative(path), b"new", 0o640, replacement)
}

#[test]
fn a_new_file_has_its_content_and_its_mode_and_leaves_nothing_else() {
    let scratch = Scratch::new();
    publish(&scratch, "f", Replacement::New).unwrap();
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"new");
    let mode = fs::metadata(scratch.path("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert_eq!(names(&scratch.dir()), ["f"]);
}

#[test]
fn new_keeps_what_is_there() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"old").unwrap();
    let outcome = publish(&scratch, "f", Replacement::New);
    assert!(matches!(outcome, Err(PublishError::AlreadyExists { .. })));
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"old");
    assert_eq!(names(&scratch.dir()), ["f"]);
}

#[test]
fn replace_gives_a_new_file_and_an_open_reader_keeps_the_old() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"old").unwrap();
    let reader = fs::File::open(scratch.path("f")).unwrap();
    publish(&scratch, "f", Replacement::Replace).unwrap();
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"new");
    assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
}

#[test]
fn a_linked_target_is_not_replaced_and_not_followed() {
    let scratch = Scratch::new();
    fs::write(scratch.path("outside"), b"old").unwrap();
    symlink("outside", scratch.path("f")).unwrap();
    let outcome = publish(&scratch, "f", Replacement::Replace);
    assert!(matches!(outcome, Err(PublishError::TargetNotAFile { .. })));
    assert_eq!(fs::read(scratch.path("outside")).unwrap(), b"old");
    assert!(scratch.path("f").is_symlink());
}

#[test]
fn a_directory_is_not_replaced() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("f")).unwrap();
    let outcome = publish(&scratch, "f", Replacement::Replace);
    assert!(matches!(outcome, Err(PublishError::TargetNotAFile { .. })));
    assert!(scratch.path("f").is_dir());
}

#[test]
fn a_linked_parent_is_refused_and_nothing_appears_behind_it() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("outside")).unwrap();
    symlink("outside", scratch.path("d")).unwrap();
    let outcome = publish(&scratch, "d/f", Replacement::Replace);
    assert!(matches!(outcome, Err(PublishError::Parent(OpenError::SymbolicLink { .. }))));
    assert_eq!(fs::read_dir(scratch.path("outside")).unwrap().count(), 0);
}

#[test]
fn a_missing_parent_is_refused_by_the_plain_form() {
    let scratch = Scratch::new();
    let outcome = publish(&scratch, "d/f", Replacement::New);
    assert!(matches!(outcome, Err(PublishError::Parent(OpenError::Missing { .. }))));
}

#[test]
fn the_convenient_form_creates_private_parents_and_a_private_file() {
    let scratch = Scratch::new();
    let home = PrivateDir::create_or_open(scratch.path("home")).unwrap();
    home.publish("app/settings.json", b"{}").unwrap();
    home.publish("app/settings.json", b"[]").unwrap();
    assert_eq!(fs::read(scratch.path("home/app/settings.json")).unwrap(), b"[]");
    for (name, mode) in [("home/app", 0o700), ("home/app/settings.json", 0o600)] {
        let seen = fs::metadata(scratch.path(name)).unwrap().permissions().mode();
        assert_eq!(seen & 0o7777, mode, "{name}");
    }
}

#[test]
fn the_convenient_form_refuses_what_leaves_the_directory() {
    let scratch = Scratch::new();
    let home = PrivateDir::create_or_open(scratch.path("home")).unwrap();
    for path in ["../f", "/f", "a/../../f", ""] {
        let outcome = home.publish(path, b"x");
        assert!(matches!(outcome, Err(PublishError::Parent(OpenError::Path { .. }))), "{path:?}");
    }
    assert_eq!(names(&scratch.dir()), ["home"]);
}

#[test]
fn many_publishers_of_one_new_name_have_one_winner() {
    let scratch = Scratch::new();
    let winners: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8_u8)
            .map(|byte| {
                let dir = scratch.dir();
                scope.spawn(move || {
                    dir.publish(&relative("f"), [byte; 100], 0o600, Replacement::New).is_ok()
                })
            })
            .collect();
        tries.into_iter().map(|one| usize::from(one.join().unwrap())).sum()
    });
    assert_eq!(winners, 1);
    let content = fs::read(scratch.path("f")).unwrap();
    assert_eq!(content.len(), 100);
    assert!(content.iter().all(|byte| *byte == content[0]));
    assert_eq!(names(&scratch.dir()), ["f"]);
}
