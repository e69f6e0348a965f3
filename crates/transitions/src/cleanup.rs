//! The cleanup machine.

use placement_contract::CleanupState::{self, Complete, Pending, Uncertain};
use placement_contract::{EvidenceKind, ExecutionState};

/// Returns the cleanup state after a row of evidence, or `None` where the row does not fit.
///
/// Complete is final. Only an exited attempt is cleaned; a stop before any claim leaves nothing to
/// clean and completes in the same row.
pub(crate) fn after(
    state: CleanupState,
    execution: ExecutionState,
    kind: EvidenceKind,
) -> Option<CleanupState> {
    let may_clean = execution == ExecutionState::Exited && state != Complete;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds say nothing of a cleanup")]
    match kind {
        EvidenceKind::StopBeforeStart => {
            (execution == ExecutionState::Intended && state == Pending).then_some(Complete)
        }
        EvidenceKind::CleanupComplete => may_clean.then_some(Complete),
        EvidenceKind::CleanupFailed => may_clean.then_some(Uncertain),
        EvidenceKind::CleanupRefused => may_clean.then_some(state),
        _ => Some(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_cleanup_is_final() {
        for kind in [
            EvidenceKind::CleanupComplete,
            EvidenceKind::CleanupFailed,
            EvidenceKind::CleanupRefused,
        ] {
            assert_eq!(after(Complete, ExecutionState::Exited, kind), None, "{kind:?}");
        }
        let other = EvidenceKind::RunnerFinished;
        assert_eq!(after(Complete, ExecutionState::Exited, other), Some(Complete));
    }

    #[test]
    fn what_is_refused_leaves_it_as_it_was() {
        for state in [Pending, Uncertain] {
            let refused = after(state, ExecutionState::Exited, EvidenceKind::CleanupRefused);
            assert_eq!(refused, Some(state));
        }
    }
}
