//! Stops: before, during and after a start, of children that obey and of children that do not.

use placement::{
    AttemptId, CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, Exit, ExitSource,
    Launch, Mechanism, StopMode,
};
use placement_testkit::{Random, wait_until};
use placement_world::contract::Refusal;
use placement_world::identity::Signal;
use placement_world::policy::Snapshot;
use placement_world::service::{IfUncertain, Started, Waited};
use placement_world::{Known, PATIENCE, Stage, World, contained, shell};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
const DEAF: &str = "trap '' TERM; echo up > up; while :; do sleep 0.02; done";

fn world() -> World {
    World::new(PROGRAM)
}

/// Returns a launch for each way of cleaning up that works here.
fn each_scope(world: &World, script: &str) -> Vec<Launch> {
    let trees = world.mechanisms().into_iter().map(|mechanism| shell(script).mechanism(mechanism));
    let less = [CleanupScope::ProcessGroup, CleanupScope::DirectProcess];
    trees.chain(less.into_iter().map(|scope| shell(script).require(scope))).collect()
}

/// Asserts that kinds come in this order, whatever else comes between them.
#[track_caller]
fn assert_in_order(kinds: &[&'static str], expected: &[&'static str], told: &str) {
    let mut rest = kinds.iter();
    for kind in expected {
        assert!(rest.any(|seen| seen == kind), "{kind} is missing or out of order:\n{told}");
    }
}

/// Passes a time too short to be slept, so that what races with it is met at every point.
fn pass(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::thread::yield_now();
    }
}

/// Waits for the end of a staged attempt, settles and cleans it.
#[track_caller]
fn assert_ends_clean(world: &World, stage: &Stage, id: &AttemptId) {
    let service = stage.service();
    let waited = service.wait_ended(id, Some(Instant::now() + PATIENCE));
    let waited = waited.expect("the attempt is recorded");
    assert_eq!(waited, Waited::Ended, "{}", world.told(id));
    let attempt = service.cleanup(id);
    let attempt = attempt.unwrap_or_else(|refusal| panic!("{refusal}\n{}", world.told(id)));
    assert_eq!(attempt.execution_state, ExecutionState::Exited, "{}", world.told(id));
    world.assert_nothing_left(id);
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = world();
    for launch in each_scope(&world, DEAF) {
        let grace = Duration::from_millis(150);
        let attempt = world.launch(launch.grace(grace));
        let id = attempt.id().clone();
        wait_until(PATIENCE, "the trap", || world.work().join("up").exists());
        let began = Instant::now();
        attempt.stop().unwrap();
        let end = attempt.finish().unwrap();
        assert!(began.elapsed() >= grace, "it had its grace: {:?}", began.elapsed());
        assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
        let order = ["stop.requested", "signal.term", "signal.kill", "child.exited"];
        assert_in_order(&world.kinds(&id), &order, &world.told(&id));
        world.assert_clean(&end);
        std::fs::remove_file(world.work().join("up")).unwrap();
    }
}

#[test]
fn a_child_that_obeys_is_not_killed() {
    let world = world();
    let script = "trap 'exit 9' TERM; echo up > up; while :; do sleep 0.02; done";
    for launch in each_scope(&world, script) {
        let attempt = world.launch(launch);
        wait_until(PATIENCE, "the trap", || world.work().join("up").exists());
        attempt.stop().unwrap();
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 9 }));
        let told = world.told(&end.attempt().attempt_id);
        assert_eq!(end.first(EvidenceKind::SignalKill), None, "{told}");
        world.assert_clean(&end);
        std::fs::remove_file(world.work().join("up")).unwrap();
    }
}

#[test]
fn a_forced_stop_kills_the_grandchild_too() {
    let world = world();
    let script = "trap '' TERM; sleep 300 & echo $! > near; wait";
    let mut launches = each_scope(&world, script);
    // The last one requires the direct process only.
    launches.pop();
    for launch in launches {
        let attempt = world.launch(launch.grace(Duration::from_mins(1)));
        let id = attempt.id().clone();
        let near = Known::named_in(world.work().join("near"));
        attempt.stop_forced().unwrap();
        let end = attempt.finish().unwrap();
        assert!(!near.is_running());
        assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
        let kinds = world.kinds(&id);
        assert_in_order(&kinds, &["stop.requested", "child.exited"], &world.told(&id));
        assert!(!kinds.contains(&"signal.term"), "{}", world.told(&id));
        world.assert_clean(&end);
        std::fs::remove_file(world.work().join("near")).unwrap();
    }
}

