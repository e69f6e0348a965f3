//! Options of a launch.

use super::later::LaterOptions;
use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use std::time::Duration;

/// A program and how it is launched.
#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Launches at most once under this key; later runs follow the recorded attempt
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<Utf8PathBuf>,
    /// Directories the program may write [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Vec<Utf8PathBuf>,
    /// Directories the program reads
    #[arg(long, value_name = "DIR")]
    pub(crate) read: Vec<Utf8PathBuf>,
    /// Environment values; nothing else of this environment passes but LANG, USER and the like
    #[arg(long, value_name = "K=V")]
    pub(crate) env: Vec<String>,
    /// Requires that cleanup can prove this scope gone [default: the strongest measured one]
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) require: Option<Scope>,
    /// What happens when this host ends [default: stop for run, keep for start]
    #[arg(long, value_enum, value_name = "RULE")]
    pub(crate) on_host_loss: Option<StopOrKeep>,
    /// What happens to what is left after the exit
    #[arg(long, value_enum, value_name = "RULE", default_value = "stop")]
    pub(crate) leftovers: StopOrKeep,
    /// Pumps this terminal's input to the program
    #[arg(short = 'i', conflicts_with = "stdin")]
    pub(crate) interactive: bool,
    /// Input of the program: none, pipe or a file
    #[arg(long, value_name = "none|pipe|FILE")]
    pub(crate) stdin: Option<String>,
    /// Containment to use [default: the strongest measured one]
    #[arg(long, value_enum, value_name = "MECHANISM")]
    pub(crate) mechanism: Option<MechanismName>,
    /// Stops the program after this time, such as 90s, 15m or 2h
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,
    /// Time between SIGTERM and SIGKILL [default: 5s]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) grace: Option<Duration>,
    /// Keeps the private home after the cleanup
    #[arg(long)]
    pub(crate) keep_home: bool,
    /// Keeps no output on disk once it was delivered
    #[arg(long)]
    pub(crate) no_transcript: bool,
    #[command(flatten)]
    pub(crate) later: LaterOptions,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

/// What happens to what still runs: the two words that two options share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StopOrKeep {
    /// End it
    Stop,
    /// Let it run
    Keep,
}

/// A scope that cleanup must prove gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// The launched process only
    DirectProcess,
    /// Its process group
    ProcessGroup,
    /// Everything that it started
    ContainedTree,
}

/// A way to contain the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum MechanismName {
    /// A cgroup v2 leaf
    Cgroup,
    /// The runner adopts and sweeps
    Subreaper,
    /// A PID namespace
    PidNamespace,
}

/// Reads a duration: a whole number and ms, s, m or h.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("give a whole number and ms, s, m or h, such as 90s".to_owned()),
    };
    let number: u64 =
        number.parse().map_err(|_| "give a whole number and ms, s, m or h, such as 90s")?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in ["", "5", "s", "-1s", "1.5s", "1d", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
