//! The walk that empties and removes directories, level by level.
//!
//! It is iterative, so depth costs no stack. Only the first levels keep their descriptor; deeper
//! ones are found again through `..`, and it counts only if device and inode are the ones
//! remembered.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::LeftReason;
use super::level::{open_level, open_parent};
use crate::EntryKind;
use crate::limits::{
    REMOVE_BATCH_MAX, REMOVE_DEPTH_MAX, REMOVE_LISTED_MAX, REMOVE_OPEN_LEVELS_MAX,
    REMOVE_PASSES_MAX, REMOVE_RACES_MAX,
};

#[derive(Default)]
pub(super) struct Removal {
    levels: Vec<Level>,
    pub(super) entries: u64,
    pub(super) left: u64,
    pub(super) first: Option<(LeftReason, Errno)>,
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
    /// The listing held more than was handled.
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
    pub(super) fn remove(&mut self, base: BorrowedFd<'_>, name: CString, kind: EntryKind) {
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
        let mut listed = 0;
        while let Some(entry) = listing.read() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            listed += 1;
            if listed > REMOVE_LISTED_MAX {
                self.mark_overflowed();
                return Ok(());
            }
            let is_directory = entry.file_type() == FileType::Directory
                || matches!(self.unlink(directory, name), Unlinked::Directory);
            if is_directory && !self.remember(name) {
                self.mark_overflowed();
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

    /// Remembers a subdirectory of the deepest level, as long as there is room.
    fn remember(&mut self, name: &CStr) -> bool {
        let Some(level) = self.levels.last_mut() else { return false };
        let room = level.pending.len() < REMOVE_BATCH_MAX;
        if room {
            level.pending.push(name.to_owned());
        }
        room
    }

    fn mark_overflowed(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.overflowed = true;
        }
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
