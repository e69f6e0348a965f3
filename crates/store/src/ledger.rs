//! The receipts of pruned attempts: reading them, and the one way into them.

use crate::error::StoreError;
use crate::find::{CorruptRow, load};
use crate::limits::SETTLED_PAGE;
use crate::row::{self, At, ExitColumns, OBSERVED, Row};
use crate::sql::{column, columns, failed, number, optional, parsed, to_column};
use crate::write::{Durability, Store};
use placement_contract::{
    ActionId, Attempt, AttemptId, CleanupScope, CleanupState, Code, Digest, ExecutionState, Exit,
    ExitObservation, ExitSource, Generation, IdempotencyKey, Mechanism, Outcome, OwnerId, Pruned,
    Refusal, SessionRef, Timestamp,
};
use rusqlite::{OptionalExtension as _, Transaction, named_params, params};

/// One page of settled attempts, the longest settled first.
#[derive(Debug, Default)]
pub struct SettledPage {
    /// The attempts.
    pub rows: Vec<Row>,
    /// Rows that cannot be read; they keep no other attempt from being listed.
    pub corrupt: Vec<CorruptRow>,
    /// Where the next page goes on, if there may be more.
    pub next: Option<SettledAfter>,
}

/// The last attempt of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledAfter {
    updated_at: String,
    attempt_id: String,
}

/// An attempt cannot be pruned; nothing was removed.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// There is no such attempt, nor a receipt of it.
    #[error("there is no such attempt")]
    NotFound,
    /// It has not exited, or is not cleaned up.
    #[error("the attempt is not settled")]
    NotSettled,
    /// Evidence was added since it was looked at.
    #[error("the attempt changed meanwhile")]
    Changed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PruneError> for Refusal {
    fn from(error: PruneError) -> Self {
        match error {
            PruneError::NotFound => Self::new(Code::NotFound, error.to_string()),
            PruneError::NotSettled | PruneError::Changed => {
                Self::new(Code::Conflict, error.to_string())
            }
            PruneError::Store(error) => error.into(),
        }
    }
}

impl Store {
    /// Lists an owner's exited and cleaned attempts that have not changed since a moment, at most
    /// 64 a page.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read. A malformed row is listed as such.
    pub fn settled(
        &self,
        owner: &OwnerId,
        unchanged_since: &Timestamp,
        after: Option<&SettledAfter>,
    ) -> Result<SettledPage, StoreError> {
        let (at, id) = after.map_or(("", ""), |last| (&*last.updated_at, &*last.attempt_id));
        let values = params![owner.as_str(), unchanged_since.as_str(), at, id, SETTLED_PAGE];
        let sql = format!(
            "SELECT {} FROM placement_attempts {OBSERVED}
             WHERE execution_state = 'exited' AND cleanup_state = 'complete'
                 AND owner_id = ?1 AND updated_at <= ?2 AND (updated_at, attempt_id) > (?3, ?4)
             ORDER BY updated_at, attempt_id LIMIT ?5",
            At::SELECTED
        );
        self.read(|transaction| {
            let mut statement =
                transaction.prepare_cached(&sql).map_err(failed("list settled attempts"))?;
            let mut found = statement.query(values).map_err(failed("list settled attempts"))?;
            let mut page = SettledPage::default();
            let mut count = 0;
            while let Some(row) = found.next().map_err(failed("list settled attempts"))? {
                let attempt_id: String = column(row, At::attempt_id)?;
                match row::decode(row) {
                    Ok(row) => page.rows.push(row),
                    Err(StoreError::Corrupt { column }) => {
                        page.corrupt.push(CorruptRow { attempt_id: attempt_id.clone(), column });
                    }
                    Err(error) => return Err(error),
                }
                count += 1;
                // As they stand there, so that a malformed row does not end the listing.
                let last = SettledAfter { updated_at: column(row, At::updated_at)?, attempt_id };
                page.next = (count == SETTLED_PAGE).then_some(last);
            }
            Ok(page)
        })
    }

