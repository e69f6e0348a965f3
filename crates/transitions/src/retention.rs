//! The proof that nothing but a receipt is needed of an attempt any more.

use crate::scope::Unproven;
use placement_contract::{AttemptState, CleanupState, ExecutionState};

/// The proof that an attempt is settled: what removes its directory asks for it.
///
/// Only [`prove_settled`] makes it.
#[derive(Debug)]
#[must_use]
pub struct Settled {
    _private: (),
}

/// What is known of an attempt's runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerFacts {
    /// None ever claimed the attempt.
    Never,
    /// It holds its lock, or its process was found.
    Alive,
    /// It is proven gone.
    Gone,
    /// Its end is recorded and there is no lock of it any more: a removal has begun before.
    FinishedWithoutLock,
    /// It could not be told.
    Unknown,
}

/// Decides whether an attempt is settled: exited, cleaned, and nobody looks after it.
///
/// Both states are final, so what is proven here stays true.
///
/// # Errors
/// [`Unproven`] says in a fixed phrase what is missing.
pub fn prove_settled(state: AttemptState, runner: RunnerFacts) -> Result<Settled, Unproven> {
    if state.execution != ExecutionState::Exited {
        return Err(Unproven { reason: "the attempt has not exited" });
    }
    if state.cleanup != CleanupState::Complete {
        return Err(Unproven { reason: "the attempt is not cleaned up" });
    }
    match runner {
        RunnerFacts::Never | RunnerFacts::Gone | RunnerFacts::FinishedWithoutLock => {
            Ok(Settled { _private: () })
        }
        RunnerFacts::Alive => Err(Unproven { reason: "its runner lives" }),
        RunnerFacts::Unknown => {
            Err(Unproven { reason: "it is not known whether its runner lives" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_exited_cleaned_and_left_alone_is_settled() {
        for execution in ExecutionState::ALL {
            for cleanup in CleanupState::ALL {
                let state = AttemptState { execution: *execution, cleanup: *cleanup };
                let may_be =
                    *execution == ExecutionState::Exited && *cleanup == CleanupState::Complete;
                for (runner, is_gone) in [
                    (RunnerFacts::Never, true),
                    (RunnerFacts::Gone, true),
                    (RunnerFacts::FinishedWithoutLock, true),
                    (RunnerFacts::Alive, false),
                    (RunnerFacts::Unknown, false),
                ] {
                    let settled = prove_settled(state, runner);
                    assert_eq!(settled.is_ok(), may_be && is_gone, "{state} {runner:?}");
                }
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let done =
            AttemptState { execution: ExecutionState::Exited, cleanup: CleanupState::Complete };
        let reason = |state, runner| prove_settled(state, runner).unwrap_err().reason;
        assert_eq!(
            reason(AttemptState::INTENDED, RunnerFacts::Never),
            "the attempt has not exited"
        );
        let dirty = AttemptState { cleanup: CleanupState::Pending, ..done };
        assert_eq!(reason(dirty, RunnerFacts::Gone), "the attempt is not cleaned up");
        assert_eq!(reason(done, RunnerFacts::Alive), "its runner lives");
    }
}
