//! The whole measurement, and what follows from it.

use placement_contract::{CapabilityReport, CleanupScope, ExitObservation, Mechanism};
use placement_process::{CgroupSite, become_subreaper};

use crate::containment;
use crate::failure::{Failure, report};
use crate::group;

/// Measures what can be cleaned where this process is.
///
/// It takes some milliseconds, leaves nothing behind, and leaves this process a child subreaper.
/// What cannot be measured is reported as not available, with the step and the error's name.
pub fn measure() -> CapabilityReport {
    let subreaper = become_subreaper()
        .map_err(|error| Failure { step: "becoming a subreaper", errno: Some(error.errno) });
    let site = CgroupSite::find().map_err(|error| Failure::site(&error));
    let cgroup = subreaper.and_then(|()| match &site {
        Ok(site) => containment::measure_cgroup(site),
        Err(failure) => Err(*failure),
    });
    let sweep = subreaper.and_then(|()| containment::measure_subreaper());
    let namespace = subreaper.and_then(|()| containment::measure_pid_namespace());
    let group = subreaper.and_then(|()| group::measure());
    // A PID namespace changes what the program sees, and so is never chosen unasked.
    let mechanism = match (cgroup, sweep) {
        (Ok(()), _) => Some(Mechanism::Cgroup),
        (Err(_), Ok(())) => Some(Mechanism::Subreaper),
        (Err(_), Err(_)) => None,
    };
    CapabilityReport {
        capability: strongest(mechanism, group),
        mechanism,
        // Each probe above was seen to end by its pidfd while its descendant lived.
        exit_observation: ExitObservation::Independent,
        controllers: match (&site, cgroup) {
            // What could not be read is not there to be used.
            (Ok(site), Ok(())) => site.controllers().unwrap_or_default(),
            (Ok(_) | Err(_), _) => Vec::new(),
        },
        mechanisms: vec![
            report(Mechanism::Cgroup, cgroup),
            report(Mechanism::Subreaper, sweep),
            report(Mechanism::PidNamespace, namespace),
        ],
    }
}

fn strongest(mechanism: Option<Mechanism>, group: Result<(), Failure>) -> CleanupScope {
    match (mechanism, group) {
        (Some(_), _) => CleanupScope::ContainedTree,
        (None, Ok(())) => CleanupScope::ProcessGroup,
        (None, Err(_)) => CleanupScope::DirectProcess,
    }
}

#[cfg(test)]
mod tests {
    use super::strongest;
    use crate::failure::{Failure, report};
    use placement_contract::{CleanupScope, Mechanism};
    use placement_process::Errno;

    #[test]
    fn the_strongest_scope_is_what_was_measured() {
        let failed = Err(Failure::at("x"));
        assert_eq!(strongest(Some(Mechanism::Subreaper), failed), CleanupScope::ContainedTree);
        assert_eq!(strongest(None, Ok(())), CleanupScope::ProcessGroup);
        assert_eq!(strongest(None, failed), CleanupScope::DirectProcess);
    }

    #[test]
    fn a_failed_measurement_names_its_step_and_error() {
        let failure = Failure { step: "making a leaf", errno: Some(Errno::from_raw(13)) };
        let report = report(Mechanism::Cgroup, Err(failure));
        assert!(!report.available);
        assert!(!report.proof_survives_runner);
        assert_eq!(report.failed_at.as_deref(), Some("making a leaf"));
        assert_eq!(report.errno.as_deref(), Some("EACCES"));
    }

    #[test]
    fn only_the_proof_of_a_subreaper_dies_with_the_runner() {
        assert!(report(Mechanism::Cgroup, Ok(())).proof_survives_runner);
        assert!(report(Mechanism::PidNamespace, Ok(())).proof_survives_runner);
        assert!(!report(Mechanism::Subreaper, Ok(())).proof_survives_runner);
    }
}
