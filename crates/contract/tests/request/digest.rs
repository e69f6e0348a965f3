//! What the digest of a request depends on.

use crate::sample::{complete, decode, minimal, set};
use placement_contract::{Digest, LaunchRequest};
use serde_json::{Value, json};

fn digest(value: &Value) -> Digest {
    decode(value).unwrap().digest()
}

#[test]
fn equal_requests_have_equal_digests() {
    assert_eq!(digest(&complete()), digest(&complete()));
    assert_ne!(digest(&complete()), digest(&minimal()));
}

#[test]
fn the_digest_of_a_known_request_stays_what_it_is() {
    // A changed value here means that every recorded launch would be taken for another one.
    let known = "3ddab3eb9bb120fe2be84c36cf46adb1deb0216d80e3678f87166edd1a1e7f92";
    assert_eq!(digest(&minimal()).as_str(), known);
}

#[test]
fn defaults_count_whether_given_or_not() {
    let mut given = minimal();
    set(&mut given, "/environment", json!({}));
    set(&mut given, "/environment_refs", json!({}));
    set(&mut given, "/required_exit_observation", json!("independent"));
    set(&mut given, "/launch/stdin_eof", json!(false));
    set(&mut given, "/launch/environment", json!([]));
    let timeouts = json!({
        "start_ms": 15_000, "stop_grace_ms": 5_000, "drain_ms": 5_000, "retain_ms": 30_000,
    });
    set(&mut given, "/timeouts", timeouts);
    let supervision = json!({
        "on_host_loss": "stop", "leftovers": "stop", "confine": "none",
        "require_surviving_proof": false, "spool_bytes_max": 64 * 1024 * 1024,
        "transcript_bytes_max": 64 * 1024 * 1024, "keep_home": false, "stdin": "none",
    });
    set(&mut given, "/supervision", supervision);
    set(&mut given, "/preferences", json!({}));
    set(&mut given, "/projections", json!([]));
    set(&mut given, "/options", json!({}));
    set(&mut given, "/launch/required_files", json!([]));
    set(&mut given, "/supervision/limits", json!({}));
    assert_eq!(digest(&given), digest(&minimal()));
    set(&mut given, "/preferences", json!({ "options": {}, "bee": {} }));
    assert_eq!(digest(&given), digest(&minimal()));
    for empty in ["/timeouts", "/supervision"] {
        let mut given = minimal();
        set(&mut given, empty, json!({}));
        assert_eq!(digest(&given), digest(&minimal()));
    }
}

#[test]
fn a_default_subpath_counts_whether_given_or_not() {
    let mut with = complete();
    set(&mut with, "/resources/0/subpath", json!(""));
    let mut without = with.clone();
    without.pointer_mut("/resources/0").unwrap().as_object_mut().unwrap().remove("subpath");
    assert_eq!(digest(&with), digest(&without));
}

#[test]
fn the_order_of_fields_and_the_spaces_do_not_count() {
    let text = serde_json::to_string_pretty(&complete()).unwrap();
    let pretty = LaunchRequest::decode(text.as_bytes()).unwrap();
    assert_eq!(pretty.digest(), digest(&complete()));
    let object = complete();
    let reversed: Vec<String> = object
        .as_object()
        .unwrap()
        .iter()
        .rev()
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    let reversed = format!("{{{}}}", reversed.join(" , "));
    let reversed = LaunchRequest::decode(reversed.as_bytes()).unwrap();
    assert_eq!(reversed.digest(), digest(&complete()));
}

#[test]
fn every_field_counts() {
    let cases = [
        ("/idempotency_key", json!("other")),
        ("/owner_id", json!("other")),
        ("/owner_incarnation", json!(4)),
        ("/action_id", json!("other")),
        ("/attempt_id", json!("other")),
        ("/binding_ref", json!("other")),
        ("/policy_ref", json!("other")),
        ("/profile_id", json!("other")),
        ("/binding_digest", json!("c".repeat(64))),
        ("/profile_digest", json!("c".repeat(64))),
        ("/placement_binding_ref", json!("other")),
        ("/placement_binding_digest", json!("c".repeat(64))),
        ("/placement_profile_ref", json!("other")),
        ("/placement_profile_digest", json!("c".repeat(64))),
        ("/configuration_digest", json!("c".repeat(64))),
        ("/configuration_context", json!("window")),
        ("/preferences/options/turns", json!(4)),
        ("/preferences/mcp_tools", json!([])),
        ("/preferences/instructions", json!("")),
        ("/preferences/bee", json!({})),
        ("/executable/kind", json!("script")),
        ("/gateway/endpoint", json!("other")),
        ("/gateway/tools", json!([])),
        ("/gateway/hook_destination", json!("OTHER")),
        ("/projections", json!([])),
        ("/session_ref", json!("other")),
        ("/options", json!({})),
        ("/launch/home_ref", json!("other-home")),
        ("/launch/required_files", json!([])),
        ("/launch/login/any_of/2/timeout_ms", json!(2)),
        ("/launch/provider_home/private", json!(false)),
        ("/launch/executable", json!("other")),
        ("/launch/argv/1", json!("other")),
        ("/launch/argv", json!(["hello", "--print"])),
        ("/launch/stdin", json!("other")),
        ("/launch/stdin_eof", json!(false)),
        ("/launch/environment", json!(["LEVEL"])),
        ("/launch/readiness", json!("other")),
        ("/resources/0/grant_ref", json!("other")),
        ("/resources/0/root_ref", json!("other")),
        ("/resources/0/subpath", json!("other")),
        ("/resources/0/access", json!("read")),
        ("/resources/0/purpose", json!("output")),
        ("/environment/LEVEL", json!("other")),
        ("/environment_refs/REGION", json!("other")),
        ("/required_cleanup", json!("process_group")),
        ("/required_exit_observation", json!("independent")),
        ("/timeouts/start_ms", json!(2)),
        ("/timeouts/stop_grace_ms", json!(1)),
        ("/timeouts/drain_ms", json!(101)),
        ("/timeouts/retain_ms", json!(100)),
        ("/supervision/limits/pids", json!(10)),
        ("/supervision/on_host_loss", json!("stop")),
        ("/supervision/leftovers", json!("stop")),
        ("/supervision/deadline_ms", json!(2)),
        ("/supervision/mechanism", json!("subreaper")),
        ("/supervision/require_surviving_proof", json!(false)),
        ("/supervision/spool_bytes_max", json!(262_144)),
        ("/supervision/transcript_bytes_max", json!(1)),
        ("/supervision/keep_home", json!(false)),
    ];
    let mut seen = std::collections::BTreeSet::from([digest(&complete())]);
    for (pointer, value) in cases {
        let mut request = complete();
        if pointer == "/launch/home_ref" {
            set(&mut request, "/resources/1/name", value.clone());
        }
        set(&mut request, pointer, value);
        assert!(seen.insert(digest(&request)), "{pointer} does not count");
    }
}

#[test]
fn a_value_by_name_is_not_a_value_by_reference() {
    let mut by_value = minimal();
    set(&mut by_value, "/environment", json!({ "A": "x" }));
    let mut by_reference = minimal();
    set(&mut by_reference, "/environment_refs", json!({ "A": "x" }));
    assert_ne!(digest(&by_value), digest(&by_reference));
}
