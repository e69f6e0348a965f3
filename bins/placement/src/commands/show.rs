//! `show`: what is recorded, and beside it one fresh observation.

use super::selection::attempt_id;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::{Attempt, Liveness, Status};

pub(crate) fn run(text: &str, context: &Context) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let status = context.open()?.status(&id)?;
    if context.style().json {
        render::json(&status)?;
        return Ok(exit_code::SUCCESS);
    }
    let mut rows = recorded(&status.attempt);
    rows.extend(observed(&status));
    for row in &mut rows {
        if let Some(name) = row.first_mut() {
            name.push(':');
        }
    }
    let plain = crate::context::Style { no_color: true, ..context.style() };
    render::table(&rows, plain)?;
    Ok(exit_code::SUCCESS)
}

fn recorded(attempt: &Attempt) -> Vec<Vec<String>> {
    let mut rows = vec![
        row("attempt", &attempt.attempt_id),
        row("program", &attempt.program),
        row("owner", &attempt.owner_id),
        row("state", &render::state(attempt)),
        row("cleanup", &attempt.cleanup_state),
        row("contained", &render::contained(attempt)),
    ];
    if let Some(source) = attempt.exit_source {
        rows.push(row("exit learnt by", &source));
    }
    if let Some(proof) = &attempt.tree_gone_by {
        rows.push(row("tree gone by", &proof));
    }
    if let Some(session) = &attempt.session_ref {
        rows.push(row("session", session));
    }
    if let Some(home) = &attempt.home_ref {
        rows.push(row("home", &home));
    }
    if attempt.pruned {
        rows.push(row("pruned", &"only this receipt is left"));
    }
    rows.push(row("created", &attempt.created_at));
    rows.push(row("updated", &attempt.updated_at));
    rows.push(row("attachment", &attempt.attachment_generation));
    rows.push(row("evidence", &format!("{} rows", attempt.evidence_count)));
    rows.push(row("chain head", &attempt.chain_head));
    rows
}

fn observed(status: &Status) -> Vec<Vec<String>> {
    let mut rows =
        vec![row("observed", &status.liveness.at), row("leader", &leader(&status.liveness))];
    let Some(runner) = &status.runner else { return rows };
    let mut words = vec![runner.execution.to_string()];
    if let Some(exit) = runner.exit {
        words.push(exit.to_string());
    }
    if runner.output_full {
        words.push("output full".to_owned());
    }
    words.push(format!("{} bytes not acknowledged", runner.unacknowledged_bytes));
    if let Some(descendants) = runner.descendants {
        words.push(format!("{descendants} descendants"));
    }
    rows.push(row("runner says", &words.join(", ")));
    rows
}

fn leader(liveness: &Liveness) -> String {
    let word = match (liveness.observed, liveness.alive) {
        (true, Some(true)) => "alive",
        (true, Some(false)) => "gone",
        (true | false, None) | (false, Some(_)) => "could not be told",
    };
    format!("{word} ({})", liveness.detail)
}

fn row(name: &str, value: &dyn ToString) -> Vec<String> {
    vec![name.to_owned(), value.to_string()]
}
