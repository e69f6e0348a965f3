//! The five facts by which a file is known again.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A moment as the file system keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: i64,
}

/// What tells a file from another one and from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The device that holds it.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content last changed, as its owner may set it.
    pub modified: Moment,
    /// When its content or its attributes last changed; nobody can set it.
    pub changed: Moment,
}

/// Which file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The program itself.
    Program,
    /// The interpreter of the script.
    Interpreter,
}

/// The first fact that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Nothing can be seen under the path any more.
    Gone,
    /// The path names another file.
    Identity,
    /// The size.
    Size,
    /// The time of the last modification.
    Modified,
    /// The time of the last change of content or attributes.
    Changed,
}

/// A file is not what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {which} changed after it was measured: {fact}")]
pub struct Changed {
    /// Which file.
    pub which: Which,
    /// The first fact that differs.
    pub fact: Fact,
}

impl Facts {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: Moment { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() },
            changed: Moment { seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() },
        }
    }

    pub(crate) fn compare(&self, now: &Self) -> Result<(), Fact> {
        if (self.device, self.inode) != (now.device, now.inode) {
            return Err(Fact::Identity);
        }
        if self.size != now.size {
            return Err(Fact::Size);
        }
        if self.modified != now.modified {
            return Err(Fact::Modified);
        }
        if self.changed != now.changed {
            return Err(Fact::Changed);
        }
        Ok(())
    }
}

impl fmt::Display for Which {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Program => "program",
            Self::Interpreter => "interpreter",
        })
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gone => "it is gone",
            Self::Identity => "another file is in its place",
            Self::Size => "its size",
            Self::Modified => "its modification time",
            Self::Changed => "its change time",
        })
    }
}
