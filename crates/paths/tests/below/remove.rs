//! Removing trees.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Scratch, is_root, names, relative};
use placement_paths::{Existence, LeftReason, RemoveError, Removed};

#[test]
fn a_tree_is_removed_and_its_entries_are_counted() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("t/a/b")).unwrap();
    fs::write(scratch.path("t/a/f"), b"").unwrap();
    fs::write(scratch.path("t/g"), b"").unwrap();
    assert_eq!(scratch.dir().remove_tree("t").unwrap(), Removed::Removed { entries: 5 });
    assert!(names(&scratch.dir()).is_empty());
}

#[test]
fn nothing_under_the_name_is_already_gone() {
    assert_eq!(Scratch::new().dir().remove_tree("t").unwrap(), Removed::AlreadyGone);
}

#[test]
fn a_file_a_link_and_a_pipe_are_removed_themselves() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("kept")).unwrap();
    fs::write(scratch.path("kept/f"), b"x").unwrap();
    fs::write(scratch.path("file"), b"").unwrap();
    symlink("kept", scratch.path("link")).unwrap();
    rustix::fs::mkfifoat(scratch.dir(), "pipe", 0o600.into()).unwrap();
    for name in ["file", "link", "pipe"] {
        let removed = scratch.dir().remove_tree(name).unwrap();
        assert_eq!(removed, Removed::Removed { entries: 1 }, "{name}");
    }
    assert_eq!(names(&scratch.dir()), ["kept"]);
    assert_eq!(fs::read(scratch.path("kept/f")).unwrap(), b"x");
}

#[test]
fn links_inside_are_not_followed() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("t/a")).unwrap();
    fs::create_dir(scratch.path("kept")).unwrap();
    fs::write(scratch.path("kept/f"), b"x").unwrap();
    symlink(scratch.path("kept"), scratch.path("t/a/absolute")).unwrap();
    symlink("../../kept", scratch.path("t/a/relative")).unwrap();
    symlink(".", scratch.path("t/a/self")).unwrap();
    scratch.dir().remove_tree("t").unwrap();
    assert_eq!(fs::read(scratch.path("kept/f")).unwrap(), b"x");
}

#[test]
fn a_name_that_is_a_path_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("a/b")).unwrap();
    for name in ["a/b", ".", "..", ""] {
        let outcome = scratch.dir().remove_tree(name);
        assert!(matches!(outcome, Err(RemoveError::Path { .. })), "{name:?}");
    }
    assert!(scratch.path("a/b").exists());
}

#[test]
fn directories_without_permissions_are_removed() {
    let scratch = Scratch::new();
    for (name, mode) in [("t/none/x", 0o000), ("t/read/x", 0o400), ("t/enter/x", 0o100)] {
        fs::create_dir_all(scratch.path(name)).unwrap();
        fs::write(scratch.path(name).join("f"), b"").unwrap();
        fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(mode)).unwrap();
        let above = scratch.path(name);
        let above = above.parent().unwrap();
        fs::set_permissions(above, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(scratch.path("t"), fs::Permissions::from_mode(0o000)).unwrap();
    if is_root() {
        println!("as root modes refuse nothing: this shows less than as an ordinary user");
    }
    scratch.dir().remove_tree("t").unwrap();
    assert_eq!(scratch.dir().exists("t"), Existence::Absent);
}

#[test]
fn names_that_are_not_utf8_are_removed() {
    let scratch = Scratch::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe\n");
    fs::create_dir_all(scratch.path("t").join(name)).unwrap();
    fs::write(scratch.path("t").join(name).join(name), b"").unwrap();
    assert_eq!(scratch.dir().remove_tree("t").unwrap(), Removed::Removed { entries: 3 });
}

#[test]
fn a_tree_of_5000_levels_is_removed() {
    let scratch = Scratch::new();
    let mut current = scratch.dir();
    for _ in 0..5000 {
        current = current.create_dir("d", 0o700).unwrap();
        drop(current.create_file("f", 0o600).unwrap());
    }
    let removed = scratch.dir().remove_tree("d").unwrap();
    assert_eq!(removed, Removed::Removed { entries: 10_000 });
    assert!(names(&scratch.dir()).is_empty());
}

#[test]
fn a_directory_with_more_subdirectories_than_one_batch_is_removed() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("t")).unwrap();
    let wide = scratch.dir().open_dir(&relative("t")).unwrap();
    for number in 0..1000 {
        let sub = wide.create_dir(&number.to_string(), 0o700).unwrap();
        drop(sub.create_file("f", 0o600).unwrap());
    }
    assert_eq!(scratch.dir().remove_tree("t").unwrap(), Removed::Removed { entries: 2001 });
}

#[test]
fn an_entry_that_may_not_be_removed_is_an_error_and_stays() {
    if is_root() {
        println!("as root modes refuse nothing; tests/mounts.rs shows what is left behind");
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("p/t/a")).unwrap();
    let parent = scratch.dir().open_dir(&relative("p")).unwrap();
    fs::set_permissions(scratch.path("p"), fs::Permissions::from_mode(0o500)).unwrap();
    let outcome = parent.remove_tree("t");
    fs::set_permissions(scratch.path("p"), fs::Permissions::from_mode(0o700)).unwrap();
    let Err(RemoveError::Incomplete { entries, left, reason, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((entries, left, reason), (1, 1, LeftReason::Denied));
    assert!(scratch.path("p/t").exists());
}

#[test]
fn two_removals_at_once_both_end_with_the_tree_gone() {
    let scratch = Scratch::new();
    for number in 0..200 {
        fs::create_dir_all(scratch.path(&format!("t/{number}/a/b"))).unwrap();
        fs::write(scratch.path(&format!("t/{number}/a/f")), b"").unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| scratch.dir().remove_tree("t").unwrap());
        }
    });
    assert!(names(&scratch.dir()).is_empty());
}

#[test]
fn a_directory_swapped_for_a_link_never_leads_the_removal_outside() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("kept/sub")).unwrap();
    fs::write(scratch.path("kept/sub/f"), b"x").unwrap();
    symlink(scratch.path("kept"), scratch.path("link")).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let dir = scratch.dir();
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !ended.load(Ordering::Relaxed) {
                // Fails whenever the removal was faster, which is part of the race.
                rustix::fs::renameat_with(&dir, "t/sub", &dir, "link", exchange).ok();
            }
        });
        for _ in 0..300 {
            fs::create_dir_all(scratch.path("t/sub/sub")).ok();
            if !scratch.path("link").is_symlink() {
                scratch.dir().remove_tree("link").ok();
                symlink(scratch.path("kept"), scratch.path("link")).ok();
            }
            scratch.dir().remove_tree("t").ok();
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read(scratch.path("kept/sub/f")).unwrap(), b"x");
}

#[test]
fn a_removal_against_somebody_who_keeps_creating_ends_and_tells_the_truth() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("t")).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let held = scratch.dir().open_dir(&relative("t")).unwrap();
        scope.spawn(|| {
            let held = held;
            // Fails as soon as the directory is gone, which is one way for the race to end.
            for number in 0..20_000 {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                held.create_dir(&number.to_string(), 0o700).ok();
            }
        });
        let outcome = scratch.dir().remove_tree("t");
        let existence = scratch.dir().exists("t");
        ended.store(true, Ordering::Relaxed);
        match outcome {
            Ok(_) => assert_eq!(existence, Existence::Absent),
            Err(RemoveError::Incomplete { .. }) => assert_ne!(existence, Existence::Absent),
            Err(error) => panic!("{error}"),
        }
    });
}
