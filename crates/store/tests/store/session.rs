//! Who holds a session, and what its files first were.

use crate::support::{World, claim, id, intend_request, owner, record, record_with, request_of};
use placement_contract::request::RelativePath;
use placement_contract::{Code, Digest, EvidenceKind, LaunchRequest, Refusal, SessionRef};
use placement_store::{BindFileError, BoundFile, IntendError, Intended, Selection, Store};
use std::sync::Barrier;

const HOLDER: &str = "a";

fn session(name: &str) -> SessionRef {
    SessionRef::parse(name).unwrap()
}

/// A request of an owner that goes on with a session.
fn asked(owner: &str, attempt: &str, name: &str) -> LaunchRequest {
    let mut request = serde_json::to_value(request_of(owner, attempt, attempt, "x")).unwrap();
    request["session_ref"] = name.into();
    request["launch"]["home_ref"] = "home".into();
    request["resources"] = serde_json::json!([{
        "name": "home", "grant_ref": "g", "root_ref": "r", "access": "write", "purpose": "session",
    }]);
    LaunchRequest::decode(request.to_string().as_bytes()).unwrap()
}

#[track_caller]
fn assert_held(store: &Store, request: &LaunchRequest, state: &str, hint: &str) {
    let error = intend_request(store, request).unwrap_err();
    assert!(matches!(error, IntendError::SessionHeld(_)), "{error}");
    let refusal = Refusal::from(error);
    assert_eq!(refusal.code, Code::Conflict);
    let wanted = format!("session \"s\" is held by attempt a {state}");
    assert!(refusal.message.starts_with(&wanted), "{refusal}");
    assert!(refusal.hint().contains(hint), "{refusal}");
    assert_eq!(store.count(None, Selection::All).unwrap(), 1, "the loser is not stored");
}

fn holder_goes_to(store: &Store, rows: &[(EvidenceKind, &str)]) {
    record(store, HOLDER, rows).unwrap();
}

#[test]
fn a_session_is_held_until_its_attempt_is_exited_and_cleaned_up() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", HOLDER, "s")).unwrap();
    let next = asked("local:1", "b", "s");
    assert_held(&store, &next, "(intended, recorded ", "stop it, or wait with --wait-session");
    let started = [(EvidenceKind::RunnerStarted, "r-1")];
    record_with(&store, HOLDER, &started, &claim("r-1")).unwrap();
    assert_held(&store, &next, "(starting, started ", "stop it, or wait with --wait-session");
    let steps = [
        (EvidenceKind::StopUnproven, "(uncertain, started ", "`placement reconcile a`"),
        (EvidenceKind::OperatorResolved, "(exited, cleanup pending, ", "`placement cleanup a`"),
        (EvidenceKind::CleanupRefused, "(exited, cleanup pending, ", "`placement cleanup a`"),
        (EvidenceKind::CleanupFailed, "(exited, cleanup uncertain, ", "`placement cleanup a`"),
    ];
    for (kind, state, hint) in steps {
        holder_goes_to(&store, &[(kind, "said")]);
        assert_held(&store, &next, state, hint);
    }
    holder_goes_to(&store, &[(EvidenceKind::CleanupComplete, "gone")]);
    assert_eq!(store.session_holder(&owner("local:1"), &session("s")).unwrap(), None);
    intend_request(&store, &next).unwrap();
    let holder = store.session_holder(&owner("local:1"), &session("s")).unwrap().unwrap();
    assert_eq!(holder.attempt_id, id("b"));
}

#[test]
fn a_stop_before_the_start_lets_go_of_it() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", HOLDER, "s")).unwrap();
    holder_goes_to(&store, &[(EvidenceKind::StopBeforeStart, "")]);
    intend_request(&store, &asked("local:1", "b", "s")).unwrap();
}

#[test]
fn owners_and_sessions_are_apart() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", "a", "s")).unwrap();
    intend_request(&store, &asked("local:2", "b", "s")).unwrap();
    intend_request(&store, &asked("local:1", "c", "t")).unwrap();
    intend_request(&store, &request_of("local:1", "d", "d", "x")).unwrap();
    intend_request(&store, &request_of("local:1", "e", "e", "x")).unwrap();
    assert_eq!(store.session_holder(&owner("local:3"), &session("s")).unwrap(), None);
}

#[test]
fn a_replay_comes_before_the_holder() {
    let world = World::new();
    let store = world.open();
    let request = asked("local:1", HOLDER, "s");
    let Intended::Recorded(row) = intend_request(&store, &request).unwrap() else { panic!() };
    assert_eq!(intend_request(&store, &request).unwrap(), Intended::Replayed(row.clone()));
    assert_eq!(row.attempt().session_ref, Some(session("s")));
}

