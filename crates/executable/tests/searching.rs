//! Which program a name means.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use camino::{Utf8Path, Utf8PathBuf};
use placement_executable::{SEARCH_PATH_BYTES_MAX, SearchError, search};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

fn scratch() -> (TempDir, Utf8PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let base = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().unwrap()).unwrap();
    for name in ["one", "two"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    (scratch, base)
}

fn file(path: &Utf8Path, mode: u32) {
    fs::write(path, b"#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_first_executable_file_wins() {
    let (_scratch, base) = scratch();
    file(&base.join("one/tool"), 0o644);
    file(&base.join("two/tool"), 0o755);
    let found = search("tool", &format!("{base}/one:{base}/two"));
    assert_eq!(found, Ok(base.join("two/tool")));
    file(&base.join("one/tool"), 0o755);
    let found = search("tool", &format!("{base}/one:{base}/two"));
    assert_eq!(found, Ok(base.join("one/tool")));
}

#[test]
fn only_files_that_may_not_be_executed_are_refused_as_such() {
    let (_scratch, base) = scratch();
    file(&base.join("one/tool"), 0o644);
    let refused = search("tool", &format!("{base}/one:{base}/two"));
    assert_eq!(refused, Err(SearchError::NotExecutable));
}

#[test]
fn a_directory_of_the_name_is_passed_over() {
    let (_scratch, base) = scratch();
    fs::create_dir(base.join("one/tool")).unwrap();
    assert_eq!(search("tool", &format!("{base}/one")), Err(SearchError::NotFound));
}

#[test]
fn empty_and_relative_directories_are_skipped() {
    // Both would find the manifest's folder content, which holds the executable bit nowhere, so a
    // directory that surely has a program is named relative to it.
    let up = "../".repeat(64);
    for path in ["", ":", "::", ".", &format!("{up}bin"), &format!(":{up}usr/bin:")] {
        assert_eq!(search("sh", path), Err(SearchError::NotFound), "{path}");
    }
}

#[test]
fn an_absolute_path_is_checked_without_the_search_path() {
    let (_scratch, base) = scratch();
    file(&base.join("one/tool"), 0o755);
    file(&base.join("one/data"), 0o644);
    let tool = base.join("one/tool");
    assert_eq!(search(tool.as_str(), ""), Ok(tool));
    let refused = [
        ("one/data", SearchError::NotExecutable),
        ("one", SearchError::NotExecutable),
        ("one/none", SearchError::NotFound),
        ("one/tool/below", SearchError::NotFound),
    ];
    for (name, error) in refused {
        assert_eq!(search(base.join(name).as_str(), "/bin"), Err(error), "{name}");
    }
}

#[test]
fn a_link_keeps_its_own_name() {
    let (_scratch, base) = scratch();
    file(&base.join("two/real"), 0o755);
    symlink("../two/real", base.join("one/tool")).unwrap();
    symlink("nowhere", base.join("one/broken")).unwrap();
    let path = format!("{base}/one");
    assert_eq!(search("tool", &path), Ok(base.join("one/tool")));
    assert_eq!(search("broken", &path), Err(SearchError::NotFound));
}

#[test]
fn a_relative_path_is_invalid() {
    for name in ["./sh", "bin/sh", "../bin/sh", ".", "..", "", "sh\0"] {
        assert_eq!(search(name, "/usr/bin:/bin"), Err(SearchError::Invalid), "{name:?}");
    }
}

#[test]
fn the_lookup_is_bounded() {
    let long_name = "x".repeat(5_000);
    assert_eq!(search(&long_name, "/bin"), Err(SearchError::NotFound));
    assert_eq!(search(&format!("/{long_name}"), "/bin"), Err(SearchError::NotFound));
    let long_path = format!("/{}", "x".repeat(SEARCH_PATH_BYTES_MAX));
    assert_eq!(search("sh", &long_path), Err(SearchError::SearchPath));
    let long_entry = format!("/{}:/usr/bin:/bin", "x".repeat(5_000));
    assert!(search("sh", &long_entry).is_ok());
}

#[test]
fn a_directory_that_may_not_be_searched_is_passed_over() {
    let (_scratch, base) = scratch();
    file(&base.join("one/tool"), 0o755);
    fs::set_permissions(base.join("one"), fs::Permissions::from_mode(0o000)).unwrap();
    let searched = search("tool", &format!("{base}/one"));
    let visible = fs::metadata(base.join("one/tool")).is_ok();
    fs::set_permissions(base.join("one"), fs::Permissions::from_mode(0o700)).unwrap();
    // A user whom permissions do not bind sees the program.
    let expected = if visible { Ok(base.join("one/tool")) } else { Err(SearchError::NotFound) };
    assert_eq!(searched, expected);
}

#[test]
fn links_that_end_nowhere_are_named_and_on_the_search_path_passed_over() {
    let (_scratch, base) = scratch();
    symlink("loop", base.join("loop")).unwrap();
    assert_eq!(search(base.join("loop").as_str(), ""), Err(SearchError::Links));
    assert_eq!(search("loop", base.as_str()), Err(SearchError::NotFound));
    file(&base.join("link0"), 0o755);
    for number in 1..=41 {
        symlink(format!("link{}", number - 1), base.join(format!("link{number}"))).unwrap();
    }
    let within = base.join("link40");
    assert_eq!(search(within.as_str(), ""), Ok(within));
    assert_eq!(search(base.join("link41").as_str(), ""), Err(SearchError::Links));
}
