//! Removing a whole tree by descriptor.

mod level;
mod walk;

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::failure::{IoFailure, Place};
use crate::{Dir, EntryKind, PathRefused, RelativePath};
use walk::Removal;

/// What a removal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone now.
    Removed {
        /// Entries removed, the tree's own top included.
        entries: u64,
    },
    /// There was nothing under that name.
    AlreadyGone,
}

/// Why a tree is still there, or part of it.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The name is not a safe one.
    #[error("the name of {place} is refused")]
    Path {
        /// Where it was meant for.
        place: Place,
        /// Which rule it breaks.
        #[source]
        source: PathRefused,
    },
    /// Entries are left; everything that could be removed was.
    #[error("{place} was not removed: {left} entries are left, the first one {reason}")]
    Incomplete {
        /// Where they are left.
        place: Place,
        /// Entries that were removed.
        entries: u64,
        /// Entries that could not be.
        left: u64,
        /// Why the first of them could not.
        reason: LeftReason,
        /// What the system answered for it.
        #[source]
        source: io::Error,
    },
    /// The entry itself could not be examined.
    #[error(transparent)]
    Io(IoFailure),
}

/// Why one entry was left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftReason {
    /// Something else is mounted there; other mounts are never entered.
    OtherMount,
    /// The system denies it (EACCES or EPERM).
    Denied,
    /// The file system is mounted read-only.
    ReadOnly,
    /// It is in use (EBUSY).
    Busy,
    /// New entries kept appearing in it.
    Refilled,
    /// It, or a directory above it, was moved away meanwhile.
    Moved,
    /// It lies deeper than the bound.
    TooDeep,
    /// Anything else.
    Other,
}

impl fmt::Display for LeftReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OtherMount => "because another file system is mounted there",
            Self::Denied => "because this user may not remove it",
            Self::ReadOnly => "because the file system is read-only",
            Self::Busy => "because it is in use",
            Self::Refilled => "because new entries keep appearing in it",
            Self::Moved => "because it was moved away meanwhile",
            Self::TooDeep => "because it lies too deep",
            Self::Other => "for another reason",
        })
    }
}

impl Dir {
    /// Removes an entry of this directory with everything below it; it never follows a link,
    /// never enters another mount, and needs no stack for depth.
    ///
    /// Directories without permissions are opened up first. What somebody else removes meanwhile
    /// counts as gone. It goes on past what cannot be removed, then says what is left. Not durable
    /// until [`Dir::sync`].
    ///
    /// # Errors
    /// [`RemoveError::Incomplete`] when anything is left.
    pub fn remove_tree(&self, name: &str) -> Result<Removed, RemoveError> {
        let place = self.below();
        let name =
            RelativePath::parse_name(name).map_err(|source| RemoveError::Path { place, source })?;
        let kind = match rustix::fs::statat(self, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => EntryKind::of(stat.st_mode),
            Err(Errno::NOENT) => return Ok(Removed::AlreadyGone),
            Err(errno) => return Err(RemoveError::Io(IoFailure::new("examine", place, errno))),
        };
        let name = CString::new(name.as_str()).expect("a parsed name holds no NUL");
        let mut removal = Removal::default();
        removal.remove(self.as_fd(), name, kind);
        match removal.first {
            None => Ok(Removed::Removed { entries: removal.entries }),
            Some((reason, errno)) => Err(RemoveError::Incomplete {
                place,
                entries: removal.entries,
                left: removal.left,
                reason,
                source: errno.into(),
            }),
        }
    }
}

impl LeftReason {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::OtherMount,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::ROFS => Self::ReadOnly,
            Errno::BUSY => Self::Busy,
            Errno::NOTEMPTY | Errno::EXIST => Self::Refilled,
            _ => Self::Other,
        }
    }
}
