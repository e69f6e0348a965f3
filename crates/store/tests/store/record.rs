//! Recording evidence and what follows from it.

use crate::support::{World, claim, complete, id, init, intend, record, record_with, running};
use placement_contract::EvidenceKind::{
    Attach, ChildCreating, ChildExited, ChildIdentified, ChildNotStarted, ChildStarted,
    CleanupComplete, CleanupFailed, HomeCreated, ReconcileAbsent, RunnerExited, RunnerFinished,
    RunnerStarted, StopBeforeStart, StopRequested, TreeGone,
};
use placement_contract::{
    Code, ExecutionState, Exit, ExitSource, Generation, RecipientId, Refusal, RunnerId,
};
use placement_identity::{Observer, ProcessIdentity};
use placement_store::{
    Attachment, Change, ChildIdentity, Draft, Durability, Fields, RecordError, Row, Store,
    StoreError,
};
use std::time::Duration;

fn fails_without_a_trace(
    store: &Store,
    attempt: &str,
    try_it: impl FnOnce() -> Result<Row, RecordError>,
) -> RecordError {
    let row = store.find_any(&id(attempt)).unwrap();
    let evidence = store.all_evidence(&id(attempt)).unwrap();
    let error = try_it().expect_err("it must be refused");
    assert_eq!(store.find_any(&id(attempt)).unwrap(), row);
    assert_eq!(store.all_evidence(&id(attempt)).unwrap(), evidence);
    error
}

#[test]
fn a_whole_life_is_recorded() {
    let world = World::new();
    let store = world.open();
    let row = complete(&store, "a");
    assert_eq!(row.state.to_string(), "exited/complete");
    assert_eq!(row.exit, Some(Exit::Code { code: 3 }));
    assert_eq!(row.exit_source, Some(ExitSource::Runner));
    assert_eq!(row.tree_gone_by.as_deref(), Some("cgroup: populated 0"));
    assert_eq!(row.evidence_count, 9);
    let attempt = row.attempt();
    assert_eq!(attempt.runner, None);
    assert_eq!(attempt.evidence_count, 9);
    assert_eq!(attempt.program, "/bin/true");
}

#[test]
fn what_is_recorded_reads_back_exactly() {
    let world = World::new();
    let store = world.open();
    let this = ProcessIdentity::this_process().unwrap();
    let row = running(&store, "a");
    assert_eq!(row.child, ChildIdentity::Complete(this.clone()));
    let runner = row.runner.clone().unwrap();
    assert_eq!((runner.identity, runner.finished), (this, false));
    assert_eq!(row.attempt().runner, Some(RunnerId::parse("r-1").unwrap()));
    assert_eq!(row.init, Some(init()));
    let leaf = row.leaf.unwrap();
    assert_eq!((leaf.path.as_str(), leaf.id), ("/sys/fs/cgroup/placement/x", Some(77)));
}

#[test]
fn a_row_that_does_not_fit_changes_nothing() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let error = fails_without_a_trace(&store, "a", || record(&store, "a", &[(TreeGone, "x")]));
    assert!(matches!(error, RecordError::Refused(_)));
    assert_eq!(Refusal::from(error).code, Code::Conflict);
}

#[test]
fn rows_before_the_one_that_does_not_fit_are_not_kept() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let rows = [(RunnerStarted, "r-1"), (HomeCreated, ""), (CleanupComplete, "")];
    let error =
        fails_without_a_trace(&store, "a", || record_with(&store, "a", &rows, &claim("r-1")));
    assert!(matches!(error, RecordError::Refused(_)));
}

#[test]
fn an_unexpected_state_is_named() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let error = fails_without_a_trace(&store, "a", || {
        let change = Change {
            attempt_id: &id("a"),
            expect: Some(&[ExecutionState::Intended, ExecutionState::Starting]),
            expect_generation: None,
            rows: &[Draft::new(StopRequested, "cooperative")],
            fields: &Fields::default(),
        };
        store.record(&change, Durability::Durable)
    });
    let refusal = Refusal::from(error);
    assert_eq!(refusal.code, Code::Conflict);
    assert_eq!(refusal.message, "the attempt is running/pending, not intended or starting");
}

#[test]
fn an_unknown_attempt_is_not_found() {
    let world = World::new();
    let store = world.open();
    let error = record(&store, "a", &[(RunnerStarted, "")]).unwrap_err();
    assert_eq!(Refusal::from(error).code, Code::NotFound);
}

