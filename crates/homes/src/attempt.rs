//! The directory of one attempt.

use camino::Utf8PathBuf;
use placement_paths::{
    CreateError, Dir, OpenError, RelativePath, RemoveError, Removed, ResolveError,
};
use placement_transitions::ScopeGone;

use crate::key::HomeKey;

/// Name of the control socket in the attempt directory.
pub const CONTROL_SOCKET: &str = "control";
/// Name of the data socket in the attempt directory.
pub const DATA_SOCKET: &str = "data";

const ROLE: &str = "attempt";
pub(crate) const HOME: &str = "home";

/// The directory of one attempt: its home, its runner's lock and sockets, its exit record, its log.
#[derive(Debug)]
pub struct AttemptDir {
    directory: Dir,
    key: HomeKey,
}

/// Why an attempt's home was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateHomeError {
    /// There is one already; a home is never used twice.
    #[error("the home exists already")]
    AlreadyExists,
    /// It could not be created for another reason.
    #[error("the home could not be created")]
    Create(#[source] CreateError),
    /// Its physical path cannot be told or is not UTF-8.
    #[error("the path of the home cannot be used")]
    Path(#[source] ResolveError),
}

impl AttemptDir {
    pub(crate) fn of(directory: Dir, key: HomeKey) -> Self {
        Self { directory: directory.with_role(ROLE), key }
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Dir {
        &self.directory
    }

    /// Returns its key.
    pub fn key(&self) -> &HomeKey {
        &self.key
    }

    /// Creates the attempt's home, empty and with mode 0700, and returns its physical path.
    ///
    /// # Errors
    /// [`CreateHomeError::AlreadyExists`] when there is one; it is left alone.
    pub fn create_home(&self) -> Result<Utf8PathBuf, CreateHomeError> {
        match self.directory.create_dir(HOME, 0o700) {
            Ok(home) => home.path().map_err(CreateHomeError::Path),
            Err(CreateError::AlreadyExists { .. }) => Err(CreateHomeError::AlreadyExists),
            Err(error) => Err(CreateHomeError::Create(error)),
        }
    }

    /// Opens the attempt's home.
    ///
    /// # Errors
    /// There is none, or something else stands under its name.
    pub fn open_home(&self) -> Result<Dir, OpenError> {
        self.directory.open_dir(&fixed_name(HOME))
    }

    /// Removes the attempt's home; its log and its exit record stay.
    ///
    /// The proof says that nothing is left that could still use it.
    ///
    /// # Errors
    /// Part of it is left; removing it again goes on.
    pub fn remove_home(&self, _proof: &ScopeGone) -> Result<Removed, RemoveError> {
        self.directory.remove_tree(HOME)
    }

    /// Removes the names of both sockets; one that is not there is no error.
    ///
    /// # Errors
    /// The system denies it.
    pub fn remove_sockets(&self) -> Result<(), CreateError> {
        for name in [CONTROL_SOCKET, DATA_SOCKET] {
            remove_if_present(&self.directory, name)?;
        }
        Ok(())
    }
}

pub(crate) fn remove_if_present(directory: &Dir, name: &str) -> Result<(), CreateError> {
    match directory.remove_file(name) {
        Ok(()) | Err(CreateError::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn fixed_name(text: &str) -> RelativePath {
    RelativePath::parse(text).expect("a fixed name is a safe relative path")
}
