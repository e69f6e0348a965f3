//! Why an attempt was not made real, as evidence and as a reply.

use placement_contract::{Code, EvidenceKind, Refusal};
use placement_paths::errno_in;
use std::error::Error;

/// A step failed; no child exists and none will.
///
/// The detail is a fixed phrase with names of the request and of errors, never a path or a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failed {
    /// The evidence to record.
    pub kind: EvidenceKind,
    /// The code of the reply.
    pub code: Code,
    /// What failed.
    pub detail: String,
}

impl Failed {
    pub(crate) fn new(kind: EvidenceKind, code: Code, detail: impl Into<String>) -> Self {
        Self { kind, code, detail: detail.into() }
    }

    /// Appends the name of the error number that an error carries, if it has one.
    pub(crate) fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        if let Some(errno) = errno_in(error) {
            self.detail.push_str(": ");
            self.detail.push_str(errno);
        }
        self
    }
}

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Self {
        Self::new(failed.code, failed.detail)
    }
}
