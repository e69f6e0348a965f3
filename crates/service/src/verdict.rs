//! What a reconcile concludes from what is recorded and what was seen: one table, without I/O.

use placement_contract::{ExecutionState, Mechanism};

/// Whether the runner of an attempt lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunnerSeen {
    /// It holds its lock, or answered, or its process was found.
    Alive,
    /// It is proven gone; nothing is said of the tree.
    Gone,
    /// It could not be told.
    Unknown,
}

/// What was seen of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaderSeen {
    /// No identity was committed, so the gate never opened.
    NotRecorded,
    /// It runs.
    Present,
    /// It is proven not to run.
    Absent,
    /// It could not be told.
    Unknown,
}

/// What a reconcile goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The recorded execution state.
    pub(crate) execution: ExecutionState,
    /// How the tree is contained.
    pub(crate) mechanism: Option<Mechanism>,
    /// Whether a proof of an empty tree is recorded.
    pub(crate) tree_gone: bool,
    /// Whether it is recorded that the program ran.
    pub(crate) child_started: bool,
    /// Whether everything was recorded under an earlier boot of this machine.
    pub(crate) earlier_boot: bool,
    /// The runner.
    pub(crate) runner: RunnerSeen,
    /// The leader.
    pub(crate) leader: LeaderSeen,
}

/// What a reconcile does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is to be said.
    Unchanged,
    /// The runner looks after it.
    Supervised,
    /// No child came to be, since the gate never opened.
    NotStarted,
    /// The leader is proven absent; its exit is not known.
    Absent,
    /// The leaf or the PID namespace is ended and proven empty, then the attempt is settled.
    EndTree,
    /// The exit is settled; the leaf or the PID namespace is ended and proven empty.
    SettleTree,
    /// The leader runs without a runner; a stop reaches it.
    Alive,
    /// Nothing was found to go by, with an identity.
    Unobserved,
    /// Nothing was found to go by, without an identity.
    Unidentified,
    /// The only proof of the tree died with its runner; survivors are looked for.
    ProofLost,
}

/// Concludes from the facts.
///
/// Never concludes anything against a runner that lives: it is the one that knows.
pub(crate) fn decide(facts: Facts) -> Verdict {
    match facts.execution {
        ExecutionState::Intended => Verdict::Unchanged,
        ExecutionState::Exited => decide_exited(facts),
        ExecutionState::Starting | ExecutionState::Running | ExecutionState::Stopping => {
            decide_open(facts)
        }
        ExecutionState::Uncertain => match decide_open(facts) {
            // It is recorded as uncertain already.
            Verdict::Unobserved | Verdict::Unidentified | Verdict::ProofLost => Verdict::Unchanged,
            other @ (Verdict::Unchanged
            | Verdict::Supervised
            | Verdict::NotStarted
            | Verdict::Absent
            | Verdict::EndTree
            | Verdict::SettleTree
            | Verdict::Alive) => other,
        },
    }
}

fn decide_exited(facts: Facts) -> Verdict {
    let runner_gone = facts.runner == RunnerSeen::Gone && !facts.earlier_boot;
    match facts.mechanism {
        Some(Mechanism::Cgroup | Mechanism::PidNamespace) if runner_gone && !facts.tree_gone => {
            Verdict::SettleTree
        }
        Some(Mechanism::Cgroup | Mechanism::Subreaper | Mechanism::PidNamespace) | None => {
            Verdict::Unchanged
        }
    }
}

/// Live or uncertain.
fn decide_open(facts: Facts) -> Verdict {
    if facts.earlier_boot {
        // Commits without a sync may be missing, so not even the gate proves that no child was.
        return Verdict::Absent;
    }
    match facts.runner {
        RunnerSeen::Alive => Verdict::Supervised,
        RunnerSeen::Gone => decide_without_runner(facts),
        RunnerSeen::Unknown => match facts.leader {
            LeaderSeen::NotRecorded => Verdict::Unidentified,
            LeaderSeen::Present => Verdict::Alive,
            LeaderSeen::Absent if facts.mechanism == Some(Mechanism::Subreaper) => {
                Verdict::Unobserved
            }
            LeaderSeen::Absent => Verdict::Absent,
            LeaderSeen::Unknown => Verdict::Unobserved,
        },
    }
}

