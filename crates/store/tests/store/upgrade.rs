//! Stores that the program of each earlier schema has left: brought up with everything they hold.

use crate::support::{World, complete};
use placement_contract::{ExecutionState, Outcome, Timestamp};
use placement_store::{Adopted, OpenError, Role, SCHEMA, Selection, Store, adopt};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// In each of them, whatever its schema.
const STATES: [ExecutionState; 6] = [
    ExecutionState::Intended,
    ExecutionState::Starting,
    ExecutionState::Running,
    ExecutionState::Stopping,
    ExecutionState::Exited,
    ExecutionState::Uncertain,
];

fn dump(schema: u32) -> PathBuf {
    let stores = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/stores");
    PathBuf::from(stores).join(format!("v{schema}.sql"))
}

/// A root with the store of a dump, taken over from the machine that made it.
fn world_of(schema: u32) -> World {
    let world = World::new();
    let text = std::fs::read_to_string(dump(schema)).unwrap();
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    connection.execute_batch(&text).unwrap();
    drop(connection);
    assert_eq!(world.number("SELECT schema FROM placement_store_binding"), i64::from(schema));
    assert!(matches!(world.try_open(Role::Service), Err(OpenError::OtherMachine)));
    assert_eq!(adopt::<OpenError>(&world.paths(), || Ok(())).unwrap(), Adopted::Moved);
    assert_eq!(world.number("SELECT schema FROM placement_store_binding"), i64::from(schema));
    world
}

/// Brings a store up, and asserts that nothing of it is lost and that it takes what is new.
#[track_caller]
fn assert_brought_up(world: &World) -> Store {
    let count = |table| world.number(&format!("SELECT count(*) FROM {table}"));
    let before = (count("placement_attempts"), count("placement_evidence"));
    let store = world.open();
    assert_eq!(world.number("SELECT schema FROM placement_store_binding"), i64::from(SCHEMA));
    assert_eq!((count("placement_attempts"), count("placement_evidence")), before);
    let listing = store.list(None, Selection::All, 1_000).unwrap();
    assert!(listing.corrupt.is_empty(), "{:?}", listing.corrupt);
    assert_eq!(i64::try_from(listing.rows.len()).unwrap(), before.0);
    let states: BTreeSet<_> = listing.rows.iter().map(|row| row.state.execution.label()).collect();
    assert_eq!(states, STATES.iter().map(|state| state.label()).collect());
    for row in &listing.rows {
        let verdict = store.verify(&row.attempt_id, None).unwrap().unwrap();
        assert!(verdict.is_sound(), "{}: {:?}", row.attempt_id, verdict.faults);
    }
    store
}

#[test]
fn every_schema_has_its_dump() {
    let missing: Vec<u32> = (1..=SCHEMA).filter(|schema| !dump(*schema).is_file()).collect();
    assert!(missing.is_empty(), "fixtures/stores has no dump of {missing:?}; its README says how");
}

#[test]
fn a_store_of_every_schema_is_brought_up_whole() {
    for schema in 1..=SCHEMA {
        assert_brought_up(&world_of(schema));
    }
}

#[test]
fn what_settled_under_an_earlier_schema_is_pruned_and_something_new_is_recorded() {
    for schema in 1..=SCHEMA {
        let world = world_of(schema);
        let store = world.open();
        let all = store.list(None, Selection::All, 1_000).unwrap().rows;
        let owner = &all[0].owner_id;
        let late = Timestamp::parse("2100-01-01T00:00:00.000Z").unwrap();
        let settled = store.settled(owner, &late, None).unwrap().rows;
        assert!(!settled.is_empty(), "schema {schema}");
        for row in &settled {
            store.prune(row, Outcome::Exited).unwrap();
            assert!(store.find_pruned(owner, &row.attempt_id).unwrap().is_some());
        }
        complete(&store, "new");
        let left = store.count(None, Selection::All).unwrap();
        assert_eq!(left, (all.len() - settled.len() + 1) as u64);
    }
}

#[test]
fn receipts_of_earlier_schemas_stay() {
    for schema in 2..=SCHEMA {
        let world = world_of(schema);
        let receipts = world.number("SELECT count(*) FROM placement_ledger");
        assert!(receipts > 0, "schema {schema}");
        drop(world.open());
        assert_eq!(world.number("SELECT count(*) FROM placement_ledger"), receipts);
    }
}

#[test]
fn a_look_that_an_earlier_schema_noted_is_taken_over() {
    for schema in 1..4 {
        let world = world_of(schema);
        let (at, any) =
            ("2026-11-30T10:02:11.204Z", "(SELECT min(attempt_id) FROM placement_attempts)");
        let noted = format!(
            "UPDATE placement_attempts SET last_observed_at = '{at}' WHERE attempt_id = {any}"
        );
        let connection = rusqlite::Connection::open(world.paths().database).unwrap();
        assert_eq!(connection.execute(&noted, []).unwrap(), 1);
        drop(connection);
        let rows = world.open().list(None, Selection::All, 1_000).unwrap().rows;
        let noted: Vec<_> = rows.iter().filter_map(|row| row.last_observed_at.as_ref()).collect();
        assert_eq!(noted, [&Timestamp::parse(at).unwrap()], "schema {schema}");
    }
}
