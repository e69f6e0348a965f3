//! An attempt's home, sockets and exit record.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use placement_homes::{CONTROL_SOCKET, CreateHomeError, DATA_SOCKET};
use placement_paths::{Existence, ReadError, Removed};

use crate::support::{World, proof};

#[test]
fn a_home_is_empty_private_and_made_once() {
    let world = World::new();
    let home = world.attempt.create_home().unwrap();
    assert_eq!(home, world.attempt_path().join("home"));
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    assert!(matches!(world.attempt.create_home(), Err(CreateHomeError::AlreadyExists)));
}

#[test]
fn removing_a_home_keeps_the_exit_record_and_what_links_lead_to() {
    let world = World::new();
    let home = world.attempt.create_home().unwrap();
    let outside = world.scratch.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), b"x").unwrap();
    symlink(&outside, home.join("link")).unwrap();
    fs::create_dir(home.join("closed")).unwrap();
    fs::write(home.join("closed/file"), b"x").unwrap();
    fs::set_permissions(home.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    world.attempt.write_exit_record(b"{}").unwrap();
    let removed = world.attempt.remove_home(&proof()).unwrap();
    assert_eq!(removed, Removed::Removed { entries: 4 });
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"x");
    assert_eq!(world.attempt.read_exit_record(10).unwrap().unwrap(), b"{}");
    assert_eq!(world.attempt.remove_home(&proof()).unwrap(), Removed::AlreadyGone);
}

#[test]
fn a_child_that_opened_its_attempt_directory_to_all_does_not_stop_the_removal() {
    let world = World::new();
    world.attempt.create_home().unwrap();
    fs::set_permissions(world.attempt_path(), fs::Permissions::from_mode(0o777)).unwrap();
    let attempt = world.root.attempt(world.attempt.key()).unwrap().unwrap();
    attempt.remove_home(&proof()).unwrap();
    assert_eq!(attempt.dir().exists("home"), Existence::Absent);
}

#[test]
fn sockets_are_removed_and_missing_ones_are_no_error() {
    let world = World::new();
    let _control = UnixListener::bind(world.attempt_path().join(CONTROL_SOCKET)).unwrap();
    world.attempt.remove_sockets().unwrap();
    assert_eq!(world.attempt.dir().exists(CONTROL_SOCKET), Existence::Absent);
    assert_eq!(world.attempt.dir().exists(DATA_SOCKET), Existence::Absent);
    world.attempt.remove_sockets().unwrap();
}

#[test]
fn an_exit_record_is_replaced_and_read_within_its_bound() {
    let world = World::new();
    assert_eq!(world.attempt.read_exit_record(10).unwrap(), None);
    world.attempt.write_exit_record(b"one").unwrap();
    world.attempt.write_exit_record(b"three").unwrap();
    assert_eq!(world.attempt.read_exit_record(5).unwrap().unwrap(), b"three");
    let refused = world.attempt.read_exit_record(4);
    assert!(matches!(refused, Err(ReadError::TooLarge { .. })));
}

#[test]
fn an_exit_record_that_is_a_link_is_not_followed() {
    let world = World::new();
    fs::write(world.scratch.join("outside"), b"theirs").unwrap();
    symlink(world.scratch.join("outside"), world.attempt_path().join("exit.json")).unwrap();
    world.attempt.read_exit_record(10).unwrap_err();
    world.attempt.write_exit_record(b"ours").unwrap_err();
    assert_eq!(fs::read(world.scratch.join("outside")).unwrap(), b"theirs");
}
