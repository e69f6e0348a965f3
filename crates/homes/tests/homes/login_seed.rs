//! What a broker gives, and an attempt's home that is seeded with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use placement_homes::{
    HomeFiles, HomeFilesError, LOGIN_MARKER, LoginSeed, LoginSeedError, ParentError, SeedError,
};
use serde_json::json;

use crate::files_support::{BASE, CANARY, Given, LOGIN, Place, holds_no_canary};

fn names(place: &Place) -> Vec<String> {
    place.listing().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn an_attempts_home_gets_the_login_and_what_comes_with_it_and_no_marker() {
    let place = Place::new();
    Given::required(CANARY).within(&place, HomeFiles::seed_attempt).unwrap();
    assert_eq!(names(&place), [LOGIN, BASE, ".note.json"]);
    assert_eq!(place.read(LOGIN), CANARY);
    assert_eq!(place.read(BASE), "model = \"m\"\n");
    let mode = |at: &str| fs::metadata(place.at(at)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode(".codex"), mode(LOGIN), mode(BASE)], [0o700, 0o600, 0o600]);
}

#[test]
fn a_missing_login_leaves_its_place_free_and_brings_only_what_says_so() {
    let place = Place::new();
    Given::optional(None).within(&place, HomeFiles::seed_attempt).unwrap();
    assert_eq!(names(&place), [BASE]);
}

#[test]
fn nothing_that_is_there_is_taken_over() {
    for there in [LOGIN, BASE] {
        let place = Place::new();
        fs::create_dir(place.at(".codex")).unwrap();
        fs::write(place.at(there), "theirs").unwrap();
        let refused = Given::required(CANARY).within(&place, HomeFiles::seed_attempt);
        let refused = refused.unwrap_err();
        assert!(matches!(refused, SeedError::Parent(ParentError::NotMadeHere)), "{refused:?}");
        holds_no_canary(&refused);
        assert_eq!(names(&place), [there]);
    }
    let place = Place::new();
    symlink(place.scratch.join("outside/new"), place.at(".note.json")).unwrap();
    let refused = Given::required(CANARY).within(&place, HomeFiles::seed_attempt);
    assert!(matches!(refused, Err(SeedError::AlreadyExists)), "{refused:?}");
    place.outside_is_untouched();
}

#[test]
fn nothing_is_seeded_below_a_root_that_others_may_enter() {
    let place = Place::new();
    let root = place.scratch.join("root");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o750)).unwrap();
    Given::required(CANARY).within(&place, |files, seed| {
        assert!(matches!(files.seed_attempt(seed), Err(SeedError::Root(_))));
        let policy = placement_homes::LoginPolicy::SeedOnce;
        assert!(matches!(files.seed_retained(seed, policy), Err(SeedError::Root(_))));
    });
    assert_eq!(place.listing(), []);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_home_is_seeded_with_the_login_that_it_was_prepared_for() {
    let place = Place::new();
    let other = Given::required(CANARY).with("/format/file/path", json!("other/auth.json"));
    let credential = other.credential();
    let other = LoginSeed::of(&credential, other.bytes()).unwrap();
    let refused = Given::required(CANARY).within(&place, |files, _| files.seed_attempt(&other));
    assert!(matches!(refused, Err(SeedError::OtherLogin)), "{refused:?}");
    assert!(matches!(place.files(None).seed_attempt(&other), Err(SeedError::OtherLogin)));
    assert_eq!(place.listing(), []);
}

#[test]
fn a_login_does_not_stand_where_the_marker_does() {
    let place = Place::new();
    let below = format!("{LOGIN_MARKER}/x");
    for pointer in ["/format/file/path", "/format/file/initialize/0/path"] {
        for at in [LOGIN_MARKER, &below] {
            let credential = Given::required(CANARY).with(pointer, json!(at)).credential();
            let home = place.files(None).home().try_clone().unwrap();
            let refused = HomeFiles::of(&place.root, home, credential.format.file.as_ref());
            assert!(matches!(refused, Err(HomeFilesError::OverlapsMarker)), "{refused:?}");
        }
    }
}

#[test]
fn what_is_no_login_is_refused() {
    let empty = Given::required("");
    let missing = Given::optional(None).with("/optional", json!(false));
    let large = Given::required(&"x".repeat(65_537));
    let not_given = Given::optional(None).with("/present", json!(true));
    let not_announced = Given::optional(Some(CANARY)).with("/present", json!(false));
    for (given, expected) in [
        (empty, LoginSeedError::Empty),
        (missing, LoginSeedError::Missing),
        (large, LoginSeedError::TooLarge),
        (not_given, LoginSeedError::Contradicts),
        (not_announced, LoginSeedError::Contradicts),
    ] {
        let credential = given.credential();
        let refused = LoginSeed::of(&credential, given.bytes()).unwrap_err();
        assert_eq!(refused, expected);
    }
    let largest = Given::required(&"x".repeat(65_536));
    assert!(LoginSeed::of(&largest.credential(), largest.bytes()).is_ok());
}

#[test]
fn a_variable_is_no_login() {
    let given = Given::required(CANARY);
    let mut credential = given.credential();
    credential.file = None;
    let refused = LoginSeed::of(&credential, given.bytes()).unwrap_err();
    assert_eq!(refused, LoginSeedError::NotAFile);
}

#[test]
fn a_seed_does_not_print_its_login() {
    let given = Given::required(CANARY);
    let credential = given.credential();
    let seed = LoginSeed::of(&credential, given.bytes()).unwrap();
    assert!(!format!("{seed:?}").contains("canary"));
}
