//! What the contract has and this version does not do yet; it is refused by name, never ignored.

use super::{Confine, LaunchRequest};
use crate::error::{Code, Refusal};

/// A field, and whether a request asks for what it is for.
type Later = (&'static str, fn(&LaunchRequest) -> bool);

/// What is refused, in the order of the request. A line goes when its field is honoured.
const NOT_OFFERED: &[Later] = &[
    ("launch.required_files", |request| !request.launch.required_files.is_empty()),
    ("launch.login", |request| request.launch.login.is_some()),
    ("launch.provider_home", |request| request.launch.provider_home.is_some()),
    ("configuration_digest", |request| request.configuration_digest.is_some()),
    ("configuration_context", |request| request.configuration_context.is_some()),
    ("preferences", |request| !request.preferences.is_empty()),
    ("gateway", |request| request.gateway.is_some()),
    ("environment_refs", |request| !request.environment_refs.is_empty()),
    ("projections", |request| !request.projections.is_empty()),
    ("options.worktree", |request| request.options.worktree.is_some()),
    ("supervision.confine", |request| request.supervision.confine == Confine::WriteRoots),
];

impl LaunchRequest {
    /// Returns the refusal of the first field that this version does not honour: UNSUPPORTED.
    ///
    /// Meant for admission, after a replay was looked for: what is recorded stays answered.
    pub fn not_offered(&self) -> Option<Refusal> {
        let (field, _) = NOT_OFFERED.iter().find(|(_, asked)| asked(self))?;
        let refusal =
            Refusal::new(Code::Unsupported, format!("{field}: is not offered by this version"));
        Some(match *field {
            "environment_refs" => refusal
                .with_hint("pass the value in environment, or let the policy pass it on by name"),
            _ => refusal,
        })
    }
}
