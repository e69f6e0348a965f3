//! Too few descriptors, in the program and its runner, in a runner alone, and in a host that lives on.

use crate::bed::{Bed, Death, ulimit};
use camino::Utf8PathBuf;
use placement::{AttemptHandle, Code, ExecutionState, Exit};
use placement_testkit::{in_own_process, wait_until};
use placement_world::{PATIENCE, Program, World, shell};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// Descriptors with which a launch works; the test fails where it needs more.
const ENOUGH: u32 = 64;
const PLENTY: u32 = 256;

#[test]
fn a_launch_with_too_few_descriptors_is_refused_and_its_key_works_later() {
    let program = Program::new(PROGRAM);
    let mut bed = Bed::of(&program, Death::None);
    for descriptors in (3..ENOUGH).step_by(2) {
        let limit = ulimit(&format!("-n {descriptors}"));
        bed.launch_under(&limit.each_ref().map(String::as_str));
    }
    println!("{:?}", bed.outcomes);
    assert!(bed.outcomes.refused >= 5, "it was to be short of them: {:?}", bed.outcomes);
    assert!(bed.outcomes.ran >= 5, "so many are enough: {:?}", bed.outcomes);
    program.assert_nothing_is_left();
}

/// A runner with so many descriptors as a file says when it starts.
struct Limited {
    runner: Utf8PathBuf,
    limit: Utf8PathBuf,
}

impl Limited {
    fn below(world: &World) -> Self {
        let limited =
            Self { runner: world.work().join("runner"), limit: world.work().join("limit") };
        let limit = &limited.limit;
        let script = format!("#!/bin/sh\nulimit -n $(cat {limit})\nexec {PROGRAM} \"$@\"\n");
        std::fs::write(&limited.runner, script).expect("the directory is ours");
        let mode = Permissions::from_mode(0o755);
        std::fs::set_permissions(&limited.runner, mode).expect("it is ours");
        limited.set(PLENTY);
        limited
    }

    fn set(&self, descriptors: u32) {
        std::fs::write(&self.limit, descriptors.to_string()).expect("the directory is ours");
    }
}

#[test]
fn a_runner_with_too_few_descriptors_refuses_and_loses_nothing() {
    let world = World::new(PROGRAM);
    let limited = Limited::below(&world);
    let stage = world.stage_with_runner(&limited.runner);
    let (mut refused, mut ran) = (0, 0);
    for descriptors in (4..ENOUGH).step_by(2) {
        limited.set(PLENTY);
        let name = format!("a{descriptors}");
        let script = format!("echo x >> children-{name}; exit 43");
        let id = stage.prepare(&stage.request(&name, &script));
        limited.set(descriptors);
        let started = stage.start(&id);
        let ended = world.host().wait(&id, None);
        let told = || format!("{descriptors}: {started:?}, {ended:?}\n{}", world.told(&id));
        let children = std::fs::read_to_string(world.work().join(format!("children-{name}")));
        let children = children.map_or(0, |text| text.lines().count());
        let attempt = world.host().reconcile(&id).unwrap();
        if let Some(exit) = attempt.exit {
            assert_eq!((exit, children), (Exit::Code { code: 43 }, 1), "{}", told());
            ran += 1;
        } else {
            assert_eq!(children, 0, "no exit is lost: {}", told());
            let refusal = started.as_ref().expect_err("there was no child");
            assert!([Code::Unavailable, Code::Storage].contains(&refusal.code), "{}", told());
            assert!(!world.kinds(&id).contains(&"host.lost"), "it was not: {}", told());
            refused += 1;
        }
        if attempt.execution_state == ExecutionState::Intended {
            world.host().stop(&id, placement::StopMode::Forced).unwrap();
        }
        world.host().cleanup(&id).unwrap();
        world.assert_nothing_left(&id);
    }
    println!("{refused} refused, {ran} ran");
    assert!(refused >= 5 && ran >= 5, "{refused} refused, {ran} ran");
}

