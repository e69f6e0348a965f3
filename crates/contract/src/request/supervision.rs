//! How a running attempt is supervised.

use super::window::Window;
use crate::exact::object;
use crate::limits::{SPOOL_BYTES_DEFAULT, TRANSCRIPT_BYTES_DEFAULT};
use crate::state::{Controller, Mechanism, labels};
use serde::{Deserialize, Serialize};
use std::time::Duration;

labels! {
    /// What the runner does when its host ends.
    OnHostLoss {
        /// Ends the child within the grace.
        Stop = "stop",
        /// Lets the child run; another host may take over.
        Keep = "keep",
    }
    /// What happens to what is left of the tree after the exit.
    Leftovers {
        /// It is ended: TERM, grace, KILL.
        Stop = "stop",
        /// It is left; the runner stays until the tree is empty.
        Keep = "keep",
    }
    /// Whether writes are confined.
    Confine {
        /// They are not.
        None = "none",
        /// To the granted roots, the homes and TMPDIR.
        WriteRoots = "write_roots",
    }
    /// What the child's standard input is.
    StdinMode {
        /// `/dev/null`.
        None = "none",
        /// A pipe that the recipient writes to.
        Pipe = "pipe",
    }
}

/// How a running attempt is supervised; every field has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Supervision {
    /// What the runner does when its host ends.
    pub on_host_loss: OnHostLoss,
    /// What happens to what is left of the tree after the exit.
    pub leftovers: Leftovers,
    /// Whether writes are confined.
    pub confine: Confine,
    /// The longest run time, in milliseconds; unbounded where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The containment to use; the strongest measured one where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// Whether the proof of an empty tree must outlive the runner.
    pub require_surviving_proof: bool,
    /// What the tree may use of the machine.
    #[serde(skip_serializing_if = "Limits::is_unbounded", deserialize_with = "object")]
    pub limits: Limits,
    /// Unacknowledged bytes that the spool file holds; 0 keeps 256 KiB in memory instead.
    pub spool_bytes_max: u64,
    /// Acknowledged bytes that stay on disk; 0 drops them once acknowledged.
    pub transcript_bytes_max: u64,
    /// Whether the home is kept after the cleanup.
    pub keep_home: bool,
    /// What the child's standard input is.
    pub stdin: StdinMode,
    /// The terminal of a launch in a window; without one, the streams are pipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// Bounds of what an attempt's tree may use; without bound where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory, in bytes, from 1 MiB to 16 TiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads, from 1 to 4 194 304.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// Processor time per time, in thousandths of one processor, from 10 to 8 192 000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
}

impl Limits {
    /// Says whether nothing is bounded.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the controllers that the limits need.
    pub fn controllers(&self) -> impl Iterator<Item = Controller> {
        let bounded = [
            (Controller::Memory, self.memory_bytes),
            (Controller::Pids, self.pids),
            (Controller::Cpu, self.cpu_millis),
        ];
        bounded.into_iter().filter_map(|(controller, bound)| bound.map(|_| controller))
    }
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            on_host_loss: OnHostLoss::Stop,
            leftovers: Leftovers::Stop,
            confine: Confine::None,
            deadline_ms: None,
            mechanism: None,
            require_surviving_proof: false,
            limits: Limits::default(),
            spool_bytes_max: SPOOL_BYTES_DEFAULT,
            transcript_bytes_max: TRANSCRIPT_BYTES_DEFAULT,
            keep_home: false,
            stdin: StdinMode::None,
            window: None,
        }
    }
}

impl Supervision {
    /// Returns the longest run time.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline_ms.map(Duration::from_millis)
    }
}
