//! Removing all but a receipt, and the file of known digests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use placement_contract::{AttemptState, CleanupState, ExecutionState};
use placement_paths::Removed;
use placement_transitions::{RunnerFacts, Settled, prove_settled};

use crate::support::{STDOUT, World, key, limits};

fn settled() -> Settled {
    let state = AttemptState { execution: ExecutionState::Exited, cleanup: CleanupState::Complete };
    prove_settled(state, RunnerFacts::Gone).unwrap()
}

#[test]
fn a_settled_attempt_goes_with_all_that_it_left_and_its_neighbour_stays() {
    let world = World::new();
    let neighbour = world.root.create_attempt(&key("a-2")).unwrap();
    neighbour.create_home().unwrap();
    let home = world.attempt.create_home().unwrap();
    let outside = world.scratch.join("outside");
    fs::write(&outside, b"kept").unwrap();
    symlink(&outside, home.join("link")).unwrap();
    world.writer(limits(1 << 20, 1 << 20)).append(STDOUT, b"said").unwrap();
    drop(world.attempt.lock_alive().unwrap());
    let removed = world.root.remove_attempt(world.attempt.key(), &settled()).unwrap();
    assert!(matches!(removed, Removed::Removed { entries } if entries > 4), "{removed:?}");
    assert!(!world.attempt_path().exists());
    assert_eq!(fs::read(outside).unwrap(), b"kept");
    assert!(world.root.attempt(&key("a-2")).unwrap().is_some());
}

#[test]
fn removing_an_attempt_again_finds_nothing() {
    let world = World::new();
    world.root.remove_attempt(world.attempt.key(), &settled()).unwrap();
    for key in [world.attempt.key().clone(), key("never")] {
        assert_eq!(world.root.remove_attempt(&key, &settled()).unwrap(), Removed::AlreadyGone);
    }
    fs::remove_dir(world.root.path().join("attempts")).unwrap();
    assert_eq!(world.root.remove_attempt(&key("a"), &settled()).unwrap(), Removed::AlreadyGone);
}

#[test]
fn a_link_in_the_place_of_an_attempt_is_removed_and_not_followed() {
    let world = World::new();
    let outside = world.scratch.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), b"kept").unwrap();
    let stranger = key("stranger");
    symlink(&outside, world.root.path().join("attempts").join(stranger.as_str())).unwrap();
    world.root.remove_attempt(&stranger, &settled()).unwrap();
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"kept");
}

#[test]
fn the_file_of_digests_is_private_and_one() {
    use std::os::unix::fs::FileExt;
    let world = World::new();
    let first = world.root.digests().unwrap();
    first.write_all_at(b"known", 100).unwrap();
    let mut seen = [0; 5];
    world.root.digests().unwrap().read_exact_at(&mut seen, 100).unwrap();
    assert_eq!(&seen, b"known");
    let mode = fs::metadata(world.root.path().join("digests")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[test]
fn a_link_in_the_place_of_the_digests_is_not_followed() {
    let world = World::new();
    let outside = world.scratch.join("outside");
    fs::write(&outside, b"theirs").unwrap();
    symlink(&outside, world.root.path().join("digests")).unwrap();
    assert!(world.root.digests().is_none());
    assert_eq!(fs::read(outside).unwrap(), b"theirs");
}
