//! The recorded attempts of one owner.

use crate::error::Error;
use crate::host::Placement;
use placement_contract::Attempt;
use placement_service::Listed;

/// The attempts of a host's owner.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    host: &'a Placement,
}

impl<'a> Attempts<'a> {
    pub(crate) const fn new(host: &'a Placement) -> Self {
        Self { host }
    }

    /// Lists those that may run.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read.
    pub fn live(&self) -> Result<Vec<Attempt>, Error> {
        Ok(self.host.service().list(Listed::Live)?)
    }

    /// Lists all, ended and cleaned ones too.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read.
    pub fn all(&self) -> Result<Vec<Attempt>, Error> {
        Ok(self.host.service().list(Listed::All)?)
    }
}
