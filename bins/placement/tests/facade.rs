//! The library as an embedder uses it.

use placement::{
    AttemptHandle, CleanupScope, Code, ExecutionState, Exit, InputOutcome, Launch, OnHostLoss,
    Placement, Seen, StreamName,
};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, World};
use std::sync::Barrier;
use std::time::{Duration, Instant};

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn shell(script: &str) -> Launch {
    Launch::program("/bin/sh").args(["-c", script])
}

#[track_caller]
fn wait_for_file(world: &World, name: &str) {
    wait_until(PATIENCE, name, || world.work().join(name).exists());
}

#[track_caller]
fn all_bytes(attempt: &AttemptHandle) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in attempt.output() {
        bytes.extend(chunk.expect("the stream holds").into_bytes());
    }
    bytes
}

#[test]
fn a_host_may_be_shared_by_threads() {
    const fn shared<T: Send + Sync>() {}
    shared::<Placement>();
    shared::<AttemptHandle>();
}

#[test]
fn a_launch_ends_with_proof() {
    let world = world();
    let attempt = world.launch_shell("echo out; echo err >&2; exit 3");
    let text = world.text(&attempt);
    assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("out\n", "err\n"));
    for stream in StreamName::ALL {
        assert_eq!(attempt.is_truncated(*stream), Some(false));
    }
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 3 }));
    let rows = end.attempt().evidence_count;
    let told = end.to_string();
    assert!(told.starts_with("exited 3; tree gone ("), "{told}");
    assert!(told.ends_with(&format!("; {rows} evidence rows")), "{told}");
    world.assert_clean(&end);
}

#[test]
fn what_only_a_group_has_is_said_of_a_group() {
    let world = world();
    let launch = shell("exit 0").require(CleanupScope::ProcessGroup);
    let end = world.launch(launch).finish().unwrap();
    assert!(end.to_string().starts_with("exited 0; group gone; "), "{end}");
    world.assert_clean(&end);
}

#[test]
fn output_that_nobody_reads_does_not_hold_the_end_back() {
    let world = world();
    let attempt = world.launch_shell("head -c 300000 /dev/zero");
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 0 }));
    world.assert_clean(&end);
}

#[test]
fn output_larger_than_the_window_comes_whole_and_in_order() {
    let world = world();
    let attempt = world.launch_shell("seq 1 200000");
    let bytes = all_bytes(&attempt);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.lines().eq((1..=200_000).map(|number: u32| number.to_string())));
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn output_held_in_memory_comes_whole() {
    let world = world();
    let attempt = world.launch(shell("seq 1 200000").spool_bytes_max(0));
    let bytes = all_bytes(&attempt);
    assert!(bytes.ends_with(b"\n200000\n"), "{} bytes", bytes.len());
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn text_is_whole_whatever_the_chunks() {
    let world = world();
    let script =
        r"printf '\355\225'; sleep 0.05; printf '\234 \360\237'; sleep 0.05; printf '\216\211'";
    let attempt = world.launch_shell(script);
    assert_eq!(world.text(&attempt).stdout, "한 🎉");
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn what_was_not_acknowledged_comes_again_with_its_sequence() {
    let world = world();
    let script = "for i in 1 2 3; do echo $i; sleep 0.1; done; touch said; sleep 600";
    let attempt = world.launch(shell(script).on_host_loss(OnHostLoss::Keep));
    let id = attempt.id().clone();
    wait_for_file(&world, "said");
    let mut output = attempt.output();
    let first = output.next().unwrap().unwrap();
    let second = output.next().unwrap().unwrap();
    attempt.detach();

    let other = world.another_host();
    let live = other.attempts().live().unwrap().attempts;
    assert_eq!(live.iter().map(|attempt| &attempt.attempt_id).collect::<Vec<_>>(), [&id]);
    let attached = other.attach(&id).unwrap();
    let again = attached.output().next().unwrap().unwrap();
    assert_eq!(again, second, "the first was acknowledged: {first:?}");
    attached.stop_forced().unwrap();
    world.assert_clean(&attached.finish().unwrap());
}

#[test]
fn dropping_a_handle_stops_the_attempt_without_waiting() {
    let world = world();
    let launch = shell("trap '' TERM; touch up; while :; do sleep 0.05; done");
    let attempt = world.launch(launch.grace(Duration::from_secs(3)));
    let id = attempt.id().clone();
    wait_for_file(&world, "up");
    let started = Instant::now();
    drop(attempt);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let end = world.host().wait(&id, None).unwrap().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
    world.host().cleanup(&id).unwrap();
    world.assert_no_survivor(&id);
}

#[test]
fn dropping_a_kept_attempt_lets_it_run() {
    let world = world();
    let launch = shell("touch up; while [ ! -e go ]; do sleep 0.02; done; exit 5");
    let attempt = world.launch(launch.on_host_loss(OnHostLoss::Keep));
    let id = attempt.id().clone();
    wait_for_file(&world, "up");
    drop(attempt);
    std::fs::write(world.work().join("go"), "").unwrap();
    let end = world.host().wait(&id, None).unwrap().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 5 }));
    assert!(!world.kinds(&id).contains(&"stop.requested"), "{}", world.told(&id));
}

