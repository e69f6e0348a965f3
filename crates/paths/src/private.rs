//! A directory proven to be ours alone.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Component, Path};

use crate::failure::{IoFailure, OpenError};
use crate::{CreateError, Dir, PathRefused, PublishError, RelativePath, Replacement};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A directory that was checked on its descriptor: owned by this user, closed to everybody else.
///
/// The actual mode counts, not what was asked for. What the owner does to it later is not seen.
#[derive(Debug)]
pub struct PrivateDir(Dir);

/// Why a directory does not count as private, or could not be made so.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// There is nothing there.
    #[error("the {role} directory does not exist")]
    Missing {
        /// Role of the directory.
        role: &'static str,
    },
    /// There is something else there.
    #[error("the {role} directory is not a directory")]
    NotADirectory {
        /// Role of the directory.
        role: &'static str,
    },
    /// It belongs to another user.
    #[error("the {role} directory belongs to user {owner}, not to this one")]
    NotOwned {
        /// Role of the directory.
        role: &'static str,
        /// Its owner.
        owner: u32,
    },
    /// Others may enter, list or write it.
    #[error("the {role} directory is open to others (mode {mode:04o} instead of 0700)")]
    NotPrivate {
        /// Role of the directory.
        role: &'static str,
        /// Its mode.
        mode: u32,
    },
    /// It would have to be created on a read-only file system.
    #[error("the {role} directory would lie on a read-only file system")]
    ReadOnly {
        /// Role of the directory.
        role: &'static str,
    },
    /// It could not be opened for another reason.
    #[error(transparent)]
    Open(OpenError),
    /// It could not be created for another reason.
    #[error(transparent)]
    Create(CreateError),
    /// It could not be examined or synced.
    #[error(transparent)]
    Io(IoFailure),
}

impl PrivateDir {
    /// Opens an existing directory and checks that it is ours alone; its role is `private`.
    ///
    /// # Errors
    /// As the variants of [`PrivateError`] name them.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PrivateError> {
        Self::check(Dir::open(path, "private").map_err(PrivateError::from_open)?)
    }

    /// Opens a directory that is ours alone, creating it and missing parents with mode 0700.
    ///
    /// Two processes may do so at once. What was created is synced (survives power loss).
    ///
    /// # Errors
    /// As the variants of [`PrivateError`] name them; an existing one is never made narrower.
    pub fn create_or_open(path: impl AsRef<Path>) -> Result<Self, PrivateError> {
        Self::create_or_open_as(path, "private")
    }

    /// Does what [`PrivateDir::create_or_open`] does, under a role label of the caller's.
    ///
    /// # Errors
    /// As [`PrivateDir::create_or_open`].
    pub fn create_or_open_as(
        path: impl AsRef<Path>,
        role: &'static str,
    ) -> Result<Self, PrivateError> {
        let (existing, missing) = split(path.as_ref(), role)?;
        let mut current = existing;
        for name in missing {
            let next =
                current.ensure_dir(&name, DIRECTORY_MODE).map_err(PrivateError::from_create)?;
            current.sync().map_err(PrivateError::Io)?;
            current = next;
        }
        Self::check(current)
    }

    /// Checks that a directory is owned by this user and closed to everybody else.
    ///
    /// # Errors
    /// [`PrivateError::NotOwned`], [`PrivateError::NotPrivate`], [`PrivateError::Io`].
    pub fn check(directory: Dir) -> Result<Self, PrivateError> {
        let role = directory.role();
        let facts = directory.facts().map_err(PrivateError::Io)?;
        if facts.uid != rustix::process::geteuid().as_raw() {
            return Err(PrivateError::NotOwned { role, owner: facts.uid });
        }
        if facts.mode & 0o077 != 0 {
            return Err(PrivateError::NotPrivate { role, mode: facts.mode });
        }
        Ok(Self(directory))
    }

    /// Publishes a private file (0600) below this directory, replacing an earlier one.
    ///
    /// Missing parents are created with mode 0700. For another mode, or a file that must be new,
    /// see [`Dir::publish`].
    ///
    /// # Errors
    /// As [`Dir::publish`]; a text that is no safe relative path is [`PublishError::Parent`].
    pub fn publish(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<(), PublishError> {
        let path = RelativePath::parse(path).map_err(|source| {
            PublishError::Parent(OpenError::Path { place: self.0.below(), source })
        })?;
        if let Some(parent) = path.parent() {
            self.0.ensure_dir(&parent, DIRECTORY_MODE).map_err(PublishError::CreateParent)?;
        }
        self.0.publish(&path, bytes, FILE_MODE, Replacement::Replace)
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Dir {
        &self.0
    }

    /// Returns the directory, without what was proven of it.
    pub fn into_dir(self) -> Dir {
        self.0
    }
}

impl Deref for PrivateDir {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        &self.0
    }
}

/// Opens the deepest existing directory of the path and returns the names missing below it.
fn split(path: &Path, role: &'static str) -> Result<(Dir, Vec<RelativePath>), PrivateError> {
    let mut missing = Vec::new();
    let mut rest = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    loop {
        match Dir::open(rest, role) {
            Ok(existing) => {
                missing.reverse();
                return Ok((existing, missing));
            }
            Err(error @ OpenError::Missing { .. }) => {
                // Only plain names can be created; `..` below something missing stays missing.
                let Some(Component::Normal(name)) = rest.components().next_back() else {
                    return Err(PrivateError::from_open(error));
                };
                missing.push(creatable(name, role)?);
                rest = parent_of(rest);
            }
            Err(error) => return Err(PrivateError::from_open(error)),
        }
    }
}

fn creatable(name: &OsStr, role: &'static str) -> Result<RelativePath, PrivateError> {
    let place = crate::Place::itself(role);
    let refused = |source| PrivateError::Create(CreateError::Path { place, source });
    let name = name.to_str().ok_or_else(|| refused(PathRefused::ControlCharacter))?;
    RelativePath::parse_name(name).map_err(refused)
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl PrivateError {
    fn from_open(error: OpenError) -> Self {
        match error {
            OpenError::Missing { place } => Self::Missing { role: place.role() },
            OpenError::NotADirectory { place } => Self::NotADirectory { role: place.role() },
            OpenError::ReadOnly { place } => Self::ReadOnly { role: place.role() },
            error @ (OpenError::Path { .. }
            | OpenError::SymbolicLink { .. }
            | OpenError::NotARegularFile { .. }
            | OpenError::Denied { .. }
            | OpenError::Io(_)) => Self::Open(error),
        }
    }

    fn from_create(error: CreateError) -> Self {
        match error {
            CreateError::ReadOnly { place } => Self::ReadOnly { role: place.role() },
            CreateError::Open(error) => Self::from_open(error),
            error @ (CreateError::Path { .. }
            | CreateError::AlreadyExists { .. }
            | CreateError::Missing { .. }
            | CreateError::Denied { .. }
            | CreateError::Replaced { .. }
            | CreateError::Io(_)) => Self::Create(error),
        }
    }
}