#[test]
fn a_stop_before_the_claim_ends_and_cleans_in_one_row() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let row = record(&store, "a", &[(StopBeforeStart, "cooperative")]).unwrap();
    assert_eq!(row.state.to_string(), "exited/complete");
    assert_eq!((row.exit, row.exit_source, row.home_key), (None, None, None));
    assert_eq!((row.runner, row.child, row.evidence_count), (None, ChildIdentity::None, 2));
    let error = fails_without_a_trace(&store, "a", || {
        record_with(&store, "a", &[(RunnerStarted, "r-1")], &claim("r-1"))
    });
    assert!(matches!(error, RecordError::Refused(_)), "a delayed start claims nothing");
}

#[test]
fn a_second_runner_changes_nothing() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    record_with(&store, "a", &[(RunnerStarted, "r-1")], &claim("r-1")).unwrap();
    let error = fails_without_a_trace(&store, "a", || {
        record_with(&store, "a", &[(RunnerStarted, "r-2")], &claim("r-2"))
    });
    assert!(matches!(error, RecordError::AlreadySet { field: "the runner" }), "{error:?}");
}

#[test]
fn a_stop_that_lands_first_wins_over_creating_and_running() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    record_with(&store, "a", &[(RunnerStarted, "r-1")], &claim("r-1")).unwrap();
    record(&store, "a", &[(StopRequested, "cooperative")]).unwrap();
    let error = fails_without_a_trace(&store, "a", || record(&store, "a", &[(ChildCreating, "")]));
    assert!(matches!(error, RecordError::Refused(_)));
    let row = record(&store, "a", &[(ChildStarted, "")]).unwrap();
    assert_eq!(row.state.execution, ExecutionState::Stopping);
    let row = record(&store, "a", &[(ChildNotStarted, "stopped")]).unwrap();
    assert_eq!(row.exit_source, Some(ExitSource::Runner));
}

#[test]
fn an_exit_is_recorded_once() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let exited = Draft::exited(Some(Exit::Signal { signal: 9, core: true }));
    let row = record(&store, "a", &[(exited.kind, &exited.detail)]).unwrap();
    assert_eq!(row.exit, Some(Exit::Signal { signal: 9, core: true }));
    let error =
        fails_without_a_trace(&store, "a", || record(&store, "a", &[(ChildExited, "code 0")]));
    assert!(matches!(error, RecordError::Exit));
}

#[test]
fn an_exit_that_is_not_one_is_refused() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    for detail in ["", "gone", "code", "signal 9, core", "code +1"] {
        let error =
            fails_without_a_trace(&store, "a", || record(&store, "a", &[(ChildExited, detail)]));
        assert!(matches!(error, RecordError::Exit), "{detail:?}");
    }
}

#[test]
fn an_exit_that_was_not_learnt_has_no_code() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let draft = Draft::exited(None);
    let row = record(&store, "a", &[(draft.kind, &draft.detail)]).unwrap();
    assert_eq!((row.exit, row.exit_source), (None, Some(ExitSource::Runner)));
}

#[test]
fn the_end_of_a_runner_is_taken_from_the_row() {
    for kind in [RunnerFinished, RunnerExited] {
        let world = World::new();
        let store = world.open();
        running(&store, "a");
        let row = record(&store, "a", &[(kind, "")]).unwrap();
        assert!(row.runner.as_ref().unwrap().finished, "{kind}");
        assert_eq!(row.attempt().runner, None);
    }
}

#[test]
fn a_failed_cleanup_can_succeed_later() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    record(&store, "a", &[(ReconcileAbsent, "")]).unwrap();
    let row = record(&store, "a", &[(CleanupFailed, "the home is busy")]).unwrap();
    assert_eq!(row.state.to_string(), "exited/uncertain");
    let row = record(&store, "a", &[(CleanupComplete, "")]).unwrap();
    assert_eq!(row.state.to_string(), "exited/complete");
    let error = fails_without_a_trace(&store, "a", || record(&store, "a", &[(CleanupFailed, "")]));
    assert!(matches!(error, RecordError::Refused(_)));
}

