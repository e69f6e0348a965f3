//! Opening a program without touching what is not a regular file.

use crate::facts::Facts;
use camino::Utf8Path;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, open};
use rustix::io::Errno;
use std::fs::{File, FileType};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;

/// What a file is that cannot be a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// Why a file cannot be opened as a program.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there.
    #[error("there is no such file")]
    Missing,
    /// Its links lead in a circle, or through more of them than the kernel follows.
    #[error("its links lead in a circle or through too many (ELOOP)")]
    Links,
    /// It is not a regular file.
    #[error("it is not a regular file")]
    NotRegular(FileKind),
    /// It cannot be executed: no permission, or a file system mounted without it.
    #[error("it is not executable")]
    NotExecutable,
    /// It cannot be read, so it cannot be measured.
    #[error("it is not readable")]
    NotReadable,
    /// The operating system failed.
    #[error("{operation} failed")]
    Io {
        /// The call.
        operation: &'static str,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

/// Opens a program for reading and tells its facts.
///
/// The file is opened with `O_PATH` first and reopened through `/proc/self/fd` once it is known to
/// be regular: opening a device can have effects and opening a named pipe can block. Links are
/// followed. See <https://man7.org/linux/man-pages/man2/open.2.html>.
pub(crate) fn open_program(path: &Utf8Path) -> Result<(File, Facts), OpenError> {
    let held = open(path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| lookup_error("open", errno))?;
    let held = File::from(held);
    let metadata = held.metadata().map_err(|source| OpenError::Io { operation: "stat", source })?;
    check_regular(metadata.file_type())?;
    let by_descriptor = format!("/proc/self/fd/{}", held.as_raw_fd());
    check_executable(&by_descriptor)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(by_descriptor.as_str(), flags, Mode::empty()).map_err(|errno| match errno {
        Errno::ACCESS | Errno::PERM => OpenError::NotReadable,
        other => OpenError::Io { operation: "open for reading", source: other.into() },
    })?;
    let file = File::from(file);
    let metadata = file.metadata().map_err(|source| OpenError::Io { operation: "stat", source })?;
    Ok((file, Facts::of(&metadata)))
}

/// Checks that a path names a regular file that this process may execute.
pub(crate) fn check_path(path: &str) -> Result<(), OpenError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| match Errno::from_io_error(&source) {
            Some(errno) => lookup_error("stat", errno),
            None => OpenError::Io { operation: "stat", source },
        })?;
    check_regular(metadata.file_type())?;
    check_executable(path)
}

fn lookup_error(operation: &'static str, errno: Errno) -> OpenError {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => OpenError::Missing,
        Errno::LOOP => OpenError::Links,
        // A directory on the way may not be searched, so nothing there can be executed.
        Errno::ACCESS => OpenError::NotExecutable,
        other => OpenError::Io { operation, source: other.into() },
    }
}

fn check_regular(kind: FileType) -> Result<(), OpenError> {
    if kind.is_file() {
        return Ok(());
    }
    Err(OpenError::NotRegular(if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_fifo() {
        FileKind::Fifo
    } else if kind.is_socket() {
        FileKind::Socket
    } else {
        FileKind::Device
    }))
}

/// Asks `faccessat` with the effective ids: the answer knows mount options and capabilities, which
/// mode bits do not.
fn check_executable(path: &str) -> Result<(), OpenError> {
    match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::ACCESS | Errno::PERM) => Err(OpenError::NotExecutable),
        Err(Errno::NOENT | Errno::NOTDIR) => Err(OpenError::Missing),
        Err(other) => Err(OpenError::Io { operation: "access", source: other.into() }),
    }
}
