//! Looking attempts up.

use crate::error::StoreError;
use crate::limits::LIST_MAX;
use crate::row::{At, OBSERVED, Row, decode};
use crate::sql::{column, failed};
use crate::write::{Durability, Store};
use placement_contract::{AttemptId, IdempotencyKey, OwnerId, Timestamp};
use rusqlite::{Transaction, params};

/// Which attempts are listed, and in which order. Of those that are equal in it, the first to be
/// intended comes first; where the newest comes first, the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Every one, the newest first.
    All,
    /// Starting, running and stopping ones, the longest unobserved first.
    Live,
    /// Live and uncertain ones, the longest unobserved first: what a reconcile may settle.
    Unsettled,
    /// Exited ones whose cleanup is not complete, the longest unobserved first.
    Uncleaned,
    /// Those of them whose tree anybody can end and prove gone, and nobody has, the longest
    /// unobserved first.
    TreeNotGone,
}

/// The attempts that were found, and those whose rows cannot be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// The attempts, in the order of the selection.
    pub rows: Vec<Row>,
    /// Rows that cannot be read; they keep no other attempt from being listed.
    pub corrupt: Vec<CorruptRow>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptRow {
    /// What stands in the place of the attempt's id.
    pub attempt_id: String,
    /// The column.
    pub column: &'static str,
}

impl Selection {
    const fn condition(self) -> &'static str {
        match self {
            Self::All => "TRUE",
            // The words of the index first: that they are implied, SQLite does not see.
            Self::Live => {
                "execution_state IN ('starting', 'running', 'stopping', 'uncertain')
                 AND execution_state <> 'uncertain'"
            }
            Self::Unsettled => {
                "execution_state IN ('starting', 'running', 'stopping', 'uncertain')"
            }
            Self::Uncleaned => "execution_state = 'exited' AND cleanup_state <> 'complete'",
            Self::TreeNotGone => {
                "execution_state = 'exited' AND cleanup_state <> 'complete'
                 AND tree_gone_by IS NULL AND mechanism IN ('cgroup', 'pid_namespace')"
            }
        }
    }

    /// Returns the table by the index that holds only such attempts: without its name, SQLite takes
    /// the one by owner, and reads the whole history.
    const fn table(self) -> &'static str {
        match self {
            Self::All => "placement_attempts",
            Self::Live | Self::Unsettled => {
                "placement_attempts INDEXED BY placement_attempts_unsettled"
            }
            Self::Uncleaned | Self::TreeNotGone => {
                "placement_attempts INDEXED BY placement_attempts_uncleaned"
            }
        }
    }

    const fn order(self) -> &'static str {
        match self {
            Self::All => "created_at DESC, rowid DESC",
            Self::Live | Self::Unsettled | Self::Uncleaned | Self::TreeNotGone => {
                "observed_at, rowid"
            }
        }
    }
}

impl Store {
    /// Finds an attempt of an owner. A foreign attempt and an unknown one look the same.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where its row is malformed.
    pub fn find(&self, owner: &OwnerId, attempt_id: &AttemptId) -> Result<Option<Row>, StoreError> {
        Ok(self.find_any(attempt_id)?.filter(|row| row.owner_id == *owner))
    }

    /// Finds an attempt whoever owns it; for the runner that was handed it and for sweeps.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where its row is malformed.
    pub fn find_any(&self, attempt_id: &AttemptId) -> Result<Option<Row>, StoreError> {
        self.read(|transaction| load(transaction, attempt_id))
    }

    /// Finds the attempt that an owner launched under a key.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where its row is malformed.
    pub fn find_by_key(
        &self,
        owner: &OwnerId,
        key: &IdempotencyKey,
    ) -> Result<Option<Row>, StoreError> {
        self.read(|transaction| load_by_key(transaction, owner, key))
    }

