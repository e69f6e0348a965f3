//! Opening beneath a directory without following any symbolic link.
//!
//! `O_NOFOLLOW` protects the last component only, so the kernel's own resolver is asked first and
//! a walk over the components stands in where it is missing.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::RelativePath;
use crate::limits::RESOLVE_TRIES_MAX;

/// Opens `path` beneath `directory`; a link anywhere answers ELOOP.
///
/// [openat2(2)](https://man7.org/linux/man-pages/man2/openat2.2.html). ENOSYS (before Linux 5.6)
/// and EPERM (an old container filter) fall back to the walk; EAGAIN means that something beneath
/// was renamed meanwhile and is tried again.
pub(crate) fn open(
    directory: BorrowedFd<'_>,
    path: &RelativePath,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..RESOLVE_TRIES_MAX {
        // Without O_NOFOLLOW: with it, a link asked for as a directory would answer ENOTDIR.
        let flags = flags | OFlags::CLOEXEC;
        match rustix::fs::openat2(directory, path.as_str(), flags, Mode::empty(), resolve) {
            Ok(descriptor) => return Ok(descriptor),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return walk(directory, path, flags),
            Err(errno) => return Err(errno),
        }
    }
    walk(directory, path, flags)
}

/// Opens `path` component by component, each with `O_NOFOLLOW`.
fn walk(directory: BorrowedFd<'_>, path: &RelativePath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let Some(parent) = path.parent() else {
        return open_name(directory, path.name(), flags);
    };
    let step = OFlags::PATH | OFlags::DIRECTORY;
    let mut current: Option<OwnedFd> = None;
    for segment in parent.segments() {
        let from = current.as_ref().map_or(directory, AsFd::as_fd);
        current = Some(open_name(from, segment, step)?);
    }
    open_name(current.as_ref().map_or(directory, AsFd::as_fd), path.name(), flags)
}

/// Opens one name; ELOOP for a link, also where the kernel says ENOTDIR because of `O_DIRECTORY`.
fn open_name(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let errno = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(descriptor) => return Ok(descriptor),
        Err(errno) => errno,
    };
    if errno == Errno::NOTDIR
        && let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
    {
        return Err(Errno::LOOP);
    }
    Err(errno)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    type Opener = fn(BorrowedFd<'_>, &RelativePath, OFlags) -> Result<OwnedFd, Errno>;

    const OPENERS: [(&str, Opener); 2] = [("openat2", open), ("walk", walk)];

    /// A tree `real/file`, `link -> real`, `real/link -> file`, `out -> /`.
    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), b"x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("file", root.join("real/link")).unwrap();
        symlink("/", root.join("out")).unwrap();
        let descriptor = fs::File::open(root).unwrap().into();
        (scratch, descriptor)
    }

    #[track_caller]
    fn outcomes(path: &str, flags: OFlags) -> Vec<(&'static str, Option<Errno>)> {
        let (_scratch, root) = tree();
        let path = RelativePath::parse(path).unwrap();
        OPENERS.map(|(name, open)| (name, open(root.as_fd(), &path, flags).err())).to_vec()
    }

    #[test]
    fn a_real_path_opens_either_way() {
        let seen = outcomes("real/file", OFlags::RDONLY);
        assert_eq!(seen, [("openat2", None), ("walk", None)]);
    }

    #[test]
    fn a_linked_parent_is_refused_either_way() {
        let seen = outcomes("link/file", OFlags::RDONLY);
        assert_eq!(seen, [("openat2", Some(Errno::LOOP)), ("walk", Some(Errno::LOOP))]);
    }

    #[test]
    fn a_linked_target_is_refused_either_way() {
        let seen = outcomes("real/link", OFlags::RDONLY);
        assert_eq!(seen, [("openat2", Some(Errno::LOOP)), ("walk", Some(Errno::LOOP))]);
    }

    #[test]
    fn an_absolute_link_is_refused_either_way() {
        let seen = outcomes("out", OFlags::RDONLY | OFlags::DIRECTORY);
        assert_eq!(seen, [("openat2", Some(Errno::LOOP)), ("walk", Some(Errno::LOOP))]);
        let seen = outcomes("out/etc", OFlags::RDONLY | OFlags::DIRECTORY);
        assert_eq!(seen, [("openat2", Some(Errno::LOOP)), ("walk", Some(Errno::LOOP))]);
    }

    #[test]
    fn a_file_used_as_a_directory_is_refused_either_way() {
        let seen = outcomes("real/file/x", OFlags::RDONLY);
        assert_eq!(seen, [("openat2", Some(Errno::NOTDIR)), ("walk", Some(Errno::NOTDIR))]);
    }
}
