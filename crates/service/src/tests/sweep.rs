use crate::Service;
use crate::testing::*;
use placement_contract::limits::SWEEP_ATTEMPTS_MAX;
use placement_contract::{
    AttemptId, CleanupScope, Code, EvidenceKind, ExecutionState, Exit, Generation, Mechanism,
};
use placement_store::{Draft, Fields};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, mpsc};

/// An attempt that runs, with the runner played by this process.
fn running(world: &World, name: &str) -> (AttemptId, FakeRunner) {
    let id = world.prepare(&request(name, name));
    let runner = FakeRunner::claim(world, &id);
    runner.run(world, &gone_process());
    (id, runner)
}

/// The attempts that one pass took.
fn swept(service: &Service) -> Vec<AttemptId> {
    service.sweep().unwrap().outcomes.into_iter().map(|it| it.attempt_id).collect()
}

#[test]
fn what_a_living_runner_looks_after_is_noted_without_evidence() {
    let world = World::new();
    let (id, _runner) = running(&world, "a");
    let before = world.row(&id);
    let sweep = world.service.sweep().unwrap();
    assert_eq!((sweep.reconciled, sweep.outcomes.len()), (1, 1));
    assert!(sweep.outcomes[0].ok && !sweep.outcomes[0].changed, "{sweep:?}");
    let after = world.row(&id);
    assert_eq!(after.evidence_count, before.evidence_count);
    assert!(after.last_observed_at > before.last_observed_at);
}

#[test]
fn the_attempts_of_every_owner_are_settled_when_their_runner_is_gone() {
    let world = World::new();
    let (id, mut runner) = running(&world, "a");
    runner.die();
    let sweep = world.another("local:other").sweep().unwrap();
    assert_eq!(sweep.outcomes.len(), 1);
    assert!(sweep.outcomes[0].changed, "{sweep:?}");
    assert_eq!(sweep.outcomes[0].execution_state, Some(ExecutionState::Exited));
    assert_eq!(world.row(&id).state.execution, ExecutionState::Exited);
}

#[test]
fn intended_and_uncertain_attempts_are_never_swept() {
    let world = World::new();
    let intended = world.prepare(&request("a", "a"));
    let (uncertain, mut runner) = running(&world, "b");
    runner.die();
    let lost = [Draft::new(EvidenceKind::ReconcileUnobserved, "for this test")];
    world.record(&uncertain, &lost, &Fields::default());
    assert!(swept(&world.service).is_empty());
    assert_eq!(world.row(&intended).last_observed_at, None);
    assert_eq!(world.row(&uncertain).state.execution, ExecutionState::Uncertain);
}

#[test]
fn passes_are_bounded_and_take_turns() {
    let world = World::new();
    let bound = usize::try_from(SWEEP_ATTEMPTS_MAX).unwrap();
    let all: Vec<_> = (0..bound + 6).map(|n| running(&world, &format!("a{n:03}"))).collect();
    let first = swept(&world.service);
    assert_eq!(first.len(), bound);
    // Another host's sweeper goes on where this one was.
    let second = swept(&world.another("local:other"));
    let both: BTreeSet<_> = first.iter().chain(&second[..6]).collect();
    assert_eq!(both.len(), all.len(), "the second pass begins with those that the first left");
}

/// An attempt that runs and whose child is not identified, so that its runner is asked.
fn unidentified(world: &World, name: &str) -> (AttemptId, FakeRunner) {
    let id = world.prepare(&request(name, name));
    let runner = FakeRunner::claim(world, &id);
    let rows =
        [Draft::new(EvidenceKind::ChildCreating, ""), Draft::new(EvidenceKind::ChildStarted, "")];
    world.record(&id, &rows, &Fields::default());
    (id, runner)
}

#[test]
fn attempts_are_settled_side_by_side() {
    let world = World::new();
    // Neither runner is heard before both were asked.
    let both_asked = Arc::new(Barrier::new(2));
    let runners = ["a", "b"].map(|name| {
        let (id, mut runner) = unidentified(&world, name);
        let both_asked = Arc::clone(&both_asked);
        runner.answer(Generation::FIRST, move |_, _| {
            both_asked.wait();
            None
        });
        (id, runner)
    });
    let sweep = world.service.sweep().unwrap();
    assert_eq!(sweep.reconciled, 2, "{sweep:?}");
    for (id, _) in &runners {
        assert_eq!(world.kinds(id).last(), Some(&EvidenceKind::ReconcileSupervised));
    }
}

