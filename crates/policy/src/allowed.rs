//! What a launch policy lists: programs, references into the host's environment, measurable files.

use crate::refusal::denied;
use crate::snapshot::Snapshot;
use camino::Utf8Path;
use placement_contract::definition::LaunchPolicy;
use placement_contract::request::Argument;
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
/// everything. `stands_for` says whether a listed name is that of the file, as a launch would
/// search it.
///
/// # Errors
/// DENIED, without the path.
pub fn check_measurable(
    path: &Utf8Path,
    snapshot: &Snapshot,
    stands_for: impl Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let names = |listed: &Argument| {
        let name = listed.as_str();
        name == path.as_str() || stands_for(name)
    };
    let allows = |rules: &LaunchPolicy| {
        let list = rules.measurable.as_ref().or(rules.executables.as_ref());
        list.is_none_or(|list| list.iter().any(names))
    };
    if snapshot.all_rules().any(allows) {
        Ok(())
    } else {
        Err(denied("the launch policy does not list the program"))
    }
}
