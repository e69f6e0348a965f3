//! A store with some attempts in it, whose rows are changed behind its back and put back.

use placement_contract::{
    AttemptId, CleanupScope, Clock, EvidenceKind, ExitObservation, LaunchRequest, Mechanism,
    Outcome, OwnerId, RunnerId, Secret, Timestamp,
};
use placement_identity::{Observer, Pid, ProcessIdentity};
use placement_store::{
    Change, Draft, Durability, Fields, Intended, NewAttempt, Role, RunnerClaim, Store, StorePaths,
};
use placement_testkit::TempRoot;
use rusqlite::Connection;
use std::sync::Arc;

/// The attempts that are there, from one that is intended to one that is cleaned.
pub(crate) const ATTEMPTS: &[&str] = &["intended", "running", "complete"];
/// The attempt that is only in the ledger.
pub(crate) const PRUNED: &str = "pruned";

/// The tables whose rows are changed.
pub(crate) const TABLES: &[&str] = &[
    "placement_attempts",
    "placement_evidence",
    "placement_ledger",
    "placement_runner_authorities",
];

/// One column of a table.
pub(crate) struct Column {
    pub(crate) table: &'static str,
    pub(crate) name: String,
}

pub(crate) struct Bed {
    pub(crate) store: Store,
    pub(crate) raw: Connection,
    pub(crate) columns: Vec<Column>,
    /// Goes last, with everything below it.
    _root: TempRoot,
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_796_000_000_000)
    }
}

thread_local! {
    static BED: Bed = Bed::new();
}

/// Gives the bed to a body and puts everything back after it.
pub(crate) fn with(body: impl FnOnce(&Bed)) {
    BED.with(|bed| {
        body(bed);
        bed.put_back();
    });
}

pub(crate) fn id(text: &str) -> AttemptId {
    AttemptId::parse(text).expect("a short text is an id")
}

pub(crate) fn owner() -> OwnerId {
    OwnerId::parse("local:1").expect("a short text is an id")
}

impl Bed {
    fn new() -> Self {
        let root = TempRoot::new();
        let paths = StorePaths::below(root.path());
        let store = Store::open(&paths, Role::Service, Arc::new(Still)).expect("a new store opens");
        for attempt in ATTEMPTS.iter().chain(std::iter::once(&PRUNED)) {
            live(&store, attempt);
        }
        let row = store.find_any(&id(PRUNED)).expect("it is sound").expect("it is there");
        store.prune(&row, Outcome::Exited).expect("it is complete");
        let raw = Connection::open(&paths.database).expect("the store's file opens");
        // The triggers keep evidence as it is, and foreign keys its attempt: both are in the way here.
        raw.execute_batch(
            "PRAGMA ignore_check_constraints = ON;
             PRAGMA foreign_keys = OFF;
             PRAGMA synchronous = OFF;
             DROP TRIGGER placement_evidence_is_never_changed;
             DROP TRIGGER placement_evidence_is_never_removed;
             DROP TRIGGER placement_ledger_is_never_changed;
             DROP TRIGGER placement_ledger_is_never_removed;",
        )
        .expect("the schema is the store's");
        let mut columns = Vec::new();
        for table in TABLES {
            raw.execute_batch(&format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table}"))
                .expect("a table can be copied");
            columns.extend(columns_of(&raw, table));
        }
        Self { store, raw, columns, _root: root }
    }

    fn put_back(&self) {
        let back = TABLES.iter().map(|table| {
            format!(
                "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM kept_{table};"
            )
        });
        let sql = format!("BEGIN IMMEDIATE;{}COMMIT;", back.collect::<String>());
        self.raw.execute_batch(&sql).expect("what was there fits");
    }
}

fn columns_of(raw: &Connection, table: &'static str) -> Vec<Column> {
    let mut statement =
        raw.prepare(&format!("PRAGMA main.table_info({table})")).expect("it is SQLite's");
    let names = statement
        .query_map([], |row| row.get::<_, String>("name"))
        .expect("it is SQLite's")
        .map(|name| name.expect("a name is text"));
    names.map(|name| Column { table, name }).collect()
}

