//! Reading evidence, and adding rows to it.

use crate::chain::Link;
use crate::error::StoreError;
use crate::row::Row;
use crate::sql::{column, columns, failed, number, optional, parsed, to_column};
use crate::write::Store;
use placement_contract::evidence::bounded_detail;
use placement_contract::limits::EVIDENCE_PAGE_MAX;
use placement_contract::{AttemptId, AttemptState, Digest, Evidence, EvidenceKind, Timestamp};
use placement_transitions::{FoldError, FoldWhy, Folded, fold};
use rusqlite::{Transaction, params};

/// One page of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The rows, in their order.
    pub rows: Vec<Evidence>,
    /// Where the next page goes on, if there are more rows.
    pub next_after: Option<u64>,
}

impl Store {
    /// Reads the rows after a sequence: at most `limit`, which is taken as 64 outside 1 to 64.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where a row is malformed.
    pub fn evidence(
        &self,
        attempt_id: &AttemptId,
        after: u64,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let limit =
            if (1..=EVIDENCE_PAGE_MAX).contains(&limit) { limit } else { EVIDENCE_PAGE_MAX };
        // A sequence that no column can hold has nothing after it.
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.read(|transaction| {
            let mut rows = read(transaction, attempt_id, after, limit + 1)?;
            let more = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            let next_after = rows.last().filter(|_| more).map(|row| row.sequence);
            Ok(Page { rows, next_after })
        })
    }

    /// Reads every row of an attempt, in one snapshot.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where a row is malformed.
    pub fn all_evidence(&self, attempt_id: &AttemptId) -> Result<Vec<Evidence>, StoreError> {
        self.read(|transaction| read(transaction, attempt_id, 0, u32::MAX))
    }

    /// Folds the evidence of an attempt into what it says, as a proof of scope asks.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where a row is malformed or does not follow from the one before.
    pub fn folded(&self, attempt_id: &AttemptId) -> Result<Folded, StoreError> {
        let rows = self.all_evidence(attempt_id)?;
        fold(&rows).map_err(|FoldError { .. }| StoreError::Corrupt { column: "kind" })
    }
}

fn read(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    after: i64,
    limit: u32,
) -> Result<Vec<Evidence>, StoreError> {
    let sql = format!(
        "SELECT {} FROM placement_evidence WHERE attempt_id = ?1 AND sequence > ?2
         ORDER BY sequence LIMIT ?3",
        Of::SELECTED
    );
    let mut statement = transaction.prepare_cached(&sql).map_err(failed("read evidence"))?;
    let mut found = statement
        .query(params![attempt_id.as_str(), after, limit])
        .map_err(failed("read evidence"))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next().map_err(failed("read evidence"))? {
        rows.push(decode(row)?);
    }
    Ok(rows)
}

columns! {
    /// The columns of a row of evidence.
    Of { sequence, at, kind, from_state, to_state, detail, chain }
}

/// Decodes one row of evidence.
pub(crate) fn decode(row: &rusqlite::Row<'_>) -> Result<Evidence, StoreError> {
    let label = |text: &str| AttemptState::from_label(text).map(|state| state.to_string());
    Ok(Evidence {
        sequence: number(row, Of::sequence)?,
        at: parsed(row, Of::at, Timestamp::parse)?,
        kind: parsed(row, Of::kind, EvidenceKind::from_label)?,
        from: optional(row, Of::from_state, label)?,
        to: parsed(row, Of::to_state, label)?,
        detail: column(row, Of::detail)?,
        chain: parsed(row, Of::chain, Digest::parse)?,
    })
}

/// An attempt's evidence while rows are added to it within one transaction.
#[derive(Debug)]
pub(crate) struct Tail<'a> {
    attempt_id: &'a AttemptId,
    folded: Folded,
    head: Digest,
    runner_finished: bool,
}

impl<'a> Tail<'a> {
    /// Goes on from what an attempt's row says.
    pub(crate) fn of(row: &'a Row) -> Self {
        Self {
            attempt_id: &row.attempt_id,
            folded: row.folded(),
            head: row.chain_head.clone(),
            runner_finished: row.runner.as_ref().is_some_and(|runner| runner.finished),
        }
    }

    /// Adds one row where it fits.
    pub(crate) fn add(
        &mut self,
        transaction: &Transaction<'_>,
        kind: EvidenceKind,
        detail: &str,
        at: &Timestamp,
    ) -> Result<Result<(), FoldWhy>, StoreError> {
        let detail = bounded_detail(detail);
        let folded = match self.folded.clone().with(kind, &detail) {
            Ok(folded) => folded,
            Err(why) => return Ok(Err(why)),
        };
        let from = Some(self.folded.state);
        self.head = insert(
            transaction,
            self.attempt_id,
            &NewRow {
                previous: &self.head,
                sequence: folded.count,
                at,
                kind,
                from,
                to: folded.state,
                detail: &detail,
            },
        )?;
        self.folded = folded;
        self.runner_finished |= ends_the_runner(kind);
        Ok(Ok(()))
    }

    pub(crate) fn folded(&self) -> &Folded {
        &self.folded
    }

    pub(crate) fn head(&self) -> &Digest {
        &self.head
    }

    pub(crate) fn runner_finished(&self) -> bool {
        self.runner_finished
    }
}

fn ends_the_runner(kind: EvidenceKind) -> bool {
    matches!(kind, EvidenceKind::RunnerFinished | EvidenceKind::RunnerExited)
}

/// One row that is about to be written.
pub(crate) struct NewRow<'a> {
    pub(crate) previous: &'a Digest,
    pub(crate) sequence: u64,
    pub(crate) at: &'a Timestamp,
    pub(crate) kind: EvidenceKind,
    pub(crate) from: Option<AttemptState>,
    pub(crate) to: AttemptState,
    pub(crate) detail: &'a str,
}

/// Writes one row and returns its chain value.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    row: &NewRow<'_>,
) -> Result<Digest, StoreError> {
    let from = row.from.map(|state| state.to_string());
    let to = row.to.to_string();
    let link = Link {
        previous: row.previous.as_str(),
        attempt_id: attempt_id.as_str(),
        sequence: row.sequence.to_string(),
        at: row.at.as_str(),
        kind: row.kind.label(),
        from: from.as_deref(),
        to: &to,
        detail: row.detail,
    };
    let chain = link.value();
    let sequence = to_column(row.sequence, "sequence")?;
    transaction
        .prepare_cached(
            "INSERT INTO placement_evidence
                (attempt_id, sequence, at, kind, from_state, to_state, detail, chain)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                link.attempt_id,
                sequence,
                link.at,
                link.kind,
                link.from,
                link.to,
                link.detail,
                chain.as_str(),
            ])
        })
        .map_err(failed("add evidence"))?;
    Ok(chain)
}
