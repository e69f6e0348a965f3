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

/// A column of a query: where it stands, and its name for whoever cannot read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) position: usize,
    pub(crate) name: &'static str,
}

impl Column {
    pub(crate) fn corrupt(self) -> StoreError {
        StoreError::Corrupt { column: self.name }
    }
}

/// Lists the columns of a table in the order in which they are selected, so that a row is read by
/// position: SQLite compares the names of all columns for each that is asked for by its name.
macro_rules! columns {
    ($(#[$doc:meta])* $table:ident { $first:ident $(, $rest:ident)* $(,)? }) => {
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "each is spelled as in the schema")]
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum $table { $first $(, $rest)* }

        impl $table {
            /// What a query selects.
            pub(crate) const SELECTED: &str =
                concat!(stringify!($first) $(, ", ", stringify!($rest))*);

            /// Returns the column as any table's.
            pub(crate) const fn at(self) -> $crate::sql::Column {
                const NAMES: &[&str] = &[stringify!($first) $(, stringify!($rest))*];
                $crate::sql::Column { position: self as usize, name: NAMES[self as usize] }
            }
        }

        impl From<$table> for $crate::sql::Column {
            fn from(column: $table) -> Self {
                column.at()
            }
        }
    };
}
pub(crate) use columns;

/// Reads a column, or tells that it holds another type.
pub(crate) fn column<T: rusqlite::types::FromSql>(
    row: &rusqlite::Row<'_>,
    column: impl Into<Column>,
) -> Result<T, StoreError> {
    let column = column.into();
    row.get(column.position).map_err(|_| column.corrupt())
}

/// Reads a text that may be missing, as what it stands for.
pub(crate) fn optional<T>(
    row: &rusqlite::Row<'_>,
    column: impl Into<Column>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let column = column.into();
    let Ok(text) = row.get_ref(column.position).and_then(|value| Ok(value.as_str_or_null()?))
    else {
        return Err(column.corrupt());
    };
    text.map(|text| parse(text).ok_or_else(|| column.corrupt())).transpose()
}

/// Reads a text as what it stands for.
pub(crate) fn parsed<T>(
    row: &rusqlite::Row<'_>,
    column: impl Into<Column>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    let column = column.into();
    optional(row, column, parse)?.ok_or_else(|| column.corrupt())
}

/// Reads a whole number that is never negative.
pub(crate) fn number(
    row: &rusqlite::Row<'_>,
    column: impl Into<Column>,
) -> Result<u64, StoreError> {
    let column = column.into();
    optional_number(row, column)?.ok_or_else(|| column.corrupt())
}

/// Reads a whole number that may be missing.
pub(crate) fn optional_number(
    row: &rusqlite::Row<'_>,
    at: impl Into<Column>,
) -> Result<Option<u64>, StoreError> {
    let at = at.into();
    let number: Option<i64> = column(row, at)?;
    number.map(|number| u64::try_from(number).map_err(|_| at.corrupt())).transpose()
}

/// Writes a whole number in SQLite's signed 64 bits.
pub(crate) fn to_column(number: u64, column: &'static str) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::TooLarge { column })
}
