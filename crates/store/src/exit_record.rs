//! What a runner could not commit: written to a file then, taken in once later.

use crate::error::StoreError;
use crate::evidence::{Of, Tail};
use crate::find::load;
use crate::limits::{EXIT_RECORD_BYTES_MAX, ROWS_PER_CHANGE_MAX};
use crate::record::{Fields, RecordError, check_fields, refused};
use crate::row::{ChildIdentity, Row};
use crate::save::{reload, save};
use crate::sql::{column, failed};
use crate::write::{Durability, Store};
use placement_contract::evidence::bounded_detail;
use placement_contract::{AttemptId, Digest, EvidenceKind, Timestamp};
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

/// Everything that a runner saw and could not commit, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitRecord {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// How many rows of evidence the runner knew to be committed.
    pub based_on_count: u64,
    /// The rows, at most 256.
    pub rows: Vec<RecordedRow>,
    /// What would have been recorded with them.
    #[serde(default)]
    pub fields: Fields,
}

/// One row of evidence with the moment at which it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRow {
    /// What it says.
    pub kind: EvidenceKind,
    /// A fixed phrase with ids; cut at 2048 bytes.
    pub detail: String,
    /// When it was seen.
    pub at: Timestamp,
}

/// A text is not an exit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExitRecordError {
    /// It is larger than 4 MiB or has more than 256 rows.
    #[error("the exit record is too large")]
    TooLarge,
    /// It does not decode exactly.
    #[error("the exit record is malformed")]
    Malformed,
}

impl ExitRecord {
    /// Writes the record as JSON.
    ///
    /// # Errors
    /// [`ExitRecordError::TooLarge`] where it would not be read again.
    pub fn encode(&self) -> Result<Vec<u8>, ExitRecordError> {
        let bytes = serde_json::to_vec(self).map_err(|_| ExitRecordError::Malformed)?;
        self.check(bytes.len())?;
        Ok(bytes)
    }

    /// Reads a record exactly: no unknown and no repeated field.
    ///
    /// # Errors
    /// [`ExitRecordError`] names the rule that the text breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, ExitRecordError> {
        if bytes.len() > EXIT_RECORD_BYTES_MAX {
            return Err(ExitRecordError::TooLarge);
        }
        let record: Self = serde_json::from_slice(bytes).map_err(|_| ExitRecordError::Malformed)?;
        record.check(bytes.len())?;
        Ok(record)
    }

    fn check(&self, bytes: usize) -> Result<(), ExitRecordError> {
        let fits = bytes <= EXIT_RECORD_BYTES_MAX && self.rows.len() <= ROWS_PER_CHANGE_MAX;
        if fits { Ok(()) } else { Err(ExitRecordError::TooLarge) }
    }

    fn digest(&self) -> Result<Digest, ExitRecordError> {
        self.encode().map(|bytes| Digest::of_bytes(&bytes))
    }
}

impl Store {
    /// Takes an exit record in, once and durably: its rows in their order, then `record.taken`.
    ///
    /// A record that was taken before changes nothing. A row that was committed after all is not
    /// repeated; one that does not fit what others have recorded meanwhile is left out, and
    /// `record.taken` counts it, as it counts the rows that a power failure has taken. Fields that are recorded already stay as they are.
    ///
    /// # Errors
    /// [`RecordError`] where nothing could be taken; everything is as it was.
    ///
    /// # Panics
    /// Where the record was built with more than 256 rows or 4 MiB; a decoded one never is.
    pub fn take_exit_record(&self, record: &ExitRecord) -> Result<Row, RecordError> {
        let digest = record.digest().expect("an exit record is bounded");
        let attempt_id = &record.attempt_id;
        self.write("record.taken", Durability::Durable, |transaction| {
            let row = load(transaction, attempt_id)?.ok_or(RecordError::NotFound)?;
            if is_taken(transaction, attempt_id, &digest)? {
                return Ok(row);
            }
            let later = later(transaction, record)?;
            let fields = missing(&row, &record.fields);
            check_fields(&row, &fields)?;
            let now = self.now();
            let mut tail = Tail::of(&row);
            let mut left_out = 0_u32;
            for new in record.rows.iter().filter(|new| !is_there(&later, new)) {
                let added = tail.add(transaction, new.kind, &new.detail, &new.at)?;
                left_out += u32::from(added.is_err());
            }
            let lost = record.based_on_count.saturating_sub(row.evidence_count);
            let detail = format!(
                "exit record {digest}, rows that did not fit: {left_out}, \
                 rows lost before it: {lost}"
            );
            tail.add(transaction, EvidenceKind::RecordTaken, &detail, &now)?.map_err(refused)?;
            save(transaction, &tail, attempt_id, &fields, &now)?;
            reload(transaction, attempt_id)
        })
    }
}

/// A row that was committed after the runner last knew.
struct Later {
    kind: String,
    detail: String,
    at: String,
}

fn later(transaction: &Transaction<'_>, record: &ExitRecord) -> Result<Vec<Later>, StoreError> {
    let after = i64::try_from(record.based_on_count).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {} FROM placement_evidence
         WHERE attempt_id = ?1 AND sequence > ?2 ORDER BY sequence",
        Of::SELECTED
    );
    let mut statement = transaction.prepare(&sql).map_err(failed("read evidence"))?;
    let mut found = statement
        .query(params![record.attempt_id.as_str(), after])
        .map_err(failed("read evidence"))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next().map_err(failed("read evidence"))? {
        rows.push(Later {
            kind: column(row, Of::kind)?,
            detail: column(row, Of::detail)?,
            at: column(row, Of::at)?,
        });
    }
    Ok(rows)
}

/// Looks through all rows: a power failure may have taken rows that the runner knew as committed,
/// and then the record was taken in below the count on which it is based.
fn is_taken(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    digest: &Digest,
) -> Result<bool, StoreError> {
    transaction
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM placement_evidence
             WHERE attempt_id = ?1 AND kind = ?2 AND instr(detail, ?3) > 0)",
            [attempt_id.as_str(), EvidenceKind::RecordTaken.label(), digest.as_str()],
            |row| row.get(0),
        )
        .map_err(failed("look for the exit record"))
}

/// A commit may have reached the file although its runner never heard of it.
fn is_there(later: &[Later], new: &RecordedRow) -> bool {
    later.iter().any(|row| {
        row.kind == new.kind.label()
            && row.at == new.at.as_str()
            && row.detail == bounded_detail(&new.detail)
    })
}

/// Keeps the fields that are not recorded; what others recorded meanwhile stands.
fn missing(row: &Row, fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    let Row { runner, child, init, leaf, mechanism, home_key, tmp_key, attachment, .. } = row;
    fields.runner.take_if(|_| runner.is_some());
    fields.child.take_if(|_| *child != ChildIdentity::None);
    fields.init.take_if(|_| init.is_some());
    fields.attachment.take_if(|new| new.generation <= attachment.generation);
    fields.mechanism.take_if(|_| mechanism.is_some());
    fields.leaf_path.take_if(|_| leaf.is_some());
    let has_leaf = leaf.is_some() || fields.leaf_path.is_some();
    let has_leaf_id = leaf.as_ref().is_some_and(|leaf| leaf.id.is_some());
    fields.leaf_id.take_if(|_| has_leaf_id || !has_leaf);
    fields.home_key.take_if(|_| home_key.is_some());
    fields.tmp_key.take_if(|_| tmp_key.is_some());
    fields
}
