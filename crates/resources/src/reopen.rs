//! Opening a granted directory again, right before it is used.

use crate::admit::ResolvedGrant;
use placement_paths::{
    Dir, OpenError, ResolveError, WithinError, directory_within, resolve_directory,
};

/// Why a granted directory is not handed to a child.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// The root or the directory cannot be resolved any more.
    #[error("the granted directory cannot be resolved")]
    Resolve(#[source] ResolveError),
    /// The subpath leads out of its root.
    #[error("the granted directory leads out of its root")]
    Escapes,
    /// Another directory is in its place.
    #[error("the granted directory is not the one that was admitted")]
    Moved,
    /// It cannot be opened.
    #[error("the granted directory cannot be opened")]
    Open(#[source] OpenError),
}

/// Resolves a grant once more and opens its directory.
///
/// The path is compared on the open descriptor too, so that a link that is put in its place
/// between the two steps is noticed; from there on the descriptor is what counts.
///
/// # Errors
/// [`ReopenError`]; nothing is opened then.
pub fn reopen(grant: &ResolvedGrant) -> Result<Dir, ReopenError> {
    let root = resolve_directory(&grant.root).map_err(ReopenError::Resolve)?;
    if root.as_path() != grant.root {
        return Err(ReopenError::Moved);
    }
    let directory =
        directory_within(&root, grant.subpath.as_str()).map_err(|error| match error {
            // A subpath that the grammar refuses was never admitted.
            WithinError::Subpath(_) | WithinError::Escapes => ReopenError::Escapes,
            WithinError::Resolve(error) => ReopenError::Resolve(error),
        })?;
    if directory.as_path() != grant.directory {
        return Err(ReopenError::Moved);
    }
    let held = directory.open("granted").map_err(ReopenError::Open)?;
    if held.path().map_err(ReopenError::Resolve)? != grant.directory {
        return Err(ReopenError::Moved);
    }
    Ok(held)
}
