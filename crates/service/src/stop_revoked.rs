//! Stopping an attempt from which the host has taken back what it had granted.

use crate::Service;
use crate::refusal::{conflict, unavailable};
use crate::service::Found;
use crate::stop::IfUncertain;
use placement_contract::{Attempt, AttemptId, Code, EvidenceKind, ExecutionState, Refusal};
use placement_policy::is_session_root;
use placement_protocol::StopMode;
use placement_resources::{OwnHome, ResolvedGrant, admit};
use placement_store::{Draft, Durability, Fields, Row};

/// How often a revocation that was overtaken by somebody else's commit begins again.
const ROUNDS_MAX: usize = 8;

impl Service {
    /// Stops an attempt of this owner of which the host no longer admits a grant.
    ///
    /// Asks the host's list for the grants itself; a directory that only another process of the host
    /// has named is judged as if it were named now. `grant.revoked` is recorded once, then the attempt is asked to
    /// end: what a child has seen already cannot be taken back, so the stop is the enforcement, and
    /// it is pending until the exit. An attempt that is not live is left as [`Service::stop`]
    /// leaves it, without evidence.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT where every grant holds; UNAVAILABLE where that could not be found out,
    /// which revokes nothing; else as [`Service::stop`].
    pub fn stop_revoked(&self, attempt_id: &AttemptId) -> Result<Attempt, Refusal> {
        for _ in 0..ROUNDS_MAX {
            let row = match self.find(attempt_id)? {
                Found::Row(row) => *row,
                Found::Pruned(attempt) => return Ok(*attempt),
            };
            let Some(revoked) = self.revoked_grant(&row)? else {
                return Err(conflict("every grant of the attempt holds"));
            };
            if self.note_revoked(&row, &revoked)? {
                return self.stop(attempt_id, StopMode::Cooperative, IfUncertain::Leave);
            }
        }
        Err(conflict("the attempt changes all the time"))
    }

    /// Returns what the host says of a grant that it does not admit any more; what it cannot tell is
    /// no revocation.
    fn revoked_grant(&self, row: &Row) -> Result<Option<Refusal>, Refusal> {
        let mut snapshot = self.snapshot();
        let grants = row.grants::<ResolvedGrant>()?;
        // A session's home is placement's own, whatever the host lists.
        for grant in grants.iter().filter(|grant| !is_session_root(&grant.root_ref)) {
            match snapshot.admit_named(&grant.root, grant.access) {
                Err(refusal) if refusal.code == Code::Forbidden => return Ok(Some(refusal)),
                Ok(_) | Err(_) => {}
            }
        }
        let request = row.request()?;
        let own = OwnHome { root: &self.inner.root_path, home: &self.home_of(&request) };
        match admit(&request.resources, &snapshot, own) {
            Ok(_) => Ok(None),
            Err(refusal) if refusal.code == Code::Forbidden => Ok(Some(refusal)),
            Err(refusal) => {
                Err(unavailable(format!("whether a grant holds is not known: {}", refusal.message)))
            }
        }
    }

    /// Records the revocation of a live attempt once; false where somebody else has changed the
    /// attempt meanwhile.
    fn note_revoked(&self, row: &Row, revoked: &Refusal) -> Result<bool, Refusal> {
        let is_live =
            row.state.execution == ExecutionState::Intended || row.state.execution.is_live();
        let recorded = self.inner.store.all_evidence(&row.attempt_id)?;
        if !is_live || recorded.iter().any(|row| row.kind == EvidenceKind::GrantRevoked) {
            return Ok(true);
        }
        let rows = [Draft::new(EvidenceKind::GrantRevoked, revoked.to_string())];
        let committed = self.commit(row, &rows, &Fields::default(), Durability::Normal)?;
        Ok(committed.is_some())
    }
}
