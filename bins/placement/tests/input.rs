//! Input of the child, and readers of its output that go away.

use placement::{Exit, Generation, InputOutcome, InputRefused, Launch, Leftovers, StreamName};
use placement_testkit::wait_until;
use placement_world::protocol::{
    Attach, ControlAnswer, ControlCall, FromRecipient, FromRunner, Input, InputAck,
};
use placement_world::service::HostPlace;
use placement_world::{Data, Door, Known, PATIENCE, Program, RecipientId, World, shell};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn with_input(script: &str) -> Launch {
    shell(script).stdin_pipe()
}

/// Binds a recipient; returns its link and the last write that was accepted before.
#[track_caller]
fn bound(door: &Door, generation: u64) -> (Data, u64) {
    let recipient = RecipientId::parse("writer").expect("a recipient of a test is an id");
    let attach = Attach { recipient, generation: Generation::new(generation), adopt: false };
    let mut control = door.control().expect("the token is right");
    let answer = control.ask(ControlCall::Attach(attach), None);
    let Some(ControlAnswer::Attach(reply)) = answer else { panic!("{answer:?}") };
    (door.data("writer", generation).expect("it is bound"), reply.last_write_id)
}

fn ack(write_id: u64, generation: u64, refused: Option<InputRefused>) -> InputAck {
    InputAck { write_id, generation: Generation::new(generation), refused }
}

