//! Checking an attempt's evidence against its chain, its meaning and its row.

use crate::chain::Link;
use crate::error::StoreError;
use crate::evidence::{Of, decode};
use crate::find::load;
use crate::row::Row;
use crate::sql::{column, failed};
use crate::write::Store;
use placement_contract::{AttemptId, Digest, Evidence};
use placement_transitions::{Folded, fold};
use rusqlite::Transaction;

/// What a check of an attempt's evidence found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many rows there are.
    pub count: u64,
    /// The chain value of the last row, recomputed; the request's digest where there is none.
    pub head: Digest,
    /// The row whose chain value is the one that was kept elsewhere, if one was given and found.
    pub kept_head_at: Option<u64>,
    /// Everything that does not fit; empty where the evidence is sound.
    pub faults: Vec<Fault>,
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The row of evidence; absent where the attempt's own row does not fit.
    pub sequence: Option<u64>,
    /// What does not fit, in a fixed phrase.
    pub why: &'static str,
}

impl Verdict {
    /// Says whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Store {
    /// Recomputes the chain, folds the evidence and compares both with the row, in one snapshot.
    ///
    /// A head that was kept elsewhere must be the chain value of one of the rows. This shows damage
    /// and careless edits, not a writer who rewrites everything; a kept head shows that one too.
    /// Returns nothing where there is no such attempt.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the attempt's own row is malformed.
    pub fn verify(
        &self,
        attempt_id: &AttemptId,
        kept_head: Option<&Digest>,
    ) -> Result<Option<Verdict>, StoreError> {
        self.read(|transaction| {
            let Some(row) = load(transaction, attempt_id)? else { return Ok(None) };
            let mut check = Check::begin(&row, kept_head);
            check.read(transaction, attempt_id)?;
            Ok(Some(check.end(&row, kept_head.is_some())))
        })
    }
}

struct Check<'a> {
    attempt_id: &'a str,
    kept_head: Option<&'a Digest>,
    kept_head_at: Option<u64>,
    head: Digest,
    count: u64,
    rows: Vec<Evidence>,
    faults: Vec<Fault>,
}

/// The columns of a row of evidence as they stand there.
struct Raw {
    sequence: i64,
    at: String,
    kind: String,
    from: Option<String>,
    to: String,
    detail: String,
    chain: String,
}

impl<'a> Check<'a> {
    fn begin(row: &'a Row, kept_head: Option<&'a Digest>) -> Self {
        Self {
            attempt_id: row.attempt_id.as_str(),
            kept_head,
            kept_head_at: None,
            head: row.request_digest.clone(),
            count: 0,
            rows: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn read(
        &mut self,
        transaction: &Transaction<'_>,
        attempt_id: &AttemptId,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {} FROM placement_evidence WHERE attempt_id = ?1 ORDER BY sequence",
            Of::SELECTED
        );
        let mut statement = transaction.prepare(&sql).map_err(failed("read evidence"))?;
        let mut found = statement.query([attempt_id.as_str()]).map_err(failed("read evidence"))?;
        while let Some(row) = found.next().map_err(failed("read evidence"))? {
            self.count += 1;
            match raw(row) {
                Ok(raw) => self.take(&raw, decode(row).ok()),
                Err(_) => self.fault(Some(self.count), "the row is malformed"),
            }
        }
        Ok(())
    }

    /// Links one row to the one before: as it stands, whatever it says.
    fn take(&mut self, raw: &Raw, decoded: Option<Evidence>) {
        let sequence = u64::try_from(raw.sequence).ok();
        let value = Link {
            previous: self.head.as_str(),
            attempt_id: self.attempt_id,
            sequence: raw.sequence.to_string(),
            at: &raw.at,
            kind: &raw.kind,
            from: raw.from.as_deref(),
            to: &raw.to,
            detail: &raw.detail,
        }
        .value();
        if value.as_str() != raw.chain {
            self.fault(sequence, "the chain value is not the one of this row");
        }
        if self.kept_head.is_some_and(|kept| *kept == value) {
            self.kept_head_at = sequence;
        }
        self.head = value;
        match decoded {
            Some(row) => self.rows.push(row),
            None => self.fault(sequence, "the row is malformed"),
        }
    }

    fn end(mut self, row: &Row, head_was_kept: bool) -> Verdict {
        match fold(&self.rows) {
            Ok(folded) => self.compare(row, &folded),
            Err(error) => self.fault(Some(error.sequence), phrase(error.why)),
        }
        if row.evidence_count != self.count {
            self.fault(None, "the recorded count is not the number of rows");
        }
        if row.chain_head != self.head {
            self.fault(None, "the recorded head is not the end of the chain");
        }
        if head_was_kept && self.kept_head_at.is_none() {
            self.fault(None, "the head that was kept is not in the chain");
        }
        Verdict {
            count: self.count,
            head: self.head,
            kept_head_at: self.kept_head_at,
            faults: self.faults,
        }
    }

    fn compare(&mut self, row: &Row, folded: &Folded) {
        let pairs = [
            (row.state == folded.state, "the recorded state is not the one of the evidence"),
            (row.exit == folded.exit, "the recorded exit is not the one of the evidence"),
            (
                row.exit_source == folded.exit_source,
                "the recorded source of the exit is not the one of the evidence",
            ),
            (
                row.tree_gone_by == folded.tree_gone_by,
                "the recorded proof of an empty tree is not the one of the evidence",
            ),
        ];
        for (same, why) in pairs {
            if !same {
                self.fault(None, why);
            }
        }
    }

    fn fault(&mut self, sequence: Option<u64>, why: &'static str) {
        self.faults.push(Fault { sequence, why });
    }
}

fn raw(row: &rusqlite::Row<'_>) -> Result<Raw, StoreError> {
    Ok(Raw {
        sequence: column(row, Of::sequence)?,
        at: column(row, Of::at)?,
        kind: column(row, Of::kind)?,
        from: column(row, Of::from_state)?,
        to: column(row, Of::to_state)?,
        detail: column(row, Of::detail)?,
        chain: column(row, Of::chain)?,
    })
}

fn phrase(why: placement_transitions::FoldWhy) -> &'static str {
    use placement_transitions::FoldWhy;
    match why {
        FoldWhy::First => "the first row is not intent.recorded",
        FoldWhy::Sequence => "the sequence is not the next one",
        FoldWhy::From => "the state before is not the one that was reached",
        FoldWhy::To => "the state after does not follow from the kind",
        FoldWhy::Kind(_) => "the kind does not fit the state",
        FoldWhy::Exit => "the exit is not one exit in its one form",
    }
}
