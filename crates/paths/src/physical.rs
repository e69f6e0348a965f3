//! Physical paths: all links and dot segments resolved, so that "inside" has one meaning.

use std::fmt;
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;

use crate::failure::{IoFailure, Place};
use crate::limits::PATH_BYTES_MAX;
use crate::{Dir, OpenError, PathRefused, RelativePath};

/// The physical path of a directory that existed when it was resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalDir(Utf8PathBuf);

/// Why a path was not resolved to a directory.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It does not start with `/`.
    #[error("the path is not absolute")]
    NotAbsolute,
    /// It is longer than 8192 bytes, or than the system takes.
    #[error("the path is too long (at most {PATH_BYTES_MAX} bytes)")]
    TooLong,
    /// It holds NUL or another control character.
    #[error("the path holds a control character")]
    ControlCharacter,
    /// It, or what it resolves to, is not UTF-8.
    #[error("the path is not valid UTF-8")]
    NotUtf8,
    /// There is nothing there.
    #[error("the path does not exist")]
    Missing,
    /// There is something else there.
    #[error("the path is not a directory")]
    NotADirectory,
    /// Its links lead in a circle.
    #[error("the path has too many symbolic links")]
    LinkLoop,
    /// The system denies the look (EACCES or EPERM).
    #[error("the path may not be examined by this user")]
    Denied,
    /// Anything else.
    #[error(transparent)]
    Io(IoFailure),
}

/// Why a subpath does not name a directory inside a root.
#[derive(Debug, thiserror::Error)]
pub enum WithinError {
    /// The subpath is not a safe relative path.
    #[error("the subpath is refused")]
    Subpath(#[source] PathRefused),
    /// It names no directory.
    #[error("the subpath was not resolved")]
    Resolve(#[source] ResolveError),
    /// It leads out of the root through a link.
    #[error("the subpath leads out of its root")]
    Escapes,
}

/// Resolves an absolute path of at most 8192 bytes to an existing directory's physical path.
///
/// Links are followed, since the result says where they led.
///
/// # Errors
/// As the variants of [`ResolveError`] name them.
pub fn resolve_directory(path: impl AsRef<Path>) -> Result<PhysicalDir, ResolveError> {
    let path = Utf8Path::from_path(path.as_ref()).ok_or(ResolveError::NotUtf8)?;
    check_text(path)?;
    if !path.is_absolute() {
        return Err(ResolveError::NotAbsolute);
    }
    let physical = path.as_std_path().canonicalize().map_err(ResolveError::from_io)?;
    let physical = Utf8PathBuf::from_path_buf(physical).map_err(|_| ResolveError::NotUtf8)?;
    check_text(&physical)?;
    if !physical.as_std_path().metadata().map_err(ResolveError::from_io)?.is_dir() {
        return Err(ResolveError::NotADirectory);
    }
    Ok(PhysicalDir(physical))
}

/// Resolves a subpath of a root to a directory physically inside it; the empty one is the root.
///
/// Links below the root are followed, as long as they end inside.
///
/// # Errors
/// [`WithinError::Escapes`] when they end outside; the rest as named.
pub fn directory_within(root: &PhysicalDir, subpath: &str) -> Result<PhysicalDir, WithinError> {
    if subpath.is_empty() {
        return Ok(root.clone());
    }
    let subpath = RelativePath::parse(subpath).map_err(WithinError::Subpath)?;
    let inside = resolve_directory(root.0.join(subpath.as_str())).map_err(WithinError::Resolve)?;
    if !root.contains(&inside) {
        return Err(WithinError::Escapes);
    }
    Ok(inside)
}

impl PhysicalDir {
    /// Says whether `other` is this directory or lies below it, by whole components.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns the physical path.
    pub fn as_path(&self) -> &Utf8Path {
        &self.0
    }

    /// Opens the directory.
    ///
    /// What stands at the path by then is opened; nothing proves that it is what was resolved.
    ///
    /// # Errors
    /// As [`Dir::open`].
    pub fn open(&self, role: &'static str) -> Result<Dir, OpenError> {
        Dir::open(&self.0, role)
    }
}

impl AsRef<Path> for PhysicalDir {
    fn as_ref(&self) -> &Path {
        self.0.as_std_path()
    }
}

impl fmt::Display for PhysicalDir {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl ResolveError {
    fn from_io(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Self::Missing,
            Some(Errno::NOTDIR) => Self::NotADirectory,
            Some(Errno::LOOP) => Self::LinkLoop,
            Some(Errno::ACCESS | Errno::PERM) => Self::Denied,
            Some(Errno::NAMETOOLONG) => Self::TooLong,
            _ => Self::Io(IoFailure::new("resolve", Place::itself("given"), error)),
        }
    }
}

fn check_text(path: &Utf8Path) -> Result<(), ResolveError> {
    if path.as_str().len() > PATH_BYTES_MAX {
        return Err(ResolveError::TooLong);
    }
    if path.as_str().chars().any(char::is_control) {
        return Err(ResolveError::ControlCharacter);
    }
    Ok(())
}
