//! Command-line arguments; every option of later versions is known and refused by name.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::time::Duration;

/// Runs coding agents as native processes that can be trusted.
#[derive(Debug, Parser)]
#[command(name = "placement", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Private root for receipts and homes [default: $XDG_STATE_HOME/placement]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<Utf8PathBuf>,
    /// Owner of the attempts [default: local:<uid>]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) owner: Option<String>,
    /// Configuration file
    #[arg(long, global = true, value_name = "FILE", hide = true)]
    pub(crate) config: Option<Utf8PathBuf>,
    /// Answers in JSON: one object for a single answer, one per line for a stream
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Says more on stderr, the attempt id first
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One attempt in the foreground: streams pass through, cleanup at the end, exits as the child did
    Run(Box<LaunchArgs>),
    /// The same, detached; prints the attempt id
    Start(Box<LaunchArgs>),
    /// Waits until attempts have ended; exits as the last child did
    Wait {
        /// The attempts
        #[arg(required = true, value_name = "ATTEMPT")]
        attempts: Vec<String>,
    },
    /// Takes over the streams of an attempt; what was acknowledged does not come again
    Attach {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
        /// Only watches: acknowledges nothing and takes nothing over
        #[arg(long)]
        observe: bool,
        /// Pumps this terminal's input to the child, if it was launched with a pipe
        #[arg(short = 'i')]
        input: bool,
    },
    /// Stops attempts: SIGTERM, the grace, SIGKILL
    Stop {
        /// The attempts
        #[arg(required = true, value_name = "ATTEMPT")]
        attempts: Vec<String>,
        /// Kills at once; on an uncertain attempt also what is found by its marker
        #[arg(long)]
        force: bool,
    },
    /// Proves the required scope gone and removes the home
    Cleanup(Selection),
    /// Looks again at what became of attempts whose runner is gone
    Reconcile(Selection),
    /// Lists attempts: id, state, cleanup, containment, age, program
    Ps {
        /// Ended and cleaned attempts too
        #[arg(long)]
        all: bool,
    },
    /// Shows the recorded state and beside it one fresh observation
    Show {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
    },
    /// Prints the evidence of an attempt
    Evidence {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
        /// Only rows after this one
        #[arg(long, default_value_t = 0, value_name = "N")]
        after: u64,
        /// At most this many rows [default: all]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Times relative to the first row
        #[arg(long)]
        timeline: bool,
    },
    /// Prints the transcript; observing never slows the child
    Logs {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
        /// Follows until the attempt has ended
        #[arg(short, long)]
        follow: bool,
        /// Only one stream
        #[arg(long, value_enum, value_name = "STREAM")]
        stream: Option<Stream>,
    },
    /// Recomputes the evidence chain and folds it into the state
    Verify {
        #[command(flatten)]
        selection: Selection,
        /// A chain value that was kept elsewhere
        #[arg(long, value_name = "HEX", conflicts_with = "all")]
        head: Option<String>,
    },
    /// Prints what was measured here
    Capabilities,
    /// Explains what is missing here and how to get it
    Doctor,
}

/// One attempt or all of them.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// The attempt
    #[arg(value_name = "ATTEMPT", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) attempt: Option<String>,
    /// All attempts of this owner
    #[arg(long)]
    pub(crate) all: bool,
}

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

/// What happens, once: a pair of words that two options share.
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
    pub(crate) later: LaterArgs,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

/// Options that this version knows and refuses.
#[derive(Debug, Args)]
pub(crate) struct LaterArgs {
    #[arg(long, hide = true)]
    session: Option<String>,
    #[arg(long, hide = true)]
    secret: Vec<String>,
    #[arg(long, hide = true)]
    worktree: bool,
    #[arg(long, hide = true)]
    policy: Option<String>,
    #[arg(long, hide = true)]
    confine: Option<String>,
    #[arg(long, hide = true)]
    memory: Option<String>,
    #[arg(long, hide = true)]
    pids: Option<String>,
    #[arg(long, hide = true)]
    cpu: Option<String>,
    #[arg(long, hide = true)]
    wait_session: Option<String>,
    #[arg(long, hide = true)]
    wait_login: Option<String>,
}

impl LaterArgs {
    /// Returns the first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--session", self.session.is_some()),
            ("--secret", !self.secret.is_empty()),
            ("--worktree", self.worktree),
            ("--policy", self.policy.is_some()),
            ("--confine", self.confine.is_some()),
            ("--memory", self.memory.is_some()),
            ("--pids", self.pids.is_some()),
            ("--cpu", self.cpu.is_some()),
            ("--wait-session", self.wait_session.is_some()),
            ("--wait-login", self.wait_login.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
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
    number
        .checked_mul(unit_ms)
        .map(Duration::from_millis)
        .ok_or_else(|| "is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7_200)));
        for wrong in ["", "5", "s", "-1s", "1.5s", "1d", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
