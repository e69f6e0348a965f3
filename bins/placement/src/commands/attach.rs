//! `attach`: taking an attempt over, or only watching it.

use super::selection::attempt_id;
use super::sink::Sink;
use super::stdin::Source;
use super::{follow, logs, shown};
use crate::context::Context;
use crate::failure::{Failure, say};
use crate::signals::Signals;

/// Takes the streams and the host's place over, and follows to the end.
pub(crate) fn take_over(text: &str, input: bool, context: &Context) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let signals = Signals::take()?;
    let host = context.open()?;
    let attempt = host.attach(&id)?;
    if context.style().verbose {
        say(&format!("attempt {id}"));
    }
    if attempt.is_window()
        && !context.style().json
        && let Some(terminal) = shown::own_terminal()
    {
        let end = shown::to_end(&host, attempt, &terminal, &signals)?;
        return follow::conclude(&end, false, context.style());
    }
    let source = if input { Source::Own } else { Source::None };
    let end = follow::to_end(&host, attempt, source, &signals, context.style())?;
    follow::conclude(&end, false, context.style())
}

/// Watches from the first byte that is kept until the end, and exits as the child did.
pub(crate) fn observe(text: &str, context: &Context) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let host = context.open()?;
    let mut sink = Sink::new(id.clone(), context.style());
    logs::follow_to_end(&host, &id, &mut |chunk| Ok(sink.write(chunk)?))?;
    super::wait::one(&host, &id, context.style())
}
