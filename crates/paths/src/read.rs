//! Opening and reading regular files below a directory.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::fs::{FileType, OFlags};

use crate::failure::{IoFailure, OpenError, Place};
use crate::{Dir, RelativePath, beneath};

/// What an existing file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing at any offset.
    ReadWrite,
    /// Writing at the end only.
    Append,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be opened.
    #[error(transparent)]
    Open(OpenError),
    /// It holds more bytes than the caller takes.
    #[error("{place} holds more than {bytes_max} bytes")]
    TooLarge {
        /// Where it lies.
        place: Place,
        /// The caller's bound, in bytes.
        bytes_max: usize,
    },
    /// Reading failed.
    #[error(transparent)]
    Io(IoFailure),
}

impl Dir {
    /// Opens an existing regular file below this directory, following no link in any component.
    ///
    /// A pipe or a device is refused and never waited for. The descriptor is close-on-exec.
    ///
    /// # Errors
    /// [`OpenError::SymbolicLink`], [`OpenError::NotARegularFile`], [`OpenError::Missing`], or the
    /// rest.
    pub fn open_file(&self, path: &RelativePath, access: Access) -> Result<File, OpenError> {
        let access = match access {
            Access::Read => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
            Access::Append => OFlags::WRONLY | OFlags::APPEND,
        };
        // O_NONBLOCK: a pipe planted under the name must not block the open.
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY;
        let failed = |errno| OpenError::from_errno(errno, self.below());
        let descriptor = beneath::open(self.as_fd(), path, flags).map_err(failed)?;
        let stat = rustix::fs::fstat(&descriptor).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(OpenError::NotARegularFile { place: self.below() });
        }
        let status = access.intersection(OFlags::APPEND);
        rustix::fs::fcntl_setfl(&descriptor, status).map_err(failed)?;
        Ok(descriptor.into())
    }

    /// Reads a whole regular file of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`ReadError::TooLarge`] without the content; the rest as [`Dir::open_file`].
    pub fn read_bounded(
        &self,
        path: &RelativePath,
        bytes_max: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let file = self.open_file(path, Access::Read).map_err(ReadError::Open)?;
        let mut bytes = Vec::new();
        let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        file.take(bound)
            .read_to_end(&mut bytes)
            .map_err(|source| ReadError::Io(IoFailure::new("read", self.below(), source)))?;
        if bytes.len() > bytes_max {
            return Err(ReadError::TooLarge { place: self.below(), bytes_max });
        }
        Ok(bytes)
    }
}