#[test]
fn without_input_the_child_reads_nothing_though_ours_is_open() {
    let program = program();
    let started = Instant::now();
    let mut running = program.start(["run", "--", "cat"], Stdio::piped());
    let _held_open = running.process().stdin.take();
    assert_eq!(running.said().code, 0);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn input_is_pumped_where_it_is_asked_for() {
    let program = program();
    let mut running = program.start(["run", "-i", "--", "cat"], Stdio::piped());
    let text = "0123456789abcde\n".repeat(20_000);
    let mut stdin = running.process().stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let said = running.said();
    assert_eq!((said.code, said.stdout.len()), (0, text.len()), "{}", said.stderr);
    assert_eq!(said.stdout, text);
}

#[test]
fn a_file_is_pumped_to_its_end() {
    let program = program();
    std::fs::write(program.work().join("brief"), "do it\n").unwrap();
    let said = program.run(["run", "--stdin", "brief", "--", "cat"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "do it\n"), "{said:?}");
}

#[test]
fn a_missing_input_file_is_refused_before_anything_runs() {
    let program = program();
    let said = program.run(["run", "--stdin", "nowhere", "--", "cat"]);
    assert_eq!(said.code, 125);
    assert!(said.stderr.contains("\"nowhere\" does not exist"), "{said:?}");
    let listed = program.run(["--json", "ps", "--all"]);
    assert_eq!(listed.stdout, "");
}

#[test]
fn a_child_that_ends_without_reading_is_no_error() {
    let program = program();
    let mut running =
        program.start(["run", "-i", "--", "/bin/sh", "-c", "echo no >&2; exit 5"], Stdio::piped());
    let mut stdin = running.process().stdin.take().unwrap();
    // The host may have gone before it read everything; that is the fact under test.
    stdin.write_all(&vec![b'x'; 2 * 1024 * 1024]).ok();
    drop(stdin);
    let said = running.said();
    assert_eq!((said.code, said.stderr.as_str()), (5, "no\n"));
}

#[test]
fn a_reader_that_goes_away_stops_the_child() {
    let program = program();
    let script = "echo $$ > pid; while :; do echo line; done";
    let mut command = program.command(["run", "--", "/bin/sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 5];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    let mut status = None;
    wait_until(PATIENCE, "the end of the host", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(128 + 15));
    assert!(program.homes_left().is_empty());
}

#[test]
fn the_child_inherits_neither_our_input_nor_another_descriptor() {
    let program = program();
    let script = "readlink /proc/$$/fd/0; ls /proc/$$/fd";
    let mut outer = inheriting(&program, &["run", "--", "/bin/sh", "-c", script]);
    let said = placement_world::Running::start(outer.stdin(Stdio::piped())).said();
    assert_eq!((said.code, said.stdout.as_str()), (0, "/dev/null\n0\n1\n2\n"), "{said:?}");
}

/// Runs the program under a shell that has a descriptor to inherit.
#[expect(clippy::disallowed_methods, reason = "a shell runs the program under test")]
fn inheriting(program: &Program, arguments: &[&str]) -> Command {
    let inner = program.command(arguments.iter().copied());
    let mut outer = Command::new("/bin/sh");
    outer.args(["-c", "exec \"$0\" \"$@\" 7</dev/zero"]).arg(inner.get_program());
    outer.args(inner.get_args()).current_dir(program.work()).env("HOME", program.user_home());
    outer
}

#[test]
fn the_child_starts_with_no_signal_ignored_or_blocked() {
    let world = world();
    let attempt = world.launch_shell("exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
    let zeros = "0".repeat(16);
    let wanted = format!("SigBlk:\t{zeros}\nSigIgn:\t{zeros}\n");
    assert_eq!(world.text(&attempt).stdout, wanted);
}

#[test]
fn the_end_of_the_input_is_recorded_apart_from_the_exit() {
    let world = world();
    let attempt = world.launch(shell("exec cat").stdin_text("a brief"));
    assert_eq!(world.text(&attempt).stdout, "a brief");
    let end = attempt.finish().unwrap();
    assert!(end.is_success(), "{end}");
    let mut kinds = world.kinds(&end.attempt().attempt_id);
    kinds.retain(|kind| kind.starts_with("stdin.") || *kind == "child.exited");
    assert_eq!(kinds, ["stdin.accepted", "stdin.closed", "child.exited"]);
}

#[test]
fn an_input_stays_open_until_it_is_closed() {
    let world = world();
    let attempt = world.launch(with_input("read line; echo got $line; cat; echo end"));
    assert_eq!(attempt.write_input(b"one\n").unwrap(), InputOutcome::Accepted);
    let mut said = Vec::new();
    let mut output = attempt.output();
    while said != b"got one\n" {
        said.extend_from_slice(output.next().unwrap().unwrap().bytes());
    }
    assert_eq!(world.runner(attempt.id()).eof_seen, 0);
    assert_eq!(attempt.write_input(b"two\n").unwrap(), InputOutcome::Accepted);
    attempt.close_input().unwrap();
    output.for_each(|chunk| said.extend_from_slice(chunk.unwrap().bytes()));
    assert_eq!(said, b"got one\ntwo\nend\n");
    assert!(attempt.finish().unwrap().is_success());
}

#[test]
fn a_write_that_comes_again_is_accepted_and_written_once() {
    let world = world();
    let attempt = world.launch(with_input("exec cat"));
    let (mut data, last) = bound(&world.door(attempt.id()), 2);
    assert_eq!(last, 0);
    let mut said = Vec::new();
    for (write_id, text) in [(1, "one\n"), (1, "one\n"), (4, "two\n"), (4, "two\n"), (1, "one\n")] {
        data.write(2, write_id, text.as_bytes());
        assert_eq!(data.answer(&mut said), ack(write_id, 2, None));
    }
    // One that was overtaken would come out of order.
    data.write(2, 3, b"late\n");
    let refused = Some(InputRefused::OutOfOrder);
    assert_eq!(data.answer(&mut said), ack(3, 2, refused));
    data.write(2, 5, b"three\n");
    assert_eq!(data.answer(&mut said), ack(5, 2, None));
    data.hear(&mut said, b"one\ntwo\nthree\n");
}

#[test]
fn input_of_another_attachment_is_refused_under_its_own_number() {
    let world = world();
    let attempt = world.launch(with_input("exec cat"));
    let (mut data, _) = bound(&world.door(attempt.id()), 2);
    let mut said = Vec::new();
    for generation in [1, 3] {
        data.write(generation, 1, b"not bound\n");
        let refused = Some(InputRefused::NotBound);
        assert_eq!(data.answer(&mut said), ack(1, generation, refused));
    }
    data.write(2, 1, b"bound\n");
    assert_eq!(data.answer(&mut said), ack(1, 2, None));
    data.hear(&mut said, b"bound\n");
}

#[test]
fn input_is_refused_once_it_was_closed_and_once_the_child_has_exited() {
    let world = world();
    let script = "cat; sleep 600 & while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let attempt = world.launch(with_input(script).leftovers(Leftovers::Keep));
    let (mut data, _) = bound(&world.door(attempt.id()), 2);
    let (generation, mut said) = (Generation::new(2), Vec::new());
    let last = Input { write_id: 1, generation, end: true, bytes: b"last\n".to_vec() };
    data.send(FromRecipient::Input(last));
    assert_eq!(data.answer(&mut said), ack(1, 2, None));
    data.write(2, 2, b"more");
    assert_eq!(data.answer(&mut said), ack(2, 2, Some(InputRefused::Closed)));
    data.hear(&mut said, b"last\n");
    std::fs::write(world.work().join("go"), "").unwrap();
    while !matches!(data.receive(), Some(FromRunner::Exit { .. })) {}
    data.write(2, 2, b"more");
    assert_eq!(data.answer(&mut said), ack(2, 2, Some(InputRefused::Exited)));
    let kinds = world.kinds(attempt.id());
    assert_eq!(kinds.iter().filter(|kind| **kind == "stdin.closed").count(), 1, "{kinds:?}");
}

#[test]
fn what_a_child_says_and_how_it_ends_is_told_though_it_took_no_input() {
    for (script, stderr, code) in [
        ("exec false", "", 1),
        ("sleep 0.01; echo 'not signed in' >&2; exit 1", "not signed in\n", 1),
        ("head -c 10 >/dev/null; echo 'enough' >&2; exit 9", "enough\n", 9),
    ] {
        let world = world();
        let attempt = world.launch(with_input(script));
        let outcome = attempt.write_input(&vec![b'x'; 2 * 1024 * 1024]).unwrap();
        assert_ne!(outcome, InputOutcome::Accepted, "{script}");
        let text = world.text(&attempt);
        assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("", stderr), "{script}");
        for stream in StreamName::ALL {
            assert_eq!(attempt.is_truncated(*stream), Some(false));
        }
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code }), "{script}");
        world.assert_clean(&end);
    }
}

