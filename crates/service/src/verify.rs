//! Checking an attempt's evidence against its chain, its meaning and its row.

use crate::Service;
use crate::refusal::unknown_attempt;
use placement_contract::{AttemptId, Digest, Refusal};
use serde::Serialize;

/// What a check of an attempt's evidence found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Whether nothing was found.
    pub sound: bool,
    /// How many rows there are.
    pub evidence_count: u64,
    /// The chain value of the last row, recomputed.
    pub chain_head: Digest,
    /// The row whose chain value was kept elsewhere, if one was given and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_head_at: Option<u64>,
    /// What does not fit.
    pub faults: Vec<VerifyFault>,
}

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyFault {
    /// The row of evidence; absent where the attempt's own row does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// What does not fit, in a fixed phrase.
    pub why: &'static str,
}

impl Service {
    /// Recomputes an attempt's chain, folds its evidence and compares both with its row, and with
    /// a head that was kept elsewhere.
    ///
    /// It shows damage and careless edits, not a writer who rewrites everything; a kept head shows
    /// that one too.
    ///
    /// # Errors
    /// `NOT_FOUND`; STORAGE where the attempt's own row is malformed. What the check finds is no
    /// error.
    pub fn verify(
        &self,
        attempt_id: &AttemptId,
        head: Option<&Digest>,
    ) -> Result<Verified, Refusal> {
        self.look(attempt_id)?;
        let found = self.inner.reader.verify(attempt_id, head)?;
        let verdict = found.ok_or_else(|| unknown_attempt(attempt_id))?;
        let fault = |fault: placement_store::Fault| VerifyFault {
            sequence: fault.sequence,
            why: fault.why,
        };
        Ok(Verified {
            attempt_id: attempt_id.clone(),
            sound: verdict.is_sound(),
            evidence_count: verdict.count,
            chain_head: verdict.head,
            kept_head_at: verdict.kept_head_at,
            faults: verdict.faults.into_iter().map(fault).collect(),
        })
    }
}
