//! What the unit tests share.

use placement_contract::request::Argument;
use placement_contract::{
    ActionId, AttemptId, CleanupScope, Clock, ExitObservation, IdempotencyKey, Launch,
    LaunchRequest, OwnerId, Supervision, Timeouts, Timestamp,
};
use placement_policy::Snapshot;
use placement_testkit::FakeTime;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
struct TestClock(FakeTime);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.advance(std::time::Duration::from_millis(1));
        Timestamp::from_unix_ms(self.0.unix_ms())
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(FakeTime::at(1_800_000_000_000)))
}

pub(crate) fn owner() -> OwnerId {
    OwnerId::parse("local:test").unwrap()
}

pub(crate) fn attempt(id: &str) -> AttemptId {
    AttemptId::parse(id).unwrap()
}

/// A request of the embedded definitions that requires the direct process only.
pub(crate) fn request(id: &str, key: &str) -> LaunchRequest {
    let snapshot = Snapshot::embedded();
    LaunchRequest {
        idempotency_key: IdempotencyKey::parse(key).unwrap(),
        owner_id: owner(),
        owner_incarnation: 1,
        action_id: ActionId::parse(id).unwrap(),
        attempt_id: attempt(id),
        binding_ref: snapshot.binding().r#ref.clone(),
        policy_ref: snapshot.policy().r#ref.clone(),
        profile_id: snapshot.profile().r#ref.clone(),
        binding_digest: snapshot.binding().digest.clone(),
        profile_digest: snapshot.profile().digest.clone(),
        launch: Launch {
            executable: Argument::parse("true").unwrap(),
            argv: Vec::new(),
            stdin: None,
            stdin_eof: false,
            environment: Vec::new(),
            working_directory_ref: None,
            readiness: "started".to_owned(),
        },
        resources: Vec::new(),
        environment: BTreeMap::new(),
        environment_refs: BTreeMap::new(),
        required_cleanup: CleanupScope::DirectProcess,
        required_exit_observation: ExitObservation::Independent,
        timeouts: Timeouts::default(),
        supervision: Supervision::default(),
    }
}
