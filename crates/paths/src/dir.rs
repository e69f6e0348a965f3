//! A directory held by its descriptor.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use camino::Utf8PathBuf;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::failure::{IoFailure, OpenError, Place};
use crate::{Entries, RelativePath, ResolveError, beneath, errno_name};

/// A directory held by its descriptor, with a role label that errors show instead of its path.
///
/// Everything below it is reached through the descriptor, so renaming or replacing the path it
/// was opened by changes nothing.
#[derive(Debug)]
pub struct Dir {
    descriptor: OwnedFd,
    role: &'static str,
}

/// What a directory is, as seen on its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number within it.
    pub inode: u64,
    /// Permission bits, set-id and sticky included (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
}

/// Which directory it is, whatever its path leads to by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryId {
    /// Device number of the file system; another boot may number it otherwise.
    pub device: u64,
    /// Inode number within it.
    pub inode: u64,
}

/// The kind of one directory entry, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, wherever it leads.
    SymbolicLink,
    /// A socket, a pipe or a device.
    Other,
}

/// Whether a directory has an entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// There is one, of this kind.
    Present(EntryKind),
    /// There is none.
    Absent,
    /// It could not be told; the errno's name says why.
    Unknown(&'static str),
}

impl Dir {
    /// Opens an existing directory.
    ///
    /// Links in the given path are followed: the caller trusts that path, not what lies below it.
    ///
    /// # Errors
    /// [`OpenError::Missing`], [`OpenError::NotADirectory`], [`OpenError::Denied`], or the rest.
    pub fn open(path: impl AsRef<Path>, role: &'static str) -> Result<Self, OpenError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path.as_ref(), flags, Mode::empty())
            .map(|descriptor| Self { descriptor, role })
            .map_err(|errno| OpenError::from_errno(errno, Place::itself(role)))
    }

    /// Opens a directory below this one, following no link in any component.
    ///
    /// The result keeps the role of this directory; see [`Dir::with_role`].
    ///
    /// # Errors
    /// [`OpenError::SymbolicLink`] for a link anywhere, [`OpenError::Missing`],
    /// [`OpenError::NotADirectory`], [`OpenError::Denied`], or the rest.
    pub fn open_dir(&self, path: &RelativePath) -> Result<Self, OpenError> {
        beneath::open(self.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map(|descriptor| Self { descriptor, role: self.role })
            .map_err(|errno| OpenError::from_errno(errno, Place::below(self.role)))
    }

    /// Lists the names of the entries, `.` and `..` left out, in no order.
    ///
    /// # Errors
    /// The listing could not be begun.
    pub fn entries(&self) -> Result<Entries, IoFailure> {
        Entries::of(self)
    }

    /// Looks whether there is an entry of this name, without following a link.
    pub fn exists(&self, name: &str) -> Existence {
        let Ok(name) = RelativePath::parse_name(name) else {
            return Existence::Unknown("EINVAL");
        };
        match rustix::fs::statat(self, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Existence::Present(EntryKind::of(stat.st_mode)),
            Err(Errno::NOENT) => Existence::Absent,
            Err(errno) => Existence::Unknown(errno_name(&errno.into())),
        }
    }

    /// Returns device, inode, mode and owner as the descriptor shows them now.
    ///
    /// # Errors
    /// [fstat(2)](https://man7.org/linux/man-pages/man2/fstat.2.html) failed.
    pub fn facts(&self) -> Result<Facts, IoFailure> {
        let stat = rustix::fs::fstat(self)
            .map_err(|errno| IoFailure::new("examine", self.itself(), errno))?;
        Ok(Facts::of(&stat))
    }

    /// Returns the physical path the kernel knows for the descriptor now.
    ///
    /// # Errors
    /// [`ResolveError::Missing`] when it was removed, or when that path leads elsewhere by now;
    /// [`ResolveError::NotUtf8`]; the process file system cannot be read.
    pub fn path(&self) -> Result<Utf8PathBuf, ResolveError> {
        let place = self.itself();
        let io = |errno: Errno| ResolveError::Io(IoFailure::new("locate", place, errno));
        let link = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let path = rustix::fs::readlink(link, Vec::new()).map_err(io)?;
        let path = OsString::from_vec(path.into_bytes());
        // The kernel marks a removed directory in the text only, and a name may look like that
        // mark: what the path leads to now decides.
        let there = match rustix::fs::stat(Path::new(&path)) {
            Ok(stat) => Facts::of(&stat),
            Err(Errno::NOENT) => return Err(ResolveError::Missing),
            Err(errno) => return Err(io(errno)),
        };
        let here = self.facts().map_err(ResolveError::Io)?;
        if (there.device, there.inode) != (here.device, here.inode) {
            return Err(ResolveError::Missing);
        }
        Utf8PathBuf::from_path_buf(path.into()).map_err(|_| ResolveError::NotUtf8)
    }

    /// Makes the entries of this directory durable (survives power loss).
    ///
    /// # Errors
    /// [fsync(2)](https://man7.org/linux/man-pages/man2/fsync.2.html) failed.
    pub fn sync(&self) -> Result<(), IoFailure> {
        rustix::fs::fsync(self).map_err(|errno| IoFailure::new("sync", self.itself(), errno))
    }

    /// Duplicates the descriptor (close-on-exec).
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn try_clone(&self) -> Result<Self, IoFailure> {
        let descriptor = self
            .descriptor
            .try_clone()
            .map_err(|source| IoFailure::new("duplicate", self.itself(), source))?;
        Ok(Self { descriptor, role: self.role })
    }

    /// Returns the same directory under another role label.
    #[must_use]
    pub fn with_role(self, role: &'static str) -> Self {
        Self { descriptor: self.descriptor, role }
    }

    /// Returns the role label that errors show.
    pub fn role(&self) -> &'static str {
        self.role
    }

    pub(crate) fn of(descriptor: OwnedFd, role: &'static str) -> Self {
        Self { descriptor, role }
    }

    pub(crate) fn itself(&self) -> Place {
        Place::itself(self.role)
    }

    pub(crate) fn below(&self) -> Place {
        Place::below(self.role)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Facts {
    /// Returns which directory it is.
    pub const fn id(&self) -> DirectoryId {
        DirectoryId { device: self.device, inode: self.inode }
    }

    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
        }
    }
}

impl EntryKind {
    pub(crate) fn of(raw_mode: u32) -> Self {
        let kind = FileType::from_raw_mode(raw_mode);
        if kind == FileType::Directory {
            Self::Directory
        } else if kind == FileType::RegularFile {
            Self::File
        } else if kind == FileType::Symlink {
            Self::SymbolicLink
        } else {
            Self::Other
        }
    }
}
