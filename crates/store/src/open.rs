//! Opening a store: who creates, who migrates, and what is refused.

use crate::error::hint;
use crate::limits::{LOCK_WAIT, MIGRATE_WAIT, WAL_BYTES_MAX};
use crate::lock::{LockError, LockFile};
use crate::migrate::{self, Binding, Content, SCHEMA};
use crate::patience::Patience;
use crate::sql::{SqlError, is_full};
use crate::write::Store;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Clock, Code, Refusal};
use placement_crash::point;
use placement_identity::MachineError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

/// Where a store lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePaths {
    /// The database.
    pub database: Utf8PathBuf,
    /// The lock that every writer takes.
    pub lock: Utf8PathBuf,
}

impl StorePaths {
    /// Names the files of the store below a root.
    pub fn below(root: &Utf8Path) -> Self {
        Self { database: root.join("placement.db"), lock: root.join("placement.lock") }
    }
}

/// What an opening process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A host: creates the store, migrates it and takes its log in.
    Service,
    /// A runner: finds the store as its host left it.
    Runner,
}

impl Role {
    /// Returns the word for it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Runner => "runner",
        }
    }
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no store, and a runner makes none.
    #[error("there is no store")]
    Missing,
    /// The path names something that is not a file.
    #[error("the store is not a file")]
    NotAFile,
    /// There is no store, or an empty one, where there are attempts.
    #[error("the store is missing or empty, and the root holds attempts")]
    Lost,
    /// The file is not a database.
    #[error("the file of the store is not a database")]
    NotADatabase,
    /// A page of the file is not what it should be.
    #[error("the file of the store is damaged")]
    Damaged,
    /// The database is another program's.
    #[error("the database belongs to another program")]
    Foreign,
    /// The store does not say which one it is.
    #[error("the binding or the migration history of the store is malformed")]
    Malformed,
    /// The file cannot be written by this process.
    #[error("the store cannot be written")]
    ReadOnly,
    /// The file system is full.
    #[error("the disk of the store is full")]
    Full,
    /// A newer version has migrated the store.
    #[error("the store has schema {found} and this version knows {known}")]
    Newer {
        /// The schema that was found.
        found: u32,
        /// The newest schema that is known.
        known: u32,
    },
    /// A runner found a store that no host has migrated.
    #[error("the store was not migrated to schema {known}")]
    NotMigrated {
        /// The schema that is needed.
        known: u32,
    },
    /// The store was created on another machine.
    #[error("the store belongs to another machine")]
    OtherMachine,
    /// The boot id of this machine cannot be read.
    #[error("the boot id of this machine cannot be read")]
    Boot(#[source] MachineError),
    /// Another host held the store past the deadline.
    #[error("the store is busy")]
    Busy,
    /// A file of the store could not be made or asked for.
    #[error("the {role} of the store cannot be {operation}")]
    Io {
        /// The file.
        role: &'static str,
        /// What was tried.
        operation: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A migration failed.
    #[error("the store cannot be migrated")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// SQLite failed.
    #[error("the store failed to {operation}")]
    Sql {
        /// What was tried.
        operation: &'static str,
        /// What SQLite said.
        source: SqlError,
    },
}

impl OpenError {
    pub(crate) fn lock(error: LockError) -> Self {
        match error {
            LockError::Busy => Self::Busy,
            LockError::Failed(source) => Self::io("lock", "taken")(source),
        }
    }

    pub(crate) fn io(
        role: &'static str,
        operation: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let kind = source.kind();
            if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                Self::Full
            } else if kind == io::ErrorKind::ReadOnlyFilesystem {
                Self::ReadOnly
            } else {
                Self::Io { role, operation, source }
            }
        }
    }

    pub(crate) fn sql(operation: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match Self::known(&source) {
            Some(known) => known,
            None => Self::Sql { operation, source: SqlError::new(source) },
        }
    }

    /// Wraps what stopped a migration; beneath it is mostly an error of SQLite.
    pub(crate) fn migration(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        let mut beneath: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(one) = beneath {
            if let Some(known) = one.downcast_ref().and_then(Self::known) {
                return known;
            }
            beneath = one.source();
        }
        Self::Migration(Box::new(error))
    }

    /// Sorts an error of SQLite into the ones that callers tell apart.
    fn known(source: &rusqlite::Error) -> Option<Self> {
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Some(Self::Busy),
            Some(ErrorCode::ReadOnly) => Some(Self::ReadOnly),
            Some(ErrorCode::NotADatabase) => Some(Self::NotADatabase),
            Some(ErrorCode::DatabaseCorrupt) => Some(Self::Damaged),
            Some(_) | None => is_full(source).then_some(Self::Full),
        }
    }

    const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::OtherMachine => Some(
                "if the root was moved here and nothing lives in it, `placement adopt-root` says so",
            ),
            Self::Lost => Some(hint::LOST),
            Self::NotAFile
            | Self::NotADatabase
            | Self::Damaged
            | Self::Foreign
            | Self::Malformed => Some(hint::DAMAGED),
            Self::ReadOnly => Some(hint::READ_ONLY),
            Self::Full => Some(hint::FULL),
            Self::Newer { .. } => Some(hint::NEWER),
            Self::Busy => Some(hint::BUSY),
            Self::Missing
            | Self::NotMigrated { .. }
            | Self::Boot(_)
            | Self::Io { .. }
            | Self::Migration(_)
            | Self::Sql { .. } => None,
        }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        let code = match error {
            OpenError::OtherMachine => Code::Conflict,
            OpenError::Missing
            | OpenError::NotAFile
            | OpenError::Lost
            | OpenError::NotADatabase
            | OpenError::Damaged
            | OpenError::Foreign
            | OpenError::Malformed
            | OpenError::ReadOnly
            | OpenError::Full
            | OpenError::Newer { .. }
            | OpenError::NotMigrated { .. }
            | OpenError::Boot(_)
            | OpenError::Busy
            | OpenError::Io { .. }
            | OpenError::Migration(_)
            | OpenError::Sql { .. } => Code::Storage,
        };
        let refusal = Self::new(code, error.to_string());
        match error.hint() {
            Some(hint) => refusal.with_hint(hint),
            None => refusal,
        }
    }
}

