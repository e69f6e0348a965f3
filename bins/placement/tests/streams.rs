//! Output from the child to its recipient: whole, in order, bounded.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use placement::{
    AttemptHandle, AttemptId, ExecutionState, Exit, Launch, Leftovers, StopMode, StreamName,
    Timeouts,
};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, Survivors, World, peak_memory_bytes, shell};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1024 * 1024;
/// Within this a runner answers.
const FENCE: Duration = Duration::from_secs(2);

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn in_memory(script: &str) -> Launch {
    shell(script).spool_bytes_max(0)
}

#[track_caller]
fn wait_until_full(world: &World, id: &AttemptId) {
    world.wait_for_runner(id, "a full spool", |runner| runner.output_full);
}

#[track_caller]
fn assert_whole(attempt: &AttemptHandle) {
    for stream in StreamName::ALL {
        assert_eq!(attempt.is_truncated(*stream), Some(false), "{stream}");
    }
}

#[track_caller]
fn assert_same(got: &[u8], wanted: &[u8]) {
    let difference = got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
    assert_eq!((got.len(), difference), (wanted.len(), None));
}

#[test]
fn sequences_grow_and_offsets_count_each_stream() {
    let world = world();
    let attempt = world.launch_shell(
        "for i in 1 2 3 4 5 6; do head -c 70000 /dev/zero; head -c 50000 /dev/zero >&2; done",
    );
    let (mut sequence, mut offsets) = (0, BTreeMap::new());
    for chunk in attempt.output() {
        let chunk = chunk.unwrap();
        assert!(chunk.sequence() > sequence);
        sequence = chunk.sequence();
        let offset = offsets.entry(chunk.stream()).or_insert(0);
        assert_eq!(chunk.offset(), *offset);
        assert!((1..=65_536).contains(&chunk.bytes().len()));
        *offset += chunk.bytes().len() as u64;
    }
    assert_eq!(offsets[&StreamName::Stdout], 420_000);
    assert_eq!(offsets[&StreamName::Stderr], 300_000);
    assert_whole(&attempt);
}

#[test]
fn the_child_starts_in_the_granted_directory() {
    let world = world();
    let attempt = world.launch(shell("pwd -P; echo $GIVEN").env("GIVEN", "a value"));
    assert_eq!(world.text(&attempt).stdout, format!("{}\na value\n", world.work()));
}

#[test]
fn a_full_memory_spool_blocks_the_child_until_somebody_reads() {
    let world = world();
    let attempt = world.launch(in_memory("seq 120000 | tee all; touch done"));
    wait_until_full(&world, attempt.id());
    let runner = world.runner(attempt.id());
    assert!(runner.unacknowledged_bytes <= 256 * 1024, "{runner:?}");
    assert_eq!((runner.execution, runner.eof_seen), (ExecutionState::Running, 0));
    assert!(!world.work().join("done").exists());

    let bytes = world.bytes(&attempt);
    assert_same(&bytes, &std::fs::read(world.work().join("all")).unwrap());
    assert_whole(&attempt);
    let end = attempt.finish().unwrap();
    assert!(!world.kinds(&end.attempt().attempt_id).contains(&"output.lost"));
    world.assert_clean(&end);
}

