//! The public view of one attempt.

use crate::canonical::Digest;
use crate::clock::Timestamp;
use crate::exact::Line;
use crate::id::{ActionId, AttemptId, Generation, Id, OwnerId, RunnerId, SessionRef};
use crate::limits::LOGIN_LINE_BYTES_MAX;
use crate::state::{
    CleanupScope, CleanupState, ExecutionState, Exit, ExitObservation, ExitSource, Mechanism,
    Outcome, labels,
};
use serde::{Deserialize, Serialize};

/// What is recorded of one attempt.
///
/// Never holds the recipient, process ids, the stored request or a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The owner's action.
    pub action_id: ActionId,
    /// The owner.
    pub owner_id: OwnerId,
    /// The owner's incarnation.
    pub owner_incarnation: u64,
    /// The digest of the admitted request.
    pub request_digest: Digest,
    /// The program as the launch named it.
    pub program: String,
    /// The execution state.
    pub execution_state: ExecutionState,
    /// The cleanup state.
    pub cleanup_state: CleanupState,
    /// The strongest scope that was measured when it was admitted.
    pub capability: CleanupScope,
    /// The scope that cleanup must prove gone.
    pub required_cleanup: CleanupScope,
    /// How its tree is contained; absent where only the group is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// How its exit is learnt.
    pub exit_observation: ExitObservation,
    /// Who learnt of the exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_source: Option<ExitSource>,
    /// The exit, where it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// By which proof the tree is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_gone_by: Option<String>,
    /// The current attachment.
    pub attachment_generation: Generation,
    /// The retained session that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_ref: Option<SessionRef>,
    /// The opaque key of its home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_ref: Option<String>,
    /// The runner that is recorded and has not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerId>,
    /// How many rows of evidence there are.
    pub evidence_count: u64,
    /// The head of the evidence chain.
    pub chain_head: Digest,
    /// When the intent was recorded.
    pub created_at: Timestamp,
    /// When the last row of evidence was recorded.
    pub updated_at: Timestamp,
    /// When a repeated observation was last made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_at: Option<Timestamp>,
    /// Whether its evidence and directories were removed since, and only a receipt is left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pruned: bool,
    /// What its preparation advises; never recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The receipt that is left of an attempt whose evidence and directories were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pruned {
    /// The attempt as it was last recorded.
    pub attempt: Attempt,
    /// How it ended, as its evidence told it.
    pub outcome: Outcome,
    /// When it was removed.
    pub pruned_at: Timestamp,
}

/// Advice that comes with a prepared launch and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// What it is about.
    pub code: NoticeCode,
    /// The provider.
    pub provider: Id,
    /// What to run, for display.
    pub command: Line<LOGIN_LINE_BYTES_MAX>,
}

labels! {
    /// What a notice is about.
    NoticeCode {
        /// Nothing tells of a login of the provider.
        LoginRequired = "LOGIN_REQUIRED",
    }
}

/// One fresh observation of an attempt's leader, never folded into the recorded state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Liveness {
    /// Whether anything could be said.
    pub observed: bool,
    /// Whether the recorded leader lives, where that could be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive: Option<bool>,
    /// When it was looked.
    pub at: Timestamp,
    /// By which means, in a fixed phrase.
    pub detail: String,
}

/// The recorded state of an attempt and beside it one fresh observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// What is recorded.
    pub attempt: Attempt,
    /// What was seen just now.
    pub liveness: Liveness,
    /// What the runner answered, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerStatus>,
    /// Whether the child's HOME is placement's own directory; of an attempt with a session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_home: Option<bool>,
}

/// What a runner says of itself; counters saturate and never fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerStatus {
    /// What the runner has come to, committed or not.
    pub execution: ExecutionState,
    /// The exit, once it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Output streams that ended, 0 to 2.
    pub eof_seen: u8,
    /// Bytes of output that nobody acknowledged.
    pub unacknowledged_bytes: u64,
    /// The child waits because the spool is full.
    pub output_full: bool,
    /// The current attachment.
    pub generation: Generation,
    /// Processes of the tree besides the leader, where they can be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descendants: Option<u32>,
}
