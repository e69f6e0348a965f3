//! Finding a program by name on a search path.

use crate::limits::{PATH_BYTES_MAX, SEARCH_PATH_BYTES_MAX};
use crate::open::{OpenError, check_path};
use camino::{Utf8Path, Utf8PathBuf};

/// Why no program was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// Nothing of that name is there.
    #[error("the program was not found")]
    NotFound,
    /// What is there cannot be executed.
    #[error("the program is not executable")]
    NotExecutable,
    /// Its links lead in a circle, or through more of them than the kernel follows.
    #[error("the program's links lead in a circle or through too many (ELOOP)")]
    Links,
    /// The name is empty or a relative path.
    #[error("the program must be an absolute path or a name without a slash")]
    Invalid,
    /// The search path is out of bounds.
    #[error("the search path is longer than 131072 bytes")]
    SearchPath,
}

/// Finds a program: an absolute path is checked, a name is looked for on the search path.
///
/// Empty and relative directories of the search path are skipped: they would mean the directory
/// where the host happens to run. The first regular file that may be executed wins; a directory of
/// that name, or one that may not be searched, is passed over. Links are not resolved, since
/// programs look at the name under which they were started. The answer may be outdated at once;
/// [`crate::Measuring`] looks again.
///
/// # Errors
/// [`SearchError::NotExecutable`] if there are only files that may not be executed;
/// [`SearchError::Links`] for an absolute path whose links end nowhere.
pub fn search(name: &str, search_path: &str) -> Result<Utf8PathBuf, SearchError> {
    if name.is_empty() || name.contains('\0') {
        return Err(SearchError::Invalid);
    }
    if search_path.len() > SEARCH_PATH_BYTES_MAX {
        return Err(SearchError::SearchPath);
    }
    if name.len() >= PATH_BYTES_MAX {
        // No file can have it.
        return Err(SearchError::NotFound);
    }
    if Utf8Path::new(name).is_absolute() {
        return check_path(name).map(|()| Utf8PathBuf::from(name)).map_err(|error| match error {
            OpenError::Missing => SearchError::NotFound,
            OpenError::Links => SearchError::Links,
            OpenError::NotRegular(_)
            | OpenError::NotExecutable
            | OpenError::NotReadable
            | OpenError::Io { .. } => SearchError::NotExecutable,
        });
    }
    if name.contains('/') || name == "." || name == ".." {
        return Err(SearchError::Invalid);
    }
    let mut refused = SearchError::NotFound;
    for directory in search_path.split(':').map(Utf8Path::new) {
        let candidate = directory.join(name);
        if !directory.is_absolute() || candidate.as_str().len() >= PATH_BYTES_MAX {
            continue;
        }
        match check_path(candidate.as_str()) {
            Ok(()) => return Ok(candidate),
            Err(OpenError::NotExecutable) if is_reachable(&candidate) => {
                refused = SearchError::NotExecutable;
            }
            Err(
                OpenError::Missing
                | OpenError::Links
                | OpenError::NotRegular(_)
                | OpenError::NotExecutable
                | OpenError::NotReadable
                | OpenError::Io { .. },
            ) => {}
        }
    }
    Err(refused)
}

/// Tells a file that may not be executed from a directory that may not be searched.
fn is_reachable(candidate: &Utf8Path) -> bool {
    std::fs::metadata(candidate).is_ok()
}
