//! A retained home: seeded once, kept or refreshed after, and refused where nobody can tell.

use std::fs;
use std::os::unix::fs::symlink;

use placement_homes::LoginPolicy::{RefreshEachActivation, SeedOnce};
use placement_homes::{LOGIN_MARKER, LoginPolicy, ParentError, RetainedSeed, SeedError, Seeded};
use serde_json::json;

use crate::files_support::{BASE, CANARY, Given, LOGIN, Place, holds_no_canary};

/// One start with a login.
fn start(place: &Place, given: &Given, policy: LoginPolicy) -> Result<Seeded, SeedError> {
    let outcome = given.within(place, |files, seed| files.seed_retained(seed, policy));
    if let Err(error) = &outcome {
        holds_no_canary(error);
    }
    outcome
}

fn look(place: &Place, given: &Given) -> Result<RetainedSeed, SeedError> {
    given.within(place, |files, seed| files.look_retained(seed))
}

/// A home that was seeded by a login with this content.
fn seeded(bytes: &str) -> Place {
    let place = Place::new();
    assert_eq!(start(&place, &Given::required(bytes), SeedOnce).unwrap(), Seeded::First);
    place
}

#[test]
fn the_first_seed_writes_everything_and_says_by_what() {
    let place = Place::new();
    assert_eq!(look(&place, &Given::required(CANARY)).unwrap(), RetainedSeed::None);
    let place = seeded(CANARY);
    let marker = "{\"definition_id\":\"d-1\",\"definition_revision\":3,\"provider\":\"codex\"}";
    let expected = [
        (LOGIN_MARKER, marker),
        (LOGIN, CANARY),
        (BASE, "model = \"m\"\n"),
        (".note.json", "{\"seen\":true}"),
    ];
    assert_eq!(place.listing(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(look(&place, &Given::required(CANARY)).unwrap(), RetainedSeed::Whole);
}

#[test]
fn what_the_program_refreshed_stays() {
    let place = seeded("{}");
    // As the programs do it: a new file and a rename.
    fs::write(place.at(".codex/new"), "{\"refreshed\":1}").unwrap();
    fs::rename(place.at(".codex/new"), place.at(LOGIN)).unwrap();
    fs::write(place.at(".note.json"), "edited").unwrap();
    for later in ["{}", CANARY, "not JSON"] {
        assert_eq!(start(&place, &Given::required(later), SeedOnce).unwrap(), Seeded::Kept);
    }
    assert_eq!(place.read(LOGIN), "{\"refreshed\":1}");
    assert_eq!(place.read(".note.json"), "edited");
}

#[test]
fn another_identity_is_refused_and_changes_nothing() {
    let place = seeded(CANARY);
    let before = place.listing();
    for policy in [SeedOnce, RefreshEachActivation] {
        for (pointer, value) in [
            ("/provider", json!("other")),
            ("/definition_id", json!("d-2")),
            ("/definition_revision", json!(4)),
            ("/optional", json!(true)),
        ] {
            let refused = start(&place, &Given::required("{}").with(pointer, value), policy);
            assert!(matches!(refused, Err(SeedError::SourceChanged)), "{pointer}: {refused:?}");
        }
    }
    assert_eq!(place.listing(), before);
}

#[test]
fn an_optional_login_that_was_never_there_stays_so() {
    let place = Place::new();
    assert_eq!(start(&place, &Given::optional(None), SeedOnce).unwrap(), Seeded::First);
    assert!(place.read(LOGIN_MARKER).contains("\"optional\":true"));
    let before = place.listing();
    assert_eq!(before.len(), 2, "{before:?}");
    let later = Given::optional(Some(CANARY));
    assert_eq!(start(&place, &later, SeedOnce).unwrap(), Seeded::Kept);
    assert_eq!(place.listing(), before);
}

#[test]
fn a_private_sign_in_and_sign_out_stay() {
    let place = Place::new();
    start(&place, &Given::optional(None), SeedOnce).unwrap();
    fs::write(place.at(LOGIN), "signed in").unwrap();
    for later in [Given::optional(None), Given::optional(Some(CANARY))] {
        assert_eq!(start(&place, &later, SeedOnce).unwrap(), Seeded::Kept);
        assert_eq!(place.read(LOGIN), "signed in");
    }
    fs::remove_file(place.at(LOGIN)).unwrap();
    assert_eq!(start(&place, &Given::optional(Some(CANARY)), SeedOnce).unwrap(), Seeded::Kept);
    assert!(!place.at(LOGIN).exists());
}

#[test]
fn a_required_login_that_is_gone_makes_the_home_incomplete() {
    let place = seeded(CANARY);
    fs::remove_file(place.at(LOGIN)).unwrap();
    let refused = start(&place, &Given::required(CANARY), SeedOnce);
    assert!(matches!(refused, Err(SeedError::Incomplete)), "{refused:?}");
    fs::rename(place.at(".codex"), place.at("old")).unwrap();
    let refused = start(&place, &Given::required(CANARY), SeedOnce);
    assert!(matches!(refused, Err(SeedError::Incomplete)), "{refused:?}");
}

#[test]
fn an_interrupted_seed_is_refused_wherever_it_ended() {
    for ended_after in [vec![LOGIN], vec![LOGIN, BASE], vec![BASE], vec![".note.json"]] {
        let place = Place::new();
        fs::create_dir(place.at(".codex")).unwrap();
        for written in &ended_after {
            fs::write(place.at(written), "part").unwrap();
        }
        let before = place.listing();
        for policy in [SeedOnce, RefreshEachActivation] {
            let refused = start(&place, &Given::required(CANARY), policy);
            assert!(matches!(refused, Err(SeedError::Incomplete)), "{ended_after:?}: {refused:?}");
        }
        assert_eq!(place.listing(), before);
    }
    let place = Place::new();
    fs::create_dir(place.at(".codex")).unwrap();
    let refused = start(&place, &Given::required(CANARY), SeedOnce);
    assert!(matches!(refused, Err(SeedError::Parent(ParentError::NotMadeHere))), "{refused:?}");
    assert_eq!(place.listing(), []);
}

#[test]
fn looking_leaves_an_empty_home_that_can_be_seeded_again() {
    let place = Place::new();
    let given = Given::required(CANARY);
    assert_eq!(look(&place, &given).unwrap(), RetainedSeed::None);
    assert!(place.at("").read_dir_utf8().unwrap().next().is_none());
    assert_eq!(start(&place, &given, SeedOnce).unwrap(), Seeded::First);
}

#[test]
fn what_stands_in_the_place_of_the_login_is_not_opened() {
    for policy in [SeedOnce, RefreshEachActivation] {
        for kind in ["link", "pipe", "directory"] {
            let place = seeded(CANARY);
            fs::remove_file(place.at(LOGIN)).unwrap();
            match kind {
                "link" => symlink(place.scratch.join("outside/file"), place.at(LOGIN)).unwrap(),
                "directory" => fs::create_dir(place.at(LOGIN)).unwrap(),
                _ => pipe(&place),
            }
            let refused = start(&place, &Given::required(CANARY), policy);
            assert!(matches!(refused, Err(SeedError::LoginNotAFile)), "{kind}: {refused:?}");
            place.outside_is_untouched();
        }
    }
}

/// A pipe in the place of the login: whoever opens it waits for ever.
fn pipe(place: &Place) {
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let at = place.at(LOGIN);
    rustix::fs::mknodat(rustix::fs::CWD, at.as_std_path(), kind, mode, 0).unwrap();
}

#[test]
fn a_link_on_the_way_to_the_login_is_not_followed() {
    for policy in [SeedOnce, RefreshEachActivation] {
        for given in [Given::optional(Some(CANARY)), Given::optional(None)] {
            let place = Place::new();
            start(&place, &Given::optional(Some("{}")), SeedOnce).unwrap();
            fs::rename(place.at(".codex"), place.at("old")).unwrap();
            fs::write(place.scratch.join("outside/auth.json"), "theirs").unwrap();
            symlink(place.scratch.join("outside"), place.at(".codex")).unwrap();
            let refused = start(&place, &given, policy).unwrap_err();
            let expected =
                matches!(refused, SeedError::Way(_) | SeedError::Parent(ParentError::Open(_)));
            assert!(expected, "{policy:?}: {refused:?}");
            let theirs = place.scratch.join("outside/auth.json");
            assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
            fs::remove_file(theirs).unwrap();
            place.outside_is_untouched();
        }
    }
}

#[test]
fn what_stands_in_the_place_of_the_marker_is_no_marker() {
    let place = seeded(CANARY);
    let marker = place.read(LOGIN_MARKER);
    fs::write(place.scratch.join("outside/marker"), &marker).unwrap();
    fs::remove_file(place.at(LOGIN_MARKER)).unwrap();
    symlink(place.scratch.join("outside/marker"), place.at(LOGIN_MARKER)).unwrap();
    let refused = start(&place, &Given::required(CANARY), SeedOnce);
    assert!(matches!(refused, Err(SeedError::Marker(_))), "{refused:?}");
    fs::remove_file(place.at(LOGIN_MARKER)).unwrap();
    for other in ["", "{}", &marker.replace('3', "4"), &format!("{marker}\n"), &"x".repeat(4_096)] {
        fs::write(place.at(LOGIN_MARKER), other).unwrap();
        let refused = start(&place, &Given::required(CANARY), SeedOnce);
        assert!(matches!(refused, Err(SeedError::SourceChanged)), "{refused:?}");
    }
}

#[test]
fn a_refreshed_home_has_the_hosts_login_at_each_start() {
    let place = Place::new();
    let given = Given::required("{\"n\":1}");
    assert_eq!(start(&place, &given, RefreshEachActivation).unwrap(), Seeded::First);
    fs::write(place.at(LOGIN), "{\"rotated\":1}").unwrap();
    fs::write(place.at(".note.json"), "edited").unwrap();
    let given = Given::required("{\"n\":2}");
    assert_eq!(start(&place, &given, RefreshEachActivation).unwrap(), Seeded::Refreshed);
    assert_eq!(place.read(LOGIN), "{\"n\":2}");
    assert_eq!(place.read(".note.json"), "edited", "only the login is the host's");
}

#[test]
fn a_login_that_the_host_lost_is_removed_and_comes_back_with_it() {
    let place = Place::new();
    let present = Given::optional(Some("{\"n\":1}"));
    start(&place, &present, RefreshEachActivation).unwrap();
    let absent = Given::optional(None);
    assert_eq!(start(&place, &absent, RefreshEachActivation).unwrap(), Seeded::Removed);
    assert!(!place.at(LOGIN).exists());
    assert_eq!(start(&place, &absent, RefreshEachActivation).unwrap(), Seeded::Kept);
    assert_eq!(start(&place, &present, RefreshEachActivation).unwrap(), Seeded::Refreshed);
    assert_eq!(place.read(LOGIN), "{\"n\":1}");
}

#[test]
fn an_invalid_login_fails_a_refreshed_start_and_leaves_what_is_there() {
    let place = Place::new();
    let broken = Given::required("{\"canary\"");
    let refused = start(&place, &broken, RefreshEachActivation);
    assert!(matches!(refused, Err(SeedError::NotWellFormed)), "{refused:?}");
    assert_eq!(place.listing(), []);
    start(&place, &Given::required("{\"n\":1}"), RefreshEachActivation).unwrap();
    let refused = start(&place, &broken, RefreshEachActivation);
    assert!(matches!(refused, Err(SeedError::NotWellFormed)), "{refused:?}");
    assert_eq!(place.read(LOGIN), "{\"n\":1}");
}

#[test]
fn nobody_looks_into_an_opaque_login() {
    let place = Place::new();
    let opaque = Given::required("not JSON")
        .with("/format/file/content_format", json!("opaque"))
        .with("/encoding", json!("bytes"));
    assert_eq!(start(&place, &opaque, RefreshEachActivation).unwrap(), Seeded::First);
    assert_eq!(start(&place, &opaque, RefreshEachActivation).unwrap(), Seeded::Refreshed);
}

#[test]
fn what_comes_with_a_login_is_bound_by_its_digest() {
    Given::required(CANARY).within(&Place::new(), |_, seed| {
        let bound: Vec<_> = seed
            .initializer_digests()
            .into_iter()
            .map(|(at, digest)| (at.as_str().to_owned(), digest.as_str()[..8].to_owned()))
            .collect();
        // printf 'model = "m"\n' | sha256sum; printf '{"seen":true}' | sha256sum
        assert_eq!(
            bound,
            [(BASE.into(), "95fa4c77".into()), (".note.json".into(), "ec2734c5".into())]
        );
    });
}
