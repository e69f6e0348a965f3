//! Whether a retained home was seeded, and by what.

use placement_contract::request::RelativePath;
use placement_paths::{EntryKind, Existence, OpenError, ReadError};

use crate::attempt::fixed_name;
use crate::files::{HomeFiles, resolvable};
use crate::limits::MARKER_BYTES_MAX;
use crate::login::{LOGIN_MARKER, LoginSeed, SeedError, paths_of};

/// Whether a retained home was seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetainedSeed {
    /// It was not, and nothing of a login is there.
    None,
    /// It was, by this very login.
    Whole,
}

impl HomeFiles {
    /// Looks whether a retained home was seeded by this login; changes nothing.
    ///
    /// Where it was not, the digests of what comes with the login are bound next, before any file is
    /// written; where it was, they must be bound already.
    ///
    /// # Errors
    /// [`SeedError::SourceChanged`] and [`SeedError::Incomplete`] where the home cannot be used with
    /// this login; the rest as named.
    pub fn look_retained(&self, seed: &LoginSeed<'_>) -> Result<RetainedSeed, SeedError> {
        self.check_seed(seed)?;
        match self.home().read_bounded(&fixed_name(LOGIN_MARKER), MARKER_BYTES_MAX) {
            Ok(marker) if marker == seed.marker() => Ok(RetainedSeed::Whole),
            Ok(_) | Err(ReadError::TooLarge { .. }) => Err(SeedError::SourceChanged),
            Err(ReadError::Open(OpenError::Missing { .. })) => self.look_unmarked(seed),
            Err(error) => Err(SeedError::Marker(error)),
        }
    }

    /// Without a marker nothing of a login may be there: its writing was interrupted, or it is another's.
    fn look_unmarked(&self, seed: &LoginSeed<'_>) -> Result<RetainedSeed, SeedError> {
        for path in paths_of(seed.file()) {
            if self.entry(path)?.is_some() {
                return Err(SeedError::Incomplete);
            }
        }
        Ok(RetainedSeed::None)
    }

    /// Returns what stands at a path, without opening it or following a link.
    pub(super) fn entry(&self, path: &RelativePath) -> Result<Option<EntryKind>, SeedError> {
        let path = resolvable(path);
        let existence = match path.parent() {
            None => self.home().exists(path.name()),
            Some(parent) => match self.home().open_dir(&parent) {
                Ok(parent) => parent.exists(path.name()),
                Err(OpenError::Missing { .. }) => Existence::Absent,
                Err(error) => return Err(SeedError::Way(error)),
            },
        };
        match existence {
            Existence::Present(kind) => Ok(Some(kind)),
            Existence::Absent => Ok(None),
            Existence::Unknown(errno) => Err(SeedError::Unknown(errno)),
        }
    }
}
