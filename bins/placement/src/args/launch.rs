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
    /// Launch policy [default: the one that the configuration file names, else placement.default]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Goes on with this session: HOME is its retained home, for one attempt at a time
    #[arg(long, value_name = "REF")]
    pub(crate) session: Option<String>,
    /// Waits this long, such as 10m, for a session that another attempt holds [default: not at all]
    #[arg(long, value_parser = duration, value_name = "DURATION", requires = "session")]
    pub(crate) wait_session: Option<Duration>,
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
    /// Memory of everything that the program starts, such as 512MiB or 2GiB; without swap
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// Processes and threads of everything that the program starts
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<u64>,
    /// Processors of everything that the program starts, such as 1.5
    #[arg(long, value_parser = cpu_millis, value_name = "CORES")]
    pub(crate) cpu: Option<u64>,
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

/// Reads a number of bytes: a whole number, and K, M, G or T for powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    const WANTED: &str =
        "give a whole number of bytes, or one and KiB, MiB, GiB or TiB, such as 64MiB";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let power = match unit {
        "" | "B" => 0,
        "K" | "KiB" => 1,
        "M" | "MiB" => 2,
        "G" | "GiB" => 3,
        "T" | "TiB" => 4,
        _ => return Err(WANTED.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| WANTED)?;
    number.checked_mul(1024_u64.pow(power)).ok_or_else(|| "is too much".to_owned())
}

/// Reads a number of processors with up to three decimals, in thousandths.
fn cpu_millis(text: &str) -> Result<u64, String> {
    const WANTED: &str = "give a number of processors with up to three decimals, such as 1.5";
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(decimals) || decimals.len() > 3 {
        return Err(WANTED.to_owned());
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().map_err(|_| WANTED)?;
    let whole: u64 = whole.parse().map_err(|_| WANTED)?;
    let millis = whole.checked_mul(1_000).and_then(|millis| millis.checked_add(thousandths));
    millis.ok_or_else(|| "is too much".to_owned())
}

const DURATION_RULE: &str = "give a whole number and ms, s, m, h or d, such as 90s";

/// Reads a duration: a whole number and ms, s, m, h or d.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DURATION_RULE.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| DURATION_RULE)?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "is too long".to_owned())
}

/// Reads a duration between two passes: at least a millisecond, so that nothing spins.
pub(super) fn pause(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be at least 1ms".to_owned()),
        pause => Ok(pause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_whole_number_with_a_unit_or_without() {
        assert_eq!(bytes("67108864"), Ok(64 << 20));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        for wrong in ["", "MiB", "-1M", "1.5G", "64MB", "64mib", "1 G", "17179869185TiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processors_have_up_to_three_decimals() {
        for (text, millis) in [("1", 1_000), ("1.5", 1_500), ("0.01", 10), ("2.125", 2_125)] {
            assert_eq!(cpu_millis(text), Ok(millis), "{text}");
        }
        for wrong in ["", ".", "1.", ".5", "-1", "1.2345", "1e3", "one", "99999999999999999999"] {
            assert!(cpu_millis(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        assert_eq!(duration("30d"), Ok(Duration::from_hours(720)));
        for wrong in ["", "5", "s", "-1s", "1.5s", "1w", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
