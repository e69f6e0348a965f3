//! Pruning: one receipt in the place of an attempt, and what it answers.

use crate::support::{
    World, complete, id, intend, intend_request, owner, record, request, request_of, running,
};
use placement_contract::EvidenceKind::{AttachUnanswered, StopBeforeStart};
use placement_contract::{
    Code, Exit, IdempotencyKey, Outcome, OwnerId, Pruned, Refusal, Secret, Timestamp,
};
use placement_store::{IntendError, Intended, PruneError, Role, Selection, Store};

const FAR: i64 = 1_900_000_000_000;

fn far() -> Timestamp {
    Timestamp::from_unix_ms(FAR)
}

fn settled(store: &Store, owner: &OwnerId, since: &Timestamp) -> Vec<String> {
    let page = store.settled(owner, since, None).unwrap();
    assert!(page.corrupt.is_empty() && page.next.is_none(), "{page:?}");
    page.rows.iter().map(|row| row.attempt_id.to_string()).collect()
}

fn pruned(store: &Store, attempt: &str) -> Pruned {
    let row = complete(store, attempt);
    store.prune(&row, Outcome::Exited).unwrap()
}

#[test]
fn a_receipt_takes_the_place_of_attempt_evidence_and_token() {
    let world = World::new();
    let store = world.open();
    let row = complete(&store, "a");
    store.authority(&id("a"), &Secret::new(vec![7; 32])).unwrap();
    world.advance_ms(1_000);
    let pruned = store.prune(&row, Outcome::Exited).unwrap();
    let expected =
        placement_contract::Attempt { pruned: true, runner: None, home_ref: None, ..row.attempt() };
    assert_eq!(pruned.attempt, expected);
    assert_eq!(pruned.attempt.exit, Some(Exit::Code { code: 3 }));
    assert!(pruned.pruned_at > row.updated_at);
    assert_eq!(store.find_any(&id("a")).unwrap(), None);
    for table in ["attempts", "evidence", "runner_authorities"] {
        assert_eq!(world.number(&format!("SELECT count(*) FROM placement_{table}")), 0, "{table}");
    }
    assert_eq!(store.find_pruned(&owner("local:1"), &id("a")).unwrap(), Some(pruned.clone()));
    let key = IdempotencyKey::parse("key-a").unwrap();
    assert_eq!(store.find_pruned_by_key(&owner("local:1"), &key).unwrap(), Some(pruned));
}

#[test]
fn a_receipt_of_another_owner_is_not_found() {
    let world = World::new();
    let store = world.open();
    pruned(&store, "a");
    assert_eq!(store.find_pruned(&owner("local:2"), &id("a")).unwrap(), None);
    let key = IdempotencyKey::parse("key-a").unwrap();
    assert_eq!(store.find_pruned_by_key(&owner("local:2"), &key).unwrap(), None);
}

#[test]
fn pruning_again_returns_the_same_receipt() {
    let world = World::new();
    let store = world.open();
    let row = complete(&store, "a");
    let first = store.prune(&row, Outcome::Exited).unwrap();
    world.advance_ms(5_000);
    assert_eq!(world.open().prune(&row, Outcome::Unknown).unwrap(), first);
}

#[test]
fn what_is_not_settled_is_not_pruned() {
    let world = World::new();
    let store = world.open();
    let intended = intend(&store, "a");
    let live = running(&store, "b");
    let exited = record(&store, "b", &[(placement_contract::EvidenceKind::ChildExited, "code 0")]);
    for row in [intended, live, exited.unwrap()] {
        let refused = store.prune(&row, Outcome::Unknown).unwrap_err();
        assert!(matches!(refused, PruneError::NotSettled), "{refused:?}");
        assert_eq!(Refusal::from(refused).code, Code::Conflict);
    }
    assert_eq!(store.count(None, Selection::All).unwrap(), 2);
    assert_eq!(world.number("SELECT count(*) FROM placement_ledger"), 0);
}

#[test]
fn what_changed_since_it_was_looked_at_is_not_pruned() {
    let world = World::new();
    let store = world.open();
    let seen = complete(&store, "a");
    record(&store, "a", &[(AttachUnanswered, "generation 2")]).unwrap();
    assert!(matches!(store.prune(&seen, Outcome::Exited), Err(PruneError::Changed)));
    assert!(store.find_any(&id("a")).unwrap().is_some());
}

#[test]
fn an_attempt_that_never_was_has_no_receipt() {
    let world = World::new();
    let elsewhere = World::new();
    let row = complete(&elsewhere.open(), "a");
    assert!(matches!(world.open().prune(&row, Outcome::Exited), Err(PruneError::NotFound)));
}

