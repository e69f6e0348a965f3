//! Seeding the home of one attempt.

use placement_contract::request::RelativePath;
use placement_paths::CreateError;

use crate::files::{Durability, HomeFiles, NewFileError, Way, resolvable, write_new};
use crate::login::{LoginSeed, SeedError};

impl HomeFiles {
    /// Writes a login and what comes with it into the new home of an attempt.
    ///
    /// There is no marker: the home goes with its attempt. Survives the death of the process, not
    /// power loss.
    ///
    /// # Errors
    /// [`SeedError`]; files that were written before one failed stay.
    pub fn seed_attempt(&mut self, seed: &LoginSeed<'_>) -> Result<(), SeedError> {
        self.check_seed(seed)?;
        if let Some(login) = seed.login() {
            self.write_first(&seed.file().path, login)?;
        }
        for with in seed.initializers() {
            self.write_first(&with.path, with.content.as_bytes())?;
        }
        Ok(())
    }

    /// Checks what must hold before anything of a login is read or written.
    pub(super) fn check_seed(&self, seed: &LoginSeed<'_>) -> Result<(), SeedError> {
        self.check_root().map_err(SeedError::Root)?;
        if self.login() == Some(seed.file()) { Ok(()) } else { Err(SeedError::OtherLogin) }
    }

    fn write_first(&mut self, path: &RelativePath, bytes: &[u8]) -> Result<(), SeedError> {
        let path = resolvable(path);
        let parent = self
            .parent(&path, Way::MadeHere, Durability::ProcessDeath)
            .map_err(SeedError::Parent)?;
        match write_new(&parent, path.name(), bytes) {
            Ok(()) => Ok(()),
            Err(NewFileError::Create(CreateError::AlreadyExists { .. })) => {
                Err(SeedError::AlreadyExists)
            }
            Err(NewFileError::Create(error)) => Err(SeedError::Create(error)),
            Err(NewFileError::Write(source)) => Err(SeedError::Write(source)),
        }
    }
}
