//! Files of an attempt's home, which are written once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use placement_homes::{
    Content, HomeFiles, LOGIN_MARKER, ParentError, Replay, WriteProtectedError, Written,
};

use crate::files_support::{BASE, Given, LOGIN, Place, path};

fn write(files: &mut HomeFiles, at: &str, bytes: &str) -> Result<Written, WriteProtectedError> {
    files.write_protected(&path(at), bytes.as_bytes(), Content::Delivered, Replay::Refused)
}

fn replay(files: &mut HomeFiles, at: &str, bytes: &str) -> Result<Written, WriteProtectedError> {
    files.write_protected(&path(at), bytes.as_bytes(), Content::Delivered, Replay::Identical)
}

#[test]
fn a_file_and_the_directories_on_its_way_are_private() {
    let place = Place::new();
    let mut files = place.files(None);
    assert_eq!(write(&mut files, "a/b/c", "x").unwrap(), Written::New);
    assert_eq!(write(&mut files, "a/b/empty", "").unwrap(), Written::New);
    assert_eq!(place.read("a/b/c"), "x");
    let mode = |at: &str| fs::metadata(place.at(at)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode("a"), mode("a/b"), mode("a/b/c")], [0o700, 0o700, 0o600]);
}

#[test]
fn a_file_in_the_home_of_an_attempt_is_written_below_it() {
    let place = Place::new();
    let attempt = place.root.create_attempt(&crate::support::key("a-1")).unwrap();
    let home = attempt.create_home().unwrap();
    let mut files = HomeFiles::of(&place.root, attempt.open_home().unwrap(), None).unwrap();
    write(&mut files, "a/b", "x").unwrap();
    assert_eq!(fs::read(home.join("a/b")).unwrap(), b"x");
}

#[test]
fn what_is_there_is_left_alone() {
    let place = Place::new();
    fs::write(place.at("f"), "theirs").unwrap();
    fs::create_dir(place.at("d")).unwrap();
    symlink(place.scratch.join("outside/file"), place.at("l")).unwrap();
    symlink(place.scratch.join("outside/none"), place.at("dangling")).unwrap();
    let mut files = place.files(None);
    for name in ["f", "d", "l", "dangling"] {
        let refused = write(&mut files, name, "x").unwrap_err();
        assert!(matches!(refused, WriteProtectedError::AlreadyExists), "{name}: {refused:?}");
    }
    assert_eq!(place.read("f"), "theirs");
    place.outside_is_untouched();
}

#[test]
fn a_replay_accepts_the_same_bytes_and_nothing_else() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    fs::write(place.at("d/f"), "same").unwrap();
    let before = fs::metadata(place.at("d/f")).unwrap();
    let mut files = place.files(None);
    assert_eq!(replay(&mut files, "d/f", "same").unwrap(), Written::Identical);
    let after = fs::metadata(place.at("d/f")).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    let refused = replay(&mut files, "d/f", "other").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Differs), "{refused:?}");
    assert_eq!(replay(&mut files, "new", "x").unwrap(), Written::New);
}

#[test]
fn a_replay_compares_no_link_and_no_large_file() {
    let place = Place::new();
    symlink(place.scratch.join("outside/file"), place.at("l")).unwrap();
    fs::write(place.at("large"), "x".repeat(16_385)).unwrap();
    let mut files = place.files(None);
    let refused = replay(&mut files, "l", "theirs").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Compare(_)), "{refused:?}");
    let refused = files
        .write_protected(
            &path("large"),
            "x".repeat(16_385).as_bytes(),
            Content::Composed,
            Replay::Identical,
        )
        .unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Differs), "{refused:?}");
}

#[test]
fn a_directory_that_this_start_did_not_make_is_not_used() {
    let place = Place::new();
    fs::create_dir_all(place.at("a/b")).unwrap();
    let mut files = place.files(None);
    for at in ["a/f", "a/b/f", "a/c/f"] {
        let refused = write(&mut files, at, "x").unwrap_err();
        let expected = matches!(refused, WriteProtectedError::Parent(ParentError::NotMadeHere));
        assert!(expected, "{at}: {refused:?}");
    }
    assert_eq!(place.listing(), []);
    // What one start made is another one's no more.
    write(&mut files, "mine/f", "x").unwrap();
    write(&mut files, "mine/g", "x").unwrap();
    write(&mut place.files(None), "mine/h", "x").unwrap_err();
}

