//! Recording an intent, or finding the one that is recorded.

use crate::error::StoreError;
use crate::evidence::{NewRow, insert};
use crate::find::{exists, load, load_by_key};
use crate::ledger;
use crate::row::Row;
use crate::session::{SessionHolder, holder};
use crate::sql::{failed, to_column};
use crate::write::{Durability, Store};
use placement_contract::evidence::bounded_detail;
use placement_contract::{
    Attempt, AttemptState, CleanupScope, CleanupState, Code, Digest, EvidenceKind, ExecutionState,
    ExitObservation, Generation, LaunchRequest, Mechanism, Pruned, Refusal, SessionRef, Timestamp,
};
use rusqlite::{Transaction, named_params};

/// What is recorded with an intent.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt<'a> {
    /// The admitted request, for its ids and what it requires.
    pub request: &'a LaunchRequest,
    /// The digest under which a retry is recognized.
    pub digest: &'a Digest,
    /// The request as it was resolved; must decode and be the same attempt's.
    pub request_json: &'a str,
    /// The grants as they were resolved.
    pub grants_json: Option<&'a str>,
    /// The strongest scope that was measured.
    pub capability: CleanupScope,
    /// How the exit is learnt.
    pub exit_observation: ExitObservation,
    /// How the tree will be contained.
    pub mechanism: Option<Mechanism>,
    /// The key of the home that will be made.
    pub home_key: Option<&'a str>,
}

/// What became of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intended {
    /// It was recorded now.
    Recorded(Row),
    /// The same request under the same key was recorded before; this is where it stands.
    Replayed(Row),
    /// The same request under the same key was recorded before and is pruned; this is its receipt.
    Pruned(Pruned),
}

impl Intended {
    /// Returns the public view in each case.
    pub fn into_attempt(self) -> Attempt {
        match self {
            Self::Recorded(row) | Self::Replayed(row) => row.attempt(),
            Self::Pruned(pruned) => pruned.attempt,
        }
    }
}

/// An intent cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum IntendError {
    /// The owner used the key for another request.
    #[error("the idempotency key was used for another request")]
    KeyTaken,
    /// The attempt id is taken; whoever owns it, the text is this one.
    #[error("the attempt id is already recorded")]
    AttemptTaken,
    /// Another attempt of the owner holds the session.
    #[error("{0}")]
    SessionHeld(Box<SessionHolder>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<IntendError> for Refusal {
    fn from(error: IntendError) -> Self {
        match error {
            IntendError::KeyTaken | IntendError::AttemptTaken => {
                Self::new(Code::Conflict, error.to_string())
            }
            IntendError::SessionHeld(holder) => holder.as_ref().into(),
            IntendError::Store(error) => error.into(),
        }
    }
}

impl Store {
    /// Records an intent with its first row of evidence, or finds the one recorded before.
    ///
    /// One transaction, durable: what the reply says survives a power failure.
    ///
    /// # Errors
    /// [`IntendError::KeyTaken`] and [`IntendError::AttemptTaken`] where something else is recorded
    /// already, [`IntendError::SessionHeld`] where another attempt of the owner has the session and is
    /// not both exited and cleaned up; nothing is stored then.
    pub fn intend(&self, new: &NewAttempt<'_>, detail: &str) -> Result<Intended, IntendError> {
        let attempt_id = &new.request.attempt_id;
        self.write("intent.recorded", Durability::Durable, |transaction| {
            let request = new.request;
            if let Some(row) =
                load_by_key(transaction, &request.owner_id, &request.idempotency_key)?
            {
                let same = row.request_digest == *new.digest;
                return if same { Ok(Intended::Replayed(row)) } else { Err(IntendError::KeyTaken) };
            }
            if let Some(pruned) =
                ledger::find_by_key(transaction, &request.owner_id, &request.idempotency_key)?
            {
                let same = pruned.attempt.request_digest == *new.digest;
                return if same {
                    Ok(Intended::Pruned(pruned))
                } else {
                    Err(IntendError::KeyTaken)
                };
            }
            // An id stays taken: its directory and its evidence were somebody's.
            if exists(transaction, attempt_id)? || ledger::find(transaction, attempt_id)?.is_some()
            {
                return Err(IntendError::AttemptTaken);
            }
            if let Some(session) = &request.session_ref
                && let Some(holder) = holder(transaction, &request.owner_id, session)?
            {
                return Err(IntendError::SessionHeld(Box::new(holder)));
            }
            let at = self.now();
            let first = NewRow {
                previous: new.digest,
                sequence: 1,
                at: &at,
                kind: EvidenceKind::IntentRecorded,
                from: None,
                to: AttemptState::INTENDED,
                detail: &bounded_detail(detail),
            };
            insert_attempt(transaction, new, &at)?;
            let head = insert(transaction, attempt_id, &first)?;
            set_head(transaction, attempt_id.as_str(), &head)?;
            let row = load(transaction, attempt_id)?.expect("it was inserted above");
            // Checked before it is promised: a start would refuse a request that does not decode.
            row.request()?;
            Ok(Intended::Recorded(row))
        })
    }
}

fn insert_attempt(
    transaction: &Transaction<'_>,
    new: &NewAttempt<'_>,
    at: &Timestamp,
) -> Result<(), StoreError> {
    let request = new.request;
    transaction
        .execute(
            "INSERT INTO placement_attempts (
                attempt_id, owner_id, owner_incarnation, action_id, idempotency_key,
                request_digest, request_json, grants_json, program, execution_state,
                cleanup_state, capability, required_cleanup, mechanism, exit_observation,
                attachment_generation, runner_finished, session_ref, home_key, evidence_count,
                chain_head, created_at, updated_at
             ) VALUES (
                :attempt_id, :owner_id, :owner_incarnation, :action_id, :idempotency_key,
                :request_digest, :request_json, :grants_json, :program, :execution_state,
                :cleanup_state, :capability, :required_cleanup, :mechanism, :exit_observation,
                :attachment_generation, 0, :session_ref, :home_key, 1, :chain_head, :at, :at
             )",
            named_params! {
                ":attempt_id": request.attempt_id.as_str(),
                ":owner_id": request.owner_id.as_str(),
                ":owner_incarnation": to_column(request.owner_incarnation, "owner_incarnation")?,
                ":action_id": request.action_id.as_str(),
                ":idempotency_key": request.idempotency_key.as_str(),
                ":request_digest": new.digest.as_str(),
                ":request_json": new.request_json,
                ":grants_json": new.grants_json,
                ":program": request.launch.executable.as_str(),
                ":execution_state": ExecutionState::Intended.label(),
                ":cleanup_state": CleanupState::Pending.label(),
                ":capability": new.capability.label(),
                ":required_cleanup": request.required_cleanup.label(),
                ":mechanism": new.mechanism.map(Mechanism::label),
                ":exit_observation": new.exit_observation.label(),
                ":attachment_generation":
                    to_column(Generation::NONE.number(), "attachment_generation")?,
                ":session_ref": request.session_ref.as_ref().map(SessionRef::as_str),
                ":home_key": new.home_key,
                ":chain_head": new.digest.as_str(),
                ":at": at.as_str(),
            },
        )
        .map_err(failed("insert the attempt"))?;
    Ok(())
}

/// The evidence refers to the attempt, so the attempt comes first and its head second.
fn set_head(
    transaction: &Transaction<'_>,
    attempt_id: &str,
    head: &Digest,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE placement_attempts SET chain_head = ?1 WHERE attempt_id = ?2",
            [head.as_str(), attempt_id],
        )
        .map_err(failed("set the chain head"))?;
    Ok(())
}
