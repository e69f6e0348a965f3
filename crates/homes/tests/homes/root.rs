//! The private root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use placement_homes::{CreateAttemptError, ReopenError, Root, RootError};
use placement_testkit::{TempRoot, is_root};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::support::{World, key};

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<std::path::Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn it_is_created_private_with_its_parents_and_opened_again() {
    let scratch = TempRoot::new();
    let root = Root::open(scratch.join("a/root")).unwrap();
    assert_eq!(mode(scratch.join("a")), 0o700);
    assert_eq!(mode(scratch.join("a/root")), 0o700);
    assert_eq!(Root::open(scratch.join("a/root")).unwrap().path(), root.path());
}

#[test]
fn another_directory_under_its_path_is_not_the_root_and_none_is_made() {
    let scratch = TempRoot::new();
    let path = scratch.join("root");
    let id = Root::open(&path).unwrap().id().unwrap();
    assert_eq!(Root::reopen(&path, id).unwrap().path(), path);
    fs::rename(&path, scratch.join("moved")).unwrap();
    assert!(matches!(Root::reopen(&path, id), Err(ReopenError::Private(_))));
    assert!(!path.exists(), "it is opened and not made");
    fs::create_dir(scratch.join("other")).unwrap();
    set_mode(scratch.join("other"), 0o700);
    symlink("other", &path).unwrap();
    assert!(matches!(Root::reopen(&path, id), Err(ReopenError::Replaced)));
}

#[test]
fn its_path_is_physical() {
    let scratch = TempRoot::new();
    fs::create_dir(scratch.join("real")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    let root = Root::open(scratch.join("link/root")).unwrap();
    assert_eq!(root.path(), scratch.join("real/root"));
}

#[test]
fn a_wider_mode_is_refused_and_left_as_it_is() {
    let scratch = TempRoot::new();
    let path = scratch.join("root");
    fs::create_dir(&path).unwrap();
    for wide in [0o701, 0o710, 0o740, 0o750, 0o755, 0o777] {
        set_mode(&path, wide);
        let Err(RootError::NotPrivate { mode: seen }) = Root::open(&path) else {
            panic!("mode {wide:o} must be refused");
        };
        assert_eq!((seen, mode(&path)), (wide, wide));
    }
}

#[test]
fn the_refusal_says_what_is_wrong() {
    let scratch = TempRoot::new();
    fs::create_dir(scratch.join("root")).unwrap();
    set_mode(scratch.join("root"), 0o755);
    let error = Root::open(scratch.join("root")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the root directory is open to others (mode 0755); it must be 0700"
    );
}

#[test]
fn somebody_elses_directory_is_refused() {
    let scratch = TempRoot::new();
    let path = if is_root() {
        fs::create_dir(scratch.join("root")).unwrap();
        set_mode(scratch.join("root"), 0o700);
        std::os::unix::fs::chown(scratch.join("root"), Some(65534), None).unwrap();
        scratch.join("root")
    } else {
        "/".into()
    };
    assert!(matches!(Root::open(path), Err(RootError::NotOwned { .. })));
}

#[test]
fn a_file_is_refused() {
    let scratch = TempRoot::new();
    fs::write(scratch.join("file"), b"").unwrap();
    assert!(matches!(Root::open(scratch.join("file")), Err(RootError::NotADirectory)));
    assert!(matches!(Root::open(scratch.join("file/root")), Err(RootError::NotADirectory)));
}

#[test]
fn a_read_only_file_system_is_refused_and_nothing_is_created() {
    struct Mounted(camino::Utf8PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            rustix::mount::unmount(self.0.as_str(), UnmountFlags::DETACH).ok();
        }
    }
    let scratch = TempRoot::new();
    let path = scratch.join("root");
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o700);
    if let Err(errno) = rustix::mount::mount_bind(path.as_str(), path.as_str()) {
        println!("nothing shown: this user may not mount ({errno})");
        return;
    }
    let mounted = Mounted(path.clone());
    let read_only = MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount(path.as_str(), read_only, c"").unwrap();
    assert!(matches!(Root::open(&path), Err(RootError::ReadOnly)));
    assert!(matches!(Root::open(path.join("below")), Err(RootError::ReadOnly)));
    drop(mounted);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn an_attempt_is_created_once() {
    let world = World::new();
    assert_eq!(mode(world.attempt_path()), 0o700);
    assert_eq!(mode(world.root.path().join("attempts")), 0o700);
    let again = world.root.create_attempt(world.attempt.key());
    assert!(matches!(again, Err(CreateAttemptError::AlreadyExists)));
}

#[test]
fn an_attempt_is_found_again_and_a_missing_one_is_none() {
    let world = World::new();
    let found = world.root.attempt(world.attempt.key()).unwrap().unwrap();
    assert_eq!(found.dir().facts().unwrap(), world.attempt.dir().facts().unwrap());
    assert!(world.root.attempt(&key("other")).unwrap().is_none());
}

#[test]
fn a_link_in_place_of_an_attempt_is_not_followed() {
    let world = World::new();
    let other = key("other");
    symlink(world.attempt_path(), world.root.path().join("attempts").join(other.as_str())).unwrap();
    world.root.attempt(&other).unwrap_err();
    let created = world.root.create_attempt(&other);
    assert!(matches!(created, Err(CreateAttemptError::AlreadyExists)));
}

#[test]
fn a_directory_of_attempts_that_others_may_enter_is_refused() {
    let world = World::new();
    set_mode(world.root.path().join("attempts"), 0o755);
    let created = world.root.create_attempt(&key("other"));
    assert!(matches!(created, Err(CreateAttemptError::Attempts(_))));
    assert!(world.root.attempt(&key("other")).unwrap().is_none());
}
