//! Runs a scenario whose attempt is recorded first and started later.
//!
//! The facade records and starts in one; what happens in between is asked of the service itself.

use super::launch::settle;
use super::outcome::Outcome;
use super::scenario::{Act, Moment, Scenario};
use crate::command::Failure;
use crate::proving_ground::{OWNER, ProvingGround, told};
use placement::{AttemptId, OwnerId, StopMode, SystemClock};
use placement_contract::{CleanupScope, LaunchRequest, RecipientId, Refusal};
use placement_policy::Snapshot;
use placement_service::{RunnerCommand, Service, ServiceConfig, Started};
use serde_json::json;
use std::sync::Arc;

/// The one attempt of a scenario.
const ATTEMPT: &str = "prepared";

/// Records the attempt, does what is due, asks for the start and returns what came of it.
pub(super) fn run(scenario: &Scenario, ground: &ProvingGround) -> Result<Outcome, Failure> {
    let refused = |refusal: Refusal| Failure::new(refusal.to_string());
    let snapshot = Snapshot::embedded();
    let request = request(scenario, &snapshot).map_err(refused)?;
    let service = Service::open(ServiceConfig {
        root: ground.root(),
        owner: OwnerId::parse(OWNER).expect("a short ASCII text is an id"),
        snapshot,
        runner: RunnerCommand::this_executable(),
        clock: Arc::new(SystemClock),
        temporary_base: None,
    })
    .map_err(refused)?;
    let id: AttemptId = service.prepare(&request).map_err(refused)?.attempt_id;
    for action in scenario.happens.iter().filter(|action| action.after == Moment::Prepared) {
        let mode = match action.act {
            Act::Stop => StopMode::Cooperative,
            Act::ForcedStop => StopMode::Forced,
        };
        ground.host().stop(&id, mode).map_err(|error| told("stop", &error))?;
    }
    let recipient = RecipientId::parse("check").expect("a short ASCII text is an id");
    let mut outcome = Outcome::default();
    match service.start(&id, &recipient) {
        Ok(Started { streams: None, attempt }) => settle(&mut outcome, ground, &attempt)?,
        Ok(Started { streams: Some(_), .. }) => {
            ground.host().stop(&id, StopMode::Forced).map_err(|error| told("stop", &error))?;
            return Err(Failure::new("what happened after the preparation did not end it"));
        }
        Err(refusal) => {
            outcome.refused = Some(refusal.code);
            let attempt = service.recorded(&id).map_err(refused)?;
            settle(&mut outcome, ground, &attempt)?;
        }
    }
    Ok(outcome)
}

fn request(scenario: &Scenario, snapshot: &Snapshot) -> Result<LaunchRequest, Refusal> {
    let request = json!({
        "idempotency_key": ATTEMPT,
        "owner_id": OWNER,
        "owner_incarnation": 1,
        "action_id": ATTEMPT,
        "attempt_id": ATTEMPT,
        "binding_ref": snapshot.binding().r#ref,
        "policy_ref": snapshot.policy().r#ref,
        "profile_id": snapshot.profile().r#ref,
        "binding_digest": snapshot.binding().digest,
        "profile_digest": snapshot.profile().digest,
        "launch": {"executable": scenario.program, "argv": scenario.args, "readiness": "started"},
        "resources": [],
        "required_cleanup": scenario.require.unwrap_or(CleanupScope::DirectProcess),
        "timeouts": scenario.timeouts,
    });
    Ok(LaunchRequest::decode(request.to_string().as_bytes())?)
}
