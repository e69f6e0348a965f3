//! The files that are put into a home before its program starts.

mod base;
mod parent;
mod protected;
mod published;

pub use base::ReadBaseError;
pub use parent::ParentError;
pub(crate) use parent::{Durability, Way};
pub use protected::{Replay, WriteProtectedError, Written};
pub use published::PublishConfigurationError;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use placement_contract::authority::LoginFile;
use placement_contract::limits::COMPOSED_BYTES_MAX;
use placement_contract::request::RelativePath;
use placement_paths::{CreateError, Dir, DirectoryId, IoFailure, PrivateDir, PrivateError};

use crate::limits::CONFIGURATION_BYTES_MAX;
use crate::login::{LOGIN_MARKER, paths_of};
use crate::root::Root;

const ROLE: &str = "home";
pub(crate) const FILE_MODE: u32 = 0o600;

/// The files of one home while one start prepares it.
///
/// Remembers which directories this start made: others are not taken over. Everything is reached
/// from the home's descriptor without following a link. Before each step the root is looked at again:
/// it must be ours alone by its actual mode.
#[derive(Debug)]
pub struct HomeFiles {
    root: Dir,
    home: Dir,
    login: Option<LoginFile>,
    created: BTreeMap<String, DirectoryId>,
}

/// Why the files of a home are not prepared.
#[derive(Debug, thiserror::Error)]
pub enum HomeFilesError {
    /// The login or what comes with it would stand where the marker of a seed does.
    #[error("the login overlaps the marker of a retained home")]
    OverlapsMarker,
    /// No further descriptor of the root can be had.
    #[error("the root directory cannot be held")]
    Root(#[source] IoFailure),
}

/// Where the content of a file comes from, by which it is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is as it was delivered: at most 16 384 bytes.
    Delivered,
    /// It was composed with what was there: at most 131 072 bytes.
    Composed,
}

impl HomeFiles {
    /// Prepares a home below the root, with the login file that it will have.
    ///
    /// # Errors
    /// [`HomeFilesError::OverlapsMarker`] for a login that would stand in the place of the marker.
    pub fn of(root: &Root, home: Dir, login: Option<&LoginFile>) -> Result<Self, HomeFilesError> {
        let marker = marker();
        let overlaps = |login: &LoginFile| paths_of(login).any(|path| path.overlaps(&marker));
        if login.is_some_and(overlaps) {
            return Err(HomeFilesError::OverlapsMarker);
        }
        let root = root.dir().try_clone().map_err(HomeFilesError::Root)?;
        let home = home.with_role(ROLE);
        Ok(Self { root, home, login: login.cloned(), created: BTreeMap::new() })
    }

    /// Returns the home's directory.
    pub fn home(&self) -> &Dir {
        &self.home
    }

    pub(crate) fn login(&self) -> Option<&LoginFile> {
        self.login.as_ref()
    }

    /// Looks at the root's owner and mode as they are now.
    pub(crate) fn check_root(&self) -> Result<(), PrivateError> {
        let root = self.root.try_clone().map_err(PrivateError::Io)?;
        PrivateDir::check(root).map(drop)
    }

    /// Says whether configuration at a path would touch the login, what comes with it, or the marker.
    pub(crate) fn is_reserved(&self, path: &RelativePath) -> bool {
        let login = self.login.iter().flat_map(paths_of);
        path.overlaps(&marker()) || login.into_iter().any(|reserved| path.overlaps(reserved))
    }
}

impl Content {
    pub(crate) const fn bytes_max(self) -> usize {
        match self {
            Self::Delivered => CONFIGURATION_BYTES_MAX,
            Self::Composed => COMPOSED_BYTES_MAX,
        }
    }
}

/// Why a new file was not written.
#[derive(Debug)]
pub(crate) enum NewFileError {
    Create(CreateError),
    Write(io::Error),
}

/// Creates a file that must be the first of its name; one that finds no room leaves nothing behind.
///
/// Survives the death of the process, not power loss.
pub(crate) fn write_new(parent: &Dir, name: &str, bytes: &[u8]) -> Result<(), NewFileError> {
    let mut file: File = parent.create_file(name, FILE_MODE).map_err(NewFileError::Create)?;
    file.write_all(bytes).map_err(|source| {
        // Best effort: the first error counts, and nobody starts after it.
        parent.remove_file(name).ok();
        NewFileError::Write(source)
    })
}

/// Takes a path of the contract for one that can be resolved.
pub(crate) fn resolvable(path: &RelativePath) -> placement_paths::RelativePath {
    placement_paths::RelativePath::parse(path.as_str())
        .expect("a relative path of the contract is safe to resolve")
}

fn marker() -> RelativePath {
    RelativePath::parse(LOGIN_MARKER).expect("the name of the marker is a relative path")
}
