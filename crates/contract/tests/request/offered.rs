//! What a request may ask for and this version does not do.

use crate::sample::{complete, decode, minimal, set};
use placement_contract::Code;
use serde_json::{Value, json};

/// The field that is refused first, after one change of the smallest request.
fn not_offered(pointer: &str, value: Value) -> Option<String> {
    let mut request = minimal();
    set(&mut request, "/resources", complete()["resources"].clone());
    set(&mut request, "/supervision", json!({}));
    // A session needs a home.
    set(&mut request, "/launch/home_ref", json!("home"));
    set(&mut request, pointer, value);
    let refusal = decode(&request).unwrap().not_offered()?;
    assert_eq!(refusal.code, Code::Unsupported);
    assert!(!refusal.hint().is_empty());
    let (field, rule) = refusal.message.split_once(": ").unwrap();
    assert_eq!(rule, "is not offered by this version");
    Some(field.to_owned())
}

#[test]
fn what_is_not_done_is_refused_by_name() {
    let whole = complete();
    let cases = [
        ("/launch/required_files", "launch.required_files"),
        ("/launch/login", "launch.login"),
        ("/launch/provider_home", "launch.provider_home"),
        ("/configuration_digest", "configuration_digest"),
        ("/configuration_context", "configuration_context"),
        ("/preferences", "preferences"),
        ("/gateway", "gateway"),
        ("/environment_refs", "environment_refs"),
        ("/projections", "projections"),
        ("/options", "options.worktree"),
    ];
    for (pointer, field) in cases {
        let value = whole.pointer(pointer).unwrap().clone();
        assert_eq!(not_offered(pointer, value).as_deref(), Some(field));
    }
    let confined = not_offered("/supervision/confine", json!("write_roots"));
    assert_eq!(confined.as_deref(), Some("supervision.confine"));
}

#[test]
fn what_is_done_is_offered() {
    assert_eq!(
        not_offered("/supervision", json!({ "mechanism": "cgroup", "stdin": "pipe" })),
        None
    );
    assert_eq!(not_offered("/supervision", json!({ "mechanism": "pid_namespace" })), None);
    let window = json!({ "columns": 80, "rows": 24, "term": "xterm" });
    assert_eq!(not_offered("/supervision/window", window), None);
    assert_eq!(not_offered("/supervision/limits", json!({ "pids": 9 })), None);
    assert_eq!(not_offered("/executable", complete()["executable"].clone()), None);
    assert_eq!(not_offered("/launch/session_end", json!("stdin_close")), None);
    assert_eq!(not_offered("/launch/stdin", json!("brief")), None);
    assert_eq!(not_offered("/resources", complete()["resources"].clone()), None);
    assert_eq!(not_offered("/environment", json!({ "A": "x" })), None);
    assert_eq!(not_offered("/session_ref", json!("session-1")), None);
    let mut placed = minimal();
    set(&mut placed, "/placement_binding_ref", json!("placed"));
    set(&mut placed, "/placement_binding_digest", json!("d".repeat(64)));
    assert_eq!(decode(&placed).unwrap().not_offered(), None);
}

#[test]
fn what_is_empty_asks_for_nothing() {
    let cases = [
        ("/preferences", json!({})),
        ("/options", json!({})),
        ("/projections", json!([])),
        ("/launch/required_files", json!([])),
        ("/supervision/limits", json!({})),
    ];
    for (pointer, empty) in cases {
        assert_eq!(not_offered(pointer, empty), None, "{pointer}");
    }
}
