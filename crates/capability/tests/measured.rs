//! The measurement where the tests run, in a process of its own.

use placement_capability::measure;
use placement_contract::{CapabilityReport, CleanupScope, ExitObservation, Mechanism};
use placement_process::{CgroupSite, SiteError};
use placement_testkit::in_own_process;

fn of(report: &CapabilityReport, mechanism: Mechanism) -> placement_contract::MechanismReport {
    report.of(mechanism).expect("every mechanism is reported").clone()
}

#[test]
fn a_subreaper_gives_a_contained_tree_whose_proof_dies_with_it() {
    in_own_process("a_subreaper_gives_a_contained_tree_whose_proof_dies_with_it", || {
        let report = measure();
        let subreaper = of(&report, Mechanism::Subreaper);
        assert!(subreaper.available, "{report:?}");
        assert!(!subreaper.proof_survives_runner);
        assert_eq!(report.capability, CleanupScope::ContainedTree);
        assert_eq!(report.exit_observation, ExitObservation::Independent);
    });
}

#[test]
fn a_cgroup_is_chosen_where_one_can_be_made_and_else_says_why_not() {
    in_own_process("a_cgroup_is_chosen_where_one_can_be_made_and_else_says_why_not", || {
        let report = measure();
        let cgroup = of(&report, Mechanism::Cgroup);
        if cgroup.available {
            assert!(cgroup.proof_survives_runner);
            assert_eq!(report.mechanism, Some(Mechanism::Cgroup));
        } else {
            println!("no cgroup here: {cgroup:?}");
            assert!(cgroup.failed_at.is_some());
            assert_eq!(report.mechanism, Some(Mechanism::Subreaper));
        }
    });
}

#[test]
fn a_pid_namespace_is_measured_and_else_names_step_and_error() {
    in_own_process("a_pid_namespace_is_measured_and_else_names_step_and_error", || {
        let report = measure();
        let namespace = of(&report, Mechanism::PidNamespace);
        if namespace.available {
            assert!(namespace.proof_survives_runner);
        } else {
            println!("no PID namespace here: {namespace:?}");
            assert!(namespace.failed_at.is_some());
            assert!(namespace.errno.is_some());
        }
        assert_ne!(report.mechanism, Some(Mechanism::PidNamespace), "never chosen unasked");
    });
}

#[test]
fn a_measurement_can_be_repeated_and_leaves_nothing() {
    in_own_process("a_measurement_can_be_repeated_and_leaves_nothing", || {
        assert_eq!(measure(), measure());
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
        assert_eq!(children, "");
        match CgroupSite::find() {
            Ok(site) => assert!(!leaves(site.path()).iter().any(|name| is_own(name))),
            Err(SiteError::NoHierarchy | SiteError::NotMounted) => {
                println!("not looked at: no cgroup v2 here");
            }
            Err(error) => panic!("{error}"),
        }
    });
}

fn is_own(name: &str) -> bool {
    name.starts_with(&format!("pl-probe-{}-", std::process::id()))
}

/// The groups in a group, found without the code under test.
fn leaves(path: &str) -> Vec<String> {
    ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .iter()
        .map(|mount| std::path::Path::new(mount).join(path.trim_start_matches('/')))
        .filter_map(|path| std::fs::read_dir(path).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}