    /// Replaces a settled attempt, its evidence and its token by one receipt, all or nothing.
    ///
    /// `seen` is the attempt as it was when its directory was removed and `outcome` what its evidence
    /// told; where it has changed since, nothing is removed. An attempt that was pruned before
    /// returns its receipt. Survives the death of every process; after a power failure the attempt
    /// may be there again.
    ///
    /// # Errors
    /// [`PruneError`]; everything is as it was.
    pub fn prune(&self, seen: &Row, outcome: Outcome) -> Result<Pruned, PruneError> {
        let attempt_id = &seen.attempt_id;
        self.write("receipt", Durability::Normal, |transaction| {
            let Some(row) = load(transaction, attempt_id)? else {
                return find(transaction, attempt_id)?.ok_or(PruneError::NotFound);
            };
            let settled = row.state.execution == ExecutionState::Exited
                && row.state.cleanup == CleanupState::Complete;
            if !settled {
                return Err(PruneError::NotSettled);
            }
            if row.chain_head != seen.chain_head {
                return Err(PruneError::Changed);
            }
            insert(transaction, &row, outcome, &self.now())?;
            // In this order: all the others refer to the attempt.
            for table in [
                "placement_evidence",
                "placement_runner_authorities",
                "placement_observations",
                "placement_attempts",
            ] {
                let sql = format!("DELETE FROM {table} WHERE attempt_id = ?1");
                transaction
                    .execute(&sql, [attempt_id.as_str()])
                    .map_err(failed("remove the attempt"))?;
            }
            Ok(find(transaction, attempt_id)?.expect("it was inserted above"))
        })
    }

    /// Finds the receipt of an owner's pruned attempt.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is malformed.
    pub fn find_pruned(
        &self,
        owner: &OwnerId,
        attempt_id: &AttemptId,
    ) -> Result<Option<Pruned>, StoreError> {
        let found = self.read(|transaction| find(transaction, attempt_id))?;
        Ok(found.filter(|pruned| pruned.attempt.owner_id == *owner))
    }

    /// Finds the receipt of the pruned attempt that an owner launched under a key.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is malformed.
    pub fn find_pruned_by_key(
        &self,
        owner: &OwnerId,
        key: &IdempotencyKey,
    ) -> Result<Option<Pruned>, StoreError> {
        self.read(|transaction| find_by_key(transaction, owner, key))
    }
}

pub(crate) fn find(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
) -> Result<Option<Pruned>, StoreError> {
    one(transaction, "attempt_id = ?1", &[attempt_id.as_str()])
}

pub(crate) fn find_by_key(
    transaction: &Transaction<'_>,
    owner: &OwnerId,
    key: &IdempotencyKey,
) -> Result<Option<Pruned>, StoreError> {
    one(transaction, "owner_id = ?1 AND idempotency_key = ?2", &[owner.as_str(), key.as_str()])
}

fn one(
    transaction: &Transaction<'_>,
    condition: &str,
    values: &[&str],
) -> Result<Option<Pruned>, StoreError> {
    let sql = format!("SELECT {} FROM placement_ledger WHERE {condition}", Of::SELECTED);
    let found = transaction
        .prepare_cached(&sql)
        .and_then(|mut statement| {
            statement
                .query_row(rusqlite::params_from_iter(values), |row| Ok(decode(row)))
                .optional()
        })
        .map_err(failed("read the ledger"))?;
    found.transpose()
}

columns! {
    /// The columns of a receipt.
    Of {
        attempt_id, owner_id, owner_incarnation, action_id, request_digest, program, outcome,
        capability, required_cleanup, mechanism, exit_observation, exit_source, exit_code,
        exit_signal, exit_core, tree_gone_by, attachment_generation, evidence_count, chain_head,
        created_at, updated_at, pruned_at, session_ref,
    }
}

const EXIT: ExitColumns = ExitColumns {
    code: Of::exit_code.at(),
    signal: Of::exit_signal.at(),
    core: Of::exit_core.at(),
};

