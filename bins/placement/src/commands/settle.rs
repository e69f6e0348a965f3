//! `cleanup` and `reconcile`.

use super::selection::{each, say_unreadable, selected};
use crate::args::Selection;
use crate::context::{Context, Style};
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use placement::{Attempt, AttemptId, CleanupState, ExecutionState, Placement};
use std::collections::BTreeMap;

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
    let unreadable = say_unreadable(&host.attempts().all()?, style);
    let awaited = Awaiting::start("looking at every open attempt");
    let reconciled = host.attempts().reconcile()?.into_iter();
    drop(awaited);
    let mut settled: BTreeMap<_, _> = reconciled.map(|it| (it.attempt_id, it.settled)).collect();
    let attempts: Vec<AttemptId> = settled.keys().cloned().collect();
    let code = each(&attempts, style, |attempt| match settled.remove(attempt) {
        Some(settled) => tell(&settled?, style),
        None => Ok(()),
    })?;
    Ok(code.max(unreadable))
}

fn tell(settled: &Attempt, style: Style) -> Result<(), Failure> {
    if style.json {
        return render::json(settled);
    }
    let (id, state) = (&settled.attempt_id, render::state(settled));
    render::line(&format!("{id}  {state}  cleanup {}", settled.cleanup_state))
}
