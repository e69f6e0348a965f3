//! Taking over: who is bound, what comes again, and who is refused.

use placement::{
    AttemptHandle, AttemptId, Code, ExecutionState, Generation, Leftovers, OnHostLoss, StreamName,
};
use placement_testkit::wait_until;
use placement_world::protocol::{
    Attach, AttachRefused, AttachReply, ControlAnswer, ControlCall, FromRecipient, FromRunner,
    RefusedWhy, Stop, StopMode,
};
use placement_world::{Data, Door, PATIENCE, RecipientId, Running, Shut, World, shell};
use std::fs::File;
use std::process::{Command, Stdio};

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn attach(recipient: &str, generation: u64, adopt: bool) -> ControlCall {
    let recipient = RecipientId::parse(recipient).expect("a recipient of a test is an id");
    ControlCall::Attach(Attach { recipient, generation: Generation::new(generation), adopt })
}

#[track_caller]
fn answer_to(door: &Door, call: ControlCall, brings: Option<File>) -> AttachReply {
    let mut control = door.control().expect("the token is right");
    let answer = control.ask(call, brings.map(Into::into));
    let Some(ControlAnswer::Attach(reply)) = answer else { panic!("{answer:?}") };
    reply
}

#[track_caller]
fn bind(door: &Door, recipient: &str, generation: u64) -> (AttachReply, Data) {
    let reply = answer_to(door, attach(recipient, generation, false), None);
    assert!(reply.fenced, "{reply:?}");
    (reply, door.data(recipient, generation).expect("it is bound"))
}

/// A piece of output without its attachment.
type Piece = (u64, StreamName, u64, Vec<u8>);

/// Reads until so many pieces and the exit have come, all of one attachment.
#[track_caller]
fn pieces_and_exit(data: &mut Data, of: u64, count: usize) -> Vec<Piece> {
    let (mut pieces, mut exits) = (Vec::new(), 0);
    while pieces.len() < count || exits == 0 {
        let generation = match data.receive().expect("the link stays open") {
            FromRunner::Chunk(chunk) => {
                pieces.push((chunk.sequence, chunk.stream, chunk.offset, chunk.bytes));
                chunk.generation
            }
            FromRunner::Exit { generation, .. } => {
                exits += 1;
                generation
            }
            other @ (FromRunner::Eof(_)
            | FromRunner::Finished { .. }
            | FromRunner::InputAck(_)
            | FromRunner::ResizeAck(_)) => {
                panic!("{other:?}")
            }
        };
        assert_eq!(generation, Generation::new(of));
    }
    assert_eq!(exits, 1);
    pieces
}

/// More output than a window admits, an exit, and something that keeps the runner.
fn kept(world: &World) -> AttemptHandle {
    world.launch(shell("seq 160000; sleep 600 & exit 3").leftovers(Leftovers::Keep))
}

#[track_caller]
fn wait_for_generation(world: &World, id: &AttemptId, generation: u64) {
    let generation = Generation::new(generation);
    world.wait_for_runner(id, "the attachment", |runner| runner.generation == generation);
}

/// Waits until somebody has acknowledged the first of the two parts.
#[track_caller]
fn wait_until_read(world: &World, id: &AttemptId) {
    world.wait_for_file("said");
    // What was said is in the pipe; after this answer it is read.
    world.runner(id);
    world.wait_for_runner(id, "the acknowledgment", |runner| runner.unacknowledged_bytes == 0);
}

/// Says one thing, waits for the file `go`, says another and exits with 6.
const TWO_PARTS: &str =
    "echo one; touch said; while [ ! -e go ]; do sleep 0.01; done; echo two; echo err >&2; exit 6";

