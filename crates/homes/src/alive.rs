//! The lock that proves a runner alive, and its release that proves it gone.

use std::fs::{File, TryLockError};
use std::io;

use placement_paths::{Access, CreateError, OpenError, errno_in, errno_name};

use crate::attempt::{AttemptDir, fixed_name};

const ALIVE: &str = "alive";
const UNLOCKED: &str = "alive.new";

/// The exclusive lock that a runner holds for life.
///
/// It ends with the descriptor. A copy that a forked process inherits holds it too: such a process
/// closes what it does not need before it waits.
#[derive(Debug)]
#[must_use = "dropping it tells everybody that the runner is gone"]
pub struct AliveLock {
    locked: File,
}

/// Whether the runner of an attempt is alive, as its lock shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerAlive {
    /// Somebody holds the lock: the runner lives.
    Held,
    /// The lock was held once and is free: the runner is gone. Its tree may not be.
    Released,
    /// There is no lock file, which proves nothing.
    Missing,
    /// It could not be told; a fixed phrase or an errno's name says why.
    Unknown(&'static str),
}

/// Why a runner did not get its lock.
#[derive(Debug, thiserror::Error)]
pub enum AliveError {
    /// There is a lock file already: an attempt has one runner.
    #[error("the attempt has had a runner already")]
    AlreadyExists,
    /// The file could not be created or renamed.
    #[error("the lock file of the runner could not be made")]
    Create(#[source] CreateError),
    /// It could not be locked.
    #[error("the lock file of the runner could not be locked")]
    Lock(#[source] io::Error),
}

impl Drop for AliveLock {
    /// Unlocks by the call: a process that is being forked at this moment holds a copy of the
    /// descriptor, and the lock is gone for the copy too.
    fn drop(&mut self) {
        self.locked.unlock().ok();
    }
}

impl AttemptDir {
    /// Makes the file `alive`, locked exclusively; to be held for the runner's life.
    ///
    /// It is locked under another name and renamed then, so no observer ever sees it unlocked
    /// while the runner lives. [flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html).
    ///
    /// # Errors
    /// [`AliveError::AlreadyExists`] for a second runner; the rest as named.
    pub fn lock_alive(&self) -> Result<AliveLock, AliveError> {
        let file = match self.dir().create_file(UNLOCKED, 0o600) {
            Ok(file) => file,
            Err(CreateError::AlreadyExists { .. }) => return Err(AliveError::AlreadyExists),
            Err(error) => return Err(AliveError::Create(error)),
        };
        let named = lock(&file).and_then(|()| self.name_alive());
        if let Err(error) = named {
            // Best effort: the first error counts, and without `alive` nothing is claimed.
            self.dir().remove_file(UNLOCKED).ok();
            return Err(error);
        }
        Ok(AliveLock { locked: file })
    }

    /// Looks whether the runner is alive, by asking for a shared lock without waiting.
    ///
    /// Shared, since two observers that asked for exclusive ones would call each other alive.
    pub fn observe_alive(&self) -> RunnerAlive {
        let file = match self.dir().open_file(&fixed_name(ALIVE), Access::Read) {
            Ok(file) => file,
            Err(OpenError::Missing { .. }) => return RunnerAlive::Missing,
            Err(OpenError::SymbolicLink { .. } | OpenError::NotARegularFile { .. }) => {
                return RunnerAlive::Unknown("the lock file is not a regular file");
            }
            Err(OpenError::Denied { .. }) => return RunnerAlive::Unknown("EACCES"),
            Err(error) => return RunnerAlive::Unknown(errno_in(&error).unwrap_or("EOTHER")),
        };
        match file.try_lock_shared() {
            Ok(()) => RunnerAlive::Released,
            Err(TryLockError::WouldBlock) => RunnerAlive::Held,
            Err(TryLockError::Error(error)) => RunnerAlive::Unknown(errno_name(&error)),
        }
    }

    fn name_alive(&self) -> Result<(), AliveError> {
        // One claim admits one runner, so nobody else can be between this look and the rename.
        match self.dir().exists(ALIVE) {
            placement_paths::Existence::Present(_) => Err(AliveError::AlreadyExists),
            placement_paths::Existence::Absent | placement_paths::Existence::Unknown(_) => {
                self.dir().rename(UNLOCKED, ALIVE).map_err(AliveError::Create)
            }
        }
    }
}

fn lock(file: &File) -> Result<(), AliveError> {
    file.try_lock().map_err(|error| {
        AliveError::Lock(match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    })
}
