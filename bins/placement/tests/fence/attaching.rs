//! Taking over: what comes again, and a runner that was silent for a while.

use crate::living::bind;
use crate::world;
use placement::{Code, ExecutionState, Exit, Generation, InputOutcome, StreamName};
use placement_world::contract::attempt::RunnerStatus;
use placement_world::identity::Signal;
use placement_world::protocol::{Chunk, FromRunner};
use placement_world::{Data, Known, shell};
use std::fs;

/// What comes over a link, each with its attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Came {
    Chunk(u64, StreamName, u64, Vec<u8>),
    End(u64, StreamName, u64, bool),
    Exit(Option<Exit>, bool, bool),
}

/// Reads so many things, all of one attachment; the exit last, wherever it came.
#[track_caller]
fn take(data: &mut Data, of: u64, count: usize) -> Vec<Came> {
    let mut came = Vec::new();
    while came.len() < count {
        let (generation, what) = match data.receive().expect("the link stays open") {
            FromRunner::Chunk(it) => {
                (it.generation, Came::Chunk(it.sequence, it.stream, it.offset, it.bytes))
            }
            FromRunner::Eof(it) => {
                (it.generation, Came::End(it.sequence, it.stream, it.offset, it.truncated))
            }
            FromRunner::Exit { generation, notice } => {
                (generation, Came::Exit(notice.exit, notice.uncertain, notice.stopped))
            }
            other @ (FromRunner::Finished { .. }
            | FromRunner::InputAck(_)
            | FromRunner::ResizeAck(_)) => panic!("{other:?}"),
        };
        assert_eq!(generation, Generation::new(of));
        came.push(what);
    }
    came.sort_by_key(|what| matches!(what, Came::Exit(..)));
    came
}

#[track_caller]
fn chunk(data: &mut Data) -> Chunk {
    match data.receive() {
        Some(FromRunner::Chunk(chunk)) => chunk,
        other => panic!("a chunk comes: {other:?}"),
    }
}

fn sequences(came: &[Came]) -> Vec<u64> {
    let of = |what: &Came| match what {
        Came::Chunk(sequence, ..) | Came::End(sequence, ..) => Some(*sequence),
        Came::Exit(..) => None,
    };
    came.iter().filter_map(of).collect()
}

#[test]
fn the_ends_of_the_streams_and_the_exit_come_again_to_the_next_attachment() {
    let world = world();
    // In memory, so that the runner waits for a recipient after the end.
    let script = "echo out; while [ ! -e go ]; do sleep 0.01; done; exec 1>&-; exit 3";
    let attempt = world.launch(shell(script).spool_bytes_max(0));
    let door = world.door(attempt.id());
    let (_, mut first) = bind(&door, 2);
    let said = chunk(&mut first);
    assert_eq!((said.sequence, said.bytes.as_slice()), (1, &b"out\n"[..]));
    fs::write(world.work().join("go"), "").unwrap();
    let seen = take(&mut first, 2, 3);
    assert_eq!(sequences(&seen), [2, 3], "both ends, numbered on");
    assert_eq!(seen[2], Came::Exit(Some(Exit::Code { code: 3 }), false, false));

    let (reply, mut second) = bind(&door, 3);
    assert_eq!(reply.consumed_through, 0);
    let again = take(&mut second, 3, 4);
    assert_eq!(again[0], Came::Chunk(1, StreamName::Stdout, 0, b"out\n".to_vec()));
    assert_eq!(again[1..], seen[..]);
    // What is acknowledged by now does not, and the exit does.
    second.acknowledge(2);
    let (reply, mut third) = bind(&door, 4);
    assert_eq!(reply.consumed_through, 2);
    assert_eq!(take(&mut third, 4, 2), seen[1..]);
    third.acknowledge(3);
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn an_exited_attempt_is_attached_to_while_its_runner_waits_for_a_recipient() {
    let world = world();
    let attempt = world.launch(shell("echo out; echo err >&2; exit 3").spool_bytes_max(0));
    let id = attempt.id().clone();
    let exited =
        |runner: &RunnerStatus| runner.execution == ExecutionState::Exited && runner.eof_seen == 2;
    world.wait_for_runner(&id, "the exit and both ends", exited);
    let next = world.another_host().attach(&id).unwrap();
    let text = world.text(&next);
    assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("out\n", "err\n"));
    let end = next.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 3 }));
    assert!(world.kinds(&id).contains(&"attach.fenced"), "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn an_attachment_to_a_runner_that_stands_still_changes_nothing_and_the_next_succeeds() {
    let world = world();
    let attempt = world.launch(shell("read line; echo got $line; exit 6").stdin_pipe());
    let id = attempt.id().clone();
    let runner = Known::of(world.runner_pid(&id));
    runner.signal(Signal::Stop);
    let silent = world.another_host().attach(&id).unwrap_err();
    assert_eq!(silent.code(), Code::Unavailable, "nobody welcomes it, so nothing was changed");
    let recorded = world.host().attempt(&id).unwrap();
    assert_eq!(recorded.execution_state, ExecutionState::Running);
    assert_eq!(recorded.attachment_generation, Generation::FIRST);
    runner.signal(Signal::Cont);
    let next = world.another_host().attach(&id).unwrap();
    assert_eq!(next.attempt().unwrap().attachment_generation, Generation::new(2));
    assert_eq!(next.write_input(b"it\n").unwrap(), InputOutcome::Accepted);
    assert_eq!(world.text(&next).stdout, "got it\n");
    let end = next.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 6 }));
    world.assert_clean(&end);
}

#[test]
fn however_often_it_is_taken_over_the_output_has_no_gap_and_no_repetition() {
    let world = world();
    let script = "seq 400000 | tee all; touch said; while [ ! -e go ]; do sleep 0.01; done";
    let attempt = world.launch_shell(script);
    let door = world.door(attempt.id());
    let (mut seen, mut next) = (Vec::new(), 1);
    for generation in 2..22 {
        let (reply, mut data) = bind(&door, generation);
        assert_eq!(reply.consumed_through + 1, next);
        // Two are taken, and one of them is acknowledged.
        let (first, second) = (chunk(&mut data), chunk(&mut data));
        assert_eq!((first.sequence, first.offset), (next, seen.len() as u64));
        assert_eq!(second.sequence, next + 1);
        seen.extend(first.bytes);
        data.acknowledge(next);
        next += 1;
    }
    world.wait_for_file("said");
    let wanted = fs::read(world.work().join("all")).unwrap();
    let (_, mut data) = bind(&door, 22);
    while seen.len() < wanted.len() {
        let came = chunk(&mut data);
        assert_eq!((came.sequence, came.offset), (next, seen.len() as u64));
        seen.extend(came.bytes);
        data.acknowledge(next);
        next += 1;
    }
    assert!(seen == wanted, "{} bytes of {}", seen.len(), wanted.len());
    fs::write(world.work().join("go"), "").unwrap();
    let ends = take(&mut data, 22, 3);
    assert_eq!(sequences(&ends), [next, next + 1], "both ends, numbered on");
    data.acknowledge(next + 1);
    world.assert_clean(&attempt.finish().unwrap());
}
