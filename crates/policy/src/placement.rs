//! Where a launch is placed: by this implementation, or not here.

use crate::refusal::{denied, stale};
use crate::snapshot::Snapshot;
use placement_contract::definition::{
    LaunchPolicy, NATIVE_BINDING, NATIVE_PROFILE, PlacementBinding,
};
use placement_contract::{LaunchRequest, PlacementProfileRef, Refusal};

/// Refuses a request that names another placement, before anything of the host is looked at.
///
/// # Errors
/// DENIED.
pub fn check_hint(request: &LaunchRequest) -> Result<(), Refusal> {
    match &request.placement_binding_ref {
        Some(asked) if asked.as_str() != NATIVE_BINDING => {
            Err(denied("placement_binding_ref: is not this placement"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Resolves this placement's binding and compares it with the one that the plan was made for.
pub(crate) fn resolve_binding<'a>(
    request: &LaunchRequest,
    snapshot: &'a Snapshot,
) -> Result<&'a PlacementBinding, Refusal> {
    let name = placement_contract::PlacementBindingRef::parse(NATIVE_BINDING)
        .expect("a short printable text");
    let Some(binding) = snapshot.placement_binding(&name) else {
        return Err(denied("this placement's binding is not defined on this host"));
    };
    match &request.placement_binding_digest {
        Some(asked) if *asked != binding.binding_digest => Err(stale("placement binding")),
        Some(_) | None => Ok(binding),
    }
}

/// Checks that the policy selects this placement, and the profile that the request names.
pub(crate) fn check_selection(
    request: &LaunchRequest,
    rules: &LaunchPolicy,
    snapshot: &Snapshot,
) -> Result<(), Refusal> {
    if rules.placement_binding.as_ref().is_some_and(|other| other.as_str() != NATIVE_BINDING) {
        return Err(denied("the launch policy selects another placement"));
    }
    if rules.placement_options.is_some() {
        return Err(denied("the launch policy has options that this placement does not know"));
    }
    let native = PlacementProfileRef::parse(NATIVE_PROFILE).expect("a short printable text");
    let asked = request.placement_profile_ref.as_ref().unwrap_or(&native);
    if !rules.placement_profiles.contains(asked) {
        return Err(denied("the launch policy does not list the placement profile"));
    }
    let Some(profile) = snapshot.placement_profile(asked) else {
        return Err(denied("the placement profile is not defined on this host"));
    };
    if profile.binding.as_str() != NATIVE_BINDING {
        return Err(denied("the placement profile selects another placement"));
    }
    match &request.placement_profile_digest {
        Some(asked) if *asked != profile.digest => Err(stale("placement profile")),
        Some(_) | None => Ok(()),
    }
}
