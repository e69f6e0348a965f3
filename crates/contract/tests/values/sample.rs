//! Values to start from, and one change of them.

use placement_contract::{DecodeError, LaunchRequest};
use serde_json::{Value, json};

/// A value that no error may repeat.
pub(crate) const CANARY: &str = "canary-5d1f";

/// Sets a field, which may be a path such as `a/b/0`; null removes it.
pub(crate) fn changed(mut value: Value, path: &str, to: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = match parent {
        "" => &mut value,
        _ => value.pointer_mut(&format!("/{parent}")).unwrap(),
    };
    if to.is_null() {
        parent.as_object_mut().unwrap().remove(name);
        return value;
    }
    match name.parse::<usize>() {
        Ok(index) if parent.is_array() => parent[index] = to,
        _ => parent[name] = to,
    }
    value
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

#[track_caller]
pub(crate) fn reason<T: std::fmt::Debug>(decoded: Result<T, DecodeError>) -> String {
    decoded.unwrap_err().to_string()
}

/// A request of `owner-1` for `attempt-1` that goes on with a session.
pub(crate) fn request(change: impl FnOnce(&mut Value)) -> LaunchRequest {
    let mut value = json!({
        "idempotency_key": "key-1", "owner_id": "owner-1", "owner_incarnation": 1,
        "action_id": "action-1", "attempt_id": "attempt-1", "binding_ref": "binding",
        "policy_ref": "policy", "profile_id": "batch", "binding_digest": "a".repeat(64),
        "profile_digest": "b".repeat(64),
        "launch": {
            "executable": "claude", "argv": [], "readiness": "started", "home_ref": "home",
        },
        "resources": [{
            "name": "home", "grant_ref": "grant-1", "root_ref": "root-1", "access": "write",
            "purpose": "session",
        }],
        "session_ref": "session-1", "required_cleanup": "process_group",
    });
    change(&mut value);
    LaunchRequest::decode(&bytes(&value)).unwrap()
}
