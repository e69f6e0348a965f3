//! `run`: one attempt in the foreground.

use super::follow;
use super::launching;
use super::stdin::Source;
use crate::args::LaunchArgs;
use crate::context::Context;
use crate::failure::{Failure, say};
use crate::signals::Signals;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{End, Exit, OnHostLoss, Placement};

pub(crate) fn run(arguments: &LaunchArgs, context: &Context) -> Result<u8, Failure> {
    launching::refuse_later(arguments)?;
    let signals = Signals::take()?;
    let host = context.open()?;
    let mut launch = launching::launch(arguments, OnHostLoss::Stop)?;
    let source = Source::of(arguments)?;
    if !matches!(source, Source::None) {
        launch = launch.stdin_pipe();
    }
    let attempt = launching::begin(&host, &launch, Some(&signals))?;
    let style = context.style();
    if style.verbose {
        say(&format!("attempt {}", attempt.id()));
    }
    let replayed = attempt.is_replay();
    if replayed {
        say(&launching::replayed(&attempt)?);
    }
    let end = follow::to_end(&host, attempt, source, &signals, style)?;
    if let Some(hint) = private_home_hint(&arguments.program, &end, &host, context) {
        say(&hint);
    }
    follow::conclude(&end, replayed, style)
}

/// Explains a failure of a program that is kept in the user's own home, and so may look for its
/// settings there: rustup's cargo, nvm's npm.
fn private_home_hint(
    program: &[String],
    end: &End,
    host: &Placement,
    context: &Context,
) -> Option<String> {
    match end.exit()? {
        Exit::Code { code } if code != 0 => {}
        Exit::Code { .. } | Exit::Signal { .. } => return None,
    }
    let name = program.first()?;
    let home = context.user_home()?;
    let path = found(name, &host.search_path())?;
    path.starts_with(home).then(|| {
        format!(
            "{name} lives in your home, and the child had a private HOME; if it needs RUSTUP_HOME, \
             CARGO_HOME, NVM_DIR or the like, pass them by --env NAME=VALUE"
        )
    })
}

fn found(name: &str, search_path: &str) -> Option<Utf8PathBuf> {
    if name.contains('/') {
        return Some(Utf8PathBuf::from(name));
    }
    search_path
        .split(':')
        .map(|directory| Utf8Path::new(directory).join(name))
        .find(|path| path.is_file())
}