#[test]
fn a_write_of_which_a_child_took_a_part_is_uncertain_and_recorded() {
    let world = world();
    let wait = |file| format!("while [ ! -e {file} ]; do sleep 0.01; done");
    let script = format!("{}; head -c 8192 >took; {}; exit 1", wait("take"), wait("go"));
    let attempt = world.launch(with_input(&script));
    let id = attempt.id().clone();
    let (mut data, _) = bound(&world.door(&id), 2);
    data.write(2, 1, &vec![b'x'; 65_536]);
    assert_eq!(data.answer(&mut Vec::new()), ack(1, 2, None));
    // The pipe is full: these wait in the runner.
    data.write(2, 2, &vec![b'y'; 65_536]);
    data.write(2, 3, b"z");
    // Answered at once, and so after everything before it was heard.
    let mut turn = || {
        data.write(1, 9, b"not bound");
        let refused = Some(InputRefused::NotBound);
        assert_eq!(data.answer(&mut Vec::new()), ack(9, 1, refused));
    };
    turn();
    std::fs::write(world.work().join("take"), "").unwrap();
    wait_until(PATIENCE, "what the child takes", || {
        std::fs::metadata(world.work().join("took")).is_ok_and(|took| took.len() == 8192)
    });
    // Two turns, since in one the runner may answer before it looks at the pipe.
    turn();
    turn();
    std::fs::write(world.work().join("go"), "").unwrap();
    let uncertain = Some(InputRefused::Uncertain);
    assert_eq!(data.answer(&mut Vec::new()), ack(2, 2, uncertain));
    assert_eq!(data.answer(&mut Vec::new()), ack(3, 2, Some(InputRefused::Closed)));
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 1 }));
    let row = end.evidence().iter().find(|row| row.kind.label() == "stdin.uncertain").unwrap();
    assert!(row.detail.starts_with("the child took "), "{}", world.told(&id));
}