#[test]
fn a_measurement_for_which_something_had_run_out_is_made_again() {
    let world = World::new(PROGRAM);
    let limited = Limited::below(&world);
    let stage = world.stage_with_runner(&limited.runner);
    let mut came_to_an_end = 0;
    for descriptors in 5..16 {
        limited.set(descriptors);
        let name = format!("a{descriptors}");
        match stage.service().prepare(&stage.request(&name, "true")) {
            Ok(_) => break,
            Err(refusal) => assert_eq!(refusal.code, Code::Unavailable, "{refusal}"),
        }
        came_to_an_end += usize::from(stage.service().measured().is_ok());
    }
    assert!(came_to_an_end > 0, "a runner was to measure without enough descriptors");
    limited.set(PLENTY);
    let id = stage.prepare(&stage.request("later", "true"));
    let best = world.mechanisms().first().copied();
    assert_eq!(stage.recorded(&id).mechanism, best, "it is no weaker for what was measured before");
}

/// Takes every descriptor but so many.
fn take_all_but(left: usize) -> Vec<File> {
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(taken.len() > left, "there are enough to take");
    taken.truncate(taken.len() - left);
    taken
}

fn lower_the_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(u64::from(PLENTY)), ..limit })
        .expect("a limit can be lowered");
}

#[test]
fn a_host_without_descriptors_says_so_and_goes_on_once_it_has_some() {
    in_own_process(
        "descriptors::a_host_without_descriptors_says_so_and_goes_on_once_it_has_some",
        || {
            lower_the_limit();
            let world = World::new(PROGRAM);
            let first = world.launch(shell("exit 0"));
            world.assert_clean(&first.finish().unwrap());
            let (mut refused, mut ran) = (0, 0);
            for left in 0..24 {
                let taken = take_all_but(left);
                let key = format!("left-{left}");
                let launch = |script: &str| shell(script).key(&key).write(world.work());
                let launched = world.host().launch(launch("exit 5"));
                let ended = launched.and_then(AttemptHandle::finish);
                drop(taken);
                match ended {
                    Ok(end) => {
                        assert_eq!(end.exit(), Some(Exit::Code { code: 5 }));
                        ran += 1;
                    }
                    Err(error) => {
                        let code = error.code();
                        assert!(
                            [Code::Unavailable, Code::Storage].contains(&code),
                            "with {left}: {error}"
                        );
                        refused += 1;
                    }
                }
                // What was begun goes on or is settled; nothing runs twice.
                let again = world.host().launch(launch("exit 5"));
                match again.and_then(AttemptHandle::finish) {
                    Ok(end) => world.assert_clean(&end),
                    Err(error) => println!("with {left}: then {error}"),
                }
            }
            for attempt in world.host().attempts().all().unwrap().attempts {
                assert_eq!(attempt.execution_state, ExecutionState::Exited, "{attempt:?}");
                world.assert_nothing_left(&attempt.attempt_id);
            }
            assert!(refused >= 3 && ran >= 5, "{refused} refused, {ran} ran");
        },
    );
}

#[test]
fn an_exit_while_its_host_has_no_descriptor_is_not_lost() {
    in_own_process("descriptors::an_exit_while_its_host_has_no_descriptor_is_not_lost", || {
        lower_the_limit();
        let world = World::new(PROGRAM);
        let script = "touch up; until [ -e go ]; do sleep 0.01; done; echo out; exit 6";
        let attempt = world.launch(shell(script));
        world.wait_for_file("up");
        let runner = world.runner_pid(attempt.id());
        let go = File::create(world.work().join("almost")).unwrap();
        let taken = take_all_but(0);
        std::fs::rename(world.work().join("almost"), world.work().join("go")).unwrap();
        drop(go);
        // A directory that is gone from the process table needs no descriptor to be missed.
        let path = format!("/proc/{runner}");
        wait_until(PATIENCE, "the end of the runner", || !std::path::Path::new(&path).exists());
        drop(taken);
        let text = world.text(&attempt);
        assert_eq!(text.stdout, "out\n");
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 6 }));
        world.assert_clean(&end);
    });
}