impl Store {
    /// Opens a store; a host creates and migrates it where that is due.
    ///
    /// The file is made private (0600). Creating, migrating and binding to the machine happen under
    /// the store's lock, within 30 seconds; opening a store that is ready takes no lock.
    ///
    /// # Errors
    /// [`OpenError`] says what stands against it; nothing that was there is changed then.
    pub fn open(paths: &StorePaths, role: Role, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        match role {
            Role::Runner => Self::open_ready(paths, clock),
            Role::Service => Self::open_or_make(paths, clock, || true),
        }
    }

    /// Opens a store as a host does; where there is none, or an empty one, it is made only if it
    /// may be: who has attempts and no store has lost one.
    ///
    /// # Errors
    /// As [`Store::open`], and [`OpenError::Lost`].
    pub fn open_or_make(
        paths: &StorePaths,
        clock: Arc<dyn Clock>,
        may_be_made: impl FnOnce() -> bool,
    ) -> Result<Self, OpenError> {
        let here = Here::read()?;
        let mut found = look(&paths.database, &here)?;
        if matches!(found, Found::Nothing) && !may_be_made() {
            // Another host may have made it since, and the attempts with it.
            found = look(&paths.database, &here)?;
            if matches!(found, Found::Nothing) {
                return Err(OpenError::Lost);
            }
        }
        // After the look at what is there: beside a file that is no store, nothing is made.
        let lock = LockFile::make(&paths.lock).map_err(OpenError::io("lock", "opened"))?;
        let connection = match found {
            Found::Ready(connection) => connection,
            Found::Nothing | Found::Unready => prepare(&paths.database, &lock, &here)?,
        };
        Ok(Self::new(connection, lock, clock, paths.database.clone(), Role::Service))
    }

    /// Opens a store as its host has left it: what a runner does, whose program is so much smaller
    /// without the migrations.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is made or changed.
    pub fn open_ready(paths: &StorePaths, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let here = Here::read()?;
        if !is_present(&paths.database)? {
            return Err(OpenError::Missing);
        }
        let Found::Ready(connection) = look(&paths.database, &here)? else {
            return Err(OpenError::NotMigrated { known: SCHEMA });
        };
        let lock = LockFile::open(&paths.lock).map_err(OpenError::io("lock", "opened"))?;
        Ok(Self::new(connection, lock, clock, paths.database.clone(), Role::Runner))
    }
}

/// The machine and the boot of this process.
pub(crate) struct Here {
    pub(crate) machine_id: Option<String>,
    pub(crate) boot_id: String,
}

impl Here {
    pub(crate) fn read() -> Result<Self, OpenError> {
        let boot_id = placement_identity::boot_id().map_err(OpenError::Boot)?;
        Ok(Self { machine_id: placement_identity::machine_id(), boot_id })
    }
}

/// Looks by name only: opening the file here and closing it would drop SQLite's locks on it, which
/// other connections of this process rely on.
pub(crate) fn is_present(database: &Utf8Path) -> Result<bool, OpenError> {
    match std::fs::metadata(database) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(OpenError::NotAFile),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(OpenError::io("database", "looked at")(source)),
    }
}

/// What is at the path of a store.
enum Found {
    /// No file, or one without any table.
    Nothing,
    /// A store that is not migrated, bound or switched to its log yet.
    Unready,
    /// A store for which nothing is left to be done.
    Ready(Connection),
}

