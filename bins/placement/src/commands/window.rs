//! `window`: one attempt on a terminal of its own, shown in this one.

use super::stdin::Source;
use super::{follow, launching, shown};
use crate::args::LaunchArgs;
use crate::context::{Context, Style};
use crate::failure::{Failure, say};
use crate::signals::Signals;
use placement::{Code, OnHostLoss, Refusal};

pub(crate) fn run(arguments: &LaunchArgs, context: &Context) -> Result<u8, Failure> {
    launching::refuse_later(arguments)?;
    let style = context.style();
    refuse_streams(arguments, style)?;
    let terminal = shown::own_terminal().ok_or_else(no_terminal)?;
    let signals = Signals::take()?;
    let host = context.open()?;
    let size = terminal.size();
    let launch = launching::launch(arguments, OnHostLoss::Stop)?.window(
        size.columns(),
        size.rows(),
        context.term(),
    );
    let attempt = launching::begin(&host, &launch, Some(&signals))?;
    if style.verbose {
        say(&format!("attempt {}", attempt.id()));
    }
    let replayed = attempt.is_replay();
    if replayed {
        say(&launching::replayed(&attempt)?);
    }
    let end = if attempt.is_ended_replay() {
        follow::to_end(&host, attempt, Source::None, &signals, style)?
    } else {
        shown::to_end(&host, attempt, &terminal, &signals)?
    };
    follow::conclude(&end, replayed, style)
}

/// A window has one stream each way, and that is a terminal.
fn refuse_streams(arguments: &LaunchArgs, style: Style) -> Result<(), Failure> {
    if arguments.interactive || arguments.stdin.is_some() {
        return Err(Failure::invalid(
            "the input of a window is its terminal; leave -i and --stdin",
        ));
    }
    if style.json {
        return Err(Failure::invalid("a window is shown as it is; --json goes with `run`"));
    }
    Ok(())
}

fn no_terminal() -> Failure {
    Refusal::new(Code::Invalid, "a window needs a terminal as its input and its output")
        .with_hint("`placement run` passes pipes and files through")
        .into()
}