#[test]
fn time_with_paused_reads_is_no_time_of_the_drain() {
    let world = world();
    // What does not fit the spool fits the pipe, so that the child can end.
    let launch = in_memory("exec head -c 320000 /dev/zero");
    let attempt = world.launch(launch.timeouts(Timeouts { drain_ms: 100, ..Timeouts::default() }));
    let id = attempt.id().clone();
    wait_until(PATIENCE, "the exit", || attempt.attempt().unwrap().exit.is_some());
    let exited = Instant::now();
    // Longer than the bound and than the silence that ends a drain.
    wait_until(PATIENCE, "the time of a drain", || exited.elapsed() > Duration::from_millis(700));
    let runner = world.runner(&id);
    assert_eq!((runner.execution, runner.eof_seen), (ExecutionState::Exited, 0));

    assert_eq!(world.bytes(&attempt).len(), 320_000);
    assert_whole(&attempt);
    let end = attempt.finish().unwrap();
    assert!(!world.kinds(&id).contains(&"output.drain_elapsed"), "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn what_is_in_the_pipe_counts_though_the_drain_is_over() {
    let world = world();
    let script = "(while [ ! -e end ]; do echo x; sleep 0.05; done
                   head -c 60000 /dev/zero; touch ended) & exit 0";
    let timeouts = Timeouts { drain_ms: 3000, ..Timeouts::default() };
    let attempt = world.launch(shell(script).leftovers(Leftovers::Keep).timeouts(timeouts));
    let id = attempt.id().clone();
    wait_until(PATIENCE, "the exit", || attempt.attempt().unwrap().exit.is_some());
    let exited = Instant::now();
    // The drain goes on, since the pipe is not silent, while its reader stands still.
    let runner = Pid::from_raw(i32::try_from(world.runner_pid(&id)).unwrap());
    kill(runner, Signal::SIGSTOP).unwrap();
    std::fs::write(world.work().join("end"), "").unwrap();
    world.wait_for_file("ended");
    wait_until(PATIENCE, "the end of the drain", || exited.elapsed() > Duration::from_secs(3));
    kill(runner, Signal::SIGCONT).unwrap();
    let bytes = world.bytes(&attempt);
    let begin = bytes.iter().position(|byte| *byte == 0).unwrap();
    assert!(bytes[begin..] == vec![0; 60_000]);
    assert_whole(&attempt);
    let end = attempt.finish().unwrap();
    assert!(!world.kinds(&id).contains(&"output.drain_elapsed"), "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn bytes_in_memory_that_nobody_fetches_are_a_recorded_loss() {
    let world = world();
    let launch = in_memory("echo lost; exit 4");
    let attempt = world.launch(launch.timeouts(Timeouts { retain_ms: 100, ..Timeouts::default() }));
    let end = attempt.wait().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 4 }));
    assert_eq!(end.attempt().runner, None);
    let kinds = world.kinds(attempt.id());
    let place = |kind| kinds.iter().position(|other| *other == kind);
    let (lost, finished) = (place("output.lost"), place("runner.finished"));
    assert!(lost.is_some() && lost < finished, "{}", world.told(attempt.id()));
    let row = end.evidence().iter().find(|row| row.kind.label() == "output.lost").unwrap();
    assert!(row.detail.contains("1 chunks, 5 bytes, consumed through 0"), "{}", row.detail);
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn an_acknowledgment_of_a_part_does_not_start_the_retention_anew() {
    let world = world();
    // Many small chunks: whoever pauses after each of them takes four times the retention for all.
    let launch = in_memory("for i in $(seq 40); do echo $i; sleep 0.02; done");
    let timeouts = Timeouts { retain_ms: 1000, ..Timeouts::default() };
    let attempt = world.launch(launch.timeouts(timeouts));
    let mut output = attempt.output();
    // The second one acknowledges the first, so that not everything is unacknowledged.
    for _ in 0..2 {
        output.next().unwrap().unwrap();
    }
    world.wait_for_runner(attempt.id(), "the end of both streams", |runner| runner.eof_seen == 2);
    let mut taken = 2;
    // No more than four are on their way, so the runner hears these one after the other.
    while let Some(Ok(_)) = output.next() {
        taken += 1;
        let begun = Instant::now();
        wait_until(PATIENCE, "a tenth of a second", || {
            begun.elapsed() > Duration::from_millis(100)
        });
    }
    drop(output);
    let end = attempt.wait().unwrap();
    let told = world.told(attempt.id());
    let lost = end.evidence().iter().find(|row| row.kind.label() == "output.lost");
    let lost = lost.unwrap_or_else(|| panic!("{taken} pieces were taken and none is lost\n{told}"));
    assert!(lost.detail.starts_with("after 1000 ms: "), "{}", lost.detail);
    assert!(!lost.detail.contains("consumed through 0"), "{}", lost.detail);
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_full_memory_spool_that_nobody_empties_is_a_recorded_loss_with_open_pipes() {
    let world = world();
    let launch = in_memory("exec head -c 320000 /dev/zero");
    let timeouts = Timeouts { retain_ms: 300, drain_ms: 100, ..Timeouts::default() };
    let attempt = world.launch(launch.timeouts(timeouts));
    let deadline = Some(Instant::now() + Duration::from_secs(10));
    let end = world.host().wait(attempt.id(), deadline).unwrap();
    let end = end.unwrap_or_else(|| panic!("it never ends:\n{}", world.told(attempt.id())));
    assert_eq!(end.attempt().runner, None);
    let kinds = world.kinds(attempt.id());
    assert!(kinds.contains(&"output.lost"), "{}", world.told(attempt.id()));
    assert!(!kinds.contains(&"output.drain_elapsed"), "{}", world.told(attempt.id()));
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn the_exit_is_a_fact_of_its_own_while_a_descendant_holds_the_pipe() {
    let world = world();
    let attempt = world.launch(shell("sleep 600 & echo out; exit 5").leftovers(Leftovers::Keep));
    let id = attempt.id().clone();
    assert_eq!(world.bytes(&attempt), b"out\n");
    for stream in StreamName::ALL {
        assert_eq!(attempt.is_truncated(*stream), Some(true), "{stream}");
    }
    let status = world.host().status(&id).unwrap();
    assert_eq!(status.attempt.execution_state, ExecutionState::Exited);
    assert_eq!(status.attempt.exit, Some(Exit::Code { code: 5 }));
    assert_eq!(status.liveness.alive, Some(false));
    let runner = status.runner.expect("the runner stays as long as the tree does");
    assert_eq!((runner.eof_seen, runner.descendants), (2, Some(1)), "{runner:?}");
    assert!(matches!(world.survivors(&id), Survivors::These(pids) if pids.len() == 1));
    let kinds = world.kinds(&id);
    let place = |kind| kinds.iter().position(|other| *other == kind);
    assert!(place("child.exited") < place("output.drain_elapsed"), "{}", world.told(&id));

    world.host().stop(&id, StopMode::Forced).unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 5 }), "the recorded exit stays");
    world.assert_clean(&end);
}

