//! How an attempt ended, read from its evidence.

use placement_contract::{Attempt, Evidence, EvidenceKind, ExitSource, Outcome};

/// Reads from all evidence of an attempt how it ended.
///
/// Means something for an exited attempt only.
pub fn outcome(attempt: &Attempt, evidence: &[Evidence]) -> Outcome {
    let first = |kind| evidence.iter().find(|row| row.kind == kind);
    if attempt.exit.is_some() {
        let by_deadline = first(EvidenceKind::DeadlineElapsed).is_some();
        return if by_deadline { Outcome::DeadlineElapsed } else { Outcome::Exited };
    }
    if first(EvidenceKind::ExecutableNotFound).is_some() {
        return Outcome::ExecutableNotFound;
    }
    let refused = [EvidenceKind::ExecutableRefused, EvidenceKind::ExecutableChanged];
    if refused.into_iter().any(|kind| first(kind).is_some()) {
        return Outcome::ExecutableRefused;
    }
    match attempt.exit_source {
        Some(ExitSource::Runner) if first(EvidenceKind::ChildExited).is_some() => Outcome::Unknown,
        Some(ExitSource::Runner) | None => Outcome::NotStarted,
        Some(ExitSource::Reconcile | ExitSource::Terminal | ExitSource::Operator) => {
            Outcome::Unknown
        }
    }
}
