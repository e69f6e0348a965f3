//! The states of an attempt, its exit, and the scopes that can be cleaned.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $label:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $label)] $variant,)+ }

        impl $name {
            /// Every value, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the wire label.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// Finds the value with a wire label.
            pub fn from_label(label: &str) -> Option<Self> {
                match label { $($label => Some(Self::$variant),)+ _ => None }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.label())
            }
        }
    )+};
}
pub(crate) use labels;

labels! {
    /// Where the execution of an attempt stands.
    ExecutionState {
        /// Recorded; nothing exists outside the store.
        Intended = "intended",
        /// A runner has claimed it; there may be a child behind the gate.
        Starting = "starting",
        /// The child runs.
        Running = "running",
        /// A stop was accepted; the child may still run.
        Stopping = "stopping",
        /// The direct process ended, or never came to be, and that is proven.
        Exited = "exited",
        /// What became of the child cannot be proven.
        Uncertain = "uncertain",
    }
    /// Where the cleanup of an attempt stands.
    CleanupState {
        /// Nothing was cleaned yet.
        Pending = "pending",
        /// The home is gone or was kept by request.
        Complete = "complete",
        /// A cleanup failed; a later one may succeed.
        Uncertain = "uncertain",
    }
    /// What a cleanup proves gone, from weak to strong.
    CleanupScope {
        /// The launched process only.
        DirectProcess = "direct_process",
        /// What remains in the created process group. A new session is a way out of it.
        ProcessGroup = "process_group",
        /// Everything that the child started, `setsid` escapees included.
        ContainedTree = "contained_tree",
    }
    /// How a tree is contained.
    Mechanism {
        /// A cgroup v2 leaf of the attempt; its proof survives the runner.
        Cgroup = "cgroup",
        /// The runner is a child subreaper; its proof dies with it.
        Subreaper = "subreaper",
        /// A PID namespace whose init dies with the runner.
        PidNamespace = "pid_namespace",
    }
    /// What a control group is limited by.
    Controller {
        /// Memory, in bytes.
        Memory = "memory",
        /// Processes and threads.
        Pids = "pids",
        /// Processor time.
        Cpu = "cpu",
    }
    /// How the exit of the child is learnt.
    ExitObservation {
        /// From the process itself, whoever holds the pipes.
        Independent = "independent",
        /// Only after both output streams ended.
        EofGated = "eof_gated",
    }
    /// Who learnt of the exit.
    ExitSource {
        /// The runner waited on the child, or proved that none came to be.
        Runner = "runner",
        /// A reconcile proved the leader absent; the code is not known.
        Reconcile = "reconcile",
        /// A window's terminal ended and the exit was not observed.
        Terminal = "terminal",
        /// An operator settled the attempt.
        Operator = "operator",
    }
    /// How an attempt ended, as far as an exit code tells it.
    Outcome {
        /// The child ended, and how was observed.
        Exited = "exited",
        /// The child ended because its run time was over.
        DeadlineElapsed = "deadline_elapsed",
        /// No child came to be.
        NotStarted = "not_started",
        /// No child came to be: there is no such program.
        ExecutableNotFound = "executable_not_found",
        /// No child came to be: the program cannot be executed, or is not the planned one.
        ExecutableRefused = "executable_refused",
        /// How the child ended was not observed.
        Unknown = "unknown",
    }
    /// An output stream of the child.
    StreamName {
        /// Standard output.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
    }
}

impl ExecutionState {
    /// Says whether a child may live in this state: starting, running or stopping.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Stopping => true,
            Self::Intended | Self::Exited | Self::Uncertain => false,
        }
    }
}

impl CleanupScope {
    /// Says whether this scope is at least as strong as the required one.
    pub fn satisfies(self, required: Self) -> bool {
        self >= required
    }
}

impl ExitObservation {
    /// Says whether this observation is good enough for the required one.
    pub const fn satisfies(self, required: Self) -> bool {
        match (self, required) {
            (Self::Independent, _) | (Self::EofGated, Self::EofGated) => true,
            (Self::EofGated, Self::Independent) => false,
        }
    }
}

/// Both states of an attempt together, as evidence names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptState {
    /// The execution state.
    pub execution: ExecutionState,
    /// The cleanup state.
    pub cleanup: CleanupState,
}

impl AttemptState {
    /// The state of a recorded intent.
    pub const INTENDED: Self =
        Self { execution: ExecutionState::Intended, cleanup: CleanupState::Pending };

    /// Finds the state with a wire label such as `running/pending`.
    pub fn from_label(label: &str) -> Option<Self> {
        let (execution, cleanup) = label.split_once('/')?;
        Some(Self {
            execution: ExecutionState::from_label(execution)?,
            cleanup: CleanupState::from_label(cleanup)?,
        })
    }
}

impl fmt::Display for AttemptState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.execution, self.cleanup)
    }
}

/// How the direct process ended, as its parent saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
pub enum Exit {
    /// It returned a code, 0 to 255.
    Code {
        /// The code.
        code: i32,
    },
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: i32,
        /// Whether a core was dumped.
        core: bool,
    },
}

impl Exit {
    /// Reads an exit back from its text form, as evidence carries it.
    pub fn from_phrase(phrase: &str) -> Option<Self> {
        if let Some(code) = phrase.strip_prefix("code ") {
            return Some(Self::Code { code: code.parse().ok()? });
        }
        let rest = phrase.strip_prefix("signal ")?;
        let (number, core) = match rest.strip_suffix(", core dumped") {
            Some(number) => (number, true),
            None => (rest, false),
        };
        Some(Self::Signal { signal: number.parse().ok()?, core })
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code { code } => write!(formatter, "code {code}"),
            Self::Signal { signal, core: false } => write!(formatter, "signal {signal}"),
            Self::Signal { signal, core: true } => {
                write!(formatter, "signal {signal}, core dumped")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_satisfies_itself_and_the_weaker_ones() {
        for (i, available) in CleanupScope::ALL.iter().enumerate() {
            for (j, required) in CleanupScope::ALL.iter().enumerate() {
                assert_eq!(available.satisfies(*required), i >= j);
            }
        }
    }

    #[test]
    fn an_independent_observation_satisfies_both() {
        use ExitObservation::{EofGated, Independent};
        assert!(Independent.satisfies(Independent) && Independent.satisfies(EofGated));
        assert!(EofGated.satisfies(EofGated) && !EofGated.satisfies(Independent));
    }

    #[test]
    fn an_exit_reads_back_from_its_phrase() {
        for exit in [
            Exit::Code { code: 0 },
            Exit::Code { code: 137 },
            Exit::Signal { signal: 9, core: false },
            Exit::Signal { signal: 11, core: true },
        ] {
            assert_eq!(Exit::from_phrase(&exit.to_string()), Some(exit));
        }
        assert_eq!(Exit::from_phrase("code x"), None);
        assert_eq!(Exit::from_phrase("gone"), None);
    }

    #[test]
    fn a_state_reads_back_from_its_label() {
        for execution in ExecutionState::ALL {
            for cleanup in CleanupState::ALL {
                let state = AttemptState { execution: *execution, cleanup: *cleanup };
                assert_eq!(AttemptState::from_label(&state.to_string()), Some(state));
            }
        }
        assert_eq!(AttemptState::from_label("running"), None);
    }
}
