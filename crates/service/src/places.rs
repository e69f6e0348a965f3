//! An attempt's directory: its runner's lock, its exit record, its sockets.

use crate::Service;
use crate::reconcile::place_from;
use crate::refusal::unavailable;
use crate::verdict::RunnerSeen;
use placement_contract::{Code, Refusal};
use placement_homes::{AttemptDir, HomeKey, RootError, RunnerAlive};
use placement_identity::{Here, Place, Presence, UnknownWhy};
use placement_store::{EXIT_RECORD_BYTES_MAX, ExitRecord, Row};

pub(crate) use placement_homes::{CONTROL_SOCKET, DATA_SOCKET};

impl Service {
    /// Opens an attempt's directory; nothing where none was made yet.
    pub(crate) fn attempt_directory(&self, row: &Row) -> Result<Option<AttemptDir>, Refusal> {
        let Some(key) = &row.home_key else { return Ok(None) };
        let key = HomeKey::parse(key)
            .map_err(|_| Refusal::new(Code::Storage, "the recorded home is malformed"))?;
        self.inner.root.attempt(&key).map_err(|error| unavailable(with_errno(&error)))
    }

    /// Looks whether the runner of an attempt lives: by its lock, else by its recorded identity.
    pub(crate) fn runner_seen(&self, row: &Row) -> RunnerSeen {
        self.runner_seen_from(row, &Here::read())
    }

    /// Looks whether a runner lives, from a place that was read before.
    pub(crate) fn runner_seen_from(&self, row: &Row, here: &Here) -> RunnerSeen {
        let Some(runner) = &row.runner else { return RunnerSeen::Unknown };
        match place_from(row, here) {
            Some(Place::EarlierBoot(_)) => return RunnerSeen::Gone,
            // A lock is of one machine: that it is free here says nothing of there.
            Some(Place::Elsewhere(UnknownWhy::OtherMachine)) => return RunnerSeen::Unknown,
            Some(Place::Here | Place::Elsewhere(_)) | None => {}
        }
        let lock = match self.attempt_directory(row) {
            Ok(Some(directory)) => directory.observe_alive(),
            Ok(None) => RunnerAlive::Missing,
            Err(_) => RunnerAlive::Unknown("the attempt directory cannot be opened"),
        };
        match lock {
            RunnerAlive::Held => RunnerSeen::Alive,
            RunnerAlive::Released => RunnerSeen::Gone,
            // The lock is made after the claim, and the claim has the identity.
            RunnerAlive::Missing | RunnerAlive::Unknown(_) => match runner.identity.observe() {
                Presence::Present(_) => RunnerSeen::Alive,
                Presence::Absent(_) => RunnerSeen::Gone,
                Presence::Unknown(_) => RunnerSeen::Unknown,
            },
        }
    }

    /// Takes in what a runner that is gone could not commit; once, however often it is asked.
    ///
    /// A record that does not decode is left where it is: what the store has is then all that is
    /// known.
    pub(crate) fn take_exit_record(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        let Ok(Some(directory)) = self.attempt_directory(row) else { return Ok(None) };
        let Ok(Some(bytes)) = directory.read_exit_record(EXIT_RECORD_BYTES_MAX) else {
            return Ok(None);
        };
        match ExitRecord::decode(&bytes) {
            Ok(record) if record.attempt_id == row.attempt_id => {
                Ok(Some(self.inner.store.take_exit_record(&record)?))
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

/// Words why a root cannot be opened, with what to do about it.
pub(crate) fn refuse_root(error: &RootError) -> Refusal {
    let code = match error {
        RootError::NotPrivate { .. }
        | RootError::NotOwned { .. }
        | RootError::NotADirectory
        | RootError::NetworkFilesystem(_)
        | RootError::Path(_) => Code::Invalid,
        RootError::ReadOnly | RootError::Private(_) | RootError::Io(_) => Code::Storage,
    };
    let hint = match error {
        RootError::NotPrivate { .. } => "chmod 700 the root directory, or name another with --root",
        RootError::NotOwned { .. }
        | RootError::NotADirectory
        | RootError::NetworkFilesystem(_)
        | RootError::Path(_)
        | RootError::ReadOnly
        | RootError::Private(_)
        | RootError::Io(_) => "name a local directory of this user's own with --root",
    };
    Refusal::new(code, with_errno(error)).with_hint(hint)
}

/// Words an error and the name of the error number beneath it, never the system's text.
pub(crate) fn with_errno(error: &(dyn std::error::Error + 'static)) -> String {
    match placement_paths::errno_in(error) {
        Some(errno) => format!("{error} ({errno})"),
        None => error.to_string(),
    }
}
