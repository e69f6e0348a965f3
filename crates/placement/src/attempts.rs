//! The recorded attempts of one owner.

use crate::error::Error;
use crate::host::Placement;
use placement_contract::{Attempt, ExecutionState};
use placement_service::{AttemptList, Listed, ReconciledAll};

/// The attempts of a host's owner.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    host: &'a Placement,
}

impl<'a> Attempts<'a> {
    pub(crate) const fn new(host: &'a Placement) -> Self {
        Self { host }
    }

    /// Lists those that may run: live ones, and those of which it is not known.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read; a malformed row is listed as such.
    pub fn live(&self) -> Result<AttemptList, Error> {
        let mut list = self.open()?;
        list.attempts.retain(may_run);
        Ok(list)
    }

    /// Lists those with something left to do: live, uncertain, or exited and not cleaned.
    ///
    /// # Errors
    /// As [`Attempts::live`].
    pub fn open(&self) -> Result<AttemptList, Error> {
        Ok(self.host.service().list(Listed::Open)?)
    }

    /// Looks at every open one, as [`Placement::reconcile`] does, side by side; what stands against one
    /// of them is told with it.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read.
    pub fn reconcile(&self) -> Result<ReconciledAll, Error> {
        Ok(self.host.service().reconcile_all()?)
    }

    /// Lists all, ended and cleaned ones too.
    ///
    /// # Errors
    /// As [`Attempts::live`].
    pub fn all(&self) -> Result<AttemptList, Error> {
        Ok(self.host.service().list(Listed::All)?)
    }
}

fn may_run(attempt: &Attempt) -> bool {
    attempt.execution_state.is_live() || attempt.execution_state == ExecutionState::Uncertain
}