#[test]
fn a_forced_stop_overtakes_the_grace_of_the_first() {
    let world = world();
    let attempt = world.launch(shell(DEAF).grace(Duration::from_mins(1)));
    wait_until(PATIENCE, "the trap", || world.work().join("up").exists());
    let stopping = attempt.stop().unwrap();
    assert_eq!(stopping.execution_state, ExecutionState::Stopping);
    attempt.stop_forced().unwrap();
    let began = Instant::now();
    let end = attempt.finish().unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
    world.assert_clean(&end);
}

#[test]
fn a_setsid_escapee_gets_its_grace_and_then_ends_with_the_stop() {
    let world = world();
    for mechanism in world.mechanisms() {
        let script = "setsid sh -c 'trap \"echo bye > bye; exit\" TERM; echo $$ > far;
            while :; do sleep 0.02; done' & sleep 300 & echo $! > near; wait";
        let attempt = world.launch(shell(script).mechanism(mechanism));
        let far = Known::named_in(world.work().join("far"));
        let near = Known::named_in(world.work().join("near"));
        attempt.stop().unwrap();
        let end = attempt.finish().unwrap();
        assert!(!far.is_running() && !near.is_running());
        assert_eq!(std::fs::read_to_string(world.work().join("bye")).unwrap(), "bye\n");
        world.assert_clean(&end);
        for name in ["far", "near", "bye"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}

#[test]
fn a_stop_before_the_start_completes_everything() {
    let world = world();
    let stage = world.stage();
    for scope in [CleanupScope::DirectProcess, CleanupScope::ProcessGroup] {
        let name = format!("early-{scope}");
        let mut request = stage.request(&name, "echo ran > ran");
        request.required_cleanup = scope;
        let id = stage.prepare(&request);
        let service = stage.service();
        let stopped = service.stop(&id, StopMode::Cooperative, IfUncertain::Leave).unwrap();
        assert_eq!(stopped.execution_state, ExecutionState::Exited);
        assert_eq!(stopped.cleanup_state, CleanupState::Complete);
        assert_eq!((stopped.runner, stopped.exit), (None, None));
        assert_eq!(world.kinds(&id), ["intent.recorded", "stop.before_start"]);
        // Neither a repeated stop nor a late start changes it.
        service.stop(&id, StopMode::Forced, IfUncertain::EndSurvivors).unwrap();
        let Started { attempt, streams } = stage.start(&id).unwrap();
        assert_eq!(attempt.execution_state, ExecutionState::Exited);
        assert!(streams.is_none());
        assert_eq!(world.kinds(&id).len(), 2, "{}", world.told(&id));
        world.assert_nothing_left(&id);
    }
    assert!(!world.work().join("ran").exists());
}

#[test]
fn somebody_elses_attempt_is_neither_stopped_nor_cleaned_nor_told_from_none() {
    let world = world();
    let attempt = world.launch_shell("exec sleep 300");
    let stranger = world.stage_of("local:stranger", PROGRAM);
    let service = stranger.service();
    let unknown = AttemptId::parse("no-such-attempt").unwrap();
    let refusals = |id: &AttemptId| -> Vec<Refusal> {
        vec![
            service.stop(id, StopMode::Forced, IfUncertain::EndSurvivors).unwrap_err(),
            service.cleanup(id).unwrap_err(),
            service.reconcile(id).unwrap_err(),
        ]
    };
    let (foreign, none) = (refusals(attempt.id()), refusals(&unknown));
    for (foreign, none) in foreign.iter().zip(&none) {
        assert_eq!((foreign.code, none.code), (Code::NotFound, Code::NotFound));
        let same = foreign.message.replace(attempt.id().as_str(), unknown.as_str());
        assert_eq!(same, none.message);
    }
    let recorded = attempt.attempt().unwrap();
    assert_eq!(recorded.execution_state, ExecutionState::Running);
    attempt.stop_forced().unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_stop_while_the_program_is_measured_creates_no_child() {
    let world = world();
    let stage = world.stage();
    // As large as a program may be and all holes: reading it takes long, keeping it takes nothing.
    let big = world.work().join("big");
    let file = std::fs::File::create(&big).unwrap();
    std::io::Write::write_all(&mut &file, b"\x7fELF\x02\x01\x01").unwrap();
    file.set_len(1024 * 1024 * 1024).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    for (mode, name) in [(StopMode::Cooperative, "asked"), (StopMode::Forced, "forced")] {
        let mut request = stage.request(name, "unused");
        request.launch.executable =
            placement_world::contract::request::Argument::parse(big.as_str()).unwrap();
        let id = stage.prepare(&request);
        let started = std::thread::scope(|scope| {
            let starting = scope.spawn(|| stage.start(&id));
            wait_until(PATIENCE, "the home", || world.kinds(&id).contains(&"home.created"));
            let status = stage.service().status(&id).unwrap();
            assert_eq!(status.attempt.execution_state, ExecutionState::Starting);
            let runner = status.runner.expect("the runner answers while it measures");
            assert_eq!(runner.execution, ExecutionState::Starting);
            stage.service().stop(&id, mode, IfUncertain::Leave).unwrap();
            starting.join().unwrap()
        });
        assert_eq!(started.unwrap_err().code, Code::Conflict);
        assert_ends_clean(&world, &stage, &id);
        let kinds = world.kinds(&id);
        let order = ["stop.requested", "child.not_started", "runner.finished"];
        assert_in_order(&kinds, &order, &world.told(&id));
        for kind in ["executable.measured", "child.creating"] {
            assert!(!kinds.contains(&kind), "{}", world.told(&id));
        }
        assert_eq!(stage.recorded(&id).exit_source, Some(ExitSource::Runner));
    }
}

#[test]
fn a_stop_and_a_start_in_any_order_end_without_a_child() {
    let world = world();
    let stage = world.stage();
    let mut random = Random::seeded(2_024);
    let mechanisms: Vec<Option<Mechanism>> =
        world.mechanisms().into_iter().map(Some).chain([None]).collect();
    let whole_start = {
        let id = stage.prepare(&stage.request("measured", "exec sleep 300"));
        let began = Instant::now();
        stage.start(&id).unwrap();
        let took = began.elapsed();
        stage.service().stop(&id, StopMode::Forced, IfUncertain::Leave).unwrap();
        assert_ends_clean(&world, &stage, &id);
        u64::try_from(took.as_micros()).unwrap()
    };
    let mut seen_before_a_child = 0;
    for round in 0..36 {
        let script = format!("echo $$ > ran-{round}; exec sleep 300");
        let request = stage.request(&format!("race-{round}"), &script);
        let id = stage.prepare(&contained(request, *random.pick(&mechanisms)));
        let mode = *random.pick(&[StopMode::Cooperative, StopMode::Forced]);
        let head_start = Duration::from_micros(random.below(whole_start * 3 / 2));
        let start_first = random.below(4) > 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !start_first {
                    pass(head_start / 16);
                }
                // Refused where the stop came first.
                stage.start(&id).ok();
            });
            if start_first {
                pass(head_start);
            }
            stage.service().stop(&id, mode, IfUncertain::Leave).unwrap();
        });
        assert_ends_clean(&world, &stage, &id);
        let ran = world.work().join(format!("ran-{round}"));
        let kinds = world.kinds(&id);
        assert!(kinds.contains(&"child.started") || !ran.exists(), "{}", world.told(&id));
        seen_before_a_child += usize::from(!kinds.contains(&"child.started"));
        // A delayed start finds the end, and starts nothing.
        let late = stage.start(&id).unwrap();
        assert!(late.streams.is_none());
        assert_eq!(world.kinds(&id), kinds, "{}", world.told(&id));
    }
    assert!((1..36).contains(&seen_before_a_child), "both sides are met: {seen_before_a_child}");
}

