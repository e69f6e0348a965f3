//! The temporary directory of an attempt.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use camino::Utf8PathBuf;
use placement_homes::{TemporaryDir, TemporaryDirError};
use placement_paths::Removed;
use placement_testkit::is_root;

use crate::support::{World, proof};

fn base(world: &World) -> Utf8PathBuf {
    let base = world.scratch.join("base");
    fs::create_dir_all(&base).unwrap();
    base
}

fn shared(world: &World) -> Utf8PathBuf {
    base(world).join(format!("pl-{}", rustix::process::geteuid().as_raw()))
}

fn short(world: &World) -> String {
    world.attempt.key().as_str()[..12].to_owned()
}

fn set_mode(path: &Utf8PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The directory had to be put into the attempt's own.
#[track_caller]
fn falls_back(world: &World) {
    let made = TemporaryDir::create(&base(world), &world.attempt).unwrap();
    assert_eq!(made.path(), world.attempt_path().join("tmp"));
    let found = TemporaryDir::open(&world.attempt).unwrap().unwrap();
    assert_eq!(found.path(), made.path());
    assert!(matches!(found.remove(&proof()).unwrap(), Removed::Removed { .. }));
    assert!(TemporaryDir::open(&world.attempt).unwrap().is_none());
}

#[test]
fn it_lies_on_a_short_private_path() {
    let world = World::new();
    let made = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    assert_eq!(made.path(), shared(&world).join(short(&world)));
    for path in [shared(&world), made.path().to_owned()] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o700);
    }
}

#[test]
fn two_attempts_share_the_directory_above() {
    let world = World::new();
    let other = world.root.create_attempt(&crate::support::key("a-2")).unwrap();
    let first = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    let second = TemporaryDir::create(&base(&world), &other).unwrap();
    assert_eq!(first.path().parent(), second.path().parent());
    first.remove(&proof()).unwrap();
    assert!(second.path().exists());
}

#[test]
fn it_is_found_again_without_its_base_and_removed() {
    let world = World::new();
    let made = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    fs::create_dir(made.path().join("closed")).unwrap();
    set_mode(&made.path().to_owned(), 0o000);
    let found = TemporaryDir::open(&world.attempt).unwrap().unwrap();
    assert_eq!(found.path(), made.path());
    assert_eq!(found.remove(&proof()).unwrap(), Removed::Removed { entries: 2 });
    assert!(TemporaryDir::open(&world.attempt).unwrap().is_none());
    assert_eq!(found.remove(&proof()).unwrap(), Removed::AlreadyGone);
}

#[test]
fn another_directory_under_the_path_of_its_base_is_not_searched() {
    let world = World::new();
    let made = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    fs::rename(base(&world), world.scratch.join("moved")).unwrap();
    // It has everything that the moved one has, and is not it.
    fs::create_dir_all(shared(&world).join(short(&world))).unwrap();
    assert!(TemporaryDir::open(&world.attempt).unwrap().is_none());
    fs::rename(base(&world), world.scratch.join("other")).unwrap();
    fs::rename(world.scratch.join("moved"), base(&world)).unwrap();
    let found = TemporaryDir::open(&world.attempt).unwrap().unwrap();
    assert_eq!(found.path(), made.path());
}

#[test]
fn a_note_of_an_earlier_version_names_the_base_alone() {
    let world = World::new();
    let made = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    fs::write(world.attempt_path().join("tmp.base"), base(&world).as_str()).unwrap();
    assert_eq!(TemporaryDir::open(&world.attempt).unwrap().unwrap().path(), made.path());
}

#[test]
fn a_note_that_a_crash_left_empty_says_that_nothing_was_made() {
    let world = World::new();
    fs::write(world.attempt_path().join("tmp.base"), "").unwrap();
    assert!(TemporaryDir::open(&world.attempt).unwrap().is_none());
}

#[test]
fn it_is_made_once() {
    let world = World::new();
    let made = TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    let again = TemporaryDir::create(&base(&world), &world.attempt);
    assert!(matches!(again, Err(TemporaryDirError::AlreadyExists)));
    assert!(made.path().exists());
}

#[test]
fn a_planted_link_is_not_followed() {
    let world = World::new();
    let theirs = world.scratch.join("theirs");
    fs::create_dir(&theirs).unwrap();
    set_mode(&theirs, 0o700);
    symlink(&theirs, shared(&world)).unwrap();
    falls_back(&world);
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
}

#[test]
fn a_planted_file_is_passed_over() {
    let world = World::new();
    fs::write(shared(&world), b"").unwrap();
    falls_back(&world);
}

#[test]
fn a_directory_open_to_others_is_passed_over() {
    let world = World::new();
    fs::create_dir(shared(&world)).unwrap();
    set_mode(&shared(&world), 0o755);
    falls_back(&world);
    assert_eq!(fs::read_dir(shared(&world)).unwrap().count(), 0);
}

#[test]
fn somebody_elses_directory_is_passed_over() {
    if !is_root() {
        println!("nothing shown: only root can give a directory away");
        return;
    }
    let world = World::new();
    fs::create_dir(shared(&world)).unwrap();
    set_mode(&shared(&world), 0o700);
    chown(shared(&world), Some(65534), None).unwrap();
    falls_back(&world);
}

#[test]
fn a_taken_name_is_passed_over_and_left_alone() {
    let world = World::new();
    fs::create_dir(shared(&world)).unwrap();
    set_mode(&shared(&world), 0o700);
    let taken = shared(&world).join(short(&world));
    fs::create_dir(&taken).unwrap();
    falls_back(&world);
    assert!(taken.exists());
}

#[test]
fn a_missing_base_is_passed_over() {
    let world = World::new();
    let made = TemporaryDir::create(&world.scratch.join("none"), &world.attempt).unwrap();
    assert_eq!(made.path(), world.attempt_path().join("tmp"));
    assert!(!world.scratch.join("none").exists());
}

#[test]
fn a_base_that_is_a_link_gives_a_physical_path() {
    let world = World::new();
    let link = world.scratch.join("link");
    symlink(base(&world), &link).unwrap();
    let made = TemporaryDir::create(&link, &world.attempt).unwrap();
    assert_eq!(made.path(), shared(&world).join(short(&world)));
}

#[test]
fn a_link_planted_later_leads_no_removal_elsewhere() {
    let world = World::new();
    TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    let theirs = world.scratch.join("theirs");
    let bait = theirs.join(short(&world));
    fs::create_dir_all(&bait).unwrap();
    fs::rename(shared(&world), world.scratch.join("moved")).unwrap();
    symlink(&theirs, shared(&world)).unwrap();
    assert!(TemporaryDir::open(&world.attempt).unwrap().is_none());
    assert!(bait.exists());
}

#[test]
fn a_child_that_opened_the_shared_directory_to_all_does_not_stop_the_removal() {
    let world = World::new();
    TemporaryDir::create(&base(&world), &world.attempt).unwrap();
    set_mode(&shared(&world), 0o777);
    let found = TemporaryDir::open(&world.attempt).unwrap().unwrap();
    found.remove(&proof()).unwrap();
    assert!(!found.path().exists());
}
