//! The private TMPDIR of an attempt.
//!
//! Its path is short where that can be had, since programs put sockets below it whose paths must
//! fit 104 bytes: `<base>/pl-<uid>/<12 hex digits>`. The base is a place where others write too,
//! so everything below it is checked by descriptor. Where it cannot be trusted, the directory lies
//! in the attempt directory instead.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use placement_paths::{
    CreateError, Dir, Existence, OpenError, PrivateDir, ReadError, RemoveError, Removed,
    ResolveError,
};
use placement_transitions::ScopeGone;

use crate::attempt::{AttemptDir, fixed_name};
use crate::limits::BASE_BYTES_MAX;

/// Name of the directory in the attempt directory.
const WITHIN: &str = "tmp";
/// Name of the file in the attempt directory that says below which base it lies otherwise: a later
/// host may have another base.
const BASE: &str = "tmp.base";
const ROLE: &str = "temporary";

/// The private temporary directory of one attempt.
#[derive(Debug)]
pub struct TemporaryDir {
    parent: Dir,
    name: String,
    path: Utf8PathBuf,
}

/// Why an attempt has no temporary directory, or it could not be found again.
#[derive(Debug, thiserror::Error)]
pub enum TemporaryDirError {
    /// There is one already; it is never used twice.
    #[error("the temporary directory exists already")]
    AlreadyExists,
    /// It could not be created.
    #[error("the temporary directory could not be created")]
    Create(#[source] CreateError),
    /// It could not be opened.
    #[error("the temporary directory could not be opened")]
    Open(#[source] OpenError),
    /// The note about where it lies cannot be read or is no path.
    #[error("the place of the temporary directory cannot be told")]
    Note(#[source] Option<ReadError>),
    /// Its physical path cannot be told or is not UTF-8.
    #[error("the path of the temporary directory cannot be used")]
    Path(#[source] ResolveError),
}

impl TemporaryDir {
    /// Creates the directory, empty and with mode 0700.
    ///
    /// It lies at `<base>/pl-<uid>/<12 hex digits of the key>` if `pl-<uid>` is a directory of ours
    /// alone (it is created where it is missing); a link, a foreign or an open one there, or a
    /// name that is taken, puts it at `<attempt>/tmp`. The base itself is trusted as a path, and
    /// the caller chooses one that outlives a logout.
    ///
    /// # Errors
    /// [`TemporaryDirError::AlreadyExists`] for a second one; the rest as named.
    pub fn create(base: &Utf8Path, attempt: &AttemptDir) -> Result<Self, TemporaryDirError> {
        if attempt.dir().exists(WITHIN) != Existence::Absent
            || attempt.dir().exists(BASE) != Existence::Absent
        {
            return Err(TemporaryDirError::AlreadyExists);
        }
        if let Some(created) = create_below(base, attempt) {
            return Ok(created);
        }
        let made = attempt.dir().create_dir(WITHIN, 0o700).map_err(TemporaryDirError::Create)?;
        let parent = attempt
            .dir()
            .try_clone()
            .map_err(|error| TemporaryDirError::Open(OpenError::Io(error)))?;
        let path = made.path().map_err(TemporaryDirError::Path)?;
        Ok(Self { parent, name: WITHIN.to_owned(), path })
    }

    /// Finds the directory of an attempt again, `None` when there is none (any more).
    ///
    /// # Errors
    /// As the variants of [`TemporaryDirError`] name them.
    pub fn open(attempt: &AttemptDir) -> Result<Option<Self>, TemporaryDirError> {
        if let Some(base) = noted_base(attempt)?
            && let Some(parent) = open_shared(&base)?
            && let Some(found) = Self::found(parent, attempt.key().short())?
        {
            return Ok(Some(found));
        }
        let parent = attempt
            .dir()
            .try_clone()
            .map_err(|error| TemporaryDirError::Open(OpenError::Io(error)))?;
        Self::found(parent, WITHIN)
    }

    /// Returns its physical path.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Removes the directory with everything in it.
    ///
    /// The proof says that nothing is left that could still use it.
    ///
    /// # Errors
    /// Part of it is left; removing it again goes on.
    pub fn remove(&self, _proof: &ScopeGone) -> Result<Removed, RemoveError> {
        self.parent.remove_tree(&self.name)
    }

    fn found(parent: Dir, name: &str) -> Result<Option<Self>, TemporaryDirError> {
        // The child may have closed its own directory: the parent tells whether it is there, and
        // the path is the parent's.
        if parent.exists(name) == Existence::Absent {
            return Ok(None);
        }
        let path = parent.path().map_err(TemporaryDirError::Path)?.join(name);
        Ok(Some(Self { parent, name: name.to_owned(), path }))
    }
}

/// Creates the directory below the base; `None` wherever that cannot be trusted or does not work.
fn create_below(base: &Utf8Path, attempt: &AttemptDir) -> Option<TemporaryDir> {
    let base = Dir::open(base, ROLE).ok()?;
    let physical = base.path().ok()?;
    let shared = shared_in(&base)?;
    let name = attempt.key().short();
    let path = shared.path().ok()?.join(name);
    // Noted before it is made: a crash in between leaves a note, never a directory nobody finds.
    let mut note = attempt.dir().create_file(BASE, 0o600).ok()?;
    let made = note
        .write_all(physical.as_str().as_bytes())
        .ok()
        .and_then(|()| shared.create_dir(name, 0o700).ok());
    if made.is_none() {
        // Best effort: a note without a directory only costs a look.
        attempt.dir().remove_file(BASE).ok();
        return None;
    }
    Some(TemporaryDir { parent: shared.into_dir(), name: name.to_owned(), path })
}

/// Opens or creates `pl-<uid>`, which must be a directory of ours alone and no link.
fn shared_in(base: &Dir) -> Option<PrivateDir> {
    let name = shared_name();
    let opened = match base.create_dir(&name, 0o700) {
        Ok(made) => made,
        Err(CreateError::AlreadyExists { .. }) => base.open_dir(&fixed_name(&name)).ok()?,
        Err(_) => return None,
    };
    PrivateDir::check(opened).ok()
}

/// Opens `pl-<uid>` again; `None` when ours is not there (any more), whatever stands in its place.
///
/// Its mode is not asked: a child may have changed it, and a removal follows no link.
fn open_shared(base: &Utf8Path) -> Result<Option<Dir>, TemporaryDirError> {
    let shared = match Dir::open(base, ROLE) {
        Ok(base) => base.open_dir(&fixed_name(&shared_name())),
        Err(error) => Err(error),
    };
    let shared = match shared {
        Ok(shared) => shared,
        Err(
            OpenError::Missing { .. }
            | OpenError::SymbolicLink { .. }
            | OpenError::NotADirectory { .. },
        ) => return Ok(None),
        Err(error) => return Err(TemporaryDirError::Open(error)),
    };
    let facts = shared.facts().map_err(|error| TemporaryDirError::Open(OpenError::Io(error)))?;
    let ours = facts.uid == rustix::process::geteuid().as_raw();
    Ok(ours.then_some(shared))
}

fn shared_name() -> String {
    format!("pl-{}", rustix::process::geteuid().as_raw())
}

fn noted_base(attempt: &AttemptDir) -> Result<Option<Utf8PathBuf>, TemporaryDirError> {
    match attempt.dir().read_bounded(&fixed_name(BASE), BASE_BYTES_MAX) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| TemporaryDirError::Note(None))?;
            Ok(Some(text.into()))
        }
        Err(ReadError::Open(OpenError::Missing { .. })) => Ok(None),
        Err(error) => Err(TemporaryDirError::Note(Some(error))),
    }
}
