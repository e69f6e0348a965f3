//! Looking whether the store is whole, and whether it knows everything that lies in the root.

use crate::Service;
use crate::places::with_errno;
use crate::refusal::unavailable;
use placement_contract::Refusal;
use placement_store::Soundness;
use serde::Serialize;
use std::time::Duration;

/// How long each part of the look takes at most: a store of a million attempts is not read whole.
const AT_MOST: Duration = Duration::from_secs(5);

/// What a look at the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreCheck {
    /// Whether a page or an index of the file is not what it should be.
    pub damaged: bool,
    /// Attempt directories of which the store knows nothing: the end of its log was lost, or an older
    /// copy was put in its place.
    pub unknown_directories: Vec<String>,
    /// Whether all of it was looked at in the time that there is.
    pub finished: bool,
}

impl StoreCheck {
    /// Says whether nothing was found.
    pub fn is_sound(&self) -> bool {
        !self.damaged && self.unknown_directories.is_empty()
    }
}

impl Service {
    /// Looks at every page of the store, and for attempt directories that it does not know, for some
    /// seconds at most; changes nothing.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read; UNAVAILABLE where the directories cannot be listed.
    pub fn check_store(&self) -> Result<StoreCheck, Refusal> {
        // Before the attempts are: a directory is made after its attempt was recorded.
        let keys = self.inner.root.attempt_keys();
        let keys = keys.map_err(|error| unavailable(with_errno(&error)))?;
        let soundness = self.inner.reader.check(AT_MOST)?;
        let damaged = soundness == Soundness::Damaged;
        // What a damaged file does not tell is not for that unknown.
        let known = if damaged { None } else { self.inner.reader.home_keys(AT_MOST)? };
        let finished = soundness != Soundness::Unfinished && (damaged || known.is_some());
        let mut unknown_directories: Vec<String> = match &known {
            Some(known) => {
                let keys = keys.iter().map(|key| key.as_str().to_owned());
                keys.filter(|key| !known.contains(key)).collect()
            }
            None => Vec::new(),
        };
        unknown_directories.sort();
        Ok(StoreCheck { damaged, unknown_directories, finished })
    }
}
