//! What a credential broker answers, before and with the bytes.

use crate::sample::{CANARY, bytes, changed, reason, request};
use placement_contract::authority::{
    CheckedProjection, CredentialFormat, MaterializedCredential, ProjectionScope,
};
use placement_contract::request::RelativePath;
use placement_contract::{Code, LaunchRequest, Secret};
use serde_json::{Value, json};

fn format() -> Value {
    json!({
        "schema_revision": "bee.credential-format@1", "environment_destination": "KEY",
        "file": {
            "path": ".claude/.credentials.json", "content_format": "json",
            "initialize": [{
                "path": ".claude.json", "content": "{}", "source_path": "a",
                "on_missing_login": true,
            }],
        },
    })
}

fn projection() -> Value {
    json!({
        "projection_id": "p-1", "workspace_id": "w", "name": "login", "definition_id": "d",
        "definition_revision": 1, "issuer_owner": "owner-2", "issuer_incarnation": 1,
        "subject": "owner-1", "audience": "owner-1", "attempt_id": "attempt-1",
        "profile_id": "batch", "profile_digest": "b".repeat(64), "binding_digest": "a".repeat(64),
        "launch_policy_digest": "c".repeat(64), "provider": "claude", "projection_kind": "file",
        "destination": ".credentials.json", "materializer": "m", "materialization_generation": 0,
        "expires_at": "2030-01-01T00:00:00.000Z", "authorization_epoch": 1, "format": format(),
        "created_at": "2029-01-01T00:00:00.000Z", "source_present": true,
    })
}

fn admitted(projection: &Value, request: &LaunchRequest) -> Result<(), String> {
    let path = RelativePath::parse(".claude/.credentials.json").unwrap();
    let checked = CheckedProjection::decode(&bytes(projection)).unwrap();
    checked.admit(&ProjectionScope { request, login_path: Some(&path) }).map_err(|refusal| {
        assert_eq!(refusal.code, Code::Denied);
        refusal.message
    })
}

#[test]
fn a_projection_of_this_launch_is_admitted() {
    assert_eq!(admitted(&projection(), &request(|_| ())), Ok(()));
    let variable = changed(projection(), "projection_kind", json!("environment"));
    let variable = changed(variable, "source_present", Value::Null);
    let variable = changed(variable, "destination", json!("KEY"));
    assert_eq!(admitted(&variable, &request(|_| ())), Ok(()));
}

#[test]
fn a_projection_of_another_launch_is_denied() {
    let cases = [
        ("subject", json!(CANARY), "was issued for another owner"),
        ("audience", json!(CANARY), "was issued for another owner"),
        ("attempt_id", json!(CANARY), "was issued for another attempt"),
        ("profile_id", json!(CANARY), "was issued for another profile"),
        ("profile_digest", json!("0".repeat(64)), "was issued for another profile"),
        ("binding_digest", json!("0".repeat(64)), "was issued for another binding"),
        ("destination", json!(CANARY), "is not named like the login file"),
    ];
    for (field, value, rule) in cases {
        let seen = admitted(&changed(projection(), field, value), &request(|_| ()));
        assert_eq!(seen, Err(format!("projection p-1: {rule}")));
    }
}

#[test]
fn a_file_needs_a_home_that_stays_or_is_private() {
    let without = |request: &mut Value| {
        request.as_object_mut().unwrap().remove("session_ref");
    };
    let seen = admitted(&projection(), &request(without));
    let rule = "projection p-1: needs a retained session or a private home";
    assert_eq!(seen, Err(rule.to_owned()));
    let home = |private: bool, provider: &str| {
        json!({
            "provider": provider, "private": private,
            "files": [{ "path": "x", "kind": "state" }],
        })
    };
    let private = request(|request| {
        without(request);
        request["launch"]["provider_home"] = home(true, "claude");
    });
    assert_eq!(admitted(&projection(), &private), Ok(()));
    let machine = request(|request| {
        without(request);
        request["launch"]["provider_home"] = home(false, "claude");
    });
    assert_eq!(admitted(&projection(), &machine), Err(rule.to_owned()));
    let other = request(|request| request["launch"]["provider_home"] = home(true, "codex"));
    let rule = "projection p-1: is of another provider";
    assert_eq!(admitted(&projection(), &other), Err(rule.to_owned()));
}

#[test]
fn the_source_is_told_of_a_file_and_only_of_a_file() {
    let file = changed(projection(), "source_present", Value::Null);
    let rule = "source_present: is needed for a file";
    assert_eq!(reason(CheckedProjection::decode(&bytes(&file))), rule);
    let variable = changed(projection(), "projection_kind", json!("environment"));
    let rule = "source_present: is for a file only";
    assert_eq!(reason(CheckedProjection::decode(&bytes(&variable))), rule);
}

#[test]
fn a_destination_is_a_variable_or_a_file_name() {
    let file = changed(projection(), "destination", json!("a/b"));
    let rule = "destination: must be the name of a file";
    assert_eq!(reason(CheckedProjection::decode(&bytes(&file))), rule);
    let variable = changed(projection(), "projection_kind", json!("environment"));
    let variable = changed(variable, "source_present", Value::Null);
    let rule = "destination: must be an environment name";
    assert_eq!(reason(CheckedProjection::decode(&bytes(&variable))), rule);
}

