//! Removing a whole tree by descriptor.
//!
//! The walk is iterative, so depth costs no stack. Only the first levels keep their descriptor;
//! deeper ones are found again through `..`, and it counts only if device and inode are the
//! ones remembered.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::create::open_after_chmod;
use crate::failure::{IoFailure, Place};
use crate::limits::{
    REMOVE_BATCH_MAX, REMOVE_DEPTH_MAX, REMOVE_OPEN_LEVELS_MAX, REMOVE_PASSES_MAX,
    REMOVE_RACES_MAX, RESOLVE_TRIES_MAX,
};
use crate::{Dir, EntryKind, Facts, PathRefused, RelativePath};

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

#[derive(Default)]
struct Removal {
    levels: Vec<Level>,
    entries: u64,
    left: u64,
    first: Option<(LeftReason, Errno)>,
}

/// One directory being emptied.
struct Level {
    /// Its name in the level above.
    name: CString,
    /// `None` while levels far below are worked on.
    descriptor: Option<OwnedFd>,
    identity: (u64, u64),
    /// Subdirectories seen and not yet entered.
    pending: Vec<CString>,
    /// The listing held more subdirectories than were remembered.
    overflowed: bool,
    /// Entries removed since the last listing.
    progressed: bool,
    /// Something below was left behind.
    failed: bool,
    passes: u32,
    races: u32,
}

impl Removal {
    /// Removes `name` in `base`, level by level.
    fn remove(&mut self, base: BorrowedFd<'_>, name: CString, kind: EntryKind) {
        if kind == EntryKind::Directory || matches!(self.unlink(base, &name), Unlinked::Directory) {
            self.descend(base, name);
        }
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.pending.pop() {
                let held = level.descriptor.take().expect("the deepest level is always open");
                self.descend_from(held, name);
            } else if level.overflowed && level.progressed && level.passes < REMOVE_PASSES_MAX {
                self.list();
            } else if !self.ascend(base) {
                return;
            }
        }
    }

    /// Enters a subdirectory of the deepest level, whose descriptor stays open only near the top.
    fn descend_from(&mut self, held: OwnedFd, name: CString) {
        let parent = self.levels.len() - 1;
        self.descend(held.as_fd(), name);
        let entered = self.levels.len() - 1 > parent;
        if !entered || parent < REMOVE_OPEN_LEVELS_MAX {
            self.levels[parent].descriptor = Some(held);
        }
    }

    /// Opens a directory and lists it; what stopped being a directory meanwhile is unlinked.
    fn descend(&mut self, parent: BorrowedFd<'_>, name: CString) {
        if self.levels.len() >= REMOVE_DEPTH_MAX {
            return self.leave(LeftReason::TooDeep, Errno::NAMETOOLONG);
        }
        match open_level(parent, &name) {
            Ok((descriptor, identity)) => {
                self.levels.push(Level {
                    name,
                    descriptor: Some(descriptor),
                    identity,
                    pending: Vec::new(),
                    overflowed: false,
                    progressed: false,
                    failed: false,
                    passes: 0,
                    races: 0,
                });
                self.list();
            }
            Err(Errno::NOENT) => self.progress(0),
            // Swapped for something else after the listing: a link goes itself.
            Err(Errno::NOTDIR | Errno::LOOP) => match self.unlink(parent, &name) {
                Unlinked::Gone | Unlinked::Left => {}
                Unlinked::Directory => self.leave(LeftReason::Moved, Errno::NOTDIR),
            },
            Err(errno) => self.leave(LeftReason::of(errno), errno),
        }
    }

    /// Lists the deepest level: unlinks what is no directory, remembers what is.
    fn list(&mut self) {
        let Some(level) = self.levels.last_mut() else { return };
        level.passes += 1;
        level.progressed = false;
        level.overflowed = false;
        let descriptor = level.descriptor.take().expect("the deepest level is always open");
        if let Err(errno) = self.list_into(descriptor.as_fd()) {
            self.leave(LeftReason::of(errno), errno);
        }
        if let Some(level) = self.levels.last_mut() {
            level.descriptor = Some(descriptor);
        }
    }

    fn list_into(&mut self, directory: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut listing = rustix::fs::Dir::read_from(directory)?;
        while let Some(entry) = listing.read() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let is_directory = entry.file_type() == FileType::Directory
                || matches!(self.unlink(directory, name), Unlinked::Directory);
            if is_directory && let Some(level) = self.levels.last_mut() {
                if level.pending.len() < REMOVE_BATCH_MAX {
                    level.pending.push(name.to_owned());
                } else {
                    level.overflowed = true;
                }
            }
        }
        Ok(())
    }

    /// Unlinks one name that may turn out to be a directory (EISDIR on Linux).
    fn unlink(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Unlinked {
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) => {
                self.progress(1);
                Unlinked::Gone
            }
            Err(Errno::NOENT) => {
                self.progress(0);
                Unlinked::Gone
            }
            Err(Errno::ISDIR) => Unlinked::Directory,
            Err(errno) => {
                self.leave(LeftReason::of(errno), errno);
                Unlinked::Left
            }
        }
    }

    /// Leaves the deepest level and removes it; `false` when the way back is lost.
    fn ascend(&mut self, base: BorrowedFd<'_>) -> bool {
        let Some(mut level) = self.levels.pop() else { return false };
        let descriptor = level.descriptor.take().expect("the deepest level is always open");
        let parent = match self.levels.last_mut() {
            None => None,
            Some(above) => match above.descriptor.take() {
                Some(held) => Some(held),
                None => match open_parent(descriptor.as_fd(), above.identity) {
                    Ok(parent) => Some(parent),
                    Err(errno) => {
                        self.leave(LeftReason::Moved, errno);
                        return false;
                    }
                },
            },
        };
        let from = parent.as_ref().map_or(base, AsFd::as_fd);
        let outcome = rustix::fs::unlinkat(from, level.name.as_c_str(), AtFlags::REMOVEDIR);
        let again = match outcome {
            Ok(()) => {
                self.progress(1);
                false
            }
            Err(Errno::NOENT) => {
                self.progress(0);
                false
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) if level.failed => {
                self.mark_failed();
                false
            }
            // Entries appeared after the listing.
            Err(Errno::NOTEMPTY | Errno::EXIST) if level.races < REMOVE_RACES_MAX => true,
            Err(errno) => {
                self.leave(LeftReason::of(errno), errno);
                false
            }
        };
        if let Some(above) = self.levels.last_mut() {
            above.descriptor = parent;
        }
        if again {
            level.races += 1;
            level.descriptor = Some(descriptor);
            self.levels.push(level);
            self.list();
        }
        true
    }

    fn progress(&mut self, entries: u64) {
        self.entries += entries;
        if let Some(level) = self.levels.last_mut() {
            level.progressed = true;
        }
    }

    fn leave(&mut self, reason: LeftReason, errno: Errno) {
        self.left += 1;
        self.first.get_or_insert((reason, errno));
        self.mark_failed();
    }

    fn mark_failed(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.failed = true;
        }
    }
}

