use crate::IfUncertain::{EndSurvivors, Leave};
use crate::testing::*;
use placement_contract::{
    CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, Generation, LaunchRequest,
    Mechanism, Timeouts,
};
use placement_identity::Presence;
use placement_protocol::StopMode::{Cooperative, Forced};
use placement_protocol::{ControlAnswer, ControlCall, StopReply};
use placement_store::{Draft, Fields};
use placement_testkit::{is_root, run_as_ordinary_user_with, wait_until};
use std::sync::mpsc;

fn accepted() -> ControlAnswer {
    ControlAnswer::Stop(StopReply {
        accepted: true,
        recorded: false,
        execution: ExecutionState::Stopping,
    })
}

fn running(world: &World, child: &placement_identity::ProcessIdentity) -> FakeRunner {
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim(world, &id);
    runner.run(world, child);
    runner
}

#[test]
fn a_stop_before_a_start_completes_everything_and_says_so_once() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    for _ in 0..2 {
        let stopped = world.service.stop(&id, Cooperative, Leave).unwrap();
        assert_eq!(stopped.execution_state, ExecutionState::Exited);
        assert_eq!(stopped.cleanup_state, CleanupState::Complete);
        assert_eq!((stopped.evidence_count, stopped.exit, stopped.runner), (2, None, None));
    }
    assert_eq!(world.kinds(&id), [EvidenceKind::StopBeforeStart]);
    assert!(!world.root.join("attempts").exists());
}

#[test]
fn a_stop_goes_to_the_runner_which_records_it() {
    let world = World::new();
    let mut runner = running(&world, &this_process());
    let (told, heard) = mpsc::channel();
    runner.answer(Generation::FIRST, move |call, _| {
        told.send(call).unwrap();
        Some(accepted())
    });
    world.service.stop(&attempt("a"), Forced, Leave).unwrap();
    let ControlCall::Stop(stop) = heard.recv().unwrap() else { panic!("a stop was asked for") };
    assert_eq!((stop.mode, stop.grace_ms), (Forced, None));
    assert!(!world.kinds(&attempt("a")).contains(&EvidenceKind::StopRequested));
}

#[test]
fn a_runner_behind_the_record_by_an_attachment_is_stopped_all_the_same() {
    let world = World::new();
    let mut runner = running(&world, &this_process());
    runner.answer(Generation::FIRST, |_, _| Some(accepted()));
    let attachment = placement_store::Attachment {
        generation: Generation::new(2),
        recipient: Some(recipient("died before its fence")),
    };
    let fields = Fields { attachment: Some(attachment), ..Fields::default() };
    let rows = [Draft::new(EvidenceKind::Attach, "generation 2")];
    world.record(&attempt("a"), &rows, &fields);
    world.service.stop(&attempt("a"), Forced, Leave).unwrap();
    assert_eq!(world.row(&attempt("a")).state.execution, ExecutionState::Running);
}

#[test]
fn a_stop_before_the_sockets_is_committed_so_that_no_child_is_created() {
    let world = World::new();
    let launch = LaunchRequest {
        timeouts: Timeouts { start_ms: 50, ..request("a", "k").timeouts },
        ..request("a", "k")
    };
    let id = world.prepare(&launch);
    let _runner = FakeRunner::claim(&world, &id);
    let stopped = world.service.stop(&id, Cooperative, Leave).unwrap();
    assert_eq!(stopped.execution_state, ExecutionState::Stopping, "the runner may live");
    let creating = [Draft::new(EvidenceKind::ChildCreating, "in a process group")];
    let change = placement_store::Change {
        attempt_id: &id,
        expect: Some(&[ExecutionState::Starting]),
        expect_generation: None,
        rows: &creating,
        fields: &Fields::default(),
    };
    let store = &world.service.inner.store;
    assert!(store.record(&change, placement_store::Durability::Normal).is_err());
}