#[test]
fn the_newer_attachment_wins_and_the_other_is_told() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let attach = |generation: u64, expected: u64| {
        let attachment = Attachment {
            generation: Generation::new(generation),
            recipient: Some(RecipientId::parse("host").unwrap()),
        };
        let change = Change {
            attempt_id: &id("a"),
            expect: None,
            expect_generation: Some(Generation::new(expected)),
            rows: &[Draft::new(Attach, format!("generation {generation}"))],
            fields: &Fields { attachment: Some(attachment), ..Fields::default() },
        };
        store.record(&change, Durability::Normal)
    };
    let row = attach(1, 0).unwrap();
    assert_eq!(row.attachment.generation, Generation::FIRST);
    let error = fails_without_a_trace(&store, "a", || attach(1, 0));
    assert!(matches!(error, RecordError::Generation { actual: Generation::FIRST, .. }));
    assert_eq!(Refusal::from(error).code, Code::Conflict);
}

#[test]
fn what_is_recorded_once_is_never_replaced() {
    let world = World::new();
    let store = world.open();
    let row = running(&store, "a");
    let ChildIdentity::Complete(child) = row.child else { panic!("no identity") };
    let other = ProcessIdentity { start_ticks: child.start_ticks + 1, ..child.clone() };
    let cases = [
        (Fields { child: Some(other.clone()), ..Fields::default() }, "the identity of the child"),
        (Fields { init: Some(other), ..Fields::default() }, "the identity of the init"),
        (Fields { leaf_path: Some("/other".into()), ..Fields::default() }, "the leaf"),
        (Fields { leaf_id: Some(78), ..Fields::default() }, "the leaf's id"),
        (
            Fields {
                mechanism: Some(placement_contract::Mechanism::Subreaper),
                ..Fields::default()
            },
            "the mechanism",
        ),
    ];
    for (fields, named) in cases {
        let error = fails_without_a_trace(&store, "a", || {
            record_with(&store, "a", &[(StopRequested, "")], &fields)
        });
        assert!(matches!(error, RecordError::AlreadySet { field } if field == named), "{error:?}");
    }
    let same = Fields { child: Some(child), leaf_id: Some(77), ..Fields::default() };
    record_with(&store, "a", &[(StopRequested, "")], &same).unwrap();
}

#[test]
fn an_init_of_which_a_part_is_missing_is_damage() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    world.tamper("UPDATE placement_attempts SET init_start_ticks = NULL");
    let damaged = store.find_any(&id("a")).unwrap_err();
    assert!(matches!(damaged, StoreError::Corrupt { column: "init_pid" }), "{damaged:?}");
}

#[test]
fn a_child_seen_from_elsewhere_than_its_runner_is_refused() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    record_with(&store, "a", &[(RunnerStarted, "r-1")], &claim("r-1")).unwrap();
    let this = ProcessIdentity::this_process().unwrap();
    let elsewhere = Observer { pid_namespace: 7, ..this.observer.clone() };
    let child = Fields {
        child: Some(ProcessIdentity { observer: elsewhere.clone(), ..this.clone() }),
        ..Fields::default()
    };
    let init =
        Fields { init: Some(ProcessIdentity { observer: elsewhere, ..this }), ..Fields::default() };
    for fields in [child, init] {
        let error = fails_without_a_trace(&store, "a", || {
            record_with(&store, "a", &[(ChildIdentified, "")], &fields)
        });
        assert!(matches!(error, RecordError::AlreadySet { field: "where it was observed from" }));
    }
}

#[test]
fn a_number_that_no_column_holds_changes_nothing() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let mut fields = claim("r-1");
    fields.runner.as_mut().unwrap().identity.pidfd_inode = Some(u64::MAX);
    let error = fails_without_a_trace(&store, "a", || {
        record_with(&store, "a", &[(RunnerStarted, "r-1")], &fields)
    });
    assert!(matches!(error, RecordError::Store(StoreError::TooLarge { .. })));
}

#[test]
fn a_long_detail_is_cut() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    record(&store, "a", &[(StopRequested, &"é".repeat(2_000))]).unwrap();
    let rows = store.all_evidence(&id("a")).unwrap();
    assert_eq!(rows.last().unwrap().detail.len(), 2_048);
    assert!(store.verify(&id("a"), None).unwrap().unwrap().is_sound());
}

