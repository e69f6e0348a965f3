//! Which containment an attempt gets: what it requires against what was measured.

use crate::refusal::unavailable;
use placement_contract::{
    CapabilityReport, CleanupScope, Code, Controller, LaunchRequest, Mechanism, MechanismReport,
    Refusal,
};

/// Chooses the mechanism for a request and checks that its limits can be set; `None` where the process group is all that it requires.
///
/// # Errors
/// `UNSUPPORTED_CAPABILITY` names what was required and what was measured; UNAVAILABLE where that could
/// not be measured for want of descriptors, processes or memory: no weaker one is taken for it.
pub(crate) fn choose(
    request: &LaunchRequest,
    report: &CapabilityReport,
) -> Result<Option<Mechanism>, Refusal> {
    if !report.exit_observation.satisfies(request.required_exit_observation) {
        let message = format!(
            "exit observation {} is required and {} was measured",
            request.required_exit_observation, report.exit_observation
        );
        return Err(unsupported(message));
    }
    let required = request.required_cleanup;
    if required != CleanupScope::ContainedTree {
        check_nothing_of_a_tree(request)?;
        if report.capability.satisfies(required) {
            return Ok(None);
        }
        let message = format!("{required} is required and {} was measured", report.capability);
        return Err(unless_short(report, message));
    }
    let survives = request.supervision.require_surviving_proof;
    let suits =
        |seen: &&MechanismReport| seen.available && (seen.proof_survives_runner || !survives);
    let may_suit = |seen: &&MechanismReport| suits(seen) || seen.was_short();
    let chosen = match request.supervision.mechanism {
        Some(named) => report.of(named).filter(may_suit),
        // A PID namespace changes what the program sees: only who asks for it gets it.
        None => report.mechanisms.iter().filter(|seen| !is_by_name_only(seen)).find(may_suit),
    };
    let chosen = match chosen {
        Some(chosen) if chosen.available => chosen.mechanism,
        Some(_) => return Err(unavailable(missing(request, report))),
        None => return Err(unsupported(missing(request, report))),
    };
    check_limits(request, report, chosen)?;
    Ok(Some(chosen))
}

/// A tree is limited by the controllers of its leaf.
fn check_limits(
    request: &LaunchRequest,
    report: &CapabilityReport,
    chosen: Mechanism,
) -> Result<(), Refusal> {
    let has = |controller: &Controller| {
        chosen == Mechanism::Cgroup && report.controllers.contains(controller)
    };
    let Some(missing) = request.supervision.limits.controllers().find(|needed| !has(needed)) else {
        return Ok(());
    };
    let message = if chosen == Mechanism::Cgroup {
        let measured: Vec<_> = report.controllers.iter().map(|seen| seen.label()).collect();
        let measured =
            if measured.is_empty() { "none of them".to_owned() } else { measured.join(" and ") };
        format!("a limit of {missing} needs that controller in a cgroup leaf, which has {measured}")
    } else {
        let cgroup = report.of(Mechanism::Cgroup).filter(|seen| !seen.available).map(worded);
        let why = cgroup.map_or_else(String::new, |cgroup| format!("; {cgroup}"));
        format!(
            "a limit of {missing} needs that controller in a cgroup leaf, and {chosen} has none{why}"
        )
    };
    Err(unsupported(message))
}

fn is_by_name_only(seen: &MechanismReport) -> bool {
    match seen.mechanism {
        Mechanism::Cgroup | Mechanism::Subreaper => false,
        Mechanism::PidNamespace => true,
    }
}

/// A mechanism contains a tree; a request for less must not believe that it got one.
fn check_nothing_of_a_tree(request: &LaunchRequest) -> Result<(), Refusal> {
    let field = if request.supervision.mechanism.is_some() {
        "supervision.mechanism"
    } else if request.supervision.require_surviving_proof {
        "supervision.require_surviving_proof"
    } else if !request.supervision.limits.is_unbounded() {
        "supervision.limits"
    } else {
        return Ok(());
    };
    let message = format!("{field}: needs required_cleanup contained_tree");
    Err(Refusal::new(Code::Invalid, message))
}

