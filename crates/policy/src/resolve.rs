//! Whether a request names what this host offers and asks for nothing that its policy forbids.

use crate::allowed::check_lists;
use crate::gateway::check_gateway;
use crate::placement::{check_hint, check_selection, resolve_binding};
use crate::preferences::apply_preferences;
use crate::refusal::{denied, stale};
use crate::snapshot::{Named, Snapshot};
use crate::tools::check_allowed_tools;
use placement_contract::definition::{LaunchPolicy, PlacementBinding};
use placement_contract::{Code, Digest, ExitObservation, LaunchRequest, PolicyRef, Refusal};

/// What a request came to on this host.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// This placement's binding, measured, with its eleven targets.
    pub placement: PlacementBinding,
    /// The launch policy.
    pub policy: Named<PolicyRef>,
    /// What the policy allows and selects, the owner's preferences applied.
    pub rules: LaunchPolicy,
}

/// Checks a request against a host's bindings, profiles and launch policies.
///
/// Needs nothing of the machine, so that what is not placed here is refused before anything is
/// measured. The order is that of the contract; [`Resolved::check_configuration`] goes on where a
/// measurement has shown that the launch is possible.
///
/// # Errors
/// DENIED for another placement, binding, profile or policy, and for what the policy does not
/// allow; CONFLICT for another digest than the measured one; INVALID for an exit that comes with
/// the end of the output, which only a simple command may ask for.
pub fn resolve(request: &LaunchRequest, snapshot: &Snapshot) -> Result<Resolved, Refusal> {
    check_hint(request)?;
    let placement = resolve_binding(request, snapshot)?;
    check_named("binding", &request.binding_ref, &request.binding_digest, snapshot.binding())?;
    check_named("profile", &request.profile_id, &request.profile_digest, snapshot.profile())?;
    let policy =
        snapshot.policy_named(&request.policy_ref).zip(snapshot.rules(&request.policy_ref));
    let Some((policy, rules)) = policy else {
        return Err(denied("the launch policy is not one of this host"));
    };
    check_selection(request, rules, snapshot)?;
    check_exit_observation(request, snapshot)?;
    check_lists(request, rules)?;
    let rules = apply_preferences(&request.preferences, rules)?;
    Ok(Resolved { placement: placement.clone(), policy: policy.clone(), rules })
}

impl Resolved {
    /// Checks what a launch is configured from: the digest of its configuration, its gateway and
    /// the tools that its arguments allow.
    ///
    /// # Errors
    /// DENIED for a configuration that is selected and not pinned, a gateway that is not the
    /// selected one and a tool that was not admitted; CONFLICT for another configuration.
    pub fn check_configuration(
        &self,
        request: &LaunchRequest,
        snapshot: &Snapshot,
    ) -> Result<(), Refusal> {
        check_pinned(request, &self.rules)?;
        check_gateway(request, &self.rules, snapshot.gateway())?;
        check_allowed_tools(request, &self.rules)
    }
}

/// A simple command may learn of its end by the end of its output; a driver's session may not.
fn check_exit_observation(request: &LaunchRequest, snapshot: &Snapshot) -> Result<(), Refusal> {
    if snapshot.is_driven() && request.required_exit_observation == ExitObservation::EofGated {
        let message = "required_exit_observation: must be independent for a driver's binding";
        return Err(Refusal::new(Code::Invalid, message));
    }
    Ok(())
}

/// Refuses a launch that would have to be configured: the command driver renders nothing.
fn check_pinned(request: &LaunchRequest, rules: &LaunchPolicy) -> Result<(), Refusal> {
    if request.configuration_digest.is_some() {
        return Err(stale("configuration"));
    }
    if rules.selects_configuration() {
        let message = "configuration_digest: is needed for what the launch policy selects";
        return Err(denied(message));
    }
    Ok(())
}

fn check_named<R: PartialEq>(
    role: &str,
    asked_ref: &R,
    asked_digest: &Digest,
    offered: &Named<R>,
) -> Result<(), Refusal> {
    if *asked_ref != offered.r#ref {
        return Err(denied(format!("the {role} is not activated on this host")));
    }
    if *asked_digest != offered.digest {
        return Err(stale(role));
    }
    Ok(())
}
