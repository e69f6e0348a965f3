//! Publishing a file: all of it or nothing of it, durable, each step named when it fails.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use crate::failure::{IoFailure, OpenError, Place};
use crate::{CreateError, Dir, EntryKind, RelativePath};

/// Whether a published file may take the place of one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// It replaces a regular file of that name, or is the first.
    Replace,
    /// It must be the first of that name.
    New,
}

/// The steps of a publication, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishStep {
    /// A temporary file is made beside the target.
    CreateTemporary,
    /// The bytes are written to it.
    Write,
    /// It gets its mode.
    SetMode,
    /// Its content is made durable.
    SyncFile,
    /// It gets its name.
    Rename,
}

/// Why a file was not published, or not durably.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The directory for it could not be opened; nothing was changed.
    #[error(transparent)]
    Parent(OpenError),
    /// A missing parent could not be created; nothing was published.
    #[error(transparent)]
    CreateParent(CreateError),
    /// There is an entry of that name already; it was left alone.
    #[error("{place} exists already")]
    AlreadyExists {
        /// Where it stands.
        place: Place,
    },
    /// What stands under the name is a directory, a link or a device; it was left alone.
    #[error("{place} is not a regular file and is not replaced")]
    TargetNotAFile {
        /// Where it stands.
        place: Place,
    },
    /// A step before the rename took effect failed; the old content, if any, stands.
    #[error("could not {step} for {place}")]
    Step {
        /// Which step.
        step: PublishStep,
        /// Where the file was meant for.
        place: Place,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// The new content stands under its name, but may be lost by power failure.
    #[error("{place} was published, but its directory could not be synced")]
    PublishedNotSynced {
        /// Where it stands.
        place: Place,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
}

impl fmt::Display for PublishStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::CreateTemporary => "create a temporary file",
            Self::Write => "write a temporary file",
            Self::SetMode => "set the mode of a temporary file",
            Self::SyncFile => "sync a temporary file",
            Self::Rename => "rename a temporary file",
        })
    }
}

/// The two calls that make content durable, so that a failure of each can be tested.
#[derive(Clone, Copy)]
struct Syncs {
    file: fn(BorrowedFd<'_>) -> io::Result<()>,
    directory: fn(BorrowedFd<'_>) -> io::Result<()>,
}

const FSYNC: Syncs = Syncs { file: fsync, directory: fsync };

fn fsync(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsync(descriptor)?)
}

impl Dir {
    /// Publishes a file below this directory: readers see the old content or all of the new.
    ///
    /// A temporary file beside it is written and synced, renamed to its name, and the directory is
    /// synced: the content survives power loss. The parent must exist; no link is followed.
    ///
    /// # Errors
    /// [`PublishError::PublishedNotSynced`] is the only one after which the new content stands;
    /// every other leaves the old content and no temporary file.
    pub fn publish(
        &self,
        path: &RelativePath,
        bytes: impl AsRef<[u8]>,
        mode: u32,
        replacement: Replacement,
    ) -> Result<(), PublishError> {
        self.publish_watched(path, bytes, mode, replacement, || {})
    }

    /// Publishes as [`Dir::publish`] does, and calls `written` when everything stands but the name.
    ///
    /// For whoever follows, or cuts off, what happens in between.
    ///
    /// # Errors
    /// As [`Dir::publish`].
    pub fn publish_watched(
        &self,
        path: &RelativePath,
        bytes: impl AsRef<[u8]>,
        mode: u32,
        replacement: Replacement,
        written: impl FnOnce(),
    ) -> Result<(), PublishError> {
        let opened = match path.parent() {
            Some(parent) => Some(self.open_dir(&parent).map_err(PublishError::Parent)?),
            None => None,
        };
        let parent = opened.as_ref().unwrap_or(self);
        let publication = Publication { name: path.name(), mode, replacement };
        publish_in(parent, publication, bytes.as_ref(), FSYNC, written)
    }
}

/// What a file is to be.
#[derive(Clone, Copy)]
struct Publication<'a> {
    name: &'a str,
    mode: u32,
    replacement: Replacement,
}