#[test]
fn a_repeated_observation_adds_no_evidence() {
    let world = World::new();
    let store = world.open();
    let before = running(&store, "a");
    world.advance_ms(1_000);
    assert_eq!(store.touch_observed([&id("a")]).unwrap(), 1);
    let after = store.find_any(&id("a")).unwrap().unwrap();
    assert!(after.last_observed_at.as_ref().unwrap() > &before.updated_at);
    assert_eq!(Row { last_observed_at: None, ..after }, before);
    assert_eq!(store.touch_observed([&id("b")]).unwrap(), 0);
}

#[test]
#[should_panic(expected = "a change has evidence")]
fn a_change_without_evidence_is_a_mistake_of_the_program() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let outcome = record(&store, "a", &[]);
    unreachable!("it returned {outcome:?}");
}

#[test]
fn a_partial_identity_is_kept_as_such_and_authorizes_nothing() {
    for column in ["pgid", "pid", "start_ticks", "boot_id"] {
        let world = World::new();
        let store = world.open();
        running(&store, "a");
        world.tamper(&format!("UPDATE placement_attempts SET {column} = NULL"));
        let row = record(&store, "a", &[(StopRequested, "")]).unwrap();
        assert_eq!(row.child, ChildIdentity::Partial, "{column}");
        assert_eq!(row.recorded_identity(), placement_transitions::RecordedIdentity::Partial);
        let nulls = format!("SELECT count(*) FROM placement_attempts WHERE {column} IS NULL");
        assert_eq!(world.number(&nulls), 1);
    }
}

#[test]
fn a_store_that_another_writer_holds_is_busy_within_the_deadline() {
    let world = World::new();
    let store = world.open().with_lock_wait(Duration::from_millis(50));
    running(&store, "a");
    let lock = std::fs::File::open(world.paths().lock).unwrap();
    lock.lock().unwrap();
    let started = std::time::Instant::now();
    let error = record(&store, "a", &[(StopRequested, "")]).unwrap_err();
    assert!(matches!(error, RecordError::Store(StoreError::Busy)));
    assert!(started.elapsed() >= Duration::from_millis(50));
    assert!(started.elapsed() < Duration::from_secs(4));
    // Reading waits for no writer.
    assert!(store.find_any(&id("a")).unwrap().is_some());
    lock.unlock().unwrap();
    record(&store, "a", &[(StopRequested, "")]).unwrap();
}

#[test]
fn a_writer_that_knows_nothing_of_the_lock_is_waited_for_as_long_too() {
    let world = World::new();
    let store = world.open().with_lock_wait(Duration::from_millis(50));
    running(&store, "a");
    let stranger = rusqlite::Connection::open(world.paths().database).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = record(&store, "a", &[(StopRequested, "")]).unwrap_err();
    assert!(matches!(error, RecordError::Store(StoreError::Busy)));
    stranger.execute_batch("ROLLBACK").unwrap();
    record(&store, "a", &[(StopRequested, "")]).unwrap();
}

#[test]
fn what_could_not_be_synced_is_told_and_recorded_all_the_same() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    // The log is synced by its path, and written through a descriptor: without a name it cannot be
    // synced.
    let log = format!("{}-wal", world.paths().database);
    let away = world.root.join("away");
    std::fs::rename(&log, &away).unwrap();
    let a = id("a");
    let rows = [Draft::new(RunnerStarted, "r-1")];
    let fields = claim("r-1");
    let change = Change {
        attempt_id: &a,
        expect: None,
        expect_generation: None,
        rows: &rows,
        fields: &fields,
    };
    let error = store.record(&change, Durability::Durable).unwrap_err();
    assert!(matches!(error, RecordError::Store(StoreError::Sync(_))), "{error:?}");
    let refused = Refusal::from(error);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::Storage, "the store could not be synced")
    );
    let row = store.find_any(&a).unwrap().unwrap();
    assert_eq!((row.state.execution, row.evidence_count), (ExecutionState::Starting, 2));
    // What asks for no sync does not miss it, and a later sync takes all of it along.
    record(&store, "a", &[(HomeCreated, "")]).unwrap();
    std::fs::rename(&away, &log).unwrap();
    record(&store, "a", &[(ChildNotStarted, "")]).unwrap();
    drop(store);
    let again = world.open();
    assert_eq!(again.find_any(&a).unwrap().unwrap().evidence_count, 4);
}