enum Unlinked {
    Gone,
    Directory,
    Left,
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

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens one subdirectory for emptying it: no link, no other mount (EXDEV), full owner rights.
fn open_level(parent: BorrowedFd<'_>, name: &CStr) -> Result<(OwnedFd, (u64, u64)), Errno> {
    let descriptor = match open_same_mount(parent, name, DIRECTORY) {
        // A directory without permissions is held by a descriptor that needs none, opened up, and
        // opened again through that descriptor: never by name.
        Err(Errno::ACCESS) => {
            let held = open_same_mount(parent, name, DIRECTORY | OFlags::PATH)?;
            open_after_chmod(held.as_fd(), 0o700)?
        }
        other => other?,
    };
    let facts = Facts::of(&rustix::fs::fstat(&descriptor)?);
    if facts.mode & 0o700 != 0o700 {
        // It may be somebody else's and still be removable; what is not says so itself.
        rustix::fs::fchmod(&descriptor, Mode::from_raw_mode(0o700)).ok();
    }
    Ok((descriptor, (facts.device, facts.inode)))
}

fn open_same_mount(parent: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    for _ in 0..RESOLVE_TRIES_MAX {
        match rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => break,
            other => return other,
        }
    }
    open_same_device(parent, name, flags)
}

/// Stands in where `openat2` is missing: a bind mount of the same file system is not told apart.
fn open_same_device(parent: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&opened)?.st_dev != rustix::fs::fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

/// Goes up one level; a directory that was moved meanwhile has another parent (ESTALE).
fn open_parent(from: BorrowedFd<'_>, expected: (u64, u64)) -> Result<OwnedFd, Errno> {
    let parent = rustix::fs::openat(from, "..", DIRECTORY, Mode::empty())?;
    let facts = Facts::of(&rustix::fs::fstat(&parent)?);
    if (facts.device, facts.inode) != expected {
        return Err(Errno::STALE);
    }
    Ok(parent)
}
