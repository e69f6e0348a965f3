//! `cleanup` and `reconcile`.

use super::selection::{each, selected};
use crate::args::Selection;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use placement::{Attempt, AttemptId, CleanupState, Error, ExecutionState, Placement};

/// Proves the required scope gone and removes the home.
pub(crate) fn cleanup(selection: &Selection, context: &Context) -> Result<u8, Failure> {
    let due = |attempt: &Attempt| {
        attempt.execution_state == ExecutionState::Exited
            && attempt.cleanup_state != CleanupState::Complete
    };
    settle(selection, context, due, Placement::cleanup)
}

/// Looks again at what became of attempts whose runner is gone.
pub(crate) fn reconcile(selection: &Selection, context: &Context) -> Result<u8, Failure> {
    let due = |attempt: &Attempt| {
        attempt.execution_state.is_live()
            || attempt.execution_state == ExecutionState::Uncertain
            || attempt.cleanup_state != CleanupState::Complete
    };
    settle(selection, context, due, Placement::reconcile)
}

fn settle(
    selection: &Selection,
    context: &Context,
    due: impl Fn(&Attempt) -> bool,
    act: impl Fn(&Placement, &AttemptId) -> Result<Attempt, Error>,
) -> Result<u8, Failure> {
    let host = context.open()?;
    let chosen = selected(&host, selection, due, context.style())?;
    let settled = each(&chosen.attempts, context.style(), |attempt| {
        let settled = act(&host, attempt)?;
        if context.style().json {
            return render::json(&settled);
        }
        let state = render::state(&settled);
        render::line(&format!("{attempt}  {state}  cleanup {}", settled.cleanup_state))
    })?;
    Ok(chosen.code.max(settled))
}
