//! Creating, opening and refusing.

use crate::support::{World, complete, intend};
use placement_contract::{Clock, Code, Refusal};
use placement_store::{Adopted, OpenError, Role, SCHEMA, Selection, Store, StoreError, adopt};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

#[test]
fn a_new_store_is_private_to_its_owner() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    for suffix in ["db", "lock", "db-wal", "db-shm"] {
        let path = world.root.join(format!("placement.{suffix}"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn what_was_recorded_is_there_after_opening_again() {
    let world = World::new();
    let row = complete(&world.open(), "a");
    let again = world.open();
    assert_eq!(again.find_any(&row.attempt_id).unwrap(), Some(row));
}

#[test]
fn a_runner_opens_what_a_host_made_and_makes_nothing() {
    let world = World::new();
    assert!(matches!(world.try_open(Role::Runner), Err(OpenError::Missing)));
    assert!(!world.paths().database.exists());
    assert!(!world.paths().lock.exists());
    let row = intend(&world.open(), "a");
    let runner = world.try_open(Role::Runner).unwrap();
    assert_eq!(runner.find_any(&row.attempt_id).unwrap(), Some(row));
}

#[test]
fn a_runner_does_not_migrate() {
    let world = World::new();
    std::fs::write(world.paths().database, "").unwrap();
    let refused = world.try_open(Role::Runner).unwrap_err();
    assert!(matches!(refused, OpenError::NotMigrated { known: SCHEMA }), "{refused:?}");
    assert_eq!(std::fs::metadata(world.paths().database).unwrap().len(), 0);
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let world = World::new();
    drop(world.open());
    world.tamper("UPDATE placement_store_binding SET schema = 9");
    for role in [Role::Service, Role::Runner] {
        let refused = world.try_open(role).unwrap_err();
        assert!(matches!(refused, OpenError::Newer { found: 9, known: SCHEMA }), "{refused:?}");
    }
    assert_eq!(world.number("SELECT schema FROM placement_store_binding"), 9);
}

#[test]
fn a_schema_that_changes_under_an_open_store_stops_it() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    world.tamper("UPDATE placement_store_binding SET schema = 9");
    let stopped = store.touch_observed([&crate::support::id("a")]).unwrap_err();
    assert!(matches!(stopped, StoreError::SchemaChanged { known: SCHEMA, found: 9 }));
    assert_eq!(Refusal::from(stopped).code, Code::Storage);
}

#[test]
fn garbage_is_refused_and_left_alone() {
    let world = World::new();
    let garbage = b"these are notes, not a database, and somebody wants to keep them".repeat(40);
    std::fs::write(world.paths().database, &garbage).unwrap();
    for role in [Role::Service, Role::Runner] {
        let refused = world.try_open(role).unwrap_err();
        assert!(matches!(refused, OpenError::NotADatabase), "{refused:?}");
    }
    assert_eq!(std::fs::read(world.paths().database).unwrap(), garbage);
}

#[test]
fn a_directory_is_refused() {
    let world = World::new();
    std::fs::create_dir(world.paths().database).unwrap();
    for role in [Role::Service, Role::Runner] {
        assert!(matches!(world.try_open(role), Err(OpenError::NotAFile)));
    }
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let world = World::new();
    let theirs = rusqlite::Connection::open(world.paths().database).unwrap();
    theirs.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    assert!(matches!(world.try_open(Role::Service), Err(OpenError::Foreign)));
    assert_eq!(world.number("SELECT count(*) FROM sqlite_schema"), 1);
}

#[test]
fn a_store_of_another_machine_is_refused() {
    if placement_identity::machine_id().is_none() {
        println!("no machine id here: the store is bound to none, as unit tests of `open` show");
        return;
    }
    let world = World::new();
    drop(world.open());
    world.tamper("UPDATE placement_store_binding SET machine_id = 'f00d', created_boot = 'b'");
    for role in [Role::Service, Role::Runner] {
        assert!(matches!(world.try_open(role), Err(OpenError::OtherMachine)));
    }
}

#[test]
fn a_store_that_was_moved_is_bound_anew_when_it_may_be() {
    let world = World::new();
    drop(world.open());
    world.tamper("UPDATE placement_store_binding SET machine_id = 'f00d', created_boot = 'b'");
    let refused = adopt::<OpenError>(&world.paths(), || Err(OpenError::Busy));
    assert!(matches!(refused, Err(OpenError::Busy)));
    assert!(matches!(world.try_open(Role::Service), Err(OpenError::OtherMachine)));
    assert_eq!(adopt::<OpenError>(&world.paths(), || Ok(())).unwrap(), Adopted::Moved);
    drop(world.open());
    let again = adopt::<OpenError>(&world.paths(), || panic!("it is here"));
    assert_eq!(again.unwrap(), Adopted::AlreadyHere);
}

#[test]
fn where_there_is_no_store_there_is_none_to_adopt() {
    let world = World::new();
    let refused = adopt::<OpenError>(&world.paths(), || Ok(()));
    assert!(matches!(refused, Err(OpenError::Missing)));
    assert!(!world.paths().database.exists() && !world.paths().lock.exists());
}

#[test]
fn a_store_is_bound_to_the_machine_that_created_it() {
    let world = World::new();
    drop(world.open());
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    let bound: (Option<String>, String) = connection
        .query_row("SELECT machine_id, created_boot FROM placement_store_binding", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(bound.0, placement_identity::machine_id());
    assert_eq!(bound.1, placement_identity::boot_id().unwrap());
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let world = World::new();
    drop(world.open());
    if placement_testkit::is_root() {
        println!("root writes whatever the mode says: only that opening works is looked at");
        assert!(world.try_open(Role::Service).is_ok());
        return;
    }
    let read_only = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(world.paths().database, read_only).unwrap();
    assert!(matches!(world.try_open(Role::Service), Err(OpenError::ReadOnly)));
}

#[test]
fn a_missing_root_is_told_apart() {
    let world = World::new();
    let paths = placement_store::StorePaths::below(&world.root.join("nowhere"));
    let clock: Arc<dyn Clock> = world.clock.clone();
    let refused = Store::open(&paths, Role::Service, clock).unwrap_err();
    assert!(matches!(refused, OpenError::Io { role: "lock", .. }), "{refused:?}");
}

#[test]
fn no_message_carries_the_text_of_the_system() {
    let world = World::new();
    let paths = placement_store::StorePaths::below(&world.root.join("nowhere"));
    let clock: Arc<dyn Clock> = world.clock.clone();
    let refused = Store::open(&paths, Role::Service, clock).unwrap_err();
    let text = Refusal::from(refused).message;
    assert_eq!(text, "the lock of the store cannot be opened");
}

#[test]
fn a_commit_does_not_take_the_log_in_and_neither_does_a_close() {
    let world = World::new();
    let store = world.open();
    for number in 0..20 {
        intend(&store, &format!("a-{number}"));
    }
    drop(store);
    let log = format!("{}-wal", world.paths().database);
    assert!(std::fs::metadata(log).unwrap().len() > 20 * 4096);
}

#[test]
fn a_large_log_is_taken_in_when_asked() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    assert!(!store.checkpoint_if_large().unwrap());
    let large = "x".repeat(16_000);
    for number in 0..300 {
        let attempt = format!("b-{number}");
        let request = crate::support::request_of("local:1", &attempt, &attempt, &large);
        crate::support::intend_request(&store, &request).unwrap();
    }
    assert!(store.checkpoint_if_large().unwrap());
    // The log is begun again by the next commit, and then it is within its bound.
    intend(&store, "c");
    assert!(!store.checkpoint_if_large().unwrap());
    assert_eq!(store.count(None, Selection::All).unwrap(), 302);
}