#[test]
fn a_format_has_bounds() {
    let refused = |path: &str, to: Value| {
        reason(CredentialFormat::decode(&bytes(&changed(format(), path, to))))
    };
    let rule = "schema_revision: must be bee.credential-format@1";
    assert_eq!(refused("schema_revision", json!("other")), rule);
    let rule = "file.initialize: must not have a path twice or below another one";
    assert_eq!(refused("file/initialize/0/path", json!(".claude")), rule);
    assert_eq!(refused("file/initialize/0/path", json!(".claude/.credentials.json")), rule);
    let long = json!(vec![json!({ "path": "a", "content": "x".repeat(40_000) }); 2]);
    let rule = "file.initialize: must be at most 65536 bytes together";
    assert_eq!(refused("file/initialize", long), rule);
    let rule = "file.initialize: must have at most 4 items";
    assert_eq!(
        refused(
            "file/initialize",
            json!([1, 2, 3, 4, 5].map(|n| { json!({ "path": n.to_string(), "content": "" }) }))
        ),
        rule
    );
    let rule = "environment_destination: must be at most 128 bytes";
    assert_eq!(refused("environment_destination", json!("X".repeat(129))), rule);
    let nowhere = json!({ "schema_revision": "bee.credential-format@1" });
    let rule = "file: must be given or else environment_destination";
    assert_eq!(reason(CredentialFormat::decode(&bytes(&nowhere))), rule);
}

fn materialized() -> Value {
    json!({
        "projection_id": "p-1", "destination": ".credentials.json", "projection_kind": "file",
        "encoding": "utf-8", "generation": 1, "generation_key": "attempt-1:1",
        "format": format(), "present": true, "optional": true, "definition_id": "d",
        "definition_revision": 1, "provider": "claude",
        "source_path": ".claude/.credentials.json", "source_present": true,
        "source_digest": "a".repeat(64), "write_back": true,
    })
}

fn variable() -> Value {
    json!({
        "projection_id": "p-1", "destination": "KEY", "projection_kind": "environment",
        "encoding": "utf-8", "generation": 1, "generation_key": "attempt-1:1",
        "format": format(), "present": true, "optional": false,
    })
}

fn with_bytes(said: &Value, value: Option<&[u8]>) -> Result<(), String> {
    let secret = value.map(|value| Secret::new(value.to_vec()));
    let decoded = MaterializedCredential::decode(&bytes(said), secret.as_ref());
    decoded.map(drop).map_err(|error| {
        assert!(!error.to_string().contains(CANARY), "{error}");
        error.to_string()
    })
}

#[test]
fn bytes_are_taken_with_what_is_said_of_them() {
    assert_eq!(with_bytes(&materialized(), Some(b"{}")), Ok(()));
    assert_eq!(with_bytes(&variable(), Some(b"key")), Ok(()));
}

#[test]
fn bytes_are_there_where_they_are_said_to_be() {
    let rule = Err("value: must be given where present is true".to_owned());
    assert_eq!(with_bytes(&materialized(), None), rule);
    let absent = changed(materialized(), "present", json!(false));
    let absent = changed(absent, "source_present", json!(false));
    assert_eq!(with_bytes(&absent, None), Ok(()));
    let rule = Err("value: must be left out where present is false".to_owned());
    assert_eq!(with_bytes(&absent, Some(CANARY.as_bytes())), rule);
    let rule = Err("present: must be true where it is not optional".to_owned());
    assert_eq!(with_bytes(&changed(absent, "optional", json!(false)), None), rule);
    let lost = changed(materialized(), "present", json!(false));
    let rule = Err("present: must be true where the source is there".to_owned());
    assert_eq!(with_bytes(&lost, None), rule);
}

#[test]
fn bytes_have_their_bounds() {
    let rule = Err("value: must be 1 to 8192 bytes without NUL, CR and LF".to_owned());
    let long = CANARY.repeat(800);
    for wrong in ["", "canary-5d1f\n", "canary-5d1f\r", "canary-5d1f\0", long.as_str()] {
        assert_eq!(with_bytes(&variable(), Some(wrong.as_bytes())), rule, "{}", wrong.len());
    }
    let rule = Err("value: must be at most 65536 bytes".to_owned());
    assert_eq!(with_bytes(&materialized(), Some(&vec![b'x'; 65_537])), rule);
    let rule = Err("value: must be UTF-8".to_owned());
    assert_eq!(with_bytes(&materialized(), Some(b"\xff")), rule);
}

#[test]
fn an_encoding_is_that_of_the_content() {
    let rule = "encoding: must be bytes for opaque content and utf-8 for JSON";
    let opaque = changed(materialized(), "format/file/content_format", json!("opaque"));
    assert_eq!(with_bytes(&opaque, Some(b"x")), Err(rule.to_owned()));
    let opaque = changed(opaque, "encoding", json!("bytes"));
    assert_eq!(with_bytes(&opaque, Some(b"\xff")), Ok(()));
    let rule = "encoding: must be utf-8 for a variable";
    let bytes = changed(variable(), "encoding", json!("bytes"));
    assert_eq!(with_bytes(&bytes, Some(b"x")), Err(rule.to_owned()));
}

#[test]
fn what_is_said_of_a_file_is_said_whole_and_of_a_file_only() {
    let rule = "credential: must have every field of a file or none of them";
    let partly = changed(materialized(), "provider", Value::Null);
    assert_eq!(with_bytes(&partly, Some(b"{}")), Err(rule.to_owned()));
    let rule = "source_path: is for a file only";
    let both = changed(materialized(), "projection_kind", json!("environment"));
    assert_eq!(with_bytes(&both, Some(b"{}")), Err(rule.to_owned()));
    let rule = "source_path: is needed for a file";
    let neither = changed(variable(), "projection_kind", json!("file"));
    assert_eq!(with_bytes(&neither, Some(b"{}")), Err(rule.to_owned()));
}

#[test]
fn a_value_in_the_text_is_an_unknown_field() {
    let inside = changed(variable(), "value", json!(CANARY));
    let rule = "value: is not a field of this object";
    assert_eq!(with_bytes(&inside, Some(b"x")), Err(rule.to_owned()));
}