fn decide_without_runner(facts: Facts) -> Verdict {
    match (facts.leader, facts.mechanism) {
        // The program runs only after its identity was committed, so one that ran has lost it; the
        // state alone does not tell, since it may be uncertain or stopping by now.
        (LeaderSeen::NotRecorded, _) if facts.child_started => Verdict::Unidentified,
        (LeaderSeen::NotRecorded, _) => Verdict::NotStarted,
        (_, Some(Mechanism::Cgroup | Mechanism::PidNamespace)) => Verdict::EndTree,
        (_, Some(Mechanism::Subreaper)) => Verdict::ProofLost,
        (LeaderSeen::Absent, None) => Verdict::Absent,
        (LeaderSeen::Present, None) => Verdict::Alive,
        (LeaderSeen::Unknown, None) => Verdict::Unobserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ExecutionState::{Exited, Intended, Running, Starting, Stopping, Uncertain};

    const OPEN: [ExecutionState; 4] = [Starting, Running, Stopping, Uncertain];
    const MECHANISMS: [Option<Mechanism>; 4] =
        [Some(Mechanism::Cgroup), Some(Mechanism::Subreaper), Some(Mechanism::PidNamespace), None];
    /// Whoever finds the runner gone can end these and prove their end.
    const ENDED_BY_ANYBODY: [Option<Mechanism>; 2] =
        [Some(Mechanism::Cgroup), Some(Mechanism::PidNamespace)];
    const LEADERS: [LeaderSeen; 4] =
        [LeaderSeen::NotRecorded, LeaderSeen::Present, LeaderSeen::Absent, LeaderSeen::Unknown];

    fn facts(execution: ExecutionState) -> Facts {
        Facts {
            execution,
            mechanism: Some(Mechanism::Cgroup),
            tree_gone: false,
            child_started: false,
            earlier_boot: false,
            runner: RunnerSeen::Gone,
            leader: LeaderSeen::Absent,
        }
    }

    #[test]
    fn a_living_runner_is_believed_whatever_else_was_seen() {
        for execution in OPEN {
            for mechanism in MECHANISMS {
                for leader in LEADERS {
                    let seen =
                        Facts { mechanism, leader, runner: RunnerSeen::Alive, ..facts(execution) };
                    assert_eq!(decide(seen), Verdict::Supervised, "{seen:?}");
                }
            }
        }
    }

    #[test]
    fn an_intent_and_a_settled_exit_stay() {
        assert_eq!(decide(facts(Intended)), Verdict::Unchanged);
        let settled = Facts { tree_gone: true, ..facts(Exited) };
        assert_eq!(decide(settled), Verdict::Unchanged);
        for mechanism in [Some(Mechanism::Subreaper), None] {
            assert_eq!(decide(Facts { mechanism, ..facts(Exited) }), Verdict::Unchanged);
        }
    }

    #[test]
    fn the_tree_of_an_exited_attempt_is_ended_once_its_runner_is_gone() {
        for mechanism in ENDED_BY_ANYBODY {
            let exited = Facts { mechanism, ..facts(Exited) };
            assert_eq!(decide(exited), Verdict::SettleTree);
            for runner in [RunnerSeen::Alive, RunnerSeen::Unknown] {
                assert_eq!(decide(Facts { runner, ..exited }), Verdict::Unchanged);
            }
        }
    }

    #[test]
    fn a_runner_gone_before_an_identity_proves_that_no_child_came_to_be() {
        for mechanism in MECHANISMS {
            for execution in [Starting, Stopping, Uncertain] {
                let seen = Facts { mechanism, leader: LeaderSeen::NotRecorded, ..facts(execution) };
                assert_eq!(decide(seen), Verdict::NotStarted);
            }
        }
    }

    #[test]
    fn a_program_that_ran_without_an_identity_is_not_taken_for_never_started() {
        for execution in [Running, Stopping] {
            let leader = LeaderSeen::NotRecorded;
            let seen = Facts { leader, child_started: true, ..facts(execution) };
            assert_eq!(decide(seen), Verdict::Unidentified);
            let uncertain = Facts { execution: Uncertain, ..seen };
            assert_eq!(decide(uncertain), Verdict::Unchanged);
        }
    }

    #[test]
    fn a_later_boot_proves_absence_and_never_that_no_child_was() {
        for execution in OPEN {
            for leader in LEADERS {
                for runner in [RunnerSeen::Gone, RunnerSeen::Unknown] {
                    let seen = Facts { earlier_boot: true, leader, runner, ..facts(execution) };
                    assert_eq!(decide(seen), Verdict::Absent, "{seen:?}");
                }
            }
        }
    }

    #[test]
    fn a_tree_without_a_runner_is_ended_whatever_the_leader() {
        for leader in [LeaderSeen::Present, LeaderSeen::Absent, LeaderSeen::Unknown] {
            for execution in OPEN {
                for mechanism in ENDED_BY_ANYBODY {
                    let seen = Facts { mechanism, leader, ..facts(execution) };
                    assert_eq!(decide(seen), Verdict::EndTree);
                }
            }
        }
    }

    #[test]
    fn a_subreaper_takes_its_proof_along() {
        let with =
            |leader| Facts { mechanism: Some(Mechanism::Subreaper), leader, ..facts(Running) };
        for leader in [LeaderSeen::Present, LeaderSeen::Absent, LeaderSeen::Unknown] {
            assert_eq!(decide(with(leader)), Verdict::ProofLost);
            let uncertain = Facts { execution: Uncertain, ..with(leader) };
            assert_eq!(decide(uncertain), Verdict::Unchanged);
        }
    }

    #[test]
    fn a_group_without_a_runner_goes_by_its_leader() {
        let with = |leader| decide(Facts { mechanism: None, leader, ..facts(Running) });
        assert_eq!(with(LeaderSeen::Absent), Verdict::Absent);
        assert_eq!(with(LeaderSeen::Present), Verdict::Alive);
        assert_eq!(with(LeaderSeen::Unknown), Verdict::Unobserved);
    }

    #[test]
    fn an_unseen_runner_and_an_unseen_leader_make_it_uncertain() {
        let unseen = Facts { runner: RunnerSeen::Unknown, ..facts(Running) };
        let with = |leader| decide(Facts { leader, ..unseen });
        assert_eq!(with(LeaderSeen::NotRecorded), Verdict::Unidentified);
        assert_eq!(with(LeaderSeen::Unknown), Verdict::Unobserved);
        assert_eq!(with(LeaderSeen::Present), Verdict::Alive);
        assert_eq!(with(LeaderSeen::Absent), Verdict::Absent);
    }

    #[test]
    fn uncertain_says_nothing_twice() {
        for leader in [LeaderSeen::NotRecorded, LeaderSeen::Unknown] {
            let seen = Facts { runner: RunnerSeen::Unknown, leader, ..facts(Uncertain) };
            assert_eq!(decide(seen), Verdict::Unchanged);
        }
    }
}
