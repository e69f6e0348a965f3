//! The record that keeps a runner's last words when the store cannot be written.

use placement_paths::{CreateError, OpenError, PublishError, ReadError, Replacement};

use crate::attempt::{AttemptDir, fixed_name, remove_if_present};

const EXIT_RECORD: &str = "exit.json";

impl AttemptDir {
    /// Publishes the exit record, replacing an earlier one: all of it or nothing of it.
    ///
    /// It survives power loss. The bytes are the caller's to encode.
    ///
    /// # Errors
    /// As [`Dir::publish`](placement_paths::Dir::publish).
    pub fn write_exit_record(&self, bytes: &[u8]) -> Result<(), PublishError> {
        self.dir().publish(&fixed_name(EXIT_RECORD), bytes, 0o600, Replacement::Replace)
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

    /// Removes the exit record; one that is not there is no error.
    ///
    /// # Errors
    /// The system denies it.
    pub fn remove_exit_record(&self) -> Result<(), CreateError> {
        remove_if_present(self.dir(), EXIT_RECORD)
    }
}