/// Decodes a receipt; a value that is not exactly one is named, never guessed.
fn decode(row: &rusqlite::Row<'_>) -> Result<Pruned, StoreError> {
    let attempt = Attempt {
        attempt_id: parsed(row, Of::attempt_id, |text| AttemptId::parse(text).ok())?,
        action_id: parsed(row, Of::action_id, |text| ActionId::parse(text).ok())?,
        owner_id: parsed(row, Of::owner_id, |text| OwnerId::parse(text).ok())?,
        owner_incarnation: number(row, Of::owner_incarnation)?,
        request_digest: parsed(row, Of::request_digest, Digest::parse)?,
        program: column(row, Of::program)?,
        execution_state: ExecutionState::Exited,
        cleanup_state: CleanupState::Complete,
        capability: parsed(row, Of::capability, CleanupScope::from_label)?,
        required_cleanup: parsed(row, Of::required_cleanup, CleanupScope::from_label)?,
        mechanism: optional(row, Of::mechanism, Mechanism::from_label)?,
        exit_observation: parsed(row, Of::exit_observation, ExitObservation::from_label)?,
        exit_source: optional(row, Of::exit_source, ExitSource::from_label)?,
        exit: row::exit(row, &EXIT)?,
        tree_gone_by: column(row, Of::tree_gone_by)?,
        attachment_generation: Generation::new(number(row, Of::attachment_generation)?),
        home_ref: None,
        runner: None,
        evidence_count: number(row, Of::evidence_count)?,
        chain_head: parsed(row, Of::chain_head, Digest::parse)?,
        created_at: parsed(row, Of::created_at, Timestamp::parse)?,
        updated_at: parsed(row, Of::updated_at, Timestamp::parse)?,
        last_observed_at: None,
        session_ref: optional(row, Of::session_ref, |text| SessionRef::parse(text).ok())?,
        notice: None,
        pruned: true,
    };
    Ok(Pruned {
        attempt,
        outcome: parsed(row, Of::outcome, Outcome::from_label)?,
        pruned_at: parsed(row, Of::pruned_at, Timestamp::parse)?,
    })
}

fn insert(
    transaction: &Transaction<'_>,
    row: &Row,
    outcome: Outcome,
    now: &Timestamp,
) -> Result<(), StoreError> {
    let (exit_code, exit_signal, exit_core) = match row.exit {
        None => (None, None, None),
        Some(Exit::Code { code }) => (Some(code), None, None),
        Some(Exit::Signal { signal, core }) => (None, Some(signal), Some(core)),
    };
    transaction
        .execute(
            "INSERT INTO placement_ledger (
                attempt_id, owner_id, owner_incarnation, action_id, idempotency_key,
                request_digest, program, outcome, capability, required_cleanup, mechanism,
                exit_observation, exit_source, exit_code, exit_signal, exit_core, tree_gone_by,
                attachment_generation, evidence_count, chain_head, created_at, updated_at,
                pruned_at, session_ref
             ) VALUES (
                :attempt_id, :owner_id, :owner_incarnation, :action_id, :idempotency_key,
                :request_digest, :program, :outcome, :capability, :required_cleanup, :mechanism,
                :exit_observation, :exit_source, :exit_code, :exit_signal, :exit_core, :tree_gone_by,
                :attachment_generation, :evidence_count, :chain_head, :created_at, :updated_at,
                :pruned_at, :session_ref
             )",
            named_params! {
                ":attempt_id": row.attempt_id.as_str(),
                ":owner_id": row.owner_id.as_str(),
                ":owner_incarnation": to_column(row.owner_incarnation, "owner_incarnation")?,
                ":action_id": row.action_id.as_str(),
                ":idempotency_key": row.idempotency_key.as_str(),
                ":request_digest": row.request_digest.as_str(),
                ":program": row.program,
                ":outcome": outcome.label(),
                ":capability": row.capability.label(),
                ":required_cleanup": row.required_cleanup.label(),
                ":mechanism": row.mechanism.map(Mechanism::label),
                ":exit_observation": row.exit_observation.label(),
                ":exit_source": row.exit_source.map(ExitSource::label),
                ":exit_code": exit_code,
                ":exit_signal": exit_signal,
                ":exit_core": exit_core,
                ":tree_gone_by": row.tree_gone_by,
                ":attachment_generation":
                    to_column(row.attachment.generation.number(), "attachment_generation")?,
                ":evidence_count": to_column(row.evidence_count, "evidence_count")?,
                ":chain_head": row.chain_head.as_str(),
                ":created_at": row.created_at.as_str(),
                ":updated_at": row.updated_at.as_str(),
                ":pruned_at": now.as_str(),
                ":session_ref": row.session_ref.as_ref().map(SessionRef::as_str),
            },
        )
        .map_err(failed("insert the receipt"))?;
    Ok(())
}
