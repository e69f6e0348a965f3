//! Binding a store to this machine that was created on another one.

use crate::limits::MIGRATE_WAIT;
use crate::lock::LockFile;
use crate::migrate::{Content, SCHEMA, content};
use crate::open::{Here, OpenError, StorePaths, check_machine, connect, is_present};
use crate::patience::Patience;

/// Whether a store had to be bound anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// It is of this machine already.
    AlreadyHere,
    /// It was of another machine.
    Moved,
}

/// Binds a store to this machine; durable. Nothing else in it is changed, nor is it migrated.
///
/// `may_be` is asked under the store's lock, right before: whether nothing lives in the root.
///
/// # Errors
/// As [`Store::open`](crate::Store::open) for a store that this version cannot read, and what
/// `may_be` says.
pub fn adopt<E: From<OpenError>>(
    paths: &StorePaths,
    may_be: impl FnOnce() -> Result<(), E>,
) -> Result<Adopted, E> {
    if !is_present(&paths.database)? {
        return Err(OpenError::Missing.into());
    }
    let here = Here::read()?;
    let lock = LockFile::make(&paths.lock).map_err(OpenError::io("lock", "opened"))?;
    let _held = lock.take(&mut Patience::fixed(MIGRATE_WAIT), || false).map_err(OpenError::lock)?;
    let connection = connect(&paths.database)?;
    let binding = match content(&connection)? {
        Content::Store(binding) => binding,
        Content::Nothing => return Err(OpenError::Missing.into()),
        Content::Foreign => return Err(OpenError::Foreign.into()),
    };
    if binding.schema > SCHEMA {
        return Err(OpenError::Newer { found: binding.schema, known: SCHEMA }.into());
    }
    if check_machine(&binding, &here).is_ok() {
        return Ok(Adopted::AlreadyHere);
    }
    may_be()?;
    connection
        .execute(
            "UPDATE placement_store_binding SET machine_id = ?1, created_boot = ?2",
            (&here.machine_id, &here.boot_id),
        )
        .map_err(OpenError::sql("bind the store to this machine"))?;
    Ok(Adopted::Moved)
}
