//! `close-stdin`: the end of a program's input.

use super::selection::attempt_id;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;

pub(crate) fn run(text: &str, context: &Context) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let host = context.open()?;
    let awaited = Awaiting::start("waiting for the program to take its input");
    let closing = host.close_stdin(&id)?;
    drop(awaited);
    if context.style().json {
        render::json(&closing)?;
    } else {
        render::line(&match &closing.reason {
            None => format!("{id}  input closed"),
            Some(reason) => format!("{id}  input not closed: {reason}"),
        })?;
    }
    Ok(if closing.closed { exit_code::SUCCESS } else { exit_code::FINDINGS })
}
