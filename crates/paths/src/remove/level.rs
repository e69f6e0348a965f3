//! Opening the directories of a removal: down without leaving the mount, and up again.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::Facts;
use crate::create::open_after_chmod;
use crate::limits::RESOLVE_TRIES_MAX;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens one subdirectory for emptying it: no link, no other mount (EXDEV), full owner rights.
pub(super) fn open_level(
    parent: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(OwnedFd, (u64, u64)), Errno> {
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
pub(super) fn open_parent(from: BorrowedFd<'_>, expected: (u64, u64)) -> Result<OwnedFd, Errno> {
    let parent = rustix::fs::openat(from, "..", DIRECTORY, Mode::empty())?;
    let facts = Facts::of(&rustix::fs::fstat(&parent)?);
    if (facts.device, facts.inode) != expected {
        return Err(Errno::STALE);
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir_all(scratch.path().join("a/b")).unwrap();
        fs::create_dir(scratch.path().join("elsewhere")).unwrap();
        let root = fs::File::open(scratch.path()).unwrap().into();
        (scratch, root)
    }

    #[test]
    fn the_way_up_is_found_again() {
        let (_scratch, root) = tree();
        let (a, identity) = open_level(root.as_fd(), c"a").unwrap();
        let (b, _) = open_level(a.as_fd(), c"b").unwrap();
        open_parent(b.as_fd(), identity).unwrap();
    }

    #[test]
    fn the_way_up_from_a_moved_directory_is_refused() {
        let (scratch, root) = tree();
        let (a, identity) = open_level(root.as_fd(), c"a").unwrap();
        let (b, _) = open_level(a.as_fd(), c"b").unwrap();
        fs::rename(scratch.path().join("a/b"), scratch.path().join("elsewhere/b")).unwrap();
        assert_eq!(open_parent(b.as_fd(), identity).err(), Some(Errno::STALE));
    }

    #[test]
    fn the_fallback_refuses_another_device_and_a_link() {
        let root = fs::File::open("/").unwrap();
        assert_eq!(open_same_device(root.as_fd(), c"proc", DIRECTORY).err(), Some(Errno::XDEV));
        let (scratch, root) = tree();
        std::os::unix::fs::symlink("a", scratch.path().join("l")).unwrap();
        assert_eq!(open_same_device(root.as_fd(), c"l", DIRECTORY).err(), Some(Errno::NOTDIR));
    }
}
