//! Writing a file into an attempt's home, once.

use std::io;

use placement_contract::request::RelativePath;
use placement_paths::{CreateError, OpenError, PrivateError, ReadError};

use crate::files::{
    Content, Durability, HomeFiles, NewFileError, ParentError, Way, resolvable, write_new,
};
use crate::limits::CONFIGURATION_BYTES_MAX;

/// Whether a file may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It may not.
    Refused,
    /// It may where it holds the same bytes, at most 16 384 of them.
    Identical,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It was written.
    New,
    /// It held the same bytes and was left alone.
    Identical,
}

/// Why a file was not written; one that is there was left alone.
#[derive(Debug, thiserror::Error)]
pub enum WriteProtectedError {
    /// The root is not ours alone.
    #[error("the root directory is not private")]
    Root(#[source] PrivateError),
    /// It would touch the login, what comes with it, or the marker.
    #[error("the file overlaps the login, a file that comes with it, or its marker")]
    Overlaps,
    /// It is above its bound.
    #[error("the file is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound, in bytes.
        bytes_max: usize,
    },
    /// There is no directory for it.
    #[error("there is no directory for the file")]
    Parent(#[source] ParentError),
    /// There is something of its name already.
    #[error("the file exists already")]
    AlreadyExists,
    /// There is a file of its name with other bytes.
    #[error("the file exists already and differs")]
    Differs,
    /// What is there could not be compared with it.
    #[error("what stands in the place of the file could not be compared with it")]
    Compare(#[source] ReadError),
    /// It could not be created.
    #[error("the file could not be created")]
    Create(#[source] CreateError),
    /// Its bytes could not be written; nothing of it was left.
    #[error("the file could not be written")]
    Write(#[source] io::Error),
}

impl HomeFiles {
    /// Writes a file (0600) that must be the first of its name, and the directories on its way.
    ///
    /// Directories that this start did not make are not used, except that a file with the same bytes
    /// is accepted wherever it lies if `replay` says so. Survives the death of the process, not power
    /// loss: after that no attempt goes on.
    ///
    /// # Errors
    /// [`WriteProtectedError`]; directories that were made for it stay.
    pub fn write_protected(
        &mut self,
        path: &RelativePath,
        bytes: &[u8],
        content: Content,
        replay: Replay,
    ) -> Result<Written, WriteProtectedError> {
        self.check_root().map_err(WriteProtectedError::Root)?;
        if self.is_reserved(path) {
            return Err(WriteProtectedError::Overlaps);
        }
        let bytes_max = content.bytes_max();
        if bytes.len() > bytes_max {
            return Err(WriteProtectedError::TooLarge { bytes_max });
        }
        let path = resolvable(path);
        if replay == Replay::Identical && self.holds(&path, bytes)? {
            return Ok(Written::Identical);
        }
        let parent = self
            .parent(&path, Way::MadeHere, Durability::ProcessDeath)
            .map_err(WriteProtectedError::Parent)?;
        match write_new(&parent, path.name(), bytes) {
            Ok(()) => Ok(Written::New),
            Err(NewFileError::Create(CreateError::AlreadyExists { .. })) => {
                Err(WriteProtectedError::AlreadyExists)
            }
            Err(NewFileError::Create(error)) => Err(WriteProtectedError::Create(error)),
            Err(NewFileError::Write(source)) => Err(WriteProtectedError::Write(source)),
        }
    }

    /// Says whether there is a file with these bytes; one with others refuses.
    fn holds(
        &self,
        path: &placement_paths::RelativePath,
        bytes: &[u8],
    ) -> Result<bool, WriteProtectedError> {
        match self.home().read_bounded(path, CONFIGURATION_BYTES_MAX) {
            Ok(there) if there == bytes => Ok(true),
            Ok(_) | Err(ReadError::TooLarge { .. }) => Err(WriteProtectedError::Differs),
            Err(ReadError::Open(OpenError::Missing { .. })) => Ok(false),
            Err(error) => Err(WriteProtectedError::Compare(error)),
        }
    }
}