#[test]
fn the_same_request_again_is_answered_by_the_receipt() {
    let world = World::new();
    let store = world.open();
    let pruned = pruned(&store, "a");
    assert_eq!(intend_request(&store, &request("a")).unwrap(), Intended::Pruned(pruned));
    assert_eq!(store.count(None, Selection::All).unwrap(), 0, "nothing is recorded anew");
}

#[test]
fn key_and_attempt_id_stay_taken() {
    let world = World::new();
    let store = world.open();
    pruned(&store, "a");
    let other = intend_request(&store, &request_of("local:1", "key-a", "b", "y")).unwrap_err();
    assert!(matches!(other, IntendError::KeyTaken));
    for owner in ["local:1", "local:2"] {
        let taken = intend_request(&store, &request_of(owner, "other", "a", "x")).unwrap_err();
        assert!(matches!(taken, IntendError::AttemptTaken), "{owner}");
    }
}

#[test]
fn only_old_settled_attempts_of_the_owner_are_listed_the_oldest_first() {
    let world = World::new();
    let store = world.open();
    complete(&store, "b");
    world.advance_ms(1_000);
    intend(&store, "a");
    record(&store, "a", &[(StopBeforeStart, "")]).unwrap();
    let now = store.find_any(&id("a")).unwrap().unwrap().updated_at;
    world.advance_ms(1_000);
    complete(&store, "new");
    running(&store, "live");
    intend_request(&store, &request_of("local:2", "k", "foreign", "x")).unwrap();
    record(&store, "foreign", &[(StopBeforeStart, "")]).unwrap();
    assert_eq!(settled(&store, &owner("local:1"), &now), ["b", "a"]);
    assert_eq!(settled(&store, &owner("local:1"), &far()), ["b", "a", "new"]);
    assert_eq!(settled(&store, &owner("local:2"), &far()), ["foreign"]);
}

#[test]
fn pages_of_settled_attempts_follow_each_other_past_a_malformed_row() {
    let world = World::new();
    let store = world.open();
    for number in 0..70 {
        let name = format!("a{number:03}");
        intend(&store, &name);
        record(&store, &name, &[(StopBeforeStart, "")]).unwrap();
    }
    world.tamper("UPDATE placement_attempts SET capability = 'x' WHERE attempt_id = 'a063'");
    let (mut seen, mut corrupt, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.settled(&owner("local:1"), &far(), after.as_ref()).unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.attempt_id));
        corrupt.extend(page.corrupt.into_iter().map(|row| (row.attempt_id, row.column)));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(corrupt, [("a063".to_owned(), "capability")]);
    assert_eq!(seen.len(), 69);
    assert!(seen.is_sorted());
}

#[test]
fn evidence_goes_only_with_a_receipt_and_the_receipt_never() {
    let world = World::new();
    let store = world.open();
    complete(&store, "kept");
    pruned(&store, "a");
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    for sql in [
        "DELETE FROM placement_evidence",
        "DELETE FROM placement_ledger",
        "UPDATE placement_ledger SET exit_code = 0",
    ] {
        let error = connection.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("is never"), "{sql}: {error}");
    }
    assert_eq!(store.all_evidence(&id("kept")).unwrap().len(), 9);
    assert!(store.find_pruned(&owner("local:1"), &id("a")).unwrap().is_some());
}

#[test]
fn a_malformed_receipt_is_named_and_not_guessed() {
    let world = World::new();
    let store = world.open();
    pruned(&store, "a");
    world.tamper(
        "DROP TRIGGER placement_ledger_is_never_changed;
         UPDATE placement_ledger SET outcome = 'fine'",
    );
    let refused = store.find_pruned(&owner("local:1"), &id("a")).unwrap_err();
    assert_eq!(Refusal::from(refused).message, "the column outcome is malformed");
}

#[test]
fn every_outcome_has_its_place_in_the_ledger() {
    let world = World::new();
    let store = world.open();
    for outcome in Outcome::ALL {
        let row = complete(&store, outcome.label());
        assert_eq!(store.prune(&row, *outcome).unwrap().outcome, *outcome);
    }
}

#[test]
fn a_runner_finds_no_row_of_a_pruned_attempt() {
    let world = World::new();
    pruned(&world.open(), "a");
    let runner = world.try_open(Role::Runner).unwrap();
    assert_eq!(runner.find_any(&id("a")).unwrap(), None);
}