#[test]
fn twenty_megabytes_before_a_failure_are_all_there() {
    let world = world();
    let attempt = world.launch_shell("seq 2700000 | tee all; exit 137");
    assert_same(&world.bytes(&attempt), &std::fs::read(world.work().join("all")).unwrap());
    assert_whole(&attempt);
    assert_eq!(attempt.finish().unwrap().exit(), Some(Exit::Code { code: 137 }));
}

#[test]
fn a_line_that_a_deadline_cuts_off_is_delivered() {
    let world = world();
    let script = "printf 'whole\\npart'; exec sleep 600";
    let attempt = world.launch(shell(script).deadline(Duration::from_millis(300)));
    assert_eq!(world.text(&attempt).stdout, "whole\npart");
    assert_whole(&attempt);
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 15, core: false }));
    let kinds = world.kinds(&end.attempt().attempt_id);
    let place = |kind| kinds.iter().position(|other| *other == kind);
    assert!(place("deadline.elapsed").is_some());
    assert!(place("deadline.elapsed") < place("stop.requested"));
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the same program without placement says what is right"
)]
fn a_signal_and_its_core_flag_are_as_the_kernel_tells() {
    for limit in ["0", "$(ulimit -H -c)"] {
        let script = format!("ulimit -c {limit}; echo before; kill -SEGV $$");
        let world = world();
        let attempt = world.launch_shell(&script);
        assert_eq!(world.text(&attempt).stdout, "before\n");
        let exit = attempt.finish().unwrap().exit();
        let mut bare = Command::new("/bin/sh");
        let bare = bare.args(["-c", &script]).current_dir(world.work()).output().unwrap().status;
        let (signal, core) = (bare.signal().unwrap(), bare.core_dumped());
        assert_eq!(signal, 11);
        assert_eq!(exit, Some(Exit::Signal { signal, core }), "ulimit -c {limit}");
    }
}

#[test]
fn everything_written_right_before_the_exit_is_delivered() {
    let world = world();
    for _ in 0..5 {
        let attempt = world.launch_shell("exec head -c 307200 /dev/zero");
        assert_eq!(world.bytes(&attempt).len(), 307_200);
        assert_whole(&attempt);
        let end = attempt.finish().unwrap();
        assert!(end.is_success(), "{end}");
    }
}

