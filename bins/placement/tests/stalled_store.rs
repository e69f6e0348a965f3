//! A store that a stopped process holds: what goes on meanwhile, and what is recorded afterwards.

use placement::{AttemptHandle, Code, ExecutionState, Exit};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, StoppedWriter, World, shell};
use std::time::{Duration, Instant};

/// Within this a runner answers.
const FENCE: Duration = Duration::from_secs(2);

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// Does something and says that it did not wait for the store.
#[track_caller]
fn at_once<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = act();
    let took = begun.elapsed();
    assert!(took < FENCE, "{what} took {took:?}");
    done
}

/// Asks a runner where it stands.
#[track_caller]
fn execution(world: &World, attempt: &AttemptHandle) -> ExecutionState {
    at_once("status", || world.runner(attempt.id()).execution)
}

#[test]
fn status_stop_and_streams_go_on_while_a_stopped_process_holds_the_store() {
    let world = world();
    let host = world.host();
    let script = "while [ ! -e go ]; do sleep 0.01; done; seq 6900000 | tee all; exit 3";
    let talker = world.launch_shell(script);
    let sleeper = world.launch_shell("exec sleep 600");
    let program = world.program();
    let writer = StoppedWriter::below(&world.root());
    let held = Instant::now();
    std::thread::scope(|scope| {
        // Waits for the store, in the same host.
        let launch = shell("exit 0").write(world.work()).key("late");
        let late = scope.spawn(|| host.launch(launch).map(|attempt| attempt.id().clone()));
        assert_eq!(execution(&world, &sleeper), ExecutionState::Running);
        let stopped = at_once("the stop", || sleeper.stop().unwrap());
        assert_eq!(stopped.execution_state, ExecutionState::Running, "as it is recorded");
        wait_until(FENCE, "the end of the child", || {
            execution(&world, &sleeper) == ExecutionState::Exited
        });

        std::fs::write(world.work().join("go"), "").unwrap();
        let bytes = world.bytes(&talker);
        let wanted = std::fs::read(world.work().join("all")).unwrap();
        assert!(bytes == wanted, "{} bytes of {} came", bytes.len(), wanted.len());
        assert_eq!(execution(&world, &talker), ExecutionState::Exited);
        let shown = program.run(["show", talker.id().as_str()]);
        assert!(shown.code == 0 && shown.stdout.contains("running"), "{shown:?}");
        assert!(held.elapsed() < Duration::from_secs(8), "the store was held all the time");
        let refused = late.join().unwrap().expect_err("nothing can be recorded");
        assert_eq!(refused.code(), Code::Storage, "{refused}");
    });
    wait_until(PATIENCE, "eight seconds", || held.elapsed() > Duration::from_secs(8));
    drop(writer);

    for (attempt, exit, kinds) in [
        (talker, Exit::Code { code: 3 }, &["child.exited", "tree.gone", "runner.finished"][..]),
        (
            sleeper,
            Exit::Signal { signal: 15, core: false },
            &["stop.requested", "signal.term", "child.exited", "tree.gone", "runner.finished"],
        ),
    ] {
        let id = attempt.id().clone();
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(exit));
        let mut seen = world.kinds(&id);
        seen.drain(..=seen.iter().position(|kind| *kind == "child.started").unwrap());
        assert_eq!(seen, [kinds, &["cleanup.complete"]].concat(), "{}", world.told(&id));
        world.assert_verified(&id);
    }
    assert_eq!(host.attempts().all().unwrap().attempts.len(), 2, "the late one left nothing");
    assert!(world.homes_left().is_empty());
}

#[test]
fn a_runner_that_waits_for_the_store_sleeps() {
    let world = world();
    for mechanism in world.mechanisms() {
        let attempt = world.launch(shell("read go").stdin_pipe().mechanism(mechanism));
        let runner = world.runner_pid(attempt.id());
        let writer = StoppedWriter::below(&world.root());
        attempt.close_input().unwrap();
        wait_until(FENCE, "the end of the child", || {
            execution(&world, &attempt) == ExecutionState::Exited
        });
        let (before, begun) = (cpu_ticks(runner), Instant::now());
        wait_until(PATIENCE, "half a second", || begun.elapsed() > Duration::from_millis(500));
        let used = cpu_ticks(runner) - before;
        assert!(used < 15, "{used} of 50 ticks in a {mechanism}");
        drop(writer);
        world.assert_clean(&attempt.finish().unwrap());
    }
}

/// Reads how many hundredths of a second a process has computed.
#[track_caller]
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let times = fields.split(' ').skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

#[test]
fn what_could_not_be_recorded_before_the_runner_ended_is_taken_in_afterwards() {
    let world = world();
    let attempt = world.launch_shell("while [ ! -e go ]; do sleep 0.01; done; echo out; exit 7");
    let id = attempt.id().clone();
    let runner = format!("/proc/{}", world.runner_pid(&id));
    let writer = StoppedWriter::below(&world.root());
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(world.text(&attempt).stdout, "out\n");
    wait_until(PATIENCE, "the end of the runner", || !std::fs::exists(&runner).unwrap());
    assert_eq!(attempt.attempt().unwrap().execution_state, ExecutionState::Running);
    drop(writer);

    let settled = world.host().reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!(settled.exit, Some(Exit::Code { code: 7 }));
    let mut seen = world.kinds(&id);
    seen.drain(..=seen.iter().position(|kind| *kind == "child.started").unwrap());
    let kinds = ["child.exited", "tree.gone", "runner.finished", "record.taken"];
    assert_eq!(seen, kinds, "{}", world.told(&id));
    world.host().reconcile(&id).unwrap();
    assert_eq!(world.kinds(&id).last(), Some(&"record.taken"), "it is taken in once");
    let end = attempt.finish().unwrap();
    assert!(end.evidence().iter().any(|row| {
        row.kind.label() == "record.taken" && row.detail.contains("rows that did not fit: 0")
    }));
    world.assert_clean(&end);
}