#[test]
fn a_stop_before_the_sockets_waits_for_the_end_of_the_runner() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim_as(&world, &id, gone_process());
    let stopped = std::thread::scope(|scope| {
        let stop = scope.spawn(|| world.service.stop(&id, Cooperative, Leave).unwrap());
        wait_until(PATIENCE, "the commit", || {
            world.row(&id).state.execution == ExecutionState::Stopping
        });
        runner.die();
        stop.join().unwrap()
    });
    assert_eq!(stopped.execution_state, ExecutionState::Exited);
    let kinds = world.kinds(&id);
    let last = [EvidenceKind::StopRequested, EvidenceKind::ChildNotStarted];
    assert_eq!(kinds[kinds.len() - 2..], last);
}

#[test]
fn without_a_runner_the_verified_group_is_signalled() {
    let world = World::new();
    let (mut child, identity) = process("sleep 600 & exec sleep 600");
    let mut runner = running(&world, &identity);
    runner.die();
    let stopped = world.service.stop(&attempt("a"), Forced, Leave).unwrap();
    child.wait().unwrap();
    let kinds = world.kinds(&attempt("a"));
    assert!(kinds.contains(&EvidenceKind::SignalGroup), "{kinds:?}");
    let settled = world.service.reconcile(&attempt("a")).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited, "{stopped:?}");
    assert_eq!(settled.exit_source, Some(placement_contract::ExitSource::Reconcile));
}

/// Tells the ordinary user whose process it is to signal.
const LEADER: &str = "PLACEMENT_TEST_LEADER";

#[test]
fn a_group_signal_that_the_kernel_refuses_leaves_the_stop_unproven() {
    let test = "tests::stop::a_group_signal_that_the_kernel_refuses_leaves_the_stop_unproven";
    if is_root() {
        // Root may signal everybody; an ordinary user may not signal what is root's.
        let (mut child, identity) = process("exec sleep 600");
        let leader = [(LEADER, identity.pid.to_string())];
        if let Err(reason) = run_as_ordinary_user_with(test, &leader) {
            println!("not tested as root: {reason}");
        }
        let Presence::Present(alive) = identity.observe() else { panic!("it was ended") };
        alive.signal(placement_identity::Signal::Kill).unwrap();
        child.wait().unwrap();
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "whoever started this test says it so")]
    let Ok(leader) = std::env::var(LEADER) else {
        return println!("not tested: only root has a process that this user may not signal");
    };
    let leader: u32 = leader.parse().unwrap();
    let identity = placement_identity::ProcessIdentity::of(leader).unwrap();
    let world = World::new();
    let mut runner = running(&world, &identity);
    runner.die();
    for mode in [Cooperative, Forced] {
        let stopped = world.service.stop(&attempt("a"), mode, Leave).unwrap();
        assert_eq!(stopped.execution_state, ExecutionState::Uncertain);
        assert!(matches!(identity.observe(), Presence::Present(_)));
    }
    let kinds = world.kinds(&attempt("a"));
    let unproven = kinds.iter().filter(|kind| **kind == EvidenceKind::StopUnproven);
    assert_eq!(unproven.count(), 1, "{kinds:?}");
    assert!(!kinds.contains(&EvidenceKind::SignalGroup), "{kinds:?}");
    assert_eq!(world.last_detail(&attempt("a")), "the kernel refused the signal");
}

#[test]
fn a_reused_number_is_not_signalled() {
    let world = World::new();
    let (mut child, identity) = process("exec sleep 600");
    let other = placement_identity::ProcessIdentity {
        start_ticks: identity.start_ticks - 1,
        pidfd_inode: None,
        ..identity.clone()
    };
    let mut runner = running(&world, &other);
    runner.die();
    let stopped = world.service.stop(&attempt("a"), Forced, Leave).unwrap();
    assert_eq!(stopped.execution_state, ExecutionState::Exited, "the recorded one is absent");
    let Presence::Present(alive) = identity.observe() else { panic!("a stranger was ended") };
    alive.signal(placement_identity::Signal::Kill).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_living_runner_that_does_not_answer_never_makes_it_uncertain() {
    let world = World::new();
    let mut runner = running(&world, &gone_process());
    runner.answer(Generation::FIRST, |_, _| None);
    let refused = refusal(world.service.stop(&attempt("a"), Cooperative, Leave));
    assert_eq!(refused.code, Code::Unavailable);
    assert_eq!(world.row(&attempt("a")).state.execution, ExecutionState::Running);
}

#[test]
fn a_child_that_cannot_be_seen_makes_a_stop_without_a_runner_unproven() {
    let world = World::new();
    let elsewhere = |mut identity: placement_identity::ProcessIdentity| {
        identity.observer.pid_namespace = 7;
        identity
    };
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim_as(&world, &id, elsewhere(this_process()));
    runner.run(&world, &elsewhere(this_process()));
    runner.die();
    let stopped = world.service.stop(&id, Forced, Leave).unwrap();
    assert_eq!(stopped.execution_state, ExecutionState::Uncertain);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::ReconcileUnobserved);
}