#[test]
fn dropping_an_ended_attempt_asks_for_nothing() {
    let world = world();
    let attempt = world.launch_shell("true");
    let id = attempt.id().clone();
    all_bytes(&attempt);
    attempt.wait().unwrap();
    drop(attempt);
    assert!(!world.kinds(&id).contains(&"stop.requested"), "{}", world.told(&id));
}

#[test]
fn a_deadline_stops_the_child() {
    let world = world();
    let attempt = world.launch(shell("sleep 600").deadline(Duration::from_millis(200)));
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 15, core: false }));
    assert!(world.kinds(&end.attempt().attempt_id).contains(&"deadline.elapsed"));
    world.assert_clean(&end);
}

#[test]
fn input_of_any_size_goes_through_one_thread() {
    let world = world();
    let attempt = world.launch(Launch::program("cat").stdin_pipe());
    let input: Vec<u8> = (0..=u8::MAX).cycle().take(2 * 1024 * 1024).collect();
    assert_eq!(attempt.write_input(&input).unwrap(), InputOutcome::Accepted);
    attempt.close_input().unwrap();
    assert!(all_bytes(&attempt) == input);
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn one_thread_writes_while_another_reads_from_memory() {
    let world = world();
    let attempt = world.launch(Launch::program("cat").stdin_pipe().spool_bytes_max(0));
    let input = vec![b'x'; 2 * 1024 * 1024];
    let writer = attempt.input();
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(writer.write(&input).unwrap(), InputOutcome::Accepted);
            writer.close().unwrap();
        });
        all_bytes(&attempt)
    });
    assert_eq!(output.len(), input.len());
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_child_that_does_not_read_is_an_outcome_and_no_error() {
    let world = world();
    for script in ["exit 1", "echo no login >&2; exit 1", "head -c 10 >/dev/null; exit 1"] {
        let attempt = world.launch(shell(script).stdin_pipe());
        let outcome = attempt.write_input(&vec![0; 2 * 1024 * 1024]).unwrap();
        assert_ne!(outcome, InputOutcome::Accepted, "{script}");
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 1 }), "{script}");
        world.assert_clean(&end);
    }
}

