//! What can go wrong with the store itself; each operation adds its own refusals.

use crate::sql::SqlError;
use placement_contract::{Code, Refusal};

/// The store could not be read or written, or holds what it should not.
///
/// Its text is fixed phrases; what SQLite and the operating system said is in the source and never
/// goes into evidence or replies.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer held the store past the deadline.
    #[error("the store is busy")]
    Busy,
    /// The schema is not the one with which the store was opened.
    #[error("the schema of the store changed from {known} to {found}")]
    SchemaChanged {
        /// The schema with which it was opened.
        known: u32,
        /// The schema that was found.
        found: u32,
    },
    /// A column holds what it should not.
    #[error("the column {column} is malformed")]
    Corrupt {
        /// The column.
        column: &'static str,
    },
    /// A page of the file is not what it should be.
    #[error("the file of the store is damaged")]
    Damaged,
    /// A number does not fit its column.
    #[error("a number does not fit the column {column}")]
    TooLarge {
        /// The column.
        column: &'static str,
    },
    /// The file or its file system cannot be written.
    #[error("the store cannot be written")]
    ReadOnly,
    /// The file system is full.
    #[error("the disk of the store is full")]
    Full,
    /// The lock of the store could not be asked for.
    #[error("the lock of the store failed")]
    Lock(#[source] std::io::Error),
    /// What was committed could not be synced: it is there, and may be lost by a power failure.
    #[error("the store could not be synced")]
    Sync(#[source] std::io::Error),
    /// SQLite failed.
    #[error("the store failed to {operation}")]
    Sql {
        /// What was tried, as in "read an attempt".
        operation: &'static str,
        /// What SQLite said.
        source: SqlError,
    },
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let refusal = Self::new(Code::Storage, error.to_string());
        match error {
            StoreError::Busy => refusal.with_hint(hint::BUSY),
            StoreError::SchemaChanged { .. } => refusal.with_hint(hint::NEWER),
            StoreError::Damaged => refusal.with_hint(hint::DAMAGED),
            StoreError::ReadOnly => refusal.with_hint(hint::READ_ONLY),
            StoreError::Full => refusal.with_hint(hint::FULL),
            StoreError::Corrupt { .. }
            | StoreError::TooLarge { .. }
            | StoreError::Lock(_)
            | StoreError::Sync(_)
            | StoreError::Sql { .. } => refusal,
        }
    }
}

/// What to do about a store that cannot be used.
pub(crate) mod hint {
    pub(crate) const BUSY: &str = "try again; another process holds the store";
    pub(crate) const NEWER: &str = "use the version that migrated it, or a newer one; runners of this one leave what they saw for it";
    pub(crate) const DAMAGED: &str = "nothing was changed; put an intact copy of placement.db in its place, with its -wal and \
         without its -shm, or name another root with --root";
    pub(crate) const READ_ONLY: &str =
        "make it writable for this user; what runs goes on meanwhile and is recorded then";
    pub(crate) const FULL: &str =
        "make room on the disk of the root; what runs goes on meanwhile and is recorded then";
    pub(crate) const LOST: &str = "nothing was made; put a copy of placement.db back, with its -wal and without its -shm, or \
         name another root with --root";
}
