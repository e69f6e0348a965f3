//! Every statement of the store is answered by an index, and takes the same steps however long the
//! history is.

use crate::open::{Role, StorePaths};
use crate::write::Store;
use crate::{Change, Draft, Durability, Fields, NewAttempt, Selection};
use placement_contract::{
    AttemptId, CleanupScope, Clock, EvidenceKind, ExitObservation, IdempotencyKey, LaunchRequest,
    Mechanism, Outcome, OwnerId, Timestamp,
};
use placement_testkit::TempRoot;
use rusqlite::StatementStatus;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn note(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(statement, _) = event {
        SEEN.lock().unwrap().insert(statement.sql().into_owned());
    }
}

#[derive(Debug)]
struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_796_000_000_000)
    }
}

fn request(attempt: &str) -> LaunchRequest {
    let digest = "0".repeat(64);
    let text = serde_json::json!({
        "idempotency_key": attempt, "owner_id": "local:1", "owner_incarnation": 1,
        "action_id": "act", "attempt_id": attempt, "binding_ref": "b", "policy_ref": "p",
        "profile_id": "f", "binding_digest": digest, "profile_digest": digest, "resources": [],
        "launch": {"executable": "/bin/true", "argv": [], "readiness": "started"},
        "required_cleanup": "process_group",
    });
    LaunchRequest::decode(text.to_string().as_bytes()).unwrap()
}

/// Does once what hosts, runners and sweeps do all the time.
fn do_everything(store: &Store) {
    let (owner, id) = (OwnerId::parse("local:1").unwrap(), AttemptId::parse("a").unwrap());
    let key = IdempotencyKey::parse("a").unwrap();
    let request = request("a");
    let text = serde_json::to_string(&request).unwrap();
    let new = NewAttempt {
        request: &request,
        digest: &request.digest(),
        request_json: &text,
        grants_json: None,
        capability: CleanupScope::ContainedTree,
        exit_observation: ExitObservation::Independent,
        mechanism: Some(Mechanism::Cgroup),
        home_key: None,
    };
    store.intend(&new, "intended").unwrap();
    for selection in
        [Selection::Live, Selection::Unsettled, Selection::Uncleaned, Selection::TreeNotGone]
    {
        for owner in [None, Some(&owner)] {
            store.list(owner, selection, 64).unwrap();
            store.count(owner, selection).unwrap();
        }
    }
    store.list(Some(&owner), Selection::All, 64).unwrap();
    store.touch_observed([&id]).unwrap();
    store.find(&owner, &id).unwrap();
    store.find_by_key(&owner, &key).unwrap();
    store.find_pruned(&owner, &id).unwrap();
    store.find_pruned_by_key(&owner, &key).unwrap();
    store.evidence(&id, 0, 64).unwrap();
    store.folded(&id).unwrap();
    store.verify(&id, None).unwrap();
    let stop = [Draft::new(EvidenceKind::StopBeforeStart, "nobody had claimed it")];
    let change = Change {
        attempt_id: &id,
        expect: None,
        expect_generation: None,
        rows: &stop,
        fields: &Fields::default(),
    };
    let row = store.record(&change, Durability::Normal).unwrap();
    store.settled(&owner, &Epoch.now(), None).unwrap();
    store.prune(&row, Outcome::NotStarted).unwrap();
}

#[test]
fn no_statement_reads_the_whole_history() {
    let root = TempRoot::new();
    let mut store =
        Store::open(&StorePaths::below(root.path()), Role::Service, Arc::new(Epoch)).unwrap();
    store.connection_mut().trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note)).unwrap();
    do_everything(&store);
    let seen = std::mem::take(&mut *SEEN.lock().unwrap());
    let asks = |sql: &&String| {
        let verb = sql.split_whitespace().next().unwrap_or_default();
        ["SELECT", "UPDATE", "DELETE"].contains(&verb)
    };
    let seen: Vec<String> = seen.into_iter().filter(|sql| asks(&sql)).collect();
    assert!(seen.len() > 20, "{seen:#?}");
    let connection = rusqlite::Connection::open(root.join("placement.db").as_std_path()).unwrap();
    for sql in &seen {
        let explained = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = connection.prepare(&explained).unwrap();
        let values = vec![rusqlite::types::Null; statement.parameter_count()];
        let values = rusqlite::params_from_iter(values);
        let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
        for step in steps.collect::<Result<Vec<_>, _>>().unwrap() {
            // The binding has one row; an index of what is open has only that.
            let is_small = step.contains("placement_store_binding")
                || step.contains("placement_attempts_unsettled")
                || step.contains("placement_attempts_uncleaned")
                || step.contains("CONSTANT ROW");
            assert!(!step.starts_with("SCAN") || is_small, "{step}: {sql}");
        }
    }
}

thread_local! {
    /// Each statement, and how many steps of SQLite's machine it has taken so far.
    static STEPS: RefCell<BTreeMap<String, i32>> = const { RefCell::new(BTreeMap::new()) };
}

fn count(event: TraceEvent<'_>) {
    if let TraceEvent::Profile(statement, _) = event {
        let taken = statement.get_status(StatementStatus::VmStep);
        STEPS.with_borrow_mut(|steps| steps.insert(statement.sql().into_owned(), taken));
    }
}

/// Copies a settled attempt of the owner who does everything, with its evidence.
fn grow(store: &mut Store, history: u32) {
    let id = AttemptId::parse("old").unwrap();
    let request = request("old");
    let new = NewAttempt {
        request: &request,
        digest: &request.digest(),
        request_json: &serde_json::to_string(&request).unwrap(),
        grants_json: None,
        capability: CleanupScope::ContainedTree,
        exit_observation: ExitObservation::Independent,
        mechanism: Some(Mechanism::Cgroup),
        home_key: None,
    };
    store.intend(&new, "intended").unwrap();
    let rows = [Draft::new(EvidenceKind::StopBeforeStart, "nobody had claimed it")];
    let fields = &Fields::default();
    let stop =
        Change { attempt_id: &id, expect: None, expect_generation: None, rows: &rows, fields };
    store.record(&stop, Durability::Normal).unwrap();
    let connection = store.connection_mut();
    for (table, renamed) in
        [("placement_attempts", "attempt_id idempotency_key"), ("placement_evidence", "attempt_id")]
    {
        let columns: Vec<String> = connection
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let copied: Vec<&str> = columns
            .iter()
            .map(|name| if renamed.contains(name.as_str()) { "'old-' || n" } else { name })
            .collect();
        let sql = format!(
            "WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < {history})
             INSERT INTO {table} ({}) SELECT {} FROM numbers, {table} WHERE attempt_id = 'old'",
            columns.join(", "),
            copied.join(", ")
        );
        connection.execute_batch(&sql).unwrap();
    }
}

fn steps_among(history: u32) -> BTreeMap<String, i32> {
    let root = TempRoot::new();
    let mut store =
        Store::open(&StorePaths::below(root.path()), Role::Service, Arc::new(Epoch)).unwrap();
    grow(&mut store, history);
    let counted = TraceEventCodes::SQLITE_TRACE_PROFILE;
    store.connection_mut().trace_v2(counted, Some(count)).unwrap();
    do_everything(&store);
    STEPS.take()
}

#[test]
fn no_statement_takes_more_steps_among_a_long_history() {
    let (short, long) = (steps_among(200), steps_among(20_000));
    assert!(short.len() > 20 && short.keys().eq(long.keys()), "{short:#?} {long:#?}");
    let grown: Vec<_> = short.iter().filter(|(sql, taken)| long[*sql] > **taken + 16).collect();
    assert!(grown.is_empty(), "{grown:#?}");
}
