//! Pages of evidence.

use crate::Service;
use placement_contract::{AttemptId, Evidence, Refusal};
use serde::Serialize;

/// One page of an attempt's evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidencePage {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The rows, in their order.
    pub evidence: Vec<Evidence>,
    /// The last sequence of this page, if there are more rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
}

impl Service {
    /// Reads the rows of evidence after a sequence; a limit outside 1 to 64 is taken as 64.
    ///
    /// # Errors
    /// `NOT_FOUND`; STORAGE where a row is malformed.
    pub fn evidence(
        &self,
        attempt_id: &AttemptId,
        after: u64,
        limit: u32,
    ) -> Result<EvidencePage, Refusal> {
        self.look(attempt_id)?;
        let page = self.inner.reader.evidence(attempt_id, after, limit)?;
        Ok(EvidencePage {
            attempt_id: attempt_id.clone(),
            evidence: page.rows,
            next_after: page.next_after,
        })
    }
}
