use crate::testing::*;
use placement_contract::{CleanupState, Code, EvidenceKind, ExecutionState, Exit, Generation};
use placement_policy::Snapshot;
use placement_protocol::{ControlAnswer, ControlCall, StopMode, StopReply};
use placement_store::{Draft, Durability, Fields};

fn revoke(world: &World) {
    world
        .service
        .change_snapshot(|snapshot| *snapshot = Snapshot::embedded().with_listed_roots_only());
}

#[test]
fn an_attempt_whose_grants_hold_is_a_conflict_and_goes_on() {
    let world = World::new();
    let id = granted(&world);
    let refused = refusal(world.service.stop_revoked(&id));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refused.message, "every grant of the attempt holds");
    assert_eq!(world.row(&id).evidence_count, 1);
}

#[test]
fn a_revoked_grant_is_recorded_once_and_the_runner_asked_to_end_the_child() {
    let world = World::new();
    let id = granted(&world);
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &this_process());
    let (service, stopped) = (world.service.clone(), id.clone());
    runner.answer(Generation::FIRST, move |call, _| {
        let ControlCall::Stop(stop) = call else { panic!("a stop is asked for") };
        assert_eq!(stop.mode, StopMode::Cooperative);
        let row = service.row(&stopped).unwrap();
        let rows = [Draft::new(EvidenceKind::StopRequested, "cooperative")];
        service.commit(&row, &rows, &Fields::default(), Durability::Normal).unwrap();
        let (accepted, recorded) = (true, true);
        let execution = ExecutionState::Stopping;
        Some(ControlAnswer::Stop(StopReply { accepted, recorded, execution }))
    });
    revoke(&world);
    for _ in 0..2 {
        let stopping = world.service.stop_revoked(&id).unwrap();
        assert_eq!(stopping.execution_state, ExecutionState::Stopping);
    }
    let kinds = world.kinds(&id);
    let of = |kind| kinds.iter().position(|seen| *seen == kind);
    assert!(of(EvidenceKind::GrantRevoked) < of(EvidenceKind::StopRequested), "{kinds:?}");
    let revoked = kinds.iter().filter(|kind| **kind == EvidenceKind::GrantRevoked).count();
    assert_eq!(revoked, 1, "{kinds:?}");
    let rows = world.service.inner.store.all_evidence(&id).unwrap();
    let row = rows.iter().find(|row| row.kind == EvidenceKind::GrantRevoked).unwrap();
    assert!(
        row.detail.starts_with("FORBIDDEN: lies in no directory that the configuration admits"),
        "{}",
        row.detail
    );
}

#[test]
fn an_intent_whose_grant_was_revoked_never_starts() {
    let world = World::new();
    let id = granted(&world);
    revoke(&world);
    let stopped = world.service.stop_revoked(&id).unwrap();
    assert_eq!(stopped.execution_state, ExecutionState::Exited);
    assert_eq!(stopped.cleanup_state, CleanupState::Complete);
    assert_eq!(world.kinds(&id), [EvidenceKind::GrantRevoked, EvidenceKind::StopBeforeStart]);
}

#[test]
fn an_exited_attempt_is_returned_as_it_is() {
    let world = World::new();
    let id = granted(&world);
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    runner.die();
    revoke(&world);
    let before = world.row(&id).evidence_count;
    let exited = world.service.stop_revoked(&id).unwrap();
    assert_eq!(exited.execution_state, ExecutionState::Exited);
    assert!(!world.kinds(&id).contains(&EvidenceKind::GrantRevoked));
    assert_eq!(exited.evidence_count, before);
}

#[test]
fn an_unknown_and_a_foreign_attempt_are_not_found_alike() {
    let world = World::new();
    let id = granted(&world);
    revoke(&world);
    let other = world.another("local:other");
    for absent in [&id, &attempt("never")] {
        assert_eq!(refusal(other.stop_revoked(absent)).code, Code::NotFound);
    }
    assert_eq!(world.row(&id).evidence_count, 1);
}

#[test]
fn a_directory_that_only_the_launching_process_named_is_not_revoked() {
    let world = World::new();
    let id = granted(&world);
    let refused = refusal(world.another(owner().as_str()).stop_revoked(&id));
    assert_eq!(refused.message, "every grant of the attempt holds");
    assert_eq!(world.row(&id).evidence_count, 1);
}

#[test]
fn a_directory_that_is_gone_is_not_revoked() {
    let world = World::new();
    let id = granted(&world);
    std::fs::remove_dir(world.root.join("project")).unwrap();
    assert_eq!(refusal(world.service.stop_revoked(&id)).code, Code::Unavailable);
    assert_eq!(world.row(&id).evidence_count, 1);
}
