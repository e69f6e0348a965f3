//! Refusals of this crate.

use placement_contract::{Code, Refusal};

pub(crate) fn denied(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Denied, message)
}

/// CONFLICT for what was measured otherwise than the request says.
pub(crate) fn stale(role: &str) -> Refusal {
    let message = format!("the {role} is not the one that was measured");
    let hint = format!("read the {role}'s digest again and prepare a new request");
    Refusal::new(Code::Conflict, message).with_hint(hint)
}