#[test]
fn of_many_at_once_one_gets_it_and_no_other_is_stored() {
    const MANY: usize = 8;
    let world = World::new();
    drop(world.open());
    let barrier = Barrier::new(MANY);
    let got = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..MANY)
            .map(|number| {
                let (world, barrier) = (&world, &barrier);
                scope.spawn(move || {
                    let store = world.open();
                    barrier.wait();
                    intend_request(&store, &asked("local:1", &format!("a-{number}"), "s")).is_ok()
                })
            })
            .collect();
        tries.into_iter().map(|one| one.join().unwrap()).filter(|got| *got).count()
    });
    assert_eq!((got, world.number("SELECT count(*) FROM placement_attempts")), (1, 1));
}

#[test]
fn the_schema_itself_keeps_a_second_holder_out() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", "a", "s")).unwrap();
    intend_request(&store, &asked("local:1", "b", "t")).unwrap();
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    let second = "UPDATE placement_attempts SET session_ref = 's' WHERE attempt_id = 'b'";
    assert!(connection.execute(second, []).is_err());
}

#[test]
fn a_session_that_the_request_does_not_have_is_found_in_the_row() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", "a", "s")).unwrap();
    world.tamper("UPDATE placement_attempts SET session_ref = NULL");
    assert!(store.find_any(&id("a")).unwrap().unwrap().request().is_err());
}

#[test]
fn the_receipt_of_a_pruned_attempt_has_its_session_and_holds_nothing() {
    let world = World::new();
    let store = world.open();
    intend_request(&store, &asked("local:1", HOLDER, "s")).unwrap();
    holder_goes_to(&store, &[(EvidenceKind::StopBeforeStart, "")]);
    let row = store.find_any(&id(HOLDER)).unwrap().unwrap();
    let pruned = store.prune(&row, placement_contract::Outcome::NotStarted).unwrap();
    assert_eq!(pruned.attempt.session_ref, Some(session("s")));
    intend_request(&store, &asked("local:1", "b", "s")).unwrap();
}

fn bind(
    store: &Store,
    session: &str,
    path: &str,
    content: &[u8],
) -> Result<BoundFile, BindFileError> {
    let path = RelativePath::parse(path).unwrap();
    let session = SessionRef::parse(session).unwrap();
    store.bind_session_file(&owner("local:1"), &session, &path, &Digest::of_bytes(content))
}

#[test]
fn the_first_digest_of_a_file_stays() {
    let world = World::new();
    let store = world.open();
    assert_eq!(bind(&store, "s", "a/b", b"one").unwrap(), BoundFile::First);
    assert_eq!(bind(&store, "s", "a/b", b"one").unwrap(), BoundFile::Again);
    let differs = bind(&store, "s", "a/b", b"two").unwrap_err();
    assert!(matches!(differs, BindFileError::Differs));
    assert_eq!(Refusal::from(differs).code, Code::Conflict);
    assert_eq!(bind(&store, "s", "a/b", b"one").unwrap(), BoundFile::Again);
}

#[test]
fn each_file_of_each_session_has_its_own_digest() {
    let world = World::new();
    let store = world.open();
    for (session, path) in [("s", "a"), ("s", "b"), ("t", "a")] {
        assert_eq!(bind(&store, session, path, path.as_bytes()).unwrap(), BoundFile::First);
    }
    let path = RelativePath::parse("a").unwrap();
    let digest = Digest::of_bytes(b"other");
    let bound = store.bind_session_file(&owner("local:2"), &session("s"), &path, &digest);
    assert_eq!(bound.unwrap(), BoundFile::First);
}

#[test]
fn a_digest_is_neither_changed_nor_removed() {
    let world = World::new();
    let store = world.open();
    bind(&store, "s", "a", b"one").unwrap();
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    for sql in
        ["UPDATE placement_session_files SET path = 'b'", "DELETE FROM placement_session_files"]
    {
        assert!(connection.execute(sql, []).is_err(), "{sql}");
    }
}

#[test]
fn of_two_digests_at_once_one_is_the_first() {
    let world = World::new();
    drop(world.open());
    let barrier = Barrier::new(2);
    let bound: Vec<_> = std::thread::scope(|scope| {
        let tries = [b"one", b"two"].map(|content| {
            let (world, barrier) = (&world, &barrier);
            scope.spawn(move || {
                let store = world.open();
                barrier.wait();
                bind(&store, "s", "a", content).is_ok()
            })
        });
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(bound.iter().filter(|first| **first).count(), 1, "{bound:?}");
}
