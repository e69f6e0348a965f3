//! Recording an intent.

use crate::support::{World, id, intend, intend_request, owner, request, request_of};
use placement_contract::{
    AttemptState, Code, Digest, EvidenceKind, ExitObservation, Generation, IdempotencyKey, Refusal,
};
use placement_store::{IntendError, Intended, NewAttempt, Selection, StoreError};

#[test]
fn an_intent_is_one_attempt_with_one_row_of_evidence() {
    let world = World::new();
    let store = world.open();
    let row = intend(&store, "a");
    assert_eq!(row.state, AttemptState::INTENDED);
    assert_eq!((row.evidence_count, row.attachment.generation), (1, Generation::NONE));
    let page = store.evidence(&row.attempt_id, 0, 64).unwrap();
    assert_eq!(page.rows.len(), 1);
    assert_eq!(page.rows[0].kind, EvidenceKind::IntentRecorded);
    assert_eq!((page.rows[0].from.as_deref(), page.rows[0].sequence), (None, 1));
    assert_eq!(page.rows[0].chain, row.chain_head);
}

#[test]
fn the_same_request_again_is_a_replay_without_evidence() {
    let world = World::new();
    let store = world.open();
    let first = intend(&store, "a");
    world.advance_ms(5_000);
    let again = intend_request(&store, &request("a")).unwrap();
    assert_eq!(again, Intended::Replayed(first));
}

#[test]
fn a_key_stands_for_one_request() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &request_of("local:1", "k", "a", "x")).unwrap();
    let other = intend_request(&store, &request_of("local:1", "k", "a", "y")).unwrap_err();
    assert!(matches!(other, IntendError::KeyTaken));
    assert_eq!(Refusal::from(other).code, Code::Conflict);
    let other_id = intend_request(&store, &request_of("local:1", "k", "b", "x")).unwrap_err();
    assert!(matches!(other_id, IntendError::KeyTaken));
    assert_eq!(store.count(None, Selection::All).unwrap(), 1);
}

#[test]
fn a_taken_attempt_id_is_refused_in_one_text_whoever_owns_it() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &request_of("local:1", "k", "a", "x")).unwrap();
    let own = intend_request(&store, &request_of("local:1", "l", "a", "x")).unwrap_err();
    let foreign = intend_request(&store, &request_of("local:2", "k", "a", "x")).unwrap_err();
    assert_eq!(Refusal::from(own), Refusal::from(foreign));
    assert_eq!(store.count(None, Selection::All).unwrap(), 1);
}

#[test]
fn another_owner_may_use_the_same_key() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &request_of("local:1", "k", "a", "x")).unwrap();
    intend_request(&store, &request_of("local:2", "k", "b", "x")).unwrap();
    let key = IdempotencyKey::parse("k").unwrap();
    let found = store.find_by_key(&owner("local:2"), &key).unwrap().unwrap();
    assert_eq!(found.attempt_id, id("b"));
    assert_eq!(store.find_by_key(&owner("local:3"), &key).unwrap(), None);
}

#[test]
fn a_foreign_and_an_unknown_attempt_look_the_same() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    assert!(store.find(&owner("local:1"), &id("a")).unwrap().is_some());
    assert_eq!(store.find(&owner("local:2"), &id("a")).unwrap(), None);
    assert_eq!(store.find(&owner("local:2"), &id("b")).unwrap(), None);
}

#[test]
fn a_request_that_would_not_decode_is_not_promised() {
    let world = World::new();
    let store = world.open();
    let request = request("a");
    let digest: Digest = request.digest();
    let other = serde_json::to_string(&crate::support::request("b")).unwrap();
    for request_json in ["{}", "", other.as_str()] {
        let new = NewAttempt {
            request: &request,
            digest: &digest,
            request_json,
            grants_json: None,
            capability: placement_contract::CleanupScope::ProcessGroup,
            exit_observation: ExitObservation::Independent,
            mechanism: None,
            home_key: None,
        };
        let refused = store.intend(&new, "").unwrap_err();
        assert!(matches!(
            refused,
            IntendError::Store(StoreError::Corrupt { column: "request_json" })
        ));
    }
    assert_eq!(store.count(None, Selection::All).unwrap(), 0);
    assert_eq!(world.number("SELECT count(*) FROM placement_evidence"), 0);
}

#[test]
fn the_stored_request_is_the_one_that_was_admitted() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let row = store.find_any(&id("a")).unwrap().unwrap();
    assert_eq!(row.request().unwrap(), request("a"));
    assert_eq!(row.request_digest, request("a").digest());
}
