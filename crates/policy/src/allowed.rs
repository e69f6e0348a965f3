//! What a launch policy lists: programs, references into the host's environment, measurable files.

use crate::refusal::denied;
use crate::snapshot::Snapshot;
use camino::Utf8Path;
use placement_contract::definition::LaunchPolicy;
use placement_contract::{LaunchRequest, Refusal};

/// Checks the program and the references of a request against the lists of its policy.
///
/// # Errors
/// DENIED, naming the variable but not what it refers to.
pub(crate) fn check_lists(request: &LaunchRequest, rules: &LaunchPolicy) -> Result<(), Refusal> {
    if let Some(allowed) = &rules.executables
        && !allowed.contains(&request.launch.executable)
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

/// Checks whether a file may be measured: one launch policy of the host must allow it.
///
/// A policy allows what it lists as `measurable`, else what it lists as `executables`, else
/// everything.
///
/// # Errors
/// DENIED, without the path.
pub fn check_measurable(path: &Utf8Path, snapshot: &Snapshot) -> Result<(), Refusal> {
    let lists =
        |rules: &LaunchPolicy| match rules.measurable.as_ref().or(rules.executables.as_ref()) {
            None => true,
            Some(list) => list.iter().any(|known| known.as_str() == path.as_str()),
        };
    if snapshot.all_rules().any(lists) {
        Ok(())
    } else {
        Err(denied("no launch policy lets this file be measured"))
    }
}
