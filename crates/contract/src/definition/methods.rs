//! The operations that a placement binding has a target for.

use crate::id::Id;
use crate::state::labels;
use serde::{Deserialize, Serialize};

labels! {
    /// An operation of the contract that a binding has a target for.
    Method {
        /// Binds a recipient.
        Attach = "attach",
        /// Tells what was measured.
        Capabilities = "capabilities",
        /// Removes what a proven end left.
        Cleanup = "cleanup",
        /// Ends the input of a session.
        CloseStdin = "close_stdin",
        /// Tells what is recorded.
        Evidence = "evidence",
        /// Measures a program.
        MeasureExecutable = "measure_executable",
        /// Admits a launch.
        Prepare = "prepare",
        /// Looks again.
        Reconcile = "reconcile",
        /// Starts the child.
        Start = "start",
        /// Tells the state.
        Status = "status",
        /// Ends the child.
        Stop = "stop",
    }
}

/// The function behind each of the eleven operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodTargets {
    /// Binds a recipient.
    pub attach: Id,
    /// Tells what was measured.
    pub capabilities: Id,
    /// Removes what a proven end left.
    pub cleanup: Id,
    /// Ends the input of a session.
    pub close_stdin: Id,
    /// Tells what is recorded.
    pub evidence: Id,
    /// Measures a program.
    pub measure_executable: Id,
    /// Admits a launch.
    pub prepare: Id,
    /// Looks again.
    pub reconcile: Id,
    /// Starts the child.
    pub start: Id,
    /// Tells the state.
    pub status: Id,
    /// Ends the child.
    pub stop: Id,
}

impl MethodTargets {
    /// Returns the function behind an operation.
    pub const fn target(&self, method: Method) -> &Id {
        match method {
            Method::Attach => &self.attach,
            Method::Capabilities => &self.capabilities,
            Method::Cleanup => &self.cleanup,
            Method::CloseStdin => &self.close_stdin,
            Method::Evidence => &self.evidence,
            Method::MeasureExecutable => &self.measure_executable,
            Method::Prepare => &self.prepare,
            Method::Reconcile => &self.reconcile,
            Method::Start => &self.start,
            Method::Status => &self.status,
            Method::Stop => &self.stop,
        }
    }
}
