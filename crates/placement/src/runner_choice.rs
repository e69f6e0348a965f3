//! Which program becomes the runner of an attempt.

use camino::Utf8PathBuf;
use placement_contract::{Code, Refusal};
use placement_service::RunnerCommand;
use std::path::Path;

/// The program that lies beside a host.
const RUNNER_PROGRAM: &str = "placement-runner";

/// What a builder was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum RunnerChoice {
    /// Nothing: the program beside this one, else this one.
    #[default]
    Beside,
    /// The program at this path.
    At(Utf8PathBuf),
    /// This program.
    Itself,
}

impl RunnerChoice {
    /// Finds the program.
    pub(crate) fn command(&self) -> Result<RunnerCommand, Refusal> {
        match self {
            Self::At(path) => at(path),
            Self::Beside => match std::env::current_exe() {
                Ok(own) => beside(&own).map_or_else(itself, Ok),
                Err(_) => itself(),
            },
            Self::Itself => itself(),
        }
    }
}

/// Refuses to open anything in a process that was started as a runner.
///
/// This closes the loop of a host that starts itself, does not call `enter` and opens again.
pub(crate) fn refuse_in_runner() -> Result<(), Refusal> {
    if !placement_runner::is_runner_process() {
        return Ok(());
    }
    Err(Refusal::new(Code::Conflict, "this process was started as a runner and opens no root")
        .with_hint("call placement::runner::enter() before anything else in main"))
}

fn at(path: &Utf8PathBuf) -> Result<RunnerCommand, Refusal> {
    if !path.is_file() {
        let message = format!("there is no runner program at {path:?}");
        return Err(Refusal::new(Code::Invalid, message).with_hint("correct the path"));
    }
    let full = camino::absolute_utf8(path)
        .map_err(|_| Refusal::new(Code::Invalid, "the current directory is gone"))?;
    Ok(RunnerCommand::at(full))
}

fn beside(own: &Path) -> Option<RunnerCommand> {
    let path = own.with_file_name(RUNNER_PROGRAM);
    path.is_file().then(|| RunnerCommand::at(path))
}

fn itself() -> Result<RunnerCommand, Refusal> {
    if placement_runner::was_entered() {
        return Ok(RunnerCommand::this_executable());
    }
    let message = "there is no placement-runner beside this program, and it is none itself";
    Err(Refusal::new(Code::Invalid, message).with_hint(
        "call placement::runner::enter() before anything else in main, put placement-runner \
         beside the program, or name it with runner_at",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn a_program_beside_the_host_is_found() {
        let root = TempRoot::new();
        let host = root.join("host");
        assert_eq!(beside(host.as_std_path()), None);
        std::fs::write(root.join(RUNNER_PROGRAM), "").unwrap();
        let expected = RunnerCommand::at(root.join(RUNNER_PROGRAM));
        assert_eq!(beside(host.as_std_path()), Some(expected));
    }

    #[test]
    fn a_named_program_must_be_there() {
        let refused = RunnerChoice::At("/nowhere/runner".into()).command().unwrap_err();
        assert_eq!(refused.code, Code::Invalid);
        assert!(refused.message.contains("/nowhere/runner"), "{refused}");
    }

    #[test]
    fn a_host_that_never_entered_does_not_start_itself() {
        for choice in [RunnerChoice::Itself, RunnerChoice::Beside] {
            let refused = choice.command().unwrap_err();
            assert!(refused.hint().contains("enter()"), "{refused}");
        }
    }
}
