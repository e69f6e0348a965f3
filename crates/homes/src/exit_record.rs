//! The record that keeps a runner's last words when the store cannot be written.

use std::io::Write as _;

use placement_crash::point;
use placement_paths::{CreateError, OpenError, PublishError, ReadError, Replacement};

use crate::attempt::{AttemptDir, fixed_name, remove_if_present};
use crate::limits::EXIT_RESERVE_BYTES;

const EXIT_RECORD: &str = "exit.json";
const EXIT_RESERVE: &str = "exit.reserve";

impl AttemptDir {
    /// Sets room aside for an exit record: what keeps the store from being written is mostly a full
    /// disk, which would keep the record from being written too.
    ///
    /// Best effort, and synced by nobody: it is there for the life of one process.
    pub fn reserve_exit_record(&self) {
        if let Ok(mut file) = self.dir().create_file(EXIT_RESERVE, 0o600) {
            // Zeros are written, since a hole takes no room.
            file.write_all(&vec![0; EXIT_RESERVE_BYTES]).ok();
        }
    }

    /// Gives the room for an exit record back; without one there is nothing to do.
    ///
    /// # Errors
    /// The system denies it.
    pub fn release_exit_reserve(&self) -> Result<(), CreateError> {
        remove_if_present(self.dir(), EXIT_RESERVE)
    }

    /// Publishes the exit record, replacing an earlier one: all of it or nothing of it.
    ///
    /// It survives power loss. The bytes are the caller's to encode. Where it fails it is tried once
    /// more in the room that was set aside for it.
    ///
    /// # Errors
    /// As [`Dir::publish`](placement_paths::Dir::publish).
    pub fn write_exit_record(&self, bytes: &[u8]) -> Result<(), PublishError> {
        let name = fixed_name(EXIT_RECORD);
        let publish = || {
            let written = || point("runner.record.written");
            self.dir().publish_watched(&name, bytes, 0o600, Replacement::Replace, written)
        };
        let Err(error) = publish() else { return Ok(()) };
        match self.release_exit_reserve() {
            Ok(()) => publish(),
            Err(_) => Err(error),
        }
    }

    /// Reads the exit record, `None` when there is none.
    ///
    /// # Errors
    /// [`ReadError::TooLarge`] beyond `bytes_max` bytes; the rest as named.
    pub fn read_exit_record(&self, bytes_max: usize) -> Result<Option<Vec<u8>>, ReadError> {
        match self.dir().read_bounded(&fixed_name(EXIT_RECORD), bytes_max) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadError::Open(OpenError::Missing { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
