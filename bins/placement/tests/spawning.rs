//! Making processes: many of them, none twice, and none where there is no room.

use placement::{
    CleanupScope, CleanupState, Code, ExecutionState, Exit, ExitSource, Mechanism, StopMode,
};
use placement_testkit::{Random, is_root, run_as_ordinary_user, wait_until};
use placement_world::{Known, PATIENCE, Program, World, contained, leader_in, shell, zombies_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// What one test counts in this process, no other may change meanwhile.
static COUNTED: RwLock<()> = RwLock::new(());

fn world() -> World {
    World::new(PROGRAM)
}

fn not_counted() -> RwLockReadGuard<'static, ()> {
    COUNTED.read().unwrap_or_else(PoisonError::into_inner)
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn three_hundred_attempts_leave_neither_zombies_nor_descriptors_nor_threads() {
    let _alone = COUNTED.write().unwrap_or_else(PoisonError::into_inner);
    let world = world();
    // Each child abandons two processes, one of them in a session of its own.
    let launch = |number: usize| {
        let script = format!("(sleep 0 &); (setsid sleep 0 &); exit {}", number % 200);
        let attempt = world.launch(shell(&script));
        let end = attempt.finish().unwrap();
        let code = i32::try_from(number % 200).unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code }), "{end}");
        assert_eq!(end.attempt().cleanup_state, CleanupState::Complete);
    };
    let at_rest = || {
        wait_until(PATIENCE, "the reaping of every runner", || zombies_of(std::process::id()) == 0);
        (entries("/proc/self/fd"), entries("/proc/self/task"))
    };
    launch(0);
    let before = at_rest();
    for fifty in 0..6 {
        std::thread::scope(|scope| {
            for thread in 0..5 {
                scope.spawn(move || {
                    (0..10).for_each(|each| launch(fifty * 50 + thread * 10 + each));
                });
            }
        });
        wait_until(PATIENCE, "as few descriptors and threads as before", || at_rest() == before);
    }
    let attempts = world.host().attempts().all().unwrap().attempts;
    assert_eq!(attempts.len(), 301);
    assert!(world.homes_left().is_empty() && world.temporary_left().is_empty());
}

#[test]
fn a_runner_reaps_what_its_child_abandons_and_still_sees_the_child() {
    let _together = not_counted();
    let world = world();
    for mechanism in world.mechanisms() {
        let script = "i=0; while [ $i -lt 40 ]; do (sleep 0 &); i=$((i+1)); done
            echo up > up; while [ ! -e go ]; do sleep 0.02; done; exit 9";
        let attempt = world.launch(shell(script).mechanism(mechanism));
        world.wait_for_file("up");
        let runner = world.runner_pid(attempt.id());
        wait_until(PATIENCE, "the reaping of every orphan", || zombies_of(runner) == 0);
        assert_eq!(attempt.attempt().unwrap().execution_state, ExecutionState::Running);
        std::fs::write(world.work().join("go"), "").unwrap();
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 9 }));
        world.assert_clean(&end);
        for name in ["up", "go"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}

