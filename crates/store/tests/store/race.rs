//! Several writers at once: threads on one connection, and connections of their own.

use crate::support::{World, claim, id, intend, record, record_with, running};
use placement_contract::EvidenceKind::{
    ChildCreating, ChildNotStarted, HomeCreated, RunnerStarted, StdinAccepted, StopBeforeStart,
    StopRequested,
};
use placement_store::{Intended, RecordError, Role, Row, SCHEMA, Selection, Store};
use std::sync::{Arc, Barrier};
use std::thread;

/// Runs the same thing at once in several threads, each with a connection of its own.
fn at_once<T: Send>(
    world: &World,
    count: usize,
    run: impl Fn(usize, &Store) -> T + Sync,
) -> Vec<T> {
    let barrier = Barrier::new(count);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (barrier, run) = (&barrier, &run);
                scope.spawn(move || {
                    let store = world.try_open(Role::Runner).unwrap();
                    barrier.wait();
                    run(number, &store)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn winners(outcomes: &[Result<Row, RecordError>]) -> usize {
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

#[test]
fn eight_hosts_that_open_an_empty_path_at_once_all_get_the_store() {
    for _ in 0..5 {
        let world = World::new();
        let barrier = Barrier::new(8);
        let counts: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let (world, barrier) = (&world, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let store = world.try_open(Role::Service).expect("it opens for each");
                        intend(&store, &format!("a-{number}"));
                        store.count(None, Selection::All).unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(counts.len(), 8);
        assert_eq!(world.open().count(None, Selection::All).unwrap(), 8);
        let applied = "SELECT count(*) FROM placement_schema_migrations";
        assert_eq!(world.number(applied), i64::from(SCHEMA));
    }
}

#[test]
fn of_several_claimers_one_wins_and_the_others_change_nothing() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let outcomes = at_once(&world, 6, |number, store| {
        let runner = format!("r-{number}");
        record_with(store, "a", &[(RunnerStarted, &runner)], &claim(&runner))
    });
    assert_eq!(winners(&outcomes), 1);
    let row = store.find_any(&id("a")).unwrap().unwrap();
    assert_eq!(row.evidence_count, 2);
    let won = outcomes.into_iter().flatten().next().unwrap();
    assert_eq!(row, won);
    assert!(store.verify(&id("a"), None).unwrap().unwrap().is_sound());
}

#[test]
fn threads_on_one_connection_take_turns() {
    let world = World::new();
    let store = Arc::new(world.open());
    running(&store, "a");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    record(&store, "a", &[(StdinAccepted, "1 byte")]).unwrap();
                }
            });
        }
    });
    let row = store.find_any(&id("a")).unwrap().unwrap();
    assert_eq!(row.evidence_count, 5 + 100);
    assert!(store.verify(&id("a"), None).unwrap().unwrap().is_sound());
}

#[test]
fn the_count_equals_the_rows_after_writers_of_all_kinds() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    record_with(&store, "a", &[(RunnerStarted, "r-1")], &claim("r-1")).unwrap();
    at_once(&world, 4, |number, store| {
        for _ in 0..20 {
            let outcome = match number {
                0 => record(store, "a", &[(HomeCreated, "")]),
                1 => record(store, "a", &[(ChildCreating, "")]),
                2 => record(store, "a", &[(StopRequested, "cooperative")]),
                _ => record(store, "a", &[(StdinAccepted, ""), (ChildCreating, "")]),
            };
            assert!(matches!(outcome, Ok(_) | Err(RecordError::Refused(_))), "{outcome:?}");
        }
    });
    let row = store.find_any(&id("a")).unwrap().unwrap();
    let rows = world.number("SELECT count(*) FROM placement_evidence");
    assert_eq!(i64::try_from(row.evidence_count).unwrap(), rows);
    assert!(store.verify(&id("a"), None).unwrap().unwrap().is_sound());
}

#[test]
fn a_start_and_a_stop_at_once_always_end_somewhere_that_can_be_cleaned() {
    for _ in 0..20 {
        let world = World::new();
        let store = world.open();
        intend(&store, "a");
        let outcomes = at_once(&world, 2, |number, store| {
            if number == 0 {
                record_with(store, "a", &[(RunnerStarted, "r-1")], &claim("r-1"))
            } else {
                record(store, "a", &[(StopBeforeStart, "cooperative")])
            }
        });
        assert_eq!(winners(&outcomes), 1);
        if outcomes[0].is_ok() {
            record(&store, "a", &[(StopRequested, "cooperative"), (ChildNotStarted, "stopped")])
                .unwrap();
        }
        let row = store.find_any(&id("a")).unwrap().unwrap();
        assert_eq!(row.state.execution, placement_contract::ExecutionState::Exited);
    }
}

#[test]
fn identical_intents_at_once_are_one_receipt() {
    let world = World::new();
    let store = world.open();
    let outcomes = at_once(&world, 6, |_, store| {
        crate::support::intend_request(store, &crate::support::request("a")).unwrap()
    });
    let recorded =
        outcomes.iter().filter(|outcome| matches!(outcome, Intended::Recorded(_))).count();
    assert_eq!(recorded, 1);
    let seen: Vec<_> = outcomes.into_iter().map(Intended::into_attempt).collect();
    assert!(seen.iter().all(|attempt| *attempt == seen[0]));
    assert_eq!(store.count(None, Selection::All).unwrap(), 1);
}
