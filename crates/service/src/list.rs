//! Listing the attempts of an owner.

use crate::Service;
use placement_contract::{Attempt, Refusal};
use placement_store::{CorruptRow, Listing, Selection};
use serde::Serialize;

/// Most attempts in one list: what a person or a script takes in.
pub const LISTED_MAX: u32 = 10_000;

/// Which attempts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Those with something left to do: live, uncertain, or exited and not cleaned.
    Open,
    /// Every one.
    All,
}

/// The attempts that were found, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptList {
    /// The attempts, at most [`LISTED_MAX`].
    pub attempts: Vec<Attempt>,
    /// Attempts whose rows cannot be read; they keep no other from being listed.
    pub unreadable: Vec<Unreadable>,
}

/// An attempt whose row cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// What stands in the place of its id.
    pub attempt_id: String,
    /// The column that is malformed.
    pub column: &'static str,
}

impl Service {
    /// Lists this owner's attempts, the newest first.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read; a malformed row is listed as such.
    pub fn list(&self, listed: Listed) -> Result<AttemptList, Refusal> {
        let owner = Some(&self.inner.owner);
        let found = match listed {
            Listed::All => self.inner.reader.list(owner, Selection::All, LISTED_MAX)?,
            Listed::Open => self.open_rows()?,
        };
        Ok(AttemptList {
            attempts: found.rows.iter().map(placement_store::Row::attempt).collect(),
            unreadable: found.corrupt.into_iter().map(Unreadable::from).collect(),
        })
    }

    /// Lists what this owner has open, each once, the newest first.
    pub(crate) fn open_rows(&self) -> Result<Listing, Refusal> {
        let read =
            |selection| self.inner.reader.list(Some(&self.inner.owner), selection, LISTED_MAX);
        let mut open = joined(read(Selection::Unsettled)?, read(Selection::Uncleaned)?);
        open.rows
            .sort_by(|a, b| (&b.created_at, &a.attempt_id).cmp(&(&a.created_at, &b.attempt_id)));
        // An attempt that moved on between the two reads is in both.
        open.rows.dedup_by(|a, b| a.attempt_id == b.attempt_id);
        Ok(open)
    }
}

impl From<CorruptRow> for Unreadable {
    fn from(row: CorruptRow) -> Self {
        Self { attempt_id: row.attempt_id, column: row.column }
    }
}

fn joined(mut one: Listing, other: Listing) -> Listing {
    one.rows.extend(other.rows);
    one.corrupt.extend(other.corrupt);
    one
}
