//! Reading what a file is composed with.

use placement_contract::Digest;
use placement_contract::limits::COMPOSED_BYTES_MAX;
use placement_contract::request::RelativePath;
use placement_paths::{OpenError, PrivateError, ReadError};

use crate::files::{HomeFiles, resolvable};

/// Why a base was not read. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum ReadBaseError {
    /// The root is not ours alone.
    #[error("the root directory is not private")]
    Root(#[source] PrivateError),
    /// It is no file that comes with the login.
    #[error("the base is no file that comes with the login")]
    NotABase,
    /// It is not there.
    #[error("the base is missing")]
    Missing,
    /// It is not what was admitted.
    #[error("the base is not what was admitted")]
    Changed,
    /// It cannot be read, or is a link or no regular file.
    #[error("the base cannot be read")]
    Read(#[source] ReadError),
}

impl HomeFiles {
    /// Reads the base of a composition: a file that came with the login, unchanged since.
    ///
    /// `admitted` is the digest that was bound when the home was seeded.
    ///
    /// # Errors
    /// [`ReadBaseError`]; a base that is empty as admitted is none.
    pub fn read_base(
        &self,
        path: &RelativePath,
        admitted: &Digest,
    ) -> Result<Vec<u8>, ReadBaseError> {
        self.check_root().map_err(ReadBaseError::Root)?;
        let mut bases = self.login().into_iter().flat_map(|login| &login.initialize);
        if !bases.any(|base| base.path == *path) {
            return Err(ReadBaseError::NotABase);
        }
        let bytes = match self.home().read_bounded(&resolvable(path), COMPOSED_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(ReadError::Open(OpenError::Missing { .. })) => return Err(ReadBaseError::Missing),
            Err(ReadError::TooLarge { .. }) => return Err(ReadBaseError::Changed),
            Err(error) => return Err(ReadBaseError::Read(error)),
        };
        if Digest::of_bytes(&bytes) != *admitted {
            return Err(ReadBaseError::Changed);
        }
        Ok(bytes)
    }
}
