//! The retained home of a session.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::Utf8PathBuf;
use placement_contract::{OwnerId, SessionRef};
use placement_homes::{SessionHomeError, SessionKey};
use placement_paths::{OpenError, PrivateError};
use placement_testkit::is_root;

use crate::support::World;

fn session(owner: &str, name: &str) -> SessionKey {
    SessionKey::of(&OwnerId::parse(owner).unwrap(), &SessionRef::parse(name).unwrap())
}

fn set_mode(path: &Utf8PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(directory: &Utf8PathBuf) -> Vec<String> {
    let entries = directory.read_dir_utf8().unwrap().map(Result::unwrap);
    entries.map(|entry| entry.file_name().to_owned()).collect()
}

#[test]
fn it_is_made_on_demand_with_mode_0700_and_found_again_as_it_was_left() {
    let world = World::new();
    let key = session("ci", "s");
    assert!(world.root.find_session_home(&key).unwrap().is_none());
    assert!(!world.root.path().join("sessions").exists(), "a look makes nothing");
    let home = world.root.session_home(&key).unwrap();
    assert!(home.is_new());
    assert_eq!(home.path(), world.root.session_home_path(&key));
    for directory in home.path().ancestors().take(3) {
        assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o7777, 0o700);
    }
    fs::write(home.path().join("marker"), "one").unwrap();
    let again = world.root.session_home(&key).unwrap();
    assert!(!again.is_new());
    assert_eq!(fs::read_to_string(again.path().join("marker")).unwrap(), "one");
    assert!(world.root.find_session_home(&key).unwrap().is_some());
}

#[test]
fn two_owners_of_one_name_have_different_homes() {
    let world = World::new();
    let one = world.root.session_home(&session("one", "s")).unwrap();
    let other = world.root.session_home(&session("two", "s")).unwrap();
    assert_ne!(one.path(), other.path());
    assert!(other.is_new());
}

#[test]
fn a_link_on_the_way_is_refused_and_nothing_is_made_behind_it() {
    for depth in 1..=3 {
        let world = World::new();
        let key = session("ci", "s");
        let home = world.root.session_home_path(&key);
        let planted = home.ancestors().nth(3 - depth).unwrap();
        let outside = world.scratch.join("outside");
        fs::create_dir_all(outside.join("home")).unwrap();
        set_mode(&outside, 0o700);
        set_mode(&outside.join("home"), 0o700);
        fs::create_dir_all(planted.parent().unwrap()).unwrap();
        for made in planted.parent().unwrap().ancestors().take(depth - 1) {
            set_mode(&made.to_owned(), 0o700);
        }
        symlink(&outside, planted).unwrap();
        for refused in [
            world.root.find_session_home(&key).map(|_| ()),
            world.root.session_home(&key).map(|_| ()),
        ] {
            let is_link =
                matches!(refused, Err(SessionHomeError::Open(OpenError::SymbolicLink { .. })));
            assert!(is_link, "at depth {depth}: {refused:?}");
        }
        assert_eq!(names(&outside), ["home"]);
        assert_eq!(names(&outside.join("home")), [""; 0]);
    }
}

#[test]
fn something_else_than_a_directory_is_refused_and_left_alone() {
    let world = World::new();
    let key = session("ci", "s");
    let home = world.root.session_home(&key).unwrap().path().to_owned();
    fs::remove_dir(&home).unwrap();
    fs::write(&home, "kept").unwrap();
    let refused = world.root.session_home(&key).unwrap_err();
    let is_named = matches!(refused, SessionHomeError::Open(OpenError::NotADirectory { .. }));
    assert!(is_named, "{refused:?}");
    assert_eq!(fs::read_to_string(&home).unwrap(), "kept");
}

#[test]
fn a_wider_mode_is_refused_and_left_as_it_is() {
    let world = World::new();
    let key = session("ci", "s");
    let home = world.root.session_home(&key).unwrap().path().to_owned();
    for up in 0..3 {
        let wide = home.ancestors().nth(up).unwrap().to_owned();
        for mode in [0o701, 0o710, 0o750, 0o755] {
            set_mode(&wide, mode);
            let refused = world.root.session_home(&key).unwrap_err();
            let SessionHomeError::Private(PrivateError::NotPrivate { mode: seen, .. }) = refused
            else {
                panic!("{refused:?}");
            };
            assert_eq!(seen, mode);
            assert_eq!(fs::metadata(&wide).unwrap().permissions().mode() & 0o7777, mode);
        }
        set_mode(&wide, 0o700);
    }
    assert!(world.root.session_home(&key).is_ok());
}

#[test]
fn somebody_elses_directory_is_refused() {
    if !is_root() {
        eprintln!("only root can give a directory away; nothing is shown here");
        return;
    }
    let world = World::new();
    let key = session("ci", "s");
    let home = world.root.session_home(&key).unwrap().path().to_owned();
    std::os::unix::fs::chown(&home, Some(12_345), None).unwrap();
    let refused = world.root.session_home(&key).unwrap_err();
    let is_named =
        matches!(refused, SessionHomeError::Private(PrivateError::NotOwned { owner: 12_345, .. }));
    assert!(is_named, "{refused:?}");
}
