//! Identifiers, names, paths and the other short texts of the contract.

use placement_contract::definition::ContainerImage;
use placement_contract::delivery::DeliveredName;
use placement_contract::request::Argument;
use placement_contract::{
    AttemptId, Digest, EnvironmentName, IdempotencyKey, OwnerId, RecipientId, Subpath, Timestamp,
};
use placement_homes::HomeKey;
use placement_identity::{Pid, ProcessIdentity};
use placement_protocol::{Token, VersionRange};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

pub(crate) fn run(bytes: &[u8]) {
    read::<ProcessIdentity>(bytes);
    read::<VersionRange>(bytes);
    read::<Pid>(bytes);
    let secret = placement_contract::Secret::new(bytes.to_vec());
    if let Some(token) = Token::from_secret(secret) {
        assert_eq!(token.expose(), bytes, "a token is what was given");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    kept(text, AttemptId::parse(text).ok(), AttemptId::as_str);
    kept(text, OwnerId::parse(text).ok(), OwnerId::as_str);
    kept(text, IdempotencyKey::parse(text).ok(), IdempotencyKey::as_str);
    kept(text, RecipientId::parse(text).ok(), RecipientId::as_str);
    kept(text, EnvironmentName::parse(text), EnvironmentName::as_str);
    kept(text, DeliveredName::parse(text), DeliveredName::as_str);
    kept(text, ContainerImage::parse(text), ContainerImage::as_str);
    kept(text, Argument::parse(text), Argument::as_str);
    kept(text, Digest::parse(text), Digest::as_str);
    kept(text, HomeKey::parse(text).ok(), HomeKey::as_str);
    timestamp(text);
    subpath(text);
}

/// What was accepted is the text itself, and comes back from JSON.
fn kept<T: Debug>(text: &str, parsed: Option<T>, shown: impl Fn(&T) -> &str) {
    if let Some(value) = parsed {
        assert_eq!(shown(&value), text, "{value:?} is another text");
    }
}

fn timestamp(text: &str) {
    let Some(at) = Timestamp::parse(text) else { return };
    assert_eq!(at.as_str(), text);
    assert_eq!(Timestamp::from_unix_ms(at.unix_ms()), at, "a moment is written in one way");
}

/// An accepted subpath stays inside, whatever is before it.
fn subpath(text: &str) {
    let Ok(subpath) = Subpath::parse(text) else { return };
    let shown = subpath.as_str();
    assert!(!shown.starts_with('/'), "{shown} is absolute");
    assert!(shown.split('/').all(|component| component != ".."), "{shown} leads out");
    assert_eq!(Subpath::parse(shown).as_ref(), Ok(&subpath));
}

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&value).expect("what was read can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written is read");
    assert_eq!(again, value);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let identity = r#"{"pid":7,"pgid":7,"start_ticks":"8812","boot_id":"b","pidfd_inode":"9",
        "observer":{"machine_id":"m","pid_namespace":"1","time_namespace":"2","cgroup_namespace":"3"}}"#;
    let texts = [
        identity,
        r#"{"min":1,"max":2}"#,
        "PLACEMENT_ATTEMPT_ID",
        "src/lib/deep",
        "../out",
        "2026-11-30T10:02:11.204Z",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "registry/image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
