//! The private root of a host.

use std::fs::File;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use placement_paths::{
    Access, CreateError, Dir, DirectoryId, FsKind, IoFailure, OpenError, PrivateDir, PrivateError,
    RelativePath, RemoveError, Removed, ResolveError, fs_kind,
};
use placement_transitions::Settled;

use crate::attempt::{AttemptDir, HOME};
use crate::key::HomeKey;

const ROLE: &str = "root";
const ATTEMPTS: &str = "attempts";
const DIGESTS: &str = "digests";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The one private directory below which a host keeps its store and its attempts.
///
/// Two hosts may have one root open; one root belongs to one machine.
#[derive(Debug)]
pub struct Root {
    directory: PrivateDir,
    path: Utf8PathBuf,
}

/// Why a directory cannot be the root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Others may enter, list or write it.
    #[error("the root directory is open to others (mode {mode:04o}); it must be 0700")]
    NotPrivate {
        /// Its mode.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("the root directory belongs to user {owner}, not to this one")]
    NotOwned {
        /// Its owner.
        owner: u32,
    },
    /// There is something else under its path.
    #[error("the root directory is not a directory")]
    NotADirectory,
    /// It lies on a read-only file system.
    #[error("the root directory lies on a read-only file system")]
    ReadOnly,
    /// It lies on a file system that several machines may share.
    #[error("the root directory lies on a network file system ({0}); it must be local")]
    NetworkFilesystem(&'static str),
    /// Its physical path cannot be told or is not UTF-8.
    #[error("the path of the root directory cannot be used")]
    Path(#[source] ResolveError),
    /// It could not be opened or created for another reason.
    #[error("the root directory cannot be used")]
    Private(#[source] PrivateError),
    /// It could not be examined.
    #[error("the root directory cannot be examined")]
    Io(#[source] IoFailure),
}

/// Why the root was not opened again.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// It cannot be opened, or is not ours alone.
    #[error("the root directory cannot be opened")]
    Private(#[source] PrivateError),
    /// Its path leads to another directory by now.
    #[error("the root directory was replaced")]
    Replaced,
    /// Its physical path cannot be told or is not UTF-8.
    #[error("the path of the root directory cannot be used")]
    Path(#[source] ResolveError),
    /// It could not be examined.
    #[error("the root directory cannot be examined")]
    Io(#[source] IoFailure),
}

/// Why an attempt's directory was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateAttemptError {
    /// There is one of that key already; it is never used again.
    #[error("the attempt directory exists already")]
    AlreadyExists,
    /// The directory of all attempts is not ours alone.
    #[error("the directory of attempts cannot be used")]
    Attempts(#[source] PrivateError),
    /// It could not be created for another reason.
    #[error("the attempt directory could not be created")]
    Create(#[source] CreateError),
}

/// Why an attempt's directory was not opened.
#[derive(Debug, thiserror::Error)]
#[error("the attempt directory could not be opened")]
pub struct OpenAttemptError(#[source] pub OpenError);

/// Why the directories of attempts were not listed.
#[derive(Debug, thiserror::Error)]
pub enum ListAttemptsError {
    /// The directory of all attempts could not be opened.
    #[error("the directory of attempts could not be opened")]
    Attempts(#[source] OpenError),
    /// It could not be read.
    #[error("the directory of attempts could not be listed")]
    List(#[source] IoFailure),
}

/// Why an attempt's directory was not removed, or not whole.
#[derive(Debug, thiserror::Error)]
pub enum RemoveAttemptError {
    /// The directory of all attempts could not be opened.
    #[error("the directory of attempts could not be opened")]
    Attempts(#[source] OpenError),
    /// Part of it is left; removing it again goes on.
    #[error(transparent)]
    Remove(RemoveError),
}

impl Root {
    /// Opens the root, creating it with mode 0700 on first use.
    ///
    /// What was created survives power loss.
    ///
    /// # Errors
    /// As the variants of [`RootError`] name them. An existing directory is never changed, and
    /// where the file system refuses, nothing is created.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = path.as_ref();
        let existing = nearest_existing(path)?;
        refuse_kind(fs_kind(&existing).map_err(RootError::Io)?)?;
        let directory =
            PrivateDir::create_or_open_as(path, ROLE).map_err(RootError::from_private)?;
        // What was created may be a mount of its own by now, or the last one on the way was.
        refuse_kind(fs_kind(&directory).map_err(RootError::Io)?)?;
        let path = directory.path().map_err(RootError::Path)?;
        Ok(Self { directory, path })
    }

    /// Opens a root by its path where that leads to the directory that another process has opened.
    ///
    /// Whoever may rename what lies above the root can lead its path elsewhere meanwhile.
    ///
    /// # Errors
    /// [`ReopenError`]; nothing is created or changed.
    pub fn reopen(path: impl AsRef<Path>, id: DirectoryId) -> Result<Self, ReopenError> {
        let opened = Dir::open(path, ROLE).map_err(PrivateError::Open);
        let opened = opened.and_then(PrivateDir::check).map_err(ReopenError::Private)?;
        if opened.facts().map_err(ReopenError::Io)?.id() != id {
            return Err(ReopenError::Replaced);
        }
        let path = opened.path().map_err(ReopenError::Path)?;
        Ok(Self { directory: opened, path })
    }

    /// Returns which directory the root is.
    ///
    /// # Errors
    /// It could not be examined.
    pub fn id(&self) -> Result<DirectoryId, IoFailure> {
        Ok(self.directory.facts()?.id())
    }

    /// Returns the physical path of the root.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns the root's directory.
    pub fn dir(&self) -> &PrivateDir {
        &self.directory
    }

    /// Returns where the home of an attempt is, or would be: `<root>/attempts/<key>/home`.
    pub fn home_path(&self, key: &HomeKey) -> Utf8PathBuf {
        self.path.join(ATTEMPTS).join(key.as_str()).join(HOME)
    }

    /// Creates an attempt's directory, `<root>/attempts/<key>`, exclusively and with mode 0700.
    ///
    /// # Errors
    /// [`CreateAttemptError::AlreadyExists`] when there is one; it is left alone.
    pub fn create_attempt(&self, key: &HomeKey) -> Result<AttemptDir, CreateAttemptError> {
        let attempts = self
            .directory
            .ensure_dir(&name(ATTEMPTS), DIRECTORY_MODE)
            .map_err(CreateAttemptError::Create)?;
        let attempts = PrivateDir::check(attempts).map_err(CreateAttemptError::Attempts)?;
        match attempts.create_dir(key.as_str(), DIRECTORY_MODE) {
            Ok(directory) => Ok(AttemptDir::of(directory, key.clone())),
            Err(CreateError::AlreadyExists { .. }) => Err(CreateAttemptError::AlreadyExists),
            Err(error) => Err(CreateAttemptError::Create(error)),
        }
    }

    /// Opens an attempt's directory, `None` when there is none.
    ///
    /// Its mode is not checked: its own child could change it, and the root keeps others out.
    ///
    /// # Errors
    /// Something else stands under its name, or the system denies access.
    pub fn attempt(&self, key: &HomeKey) -> Result<Option<AttemptDir>, OpenAttemptError> {
        let path = name(&format!("{ATTEMPTS}/{key}"));
        match self.directory.open_dir(&path) {
            Ok(directory) => Ok(Some(AttemptDir::of(directory, key.clone()))),
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(OpenAttemptError(error)),
        }
    }

    /// Returns the keys of the attempts that have a directory, in no order.
    ///
    /// # Errors
    /// The directory of attempts cannot be listed.
    pub fn attempt_keys(&self) -> Result<Vec<HomeKey>, ListAttemptsError> {
        let attempts = match self.directory.open_dir(&name(ATTEMPTS)) {
            Ok(attempts) => attempts,
            Err(OpenError::Missing { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(ListAttemptsError::Attempts(error)),
        };
        let mut keys = Vec::new();
        for entry in attempts.entries().map_err(ListAttemptsError::List)? {
            let name = entry.map_err(ListAttemptsError::List)?;
            keys.extend(name.to_str().and_then(|name| HomeKey::parse(name).ok()));
        }
        Ok(keys)
    }

    /// Removes an attempt's whole directory: its log, its records and a home that was kept.
    ///
    /// The proof says that only a receipt of it is needed any more. Never touches a session's home,
    /// which lies elsewhere and which nothing here removes.
    ///
    /// # Errors
    /// Part of it may be left; removing it again goes on.
    pub fn remove_attempt(
        &self,
        key: &HomeKey,
        _proof: &Settled,
    ) -> Result<Removed, RemoveAttemptError> {
        match self.directory.open_dir(&name(ATTEMPTS)) {
            Ok(attempts) => attempts.remove_tree(key.as_str()).map_err(RemoveAttemptError::Remove),
            Err(OpenError::Missing { .. }) => Ok(Removed::AlreadyGone),
            Err(error) => Err(RemoveAttemptError::Attempts(error)),
        }
    }

    /// Opens the file in which digests of programs are kept, making it (0600) where it is missing.
    ///
    /// `None` wherever it cannot be had: what is kept there only saves work.
    pub fn digests(&self) -> Option<File> {
        let open = || self.directory.open_file(&name(DIGESTS), Access::ReadWrite);
        match open() {
            Ok(file) => Some(file),
            Err(OpenError::Missing { .. }) => {
                match self.directory.create_file(DIGESTS, FILE_MODE) {
                    Ok(file) => Some(file),
                    // Another process made it after the look above.
                    Err(CreateError::AlreadyExists { .. }) => open().ok(),
                    Err(_) => None,
                }
            }
            Err(_) => None,
        }
    }
}

/// Opens the root or, before it is created, the directory in which it would be.
fn nearest_existing(path: &Path) -> Result<Dir, RootError> {
    let mut last = None;
    for ancestor in path.ancestors() {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match Dir::open(ancestor, ROLE) {
            Ok(existing) => return Ok(existing),
            Err(error @ OpenError::Missing { .. }) => last = Some(error),
            Err(OpenError::NotADirectory { .. }) => return Err(RootError::NotADirectory),
            Err(error) => return Err(RootError::Private(PrivateError::Open(error))),
        }
    }
    let error = last.expect("every path has itself as an ancestor");
    Err(RootError::Private(PrivateError::Open(error)))
}

fn refuse_kind(kind: FsKind) -> Result<(), RootError> {
    match kind {
        FsKind::Network(name) => Err(RootError::NetworkFilesystem(name)),
        FsKind::ReadOnly => Err(RootError::ReadOnly),
        // FUSE of an unlisted kind is what rootless containers run on; locks there are the
        // kernel's own.
        FsKind::Local | FsKind::Unknown(_) => Ok(()),
    }
}

fn name(text: &str) -> RelativePath {
    RelativePath::parse(text).expect("fixed names and keys are safe relative paths")
}

impl RootError {
    fn from_private(error: PrivateError) -> Self {
        match error {
            PrivateError::NotPrivate { mode, .. } => Self::NotPrivate { mode },
            PrivateError::NotOwned { owner, .. } => Self::NotOwned { owner },
            PrivateError::NotADirectory { .. } => Self::NotADirectory,
            PrivateError::ReadOnly { .. } => Self::ReadOnly,
            error @ (PrivateError::Missing { .. }
            | PrivateError::Open(_)
            | PrivateError::Create(_)
            | PrivateError::Io(_)) => Self::Private(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_refused_by_name() {
        let refused = refuse_kind(FsKind::Network("nfs")).expect_err("nfs must be refused");
        assert_eq!(
            refused.to_string(),
            "the root directory lies on a network file system (nfs); it must be local"
        );
    }

    #[test]
    fn a_read_only_file_system_is_refused() {
        assert!(matches!(refuse_kind(FsKind::ReadOnly), Err(RootError::ReadOnly)));
    }

    #[test]
    fn local_and_unlisted_file_systems_are_accepted() {
        refuse_kind(FsKind::Local).unwrap();
        refuse_kind(FsKind::Unknown("fuse")).unwrap();
    }
}
