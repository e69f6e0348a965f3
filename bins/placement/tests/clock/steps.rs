//! Steps of the wall clock.

use crate::stepped::Clock;
use placement::{AttemptHandle, EvidenceKind, Exit, OnHostLoss, StopMode};
use placement_world::{PATIENCE, Program, World, shell};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
const YEARS: i64 = 10 * 365 * 24 * 3600;
/// A child that ends of nothing but SIGKILL.
const STUBBORN: &str = "trap '' TERM; touch up; while :; do sleep 0.05; done";

fn clock() -> Option<Clock> {
    match Clock::make() {
        Ok(clock) => Some(clock),
        Err(reason) => {
            println!("no clock is set here: {reason}");
            None
        }
    }
}

#[track_caller]
fn ends_in_time(attempt: AttemptHandle, since: Instant, world: &World) {
    let end = attempt.finish().expect("it ends");
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
    world.assert_clean(&end);
}

#[test]
fn a_deadline_and_a_grace_are_kept_whatever_the_wall_clock_does() {
    let Some(clock) = clock() else { return };
    let world = World::new(clock.program(PROGRAM));
    for step in [YEARS, -YEARS] {
        clock.step(0);
        std::fs::remove_file(world.work().join("up")).ok();
        let limits = shell(STUBBORN).deadline(Duration::from_millis(700));
        let begun = Instant::now();
        let attempt = world.launch(limits.grace(Duration::from_millis(300)));
        world.wait_for_file("up");
        clock.step(step);
        let id = attempt.id().clone();
        // Its loop turns after the step, and waits anew.
        world.runner(&id);
        ends_in_time(attempt, begun, &world);
        assert!(begun.elapsed() >= Duration::from_secs(1), "both were waited for");
        // The rows of the runner show the step, and are in order all the same.
        let rows = world.host().evidence(&id, 0, None).unwrap();
        let finished = rows.iter().find(|row| row.kind == EvidenceKind::RunnerFinished).unwrap();
        let stepped = (finished.at.unix_ms() - rows[0].at.unix_ms()) / 1_000;
        assert!((stepped - step).abs() < 3_600, "{stepped} of {step}");
    }
}

#[test]
fn a_stop_after_a_step_is_carried_out_within_its_grace() {
    let Some(clock) = clock() else { return };
    let world = World::new(clock.program(PROGRAM));
    let attempt = world.launch(shell(STUBBORN).grace(Duration::from_millis(300)));
    world.wait_for_file("up");
    clock.step(-YEARS);
    let begun = Instant::now();
    world.host().stop(attempt.id(), StopMode::Cooperative).unwrap();
    clock.step(YEARS);
    ends_in_time(attempt, begun, &world);
}

#[test]
fn a_program_under_a_stepped_clock_settles_reads_and_cleans_as_ever() {
    let Some(clock) = clock() else { return };
    for step in [YEARS, -YEARS] {
        clock.step(0);
        let world = World::new(PROGRAM);
        let launch = shell("echo out; touch up; until [ -e go ]; do sleep 0.01; done; exit 4");
        let attempt = world.launch(launch.on_host_loss(OnHostLoss::Keep));
        world.wait_for_file("up");
        let id = attempt.id().clone();
        attempt.detach();
        clock.step(step);
        let program = world.program();
        let say = |arguments: &[&str]| stepped(&program, &clock, arguments);
        assert_eq!(say(&["sweep"]).code, 0);
        assert_eq!(say(&["reconcile", id.as_str()]).code, 0);
        std::fs::write(world.work().join("go"), "").unwrap();
        let attached = say(&["attach", id.as_str()]);
        assert_eq!((attached.code, attached.stdout.as_str()), (4, "out\n"), "{attached:?}");
        assert_eq!(say(&["cleanup", id.as_str()]).code, 0);
        assert_eq!(say(&["verify", id.as_str()]).code, 0);
        world.assert_nothing_left(&id);
    }
}

#[test]
fn a_clock_set_back_prunes_nothing_that_is_younger_than_it_seems() {
    let Some(clock) = clock() else { return };
    let world = World::new(PROGRAM);
    let end = world.launch(shell("exit 0")).finish().unwrap();
    let id = end.attempt().attempt_id.clone();
    let program = world.program();
    clock.step(-YEARS);
    let kept = stepped(&program, &clock, &["prune", "--older-than", "1s"]);
    assert_eq!(kept.code, 0, "{kept:?}");
    assert!(!world.host().attempt(&id).unwrap().pruned);
    // Retention is in days of the wall clock, as it is said.
    clock.step(YEARS);
    assert_eq!(stepped(&program, &clock, &["prune", "--older-than", "30d"]).code, 0);
    assert!(world.host().attempt(&id).unwrap().pruned);
}

/// Runs the program under the clock.
#[track_caller]
fn stepped(program: &Program, clock: &Clock, arguments: &[&str]) -> placement_world::Said {
    let mut command = program.command(arguments.iter().copied());
    command.env("LD_PRELOAD", clock.library()).stdin(std::process::Stdio::null());
    placement_world::Running::start(&mut command).said()
}
