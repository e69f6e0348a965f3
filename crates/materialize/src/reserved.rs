//! Environment names that belong to placement.

use placement_contract::{Code, EnvironmentName, LaunchRequest, Refusal};

/// Where programs are looked for; the host's executor owns it.
pub(crate) const PATH: &str = "PATH";
/// The private home.
pub(crate) const HOME: &str = "HOME";
/// The private temporary directory.
pub(crate) const TMPDIR: &str = "TMPDIR";
/// The kind of terminal, where the child has a window.
pub(crate) const TERM: &str = "TERM";
/// The marker by which what is left of an attempt is found.
pub const ATTEMPT_MARKER: &str = "PLACEMENT_ATTEMPT_ID";

/// Names that placement sets in every child and a request may not.
pub const RESERVED_NAMES: &[&str] = &[HOME, PATH, ATTEMPT_MARKER, TMPDIR];

/// Looks for an environment name of the request that belongs to placement.
///
/// Meant for admission: INVALID, naming the variable. Every name that a launch needs is supplied
/// by value or by reference, so these two are all there is to look at.
pub fn reserved_conflict(request: &LaunchRequest) -> Option<Refusal> {
    let by_value = request.environment.keys().map(|name| ("environment", name));
    let by_reference = request.environment_refs.keys().map(|name| ("environment_refs", name));
    by_value.chain(by_reference).find(|(_, name)| is_reserved(name)).map(|(field, name)| {
        let message = format!("{field}.{name}: is set by placement and cannot be supplied");
        Refusal::new(Code::Invalid, message).with_hint(format!("leave {name} out"))
    })
}

pub(crate) fn is_reserved(name: &EnvironmentName) -> bool {
    RESERVED_NAMES.contains(&name.as_str())
}
