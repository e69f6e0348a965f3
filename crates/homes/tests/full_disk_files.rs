//! Configuration and logins on a disk that is full.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::Secret;
use placement_contract::authority::MaterializedCredential;
use placement_contract::request::RelativePath;
use placement_homes::{
    Content, HomeFiles, LoginPolicy, LoginSeed, PublishConfigurationError, Replay, Root, SeedError,
    WriteProtectedError,
};
use placement_testkit::{TempRoot, in_own_mounts};
use rustix::mount::MountFlags;
use std::fs;
use std::io::Write as _;

/// Mounts a small file system with a root and a home, where nobody else sees it.
fn small_disk(scratch: &TempRoot) -> (Root, HomeFiles) {
    let disk = scratch.join("disk");
    fs::create_dir(&disk).unwrap();
    let options = c"size=256k,mode=700";
    rustix::mount::mount("tmpfs", disk.as_str(), "tmpfs", MountFlags::empty(), options).unwrap();
    let root = Root::open(disk.join("root")).unwrap();
    let home = root.dir().create_dir("home", 0o700).unwrap();
    let files = HomeFiles::of(&root, home, credential().format.file.as_ref()).unwrap();
    (root, files)
}

/// Takes all room but for an amount of bytes.
fn fill(scratch: &TempRoot, left: u64) {
    let path = scratch.join("disk/filler");
    let mut file = fs::File::create(&path).unwrap();
    while file.write_all(&[1; 4_096]).is_ok() {}
    let full = file.metadata().unwrap().len();
    file.set_len(full.saturating_sub(left)).unwrap();
}

fn credential() -> MaterializedCredential {
    serde_json::from_value(serde_json::json!({
        "projection_id": "p-1",
        "destination": "auth.json",
        "projection_kind": "file",
        "encoding": "bytes",
        "generation": 1,
        "generation_key": "a-1:1",
        "format": {
            "schema_revision": "bee.credential-format@1",
            "file": {"path": "auth.json", "content_format": "opaque"},
        },
        "present": true,
        "optional": false,
        "definition_id": "d-1",
        "definition_revision": 1,
        "provider": "muse",
        "source_path": "auth.json",
        "source_present": true,
        "write_back": false,
    }))
    .unwrap()
}

fn names(scratch: &TempRoot) -> Vec<String> {
    let entries = fs::read_dir(scratch.join("disk/root/home")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn configuration_that_finds_no_room_leaves_the_old_one_and_nothing_else() {
    let test = "configuration_that_finds_no_room_leaves_the_old_one_and_nothing_else";
    in_own_mounts(test, || {
        let scratch = TempRoot::new();
        let (_root, mut files) = small_disk(&scratch);
        let path = RelativePath::parse("config").unwrap();
        files.publish_configuration(&path, b"old", Content::Delivered).unwrap();
        fill(&scratch, 8_192);
        let refused = files.publish_configuration(&path, &vec![b'x'; 65_536], Content::Composed);
        assert!(matches!(refused, Err(PublishConfigurationError::Publish(_))), "{refused:?}");
        assert_eq!(names(&scratch), ["config"]);
        assert_eq!(fs::read(scratch.join("disk/root/home/config")).unwrap(), b"old");
    });
}

#[test]
fn a_protected_file_that_finds_no_room_leaves_nothing() {
    let test = "a_protected_file_that_finds_no_room_leaves_nothing";
    in_own_mounts(test, || {
        let scratch = TempRoot::new();
        let (_root, mut files) = small_disk(&scratch);
        fill(&scratch, 8_192);
        let path = RelativePath::parse("config").unwrap();
        let bytes = vec![b'x'; 65_536];
        let refused = files.write_protected(&path, &bytes, Content::Composed, Replay::Refused);
        assert!(matches!(refused, Err(WriteProtectedError::Write(_))), "{refused:?}");
        assert!(names(&scratch).is_empty());
    });
}

#[test]
fn a_login_that_finds_no_room_leaves_no_marker_and_no_part_of_it() {
    let test = "a_login_that_finds_no_room_leaves_no_marker_and_no_part_of_it";
    in_own_mounts(test, || {
        let scratch = TempRoot::new();
        let (_root, mut files) = small_disk(&scratch);
        fill(&scratch, 8_192);
        let (credential, login) = (credential(), Secret::new(vec![b'x'; 65_536]));
        let seed = LoginSeed::of(&credential, Some(&login)).unwrap();
        let refused = files.seed_retained(&seed, LoginPolicy::SeedOnce);
        assert!(matches!(refused, Err(SeedError::Publish(_))), "{refused:?}");
        let refused = files.seed_attempt(&seed);
        assert!(matches!(refused, Err(SeedError::Write(_))), "{refused:?}");
        assert!(names(&scratch).is_empty());
        // Once there is room, the home is as good as new.
        fs::remove_file(scratch.join("disk/filler")).unwrap();
        files.seed_retained(&seed, LoginPolicy::SeedOnce).unwrap();
    });
}

#[test]
fn a_login_is_refreshed_whole_or_not_at_all() {
    in_own_mounts("a_login_is_refreshed_whole_or_not_at_all", || {
        let scratch = TempRoot::new();
        let (_root, mut files) = small_disk(&scratch);
        let (credential, old) = (credential(), Secret::new(b"old".to_vec()));
        let policy = LoginPolicy::RefreshEachActivation;
        files.seed_retained(&LoginSeed::of(&credential, Some(&old)).unwrap(), policy).unwrap();
        fill(&scratch, 8_192);
        let new = Secret::new(vec![b'x'; 65_536]);
        let refused = files.seed_retained(&LoginSeed::of(&credential, Some(&new)).unwrap(), policy);
        assert!(matches!(refused, Err(SeedError::Publish(_))), "{refused:?}");
        assert_eq!(fs::read(scratch.join("disk/root/home/auth.json")).unwrap(), b"old");
    });
}
