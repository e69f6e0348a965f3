//! Every statement of the store is answered by an index, however long the history is.

use crate::open::{Role, StorePaths};
use crate::write::Store;
use crate::{Change, Draft, Durability, Fields, NewAttempt, Selection};
use placement_contract::{
    AttemptId, CleanupScope, Clock, EvidenceKind, ExitObservation, IdempotencyKey, LaunchRequest,
    Mechanism, Outcome, OwnerId, Timestamp,
};
use placement_testkit::TempRoot;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How many steps of SQLite's machine one history may cost more than another: those of a page more in
/// some tree are none, and a scan takes one for each row at least.
const MORE_STEPS_MAX: u64 = 64;

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

/// Fills a store with attempts that are over, each with evidence, and with as many receipts.
fn add_history(connection: &rusqlite::Connection, size: u32) {
    let digest = "d".repeat(64);
    let at = "strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + n, 'unixepoch')";
    let numbers =
        format!("numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < {size})");
    let columns = "attempt_id, idempotency_key, owner_id, owner_incarnation, action_id,
        request_digest, program, capability, required_cleanup, exit_observation,
        attachment_generation, evidence_count, chain_head, created_at, updated_at";
    let values = format!(
        "'local:1', 1, 'act', '{digest}', 'true', 'contained_tree', 'process_group',
         'independent', 1, 1, '{digest}', {at}, {at}"
    );
    let history = format!(
        "BEGIN;
         INSERT INTO placement_attempts ({columns}, request_json, execution_state, cleanup_state,
             runner_finished)
         WITH RECURSIVE {numbers}
         SELECT 'old-' || n, 'old-' || n, {values}, '{{}}', 'exited', 'complete', 1 FROM numbers;
         INSERT INTO placement_evidence
         SELECT attempt_id, 1, created_at, 'intent.recorded', NULL, 'intended/pending', '', '{digest}'
         FROM placement_attempts;
         INSERT INTO placement_ledger ({columns}, outcome, pruned_at)
         WITH RECURSIVE {numbers}
         SELECT 'gone-' || n, 'gone-' || n, {values}, 'exited', {at} FROM numbers;
         COMMIT;"
    );
    connection.execute_batch(&history).unwrap();
}

/// Counts the steps of SQLite's machine for everything that is done all the time.
fn steps_among(size: u32) -> u64 {
    let root = TempRoot::new();
    let mut store =
        Store::open(&StorePaths::below(root.path()), Role::Service, Arc::new(Epoch)).unwrap();
    add_history(store.connection_mut(), size);
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let step = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    store.connection_mut().progress_handler(1, Some(step)).unwrap();
    do_everything(&store);
    steps.load(Ordering::Relaxed)
}

#[test]
fn no_statement_takes_more_steps_after_a_hundred_times_the_history() {
    let (short, long) = (steps_among(1_000), steps_among(100_000));
    println!("{short} steps after 10^3 attempts, {long} after 10^5");
    assert!(short > 1_000, "{short}");
    assert!(long <= short + MORE_STEPS_MAX, "{short} and {long}");
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
