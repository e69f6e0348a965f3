//! `sweep`: bounded passes over what lives, of all owners.

use crate::context::{Context, Style};
use crate::exit_code;
use crate::failure::{Failure, say_refusal};
use crate::progress::Awaiting;
use crate::render;
use placement::{Refusal, Sweep, Swept};
use std::time::Duration;

/// One pass.
pub(crate) fn once(context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    let awaited = Awaiting::start("sweeping");
    let sweep = host.sweep()?;
    drop(awaited);
    let code = tell(&sweep, context.style())?;
    if !context.style().json {
        let changed = sweep.outcomes.iter().filter(|swept| swept.changed).count();
        render::line(&format!("{} looked at, {changed} changed", sweep.reconciled))?;
    }
    Ok(code)
}

/// One pass after the other, until a signal ends it; a pass that fails is told and the next one made.
pub(crate) fn watch(every: Duration, context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    loop {
        match host.sweep() {
            Ok(sweep) => {
                tell(&sweep, context.style())?;
            }
            Err(error) => say_refusal(&Refusal::from(error), context.style()),
        }
        std::thread::sleep(every);
    }
}

/// Says what changed, and what could not be looked at; in JSON the whole pass.
fn tell(sweep: &Sweep, style: Style) -> Result<u8, Failure> {
    if style.json {
        render::json(sweep)?;
    } else {
        for swept in sweep.outcomes.iter().filter(|swept| swept.changed || !swept.ok) {
            render::line(&worded(swept))?;
        }
    }
    let failed = sweep.outcomes.iter().find_map(|swept| swept.code);
    Ok(failed.map_or(exit_code::SUCCESS, exit_code::of_refusal))
}

fn worded(swept: &Swept) -> String {
    let id = &swept.attempt_id;
    let state = swept.execution_state.map_or_else(String::new, |state| state.to_string());
    match swept.code {
        None => format!("{id}  {state}"),
        Some(code) => format!("{id}  {state}  not looked at ({code})"),
    }
}