#[test]
fn a_last_event_of_a_child_that_outlives_the_leader_is_delivered() {
    let world = world();
    let attempt = world.launch_shell(r#"(sleep 0.05; echo '{"type":"end"}') & exit 0"#);
    assert_eq!(world.text(&attempt).stdout, "{\"type\":\"end\"}\n");
    assert_whole(&attempt);
    assert!(attempt.finish().unwrap().is_success());
}

#[test]
fn a_stream_that_ends_at_the_size_of_a_pipe_is_whole() {
    let world = world();
    let attempt = world.launch_shell(r"printf '\042'; head -c 65535 /dev/zero | tr '\0' a");
    let bytes = world.bytes(&attempt);
    assert_eq!((bytes.len(), bytes[0], bytes[65_535]), (65_536, b'"', b'a'));
    assert_whole(&attempt);
    assert!(attempt.finish().unwrap().is_success());
}

#[test]
fn a_stop_is_answered_while_the_child_waits_for_a_full_spool() {
    let world = world();
    let attempt = world.launch_shell("exec cat /dev/zero");
    let id = attempt.id().clone();
    wait_until_full(&world, &id);
    let asked = Instant::now();
    let stopped = attempt.stop().unwrap();
    assert!(asked.elapsed() < FENCE);
    assert_ne!(stopped.execution_state, ExecutionState::Running);
    let end = attempt.wait().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 15, core: false }));
    // What was in the spool and in the pipe is still to be had.
    let bytes = world.bytes(&attempt);
    let (least, most) = (64 * MIB - 65_536, 64 * MIB + 2 * 65_536);
    assert!((least..=most).contains(&(bytes.len() as u64)), "{}", bytes.len());
    assert!(bytes == vec![0; bytes.len()]);
    assert_whole(&attempt);
    world.assert_clean(&attempt.finish().unwrap());
}

/// Checks a stream that repeats one block, wherever its chunks begin and end.
struct Repeated {
    block: Vec<u8>,
    total: usize,
}

impl Repeated {
    const BLOCK: usize = 8 * 1024 * 1024;

    /// A shell command that makes the block, waits for the file `go` and prints it so many times.
    fn script(times: usize) -> String {
        format!(
            "head -c {} /dev/urandom > block; touch ready; while [ ! -e go ]; do sleep 0.01; done
             for i in $(seq {times}); do cat block; done",
            Self::BLOCK
        )
    }

    fn of(world: &World) -> Self {
        let block = std::fs::read(world.work().join("block")).expect("the child made it");
        Self { block, total: 0 }
    }

    #[track_caller]
    fn take(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            let place = self.total % Self::BLOCK;
            let (now, later) = rest.split_at(rest.len().min(Self::BLOCK - place));
            assert!(*now == self.block[place..place + now.len()], "other bytes at {}", self.total);
            self.total += now.len();
            rest = later;
        }
    }
}

#[test]
fn a_gibibyte_that_nobody_reads_costs_no_memory_and_comes_whole_later() {
    let world = world();
    let attempt = world.launch_shell(&Repeated::script(128));
    let id = attempt.id().clone();
    world.wait_for_file("ready");
    let runner = world.runner_pid(&id);
    let bound = peak_memory_bytes(runner) + 256 * 1024 + MIB;
    std::fs::write(world.work().join("go"), "").unwrap();
    wait_until_full(&world, &id);
    let asked = Instant::now();
    let unread = world.runner(&id).unacknowledged_bytes;
    assert!(asked.elapsed() < FENCE);
    assert!((63 * MIB..=64 * MIB).contains(&unread), "{unread}");
    let peak = peak_memory_bytes(runner);
    assert!(peak <= bound, "peak {peak}, bound {bound}");

    let mut seen = Repeated::of(&world);
    // Nine blocks are more than the spool holds: the child still writes, so its runner lives.
    let last = 119 * Repeated::BLOCK;
    for chunk in attempt.output() {
        let before = seen.total;
        seen.take(chunk.unwrap().bytes());
        if before < last && seen.total >= last {
            let peak = peak_memory_bytes(runner);
            assert!(peak <= bound, "peak {peak}, bound {bound}");
        }
    }
    assert_eq!(seen.total, 128 * Repeated::BLOCK);
    assert_whole(&attempt);
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn two_hundred_megabytes_pass_a_slow_reader_without_loss_or_reorder() {
    let world = world();
    let attempt = world.launch_shell(&Repeated::script(25));
    let id = attempt.id().clone();
    world.wait_for_file("ready");
    std::fs::write(world.work().join("go"), "").unwrap();
    let mut seen = Repeated::of(&world);
    for (count, chunk) in attempt.output().enumerate() {
        // Slowly at first: with the spool full again and again, the child waits and goes on.
        if count < 50 {
            wait_until_full(&world, &id);
        }
        seen.take(chunk.unwrap().bytes());
    }
    assert_eq!(seen.total, 25 * Repeated::BLOCK);
    assert_whole(&attempt);
    assert!(attempt.finish().unwrap().is_success());
}
