//! Whether a request names what this host offers and asks for nothing that its policy forbids.

use crate::snapshot::{Named, Snapshot};
use placement_contract::{Code, Digest, ExitObservation, LaunchRequest, Refusal};

/// Checks a request against a host's binding, profile and launch policy.
///
/// # Errors
/// DENIED for another binding, profile or policy, and for a program or a referenced value that the
/// policy does not list; CONFLICT for another digest than the measured one; INVALID for an exit that
/// comes with the end of the output, which only a simple command may ask for.
pub fn resolve(request: &LaunchRequest, snapshot: &Snapshot) -> Result<(), Refusal> {
    check_named("binding", &request.binding_ref, &request.binding_digest, snapshot.binding())?;
    check_named("profile", &request.profile_id, &request.profile_digest, snapshot.profile())?;
    if request.policy_ref != snapshot.policy().r#ref {
        return Err(denied("the launch policy is not one of this host"));
    }
    if snapshot.is_driven() && request.required_exit_observation == ExitObservation::EofGated {
        let message = "required_exit_observation: must be independent for a driver's binding";
        return Err(Refusal::new(Code::Invalid, message));
    }
    let rules = snapshot.rules();
    if let Some(allowed) = &rules.executables
        && !allowed.contains(request.launch.executable.as_str())
    {
        return Err(denied("the launch policy does not list the program"));
    }
    if let Some(allowed) = &rules.environment_refs {
        for (name, id) in &request.environment_refs {
            if !allowed.contains(id) {
                let message = format!("the launch policy does not list what {name} refers to");
                return Err(denied(message));
            }
        }
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
        let message = format!("the {role} is not the one that was measured");
        let hint = format!("read the {role}'s digest again and prepare a new request");
        return Err(Refusal::new(Code::Conflict, message).with_hint(hint));
    }
    Ok(())
}

fn denied(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Denied, message)
}