fn missing(request: &LaunchRequest, report: &CapabilityReport) -> String {
    let mut required = String::from("contained_tree");
    if let Some(mechanism) = request.supervision.mechanism {
        required = format!("{required} by {mechanism}");
    }
    if request.supervision.require_surviving_proof {
        required.push_str(" with a proof that outlives the runner");
    }
    let measured: Vec<_> = report.mechanisms.iter().map(worded).collect();
    let measured = if measured.is_empty() { "nothing".to_owned() } else { measured.join("; ") };
    format!("{required} is required and {} was measured: {measured}", report.capability)
}

fn worded(seen: &MechanismReport) -> String {
    let (name, worth) = (seen.mechanism, seen.worth());
    if !seen.available {
        return format!("{name} {worth}");
    }
    let unasked = if is_by_name_only(seen) { " (used only by name)" } else { "" };
    format!("{name} works and {worth}{unasked}")
}

fn unless_short(report: &CapabilityReport, message: String) -> Refusal {
    if report.mechanisms.iter().any(MechanismReport::was_short) {
        unavailable(message)
    } else {
        unsupported(message)
    }
}

fn unsupported(message: String) -> Refusal {
    Refusal::new(Code::UnsupportedCapability, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use placement_contract::ExitObservation;

    fn seen(mechanism: Mechanism, available: bool, survives: bool) -> MechanismReport {
        MechanismReport {
            mechanism,
            available,
            proof_survives_runner: survives,
            failed_at: (!available).then(|| "making the leaf".to_owned()),
            errno: (!available).then(|| "EACCES".to_owned()),
        }
    }

    fn report(cgroup: bool, subreaper: bool) -> CapabilityReport {
        let mechanisms = vec![
            seen(Mechanism::Cgroup, cgroup, true),
            seen(Mechanism::Subreaper, subreaper, false),
        ];
        let best = mechanisms.iter().find(|m| m.available).map(|m| m.mechanism);
        CapabilityReport {
            capability: match best {
                Some(_) => CleanupScope::ContainedTree,
                None => CleanupScope::ProcessGroup,
            },
            mechanism: best,
            exit_observation: ExitObservation::Independent,
            controllers: Vec::new(),
            mechanisms,
        }
    }

    fn tree() -> LaunchRequest {
        LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") }
    }

    #[test]
    fn the_first_mechanism_that_works_is_chosen() {
        assert_eq!(choose(&tree(), &report(true, true)), Ok(Some(Mechanism::Cgroup)));
        assert_eq!(choose(&tree(), &report(false, true)), Ok(Some(Mechanism::Subreaper)));
    }

    #[test]
    fn a_named_mechanism_is_chosen_over_a_stronger_one() {
        let mut named = tree();
        named.supervision.mechanism = Some(Mechanism::Subreaper);
        assert_eq!(choose(&named, &report(true, true)), Ok(Some(Mechanism::Subreaper)));
    }

    #[test]
    fn a_pid_namespace_is_used_by_name_only() {
        let mut measured = report(false, true);
        measured.mechanisms.push(seen(Mechanism::PidNamespace, true, true));
        let mut launch = tree();
        launch.supervision.require_surviving_proof = true;
        let refused = choose(&launch, &measured).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        assert!(refused.message.ends_with("outlives the runner (used only by name)"), "{refused}");
        launch.supervision.mechanism = Some(Mechanism::PidNamespace);
        assert_eq!(choose(&launch, &measured), Ok(Some(Mechanism::PidNamespace)));
    }

    #[test]
    fn a_limit_is_granted_where_the_leaf_has_its_controller_and_else_names_it() {
        let mut limited = tree();
        limited.supervision.limits.memory_bytes = Some(1 << 26);
        limited.supervision.limits.pids = Some(9);
        let with = |controllers: &[Controller]| CapabilityReport {
            controllers: controllers.to_vec(),
            ..report(true, true)
        };
        let both = with(&[Controller::Memory, Controller::Pids]);
        assert_eq!(choose(&limited, &both), Ok(Some(Mechanism::Cgroup)));
        let refused = choose(&limited, &with(&[Controller::Memory])).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        let expected = "a limit of pids needs that controller in a cgroup leaf, which has memory";
        assert_eq!(refused.message, expected);
        let refused = choose(&limited, &with(&[])).unwrap_err();
        assert!(refused.message.starts_with("a limit of memory needs"), "{refused}");
    }

    #[test]
    fn a_limit_without_a_leaf_is_refused_with_the_reason() {
        let mut limited = tree();
        limited.supervision.limits.memory_bytes = Some(1 << 26);
        let refused = choose(&limited, &report(false, true)).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        assert_eq!(
            refused.message,
            "a limit of memory needs that controller in a cgroup leaf, and subreaper has none; \
             cgroup does not work: making the leaf (EACCES)"
        );
        limited.supervision.mechanism = Some(Mechanism::Subreaper);
        let refused = choose(&limited, &report(true, true)).unwrap_err();
        assert!(refused.message.ends_with("and subreaper has none"), "{refused}");
    }

    #[test]
    fn less_than_a_tree_gets_no_mechanism() {
        for scope in [CleanupScope::DirectProcess, CleanupScope::ProcessGroup] {
            let weaker = LaunchRequest { required_cleanup: scope, ..tree() };
            assert_eq!(choose(&weaker, &report(true, true)), Ok(None));
        }
    }

    #[test]
    fn a_tree_that_cannot_be_contained_is_refused_with_what_was_measured() {
        let refused = choose(&tree(), &report(false, false)).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        assert_eq!(
            refused.message,
            "contained_tree is required and process_group was measured: \
             cgroup does not work: making the leaf (EACCES); \
             subreaper does not work: making the leaf (EACCES)"
        );
    }

    #[test]
    fn what_could_not_be_measured_for_a_shortage_is_unavailable_and_nothing_weaker_is_taken() {
        for errno in ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"] {
            let mut short = report(false, true);
            short.mechanisms[0].errno = Some(errno.to_owned());
            assert_eq!(choose(&tree(), &short).unwrap_err().code, Code::Unavailable, "{errno}");
            let mut named = tree();
            named.supervision.mechanism = Some(Mechanism::Subreaper);
            assert_eq!(choose(&named, &short), Ok(Some(Mechanism::Subreaper)), "{errno}");
            short.capability = CleanupScope::DirectProcess;
            let group = LaunchRequest { required_cleanup: CleanupScope::ProcessGroup, ..tree() };
            assert_eq!(choose(&group, &short).unwrap_err().code, Code::Unavailable, "{errno}");
        }
    }

    #[test]
    fn a_group_on_a_machine_without_one_is_refused() {
        let weak =
            CapabilityReport { capability: CleanupScope::DirectProcess, ..report(false, false) };
        let group = LaunchRequest { required_cleanup: CleanupScope::ProcessGroup, ..tree() };
        let refused = choose(&group, &weak).unwrap_err();
        assert_eq!(refused.message, "process_group is required and direct_process was measured");
    }

    #[test]
    fn a_surviving_proof_needs_a_mechanism_that_has_one() {
        let mut surviving = tree();
        surviving.supervision.require_surviving_proof = true;
        assert_eq!(choose(&surviving, &report(true, true)), Ok(Some(Mechanism::Cgroup)));
        let refused = choose(&surviving, &report(false, true)).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        assert!(refused.message.contains("its proof dies with the runner"), "{refused}");
    }

    #[test]
    fn what_only_a_tree_has_is_not_ignored_without_one() {
        let mut group = LaunchRequest { required_cleanup: CleanupScope::ProcessGroup, ..tree() };
        group.supervision.require_surviving_proof = true;
        assert_eq!(choose(&group, &report(true, true)).unwrap_err().code, Code::Invalid);
        group.supervision.require_surviving_proof = false;
        group.supervision.mechanism = Some(Mechanism::Cgroup);
        assert_eq!(choose(&group, &report(true, true)).unwrap_err().code, Code::Invalid);
        group.supervision.mechanism = None;
        group.supervision.limits.pids = Some(9);
        assert_eq!(choose(&group, &report(true, true)).unwrap_err().code, Code::Invalid);
    }

    #[test]
    fn an_exit_that_comes_with_the_pipes_is_not_independent() {
        let gated =
            CapabilityReport { exit_observation: ExitObservation::EofGated, ..report(true, true) };
        let refused = choose(&tree(), &gated).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedCapability);
        assert!(refused.message.contains("independent"), "{refused}");
    }
}
