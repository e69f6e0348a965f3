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
/// Name of the file in the attempt directory that says below which base it lies otherwise, since a later
/// host may have another one, and in which directory there, since the base is but a path.
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
        if let Some(noted) = noted(attempt)?
            && let Some(parent) = open_shared(&noted)?
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
    let noted = Noted { inode: Some(shared.facts().ok()?.inode), base: physical };
    let name = attempt.key().short();
    let path = shared.path().ok()?.join(name);
    // Noted before it is made: a crash in between leaves a note, never a directory nobody finds.
    let mut note = attempt.dir().create_file(BASE, 0o600).ok()?;
    let made = note
        .write_all(noted.text().as_bytes())
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
fn open_shared(noted: &Noted) -> Result<Option<Dir>, TemporaryDirError> {
    let shared = match Dir::open(&noted.base, ROLE) {
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
    // Whoever may rename what lies above the base can lead its path to another directory of ours.
    let same = noted.inode.is_none_or(|inode| inode == facts.inode);
    let ours = same && facts.uid == rustix::process::geteuid().as_raw();
    Ok(ours.then_some(shared))
}

fn shared_name() -> String {
    format!("pl-{}", rustix::process::geteuid().as_raw())
}

/// What the note says.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    /// Which directory `pl-<uid>` is; without the device, which another boot may number otherwise.
    /// Absent in a note that an earlier version made.
    inode: Option<u64>,
    base: Utf8PathBuf,
}

impl Noted {
    /// `INODE PATH`, or the absolute path alone.
    fn text(&self) -> String {
        match self.inode {
            Some(inode) => format!("{inode} {}", self.base),
            None => self.base.to_string(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return Some(Self { inode: None, base: text.into() });
        }
        let (inode, base) = text.split_once(' ')?;
        Some(Self { inode: Some(inode.parse().ok()?), base: base.into() })
    }
}

fn noted(attempt: &AttemptDir) -> Result<Option<Noted>, TemporaryDirError> {
    match attempt.dir().read_bounded(&fixed_name(BASE), BASE_BYTES_MAX) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| TemporaryDirError::Note(None))?;
            // A crash before it was written: then nothing was made there either.
            if text.is_empty() {
                return Ok(None);
            }
            Noted::parse(&text).map(Some).ok_or(TemporaryDirError::Note(None))
        }
        Err(ReadError::Open(OpenError::Missing { .. })) => Ok(None),
        Err(error) => Err(TemporaryDirError::Note(Some(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_with_and_without_its_directory() {
        for inode in [None, Some(0), Some(u64::MAX)] {
            let noted = Noted { inode, base: "/a base/x".into() };
            assert_eq!(Noted::parse(&noted.text()), Some(noted));
        }
    }

    #[test]
    fn what_is_no_note_is_none() {
        for text in ["", "x", "12", "12x /a", "-1 /a"] {
            assert_eq!(Noted::parse(text), None, "{text}");
        }
    }
}
