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
        Self::new(Code::Storage, error.to_string())
    }
}