#[test]
fn many_stops_at_once_are_one() {
    let world = world();
    let attempt = world.launch(shell(DEAF).grace(Duration::from_millis(100)));
    wait_until(PATIENCE, "the trap", || world.work().join("up").exists());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| attempt.stop().unwrap());
        }
    });
    let end = attempt.finish().unwrap();
    let count = |kind| end.evidence().iter().filter(|row| row.kind == kind).count();
    for kind in [EvidenceKind::StopRequested, EvidenceKind::SignalTerm, EvidenceKind::SignalKill] {
        assert_eq!(count(kind), 1, "{kind}:\n{}", world.told(&end.attempt().attempt_id));
    }
    world.assert_clean(&end);
}

#[test]
fn no_end_is_recorded_while_the_child_still_writes() {
    let world = world();
    let script = "trap 'sleep 0.3; exit' TERM
        echo $$ > pid; while :; do echo line >> written; sleep 0.05; done";
    let attempt = world.launch(shell(script));
    let id = attempt.id().clone();
    let child = Known::named_in(world.work().join("pid"));
    // Another host has never held this runner: it goes by what is recorded.
    let other = world.another_host();
    let stopping = other.stop(&id, StopMode::Cooperative).unwrap();
    assert_eq!(stopping.execution_state, ExecutionState::Stopping);
    wait_until(PATIENCE, "the recorded end", || {
        // Read first, looked at second: an end that is recorded was seen before.
        let ended = other.attempt(&id).unwrap().execution_state == ExecutionState::Exited;
        assert!(!ended || !child.is_running(), "{}", world.told(&id));
        ended
    });
    let written = std::fs::read(world.work().join("written")).unwrap();
    world.assert_clean(&attempt.finish().unwrap());
    assert_eq!(std::fs::read(world.work().join("written")).unwrap(), written);
}