#[test]
fn a_new_attachment_gets_again_what_was_not_acknowledged_and_the_exit() {
    let world = world();
    let attempt = kept(&world);
    let door = world.door(attempt.id());
    let (reply, mut first) = bind(&door, "first", 2);
    assert_eq!((reply.consumed_through, reply.last_write_id), (0, 0));
    let mut seen = pieces_and_exit(&mut first, 2, 4);
    first.acknowledge(1);
    // The room of the first chunk is used again once its acknowledgment was heard.
    let Some(FromRunner::Chunk(fifth)) = first.receive() else { panic!("one more chunk comes") };
    seen.push((fifth.sequence, fifth.stream, fifth.offset, fifth.bytes));
    assert_eq!(seen.iter().map(|piece| piece.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);

    let (reply, mut second) = bind(&door, "second", 3);
    assert_eq!(reply.consumed_through, 1);
    assert_eq!(first.receive(), None, "the former recipient gets nothing more");
    let again = pieces_and_exit(&mut second, 3, 4);
    assert_eq!(again, seen[1..]);
}

#[test]
fn an_acknowledgment_of_what_was_not_sent_or_of_another_attachment_has_no_effect() {
    let world = world();
    let attempt = kept(&world);
    let door = world.door(attempt.id());
    let (_, mut first) = bind(&door, "first", 2);
    pieces_and_exit(&mut first, 2, 4);
    first.send(FromRecipient::Ack { generation: Generation::new(1), through: 4 });
    first.acknowledge(5);
    first.acknowledge(2);
    // Two were acknowledged, so two more come; what was sent before them was heard before them.
    for sequence in [5, 6] {
        let Some(FromRunner::Chunk(chunk)) = first.receive() else {
            panic!("one more chunk comes")
        };
        assert_eq!(chunk.sequence, sequence);
    }
    let (reply, _) = bind(&door, "second", 3);
    assert_eq!(reply.consumed_through, 2);
}

#[test]
fn what_was_acknowledged_right_before_another_attachment_does_not_come_again() {
    let world = world();
    let attempt = kept(&world);
    let door = world.door(attempt.id());
    let (mut reply, mut data) = bind(&door, "recipient", 2);
    for generation in 3..10 {
        let pieces = pieces_and_exit(&mut data, generation - 1, 4);
        assert_eq!(pieces[0].0, reply.consumed_through + 1);
        data.acknowledge(pieces[0].0);
        let before = reply.consumed_through;
        (reply, data) = bind(&door, "recipient", generation);
        assert_eq!(reply.consumed_through, before + 1);
    }
}

#[test]
fn what_is_acknowledged_when_the_end_was_told_does_not_come_again() {
    let world = world();
    let attempt = world.launch_shell("while [ ! -e go ]; do sleep 0.01; done; echo one");
    let id = attempt.id().clone();
    let (_, mut data) = bind(&world.door(&id), "recipient", 2);
    File::create(world.work().join("go")).expect("the directory is writable");
    let mut last = 0;
    loop {
        match data.receive().expect("the end is told before the link is closed") {
            FromRunner::Chunk(chunk) => last = chunk.sequence,
            FromRunner::Eof(eof) => last = eof.sequence,
            FromRunner::Exit { .. } | FromRunner::InputAck(_) | FromRunner::ResizeAck(_) => {}
            FromRunner::Finished { .. } => break,
        }
    }
    assert_eq!(last, 3, "a chunk and two ends");
    data.acknowledge(last);
    // As by the death of the host: it has no time to look whether it was heard.
    drop(data);
    let next = world.another_host();
    next.wait(&id, None).expect("the attempt is recorded");
    let attached = next.attach(&id).expect("what ended is served from its log");
    assert_eq!(attached.output().count(), 0, "{}", world.told(&id));
}

#[test]
fn whoever_is_not_bound_gets_no_data_link() {
    let world = world();
    let attempt = world.launch_shell("exec sleep 600");
    let door = world.door(attempt.id());
    let (_, _bound) = bind(&door, "bound", 2);
    assert_eq!(door.data("bound", 1).err(), Some(Shut::Because(RefusedWhy::Generation)));
    assert_eq!(door.data("bound", 3).err(), Some(Shut::Because(RefusedWhy::Generation)));
    assert_eq!(door.data("other", 2).err(), Some(Shut::Because(RefusedWhy::Recipient)));
}

#[test]
fn whoever_has_no_token_gets_no_answer_and_has_no_effect() {
    let world = world();
    let attempt = world.launch_shell("exec sleep 600");
    let before = attempt.attempt().unwrap();
    let door = world.door(attempt.id());
    let stranger = door.without_the_token();
    assert_eq!(stranger.control().err(), Some(Shut::Silently));
    assert_eq!(stranger.data("stranger", 1).err(), Some(Shut::Silently));
    let forced = Stop { mode: StopMode::Forced, grace_ms: None };
    for call in [ControlCall::Status, ControlCall::Stop(forced), attach("stranger", 2, false)] {
        assert_eq!(door.control_without_a_hello().ask(call, None), None);
    }
    let runner = world.runner(attempt.id());
    assert_eq!(runner.execution, ExecutionState::Running);
    assert_eq!(runner.generation, before.attachment_generation);
    assert_eq!(attempt.attempt().unwrap(), before);
}

#[test]
fn an_attachment_that_is_not_newer_is_refused_and_the_former_one_stands() {
    let world = world();
    let attempt = world.launch_shell(TWO_PARTS);
    let door = world.door(attempt.id());
    let (_, mut bound) = bind(&door, "bound", 5);
    for generation in [5, 4] {
        let reply = answer_to(&door, attach("late", generation, false), None);
        assert_eq!((reply.fenced, reply.refused), (false, Some(AttachRefused::NotNewer)));
    }
    // An attachment without a number is no call at all.
    assert_eq!(door.control().unwrap().ask(attach("none", 0, false), None), None);
    std::fs::write(world.work().join("go"), "").unwrap();
    let mut output = Vec::new();
    while output != b"one\ntwo\n" {
        if let FromRunner::Chunk(chunk) = bound.receive().expect("the link stays open")
            && chunk.stream == StreamName::Stdout
        {
            output.extend(chunk.bytes);
        }
    }
}

#[test]
fn a_host_that_cannot_be_monitored_is_refused_and_the_former_attachment_stands() {
    let world = world();
    let attempt = world.launch_shell("exec sleep 600");
    let door = world.door(attempt.id());
    let (_, _bound) = bind(&door, "bound", 2);
    let reply = answer_to(&door, attach("host", 3, true), None);
    assert_eq!((reply.fenced, reply.refused), (false, Some(AttachRefused::NoDescriptor)));
    let other = File::open("/dev/null").unwrap();
    let reply = answer_to(&door, attach("host", 3, true), Some(other));
    assert_eq!((reply.fenced, reply.refused), (false, Some(AttachRefused::NotMonitorable)));
    let runner = world.runner(attempt.id());
    assert_eq!(
        (runner.generation, runner.execution),
        (Generation::new(2), ExecutionState::Running)
    );
    assert!(!world.kinds(attempt.id()).contains(&"host.adopted"));
}

#[test]
fn a_refused_attachment_is_recorded_and_the_former_one_restored() {
    let world = world();
    let attempt = world.launch_shell("exec sleep 600");
    let id = attempt.id().clone();
    let before = attempt.attempt().unwrap();
    let door = world.door(&id);
    let (_, _bound) = bind(&door, "bound", 9);
    let refused = world.another_host().attach(&id).expect_err("the runner serves a newer one");
    assert_eq!(refused.code(), Code::Conflict);
    let after = attempt.attempt().unwrap();
    assert_eq!(after.attachment_generation, before.attachment_generation);
    assert_eq!(after.execution_state, ExecutionState::Running);
    let kinds = world.kinds(&id);
    assert_eq!(kinds[kinds.len() - 2..], ["attach", "attach.refused"], "{}", world.told(&id));
    world.assert_verified(&id);
}

#[test]
fn the_first_of_two_attached_is_told_that_its_streams_were_taken() {
    let world = world();
    let attempt = world.launch(shell(TWO_PARTS).on_host_loss(OnHostLoss::Keep));
    let id = attempt.id().clone();
    let program = world.program();
    let first = program.start(["attach", id.as_str()], Stdio::null());
    wait_for_generation(&world, &id, 2);
    wait_until_read(&world, &id);
    let second = program.start(["attach", id.as_str()], Stdio::null());
    wait_for_generation(&world, &id, 3);
    std::fs::write(world.work().join("go"), "").unwrap();
    let (first, second) = (first.said(), second.said());
    assert_eq!((second.code, second.stdout.as_str()), (6, "two\n"), "{second:?}");
    assert_eq!(second.stderr, "err\n");
    assert_eq!((first.code, first.stdout.as_str()), (6, "one\n"), "{first:?}");
    assert!(first.stderr.contains("were taken over"), "{first:?}");
    assert!(!first.stderr.contains("err\n"), "{first:?}");
    world.assert_nothing_left(&id);
}

#[test]
fn a_run_with_the_key_of_a_living_attempt_attaches() {
    let world = world();
    let program = world.program();
    let arguments = ["run", "--key", "k", "--", "/bin/sh", "-c", TWO_PARTS];
    let first = program.start(arguments, Stdio::null());
    wait_until(PATIENCE, "the attempt", || {
        !world.host().attempts().live().unwrap().attempts.is_empty()
    });
    let id = world.host().attempts().live().unwrap().attempts[0].attempt_id.clone();
    wait_for_generation(&world, &id, 1);
    wait_until_read(&world, &id);
    let second = program.start(arguments, Stdio::null());
    wait_for_generation(&world, &id, 2);
    std::fs::write(world.work().join("go"), "").unwrap();
    let (first, second) = (first.said(), second.said());
    assert_eq!(second.code, 6, "{second:?}");
    assert!(second.stdout.ends_with("two\n"), "{second:?}");
    assert!(second.stderr.contains(&format!("replayed: following the recorded attempt {id}")));
    assert_eq!(first.code, 6, "{first:?}");
    assert!(first.stderr.contains("were taken over"), "{first:?}");
    assert_eq!(format!("{}{}", first.stdout, second.stdout), "one\ntwo\n");
}

#[test]
fn two_roots_may_have_attempts_of_one_key_at_once() {
    let worlds = [world(), world()];
    let script = "while [ ! -s go ]; do sleep 0.01; done; cat go";
    let attempts = worlds.each_ref().map(|world| world.launch(shell(script).key("k")));
    assert_eq!(attempts[0].id(), attempts[1].id());
    for (world, attempt) in worlds.iter().zip(attempts) {
        std::fs::write(world.work().join("go"), world.work().as_str()).unwrap();
        assert_eq!(world.text(&attempt).stdout, world.work().as_str());
        assert!(attempt.finish().unwrap().is_success());
    }
}

#[test]
fn an_ended_attempt_gives_what_nobody_read_and_gives_it_once() {
    let world = world();
    let program = world.program();
    let script = "echo out; echo err >&2; exit 4";
    let id = program.run(["start", "--", "/bin/sh", "-c", script]).stdout;
    let id = id.trim();
    assert_eq!(program.run(["wait", id]).code, 4);
    let said = program.run(["attach", id]);
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (4, "out\n", "err\n"));
    let again = program.run(["attach", id]);
    assert_eq!((again.code, again.stdout.as_str(), again.stderr.as_str()), (4, "", ""));
    let log = program.run(["logs", id]);
    assert_eq!((log.stdout.as_str(), log.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a shell runs the program under test")]
fn a_start_in_a_command_substitution_returns_while_the_child_runs() {
    let world = world();
    let program = world.program();
    let start = program.command(["start", "--", "sleep", "600"]);
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "id=$(\"$0\" \"$@\"); echo \"<$id>\""]).arg(start.get_program());
    outer.args(start.get_args()).current_dir(world.work()).env("HOME", program.user_home());
    let said = Running::start(outer.stdin(Stdio::null())).said();
    let id = said.stdout.trim().trim_matches(['<', '>']);
    let id = AttemptId::parse(id).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(world.host().attempt(&id).unwrap().execution_state, ExecutionState::Running);
    assert_eq!(program.run(["stop", "--force", id.as_str()]).code, 0);
    assert_eq!(program.run(["cleanup", id.as_str()]).code, 0);
    world.assert_nothing_left(&id);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a shell runs the program under test")]
fn a_started_child_goes_on_when_the_reader_of_its_taker_is_gone() {
    let world = world();
    let program = world.program();
    let id = program.run(["start", "--", "/bin/sh", "-c", TWO_PARTS]).stdout;
    let attach = program.command(["attach", id.trim()]);
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "\"$0\" \"$@\" | { read -r first; exec <&-; touch go; echo \"$first\"; }"]);
    outer.arg(attach.get_program()).args(attach.get_args()).current_dir(world.work());
    let said = Running::start(outer.env("HOME", program.user_home()).stdin(Stdio::null())).said();
    assert_eq!(said.stdout, "one\n", "{said:?}");
    let waited = program.run(["wait", id.trim()]);
    assert_eq!((waited.code, waited.stderr.as_str()), (6, ""), "{waited:?}");
    let id = AttemptId::parse(id.trim()).unwrap();
    assert!(!world.told(&id).contains("stop.requested"), "{}", world.told(&id));
}

#[test]
fn however_many_wait_a_stop_and_a_status_are_answered() {
    let world = world();
    let attempt = world.launch_shell("trap '' TERM; touch up; while :; do sleep 0.05; done");
    world.wait_for_file("up");
    let program = world.program();
    // More than a runner holds connections for.
    let waiting: Vec<_> =
        (0..40).map(|_| program.start(["wait", attempt.id().as_str()], Stdio::null())).collect();
    let door = world.door(attempt.id());
    let silent: Vec<_> = (0..40).map(|_| door.control().unwrap()).collect();
    let status = world.another_host().status(attempt.id()).unwrap();
    assert!(status.runner.is_some(), "the runner did not answer: {status:?}");
    let stopped = program.run(["stop", "--force", attempt.id().as_str()]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, ""), "{stopped:?}");
    for one in waiting {
        assert_eq!(one.said().code, 128 + 9);
    }
    drop(silent);
    world.assert_clean(&attempt.finish().unwrap());
}
