//! What a resource authority answers, held against what was asked for.

use crate::sample::{bytes, changed, reason, request};
use placement_contract::authority::{GrantReply, RecordedGrant};
use placement_contract::{Access, Code};
use serde_json::{Value, json};

fn reply() -> Value {
    json!({
        "grant_id": "grant-1", "workspace_id": "w", "name": "home", "root_ref": "root-9",
        "root_digest": "a".repeat(64), "directory": "/srv/home", "subpath": "one",
        "access": "write", "purpose": "session", "association_id": "as-1",
        "association_revision": 2, "expires_at": "2030-01-01T00:00:00.000Z",
        "authorization_epoch": 0,
    })
}

fn admitted(reply: &Value) -> Result<RecordedGrant, Code> {
    let decoded = GrantReply::decode(&bytes(reply)).unwrap();
    decoded.admit(&request(|_| ()).resources[0]).map_err(|refusal| refusal.code)
}

#[test]
fn the_authoritys_root_and_subpath_replace_the_callers() {
    let recorded = admitted(&reply()).unwrap();
    assert_eq!(recorded.root_ref.as_str(), "root-9");
    assert_eq!(recorded.subpath.as_str(), "one");
    assert_eq!((recorded.access, recorded.association_revision), (Access::Write, 2));
}

#[test]
fn the_answer_to_another_grant_is_no_answer() {
    let other = changed(reply(), "grant_id", json!("grant-2"));
    assert_eq!(admitted(&other), Err(Code::Unavailable));
}

#[test]
fn writing_where_reading_is_granted_is_forbidden() {
    let read = changed(reply(), "access", json!("read"));
    assert_eq!(admitted(&read), Err(Code::Forbidden));
}

#[test]
fn reading_where_writing_is_granted_stays_reading() {
    let decoded = GrantReply::decode(&bytes(&reply())).unwrap();
    let mut asked = request(|_| ()).resources[0].clone();
    asked.access = Access::Read;
    assert_eq!(decoded.admit(&asked).unwrap().access, Access::Read);
}

#[test]
fn every_field_but_the_subpath_is_needed() {
    let whole = reply();
    for name in whole.as_object().unwrap().keys() {
        let without = GrantReply::decode(&bytes(&changed(whole.clone(), name, Value::Null)));
        if name == "subpath" {
            assert_eq!(without.unwrap().subpath.as_str(), "");
        } else {
            assert_eq!(reason(without), format!("{name}: is missing"));
        }
    }
}

#[test]
fn a_revision_is_at_least_1() {
    let zero = changed(reply(), "association_revision", json!(0));
    let rule = "association_revision: must be a whole number from 1 to 9007199254740991";
    assert_eq!(reason(GrantReply::decode(&bytes(&zero))), rule);
}
