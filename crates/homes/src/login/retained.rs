//! Seeding the retained home of a session.

use placement_contract::request::RelativePath;
use placement_paths::{EntryKind, Replacement};

use crate::attempt::fixed_name;
use crate::files::{Durability, FILE_MODE, HomeFiles, Way, resolvable};
use crate::login::{LOGIN_MARKER, LoginSeed, RetainedSeed, SeedError};

/// What becomes of a login that a retained home has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginPolicy {
    /// It stays: what the program refreshed is newer than what the host has.
    #[default]
    SeedOnce,
    /// The host's takes its place at each start; where the host has none, it is removed.
    RefreshEachActivation,
}

/// What became of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeded {
    /// The home was seeded for the first time.
    First,
    /// What was there was left alone.
    Kept,
    /// The login was replaced by the host's.
    Refreshed,
    /// The host has no login any more, and neither has the home.
    Removed,
}

impl HomeFiles {
    /// Seeds a retained home: the login, what comes with it, and the marker last.
    ///
    /// A home that was seeded keeps everything, but for its login under
    /// [`LoginPolicy::RefreshEachActivation`]. Each file survives power loss before the next one is
    /// written, so the marker says that all of them do.
    ///
    /// # Errors
    /// [`SeedError`]. What was written of a first seed stays, and without its marker refuses every
    /// later start: nobody can tell whose it is.
    pub fn seed_retained(
        &mut self,
        seed: &LoginSeed<'_>,
        policy: LoginPolicy,
    ) -> Result<Seeded, SeedError> {
        let looked = self.look_retained(seed)?;
        if policy == LoginPolicy::RefreshEachActivation && !seed.is_well_formed() {
            return Err(SeedError::NotWellFormed);
        }
        match (looked, policy) {
            (RetainedSeed::None, _) => self.seed_first(seed),
            (RetainedSeed::Whole, LoginPolicy::SeedOnce) => self.keep(seed),
            (RetainedSeed::Whole, LoginPolicy::RefreshEachActivation) => self.refresh(seed),
        }
    }

    fn seed_first(&mut self, seed: &LoginSeed<'_>) -> Result<Seeded, SeedError> {
        if let Some(login) = seed.login() {
            self.publish_first(&seed.file().path, login)?;
        }
        for with in seed.initializers() {
            self.publish_first(&with.path, with.content.as_bytes())?;
        }
        self.home()
            .publish(&fixed_name(LOGIN_MARKER), seed.marker(), FILE_MODE, Replacement::New)
            .map_err(SeedError::of_publication)?;
        Ok(Seeded::First)
    }

    /// Leaves everything as it is, once it is what a start can use.
    fn keep(&self, seed: &LoginSeed<'_>) -> Result<Seeded, SeedError> {
        match self.entry(&seed.file().path)? {
            Some(EntryKind::File) => Ok(Seeded::Kept),
            Some(EntryKind::Directory | EntryKind::SymbolicLink | EntryKind::Other) => {
                Err(SeedError::LoginNotAFile)
            }
            // An optional login may never have been there, or its user signed out.
            None if seed.is_optional() => Ok(Seeded::Kept),
            None => Err(SeedError::Incomplete),
        }
    }

    fn refresh(&mut self, seed: &LoginSeed<'_>) -> Result<Seeded, SeedError> {
        let Some(login) = seed.login() else { return self.remove_login(seed) };
        let path = resolvable(&seed.file().path);
        let parent = self
            .parent(&path, Way::WholeOrMadeHere, Durability::PowerLoss)
            .map_err(SeedError::Parent)?;
        parent
            .publish(&fixed_name(path.name()), login, FILE_MODE, Replacement::Replace)
            .map_err(SeedError::of_publication)?;
        Ok(Seeded::Refreshed)
    }

    fn remove_login(&self, seed: &LoginSeed<'_>) -> Result<Seeded, SeedError> {
        if !seed.is_optional() {
            return Err(SeedError::MissingLogin);
        }
        match self.entry(&seed.file().path)? {
            None => return Ok(Seeded::Kept),
            Some(EntryKind::File) => {}
            Some(EntryKind::Directory | EntryKind::SymbolicLink | EntryKind::Other) => {
                return Err(SeedError::LoginNotAFile);
            }
        }
        let path = resolvable(&seed.file().path);
        let parent = match path.parent() {
            Some(parent) => self.home().open_dir(&parent).map_err(SeedError::Way)?,
            None => self.home().try_clone().map_err(SeedError::RemovedNotSynced)?,
        };
        // A link put there since the look goes itself, never what it leads to.
        parent.remove_file(path.name()).map_err(SeedError::Remove)?;
        parent.sync().map_err(SeedError::RemovedNotSynced)?;
        Ok(Seeded::Removed)
    }

    fn publish_first(&mut self, path: &RelativePath, bytes: &[u8]) -> Result<(), SeedError> {
        let path = resolvable(path);
        let parent =
            self.parent(&path, Way::MadeHere, Durability::PowerLoss).map_err(SeedError::Parent)?;
        parent
            .publish(&fixed_name(path.name()), bytes, FILE_MODE, Replacement::New)
            .map_err(SeedError::of_publication)
    }
}
