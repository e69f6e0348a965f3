//! Configuration of a retained home, and what it is composed with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use placement_contract::Digest;
use placement_homes::{
    Content, HomeFiles, LOGIN_MARKER, LoginPolicy, ParentError, PublishConfigurationError,
    ReadBaseError,
};

use crate::files_support::{BASE, Given, LOGIN, Place, holds_no_canary, path};

fn publish(files: &mut HomeFiles, at: &str, bytes: &str) -> Result<(), PublishConfigurationError> {
    files.publish_configuration(&path(at), bytes.as_bytes(), Content::Delivered)
}

#[test]
fn what_an_earlier_start_published_is_replaced() {
    let place = Place::new();
    publish(&mut place.files(None), ".agents/deep/mcp.json", "one").unwrap();
    let mut files = place.files(None);
    publish(&mut files, ".agents/deep/mcp.json", "two").unwrap();
    publish(&mut files, "top", "").unwrap();
    let expected = [(".agents/deep/mcp.json", "two"), ("top", "")];
    assert_eq!(place.listing(), expected.map(|(name, text)| (name.into(), text.into())));
    let mode = |at: &str| fs::metadata(place.at(at)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode(".agents"), mode(".agents/deep/mcp.json")], [0o700, 0o600]);
}

#[test]
fn a_whole_way_is_used_and_a_part_of_one_is_not_completed() {
    let place = Place::new();
    fs::create_dir_all(place.at("theirs/whole")).unwrap();
    let mut files = place.files(None);
    publish(&mut files, "theirs/whole/f", "x").unwrap();
    let refused = publish(&mut files, "theirs/part/f", "x").unwrap_err();
    let expected = matches!(refused, PublishConfigurationError::Parent(ParentError::NotMadeHere));
    assert!(expected, "{refused:?}");
    assert!(!place.at("theirs/part").exists());
    // What this start made is completed.
    publish(&mut files, "mine/one/f", "x").unwrap();
    publish(&mut files, "mine/two/f", "x").unwrap();
}

