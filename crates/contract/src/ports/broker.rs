//! Supplying credentials for launches.

use crate::authority::{CheckedProjection, MaterializedCredential};
use crate::canonical::Digest;
use crate::error::Refusal;
use crate::id::{AttemptId, OwnerId, ProjectionId};
use crate::request::LaunchRequest;
use crate::secret::Secret;
use std::fmt;

/// Supplies credentials: says what a projection is, hands its bytes out, takes a changed login back.
///
/// Called by a host's service from several threads at once, never by a runner. A call may take
/// long; the attempt that waits for it is answered meanwhile and can be stopped. Refusals keep their
/// code; their text reaches callers, so it holds no byte of a value and no other program's words.
pub trait CredentialBroker: Send + Sync + fmt::Debug {
    /// Says what a projection is for the launch that asks, and hands out no byte of it.
    ///
    /// Asked when the launch is prepared, again when it is started, and for each look at a live
    /// attempt; a projection that was revoked or has expired says so itself.
    ///
    /// # Errors
    /// `NOT_FOUND` for one that is not there, DENIED for one that is not for this launch,
    /// UNAVAILABLE where its source did not answer.
    fn check(&self, ask: &ProjectionAsk<'_>) -> Result<CheckedProjection, Refusal>;

    /// Hands out the bytes of a projection, once for each generation key.
    ///
    /// A reply that was lost is not asked for again.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    fn materialize(&self, ask: &ProjectionAsk<'_>, generation_key: &str)
    -> Result<Handed, Refusal>;

    /// Takes back a login file that the program has changed, only where the source is still the one
    /// that it was made from.
    ///
    /// # Errors
    /// UNAVAILABLE where the source could not be read or replaced: it is as it was.
    fn write_back(&self, back: &WriteBack<'_>) -> Result<WrittenBack, Refusal>;
}

/// A projection and the launch that asks for it.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionAsk<'a> {
    /// The projection.
    pub projection_id: &'a ProjectionId,
    /// The launch: owner, attempt, profile and binding are its own.
    pub request: &'a LaunchRequest,
    /// The digest of the launch policy under which it was admitted.
    pub launch_policy_digest: &'a Digest,
}

/// What a broker hands out for a projection.
#[derive(Debug)]
pub struct Handed {
    /// What it says of it.
    pub said: MaterializedCredential,
    /// The bytes, where there are any.
    pub value: Option<Secret>,
}

/// A login file as its program has left it.
#[derive(Debug, Clone, Copy)]
pub struct WriteBack<'a> {
    /// The projection that it was made from.
    pub projection_id: &'a ProjectionId,
    /// For whom it was made.
    pub owner_id: &'a OwnerId,
    /// The attempt that used it.
    pub attempt_id: &'a AttemptId,
    /// The generation that was handed out.
    pub generation: u64,
    /// The digest of the source from which it was made; nothing where there was none.
    pub source_digest: Option<&'a Digest>,
    /// What the file holds now, 1 to 65 536 bytes.
    pub value: &'a Secret,
}

/// What became of a login that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBack {
    /// The source has it.
    Persisted,
    /// The source had the same bytes already.
    Unchanged,
    /// The source was changed by somebody else meanwhile, and stays.
    Superseded,
}
