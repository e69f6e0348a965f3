//! Every input that was kept, through the function that a fuzzer feeds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_fuzz::{ALLOCATED_MAX, INPUT_BYTES_MAX, PLANTED, TARGETS, target};
use std::alloc::System;
use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// A decoder that sets aside more than any input is worth ends the test.
#[global_allocator]
static ALLOCATED: cap::Cap<System> = cap::Cap::new(System, ALLOCATED_MAX);

/// So that the repository stays small.
const FILES_MAX: usize = 300;
const BYTES_MAX: usize = 1_000_000;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpora")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_was_kept_is_taken_by_every_decoder() {
    for target in TARGETS {
        for file in files(&corpora().join(target.name)) {
            let bytes = fs::read(&file).unwrap();
            assert!(catch_unwind(|| target.feed(&bytes)).is_ok(), "{}", file.display());
        }
    }
}

#[test]
fn what_the_decoders_own_side_writes_is_taken() {
    for target in TARGETS {
        let seeds = target.seeds();
        assert!(!seeds.is_empty(), "{target:?} has nothing to start from");
        for seed in seeds {
            assert!(seed.len() <= INPUT_BYTES_MAX, "{target:?}");
            assert!(catch_unwind(|| target.feed(&seed)).is_ok(), "{target:?}: {seed:?}");
        }
    }
}

#[test]
fn every_decoder_has_its_corpus_and_no_other_is_kept() {
    let folders: BTreeSet<String> = files(&corpora())
        .iter()
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

#[test]
fn what_is_kept_is_small() {
    let files: Vec<_> = files(&corpora()).iter().flat_map(|folder| files(folder)).collect();
    let bytes: usize = files.iter().map(|file| fs::read(file).unwrap().len()).sum();
    assert!(files.len() <= FILES_MAX, "{} files", files.len());
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}

#[test]
fn a_planted_fault_is_one() {
    for (name, input) in [("planted_panic", &b"PLNT\xff"[..]), ("planted_change", b"PLNT!")] {
        let planted = target(name).unwrap();
        assert!(catch_unwind(|| planted.feed(input)).is_err(), "{name}");
        assert!(catch_unwind(|| planted.feed(b"PLN")).is_ok(), "{name} behind its mark only");
    }
    assert!(PLANTED.iter().all(|planted| TARGETS.iter().all(|it| it.name != planted.name)));
}
