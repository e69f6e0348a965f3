//! The lock that proves a runner alive.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use placement_homes::{AliveError, HomeKey, Root, RunnerAlive};

use crate::support::World;

const ROOT: &str = "PLACEMENT_TEST_ROOT";
const KEY: &str = "PLACEMENT_TEST_KEY";

#[test]
fn no_file_proves_nothing() {
    assert_eq!(World::new().attempt.observe_alive(), RunnerAlive::Missing);
}

#[test]
fn a_held_lock_is_seen_and_its_release_is_seen() {
    let world = World::new();
    let lock = world.attempt.lock_alive().unwrap();
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Held);
    drop(lock);
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Released);
}

#[test]
fn an_attempt_has_one_runner() {
    let world = World::new();
    let lock = world.attempt.lock_alive().unwrap();
    assert!(matches!(world.attempt.lock_alive(), Err(AliveError::AlreadyExists)));
    drop(lock);
    assert!(matches!(world.attempt.lock_alive(), Err(AliveError::AlreadyExists)));
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Released);
}

#[test]
fn observers_do_not_take_each_other_for_a_runner() {
    let world = World::new();
    drop(world.attempt.lock_alive().unwrap());
    let observer = fs::File::open(world.attempt_path().join("alive")).unwrap();
    observer.lock_shared().unwrap();
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Released);
}

#[test]
fn a_link_or_a_directory_in_its_place_is_unknown() {
    let world = World::new();
    std::os::unix::fs::symlink("nowhere", world.attempt_path().join("alive")).unwrap();
    assert!(matches!(world.attempt.observe_alive(), RunnerAlive::Unknown(_)));
    fs::remove_file(world.attempt_path().join("alive")).unwrap();
    fs::create_dir(world.attempt_path().join("alive")).unwrap();
    assert!(matches!(world.attempt.observe_alive(), RunnerAlive::Unknown(_)));
}

#[test]
fn a_killed_process_releases_its_lock() {
    let world = World::new();
    #[expect(clippy::disallowed_methods, reason = "the lock must be another process's")]
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "alive::holds_the_lock_for_another_process", "--nocapture"])
        .env(ROOT, world.root.path())
        .env(KEY, world.attempt.key().as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let held = output.lines().any(|line| line.unwrap().contains("the lock is held"));
    assert!(held);
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Held);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.attempt.observe_alive(), RunnerAlive::Released);
}

/// The other process of the test above; without its environment there is nothing to do.
#[test]
fn holds_the_lock_for_another_process() {
    #[expect(clippy::disallowed_methods, reason = "a test hands on to its own second process")]
    let (Some(root), Some(key)) = (std::env::var_os(ROOT), std::env::var_os(KEY)) else { return };
    let root = Root::open(root).unwrap();
    let key = HomeKey::parse(key.to_str().unwrap()).unwrap();
    let _lock = root.attempt(&key).unwrap().unwrap().lock_alive().unwrap();
    println!("the lock is held");
    std::io::stdout().flush().unwrap();
    // Ends with the killing, or with the other process's end.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