/// Looks what there is, without changing it.
fn look(database: &Utf8Path, here: &Here) -> Result<Found, OpenError> {
    if !is_present(database)? {
        return Ok(Found::Nothing);
    }
    let connection = connect(database)?;
    match migrate::content(&connection)? {
        Content::Nothing => Ok(Found::Nothing),
        Content::Foreign => Err(OpenError::Foreign),
        Content::Store(binding) if binding.schema > SCHEMA => {
            Err(OpenError::Newer { found: binding.schema, known: SCHEMA })
        }
        Content::Store(binding) => {
            check_machine(&binding, here)?;
            let done = binding.schema == SCHEMA
                && !binding.created_boot.is_empty()
                && journal_mode(&connection)? == "wal";
            Ok(if done { Found::Ready(connection) } else { Found::Unready })
        }
    }
}

/// Creates, migrates and binds, under the lock: of several hosts that open an empty path at once,
/// one does it and the others find it done.
fn prepare(database: &Utf8Path, lock: &LockFile, here: &Here) -> Result<Connection, OpenError> {
    let held = lock.take(&mut Patience::fixed(MIGRATE_WAIT), || false).map_err(OpenError::lock)?;
    create(database)?;
    point("service.store.created");
    if let Found::Ready(connection) = look(database, here)? {
        return Ok(connection);
    }
    let mut connection = connect(database)?;
    bring_up(&mut connection, here)?;
    drop(held);
    Ok(connection)
}

/// Makes whatever is missing of a store. Wherever this ends, the next call goes on: each step is one
/// transaction, and finds what those before it have done.
pub(crate) fn bring_up(connection: &mut Connection, here: &Here) -> Result<(), OpenError> {
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(OpenError::sql("switch to a write-ahead log"))?;
    point("service.log.switched");
    migrate::migrate(connection)?;
    point("service.schema.migrated");
    connection
        .execute(
            "UPDATE placement_store_binding SET machine_id = ?1, created_boot = ?2
             WHERE created_boot = ''",
            (&here.machine_id, &here.boot_id),
        )
        .map_err(OpenError::sql("bind the store to this machine"))?;
    point("service.store.bound");
    Ok(())
}

/// Makes the file with its mode, so that it is at no moment open to others. A file that is there is
/// left alone and not opened.
fn create(database: &Utf8Path) -> Result<(), OpenError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(database) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::io("database", "created")(source)),
    }
}

/// Connects to a file that exists, with the settings of every connection.
pub(crate) fn connect(database: &Utf8Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database.as_std_path(), flags)
        .map_err(OpenError::sql("open the database"))?;
    settings(&connection).map_err(OpenError::sql("set up the connection"))?;
    match connection.is_readonly("main") {
        Ok(false) => Ok(connection),
        Ok(true) => Err(OpenError::ReadOnly),
        Err(source) => Err(OpenError::sql("set up the connection")(source)),
    }
}

fn settings(connection: &Connection) -> rusqlite::Result<()> {
    // First: what follows may meet another process that creates the store.
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Without it a cached statement may be planned again for every value that is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A launch never pays for taking the log in: neither at a commit nor at the last close.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A checkpoint syncs, a commit does not: durable ones are synced when their lock is given back.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // A log that was taken in shrinks when it is begun again.
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_MAX)?;
    connection.pragma_update(None, "foreign_keys", true)
}

fn journal_mode(connection: &Connection) -> Result<String, OpenError> {
    connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(OpenError::sql("read the journal mode"))
}

/// A store without a machine id binds nothing: then each identity says for itself where it is
/// known. A machine that lost its id is the same one within the boot that created the store.
pub(crate) fn check_machine(binding: &Binding, here: &Here) -> Result<(), OpenError> {
    match (&binding.machine_id, &here.machine_id) {
        (None, _) => Ok(()),
        (Some(recorded), Some(own)) if recorded == own => Ok(()),
        (Some(_), None) if binding.created_boot == here.boot_id => Ok(()),
        (Some(_), _) => Err(OpenError::OtherMachine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(recorded: Option<&str>, own: Option<&str>, boot: &str) -> bool {
        let binding = Binding {
            schema: 1,
            machine_id: recorded.map(str::to_owned),
            created_boot: "boot-1".into(),
        };
        let here = Here { machine_id: own.map(str::to_owned), boot_id: boot.into() };
        check_machine(&binding, &here).is_ok()
    }

    #[test]
    fn a_store_is_opened_on_its_own_machine() {
        assert!(check(Some("m"), Some("m"), "boot-2"));
        assert!(!check(Some("m"), Some("n"), "boot-1"));
    }

    #[test]
    fn a_machine_that_lost_its_id_is_known_within_the_boot() {
        assert!(check(Some("m"), None, "boot-1"));
        assert!(!check(Some("m"), None, "boot-2"));
    }

    #[test]
    fn a_store_without_a_machine_binds_nothing() {
        assert!(check(None, Some("m"), "boot-2"));
        assert!(check(None, None, "boot-2"));
    }
}