fn publish_in(
    parent: &Dir,
    Publication { name, mode, replacement }: Publication<'_>,
    bytes: &[u8],
    syncs: Syncs,
    then: impl FnOnce(),
) -> Result<(), PublishError> {
    let place = parent.below();
    refuse_target(parent, name, replacement)?;
    let temporary = temporary_name().map_err(|source| PublishError::Step {
        step: PublishStep::CreateTemporary,
        place,
        source,
    })?;
    let written = write_temporary(parent, &temporary, bytes, mode, syncs).and_then(|()| {
        then();
        rename(parent, &temporary, name, replacement)
    });
    if let Err(error) = written {
        // Best effort: the first error counts, and the content under the name is untouched.
        rustix::fs::unlinkat(parent, temporary.as_str(), AtFlags::empty()).ok();
        return Err(error);
    }
    (syncs.directory)(parent.as_fd())
        .map_err(|source| PublishError::PublishedNotSynced { place, source })
}

/// Refuses a target that a rename would silently take the place of, or fail on for another reason.
fn refuse_target(parent: &Dir, name: &str, replacement: Replacement) -> Result<(), PublishError> {
    let place = parent.below();
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(PublishError::Parent(OpenError::from_errno(errno, place))),
        Ok(_) if replacement == Replacement::New => Err(PublishError::AlreadyExists { place }),
        Ok(stat) if EntryKind::of(stat.st_mode) != EntryKind::File => {
            Err(PublishError::TargetNotAFile { place })
        }
        Ok(_) => Ok(()),
    }
}

fn write_temporary(
    parent: &Dir,
    temporary: &str,
    bytes: &[u8],
    mode: u32,
    syncs: Syncs,
) -> Result<(), PublishError> {
    let failed = |step| move |source| PublishError::Step { step, place: parent.below(), source };
    // Nobody else may open it before it is complete.
    let mut file: File = parent
        .create_file(temporary, 0o600)
        .map_err(|error| failed(PublishStep::CreateTemporary)(into_io(error)))?;
    file.write_all(bytes).map_err(failed(PublishStep::Write))?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))
        .map_err(|errno| failed(PublishStep::SetMode)(errno.into()))?;
    (syncs.file)(file.as_fd()).map_err(failed(PublishStep::SyncFile))
}

fn rename(
    parent: &Dir,
    temporary: &str,
    name: &str,
    replacement: Replacement,
) -> Result<(), PublishError> {
    let outcome = match replacement {
        // A link planted after the look is replaced itself; a directory refuses (EISDIR).
        Replacement::Replace => rustix::fs::renameat(parent, temporary, parent, name),
        // Somebody may have taken the name after the look: NOREPLACE decides.
        Replacement::New => rename_new(parent, temporary, name),
    };
    let place = parent.below();
    match outcome {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(PublishError::AlreadyExists { place }),
        Err(Errno::ISDIR) => Err(PublishError::TargetNotAFile { place }),
        Err(errno) => {
            Err(PublishError::Step { step: PublishStep::Rename, place, source: errno.into() })
        }
    }
}

/// Renames without replacing: `RENAME_NOREPLACE`, or a hard link where the file system lacks it
/// (EINVAL, ENOSYS), which never replaces either.
fn rename_new(parent: &Dir, temporary: &str, name: &str) -> Result<(), Errno> {
    match rustix::fs::renameat_with(parent, temporary, parent, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => link_new(parent, temporary, name),
        outcome => outcome,
    }
}

fn link_new(parent: &Dir, temporary: &str, name: &str) -> Result<(), Errno> {
    rustix::fs::linkat(parent, temporary, parent, name, AtFlags::empty())?;
    rustix::fs::unlinkat(parent, temporary, AtFlags::empty())
}

fn temporary_name() -> io::Result<String> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::from)?;
    Ok(format!(".publish-{:016x}", u64::from_be_bytes(random)))
}

