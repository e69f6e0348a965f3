//! The edge to SQLite: its errors and its numbers.

use crate::error::StoreError;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// What SQLite said; it may quote the schema, never a value.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SqlError(rusqlite::Error);

impl SqlError {
    pub(crate) fn new(source: rusqlite::Error) -> Self {
        Self(source)
    }
}

/// Sorts an error of SQLite into the ones that callers tell apart.
pub(crate) fn failed(operation: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged,
        Some(_) | None if is_full(&source) => StoreError::Full,
        Some(_) | None => StoreError::Sql { operation, source: SqlError(source) },
    }
}

/// Tells that there is no room: for a page, or for the index of the log that processes share.
pub(crate) fn is_full(source: &rusqlite::Error) -> bool {
    source.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || source.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE)
}

/// Reads a column, or tells that it holds another type.
pub(crate) fn column<T: rusqlite::types::FromSql>(
    row: &rusqlite::Row<'_>,
    column: &'static str,
) -> Result<T, StoreError> {
    row.get(column).map_err(|_| StoreError::Corrupt { column })
}

/// Reads a whole number that is never negative.
pub(crate) fn number(row: &rusqlite::Row<'_>, name: &'static str) -> Result<u64, StoreError> {
    optional_number(row, name)?.ok_or(StoreError::Corrupt { column: name })
}

/// Reads a whole number that may be missing.
pub(crate) fn optional_number(
    row: &rusqlite::Row<'_>,
    name: &'static str,
) -> Result<Option<u64>, StoreError> {
    let number: Option<i64> = column(row, name)?;
    number
        .map(|number| u64::try_from(number).map_err(|_| StoreError::Corrupt { column: name }))
        .transpose()
}

/// Writes a whole number in SQLite's signed 64 bits.
pub(crate) fn to_column(number: u64, column: &'static str) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::TooLarge { column })
}
