//! Control tokens.

use crate::support::{World, id, intend};
use placement_contract::{Code, Refusal, Secret};
use placement_store::{AuthorityError, StoreError};

fn token(byte: u8) -> Secret {
    Secret::new(vec![byte; 32])
}

#[test]
fn every_start_of_an_attempt_uses_the_same_token() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    assert!(store.find_authority(&id("a")).unwrap().is_none());
    assert_eq!(store.authority(&id("a"), &token(1)).unwrap().expose(), token(1).expose());
    assert_eq!(store.authority(&id("a"), &token(2)).unwrap().expose(), token(1).expose());
    let found = store.find_authority(&id("a")).unwrap().unwrap();
    assert_eq!(found.expose(), token(1).expose());
}

#[test]
fn a_token_that_another_attempt_has_is_never_shared() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    intend(&store, "b");
    store.authority(&id("a"), &token(1)).unwrap();
    let refused = store.authority(&id("b"), &token(1)).unwrap_err();
    assert!(matches!(refused, AuthorityError::Reused));
    assert!(store.find_authority(&id("b")).unwrap().is_none());
}

#[test]
fn an_unknown_attempt_has_no_token() {
    let world = World::new();
    let store = world.open();
    let refused = store.authority(&id("a"), &token(1)).unwrap_err();
    assert_eq!(Refusal::from(refused).code, Code::NotFound);
}

#[test]
fn a_short_or_long_token_is_refused_and_appears_in_no_text() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    for length in [0, 15, 65] {
        let refused = store.authority(&id("a"), &Secret::new(vec![b'q'; length])).unwrap_err();
        assert!(matches!(refused, AuthorityError::Length));
        assert!(!format!("{refused} {refused:?}").contains("qqq"));
    }
}

#[test]
fn a_malformed_token_is_not_used() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    store.authority(&id("a"), &token(1)).unwrap();
    world.tamper("UPDATE placement_runner_authorities SET control_token = x'00'");
    let error = store.find_authority(&id("a")).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { column: "control_token" }));
}
