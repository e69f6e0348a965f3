//! What a plan says of the program, and how a driven session ends.

use crate::sample::{CANARY, assert_invalid, complete, decode, minimal, set, with};
use placement_contract::{DecodeError, ExecutableKind, LaunchRequest, SessionEnd};
use serde_json::{Value, json};

fn planned() -> Value {
    json!({ "revision": "bee.executable-measurement@1", "kind": "elf", "digest": "c".repeat(64) })
}

/// Decodes a request whose session ends by its input, after one change.
fn session(pointer: &str, value: Value) -> Result<LaunchRequest, DecodeError> {
    let mut request = minimal();
    set(&mut request, "/launch/session_end", json!("stdin_close"));
    set(&mut request, pointer, value);
    decode(&request)
}

#[test]
fn a_planned_program_has_revision_kind_and_digest() {
    let executable = with("/executable", planned()).unwrap().executable.unwrap();
    assert_eq!(executable.revision.as_str(), "bee.executable-measurement@1");
    assert_eq!(executable.kind, ExecutableKind::Elf);
    assert_eq!(executable.digest.as_str(), "c".repeat(64));
}

#[test]
fn a_program_that_is_not_planned_whole_is_refused() {
    for (name, value, field, rule) in [
        (
            "digest",
            json!(CANARY),
            "executable.digest",
            "must be 64 lowercase hexadecimal characters",
        ),
        ("kind", json!(CANARY), "executable.kind", "must be one of elf, script, other"),
        ("revision", json!(""), "executable.revision", "must not be empty"),
        ("zz", json!(1), "executable.zz", "is not a field of this object"),
    ] {
        let mut executable = planned();
        executable[name] = value;
        assert_invalid("/executable", executable, field, rule);
    }
    for name in ["revision", "kind", "digest"] {
        let mut executable = planned();
        executable.as_object_mut().unwrap().remove(name);
        assert_invalid("/executable", executable, &format!("executable.{name}"), "is missing");
    }
}

#[test]
fn a_planned_program_changes_the_digest_and_an_absent_one_does_not() {
    let plain = decode(&complete()).unwrap().digest();
    assert_ne!(with("/executable", planned()).unwrap().digest(), plain);
    let written = serde_json::to_string(&decode(&minimal()).unwrap()).unwrap();
    assert!(!written.contains("session_end") && !written.contains("revision"), "{written}");
}

#[test]
fn a_session_ends_by_the_close_of_its_input() {
    let request = session("/launch/stdin", json!("brief")).unwrap();
    assert_eq!(request.launch.session_end, Some(SessionEnd::StdinClose));
    assert!(!request.launch.stdin_eof);
    let error = session("/launch/session_end", json!(CANARY)).unwrap_err();
    assert_eq!(error.field, "launch.session_end");
    assert!(!error.to_string().contains(CANARY), "{error}");
}

#[test]
fn an_input_that_is_closed_at_once_ends_no_session() {
    let rule = "must be left out with launch.stdin_eof";
    assert_invalid("/launch/session_end", json!("stdin_close"), "launch.session_end", rule);
}

#[test]
fn only_a_simple_command_may_have_its_exit_gated_by_its_output() {
    assert!(with("/required_exit_observation", json!("eof_gated")).is_ok());
    let error = session("/required_exit_observation", json!("eof_gated")).unwrap_err();
    let rule = "required_exit_observation: must be independent for what a driver plans";
    assert_eq!(error.to_string(), rule);
}