fn request(attempt: &str) -> LaunchRequest {
    let digest = "0".repeat(64);
    let text = serde_json::json!({
        "idempotency_key": format!("key-{attempt}"), "owner_id": "local:1", "owner_incarnation": 1,
        "action_id": "act", "attempt_id": attempt, "binding_ref": "b", "policy_ref": "p",
        "profile_id": "f", "binding_digest": digest, "profile_digest": digest, "resources": [],
        "launch": {"executable": "/bin/true", "argv": ["x"], "readiness": "started"},
        "required_cleanup": "process_group",
    });
    LaunchRequest::decode(text.to_string().as_bytes()).expect("a sound request")
}

pub(crate) fn identity(pid: u32) -> ProcessIdentity {
    let pid = Pid::try_from(pid).expect("it is above zero");
    ProcessIdentity {
        pid,
        pgid: pid,
        start_ticks: 8_812,
        boot_id: "boot".to_owned(),
        pidfd_inode: Some(9),
        observer: Observer {
            machine_id: Some("machine".to_owned()),
            pid_namespace: 1,
            time_namespace: Some(2),
            cgroup_namespace: Some(3),
        },
    }
}

/// Leads an attempt as far as its name says.
fn live(store: &Store, attempt: &str) {
    let request = request(attempt);
    let text = serde_json::to_string(&request).expect("a request can be written");
    let new = NewAttempt {
        request: &request,
        digest: &request.digest(),
        request_json: &text,
        grants_json: Some("[]"),
        capability: CleanupScope::ContainedTree,
        exit_observation: ExitObservation::Independent,
        mechanism: Some(Mechanism::Cgroup),
        home_key: Some("0123456789abcdef0123456789abcdef"),
    };
    let intended = store.intend(&new, "contained_tree by cgroup").expect("it is new");
    assert!(matches!(intended, Intended::Recorded(_)), "it is new");
    if attempt == "intended" {
        return;
    }
    let token: Vec<u8> = attempt.bytes().cycle().take(32).collect();
    store.authority(&id(attempt), &Secret::new(token)).expect("it has none yet");
    let runner = RunnerClaim {
        id: RunnerId::parse("runner").expect("a short text is an id"),
        identity: identity(7),
    };
    let claim = Fields { runner: Some(runner), ..Fields::default() };
    record(store, attempt, &[(EvidenceKind::RunnerStarted, "runner")], &claim);
    let child = Fields {
        child: Some(identity(8)),
        init: Some(identity(9)),
        leaf_path: Some("/placement/x".into()),
        leaf_id: Some(77),
        ..Fields::default()
    };
    let started = [
        (EvidenceKind::ChildCreating, "in a cgroup"),
        (EvidenceKind::ChildIdentified, "pid and group"),
        (EvidenceKind::ChildStarted, "executed"),
    ];
    record(store, attempt, &started, &child);
    if attempt == "running" {
        return;
    }
    let ended = [
        (EvidenceKind::ChildExited, "code 3"),
        (EvidenceKind::TreeGone, "cgroup: populated 0"),
        (EvidenceKind::RunnerFinished, ""),
        (EvidenceKind::CleanupComplete, "the tree is gone"),
    ];
    record(store, attempt, &ended, &Fields::default());
}

fn record(store: &Store, attempt: &str, rows: &[(EvidenceKind, &str)], fields: &Fields) {
    let rows: Vec<Draft> = rows.iter().map(|(kind, detail)| Draft::new(*kind, *detail)).collect();
    let change = Change {
        attempt_id: &id(attempt),
        expect: None,
        expect_generation: None,
        rows: &rows,
        fields,
    };
    store.record(&change, Durability::Normal).expect("it follows from what is there");
}
