//! `cleanup` and `reconcile`.

use super::selection::{each, say_of, say_unreadable, selected};
use crate::args::Selection;
use crate::context::{Context, Style};
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use placement::{Attempt, CleanupState, ExecutionState, Placement, Reconciled, ReconciledAll};

/// Proves the required scope gone and removes the home.
pub(crate) fn cleanup(selection: &Selection, context: &Context) -> Result<u8, Failure> {
    let due = |attempt: &Attempt| {
        attempt.execution_state == ExecutionState::Exited
            && attempt.cleanup_state != CleanupState::Complete
    };
    let host = context.open()?;
    let chosen = selected(&host, selection, due, context.style())?;
    let settled = each(&chosen.attempts, context.style(), |attempt| {
        tell(&host.cleanup(attempt)?, context.style())
    })?;
    Ok(chosen.code.max(settled))
}

/// Looks again at what became of attempts whose runner is gone.
pub(crate) fn reconcile(selection: &Selection, context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    if selection.all {
        return reconcile_all(&host, context.style());
    }
    let chosen = selected(&host, selection, |_| true, context.style())?;
    each(&chosen.attempts, context.style(), |attempt| {
        tell(&host.reconcile(attempt)?, context.style())
    })
}

fn reconcile_all(host: &Placement, style: Style) -> Result<u8, Failure> {
    let awaited = Awaiting::start("looking at every open attempt");
    let ReconciledAll { attempts, unreadable } = host.attempts().reconcile()?;
    drop(awaited);
    let mut code = say_unreadable(&unreadable, style);
    for Reconciled { attempt_id, settled } in attempts {
        match settled {
            Ok(settled) => tell(&settled, style)?,
            Err(refusal) => code = say_of(&attempt_id, &refusal, style),
        }
    }
    Ok(code)
}

fn tell(settled: &Attempt, style: Style) -> Result<(), Failure> {
    if style.json {
        return render::json(settled);
    }
    let (id, state) = (&settled.attempt_id, render::state(settled));
    render::line(&format!("{id}  {state}  cleanup {}", settled.cleanup_state))
}
