//! Looking at the whole file: is every page what it should be, and whose attempts are in it.

use crate::error::StoreError;
use crate::sql::failed;
use crate::write::Store;
use rusqlite::{Connection, ErrorCode};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// What a look at the whole file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Soundness {
    /// Every page and every index is what it should be.
    Sound,
    /// Something is not.
    Damaged,
    /// The look took too long; nothing was found so far.
    Unfinished,
}

impl Store {
    /// Looks at every page of the file and compares the indexes with their tables, for at most so
    /// long. Reads only.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read; that it is damaged is no error.
    pub fn check(&self, at_most: Duration) -> Result<Soundness, StoreError> {
        self.borrow(|connection| {
            let told = within(connection, at_most, |connection| {
                connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))
            });
            match told {
                Ok(text) if text == "ok" => Ok(Soundness::Sound),
                Ok(_) => Ok(Soundness::Damaged),
                Err(error) if is_interrupted(&error) => Ok(Soundness::Unfinished),
                Err(error) => {
                    let error = failed("check the file")(error);
                    let is_damaged = matches!(error, StoreError::Damaged);
                    if is_damaged { Ok(Soundness::Damaged) } else { Err(error) }
                }
            }
        })
    }

    /// Returns the keys of the homes of all attempts, of every owner; nothing where that takes longer
    /// than so long.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read.
    pub fn home_keys(&self, at_most: Duration) -> Result<Option<BTreeSet<String>>, StoreError> {
        self.borrow(|connection| {
            let told = within(connection, at_most, |connection| {
                let sql = "SELECT home_key FROM placement_attempts WHERE home_key IS NOT NULL";
                let mut statement = connection.prepare(sql)?;
                statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()
            });
            match told {
                Ok(keys) => Ok(Some(keys)),
                Err(error) if is_interrupted(&error) => Ok(None),
                Err(error) => Err(failed("list the homes")(error)),
            }
        })
    }
}

/// Runs something that is interrupted when it takes too long.
fn within<T>(
    connection: &Connection,
    at_most: Duration,
    body: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let handle = connection.get_interrupt_handle();
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_over.recv_timeout(at_most) == Err(RecvTimeoutError::Timeout) {
                handle.interrupt();
            }
        });
        let done = body(connection);
        drop(over);
        done
    })
}

fn is_interrupted(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}
