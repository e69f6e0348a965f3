//! Evidence: what was seen, by which means, and the states before and after.

use crate::canonical::Digest;
use crate::clock::Timestamp;
use crate::state::{AttemptState, labels};
use serde::{Deserialize, Serialize};

labels! {
    /// What a row of evidence says; the order is that of an attempt's life.
    EvidenceKind {
        /// The launch was admitted and recorded; nothing else exists.
        IntentRecorded = "intent.recorded",
        /// A recipient was bound under a new generation.
        Attach = "attach",
        /// The runner accepted the new recipient.
        AttachFenced = "attach.fenced",
        /// The runner did not answer the attachment while the attempt was live.
        AttachUnfenced = "attach.unfenced",
        /// The runner refused the attachment; the former one stands.
        AttachRefused = "attach.refused",
        /// The runner of an ended attempt did not answer the attachment.
        AttachUnanswered = "attach.unanswered",
        /// A grant no longer held when the start asked again.
        GrantRefused = "grant.refused",
        /// The host's definitions or the launch policy no longer admitted the launch when the start
        /// asked again.
        PolicyRefused = "policy.refused",
        /// A runner claimed the attempt.
        RunnerStarted = "runner.started",
        /// The runner ended before it acknowledged the start.
        RunnerExited = "runner.exited",
        /// The private home was made.
        HomeCreated = "home.created",
        /// The private home could not be made.
        HomeFailed = "home.failed",
        /// The retained home of the session was checked and is the child's HOME.
        SessionAttached = "session.attached",
        /// The retained home of the session could not be used.
        SessionFailed = "session.failed",
        /// A name of the environment has two owners.
        EnvironmentRefused = "environment.refused",
        /// A value of the environment could not be resolved.
        EnvironmentFailed = "environment.failed",
        /// The working directory is not there or not inside its grant.
        WorkdirFailed = "workdir.failed",
        /// The program was measured right before it is executed.
        ExecutableMeasured = "executable.measured",
        /// The program is not the one that was planned.
        ExecutableChanged = "executable.changed",
        /// The program cannot be executed or measured.
        ExecutableRefused = "executable.refused",
        /// The program was not found.
        ExecutableNotFound = "executable.not_found",
        /// A child may exist from here on; names its containment.
        ChildCreating = "child.creating",
        /// The child's identity was recorded while it waits behind the gate.
        ChildIdentified = "child.identified",
        /// The program could not be executed after the gate opened.
        ChildStartFailed = "child.start_failed",
        /// The program runs.
        ChildStarted = "child.started",
        /// Proof that no child came to be.
        ChildNotStarted = "child.not_started",
        /// Initial input was written whole.
        StdinAccepted = "stdin.accepted",
        /// The child's input was closed.
        StdinClosed = "stdin.closed",
        /// Input was written in part, or may have been.
        StdinUncertain = "stdin.uncertain",
        /// The spool could not be written; the child waits.
        SpoolFailed = "spool.failed",
        /// The host ended or let go.
        HostLost = "host.lost",
        /// Another host took the place of the lost one.
        HostAdopted = "host.adopted",
        /// The run time that the launch allows is over.
        DeadlineElapsed = "deadline.elapsed",
        /// A grant of a live attempt no longer holds; its stop is pending until the exit.
        GrantRevoked = "grant.revoked",
        /// A stop was accepted.
        StopRequested = "stop.requested",
        /// A stop came before any runner claimed the attempt.
        StopBeforeStart = "stop.before_start",
        /// A stop could not be proven to reach anything.
        StopUnproven = "stop.unproven",
        /// SIGTERM was sent.
        SignalTerm = "signal.term",
        /// SIGKILL was sent.
        SignalKill = "signal.kill",
        /// A verified leader or its group was signalled without a runner.
        SignalGroup = "signal.group",
        /// The exit of the direct process was observed.
        ChildExited = "child.exited",
        /// The kernel killed processes of the tree because the memory that the launch allows was used up.
        ChildOomKilled = "child.oom_killed",
        /// The drain after the exit ran out of time; a stream is truncated.
        OutputDrainElapsed = "output.drain_elapsed",
        /// Bytes held in memory found no recipient in time.
        OutputLost = "output.lost",
        /// What was left of the tree after the exit was ended.
        LeftoversStopped = "leftovers.stopped",
        /// Processes outside the group are still there and are left alone.
        LeftoversReported = "leftovers.reported",
        /// The whole tree is proven gone.
        TreeGone = "tree.gone",
        /// The process group is proven gone; nothing is said of the tree.
        GroupGone = "group.gone",
        /// The runner ended in order.
        RunnerFinished = "runner.finished",
        /// Rows that a runner could not commit were taken in from its exit record.
        RecordTaken = "record.taken",
        /// A reconcile saw the leader alive.
        ReconcileAlive = "reconcile.alive",
        /// A reconcile proved the leader absent.
        ReconcileAbsent = "reconcile.absent",
        /// A reconcile heard from the runner.
        ReconcileSupervised = "reconcile.supervised",
        /// A reconcile could not observe the leader.
        ReconcileUnobserved = "reconcile.unobserved",
        /// A reconcile found no identity and no runner.
        ReconcileUnidentified = "reconcile.unidentified",
        /// An operator settled what could not be proven, and says why.
        OperatorResolved = "operator.resolved",
        /// The required scope is gone and the home was removed.
        CleanupComplete = "cleanup.complete",
        /// The required scope is not proven gone; nothing was removed.
        CleanupRefused = "cleanup.refused",
        /// The removal failed; a later cleanup may succeed.
        CleanupFailed = "cleanup.failed",
    }
}

/// One row of evidence, as replies carry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Its place in the attempt's evidence, from 1.
    pub sequence: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What it says.
    pub kind: EvidenceKind,
    /// The states before, as `execution/cleanup`; absent in the first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The states after, as `execution/cleanup`.
    pub to: String,
    /// A fixed phrase with ids, at most 2048 bytes.
    pub detail: String,
    /// The chain value: a digest over the previous one and this row.
    pub chain: Digest,
}

impl Evidence {
    /// Returns the states after this row, if they are well formed.
    pub fn state_after(&self) -> Option<AttemptState> {
        AttemptState::from_label(&self.to)
    }
}

/// Cuts a detail to its bound at a character boundary.
pub fn bounded_detail(detail: &str) -> String {
    let mut text = detail.to_owned();
    crate::error::truncate_at_char(&mut text, crate::limits::DETAIL_BYTES_MAX);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_noun_dot_past_participle_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in EvidenceKind::ALL {
            assert!(seen.insert(kind.label()), "{kind} twice");
            assert!(kind.label().bytes().all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'_'));
        }
    }

    #[test]
    fn a_long_detail_is_cut() {
        assert_eq!(bounded_detail(&"é".repeat(2_000)).len(), 2_048);
    }
}
