//! Admitting a launch and recording it; nothing outside the store exists afterwards.

use crate::Service;
use crate::choice::choose;
use crate::refusal::conflict;
use placement_contract::{
    Attempt, CapabilityReport, CleanupScope, Code, LaunchRequest, Mechanism, Refusal,
};
use placement_homes::HomeKey;
use placement_materialize::reserved_conflict;
use placement_policy::{check_hint, resolve};
use placement_resources::admit;
use placement_store::NewAttempt;

impl Service {
    /// Admits a launch and records its intent, or returns the attempt that is recorded for it.
    ///
    /// The same key with the same request returns the recorded attempt, or its receipt, whatever the
    /// host offers by now. The intent is durable when this returns.
    ///
    /// # Errors
    /// FORBIDDEN for another owner's request and for a directory that is not admitted; CONFLICT
    /// for a key or an attempt id that is taken; INVALID, DENIED and UNSUPPORTED as the request and
    /// the policy have it; `UNSUPPORTED_CAPABILITY` with what was required and what was measured;
    /// UNAVAILABLE where it could not be measured; STORAGE. Nothing is recorded then.
    pub fn prepare(&self, request: &LaunchRequest) -> Result<Attempt, Refusal> {
        let request = &request.clone().checked().map_err(Refusal::from)?;
        check_hint(request)?;
        if request.owner_id != self.inner.owner {
            return Err(Refusal::new(Code::Forbidden, "owner_id: is not the caller"));
        }
        let digest = request.digest();
        // Before any state of the host is asked: a retry must not fail by what changed meanwhile.
        let key = &request.idempotency_key;
        if let Some(row) = self.inner.store.find_by_key(&self.inner.owner, key)? {
            if row.request_digest == digest {
                return Ok(row.attempt());
            }
            let message = "the idempotency key was used for another request";
            let id = &row.attempt_id;
            let hint =
                format!("use another key; `placement show {id}` tells what this one launched");
            return Err(conflict(message).with_hint(hint));
        }
        if let Some(pruned) = self.inner.store.find_pruned_by_key(&self.inner.owner, key)? {
            if pruned.attempt.request_digest == digest {
                return Ok(pruned.attempt);
            }
            return Err(conflict("the idempotency key was used for another request"));
        }
        if let Some(refusal) = request.not_offered() {
            return Err(refusal);
        }
        if let Some(refusal) = reserved_conflict(request) {
            return Err(refusal);
        }
        let snapshot = self.snapshot();
        resolve(request, &snapshot)?;
        let grants = admit(&request.resources, &snapshot)?;
        let report = self.measured()?;
        let mechanism = choose(request, &report)?;
        let malformed = |_| Refusal::new(Code::Internal, "the request could not be written down");
        let request_json = serde_json::to_string(request).map_err(malformed)?;
        let grants_json = serde_json::to_string(&grants).map_err(malformed)?;
        let home_key = HomeKey::of(&request.owner_id, &request.attempt_id);
        let new = NewAttempt {
            request,
            digest: &digest,
            request_json: &request_json,
            grants_json: Some(&grants_json),
            capability: report.capability,
            exit_observation: report.exit_observation,
            mechanism,
            home_key: Some(home_key.as_str()),
        };
        let recorded = self.inner.store.intend(&new, &detail(request, &report, mechanism))?;
        Ok(recorded.into_attempt())
    }
}

/// Says what the attempt gets, and what else was measured where it asked for less.
fn detail(
    request: &LaunchRequest,
    report: &CapabilityReport,
    mechanism: Option<Mechanism>,
) -> String {
    let scope = match mechanism {
        Some(mechanism) => format!("{} ({mechanism})", CleanupScope::ContainedTree),
        None => request.required_cleanup.to_string(),
    };
    let exit = report.exit_observation;
    if request.required_cleanup == report.capability {
        return format!("{scope}, {exit} exit");
    }
    format!("{scope}, {exit} exit; {} measured", report.capability)
}
