//! A store in a temporary root, and attempts in it.

use placement_contract::{
    AttemptId, CleanupScope, Clock, Digest, EvidenceKind, ExitObservation, LaunchRequest,
    Mechanism, OwnerId, RunnerId, Timestamp,
};
use placement_identity::ProcessIdentity;
use placement_store::{
    Change, Draft, Durability, Fields, IntendError, Intended, NewAttempt, OpenError, RecordError,
    Role, Row, RunnerClaim, Store, StorePaths,
};
use placement_testkit::{FakeTime, TempRoot};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct TestClock(FakeTime);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.unix_ms())
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) root: TempRoot,
    pub(crate) clock: Arc<TestClock>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(TestClock(FakeTime::at(1_796_000_000_000)));
        Self { root: TempRoot::new(), clock }
    }

    pub(crate) fn paths(&self) -> StorePaths {
        StorePaths::below(self.root.path())
    }

    pub(crate) fn advance_ms(&self, by_ms: u64) {
        self.clock.0.advance(Duration::from_millis(by_ms));
    }

    pub(crate) fn set_back_ms(&self, by_ms: i64) {
        self.clock.0.set(self.clock.0.unix_ms() - by_ms);
    }

    pub(crate) fn try_open(&self, role: Role) -> Result<Store, OpenError> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        Store::open(&self.paths(), role, clock)
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open(Role::Service).expect("the store opens")
    }

    /// Changes the file behind the store's back.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.paths().database).unwrap();
        connection
            .execute_batch(
                "PRAGMA ignore_check_constraints = ON;
                 PRAGMA foreign_keys = OFF;
                 DROP TRIGGER IF EXISTS placement_evidence_is_never_changed;
                 DROP TRIGGER IF EXISTS placement_evidence_is_never_removed;",
            )
            .unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// Reads one number from the file, past the store.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let connection = rusqlite::Connection::open(self.paths().database).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

pub(crate) fn id(text: &str) -> AttemptId {
    AttemptId::parse(text).unwrap()
}

pub(crate) fn owner(text: &str) -> OwnerId {
    OwnerId::parse(text).unwrap()
}

pub(crate) fn request_of(owner: &str, key: &str, attempt: &str, argument: &str) -> LaunchRequest {
    let digest = "0".repeat(64);
    let text = serde_json::json!({
        "idempotency_key": key, "owner_id": owner, "owner_incarnation": 1, "action_id": "act",
        "attempt_id": attempt, "binding_ref": "b", "policy_ref": "p", "profile_id": "f",
        "binding_digest": digest, "profile_digest": digest, "resources": [],
        "launch": {"executable": "/bin/true", "argv": [argument], "readiness": "started"},
        "required_cleanup": "process_group",
    });
    LaunchRequest::decode(text.to_string().as_bytes()).expect("a sound request")
}

pub(crate) fn request(attempt: &str) -> LaunchRequest {
    request_of("local:1", &format!("key-{attempt}"), attempt, "x")
}

pub(crate) fn intend_request(
    store: &Store,
    request: &LaunchRequest,
) -> Result<Intended, IntendError> {
    let digest: Digest = request.digest();
    let request_json = serde_json::to_string(request).unwrap();
    let new = NewAttempt {
        request,
        digest: &digest,
        request_json: &request_json,
        grants_json: None,
        capability: CleanupScope::ContainedTree,
        exit_observation: ExitObservation::Independent,
        mechanism: Some(Mechanism::Cgroup),
        home_key: None,
    };
    store.intend(&new, "contained_tree by cgroup, process_group required")
}

pub(crate) fn intend(store: &Store, attempt: &str) -> Row {
    match intend_request(store, &request(attempt)).unwrap() {
        Intended::Recorded(row) => row,
        Intended::Replayed(_) | Intended::Pruned(_) => panic!("{attempt} was there"),
    }
}

pub(crate) fn record(
    store: &Store,
    attempt: &str,
    rows: &[(EvidenceKind, &str)],
) -> Result<Row, RecordError> {
    record_with(store, attempt, rows, &Fields::default())
}

pub(crate) fn record_with(
    store: &Store,
    attempt: &str,
    rows: &[(EvidenceKind, &str)],
    fields: &Fields,
) -> Result<Row, RecordError> {
    let rows: Vec<Draft> = rows.iter().map(|(kind, detail)| Draft::new(*kind, *detail)).collect();
    let change = Change {
        attempt_id: &id(attempt),
        expect: None,
        expect_generation: None,
        rows: &rows,
        fields,
    };
    store.record(&change, Durability::Normal)
}

pub(crate) fn claim(runner: &str) -> Fields {
    let runner = RunnerClaim {
        id: RunnerId::parse(runner).unwrap(),
        identity: ProcessIdentity::this_process().unwrap(),
    };
    Fields { runner: Some(runner), ..Fields::default() }
}

/// A process that stands in for the init of a namespace.
pub(crate) fn init() -> ProcessIdentity {
    let this = ProcessIdentity::this_process().unwrap();
    ProcessIdentity { start_ticks: this.start_ticks + 9, ..this }
}

/// An attempt whose child runs, with its identity recorded.
pub(crate) fn running(store: &Store, attempt: &str) -> Row {
    intend(store, attempt);
    record_with(store, attempt, &[(EvidenceKind::RunnerStarted, "r-1")], &claim("r-1")).unwrap();
    let child = Fields {
        child: Some(ProcessIdentity::this_process().unwrap()),
        init: Some(init()),
        leaf_path: Some("/sys/fs/cgroup/placement/x".into()),
        leaf_id: Some(77),
        ..Fields::default()
    };
    record(store, attempt, &[(EvidenceKind::ChildCreating, "cgroup")]).unwrap();
    record_with(store, attempt, &[(EvidenceKind::ChildIdentified, "")], &child).unwrap();
    record(store, attempt, &[(EvidenceKind::ChildStarted, "")]).unwrap()
}

/// An attempt that went its whole way.
pub(crate) fn complete(store: &Store, attempt: &str) -> Row {
    running(store, attempt);
    record(store, attempt, &[(EvidenceKind::ChildExited, "code 3")]).unwrap();
    record(
        store,
        attempt,
        &[(EvidenceKind::TreeGone, "cgroup: populated 0"), (EvidenceKind::RunnerFinished, "")],
    )
    .unwrap();
    record(store, attempt, &[(EvidenceKind::CleanupComplete, "the tree is gone")]).unwrap()
}
