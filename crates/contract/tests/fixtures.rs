//! Every file below `fixtures/requests`: the accepted ones are decoded, the refused ones are
//! refused for the reason in the file beside them, and no reason quotes a value.
//!
//! What a file holds is told by its name before the first dot.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::authority::GrantReply;
use placement_contract::definition::{LaunchPolicy, PlacementProfile};
use placement_contract::delivery::Delivery;
use placement_contract::{DecodeError, LaunchRequest, Refusal};
use std::fs;
use std::path::{Path, PathBuf};

/// A value that no error may repeat; every refused file has it.
const CANARY: &str = "canary-5d1f";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests").join(name)
}

/// The files of a folder with this extension, in their order.
fn files(name: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().unwrap() == extension).collect();
    files.sort();
    assert!(!files.is_empty(), "no .{extension} in {name}");
    files
}

fn decode(path: &Path, bytes: &[u8]) -> Result<(), DecodeError> {
    let name = path.file_name().unwrap().to_str().unwrap();
    match name.split('.').next().unwrap() {
        "delivery" => Delivery::decode_stored(bytes).map(drop),
        "grant" => GrantReply::decode(bytes).map(drop),
        "launch" => LaunchRequest::decode(bytes).map(drop),
        "policy" => LaunchPolicy::decode(bytes).map(drop),
        "profile" => PlacementProfile::decode(bytes).map(drop),
        _ => panic!("{name} does not say what it holds"),
    }
}

#[test]
fn every_accepted_file_is_accepted() {
    for path in files("accepted", "json") {
        let bytes = fs::read(&path).unwrap();
        if let Err(error) = decode(&path, &bytes) {
            panic!("{} is refused: {error}", path.display());
        }
    }
}

#[test]
fn every_refused_file_is_refused_for_its_reason_without_a_value() {
    let mut findings = Vec::new();
    for path in files("refused", "json") {
        let shown = path.file_name().unwrap().display().to_string();
        let bytes = fs::read(&path).unwrap();
        let Ok(reason) = fs::read_to_string(path.with_extension("reason")) else {
            findings.push(format!("{shown} has no reason beside it"));
            continue;
        };
        let Err(error) = decode(&path, &bytes) else {
            findings.push(format!("{shown} is accepted"));
            continue;
        };
        let refusal = Refusal::from(error.clone());
        let seen = format!("{} {}", refusal.code, refusal.message);
        if seen != reason.trim_end() {
            findings.push(format!("{shown}\n  is refused: {seen}\n  for reason: {reason}"));
        }
        if !String::from_utf8(bytes).unwrap().contains(CANARY) {
            findings.push(format!("{shown} has no canary"));
        }
        if format!("{error:?} {refusal:?}").contains(CANARY) {
            findings.push(format!("{shown} shows a value: {error}"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn every_reason_has_its_file() {
    for path in files("refused", "reason") {
        assert!(path.with_extension("json").exists(), "{} has no file", path.display());
    }
}

#[test]
fn an_accepted_launch_reads_back_with_its_digest() {
    let launches = files("accepted", "json");
    let is_launch =
        |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("launch.");
    let mut digests = std::collections::BTreeSet::new();
    for path in launches.iter().filter(is_launch) {
        let request = LaunchRequest::decode(&fs::read(path).unwrap()).unwrap();
        let digest = request.digest();
        assert_eq!(request.clone().checked(), Ok(request), "{}", path.display());
        digests.insert(digest);
    }
    // One file spells defaults out that another one leaves out.
    assert_eq!(digests.len(), launches.iter().filter(is_launch).count() - 1);
}
