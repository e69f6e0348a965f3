//! Running other programs, and what a check says when it fails.

use camino::Utf8Path;
use std::fmt;
use std::process::{Command, Stdio};

/// Exit code of a check in which something failed.
const FAILED: u8 = 1;
/// Exit code of a check that could not show anything; clap takes 2 for itself.
pub(crate) const NOTHING_SHOWN: u8 = 3;
/// Exit code of a campaign that found a broken rule.
pub(crate) const FOUND: u8 = 4;

/// What went wrong, as it is shown.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    exit_code: u8,
}

impl Failure {
    /// Makes a failure from its text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit_code: FAILED }
    }

    /// Makes the failure of a check that could not show anything, which a caller may tell from one
    /// that showed a fault.
    pub(crate) fn nothing_shown(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit_code: NOTHING_SHOWN }
    }

    /// Makes the failure of a campaign that found a broken rule, which is told from one that came to no
    /// end.
    pub(crate) fn found(text: impl Into<String>) -> Self {
        Self { text: text.into(), exit_code: FOUND }
    }

    /// Passes on what a run of this program in another place came to, by its exit code.
    pub(crate) fn from_code(code: Option<i32>, text: &str) -> Result<(), Self> {
        match code {
            Some(0) => Ok(()),
            Some(code) if code == i32::from(FOUND) => Err(Self::found(text)),
            Some(code) if code == i32::from(NOTHING_SHOWN) => Err(Self::nothing_shown(text)),
            Some(_) | None => Err(Self::new(text)),
        }
    }

    /// Returns the exit code that says so.
    pub(crate) const fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Makes the failure of a file operation.
    pub(crate) fn io(operation: &str, path: &Utf8Path, source: &std::io::Error) -> Self {
        Self::new(format!("{operation} {path}: {source}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Turns what a check found into its outcome, one line each.
pub(crate) fn conclude(check: &str, findings: &[String]) -> Result<(), Failure> {
    if findings.is_empty() {
        println!("{check}: ok");
        return Ok(());
    }
    Err(Failure::new(format!("{check}: {} found\n  {}", findings.len(), findings.join("\n  "))))
}

/// Makes a command for a program on the search path.
#[expect(
    clippy::disallowed_methods,
    reason = "checks run cargo, npm and test programs as they are"
)]
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

/// Runs a command with this process's own streams.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

/// Runs a command and returns what it wrote to its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| cannot_run(command, &error))?;
    if !output.status.success() {
        return Err(failed(command, output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::new(format!("{} wrote something else than UTF-8", shown(command))))
}

/// Shows a command as one could type it, with the variables that were set for it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.display(), quoted(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &std::ffi::OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn cannot_run(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot run {}: {error}", shown(command)))
}

fn failed(command: &Command, status: std::process::ExitStatus) -> Failure {
    Failure::new(format!("failed ({status}): {}", shown(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_as_it_could_be_typed() {
        let mut command = program("sh");
        command.args(["-c", "exit '3'"]).env("A", "b c");
        let failure = run(&mut command).unwrap_err().to_string();
        assert!(failure.ends_with(r"A='b c' sh -c 'exit '\''3'\'''"), "{failure}");
        assert!(failure.contains("exit status: 3"), "{failure}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(&mut program("/nowhere/at-all")).unwrap_err().to_string();
        assert!(failure.starts_with("cannot run /nowhere/at-all:"), "{failure}");
    }

    #[test]
    fn findings_fail_with_their_number() {
        assert!(conclude("floors", &[]).is_ok());
        let failure = conclude("floors", &["a".into(), "b".into()]).unwrap_err();
        assert_eq!(failure.to_string(), "floors: 2 found\n  a\n  b");
    }
}
