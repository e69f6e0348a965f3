//! A complete request, and what becomes of it after one change.

use placement_contract::{Code, DecodeError, LaunchRequest, Refusal};
use serde_json::{Value, json};

/// A value that no error may repeat.
pub(crate) const CANARY: &str = "canary-5d1f";

/// Every field but one that does not go with the others, none at its default.
pub(crate) fn complete() -> Value {
    json!({
        "idempotency_key": "key-1", "owner_id": "owner-1", "owner_incarnation": 3,
        "action_id": "action-1", "attempt_id": "attempt-1", "binding_ref": "binding",
        "policy_ref": "policy", "profile_id": "batch", "binding_digest": "a".repeat(64),
        "profile_digest": "b".repeat(64),
        "placement_binding_ref": "placed", "placement_binding_digest": "d".repeat(64),
        "placement_profile_ref": "native", "placement_profile_digest": "e".repeat(64),
        "launch": launch(),
        "configuration_digest": "f".repeat(64), "configuration_context": "resume",
        "preferences": {
            "options": { "model": "large", "turns": 3, "loud": true }, "mcp_tools": ["read"],
            "instructions": "Be brief.", "bee": { "permission_answers": "deny" },
        },
        "executable": { "revision": "measured@1", "kind": "elf", "digest": "0".repeat(64) },
        "gateway": {
            "endpoint": "http://127.0.0.1:1", "tools": ["read"], "destination": "TOKEN",
            "hooks": ["Stop"], "hook_destination": "HOOK_TOKEN",
        },
        "resources": [{
            "name": "project", "grant_ref": "grant-1", "root_ref": "root-1", "subpath": "src",
            "access": "write", "purpose": "project",
        }, {
            "name": "home", "grant_ref": "grant-2", "root_ref": "root-2", "subpath": "one",
            "access": "write", "purpose": "session",
        }],
        "environment": { "LEVEL": "debug" },
        "environment_refs": { "REGION": "host:region" },
        "projections": ["login"], "session_ref": "session-1",
        "required_cleanup": "contained_tree",
        "required_exit_observation": "eof_gated",
        "timeouts": { "start_ms": 1, "stop_grace_ms": 0, "drain_ms": 100, "retain_ms": 600_000 },
        "options": { "worktree": "dedicated" },
        "supervision": {
            "limits": { "memory_bytes": 67_108_864, "pids": 9, "cpu_millis": 1_500 },
            "on_host_loss": "keep", "leftovers": "keep", "confine": "none", "deadline_ms": 1,
            "mechanism": "cgroup", "require_surviving_proof": true, "spool_bytes_max": 0,
            "transcript_bytes_max": 0, "keep_home": true, "stdin": "none",
        },
    })
}

fn launch() -> Value {
    let file = json!({ "variable": "HOME", "path": "a/b", "default_directory": ".a" });
    json!({
        "executable": "claude", "argv": ["--print", "hello"], "stdin": "brief",
        "stdin_eof": true, "environment": ["LEVEL", "REGION"],
        "working_directory_ref": "project", "home_ref": "home", "required_files": [file],
        "login": {
            "provider": "claude", "command": "claude auth login", "files": [file],
            "any_of": [
                { "kind": "file_exists", "paths": ["a"], "variable": "V", "directory": ".a" },
                { "kind": "env_present", "names": ["KEY"] },
                {
                    "kind": "auth_status", "argv": ["status"], "success_exit_code": 0,
                    "timeout_ms": 1,
                },
            ],
        },
        "provider_home": {
            "provider": "claude", "private": true, "variable": "CLAUDE_CONFIG_DIR",
            "directory": ".claude",
            "extra_variables": [{ "variable": "XDG_DATA_HOME", "directory": ".data" }],
            "files": [{
                "source_path": "login", "path": "login", "kind": "login", "optional": false,
                "write_back": true,
            }],
        },
        "readiness": "started",
    })
}

/// Only the fields that have no default.
pub(crate) fn minimal() -> Value {
    json!({
        "idempotency_key": "key-1", "owner_id": "owner-1", "owner_incarnation": 1,
        "action_id": "action-1", "attempt_id": "attempt-1", "binding_ref": "binding",
        "policy_ref": "policy", "profile_id": "batch", "binding_digest": "a".repeat(64),
        "profile_digest": "b".repeat(64),
        "launch": { "executable": "claude", "argv": [], "readiness": "started" },
        "resources": [], "required_cleanup": "process_group",
    })
}

pub(crate) fn decode(value: &Value) -> Result<LaunchRequest, DecodeError> {
    LaunchRequest::decode(&serde_json::to_vec(value).unwrap())
}

/// Sets the value at a pointer such as `/launch/argv/0`, making the last name if it is not there.
pub(crate) fn set(request: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = request.pointer_mut(parent).unwrap();
    match name.parse::<usize>() {
        Ok(index) if parent.is_array() => parent[index] = value,
        _ => parent[name] = value,
    }
}

/// Decodes the complete request after one change.
pub(crate) fn with(pointer: &str, value: Value) -> Result<LaunchRequest, DecodeError> {
    let mut request = complete();
    set(&mut request, pointer, value);
    decode(&request)
}

/// The refusal after one change: code, field and rule.
#[track_caller]
pub(crate) fn refused(pointer: &str, value: Value) -> (Code, String, String) {
    let shown = value.to_string();
    match with(pointer, value) {
        Ok(_) => panic!("{pointer} = {shown} was accepted"),
        Err(error) => (Refusal::from(error.clone()).code, error.field, error.rule),
    }
}

/// Asserts that one change is INVALID, that the field is named and that the canary is not quoted.
#[track_caller]
pub(crate) fn assert_invalid(pointer: &str, value: Value, field: &str, rule: &str) {
    let seen = refused(pointer, value);
    assert_eq!(seen, (Code::Invalid, field.to_owned(), rule.to_owned()));
    assert!(!format!("{seen:?}").contains(CANARY), "{seen:?}");
}