#[test]
fn a_link_or_a_file_on_the_way_is_not_followed() {
    let place = Place::new();
    symlink(place.scratch.join("outside"), place.at("l")).unwrap();
    fs::write(place.at("f"), "x").unwrap();
    let mut files = place.files(None);
    for at in ["l/new", "l/deep/new", "f/new"] {
        let refused = write(&mut files, at, "x").unwrap_err();
        let expected = matches!(refused, WriteProtectedError::Parent(ParentError::NotMadeHere));
        assert!(expected, "{at}: {refused:?}");
    }
    place.outside_is_untouched();
}

#[test]
fn a_directory_that_was_swapped_for_a_link_is_not_followed() {
    let place = Place::new();
    let mut files = place.files(None);
    write(&mut files, "a/b/one", "x").unwrap();
    fs::rename(place.at("a"), place.at("old")).unwrap();
    symlink(place.scratch.join("outside"), place.at("a")).unwrap();
    for at in ["a/two", "a/b/two"] {
        let refused = write(&mut files, at, "x").unwrap_err();
        let expected = matches!(refused, WriteProtectedError::Parent(ParentError::Open(_)));
        assert!(expected, "{at}: {refused:?}");
    }
    place.outside_is_untouched();
}

#[test]
fn a_directory_that_was_swapped_for_another_is_not_used() {
    let place = Place::new();
    let mut files = place.files(None);
    write(&mut files, "a/one", "x").unwrap();
    fs::rename(place.at("a"), place.at("old")).unwrap();
    fs::create_dir(place.at("a")).unwrap();
    let refused = write(&mut files, "a/two", "x").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Parent(ParentError::Replaced)), "{refused:?}");
}

#[test]
fn a_file_above_its_bound_is_not_written() {
    let place = Place::new();
    let mut files = place.files(None);
    for (content, bytes_max) in [(Content::Delivered, 16_384), (Content::Composed, 131_072)] {
        let mut write = |at: &str, length: usize| {
            files.write_protected(&path(at), &vec![b'x'; length], content, Replay::Refused)
        };
        write(&format!("{bytes_max}"), bytes_max).unwrap();
        let refused = write("more", bytes_max + 1).unwrap_err();
        assert!(matches!(refused, WriteProtectedError::TooLarge { .. }), "{refused:?}");
        assert!(refused.to_string().contains(&bytes_max.to_string()), "{refused}");
    }
    assert!(!place.at("more").exists());
}

#[test]
fn what_belongs_to_the_login_is_not_written_as_configuration() {
    let place = Place::new();
    let given = Given::required("{}");
    given.within(&place, |files, _| {
        let below = [LOGIN_MARKER, LOGIN, BASE].map(|reserved| format!("{reserved}/x"));
        let more = [LOGIN_MARKER, LOGIN, BASE, ".codex", ".note.json"].map(str::to_owned);
        for at in below.iter().chain(&more) {
            let refused = write(files, at, "x").unwrap_err();
            assert!(matches!(refused, WriteProtectedError::Overlaps), "{at}: {refused:?}");
        }
        write(files, ".codex/auth.json.x", "x").unwrap();
    });
    // The marker is kept free without any login.
    let refused = write(&mut place.files(None), LOGIN_MARKER, "x").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Overlaps), "{refused:?}");
}

#[test]
fn nothing_is_written_below_a_root_that_others_may_enter() {
    let place = Place::new();
    let mut files = place.files(None);
    let root = place.scratch.join("root");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o750)).unwrap();
    let refused = write(&mut files, "f", "x").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Root(_)), "{refused:?}");
    assert!(!place.at("f").exists());
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    write(&mut files, "f", "x").unwrap();
}

#[test]
fn a_directory_that_may_not_be_written_is_said_so() {
    if placement_testkit::is_root() {
        println!("nothing shown: root may write everywhere; an ordinary user's run shows it");
        return;
    }
    let place = Place::new();
    let mut files = place.files(None);
    fs::set_permissions(place.at(""), fs::Permissions::from_mode(0o500)).unwrap();
    let refused = write(&mut files, "f", "x").unwrap_err();
    assert!(matches!(refused, WriteProtectedError::Create(_)), "{refused:?}");
    let refused = write(&mut files, "d/f", "x").unwrap_err();
    let expected = matches!(refused, WriteProtectedError::Parent(ParentError::Create(_)));
    assert!(expected, "{refused:?}");
}
