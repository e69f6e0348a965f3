//! The one error of the facade.

use placement_contract::{Code, Refusal};

/// What was asked, what stood against it and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{refusal}")]
pub struct Error {
    refusal: Refusal,
}

impl Error {
    /// Returns the stable code.
    pub fn code(&self) -> Code {
        self.refusal.code
    }

    /// Returns what to do.
    pub fn hint(&self) -> &str {
        self.refusal.hint()
    }

    /// Returns the whole refusal.
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self { refusal }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        error.refusal
    }
}