#[test]
fn a_child_without_an_input_takes_none() {
    let world = world();
    let attempt = world.launch_shell("sleep 600");
    let outcome = attempt.write_input(b"x").unwrap();
    assert!(matches!(outcome, InputOutcome::NotAccepted(_)), "{outcome:?}");
    attempt.stop_forced().unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_text_is_the_whole_input() {
    let world = world();
    let attempt = world.launch(Launch::program("cat").stdin_text("do it\n"));
    assert_eq!(world.text(&attempt).stdout, "do it\n");
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn the_same_key_follows_the_recorded_attempt() {
    let world = world();
    let launch = || shell("echo once >> count; echo out; exit 4").key("ci-4711");
    let first = world.launch(launch());
    assert!(!first.is_replay());
    let id = first.id().clone();
    assert_eq!(world.text(&first).stdout, "out\n");
    let end = first.finish().unwrap();

    let again = world.launch(launch());
    assert!(again.is_replay());
    assert_eq!(again.id(), &id);
    assert_eq!(world.text(&again).stdout, "", "it was acknowledged");
    assert_eq!(again.finish().unwrap().exit(), end.exit());
    let count = std::fs::read_to_string(world.work().join("count")).unwrap();
    assert_eq!(count, "once\n");
}

#[test]
fn a_replay_needs_no_directory_any_more() {
    let world = world();
    let gone = world.work().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let launch = || shell("exit 0").write(&gone).key("k");
    let end = world.host().launch(launch()).unwrap().finish().unwrap();
    std::fs::remove_dir(&gone).unwrap();
    let again = world.host().launch(launch()).unwrap();
    assert_eq!(again.id(), &end.attempt().attempt_id);
    let fresh = world.host().launch(shell("exit 0").write(&gone)).unwrap_err();
    assert_eq!(fresh.code(), Code::Invalid);
}

#[test]
fn a_replay_does_not_depend_on_what_is_measured_now() {
    let world = world();
    let launch = || shell("exit 0").key("k");
    let weaker = launch().require(CleanupScope::ProcessGroup);
    let end = world.launch(weaker).finish().unwrap();
    let again = world.launch(launch());
    assert_eq!(again.id(), &end.attempt().attempt_id);
}

#[test]
fn one_key_from_many_threads_is_one_child() {
    let world = world();
    let barrier = Barrier::new(8);
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let host = world.another_host();
                    barrier.wait();
                    let launch = shell("echo once >> count; sleep 0.3; exit 6").key("k");
                    let attempt = host.launch(launch.write(world.work())).unwrap();
                    let end = attempt.finish().unwrap();
                    assert_eq!(end.exit(), Some(Exit::Code { code: 6 }));
                    end.attempt().attempt_id.clone()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    let count = std::fs::read_to_string(world.work().join("count")).unwrap();
    assert_eq!(count, "once\n", "{}", world.told(&ids[0]));
}

#[test]
fn a_taken_attempt_says_so_and_is_not_stopped_by_its_former_handle() {
    let world = world();
    let script = "touch up; while [ ! -e go ]; do sleep 0.02; done; echo late";
    let attempt = world.launch_shell(script);
    let id = attempt.id().clone();
    wait_for_file(&world, "up");
    let other = world.another_host();
    let attached = other.attach(&id).unwrap();
    assert_eq!(all_bytes(&attempt), b"");
    assert!(attempt.is_taken());
    drop(attempt);
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(all_bytes(&attached), b"late\n");
    let end = attached.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 0 }), "{}", world.told(&id));
}

#[test]
fn an_observer_sees_everything_from_the_start() {
    let world = world();
    let attempt = world.launch_shell("echo one; echo two");
    let id = attempt.id().clone();
    world.text(&attempt);
    world.assert_clean(&attempt.finish().unwrap());
    let mut observer = world.host().observe(&id).unwrap();
    let mut bytes = Vec::new();
    loop {
        match observer.next(Some(Instant::now() + PATIENCE)).unwrap() {
            Seen::Chunk(chunk) => bytes.extend(chunk.into_bytes()),
            Seen::Gap { .. } | Seen::Nothing => panic!("everything is kept"),
            Seen::End => break,
        }
    }
    assert_eq!(bytes, b"one\ntwo\n");
}

#[test]
fn a_program_that_is_not_there_is_refused_and_recorded() {
    let world = world();
    let launch = || Launch::program("/nowhere/program").key("k");
    let error = world.host().launch(launch()).unwrap_err();
    assert_eq!(error.code(), Code::ExecutableNotFound);
    let recorded = world.host().launch(launch()).unwrap();
    let end = recorded.finish().unwrap();
    assert_eq!(end.exit(), None);
    assert_eq!(end.refusal_code(), Some(Code::ExecutableNotFound));
    assert!(end.to_string().starts_with("never started; "), "{end}");
    world.assert_clean(&end);
}

#[test]
fn a_stop_ends_everything_that_the_child_started() {
    let world = world();
    let script = "setsid sh -c 'sleep 600 & sleep 600' & setsid -f sleep 600; touch up; sleep 600";
    let attempt = world.launch_shell(script);
    wait_for_file(&world, "up");
    attempt.stop().unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.attempt().execution_state, ExecutionState::Exited);
    world.assert_clean(&end);
}

#[test]
fn a_host_launches_in_more_directories_than_it_admits_at_once() {
    let world = world();
    let mut number = 0;
    for _ in 0..17 {
        let mut launch = shell("exit 0");
        for _ in 0..15 {
            number += 1;
            let directory = world.work().join(number.to_string());
            std::fs::create_dir(&directory).unwrap();
            launch = launch.read(directory);
        }
        let end = world.launch(launch).finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 0 }));
    }
    assert!(number + 17 > 256);
}

#[test]
fn a_kept_home_stays_after_the_cleanup() {
    let world = world();
    let attempt = world.launch(shell("echo kept > $HOME/note").keep_home());
    let end = attempt.finish().unwrap();
    assert!(end.is_success(), "{}", world.told(&end.attempt().attempt_id));
    let homes = world.homes_left();
    assert_eq!(homes.len(), 1);
    assert_eq!(std::fs::read_to_string(homes[0].join("note")).unwrap(), "kept\n");
}
