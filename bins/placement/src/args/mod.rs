//! Command-line arguments; every option of later versions is known and refused by name.

mod later;
mod launch;

pub(crate) use later::LaterCommand;
pub(crate) use launch::{LaunchArgs, MechanismName, Scope, StopOrKeep};

use camino::Utf8PathBuf;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::time::Duration;

/// Runs coding agents as native processes that can be trusted.
#[derive(Debug, Parser)]
#[command(name = "placement", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Private root for receipts and homes [default: ~/.local/state/placement]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) root: Option<Utf8PathBuf>,
    /// Owner of the attempts [default: local:<uid>]
    #[arg(long, global = true, value_name = "ID", help_heading = "Global options")]
    pub(crate) owner: Option<String>,
    /// Configuration file [default: ~/.config/placement/config.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<Utf8PathBuf>,
    /// Answers in JSON: one object for a single answer, one per line for a stream
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Says more on stderr, the attempt id first
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Describes what is offered, without what is known only to be refused by name.
    pub(crate) fn offered() -> clap::Command {
        visible(&Self::command())
    }
}

fn visible(command: &clap::Command) -> clap::Command {
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let seen = clap::Command::new(command.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments.cloned())
        .subcommands(commands.map(visible));
    match command.get_about() {
        Some(about) => seen.about(about.clone()),
        None => seen,
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One attempt in the foreground: streams pass through, cleanup at the end, exits as the child did
    Run(Box<LaunchArgs>),
    /// The same, detached; prints the attempt id
    Start(Box<LaunchArgs>),
    /// The same on a terminal of its own, shown in this one and resized with it
    Window(Box<LaunchArgs>),
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
        #[arg(value_name = "ATTEMPT", required_unless_present = "all", conflicts_with = "all")]
        attempts: Vec<String>,
        /// All attempts of this owner that run
        #[arg(long)]
        all: bool,
        /// Kills at once; on an uncertain attempt also what is found by its marker
        #[arg(long)]
        force: bool,
    },
    /// Closes the input of an attempt's program, after everything that was written to it
    CloseStdin {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
    },
    /// Proves the required scope gone and removes the home
    Cleanup(Selection),
    /// Looks again at what became of attempts whose runner is gone
    Reconcile(Selection),
    /// Settles an uncertain attempt on an operator's word; cleanup still asks for its proof
    Resolve {
        /// The attempt
        #[arg(value_name = "ATTEMPT")]
        attempt: String,
        /// Says that the caller is an operator: whom the configuration names, else who owns the root
        #[arg(long)]
        operator: bool,
        /// What it is settled as
        #[arg(long = "as", value_enum, value_name = "STATE")]
        state: Settled,
        /// Why, in 1 to 1024 bytes; it is kept as evidence
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Removes ended and cleaned attempts with all that is kept of them; a receipt of each stays
    Prune {
        /// Only attempts that have not changed for so long, such as 12h or 30d
        #[arg(long, value_parser = launch::duration, value_name = "DURATION")]
        older_than: Duration,
    },
    /// Looks at what lives, of all owners, and settles what has lost its runner: at most 64 attempts
    Sweep {
        /// Goes on until a signal ends it
        #[arg(long)]
        watch: bool,
        /// Time between two passes
        #[arg(
            long,
            requires = "watch",
            value_parser = launch::pause,
            value_name = "DURATION",
            default_value = "30s"
        )]
        every: Duration,
    },
    /// Binds the root to this machine: it was moved here from another one, and nothing lives in it
    AdoptRoot,
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
    /// Measures a program: digest, kind, interpreter and size
    Measure {
        /// The program's file
        #[arg(value_name = "PATH")]
        path: Utf8PathBuf,
    },
    /// Prints what was measured here
    Capabilities,
    /// Explains what is missing here and how to get it
    Doctor,
    /// Prints the completions of a shell
    Completions {
        /// The shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: Shell,
    },
    /// Prints the manual page, or the one of a command
    Man {
        /// The command
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
    #[command(flatten)]
    Later(LaterCommand),
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

/// What an operator settles an attempt as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Settled {
    /// Its program has ended, in a way that nobody saw
    Exited,
}

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
        Cli::offered().debug_assert();
    }

    #[test]
    fn a_watch_pauses_as_long_as_the_library_says_and_never_not_at_all() {
        let every = |words: &[&str]| match Cli::try_parse_from(
            [&["placement", "sweep", "--watch"], words].concat(),
        ) {
            Ok(Cli { command: Command::Sweep { every, .. }, .. }) => Some(every),
            Ok(_) | Err(_) => None,
        };
        assert_eq!(every(&[]), Some(placement::SWEEP_DELAY));
        assert_eq!(every(&["--every", "0s"]), None);
    }

    #[test]
    fn the_help_names_nothing_of_later_versions() {
        let help = Cli::command().render_long_help().to_string();
        for word in ["worktree", "--secret", "--wait-login"] {
            assert!(!help.contains(word), "{word}");
        }
    }
}
