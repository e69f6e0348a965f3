//! The one write path, and reading in one snapshot.

use crate::error::StoreError;
use crate::limits::{LOCK_WAIT, WAL_BYTES_MAX};
use crate::lock::{LockFile, until};
use crate::migrate::SCHEMA;
use crate::open::Role;
use crate::sql::failed;
use camino::Utf8PathBuf;
use placement_contract::{Clock, Timestamp};
use placement_crash::point;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// How far a commit has gone when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power failure: the log is synced.
    Durable,
    /// It survives the death of every process, not a power failure.
    Normal,
}

/// One connection to a store. Threads may share it; they take turns.
#[derive(Debug)]
pub struct Store {
    inner: Mutex<Inner>,
    lock: LockFile,
    clock: Arc<dyn Clock>,
    database: Utf8PathBuf,
    lock_wait: Duration,
    role: Role,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    durability: Option<Durability>,
}

impl Store {
    pub(crate) fn new(
        connection: Connection,
        lock: LockFile,
        clock: Arc<dyn Clock>,
        database: Utf8PathBuf,
        role: Role,
    ) -> Self {
        let inner = Mutex::new(Inner { connection, durability: None });
        Self { inner, lock, clock, database, lock_wait: LOCK_WAIT, role }
    }

    /// Waits for other writers this long instead of 5 seconds.
    #[must_use]
    pub fn with_lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }

    /// Takes the write-ahead log into the database if it is larger than 4 MiB.
    ///
    /// Waits for nobody: what a reader still needs stays. Returns whether it was due. Belongs
    /// outside a launch.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be written.
    pub fn checkpoint_if_large(&self) -> Result<bool, StoreError> {
        let log = format!("{}-wal", self.database);
        let bytes = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        if bytes <= u64::from(WAL_BYTES_MAX) {
            return Ok(false);
        }
        let inner = self.connection(Instant::now() + self.lock_wait)?;
        inner
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(failed("take its log in"))?;
        Ok(true)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs a body as one transaction that has the store to itself.
    ///
    /// The body's error, or the failure of the commit, leaves everything as it was. What is written
    /// has a name, so that no commit is without its crash points.
    pub(crate) fn write<T, E: From<StoreError>>(
        &self,
        written: &'static str,
        durability: Durability,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let role = self.role.label();
        let deadline = Instant::now() + self.lock_wait;
        let mut inner = self.connection(deadline)?;
        // Before the lock, which no commit of this connection can hold up any more.
        inner.set_durability(durability)?;
        let held = self.lock.take(deadline).map_err(StoreError::from)?;
        // Only a writer that knows nothing of the lock can still be in the way.
        let left = deadline.saturating_duration_since(Instant::now());
        inner.connection.busy_timeout(left).map_err(failed("set its deadline"))?;
        let transaction = inner
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed("begin a transaction"))?;
        check_schema(&transaction)?;
        let value = body(&transaction)?;
        point(format_args!("{role}.{written}.uncommitted"));
        transaction.commit().map_err(failed("commit"))?;
        drop(held);
        point(format_args!("{role}.{written}.committed"));
        Ok(value)
    }

    /// Runs a body on one snapshot of the store.
    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = self.connection(Instant::now() + self.lock_wait)?;
        inner.connection.busy_timeout(self.lock_wait).map_err(failed("set its deadline"))?;
        let transaction = inner.connection.transaction().map_err(failed("begin to read"))?;
        check_schema(&transaction)?;
        body(&transaction)
    }

    fn connection(&self, deadline: Instant) -> Result<MutexGuard<'_, Inner>, StoreError> {
        until(deadline, || match self.inner.try_lock() {
            Ok(inner) => Ok(Some(inner)),
            // A body that panicked was rolled back when its transaction dropped.
            Err(TryLockError::Poisoned(poisoned)) => Ok(Some(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => Ok(None),
        })
        .map_err(StoreError::from)
    }
}

impl Inner {
    /// SQLite takes the setting outside a transaction only.
    fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        if self.durability == Some(durability) {
            return Ok(());
        }
        let value = match durability {
            Durability::Durable => "FULL",
            Durability::Normal => "NORMAL",
        };
        self.durability = None;
        self.connection
            .pragma_update(None, "synchronous", value)
            .map_err(failed("set its durability"))?;
        self.durability = Some(durability);
        Ok(())
    }
}

/// A newer version may have migrated the store while this process held it open.
fn check_schema(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let found: u32 = transaction
        .prepare_cached("SELECT schema FROM placement_store_binding")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(failed("read its schema"))?;
    if found == SCHEMA { Ok(()) } else { Err(StoreError::SchemaChanged { known: SCHEMA, found }) }
}
