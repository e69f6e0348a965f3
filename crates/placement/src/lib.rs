#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attempt;
mod attempts;
mod builder;
mod end;
mod error;
mod host;
mod launch;
mod launching;
mod link;
mod observer;
mod output;
mod request;
mod runner_choice;

pub use attempt::{AttemptHandle, Input};
pub use attempts::Attempts;
pub use builder::Builder;
pub use end::End;
pub use error::Error;
pub use host::Placement;
pub use launch::Launch;
pub use link::{InputOutcome, ResizeOutcome};
pub use observer::{Observer, Seen};
pub use output::{Chunk, Output, Text, TextPiece, Utf8Decoder};
pub use placement_contract::{
    Attempt, AttemptId, CapabilityReport, CleanupScope, CleanupState, Clock, Code, Controller,
    Digest, EnvironmentName, Evidence, EvidenceKind, ExecutionState, Exit, ExitSource, Generation,
    Leftovers, Liveness, Mechanism, MechanismReport, OnHostLoss, Outcome, OwnerId, PolicyRef,
    Pruned, Refusal, Status, StdinMode, StreamName, Timeouts, Timestamp, WindowSize,
};
pub use placement_policy::{
    AdmittedTable, CONFIG_BYTES_MAX, Config, ConfigError, EnvironmentTable, HostTable,
    ResourceMode, ResourcesTable,
};
pub use placement_runner::SystemClock;
pub use placement_service::{
    Adopted, AttemptList, Capabilities, ExecutableMeasurement, InputRefused, Interpreter, Kept,
    Pruning, Reconciled, ReconciledAll, ResizeRefused, SessionHolder, StdinClosing, StopMode,
    StoreCheck, Sweep, Swept, Unreadable, Verified, VerifyFault,
};

/// Bounds of what a host passes on, in bytes.
pub mod limits {
    pub use placement_contract::limits::{STDIN_BYTES_MAX, WRITE_BYTES_MAX};
}

/// Time between two sweeps of one host.
pub const SWEEP_DELAY: std::time::Duration =
    std::time::Duration::from_millis(placement_contract::limits::SWEEP_DELAY_MS);

/// The terminal of a host that shows an attempt's window: its size, its raw mode, and the way back.
pub mod terminal {
    pub use placement_process::{RawTerminal, SavedTerminal, terminal_size as size};
}

/// Becoming the runner of an attempt.
///
/// A host that has no `placement-runner` beside it calls [`enter`](runner::enter) before anything
/// else in `main`: it is started again, through `/proc/self/exe`, as the runner of each attempt.
pub mod runner {
    pub use placement_runner::enter;
}