#[test]
fn what_is_left_of_an_exited_attempt_is_stopped_by_its_runner_and_the_exit_stays() {
    let world = World::new();
    let tree = LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    let id = world.prepare(&tree);
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &this_process());
    let exit = placement_contract::Exit::Code { code: 3 };
    world.record(&id, &[Draft::exited(Some(exit))], &Fields::default());
    let (told, heard) = mpsc::channel();
    runner.answer(Generation::FIRST, move |call, _| {
        told.send(call).unwrap();
        Some(accepted())
    });
    let stopped = world.service.stop(&id, Cooperative, Leave).unwrap();
    assert!(matches!(heard.try_recv(), Ok(ControlCall::Stop(_))));
    assert_eq!((stopped.execution_state, stopped.exit), (ExecutionState::Exited, Some(exit)));
}

#[test]
fn an_uncertain_attempt_is_left_alone_unless_its_survivors_are_to_end() {
    let world = World::new();
    let mut tree =
        LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    tree.supervision.mechanism = Some(Mechanism::Subreaper);
    let id = world.prepare(&tree);
    let (mut survivor, identity) =
        process("PLACEMENT_ATTEMPT_ID=a exec /usr/bin/env PLACEMENT_ATTEMPT_ID=a sleep 600");
    wait_until(PATIENCE, "the marker", || {
        let environ = std::fs::read(format!("/proc/{}/environ", identity.pid)).unwrap();
        environ.windows(22).any(|window| window == b"PLACEMENT_ATTEMPT_ID=a")
    });
    let mut runner = FakeRunner::claim(&world, &id);
    // The leader is gone; the survivor is not older than it was.
    let leader = placement_identity::ProcessIdentity {
        pid: placement_identity::Pid::try_from(i32::MAX).unwrap(),
        pidfd_inode: None,
        ..identity.clone()
    };
    runner.run(&world, &leader);
    runner.die();
    let uncertain = world.service.reconcile(&id).unwrap();
    assert_eq!(uncertain.execution_state, ExecutionState::Uncertain);
    assert_eq!(world.service.stop(&id, Forced, Leave).unwrap(), uncertain);
    assert!(matches!(identity.observe(), Presence::Present(_)));
    let stopped = world.service.stop(&id, Forced, EndSurvivors).unwrap();
    survivor.wait().unwrap();
    assert_eq!(
        stopped.execution_state,
        ExecutionState::Uncertain,
        "the proof is lost all the same"
    );
    assert!(world.kinds(&id).contains(&EvidenceKind::SignalKill));
}

#[test]
fn what_a_dead_runner_left_in_the_group_is_ended_by_its_marker_and_then_cleaned() {
    let world = World::new();
    let group = LaunchRequest {
        required_cleanup: CleanupScope::ProcessGroup,
        ..request("left-behind", "k")
    };
    let id = world.prepare(&group);
    let line = "exec /usr/bin/env PLACEMENT_ATTEMPT_ID=left-behind sh -c 'sleep 600 & exit 0'";
    let (mut leader, identity) = process(line);
    leader.wait().unwrap();
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &identity);
    runner.die();
    assert_eq!(world.service.reconcile(&id).unwrap().execution_state, ExecutionState::Exited);
    assert_eq!(refusal(world.service.cleanup(&id)).code, Code::Conflict);
    let left = world.service.stop(&id, Forced, Leave).unwrap();
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::CleanupRefused, "{left:?}");
    world.service.stop(&id, Forced, EndSurvivors).unwrap();
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::SignalKill);
    wait_until(PATIENCE, "the cleanup", || world.service.cleanup(&id).is_ok());
}
