//! Admitting a launch and recording it; nothing outside the store exists afterwards.

use crate::Service;
use crate::choice::choose;
use crate::refusal::conflict;
use placement_contract::{
    Attempt, CapabilityReport, CleanupScope, Code, Digest, LaunchRequest, Mechanism, Refusal,
};
use placement_homes::HomeKey;
use placement_materialize::reserved_conflict;
use placement_policy::{check_hint, resolve};
use placement_resources::{OwnHome, ResolvedGrant, admit};
use placement_store::{IntendError, NewAttempt, SessionHolder};

/// What an admitted launch gets.
struct Admitted<'a> {
    request: &'a LaunchRequest,
    digest: &'a Digest,
    grants: &'a [ResolvedGrant],
    report: &'a CapabilityReport,
    mechanism: Option<Mechanism>,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum NotPrepared {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another attempt of this owner holds the session.
    #[error("{0}")]
    SessionHeld(Box<SessionHolder>),
}

impl From<NotPrepared> for Refusal {
    fn from(not_prepared: NotPrepared) -> Self {
        match not_prepared {
            NotPrepared::Refused(refusal) => refusal,
            NotPrepared::SessionHeld(holder) => holder.as_ref().into(),
        }
    }
}

impl Service {
    /// Admits a launch and records its intent, or returns the attempt that is recorded for it.
    ///
    /// The same key with the same request returns the recorded attempt, or its receipt, whatever the
    /// host offers by now. Of several reasons the first in the order below is told. The intent is
    /// durable when this returns.
    ///
    /// # Errors
    /// FORBIDDEN for another owner's request and for a directory that is not admitted; CONFLICT
    /// for a key or an attempt id that is taken and for a session that another attempt of this owner
    /// holds until it is exited and cleaned up, which is named; INVALID, DENIED and UNSUPPORTED as the
    /// request and the policy have it; `UNSUPPORTED_CAPABILITY` with what was required and what was
    /// measured; UNAVAILABLE where it could not be measured and where the session's home is none that
    /// can be used; STORAGE. Nothing is recorded then.
    pub fn prepare(&self, request: &LaunchRequest) -> Result<Attempt, Refusal> {
        self.try_prepare(request).map_err(Refusal::from)
    }

    /// Does what [`Service::prepare`] does, and tells a session that is held from other conflicts, so
    /// that it can be waited for.
    ///
    /// # Errors
    /// As [`Service::prepare`].
    pub fn try_prepare(&self, request: &LaunchRequest) -> Result<Attempt, NotPrepared> {
        // The request alone.
        let request = &request.clone().checked().map_err(Refusal::from)?;
        check_hint(request)?;
        self.check_owner(request)?;
        // What is recorded, before any state of the host: a retry must not fail by what changed
        // meanwhile.
        let digest = request.digest();
        if let Some(recorded) = self.replay(request, &digest)? {
            return Ok(recorded);
        }
        check_offered(request)?;
        check_environment(request)?;
        self.check_session_home(request)?;
        // What the host admits: one snapshot for all of it, and nothing is measured yet.
        let snapshot = self.snapshot();
        let own = OwnHome { root: &self.inner.root_path, home: &self.home_of(request) };
        let grants = admit(&request.resources, &snapshot, own)?;
        let resolved = resolve(request, &snapshot)?;
        // What the machine can do.
        let report = self.measured()?;
        let mechanism = choose(request, &report)?;
        // What the launch is configured from.
        resolved.check_configuration(request, &snapshot)?;
        self.record_intent(&Admitted {
            request,
            digest: &digest,
            grants: &grants,
            report: &report,
            mechanism,
        })
    }

    fn check_owner(&self, request: &LaunchRequest) -> Result<(), Refusal> {
        if request.owner_id == self.inner.owner {
            return Ok(());
        }
        Err(Refusal::new(Code::Forbidden, "owner_id: is not the caller"))
    }

    /// Finds the attempt of a request that was recorded before, or its receipt.
    fn replay(&self, request: &LaunchRequest, digest: &Digest) -> Result<Option<Attempt>, Refusal> {
        let (store, owner) = (&self.inner.store, &self.inner.owner);
        let key = &request.idempotency_key;
        let found = match store.find_by_key(owner, key)? {
            Some(row) => Some(row.attempt()),
            None => store.find_pruned_by_key(owner, key)?.map(|pruned| pruned.attempt),
        };
        match found {
            Some(attempt) if attempt.request_digest != *digest => {
                let id = &attempt.attempt_id;
                let hint =
                    format!("use another key; `placement show {id}` tells what this one launched");
                Err(conflict("the idempotency key was used for another request").with_hint(hint))
            }
            found => Ok(found),
        }
    }

    fn record_intent(&self, admitted: &Admitted<'_>) -> Result<Attempt, NotPrepared> {
        let Admitted { request, digest, grants, report, mechanism } = *admitted;
        let malformed = |_| Refusal::new(Code::Internal, "the request could not be written down");
        let request_json = serde_json::to_string(request).map_err(malformed)?;
        let grants_json = serde_json::to_string(grants).map_err(malformed)?;
        let home_key = HomeKey::of(&request.owner_id, &request.attempt_id);
        let new = NewAttempt {
            request,
            digest,
            request_json: &request_json,
            grants_json: Some(&grants_json),
            capability: report.capability,
            exit_observation: report.exit_observation,
            mechanism,
            home_key: Some(home_key.as_str()),
        };
        match self.inner.store.intend(&new, &detail(request, report, mechanism)) {
            Ok(recorded) => Ok(recorded.into_attempt()),
            // Another prepare came first since the look for a replay; it is answered as that would.
            Err(error @ IntendError::KeyTaken) => {
                Err(self.replay(request, digest).err().unwrap_or_else(|| error.into()).into())
            }
            Err(IntendError::SessionHeld(holder)) => Err(NotPrepared::SessionHeld(holder)),
            Err(error @ (IntendError::AttemptTaken | IntendError::Store(_))) => {
                Err(Refusal::from(error).into())
            }
        }
    }
}

/// Refuses what the contract has and this version does not do.
fn check_offered(request: &LaunchRequest) -> Result<(), Refusal> {
    request.not_offered().map_or(Ok(()), Err)
}

/// Refuses environment names of placement's own.
fn check_environment(request: &LaunchRequest) -> Result<(), Refusal> {
    reserved_conflict(request).map_or(Ok(()), Err)
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
