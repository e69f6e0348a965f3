//! What is launched while the campaign kills, and the words of a case.

use camino::Utf8Path;
use placement::Mechanism;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many lines a child prints.
const LINES: usize = 24;

/// One life of an attempt; together they come by every crash point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Scenario {
    /// The child prints and ends by itself; it outlives its host.
    Ends,
    /// The child ends and leaves processes behind, one in its group and one in a session of its own.
    Leaves,
    /// The child and what it started ignore SIGTERM and live until the host is asked to end.
    Stopped,
    /// The runner is killed while the child lives, and the host finds that.
    Lost,
    /// The file is no program, which only the exec tells.
    Refused,
    /// A second host starts the attempt while the runner of the first one has not claimed it.
    Twins,
    /// The store cannot be written when the child ends, the exit record is taken in afterwards, and
    /// in the end the attempt is pruned.
    Aftermath,
}

/// How the tree is contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Contained {
    Cgroup,
    Subreaper,
    PidNamespace,
    /// Only the process group is cleaned.
    Group,
}

/// Who is killed at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Victim {
    Host,
    Runner,
    Both,
}

impl Scenario {
    /// Those that are driven through every point that is theirs.
    pub(super) const DRIVEN: [Self; 6] =
        [Self::Ends, Self::Leaves, Self::Stopped, Self::Lost, Self::Refused, Self::Aftermath];

    /// The words after the program's own options.
    pub(super) fn program(self, work: &Utf8Path) -> Vec<String> {
        let lines = format!(
            "i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); printf 'line %06d\\n' $i; \
             [ $((i % 8)) -eq 0 ] && sleep 0.02; done"
        );
        let tree = "sleep 300 >/dev/null 2>&1 & setsid sleep 300 >/dev/null 2>&1 &";
        let ran = "echo ran >> children";
        let script = match self {
            Self::Ends | Self::Twins => format!("{ran}; {lines}; exit 7"),
            Self::Leaves => format!("{ran}; {tree} {lines}; exit 0"),
            Self::Stopped => {
                format!("trap '' TERM; {ran}; {tree} {lines}; echo up > up; exec sleep 300")
            }
            Self::Lost => format!("{ran}; {tree} {lines}; echo up > up; exec sleep 300"),
            Self::Aftermath => {
                format!(
                    "{ran}; {lines}; echo up > up; until [ -e go ]; do sleep 0.01; done; exit 7"
                )
            }
            Self::Refused => return vec![work.join("broken").into_string()],
        };
        vec!["/bin/sh".to_owned(), "-c".to_owned(), script]
    }

    /// Whether the child outlives its host.
    pub(super) const fn on_host_loss(self) -> &'static str {
        match self {
            Self::Ends | Self::Twins | Self::Aftermath => "keep",
            Self::Leaves | Self::Stopped | Self::Lost | Self::Refused => "stop",
        }
    }

    /// Whether the child lives until somebody ends it.
    pub(super) const fn lives(self) -> bool {
        matches!(self, Self::Stopped | Self::Lost)
    }

    /// Everything that a child prints that is let to its end.
    pub(super) fn text(self) -> String {
        match self {
            Self::Refused => String::new(),
            Self::Ends
            | Self::Leaves
            | Self::Stopped
            | Self::Lost
            | Self::Twins
            | Self::Aftermath => (1..=LINES).map(line).collect(),
        }
    }
}

fn line(number: usize) -> String {
    format!("line {number:06}\n")
}

impl Contained {
    pub(super) const ALL: [Self; 4] =
        [Self::Cgroup, Self::Subreaper, Self::PidNamespace, Self::Group];

    /// The mechanism, where it is one.
    pub(super) const fn mechanism(self) -> Option<Mechanism> {
        match self {
            Self::Cgroup => Some(Mechanism::Cgroup),
            Self::Subreaper => Some(Mechanism::Subreaper),
            Self::PidNamespace => Some(Mechanism::PidNamespace),
            Self::Group => None,
        }
    }

    /// The option of a launch.
    pub(super) const fn option(self) -> [&'static str; 2] {
        match self {
            Self::Cgroup => ["--mechanism", "cgroup"],
            Self::Subreaper => ["--mechanism", "subreaper"],
            Self::PidNamespace => ["--mechanism", "pid_namespace"],
            Self::Group => ["--require", "process_group"],
        }
    }
}

impl Victim {
    pub(super) const ALL: [Self; 3] = [Self::Host, Self::Runner, Self::Both];

    pub(super) const fn includes_host(self) -> bool {
        matches!(self, Self::Host | Self::Both)
    }

    pub(super) const fn includes_runner(self) -> bool {
        matches!(self, Self::Runner | Self::Both)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Ends => "ends",
            Self::Leaves => "leaves",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Twins => "twins",
            Self::Aftermath => "aftermath",
        })
    }
}

impl fmt::Display for Contained {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Cgroup => "cgroup",
            Self::Subreaper => "subreaper",
            Self::PidNamespace => "pid_namespace",
            Self::Group => "process_group",
        })
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Host => "host",
            Self::Runner => "runner",
            Self::Both => "both",
        })
    }
}
