//! How an attempt ended, read from its evidence.

use placement_contract::{Attempt, Evidence, EvidenceKind, ExitSource, Outcome};

/// Details of `executable.refused` that say that there is no program.
const NOT_FOUND_PHRASES: [&str; 2] =
    ["the program was not found", "the program cannot be measured: there is no such file"];
/// Error numbers of an exec that found no program.
const NOT_FOUND_ERRNOS: [&str; 2] = ["ENOENT", "ENOTDIR"];

/// Reads from all evidence of an attempt how it ended.
///
/// Means something for an exited attempt only.
pub fn outcome(attempt: &Attempt, evidence: &[Evidence]) -> Outcome {
    let first = |kind| evidence.iter().find(|row| row.kind == kind);
    if attempt.exit.is_some() {
        let by_deadline = first(EvidenceKind::DeadlineElapsed).is_some();
        return if by_deadline { Outcome::DeadlineElapsed } else { Outcome::Exited };
    }
    if let Some(row) = first(EvidenceKind::ExecutableRefused) {
        let is_missing = NOT_FOUND_PHRASES.contains(&row.detail.as_str());
        return if is_missing { Outcome::ExecutableNotFound } else { Outcome::ExecutableRefused };
    }
    if first(EvidenceKind::ExecutableChanged).is_some() {
        return Outcome::ExecutableRefused;
    }
    if let Some(row) = first(EvidenceKind::ChildStartFailed) {
        if NOT_FOUND_ERRNOS.iter().any(|errno| row.detail.contains(errno)) {
            return Outcome::ExecutableNotFound;
        }
        // Without an error number it is not the program's fault.
        if row.detail.contains(": E") {
            return Outcome::ExecutableRefused;
        }
    }
    match attempt.exit_source {
        Some(ExitSource::Runner) if first(EvidenceKind::ChildExited).is_some() => Outcome::Unknown,
        Some(ExitSource::Runner) | None => Outcome::NotStarted,
        Some(ExitSource::Reconcile | ExitSource::Terminal | ExitSource::Operator) => {
            Outcome::Unknown
        }
    }
}