#[test]
fn a_child_is_reached_through_its_identity_when_its_runner_does_not_answer() {
    let world = world();
    let attempt = world.launch_shell("echo $$ > pid; exec sleep 300");
    let id = attempt.id().clone();
    let child = Known::named_in(world.work().join("pid"));
    let runner = Known::of(world.runner_pid(&id));
    runner.signal(Signal::Stop);
    let stopping = world.host().stop(&id, StopMode::Cooperative).unwrap();
    assert_eq!(stopping.execution_state, ExecutionState::Stopping, "{}", world.told(&id));
    child.wait_gone();
    let kinds = world.kinds(&id);
    assert_eq!(kinds.last(), Some(&"signal.group"), "a signal is no exit: {}", world.told(&id));
    runner.signal(Signal::Cont);
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 15, core: false }));
    assert_eq!(end.attempt().exit_source, Some(ExitSource::Runner));
    world.assert_clean(&end);
}

#[test]
fn an_exited_attempt_takes_a_stop_and_stays_as_it_is() {
    let world = world();
    let attempt = world.launch_shell("exit 3");
    let id = attempt.id().clone();
    let end = attempt.finish().unwrap();
    for mode in [StopMode::Cooperative, StopMode::Forced] {
        let stopped = world.host().stop(&id, mode).unwrap();
        assert_eq!(&stopped, end.attempt());
    }
    assert_eq!(world.kinds(&id).len(), end.evidence().len());
}

#[test]
fn a_child_whose_grant_was_taken_back_is_asked_to_end() {
    let world = world();
    let stage = world.stage();
    let script = "trap 'exit 7' TERM; echo up > up; while :; do sleep 0.02; done";
    let id = stage.prepare(&stage.request("a", script));
    stage.start(&id).unwrap();
    world.wait_for_file("up");
    let refused = stage.service().stop_revoked(&id).unwrap_err();
    assert_eq!(refused.code, Code::Conflict, "{refused}");
    let nothing_listed = Snapshot::embedded().with_listed_roots_only();
    stage.service().change_snapshot(|snapshot| *snapshot = nothing_listed);
    stage.service().stop_revoked(&id).unwrap();
    assert_ends_clean(&world, &stage, &id);
    assert_eq!(stage.recorded(&id).exit, Some(Exit::Code { code: 7 }));
    let expected = ["grant.revoked", "stop.requested", "signal.term", "child.exited"];
    assert_in_order(&world.kinds(&id), &expected, &world.told(&id));
}
