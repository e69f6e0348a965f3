//! `wait`: until attempts have ended.

use super::follow;
use super::selection::attempt_id;
use crate::context::{Context, Style};
use crate::exit_code;
use crate::failure::Failure;
use crate::progress::Awaiting;
use placement::{AttemptId, Placement};

pub(crate) fn run(attempts: &[String], context: &Context) -> Result<u8, Failure> {
    let attempts: Vec<AttemptId> =
        attempts.iter().map(|text| attempt_id(text)).collect::<Result<_, _>>()?;
    let host = context.open()?;
    let mut code = exit_code::SUCCESS;
    for attempt in &attempts {
        code = one(&host, attempt, context.style())?;
    }
    Ok(code)
}

/// Waits for one attempt and returns its exit code.
pub(crate) fn one(host: &Placement, attempt: &AttemptId, style: Style) -> Result<u8, Failure> {
    let _awaited = Awaiting::start(format!("waiting for the end of attempt {attempt}"));
    loop {
        if let Some(end) = host.wait(attempt, None)? {
            return follow::conclude(&end, false, style);
        }
    }
}
