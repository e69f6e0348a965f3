//! `ps`: attempts in a table.

use super::selection::say_unreadable;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use placement::{Attempt, Clock as _, Placement, SystemClock};

pub(crate) fn run(all: bool, context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    let list = if all { host.attempts().all()? } else { host.attempts().open()? };
    let code = say_unreadable(&list.unreadable, context.style());
    let attempts = list.attempts;
    if context.style().json {
        for attempt in &attempts {
            render::json(attempt)?;
        }
        return Ok(code);
    }
    let now = SystemClock.now();
    // A column for whoever uses sessions, and none for the others.
    let has_sessions = attempts.iter().any(|attempt| attempt.session_ref.is_some());
    let session = |text: String| has_sessions.then_some(text);
    let line = |before: [String; 5], session: Option<String>, program: String| {
        before.into_iter().chain(session).chain([program]).collect::<Vec<_>>()
    };
    let heads = ["ATTEMPT", "STATE", "CLEANUP", "CONTAINED", "AGE"].map(str::to_owned);
    let mut rows = vec![line(heads, session("SESSION".to_owned()), "PROGRAM".to_owned())];
    for attempt in attempts {
        let columns = [
            attempt.attempt_id.to_string(),
            state(&host, &attempt),
            attempt.cleanup_state.to_string(),
            render::contained(&attempt),
            render::age(&attempt.created_at, &now),
        ];
        let held = attempt.session_ref.map_or_else(|| "-".to_owned(), |held| held.to_string());
        rows.push(line(columns, session(held), attempt.program));
    }
    render::table(&rows, context.style())?;
    Ok(code)
}

/// The recorded state; of a live attempt also whether its child waits for a reader.
fn state(host: &Placement, attempt: &Attempt) -> String {
    let recorded = render::state(attempt);
    if !attempt.execution_state.is_live() {
        return recorded;
    }
    let is_full = host
        .status(&attempt.attempt_id)
        .is_ok_and(|status| status.runner.is_some_and(|runner| runner.output_full));
    if is_full { format!("{recorded}, output full") } else { recorded }
}