/// Keeps the error number of a failed creation, whatever class it was put in.
fn into_io(error: CreateError) -> io::Error {
    match error {
        CreateError::AlreadyExists { .. } => Errno::EXIST.into(),
        CreateError::Missing { .. } => Errno::NOENT.into(),
        CreateError::Denied { .. } => Errno::ACCESS.into(),
        CreateError::ReadOnly { .. } => Errno::ROFS.into(),
        CreateError::Io(IoFailure { source, .. })
        | CreateError::Open(OpenError::Io(IoFailure { source, .. })) => source,
        CreateError::Path { .. } | CreateError::Replaced { .. } | CreateError::Open(_) => {
            Errno::INVAL.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NO_FILE_SYNC: Syncs = Syncs { file: broken, directory: fsync };
    const NO_DIRECTORY_SYNC: Syncs = Syncs { file: fsync, directory: broken };

    fn broken(_: BorrowedFd<'_>) -> io::Result<()> {
        Err(Errno::IO.into())
    }

    fn as_f(replacement: Replacement) -> Publication<'static> {
        Publication { name: "f", mode: 0o600, replacement }
    }

    fn scratch() -> (tempfile::TempDir, Dir) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open(scratch.path(), "test").unwrap();
        (scratch, dir)
    }

    fn names(dir: &Dir) -> Vec<String> {
        dir.entries().unwrap().map(|name| name.unwrap().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failed_file_sync_keeps_the_old_content_and_no_temporary_file() {
        let (scratch, dir) = scratch();
        fs::write(scratch.path().join("f"), b"old").unwrap();
        let publication = as_f(Replacement::Replace);
        let outcome = publish_in(&dir, publication, b"new", NO_FILE_SYNC, || unreachable!());
        assert!(matches!(outcome, Err(PublishError::Step { step: PublishStep::SyncFile, .. })));
        assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"old");
        assert_eq!(names(&dir), ["f"]);
    }

    #[test]
    fn a_failed_directory_sync_says_that_the_new_content_stands() {
        let (scratch, dir) = scratch();
        let publication = as_f(Replacement::New);
        let outcome = publish_in(&dir, publication, b"new", NO_DIRECTORY_SYNC, || {});
        assert!(matches!(outcome, Err(PublishError::PublishedNotSynced { .. })));
        assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"new");
        assert_eq!(names(&dir), ["f"]);
    }

    #[test]
    fn everything_but_the_name_stands_when_it_is_written() {
        let (scratch, dir) = scratch();
        fs::write(scratch.path().join("f"), b"old").unwrap();
        let path = RelativePath::parse("f").unwrap();
        let mut seen = Vec::new();
        let look = || {
            seen = names(&dir);
            seen.sort();
            let [temporary, name] = &seen[..] else { return };
            seen = [temporary, name]
                .map(|name| fs::read_to_string(scratch.path().join(name)).unwrap())
                .into();
        };
        dir.publish_watched(&path, b"new", 0o600, Replacement::Replace, look).unwrap();
        assert_eq!(seen, ["new", "old"]);
        assert_eq!(names(&dir), ["f"]);
    }

    #[test]
    fn the_link_fallback_never_replaces() {
        let (scratch, dir) = scratch();
        fs::write(scratch.path().join("f"), b"old").unwrap();
        fs::write(scratch.path().join("t"), b"new").unwrap();
        assert_eq!(link_new(&dir, "t", "f"), Err(Errno::EXIST));
        assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"old");
        link_new(&dir, "t", "g").unwrap();
        assert_eq!(fs::read(scratch.path().join("g")).unwrap(), b"new");
        assert!(!scratch.path().join("t").exists());
    }

    #[test]
    fn a_name_taken_after_the_look_is_not_replaced() {
        let (scratch, dir) = scratch();
        fs::write(scratch.path().join("f"), b"theirs").unwrap();
        fs::write(scratch.path().join("t"), b"ours").unwrap();
        let outcome = rename(&dir, "t", "f", Replacement::New);
        assert!(matches!(outcome, Err(PublishError::AlreadyExists { .. })));
        assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"theirs");
    }

    #[test]
    fn a_link_planted_after_the_look_is_replaced_and_not_followed() {
        let (scratch, dir) = scratch();
        let outside = scratch.path().join("outside");
        fs::write(&outside, b"theirs").unwrap();
        std::os::unix::fs::symlink(&outside, scratch.path().join("f")).unwrap();
        fs::write(scratch.path().join("t"), b"ours").unwrap();
        rename(&dir, "t", "f", Replacement::Replace).unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"theirs");
        assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"ours");
    }

    #[test]
    fn a_directory_planted_after_the_look_is_not_replaced() {
        let (scratch, dir) = scratch();
        fs::create_dir(scratch.path().join("f")).unwrap();
        fs::write(scratch.path().join("t"), b"ours").unwrap();
        let outcome = rename(&dir, "t", "f", Replacement::Replace);
        assert!(matches!(outcome, Err(PublishError::TargetNotAFile { .. })));
    }
}