#[test]
fn input_that_was_taken_stays_taken_when_its_writer_goes() {
    let world = world();
    let attempt = world.launch(with_input("while [ ! -e go ]; do sleep 0.01; done; exec wc -c"));
    let door = world.door(attempt.id());
    let (mut first, _) = bound(&door, 2);
    // One fills the pipe, the other waits in the runner or still on its way.
    first.write(2, 1, &vec![b'x'; 65_536]);
    assert_eq!(first.answer(&mut Vec::new()), ack(1, 2, None));
    first.write(2, 2, &vec![b'y'; 65_536]);
    drop(first);
    let (mut second, last) = bound(&door, 3);
    assert_eq!(last, 2, "the other one waits, and its number is taken");
    std::fs::write(world.work().join("go"), "").unwrap();
    let (generation, mut said) = (Generation::new(3), Vec::new());
    let end = Input { write_id: 3, generation, end: true, bytes: Vec::new() };
    second.send(FromRecipient::Input(end));
    while second.answer(&mut said).write_id != 3 {}
    second.hear(&mut said, b"131072\n");
    assert!(attempt.finish().unwrap().is_success());
}

#[test]
fn a_new_writer_does_not_pass_for_one_whose_input_still_waits() {
    let world = world();
    let attempt = world.launch(with_input("while [ ! -e go ]; do sleep 0.01; done; exec wc -c"));
    let stage = world.stage();
    let recipient = RecipientId::parse("first").unwrap();
    let first = stage.service().attach(attempt.id(), &recipient, HostPlace::Keep).unwrap();
    let mut streams = first.streams;
    let sender = streams.input_sender().unwrap();
    // One fills the pipe, the other waits in the runner.
    for write_id in 1..=2 {
        assert_eq!(sender.send(&vec![b'x'; 65_536]).unwrap(), write_id);
    }
    drop((sender, streams));
    let attempt = world.host().attach(attempt.id()).unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(attempt.write_input(b"zzz").unwrap(), InputOutcome::Accepted);
    attempt.close_input().unwrap();
    assert_eq!(world.text(&attempt).stdout, "131075\n");
    assert!(attempt.finish().unwrap().is_success());
}

#[test]
fn a_write_that_is_refused_is_refused_again_when_it_comes_again() {
    let world = world();
    let script = "exec 0<&-; touch closed; while [ ! -e go ]; do sleep 0.01; done";
    let attempt = world.launch(with_input(script));
    wait_until(PATIENCE, "the close", || world.work().join("closed").exists());
    let (mut data, _) = bound(&world.door(attempt.id()), 2);
    for write_id in [1, 1, 2, 1] {
        data.write(2, write_id, b"nobody reads this");
        let refused = Some(InputRefused::Closed);
        assert_eq!(data.answer(&mut Vec::new()), ack(write_id, 2, refused));
    }
    std::fs::write(world.work().join("go"), "").unwrap();
}

#[test]
fn input_whose_answer_is_lost_with_its_runner_is_uncertain() {
    let world = world();
    let script = "read line; echo got $line; head -c 8192 >took; while :; do sleep 1; done";
    let attempt = world.launch(with_input(script));
    assert_eq!(attempt.write_input(b"one\n").unwrap(), InputOutcome::Accepted);
    assert_eq!(attempt.output().next().unwrap().unwrap().bytes(), b"got one\n");
    let outcome = std::thread::scope(|scope| {
        // More than the child and the pipe take, so that the rest waits until the runner is gone.
        let writer = scope.spawn(|| attempt.write_input(&vec![b'x'; 200_000]).unwrap());
        wait_until(PATIENCE, "what the child takes", || {
            std::fs::metadata(world.work().join("took")).is_ok_and(|took| took.len() == 8192)
        });
        Known::of(world.runner_pid(attempt.id())).kill();
        writer.join().unwrap()
    });
    assert_eq!(outcome, InputOutcome::NotAccepted(InputRefused::Uncertain));
}
