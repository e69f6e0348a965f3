//! The requests, deliveries, definitions and answers that come as JSON.

use crate::exact::check;
use placement_contract::authority::{
    CheckedProjection, CredentialFormat, GatewayTokens, GrantReply, MaterializedCredential,
    MaterializedGateway,
};
use placement_contract::canonical::canonical_json;
use placement_contract::definition::{
    Activation, BindingEntry, DriverEntry, LaunchPolicy, PlacementBinding, PlacementProfile,
};
use placement_contract::delivery::Delivery;
use placement_contract::{DecodeError, LaunchRequest, PlacementBindingRef, Secret};
use std::fs;
use std::path::Path;

/// What the first byte chooses.
const LETTERS: &[u8] = b"rdDgfcpnkbeav";

pub(crate) fn run(bytes: &[u8]) {
    let Some((letter, bytes)) = bytes.split_first() else { return };
    match letter {
        b'r' => request(bytes),
        b'd' => drop(check(bytes, Delivery::decode_reply)),
        b'D' => drop(check(bytes, Delivery::decode_stored)),
        b'g' => drop(check(bytes, GrantReply::decode)),
        b'f' => drop(check(bytes, CredentialFormat::decode)),
        b'c' => {
            let value = Secret::new(b"value".to_vec());
            drop(check(bytes, |bytes| MaterializedCredential::decode(bytes, None)));
            drop(check(bytes, |bytes| MaterializedCredential::decode(bytes, Some(&value))));
        }
        b'p' => drop(check(bytes, CheckedProjection::decode)),
        b'n' => {
            let token = Secret::new(b"token".to_vec());
            let hooks = GatewayTokens { token: &token, hook_token: Some(&token) };
            let none = GatewayTokens { token: &token, hook_token: None };
            drop(check(bytes, |bytes| MaterializedGateway::decode(bytes, &hooks)));
            drop(check(bytes, |bytes| MaterializedGateway::decode(bytes, &none)));
        }
        b'k' => drop(check(bytes, LaunchPolicy::decode)),
        b'b' => drop(check(bytes, PlacementBinding::decode)),
        b'e' => entry(bytes),
        b'a' => {
            drop(check(bytes, Activation::decode));
            if let Some(entry) = check(bytes, DriverEntry::decode) {
                entry.methods().map_or_else(named, drop);
            }
        }
        b'v' => PlacementProfile::decode(bytes).map_or_else(named, drop),
        _ => {}
    }
}

fn request(bytes: &[u8]) {
    let Some(request) = check(bytes, LaunchRequest::decode) else { return };
    assert_eq!(request.clone().checked().as_ref(), Ok(&request), "a value is checked as its text");
    let canonical = canonical_json(&request).expect("what was decoded has a canonical form");
    let again = LaunchRequest::decode(&canonical).expect("a canonical text is one");
    assert_eq!(again.digest(), request.digest(), "a digest is of the value, not of its text");
}

fn entry(bytes: &[u8]) {
    let Some(entry) = check(bytes, BindingEntry::decode) else { return };
    entry.digest().map_or_else(named, drop);
    let name = PlacementBindingRef::parse("binding").expect("a short text is an id");
    entry.resolve(name).map_or_else(named, drop);
}

#[expect(clippy::needless_pass_by_value, reason = "it takes what a result has")]
fn named(error: DecodeError) {
    assert!(!error.rule.is_empty(), "an error names its rule");
}

/// The files of `fixtures/requests`, and an empty object for what has none there.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = LETTERS.iter().map(|letter| vec![*letter, b'{', b'}']).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests/accepted");
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let letter = match file.file_name().to_string_lossy().split('.').next() {
            Some("delivery") => b'D',
            Some("grant") => b'g',
            Some("policy") => b'k',
            Some("profile") => b'v',
            Some(_) | None => b'r',
        };
        if let Ok(text) = fs::read(file.path()) {
            seeds.push([vec![letter], text].concat());
        }
    }
    seeds
}