#[test]
fn many_starts_of_one_attempt_make_one_child() {
    let _together = not_counted();
    let world = world();
    let stages: Vec<_> = (0..6).map(|_| world.stage()).collect();
    let id = stages[0].prepare(&stages[0].request("one", "echo $$ >> pids; exec sleep 300"));
    let started = std::thread::scope(|scope| {
        let starts: Vec<_> = stages.iter().map(|stage| scope.spawn(|| stage.start(&id))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
    });
    world.wait_for_file("pids");
    // Whoever came second is told that the attempt was claimed, or what became of it.
    for refusal in started.iter().filter_map(|started| started.as_ref().err()) {
        assert_eq!(refusal.code, Code::Conflict, "{refusal}");
    }
    let count = |kind| world.kinds(&id).iter().filter(|seen| **seen == kind).count();
    assert_eq!(count("runner.started"), 1, "{}", world.told(&id));
    // A start of what runs already changes nothing.
    let kinds = world.kinds(&id);
    let again = stages[1].start(&id).unwrap();
    assert_eq!(again.attempt.execution_state, ExecutionState::Running);
    assert!(again.streams.is_none());
    assert_eq!(world.kinds(&id), kinds);
    world.host().stop(&id, StopMode::Forced).unwrap();
    world.host().wait(&id, None).unwrap();
    world.host().cleanup(&id).unwrap();
    let pids = std::fs::read_to_string(world.work().join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 1, "{pids}");
    world.assert_nothing_left(&id);
}

#[test]
fn a_runner_that_ends_before_its_claim_leaves_an_intent_that_can_be_started() {
    let _together = not_counted();
    let world = world();
    let (broken, whole) = (world.stage_with_runner("/bin/false"), world.stage());
    let mut request = whole.request("one", "echo ran > ran");
    // What cannot be measured with such a runner is not required.
    request.required_cleanup = CleanupScope::ProcessGroup;
    let id = whole.prepare(&request);
    let refused = broken.start(&id).unwrap_err();
    assert_eq!(refused.code, Code::Unavailable, "{refused}");
    assert_eq!(whole.recorded(&id).execution_state, ExecutionState::Intended);
    whole.start(&id).unwrap();
    world.host().wait(&id, None).unwrap();
    world.host().cleanup(&id).unwrap();
    assert!(world.work().join("ran").exists());
    world.assert_nothing_left(&id);
}

#[test]
fn a_runner_killed_at_any_moment_never_leaves_a_child_that_is_not_recorded() {
    let _together = not_counted();
    let world = world();
    let stage = world.stage();
    let mut random = Random::seeded(63);
    let mechanisms: Vec<_> = world.mechanisms().into_iter().map(Some).chain([None]).collect();
    for round in 0..24 {
        let mechanism = mechanisms[round % mechanisms.len()];
        let script = format!("echo $$ > ran-{round}; exec sleep 300");
        let request = contained(stage.request(&format!("kill-{round}"), &script), mechanism);
        let id = stage.prepare(&request);
        let delay = Duration::from_micros(random.below(20_000));
        std::thread::scope(|scope| {
            // Refused, or uncertain, or started: as far as it came.
            scope.spawn(|| stage.start(&id).ok());
            wait_until(PATIENCE, "the claim", || stage.recorded(&id).runner.is_some());
            let claimed = Instant::now();
            while claimed.elapsed() < delay {
                std::thread::yield_now();
            }
            Known::of(world.runner_pid(&id)).kill();
        });
        wait_until(PATIENCE, "the settlement by the living host", || {
            !stage.recorded(&id).execution_state.is_live()
        });
        let attempt = stage.recorded(&id);
        let evidence = world.host().evidence(&id, 0, None).unwrap();
        let told = world.told(&id);
        let leader = leader_in(&evidence);
        let ran = world.work().join(format!("ran-{round}"));
        assert!(leader.is_some() || !ran.exists(), "it ran unrecorded:\n{told}");
        wait_until(PATIENCE, "the end of the child", || {
            leader.is_none_or(|pid| !std::fs::exists(format!("/proc/{pid}/exe")).unwrap_or(false))
        });
        // Under a subreaper the proof of a tree ends with the runner; else everything is settled.
        let lost = mechanism == Some(Mechanism::Subreaper) && leader.is_some();
        if lost && attempt.execution_state == ExecutionState::Uncertain {
            assert_eq!(stage.service().cleanup(&id).unwrap_err().code, Code::Conflict, "{told}");
            assert!(world.home(&id).is_dir(), "{told}");
            world.assert_verified(&id);
        } else {
            assert_eq!(attempt.execution_state, ExecutionState::Exited, "{told}");
            if leader.is_none() {
                assert!(world.kinds(&id).contains(&"child.not_started"), "{told}");
            }
            wait_until(PATIENCE, "the cleanup", || stage.service().cleanup(&id).is_ok());
            world.assert_verified(&id);
            assert!(!world.home(&id).exists(), "{told}");
        }
    }
}

/// Counts the tasks of this user, which is what the limit of processes counts.
fn tasks_of_this_user() -> u64 {
    let own = std::fs::metadata("/proc/self").expect("/proc is mounted").uid();
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let tasks = processes
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
        // One that has ended meanwhile has no tasks.
        .filter(|entry| entry.metadata().is_ok_and(|facts| facts.uid() == own))
        .map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    u64::try_from(tasks.sum::<usize>()).expect("a count fits")
}

#[test]
fn where_there_is_no_room_for_a_process_the_start_fails_with_its_reason() {
    let _alone = COUNTED.write().unwrap_or_else(PoisonError::into_inner);
    if is_root() {
        // Root is not bound by the limit.
        let test = "where_there_is_no_room_for_a_process_the_start_fails_with_its_reason";
        if let Err(reason) = run_as_ordinary_user(test) {
            println!("not tested as root: {reason}");
        }
        return;
    }
    let world = world();
    let stage = world.stage();
    let mechanisms: Vec<_> = world.mechanisms().into_iter().map(Some).chain([None]).collect();
    // What one service starts once is started.
    let id = stage.prepare(&stage.request("first", "exit 0"));
    stage.start(&id).unwrap();
    world.host().wait(&id, None).unwrap();
    let before = getrlimit(Resource::Nproc);
    let mut without_a_child = 0;
    for room in 0..5 {
        for mechanism in &mechanisms {
            let label = mechanism.map_or("group", Mechanism::label);
            let script = format!("echo $$ >> ran-{room}-{label}");
            let request = stage.request(&format!("room-{room}-{label}"), &script);
            let id = stage.prepare(&contained(request, *mechanism));
            wait_until(PATIENCE, "the reaping of every runner", || {
                zombies_of(std::process::id()) == 0
            });
            let current = Some(tasks_of_this_user() + room);
            setrlimit(Resource::Nproc, Rlimit { current, ..before }).unwrap();
            let started = stage.start(&id);
            setrlimit(Resource::Nproc, before).unwrap();
            let told = world.told(&id);
            let ran = world.work().join(format!("ran-{room}-{label}"));
            if let Err(refusal) = &started {
                assert_eq!(refusal.code, Code::Unavailable, "{refusal}\n{told}");
                assert!(!ran.exists(), "{told}");
            }
            world.host().wait(&id, None).unwrap();
            let attempt = stage.recorded(&id);
            if attempt.execution_state == ExecutionState::Intended {
                // No runner came to its claim: the same start succeeds where there is room again.
                assert!(started.is_err(), "{told}");
                stage.start(&id).unwrap();
                world.host().wait(&id, None).unwrap();
            } else if started.is_err() {
                let kinds = world.kinds(&id);
                assert!(kinds.contains(&"child.not_started"), "{told}");
                assert_eq!(attempt.exit_source, Some(ExitSource::Runner), "{told}");
                without_a_child += 1;
            }
            let cleaned = stage.service().cleanup(&id).unwrap();
            assert_eq!(cleaned.execution_state, ExecutionState::Exited, "{}", world.told(&id));
            world.assert_verified(&id);
        }
    }
    assert!(without_a_child > 0, "a runner had room and its child had none");
    assert!(world.homes_left().len() <= 1, "only that of the first may be left");
}

#[test]
fn a_program_that_can_have_no_thread_says_so_and_makes_nothing() {
    let _together = not_counted();
    if is_root() {
        // Root is not bound by the limit.
        let test = "a_program_that_can_have_no_thread_says_so_and_makes_nothing";
        if let Err(reason) = run_as_ordinary_user(test) {
            println!("not tested as root: {reason}");
        }
        return;
    }
    let program = Program::new(PROGRAM);
    let plain = program.command(["run", "--", "/bin/true"]);
    let mut limited = prlimit(&["--nproc=1:1"]);
    limited.arg(plain.get_program()).args(plain.get_args()).current_dir(program.work());
    limited.env("HOME", program.user_home()).stdin(Stdio::null());
    let Ok(said) = limited.output() else {
        println!("not tested here: prlimit (util-linux) is not installed");
        return;
    };
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(125), "{stderr}");
    assert!(stderr.starts_with("placement: UNAVAILABLE: "), "{stderr}");
    assert!(!program.root().exists());
}

#[expect(clippy::disallowed_methods, reason = "a test runs the program under a limit")]
fn prlimit(arguments: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command.args(arguments);
    command
}
