//! `stop`: ending attempts, and waiting until they have ended.

use super::selection::{attempt_id, each, say_unreadable};
use crate::context::Context;
use crate::exit_code;
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
    let style = context.style();
    let mut code = exit_code::SUCCESS;
    let attempts: Vec<AttemptId> = if all {
        let list = host.attempts().live()?;
        code = say_unreadable(&list.unreadable, style);
        list.attempts.into_iter().map(|attempt| attempt.attempt_id).collect()
    } else {
        attempts.iter().map(|text| attempt_id(text)).collect::<Result<_, _>>()?
    };
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
    Ok(code.max(asked).max(ended))
}
