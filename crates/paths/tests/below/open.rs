//! Opening, looking and reading below a directory.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use crate::support::{Scratch, relative};
use placement_paths::{Access, Dir, EntryKind, Existence, OpenError, ReadError, ResolveError};

#[test]
fn the_given_path_may_lead_through_a_link() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("real")).unwrap();
    symlink("real", scratch.path("link")).unwrap();
    let through = Dir::open(scratch.path("link"), "test").unwrap();
    let direct = Dir::open(scratch.path("real"), "test").unwrap();
    assert_eq!(through.facts().unwrap(), direct.facts().unwrap());
}

#[test]
fn a_file_is_not_opened_as_a_directory() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"").unwrap();
    let outcome = Dir::open(scratch.path("f"), "test");
    assert!(matches!(outcome, Err(OpenError::NotADirectory { .. })));
}

#[test]
fn a_missing_directory_is_named_by_its_role_only() {
    let scratch = Scratch::new();
    let error = Dir::open(scratch.path("secret-name"), "attempt").unwrap_err();
    assert_eq!(error.to_string(), "the attempt directory does not exist");
}

#[test]
fn a_link_in_the_middle_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("real/sub")).unwrap();
    symlink("real", scratch.path("link")).unwrap();
    let outcome = scratch.dir().open_dir(&relative("link/sub"));
    assert!(matches!(outcome, Err(OpenError::SymbolicLink { .. })));
}

#[test]
fn a_link_as_the_target_file_is_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.path("real"), b"x").unwrap();
    symlink("real", scratch.path("link")).unwrap();
    let outcome = scratch.dir().open_file(&relative("link"), Access::Read);
    assert!(matches!(outcome, Err(OpenError::SymbolicLink { .. })));
}

#[test]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let scratch = Scratch::new();
    rustix::fs::mkfifoat(scratch.dir(), "pipe", 0o600.into()).unwrap();
    for access in [Access::Read, Access::ReadWrite, Access::Append] {
        let outcome = scratch.dir().open_file(&relative("pipe"), access);
        assert!(matches!(outcome, Err(OpenError::NotARegularFile { .. })), "{access:?}");
    }
}

#[test]
fn a_directory_is_not_opened_as_a_file() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    for access in [Access::Read, Access::ReadWrite] {
        let outcome = scratch.dir().open_file(&relative("d"), access);
        assert!(matches!(outcome, Err(OpenError::NotARegularFile { .. })), "{access:?}");
    }
}

#[test]
fn appending_keeps_what_is_there() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"one").unwrap();
    let mut file = scratch.dir().open_file(&relative("f"), Access::Append).unwrap();
    file.write_all(b"two").unwrap();
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"onetwo");
}

#[test]
fn a_directory_stays_the_same_after_its_path_was_replaced() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    fs::write(scratch.path("d/f"), b"ours").unwrap();
    let held = scratch.dir().open_dir(&relative("d")).unwrap();
    fs::rename(scratch.path("d"), scratch.path("moved")).unwrap();
    fs::create_dir(scratch.path("d")).unwrap();
    fs::write(scratch.path("d/f"), b"theirs").unwrap();
    let mut text = String::new();
    held.open_file(&relative("f"), Access::Read).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "ours");
}

#[test]
fn the_physical_path_follows_a_rename() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    let held = scratch.dir().open_dir(&relative("d")).unwrap();
    fs::rename(scratch.path("d"), scratch.path("moved")).unwrap();
    let expected = fs::canonicalize(scratch.path("moved")).unwrap();
    assert_eq!(held.path().unwrap(), expected.as_path());
}

#[test]
fn a_removed_directory_has_no_path_even_if_a_name_imitates_the_mark() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("d")).unwrap();
    let held = scratch.dir().open_dir(&relative("d")).unwrap();
    fs::remove_dir(scratch.path("d")).unwrap();
    fs::create_dir(scratch.path("d (deleted)")).unwrap();
    assert!(matches!(held.path(), Err(ResolveError::Missing)));
}

#[test]
fn existence_tells_kinds_without_following() {
    let scratch = Scratch::new();
    let dir = scratch.dir();
    fs::create_dir(scratch.path("d")).unwrap();
    fs::write(scratch.path("f"), b"").unwrap();
    symlink("nowhere", scratch.path("l")).unwrap();
    assert_eq!(dir.exists("d"), Existence::Present(EntryKind::Directory));
    assert_eq!(dir.exists("f"), Existence::Present(EntryKind::File));
    assert_eq!(dir.exists("l"), Existence::Present(EntryKind::SymbolicLink));
    assert_eq!(dir.exists("x"), Existence::Absent);
}

#[test]
fn existence_is_unknown_where_it_cannot_be_told() {
    let scratch = Scratch::new();
    assert_eq!(scratch.dir().exists("../x"), Existence::Unknown("EINVAL"));
    assert_eq!(scratch.dir().exists(&"n".repeat(300)), Existence::Unknown("ENAMETOOLONG"));
}

#[test]
fn reading_is_bounded_exactly() {
    let scratch = Scratch::new();
    fs::write(scratch.path("f"), b"12345").unwrap();
    let path = relative("f");
    assert_eq!(scratch.dir().read_bounded(&path, 5).unwrap(), b"12345");
    let outcome = scratch.dir().read_bounded(&path, 4);
    assert!(matches!(outcome, Err(ReadError::TooLarge { bytes_max: 4, .. })));
}

#[test]
fn entries_leave_out_the_dots() {
    let scratch = Scratch::new();
    fs::write(scratch.path("a"), b"").unwrap();
    fs::write(scratch.path(".b"), b"").unwrap();
    assert_eq!(crate::support::names(&scratch.dir()), [".b", "a"]);
}
