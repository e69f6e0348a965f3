//! `start`: one attempt, detached.

use super::launching;
use super::stdin::Source;
use crate::args::LaunchArgs;
use crate::context::Context;
use crate::exit_code;
use crate::failure::{Failure, say};
use crate::render;
use placement::OnHostLoss;
use placement::limits::STDIN_BYTES_MAX;
use std::fs::File;
use std::io::Read as _;

pub(crate) fn run(arguments: &LaunchArgs, context: &Context) -> Result<u8, Failure> {
    launching::refuse_later(arguments)?;
    let host = context.open()?;
    let mut launch = launching::launch(arguments, OnHostLoss::Keep)?;
    launch = match Source::of(arguments)? {
        Source::None => launch,
        Source::Own => launch.stdin_pipe(),
        Source::File(file) => launch.stdin_text(whole_text(file)?),
    };
    let attempt = launching::begin(&host, &launch, None)?;
    if attempt.is_replay() {
        say(&launching::replayed(&attempt)?);
    }
    let recorded = attempt.attempt()?;
    attempt.detach();
    if context.style().json {
        render::json(&recorded)?;
    } else {
        render::line(recorded.attempt_id.as_str())?;
    }
    Ok(exit_code::SUCCESS)
}

/// Reads a file that nobody is left to pump once this program has ended.
fn whole_text(file: File) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    file.take(STDIN_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| Failure::invalid("the input file cannot be read"))?;
    if bytes.len() > STDIN_BYTES_MAX {
        return Err(Failure::invalid(format!(
            "the input file has more than {STDIN_BYTES_MAX} bytes; start with --stdin pipe and attach -i",
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::invalid("the input file is not UTF-8; start with --stdin pipe"))
}