#[test]
fn a_link_a_directory_or_a_pipe_is_not_replaced() {
    let place = Place::new();
    symlink(place.scratch.join("outside/file"), place.at("link")).unwrap();
    symlink(place.scratch.join("outside/none"), place.at("dangling")).unwrap();
    fs::create_dir(place.at("directory")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(place.at("socket")).unwrap();
    let mut files = place.files(None);
    for at in ["link", "dangling", "directory", "socket"] {
        let refused = publish(&mut files, at, "x").unwrap_err();
        let expected = matches!(refused, PublishConfigurationError::TargetNotAFile);
        assert!(expected, "{at}: {refused:?}");
    }
    drop(socket);
    assert!(fs::symlink_metadata(place.at("link")).unwrap().is_symlink());
    place.outside_is_untouched();
}

#[test]
fn a_link_or_a_file_on_the_way_is_not_followed() {
    let place = Place::new();
    symlink(place.scratch.join("outside"), place.at("link")).unwrap();
    fs::create_dir(place.at("real")).unwrap();
    symlink(place.scratch.join("outside"), place.at("real/link")).unwrap();
    fs::write(place.at("file"), "x").unwrap();
    let mut files = place.files(None);
    for at in ["link/file", "link/new/f", "real/link/file", "file/f"] {
        let refused = publish(&mut files, at, "x").unwrap_err();
        let expected = matches!(refused, PublishConfigurationError::Parent(ParentError::Open(_)));
        assert!(expected, "{at}: {refused:?}");
    }
    place.outside_is_untouched();
}

#[test]
fn a_way_that_was_swapped_for_a_link_between_two_files_is_not_followed() {
    let place = Place::new();
    let mut files = place.files(None);
    publish(&mut files, "a/b/one", "1").unwrap();
    fs::rename(place.at("a/b"), place.at("a/old")).unwrap();
    symlink(place.scratch.join("outside"), place.at("a/b")).unwrap();
    let refused = publish(&mut files, "a/b/file", "x").unwrap_err();
    let expected = matches!(refused, PublishConfigurationError::Parent(ParentError::Open(_)));
    assert!(expected, "{refused:?}");
    place.outside_is_untouched();
    // What was published before stays.
    assert_eq!(place.read("a/old/one"), "1");
}

#[test]
fn both_bounds_are_exact_and_the_old_content_stays() {
    let place = Place::new();
    let mut files = place.files(None);
    for (content, bytes_max) in [(Content::Delivered, 16_384), (Content::Composed, 131_072)] {
        let mut publish =
            |length: usize| files.publish_configuration(&path("f"), &vec![b'x'; length], content);
        publish(bytes_max).unwrap();
        let refused = publish(bytes_max + 1).unwrap_err();
        assert!(matches!(refused, PublishConfigurationError::TooLarge { .. }), "{refused:?}");
        assert_eq!(place.read("f").len(), bytes_max);
    }
}

#[test]
fn nothing_is_published_below_a_root_that_others_may_enter() {
    let place = Place::new();
    let mut files = place.files(None);
    publish(&mut files, "f", "old").unwrap();
    let root = place.scratch.join("root");
    for mode in [0o710, 0o740, 0o701, 0o777] {
        fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
        let refused = publish(&mut files, "f", "new").unwrap_err();
        let expected = matches!(refused, PublishConfigurationError::Root(_));
        assert!(expected, "{mode:o}: {refused:?}");
    }
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(place.read("f"), "old");
}

#[test]
fn what_belongs_to_the_login_is_not_published_over() {
    let place = Place::new();
    Given::required("{}").within(&place, |files, seed| {
        files.seed_retained(seed, LoginPolicy::SeedOnce).unwrap();
        let before = place.listing();
        for at in [LOGIN, BASE, LOGIN_MARKER, ".codex", ".note.json", ".codex/auth.json/x"] {
            let refused = publish(files, at, "x").unwrap_err();
            let expected = matches!(refused, PublishConfigurationError::Overlaps);
            assert!(expected, "{at}: {refused:?}");
        }
        assert_eq!(place.listing(), before);
        publish(files, ".codex/config.toml", "x").unwrap();
    });
}

#[test]
fn a_base_is_read_by_its_digest_only() {
    let place = Place::new();
    Given::required("{}").within(&place, |files, seed| {
        files.seed_retained(seed, LoginPolicy::SeedOnce).unwrap();
        let digests = seed.initializer_digests();
        let (_, digest) = digests.iter().find(|(at, _)| at.as_str() == BASE).unwrap();
        assert_eq!(files.read_base(&path(BASE), digest).unwrap(), b"model = \"m\"\n");
        for changed in ["# canary\n", &"x".repeat(131_073)] {
            fs::write(place.at(BASE), changed).unwrap();
            let refused = files.read_base(&path(BASE), digest).unwrap_err();
            assert!(matches!(refused, ReadBaseError::Changed), "{refused:?}");
            holds_no_canary(&refused);
        }
        fs::remove_file(place.at(BASE)).unwrap();
        let refused = files.read_base(&path(BASE), digest).unwrap_err();
        assert!(matches!(refused, ReadBaseError::Missing), "{refused:?}");
        symlink(place.scratch.join("outside/file"), place.at(BASE)).unwrap();
        let theirs = Digest::of_bytes(b"theirs");
        let refused = files.read_base(&path(BASE), &theirs).unwrap_err();
        assert!(matches!(refused, ReadBaseError::Read(_)), "{refused:?}");
    });
}

#[test]
fn an_empty_base_is_one() {
    let place = Place::new();
    let given = Given::required("{}");
    let given = given.with("/format/file/initialize/0/content", serde_json::json!(""));
    given.within(&place, |files, seed| {
        files.seed_retained(seed, LoginPolicy::SeedOnce).unwrap();
        let empty = Digest::of_bytes(b"");
        assert_eq!(files.read_base(&path(BASE), &empty).unwrap(), b"");
    });
}

#[test]
fn a_file_beside_a_base_is_none() {
    let place = Place::new();
    Given::required("{}").within(&place, |files, seed| {
        files.seed_retained(seed, LoginPolicy::SeedOnce).unwrap();
        fs::write(place.at("beside"), "x").unwrap();
        for at in ["beside", LOGIN, LOGIN_MARKER] {
            let digest = Digest::of_bytes(&fs::read(place.at(at)).unwrap());
            let refused = files.read_base(&path(at), &digest).unwrap_err();
            assert!(matches!(refused, ReadBaseError::NotABase), "{at}: {refused:?}");
        }
    });
}

#[test]
fn no_base_is_read_below_a_root_that_others_may_enter() {
    let place = Place::new();
    Given::required("{}").within(&place, |files, seed| {
        files.seed_retained(seed, LoginPolicy::SeedOnce).unwrap();
        let root = place.scratch.join("root");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o750)).unwrap();
        let refused = files.read_base(&path(BASE), &seed.initializer_digests()[0].1).unwrap_err();
        assert!(matches!(refused, ReadBaseError::Root(_)), "{refused:?}");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    });
}