    /// Lists attempts, of one owner or of all; at most `limit` and at most 10 000.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read. A malformed row is listed as such.
    pub fn list(
        &self,
        owner: Option<&OwnerId>,
        selection: Selection,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        // Which ones is told first: only those are read whole.
        let sql = format!(
            "SELECT {} FROM placement_attempts {OBSERVED} WHERE rowid IN (
                SELECT rowid FROM {table} {OBSERVED}
                WHERE {condition} AND {of_owner} ORDER BY {order} LIMIT ?2
             ) ORDER BY {order}",
            At::SELECTED,
            table = selection.table(),
            condition = selection.condition(),
            of_owner = of_owner(owner),
            order = selection.order(),
        );
        self.read(|transaction| {
            let mut statement =
                transaction.prepare_cached(&sql).map_err(failed("list attempts"))?;
            let mut found = statement
                .query(params![owner.map(OwnerId::as_str), limit.min(LIST_MAX)])
                .map_err(failed("list attempts"))?;
            let mut listing = Listing::default();
            while let Some(row) = found.next().map_err(failed("list attempts"))? {
                match decode(row) {
                    Ok(row) => listing.rows.push(row),
                    Err(StoreError::Corrupt { column: name }) => listing.corrupt.push(CorruptRow {
                        attempt_id: column(row, At::attempt_id).unwrap_or_default(),
                        column: name,
                    }),
                    Err(error) => return Err(error),
                }
            }
            Ok(listing)
        })
    }

    /// Counts attempts, of one owner or of all.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn count(&self, owner: Option<&OwnerId>, selection: Selection) -> Result<u64, StoreError> {
        let sql = format!(
            "SELECT count(*) FROM {} WHERE {} AND {}",
            selection.table(),
            selection.condition(),
            of_owner(owner)
        );
        self.read(|transaction| {
            let count: i64 = transaction
                .query_row(&sql, [owner.map(OwnerId::as_str)], |row| row.get(0))
                .map_err(failed("count attempts"))?;
            u64::try_from(count).map_err(|_| StoreError::Corrupt { column: "count" })
        })
    }

    /// Notes that attempts were looked at once more; adds no evidence.
    ///
    /// One transaction for all of them. The stamp is later than that of any other attempt, also after
    /// the wall clock was set back, so that who takes the longest unobserved first takes others next.
    /// Returns how many of the attempts there are.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be written.
    pub fn touch_observed<'a>(
        &self,
        attempts: impl IntoIterator<Item = &'a AttemptId>,
    ) -> Result<usize, StoreError> {
        self.write("observation", Durability::Normal, |transaction| {
            let stamp = later_than_others(transaction, self.now())?;
            let mut touch = transaction
                .prepare_cached(
                    "INSERT INTO placement_observations (attempt_id, observed_at)
                     SELECT attempt_id, ?1 FROM placement_attempts WHERE attempt_id = ?2
                     ON CONFLICT (attempt_id) DO UPDATE SET observed_at = excluded.observed_at",
                )
                .map_err(failed("note an observation"))?;
            let mut touched = 0;
            for attempt_id in attempts {
                touched += touch
                    .execute([stamp.as_str(), attempt_id.as_str()])
                    .map_err(failed("note an observation"))?;
            }
            Ok(touched)
        })
    }
}

/// Compares the owner only where one is asked for, so that the index by owner is of use.
const fn of_owner(owner: Option<&OwnerId>) -> &'static str {
    match owner {
        Some(_) => "owner_id = ?1",
        None => "?1 IS NULL",
    }
}

fn later_than_others(
    transaction: &Transaction<'_>,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    let latest: Option<String> = transaction
        .prepare_cached("SELECT max(observed_at) FROM placement_observations")
        .and_then(|mut latest| latest.query_row([], |row| row.get(0)))
        .map_err(failed("find the latest observation"))?;
    // A stamp that does not parse is that row's own damage.
    Ok(match latest.as_deref().and_then(Timestamp::parse) {
        Some(latest) => now.max(Timestamp::from_unix_ms(latest.unix_ms() + 1)),
        None => now,
    })
}

pub(crate) fn load(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
) -> Result<Option<Row>, StoreError> {
    one(transaction, "attempt_id = ?1", &[attempt_id.as_str()])
}

pub(crate) fn exists(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
) -> Result<bool, StoreError> {
    transaction
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM placement_attempts WHERE attempt_id = ?1)",
            [attempt_id.as_str()],
            |row| row.get(0),
        )
        .map_err(failed("look for the attempt"))
}

pub(crate) fn load_by_key(
    transaction: &Transaction<'_>,
    owner: &OwnerId,
    key: &IdempotencyKey,
) -> Result<Option<Row>, StoreError> {
    one(transaction, "owner_id = ?1 AND idempotency_key = ?2", &[owner.as_str(), key.as_str()])
}

fn one(
    transaction: &Transaction<'_>,
    condition: &str,
    values: &[&str],
) -> Result<Option<Row>, StoreError> {
    let sql =
        format!("SELECT {} FROM placement_attempts {OBSERVED} WHERE {condition}", At::SELECTED);
    let mut statement = transaction.prepare_cached(&sql).map_err(failed("read an attempt"))?;
    let mut found =
        statement.query(rusqlite::params_from_iter(values)).map_err(failed("read an attempt"))?;
    found.next().map_err(failed("read an attempt"))?.map(decode).transpose()
}
