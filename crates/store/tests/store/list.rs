//! Listing, counting and rows that cannot be read.

use crate::support::{
    World, complete, id, intend, intend_request, owner, record, request_of, running,
};
use placement_contract::EvidenceKind::{ChildExited, ReconcileUnobserved, TreeGone};
use placement_store::{CorruptRow, Selection, Store, StoreError};

fn listed(store: &Store, selection: Selection) -> Vec<String> {
    let listing = store.list(None, selection, 100).unwrap();
    assert_eq!(listing.corrupt, []);
    assert_eq!(store.count(None, selection).unwrap(), listing.rows.len() as u64);
    listing.rows.iter().map(|row| row.attempt_id.to_string()).collect()
}

#[test]
fn each_selection_lists_its_states() {
    let world = World::new();
    let store = world.open();
    intend(&store, "intended");
    world.advance_ms(1);
    running(&store, "running");
    world.advance_ms(1);
    running(&store, "lost");
    record(&store, "lost", &[(ReconcileUnobserved, "")]).unwrap();
    world.advance_ms(1);
    running(&store, "exited");
    record(&store, "exited", &[(ChildExited, "code 0")]).unwrap();
    world.advance_ms(1);
    complete(&store, "complete");
    let all = ["complete", "exited", "lost", "running", "intended"];
    assert_eq!(listed(&store, Selection::All), all);
    assert_eq!(listed(&store, Selection::Live), ["running"]);
    assert_eq!(listed(&store, Selection::Unsettled), ["running", "lost"]);
    assert_eq!(listed(&store, Selection::Uncleaned), ["exited"]);
    assert_eq!(listed(&store, Selection::TreeNotGone), ["exited"]);
    record(&store, "exited", &[(TreeGone, "cgroup: empty")]).unwrap();
    assert!(listed(&store, Selection::TreeNotGone).is_empty());
}

#[test]
fn the_longest_unobserved_comes_first() {
    let world = World::new();
    let store = world.open();
    for attempt in ["a", "b", "c"] {
        running(&store, attempt);
    }
    for attempt in ["a", "c", "b"] {
        world.advance_ms(10);
        store.touch_observed([&id(attempt)]).unwrap();
    }
    assert_eq!(listed(&store, Selection::Live), ["a", "c", "b"]);
    running(&store, "d");
    assert_eq!(listed(&store, Selection::Live)[0], "d", "never observed");
}

#[test]
fn a_clock_that_is_set_back_does_not_bring_the_same_ones_first_again() {
    let world = World::new();
    let store = world.open();
    for attempt in ["a", "b"] {
        running(&store, attempt);
        store.touch_observed([&id(attempt)]).unwrap();
    }
    world.set_back_ms(60_000);
    store.touch_observed([&id("a")]).unwrap();
    assert_eq!(listed(&store, Selection::Live), ["b", "a"]);
    complete(&store, "complete");
    assert_eq!(listed(&store, Selection::Live), ["b", "a"]);
}

#[test]
fn an_owner_sees_its_own() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &request_of("local:1", "k", "a", "x")).unwrap();
    intend_request(&store, &request_of("local:2", "k", "b", "x")).unwrap();
    let listing = store.list(Some(&owner("local:2")), Selection::All, 100).unwrap();
    assert_eq!(listing.rows.len(), 1);
    assert_eq!(listing.rows[0].attempt_id, id("b"));
    assert_eq!(store.count(Some(&owner("local:2")), Selection::All).unwrap(), 1);
    assert_eq!(store.list(None, Selection::All, 1).unwrap().rows.len(), 1);
}

#[test]
fn a_malformed_attempt_is_named_by_its_column_and_never_guessed() {
    let text = [
        "execution_state",
        "cleanup_state",
        "capability",
        "required_cleanup",
        "mechanism",
        "exit_observation",
        "exit_source",
        "request_digest",
        "chain_head",
        "created_at",
        "updated_at",
    ];
    for column in text {
        refuses(column, "'nonsense'");
    }
    for column in ["owner_id", "action_id", "idempotency_key", "recipient", "runner_id"] {
        refuses(column, "''");
    }
    for column in ["owner_incarnation", "evidence_count"] {
        refuses(column, "0");
    }
    for column in
        ["attachment_generation", "pid", "pgid", "runner_pid", "start_ticks", "pidfd_inode"]
    {
        refuses(column, "-1");
    }
    refuses("pid", "0");
    refuses("runner_finished", "2");
    refuses("runner_id", "NULL");
    refuses("exit_core", "1");
    refuses("exit_signal", "9");
}

#[test]
fn a_malformed_observation_is_named_and_keeps_no_other_from_being_noted() {
    refuses_after(
        "observed_at",
        "INSERT INTO placement_observations VALUES ('a', 'nonsense')",
        |store| assert_eq!(store.touch_observed([&id("b")]).unwrap(), 1),
    );
}

fn refuses(column: &'static str, value: &str) {
    let tampered =
        format!("UPDATE placement_attempts SET {column} = {value} WHERE attempt_id = 'a'");
    refuses_after(column, &tampered, |_| {});
}

fn refuses_after(column: &'static str, tampered: &str, then: impl FnOnce(&Store)) {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    intend(&store, "b");
    world.tamper(tampered);
    then(&store);
    let error = store.find_any(&id("a")).expect_err(column);
    assert!(
        matches!(error, StoreError::Corrupt { column: c } if c == column),
        "{column}: {error:?}"
    );
    let listing = store.list(None, Selection::All, 100).unwrap();
    assert_eq!(listing.corrupt, [CorruptRow { attempt_id: "a".into(), column }]);
    assert_eq!(listing.rows.len(), 1, "the other attempt is still listed");
}

#[test]
fn a_stored_request_of_another_attempt_is_refused() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    intend(&store, "b");
    world.tamper(
        "UPDATE placement_attempts SET request_json =
            (SELECT request_json FROM placement_attempts WHERE attempt_id = 'b')",
    );
    let row = store.find_any(&id("a")).unwrap().unwrap();
    assert!(matches!(row.request(), Err(StoreError::Corrupt { column: "request_json" })));
    assert!(store.find_any(&id("b")).unwrap().unwrap().request().is_ok());
}