#[test]
fn all_that_an_owner_has_open_is_settled_whatever_stands_against_one() {
    let world = World::new();
    let (lost, mut runner) = running(&world, "lost");
    runner.die();
    let (living, _runner) = running(&world, "living");
    let intended = world.prepare(&request("intended", "intended"));
    let settled = world.service.reconcile_all().unwrap();
    let state = |id: &AttemptId| {
        let found = settled.attempts.iter().find(|it| it.attempt_id == *id)?;
        Some(found.settled.as_ref().unwrap().execution_state)
    };
    assert_eq!(state(&lost), Some(ExecutionState::Exited));
    assert_eq!(state(&living), Some(ExecutionState::Running));
    assert_eq!(state(&intended), None);
    assert!(world.another("local:other").reconcile_all().unwrap().attempts.is_empty());
}

#[test]
fn one_that_does_not_answer_holds_up_no_other_and_waits_for_its_turn() {
    let world = World::new();
    let (hung, mut mute) = unidentified(&world, "hung");
    let (asked, is_asked) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    mute.answer(Generation::FIRST, move |_, _| {
        asked.send(()).unwrap();
        may_go_on.recv().unwrap();
        None
    });
    let first = world.service.clone();
    let first = std::thread::spawn(move || first.sweep().unwrap());
    is_asked.recv_timeout(PATIENCE).unwrap();
    let (lost, mut runner) = running(&world, "lost");
    runner.die();
    let second = world.service.sweep().unwrap();
    let of = |id: &AttemptId| second.outcomes.iter().find(|it| it.attempt_id == *id).unwrap();
    assert_eq!((of(&lost).ok, of(&lost).execution_state), (true, Some(ExecutionState::Exited)));
    assert_eq!((of(&hung).ok, of(&hung).code), (false, Some(Code::Unavailable)), "{second:?}");
    go_on.send(()).unwrap();
    first.join().unwrap();
    assert_eq!(world.row(&hung).state.execution, ExecutionState::Running, "nothing is concluded");
}

/// An attempt in a PID namespace that has exited, and whose tree nobody has proven gone.
fn namespaced(world: &World) -> (AttemptId, FakeRunner) {
    let mut launch = request("exited", "exited");
    launch.required_cleanup = CleanupScope::ContainedTree;
    launch.supervision.mechanism = Some(Mechanism::PidNamespace);
    let id = world.prepare(&launch);
    let runner = FakeRunner::claim(world, &id);
    let fields = Fields { init: Some(gone_process()), ..Fields::default() };
    world.record(&id, &[Draft::new(EvidenceKind::ExecutableMeasured, "elf")], &fields);
    runner.run(world, &gone_process());
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    (id, runner)
}

#[test]
fn the_tree_of_an_exited_attempt_is_proven_gone_once_its_runner_is() {
    let world = World::new();
    let (id, mut runner) = namespaced(&world);
    assert_eq!(swept(&world.service).as_slice(), std::slice::from_ref(&id));
    assert_eq!(world.row(&id).tree_gone_by, None, "its runner is still at it");
    runner.die();
    assert!(world.service.sweep().unwrap().outcomes[0].changed);
    assert_eq!(world.kinds(&id).last(), Some(&EvidenceKind::TreeGone));
    assert!(swept(&world.service).is_empty(), "nothing is left to be done");
}

#[test]
fn many_living_attempts_do_not_keep_a_pass_from_what_is_exited() {
    let world = World::new();
    let bound = usize::try_from(SWEEP_ATTEMPTS_MAX).unwrap();
    let _living: Vec<_> = (0..bound).map(|n| running(&world, &format!("a{n:03}"))).collect();
    let exited = namespaced(&world);
    let both = [swept(&world.service), swept(&world.service)].concat();
    assert!(both.contains(&exited.0), "one of two passes takes it");
}
