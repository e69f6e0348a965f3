//! The errors several operations share: where something failed, and how an open can be refused.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::PathRefused;

/// Says where something happened, by role and never by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    role: &'static str,
    below: bool,
}

impl Place {
    pub(crate) fn itself(role: &'static str) -> Self {
        Self { role, below: false }
    }

    pub(crate) fn below(role: &'static str) -> Self {
        Self { role, below: true }
    }

    /// Returns the role label of the directory.
    pub fn role(self) -> &'static str {
        self.role
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below {
            write!(formatter, "an entry below the {} directory", self.role)
        } else {
            write!(formatter, "the {} directory", self.role)
        }
    }
}

/// One system call that failed for no reason the operation treats specially.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation} {place}")]
pub struct IoFailure {
    /// What was tried, as a verb ("open", "list").
    pub operation: &'static str,
    /// Where it was tried.
    pub place: Place,
    /// What the system answered. Its text is not fit for evidence; its name is.
    #[source]
    pub source: io::Error,
}

impl IoFailure {
    pub(crate) fn new(operation: &'static str, place: Place, source: impl Into<io::Error>) -> Self {
        Self { operation, place, source: source.into() }
    }
}

/// Why a directory or a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The relative path or name is not a safe one.
    #[error("the name of {place} is refused")]
    Path {
        /// Where it was to be opened.
        place: Place,
        /// Which rule it breaks.
        #[source]
        source: PathRefused,
    },
    /// There is nothing under that name.
    #[error("{place} does not exist")]
    Missing {
        /// Where it was to be opened.
        place: Place,
    },
    /// A component is a symbolic link, which is never followed.
    #[error("{place} is reached through a symbolic link")]
    SymbolicLink {
        /// Where it was to be opened.
        place: Place,
    },
    /// A component that must be a directory is something else.
    #[error("{place} is not a directory")]
    NotADirectory {
        /// Where it was to be opened.
        place: Place,
    },
    /// What must be a regular file is something else.
    #[error("{place} is not a regular file")]
    NotARegularFile {
        /// Where it was to be opened.
        place: Place,
    },
    /// The system denies access (EACCES or EPERM).
    #[error("{place} may not be opened by this user")]
    Denied {
        /// Where it was to be opened.
        place: Place,
    },
    /// The file system is mounted read-only (EROFS).
    #[error("{place} lies on a read-only file system")]
    ReadOnly {
        /// Where it was to be opened.
        place: Place,
    },
    /// Anything else.
    #[error(transparent)]
    Io(IoFailure),
}

impl OpenError {
    pub(crate) fn from_errno(errno: Errno, place: Place) -> Self {
        match errno {
            Errno::NOENT => Self::Missing { place },
            Errno::LOOP => Self::SymbolicLink { place },
            Errno::NOTDIR => Self::NotADirectory { place },
            Errno::ISDIR | Errno::NXIO => Self::NotARegularFile { place },
            Errno::ACCESS | Errno::PERM => Self::Denied { place },
            Errno::ROFS => Self::ReadOnly { place },
            other => Self::Io(IoFailure::new("open", place, other)),
        }
    }
}
