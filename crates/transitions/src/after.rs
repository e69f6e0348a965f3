//! One row of evidence applied to both machines.

use crate::{cleanup, execution};
use placement_contract::{AttemptState, Code, EvidenceKind, Refusal};
use std::fmt;

/// A row of evidence does not fit the state in which it was to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The states that were found.
    pub from: AttemptState,
    /// The row.
    pub kind: EvidenceKind,
}

/// Returns the states after a row of evidence.
///
/// # Errors
/// [`Refused`] where the row does not fit; nothing else decides what is legal. The first row,
/// `intent.recorded`, makes [`AttemptState::INTENDED`] out of nothing and fits nowhere after it.
pub fn after(from: AttemptState, kind: EvidenceKind) -> Result<AttemptState, Refused> {
    let refused = Refused { from, kind };
    Ok(AttemptState {
        execution: execution::after(from.execution, kind).ok_or(refused)?,
        cleanup: cleanup::after(from.cleanup, from.execution, kind).ok_or(refused)?,
    })
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, kind } = self;
        match execution::target(*kind) {
            Some(to) => write!(formatter, "{from} cannot become {to} by {kind}"),
            None => write!(formatter, "{kind} does not fit an attempt that is {from}"),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::new(Code::Conflict, refused.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_contract::EvidenceKind::*;
    use placement_contract::{CleanupState, ExecutionState};
    use std::collections::BTreeSet;

    fn state(execution: ExecutionState, cleanup: CleanupState) -> AttemptState {
        AttemptState { execution, cleanup }
    }

    fn moves() -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for execution in ExecutionState::ALL {
            for cleanup in CleanupState::ALL {
                for kind in EvidenceKind::ALL {
                    let from = state(*execution, *cleanup);
                    if let Ok(to) = after(from, *kind)
                        && to.execution != from.execution
                    {
                        found.insert(format!("{}>{} {kind}", from.execution, to.execution));
                    }
                }
            }
        }
        found
    }

    #[test]
    fn the_execution_moves_along_these_edges_and_by_these_kinds_only() {
        let expected = "\
            intended>exited stop.before_start|intended>starting runner.started|\
            running>exited child.exited|running>exited reconcile.absent|\
            running>stopping signal.group|running>stopping stop.requested|\
            running>uncertain attach.unfenced|running>uncertain reconcile.unidentified|\
            running>uncertain reconcile.unobserved|running>uncertain runner.exited|\
            running>uncertain stop.unproven|starting>exited child.exited|\
            starting>exited child.not_started|starting>exited child.start_failed|\
            starting>exited reconcile.absent|starting>running child.started|\
            starting>stopping signal.group|starting>stopping stop.requested|\
            starting>uncertain attach.unfenced|starting>uncertain reconcile.unidentified|\
            starting>uncertain reconcile.unobserved|starting>uncertain runner.exited|\
            starting>uncertain stop.unproven|stopping>exited child.exited|\
            stopping>exited child.not_started|stopping>exited child.start_failed|\
            stopping>exited reconcile.absent|stopping>uncertain attach.unfenced|\
            stopping>uncertain reconcile.unidentified|stopping>uncertain reconcile.unobserved|\
            stopping>uncertain runner.exited|stopping>uncertain stop.unproven|\
            uncertain>exited child.exited|uncertain>exited child.not_started|\
            uncertain>exited child.start_failed|uncertain>exited operator.resolved|\
            uncertain>exited reconcile.absent";
        let expected: BTreeSet<String> = expected.split('|').map(str::to_owned).collect();
        assert_eq!(moves(), expected);
    }

    #[test]
    fn exited_and_complete_are_final() {
        for kind in EvidenceKind::ALL {
            for cleanup in CleanupState::ALL {
                if let Ok(to) = after(state(ExecutionState::Exited, *cleanup), *kind) {
                    assert_eq!(to.execution, ExecutionState::Exited, "{kind}");
                }
            }
            for execution in ExecutionState::ALL {
                if let Ok(to) = after(state(*execution, CleanupState::Complete), *kind) {
                    assert_eq!(to.cleanup, CleanupState::Complete, "{kind}");
                }
            }
        }
    }

    #[test]
    fn the_cleanup_moves_along_these_edges_and_by_these_kinds_only() {
        let mut found = BTreeSet::new();
        for execution in ExecutionState::ALL {
            for cleanup in CleanupState::ALL {
                for kind in EvidenceKind::ALL {
                    let from = state(*execution, *cleanup);
                    if let Ok(to) = after(from, *kind)
                        && to.cleanup != from.cleanup
                    {
                        found.insert(format!("{from} {kind} {to}"));
                    }
                }
            }
        }
        let expected: BTreeSet<String> = [
            "exited/pending cleanup.complete exited/complete",
            "exited/pending cleanup.failed exited/uncertain",
            "exited/uncertain cleanup.complete exited/complete",
            "intended/pending stop.before_start exited/complete",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_row_comes_once() {
        for execution in ExecutionState::ALL {
            for cleanup in CleanupState::ALL {
                assert!(after(state(*execution, *cleanup), IntentRecorded).is_err());
            }
        }
    }

    #[test]
    fn a_signal_is_not_an_exit() {
        for kind in [SignalTerm, SignalKill, SignalGroup, StopRequested] {
            for execution in ExecutionState::ALL {
                if let Ok(to) = after(state(*execution, CleanupState::Pending), kind) {
                    assert_eq!(
                        to.execution == ExecutionState::Exited,
                        *execution == ExecutionState::Exited
                    );
                }
            }
        }
    }

    #[test]
    fn a_child_is_created_in_starting_only() {
        for execution in ExecutionState::ALL {
            let fits = after(state(*execution, CleanupState::Pending), ChildCreating).is_ok();
            assert_eq!(fits, *execution == ExecutionState::Starting, "{execution}");
        }
    }

    #[test]
    fn every_kind_but_the_first_fits_somewhere() {
        for kind in EvidenceKind::ALL.iter().filter(|kind| **kind != IntentRecorded) {
            let fits = ExecutionState::ALL
                .iter()
                .any(|execution| after(state(*execution, CleanupState::Pending), *kind).is_ok());
            assert!(fits, "{kind} fits nowhere");
        }
    }

    #[test]
    fn a_refusal_is_a_conflict_that_names_both_states() {
        let refused =
            after(state(ExecutionState::Exited, CleanupState::Pending), RunnerStarted).unwrap_err();
        let refusal = Refusal::from(refused);
        assert_eq!(refusal.code, Code::Conflict);
        assert_eq!(refusal.message, "exited/pending cannot become starting by runner.started");
        let stays =
            after(AttemptState::INTENDED, TreeGone).expect_err("nothing is gone before a claim");
        assert_eq!(stays.to_string(), "tree.gone does not fit an attempt that is intended/pending");
    }
}
