//! Creating directories and files exclusively, with an exact mode; renaming and unlinking names.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::failure::{IoFailure, OpenError, Place};
use crate::{Dir, Facts, PathRefused, RelativePath};

/// Why an entry was not created, renamed or removed.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name or path is not a safe one.
    #[error("the name of {place} is refused")]
    Path {
        /// Where it was meant for.
        place: Place,
        /// Which rule it breaks.
        #[source]
        source: PathRefused,
    },
    /// There is an entry of that name already; it was left alone.
    #[error("{place} exists already")]
    AlreadyExists {
        /// Where it stands.
        place: Place,
    },
    /// The entry, or the directory for it, is not there.
    #[error("{place} does not exist")]
    Missing {
        /// Where it was looked for.
        place: Place,
    },
    /// The system denies it (EACCES or EPERM).
    #[error("{place} may not be changed by this user")]
    Denied {
        /// Where it was tried.
        place: Place,
    },
    /// The file system is mounted read-only (EROFS).
    #[error("{place} lies on a read-only file system")]
    ReadOnly {
        /// Where it was tried.
        place: Place,
    },
    /// What was just created was replaced by something else before it was opened.
    #[error("{place} was replaced while it was being created")]
    Replaced {
        /// Where it was created.
        place: Place,
    },
    /// A component that exists already could not be opened.
    #[error(transparent)]
    Open(OpenError),
    /// Anything else.
    #[error(transparent)]
    Io(IoFailure),
}

impl Dir {
    /// Creates a directory exclusively and opens it; its mode is exact whatever the umask is.
    ///
    /// It is made with at most `mode` and raised to it by descriptor, so it is never wider. On an
    /// error nothing is left behind.
    ///
    /// # Errors
    /// [`CreateError::AlreadyExists`], also for a dangling link; the rest as named.
    pub fn create_dir(&self, name: &str, mode: u32) -> Result<Self, CreateError> {
        let name = self.name(name)?;
        rustix::fs::mkdirat(self, name.as_str(), Mode::from_raw_mode(mode))
            .map_err(|errno| CreateError::from_errno("create", errno, self.below()))?;
        let opened = self.open_created(&name, mode);
        if opened.is_err() {
            // Best effort: only an empty directory can go this way, and the first error counts.
            rustix::fs::unlinkat(self, name.as_str(), AtFlags::REMOVEDIR).ok();
        }
        opened
    }

    /// Opens a directory below this one, creating missing components with `mode`.
    ///
    /// Components that exist are opened as they are; no link is followed.
    ///
    /// # Errors
    /// [`CreateError::Open`] for a component that is no directory; the rest as [`Dir::create_dir`].
    pub fn ensure_dir(&self, path: &RelativePath, mode: u32) -> Result<Self, CreateError> {
        let mut current: Option<Self> = None;
        for segment in path.segments() {
            let next = current.as_ref().unwrap_or(self).ensure_name(segment, mode)?;
            current = Some(next);
        }
        Ok(current.expect("a relative path has at least one segment"))
    }

    /// Creates a regular file exclusively and opens it for reading and writing; its mode is exact.
    ///
    /// # Errors
    /// [`CreateError::AlreadyExists`], also for a dangling link; the rest as named.
    pub fn create_file(&self, name: &str, mode: u32) -> Result<File, CreateError> {
        let name = self.name(name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let descriptor = rustix::fs::openat(self, name.as_str(), flags, mode)
            .map_err(|errno| CreateError::from_errno("create", errno, self.below()))?;
        if let Err(errno) = rustix::fs::fchmod(&descriptor, mode) {
            rustix::fs::unlinkat(self, name.as_str(), AtFlags::empty()).ok();
            return Err(CreateError::from_errno("set the mode of", errno, self.below()));
        }
        Ok(descriptor.into())
    }

    /// Renames an entry within this directory, replacing what stands under the new name.
    ///
    /// # Errors
    /// [`CreateError::Missing`] when there is no entry `from`; the rest as named.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), CreateError> {
        let (from, to) = (self.name(from)?, self.name(to)?);
        rustix::fs::renameat(self, from.as_str(), self, to.as_str())
            .map_err(|errno| CreateError::from_errno("rename", errno, self.below()))
    }

    /// Removes one entry that is not a directory; a link itself, never what it leads to.
    ///
    /// # Errors
    /// [`CreateError::Missing`] when there is none; a directory is refused by the system.
    pub fn remove_file(&self, name: &str) -> Result<(), CreateError> {
        let name = self.name(name)?;
        rustix::fs::unlinkat(self, name.as_str(), AtFlags::empty())
            .map_err(|errno| CreateError::from_errno("remove", errno, self.below()))
    }

    fn ensure_name(&self, name: &str, mode: u32) -> Result<Self, CreateError> {
        let path = self.name(name)?;
        match self.open_dir(&path) {
            Ok(existing) => Ok(existing),
            Err(OpenError::Missing { .. }) => match self.create_dir(name, mode) {
                // Another process created it after the look above: its directory serves as well.
                Err(CreateError::AlreadyExists { .. }) => {
                    self.open_dir(&path).map_err(CreateError::Open)
                }
                other => other,
            },
            Err(error) => Err(CreateError::Open(error)),
        }
    }

    /// Opens the directory just made and raises its mode; whoever may write here can swap the name
    /// in between, so an owner that is not us refuses and the mode goes through the descriptor.
    fn open_created(&self, name: &RelativePath, mode: u32) -> Result<Self, CreateError> {
        let failed = |errno| CreateError::from_errno("open", errno, self.below());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(self, name.as_str(), flags | OFlags::PATH, Mode::empty())
            .map_err(failed)?;
        let seen = Facts::of(&rustix::fs::fstat(&made).map_err(failed)?);
        if seen.uid != rustix::process::geteuid().as_raw() {
            return Err(CreateError::Replaced { place: self.below() });
        }
        let opened = match rustix::fs::openat(&made, ".", flags, Mode::empty()) {
            Ok(opened) => opened,
            // The umask took the owner's own bits.
            Err(Errno::ACCESS) => open_after_chmod(made.as_fd(), mode).map_err(failed)?,
            Err(errno) => return Err(failed(errno)),
        };
        if seen.mode != mode {
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode))
                .map_err(|errno| CreateError::from_errno("set the mode of", errno, self.below()))?;
        }
        Ok(Self::of(opened, self.role()))
    }

    pub(crate) fn name(&self, name: &str) -> Result<RelativePath, CreateError> {
        RelativePath::parse_name(name)
            .map_err(|source| CreateError::Path { place: self.below(), source })
    }
}

/// Changes the mode of a directory that cannot be opened, then opens it.
///
/// `fchmod` refuses an `O_PATH` descriptor (EBADF), so the change goes through its link in the
/// process file system, which leads to that very directory whatever its name is by now.
pub(crate) fn open_after_chmod(held: BorrowedFd<'_>, mode: u32) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", held.as_raw_fd());
    rustix::fs::chmod(link, Mode::from_raw_mode(mode))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(held, ".", flags, Mode::empty())
}

impl CreateError {
    pub(crate) fn from_errno(operation: &'static str, errno: Errno, place: Place) -> Self {
        match errno {
            Errno::EXIST => Self::AlreadyExists { place },
            Errno::NOENT => Self::Missing { place },
            Errno::ACCESS | Errno::PERM => Self::Denied { place },
            Errno::ROFS => Self::ReadOnly { place },
            other => Self::Io(IoFailure::new(operation, place, other)),
        }
    }
}
