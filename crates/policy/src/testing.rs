//! What the tests of this crate start from.

use placement_contract::LaunchRequest;
use placement_contract::definition::LaunchPolicy;
use serde_json::{Value, json};

pub(crate) fn policy(value: &Value) -> LaunchPolicy {
    LaunchPolicy::decode(&serde_json::to_vec(value).unwrap()).unwrap()
}

/// A request of a program with these arguments.
pub(crate) fn request(argv: &[&str], change: impl FnOnce(&mut Value)) -> LaunchRequest {
    let mut value = json!({
        "idempotency_key": "k", "owner_id": "o", "owner_incarnation": 1, "action_id": "a",
        "attempt_id": "a", "binding_ref": "b", "policy_ref": "p", "profile_id": "p",
        "binding_digest": "0".repeat(64), "profile_digest": "0".repeat(64),
        "launch": { "executable": "sh", "argv": argv, "readiness": "started" },
        "resources": [], "required_cleanup": "process_group",
    });
    change(&mut value);
    LaunchRequest::decode(&serde_json::to_vec(&value).unwrap()).unwrap()
}
