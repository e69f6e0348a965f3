//! `stop`: ending attempts, and waiting until they have ended.

use super::selection::{attempt_id, each};
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use placement::{AttemptId, StopMode};

pub(crate) fn run(
    attempts: &[String],
    all: bool,
    force: bool,
    context: &Context,
) -> Result<u8, Failure> {
    let host = context.open()?;
    let attempts: Vec<AttemptId> = if all {
        host.attempts().live()?.attempts.into_iter().map(|attempt| attempt.attempt_id).collect()
    } else {
        attempts.iter().map(|text| attempt_id(text)).collect::<Result<_, _>>()?
    };
    let style = context.style();
    // All are asked before the first is waited for, so that their graces run side by side.
    let asked = each(&attempts, style, |attempt| {
        if force {
            host.stop_survivors(attempt)?;
        } else {
            host.stop(attempt, StopMode::Cooperative)?;
        }
        Ok(())
    })?;
    let ended = each(&attempts, style, |attempt| {
        let awaited = Awaiting::start(format!("waiting for attempt {attempt} to stop"));
        let end = loop {
            if let Some(end) = host.wait(attempt, None)? {
                break end;
            }
        };
        drop(awaited);
        if style.json {
            return render::json(end.attempt());
        }
        render::line(&format!("{attempt}  {}", render::state(end.attempt())))
    })?;
    Ok(asked.max(ended))
}
