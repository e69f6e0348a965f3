//! The one write path, and reading in one snapshot.

use crate::error::StoreError;
use crate::limits::{LOCK_WAIT, WAL_BYTES_MAX};
use crate::lock::LockFile;
use crate::migrate::SCHEMA;
use crate::open::Role;
use crate::patience::Patience;
use crate::queue::{Queue, Turn};
use crate::sql::failed;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Clock, Timestamp};
use placement_crash::point;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// Who of this process writes next. Whoever waits for other processes holds this, not the
    /// connection: reading goes on meanwhile.
    writers: Queue,
    /// Who of this process has the connection next.
    users: Queue,
    lock: LockFile,
    clock: Arc<dyn Clock>,
    database: Utf8PathBuf,
    lock_wait: Duration,
    role: Role,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
}

impl Store {
    pub(crate) fn new(
        connection: Connection,
        lock: LockFile,
        clock: Arc<dyn Clock>,
        database: Utf8PathBuf,
        role: Role,
    ) -> Self {
        let inner = Mutex::new(Inner { connection });
        let (writers, users) = (Queue::default(), Queue::default());
        Self { inner, writers, users, lock, clock, database, lock_wait: LOCK_WAIT, role }
    }

    /// Waits for a store in which nobody writes this long instead of 5 seconds.
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
        let bytes = std::fs::metadata(log_of(&self.database)).map_or(0, |metadata| metadata.len());
        if bytes <= u64::from(WAL_BYTES_MAX) {
            return Ok(false);
        }
        let log = log_of(&self.database);
        let inner = self.connection(&mut Patience::with(&log, self.lock_wait))?;
        inner
            .guard
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
    /// The body's error, or the failure of the commit, leaves everything as it was. A durable commit is
    /// synced after the lock was given back: syncs of several writers at once become one, and none
    /// keeps the others waiting. The log is a sequence, so one that is synced holds all before it.
    /// What is written has a name, so that no commit is without its crash points.
    pub(crate) fn write<T, E: From<StoreError>>(
        &self,
        written: &'static str,
        durability: Durability,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let role = self.role.label();
        let value = self.commit(written, body)?;
        point(format_args!("{role}.{written}.committed"));
        if durability == Durability::Durable {
            self.sync_log()?;
            point(format_args!("{role}.{written}.synced"));
        }
        Ok(value)
    }

    fn commit<T, E: From<StoreError>>(
        &self,
        written: &'static str,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let log = log_of(&self.database);
        let mut patience = Patience::with(&log, self.lock_wait);
        let _turn = self.writers.take(&mut patience).ok_or(StoreError::Busy)?;
        let hurried = || self.writers.is_wanted();
        let _held = self.lock.take(&mut patience, hurried).map_err(StoreError::from)?;
        let mut used = self.connection(&mut patience)?;
        let inner = &mut *used.guard;
        // Only a writer that knows nothing of the lock can still be in the way.
        inner.connection.busy_timeout(patience.left()).map_err(failed("set its deadline"))?;
        let transaction = inner
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed("begin a transaction"))?;
        check_schema(&transaction)?;
        let value = body(&transaction)?;
        point(format_args!("{}.{written}.uncommitted", self.role.label()));
        transaction.commit().map_err(failed("commit"))?;
        Ok(value)
    }

    /// Syncs the log through a descriptor of its own: SQLite has no lock on this file that closing it
    /// could drop. A log that was begun again meanwhile was synced into the database before.
    fn sync_log(&self) -> Result<(), StoreError> {
        let log = File::open(log_of(&self.database)).map_err(StoreError::Sync)?;
        log.sync_data().map_err(StoreError::Sync)
    }

    /// Runs a body on one snapshot of the store.
    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let log = log_of(&self.database);
        let mut used = self.connection(&mut Patience::with(&log, self.lock_wait))?;
        let inner = &mut *used.guard;
        inner.connection.busy_timeout(self.lock_wait).map_err(failed("set its deadline"))?;
        let transaction = inner.connection.transaction().map_err(failed("begin to read"))?;
        check_schema(&transaction)?;
        body(&transaction)
    }

    /// Lends the connection to what is no transaction.
    pub(crate) fn borrow<T>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let log = log_of(&self.database);
        let used = self.connection(&mut Patience::with(&log, self.lock_wait))?;
        used.guard.connection.busy_timeout(self.lock_wait).map_err(failed("set its deadline"))?;
        body(&used.guard.connection)
    }

    /// Hands out the connection of a store that nobody else uses.
    #[cfg(test)]
    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).connection
    }

    fn connection(&self, patience: &mut Patience<'_>) -> Result<Used<'_>, StoreError> {
        let turn = self.users.take(patience).ok_or(StoreError::Busy)?;
        // Free by the turn. A body that panicked was rolled back when its transaction dropped.
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Used { guard, _turn: turn })
    }
}

/// The connection in the hands of one thread; given back before the turn is.
struct Used<'a> {
    guard: MutexGuard<'a, Inner>,
    _turn: Turn<'a>,
}

fn log_of(database: &Utf8Path) -> Utf8PathBuf {
    format!("{database}-wal").into()
}

/// A newer version may have migrated the store while this process held it open.
fn check_schema(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let found: u32 = transaction
        .prepare_cached("SELECT schema FROM placement_store_binding")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(failed("read its schema"))?;
    if found == SCHEMA { Ok(()) } else { Err(StoreError::SchemaChanged { known: SCHEMA, found }) }
}
