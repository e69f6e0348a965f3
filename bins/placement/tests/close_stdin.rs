//! The end of a program's input, asked for from outside.

use placement::{AttemptId, Generation, InputOutcome, InputRefused};
use placement_world::protocol::{Attach, ControlAnswer, ControlCall, FromRunner};
use placement_world::{Data, Door, RecipientId, World, shell};
use serde_json::Value;
use std::fs;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

#[track_caller]
fn started(world: &World, options: &[&str], script: &str) -> AttemptId {
    let arguments = [&["start"], options, &["--", "/bin/sh", "-c", script]].concat();
    let said = world.program().run(arguments);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    AttemptId::parse(said.stdout.trim()).expect("it prints the attempt")
}

fn count(world: &World, id: &AttemptId, kind: &str) -> usize {
    world.kinds(id).iter().filter(|found| **found == kind).count()
}

#[test]
fn a_child_sees_the_end_of_its_input_and_ends() {
    let world = world();
    let id = started(&world, &["--stdin", "pipe"], "cat; echo end; exit 4");
    let program = world.program();
    let said = program.run(["close-stdin", id.as_str()]);
    let expected = format!("{id}  input closed\n");
    assert_eq!((said.code, said.stdout), (0, expected), "{}", world.told(&id));
    assert_eq!(count(&world, &id, "stdin.closed"), 1, "{}", world.told(&id));
    assert_eq!(program.run(["wait", id.as_str()]).code, 4);
    assert_eq!(program.run(["logs", id.as_str()]).stdout, "end\n");
    let kinds = world.kinds(&id);
    let said = program.run(["--json", "close-stdin", id.as_str()]);
    let told: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!((said.code, &told["closed"]), (1, &false.into()));
    assert_eq!(told["reason"], "the child has exited");
    assert_eq!(world.kinds(&id), kinds, "an ended child adds no evidence");
    assert_eq!(program.run(["cleanup", id.as_str()]).code, 0);
    world.assert_nothing_left(&id);
}

#[test]
fn closing_again_is_as_good_as_once() {
    let world = world();
    let script = "cat; touch ended; while [ ! -e go ]; do sleep 0.02; done";
    let id = started(&world, &["--stdin", "pipe"], script);
    for _ in 0..2 {
        let closing = world.host().close_stdin(&id).unwrap();
        assert_eq!((closing.closed, closing.reason), (true, None));
    }
    world.wait_for_file("ended");
    assert_eq!(count(&world, &id, "stdin.closed"), 1, "{}", world.told(&id));
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(world.program().run(["wait", id.as_str()]).code, 0);
    assert_eq!(world.program().run(["cleanup", id.as_str()]).code, 0);
}

/// Binds a recipient as attachment 2 and returns its link.
#[track_caller]
fn writer(door: &Door) -> Data {
    let recipient = RecipientId::parse("writer").expect("a short name is an id");
    let attach = Attach { recipient, generation: Generation::new(2), adopt: false };
    let mut control = door.control().expect("the runner answers");
    let answer = control.ask(ControlCall::Attach(attach), None);
    let Some(ControlAnswer::Attach(_)) = answer else { panic!("{answer:?}") };
    door.data("writer", 2).expect("the recipient is bound")
}

/// Waits for the answer to a write.
#[track_caller]
fn answer(data: &mut Data) -> (u64, Option<InputRefused>) {
    loop {
        if let FromRunner::InputAck(ack) = data.receive().expect("the link stays open") {
            return (ack.write_id, ack.refused);
        }
    }
}

#[test]
fn what_was_written_before_comes_first_however_long_the_child_waits() {
    let world = world();
    let script = "while [ ! -e go ]; do sleep 0.02; done; wc -c > count";
    let attempt = world.launch(shell(script).stdin_pipe());
    let id = attempt.id().clone();
    let door = world.door(&id);
    let mut data = writer(&door);
    // More than a pipe holds; the foreign write is answered once those before it are taken in.
    data.write(2, 1, &vec![b'a'; 60_000]);
    assert_eq!(answer(&mut data), (1, None));
    data.write(2, 2, &[b'b'; 10_000]);
    data.write(9, 3, b"foreign");
    assert_eq!(answer(&mut data), (3, Some(InputRefused::NotBound)));
    let closing = world.host().close_stdin(&id).unwrap();
    let reason = closing.reason.expect("it is not closed");
    assert!(reason.starts_with("what was written before waits for the child"), "{reason}");
    assert_eq!(count(&world, &id, "stdin.closed"), 0, "{}", world.told(&id));
    data.write(2, 3, b"too late");
    assert_eq!(answer(&mut data), (3, Some(InputRefused::Closed)));
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(answer(&mut data), (2, None));
    drop(data);
    let end = attempt.finish().unwrap();
    assert_eq!(fs::read_to_string(world.work().join("count")).unwrap().trim(), "70000");
    assert_eq!(count(&world, &id, "stdin.closed"), 1, "{}", world.told(&id));
    assert_eq!(count(&world, &id, "stdin.uncertain"), 0, "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn a_close_that_waits_is_answered_when_the_child_takes_what_was_written() {
    let world = world();
    let script = "while [ ! -e go ]; do sleep 0.02; done; wc -c > count";
    let attempt = world.launch(shell(script).stdin_pipe());
    let id = attempt.id().clone();
    let mut data = writer(&world.door(&id));
    data.write(2, 1, &vec![b'a'; 60_000]);
    assert_eq!(answer(&mut data), (1, None));
    data.write(2, 2, &[b'b'; 10_000]);
    data.write(9, 3, b"foreign");
    assert_eq!(answer(&mut data), (3, Some(InputRefused::NotBound)));
    let closings: Vec<bool> = std::thread::scope(|scope| {
        let asks: Vec<_> =
            (0..3).map(|_| scope.spawn(|| world.host().close_stdin(&id).unwrap().closed)).collect();
        fs::write(world.work().join("go"), "").unwrap();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    // The child may be done before the last of them asked.
    assert!(closings.contains(&true), "{closings:?}");
    drop(data);
    world.assert_clean(&attempt.finish().unwrap());
    assert_eq!(count(&world, &id, "stdin.closed"), 1, "{}", world.told(&id));
}

#[test]
fn an_input_that_the_child_has_closed_itself_counts_as_closed() {
    let world = world();
    let script = "exec 0<&-; touch closed; while [ ! -e go ]; do sleep 0.02; done";
    let attempt = world.launch(shell(script).stdin_pipe());
    let id = attempt.id().clone();
    world.wait_for_file("closed");
    assert!(world.host().close_stdin(&id).unwrap().closed);
    fs::write(world.work().join("go"), "").unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_session_that_ends_with_its_input_keeps_it_open_after_the_first_text() {
    let world = world();
    let launch = shell("while read line; do echo got $line; done; echo end");
    let attempt = world.launch(launch.stdin_text("brief\n").ends_with_its_input());
    let id = attempt.id().clone();
    let mut text = attempt.text();
    assert_eq!(text.next().unwrap().unwrap().text(), "got brief\n");
    assert_eq!(count(&world, &id, "stdin.closed"), 0, "{}", world.told(&id));
    assert_eq!(attempt.write_input(b"more\n").unwrap(), InputOutcome::Accepted);
    assert_eq!(text.next().unwrap().unwrap().text(), "got more\n");
    assert!(world.host().close_stdin(&id).unwrap().closed);
    let rest: String = text.map(|piece| piece.unwrap().text().to_owned()).collect();
    assert_eq!(rest, "end\n");
    let end = attempt.finish().unwrap();
    let kinds = world.kinds(&id);
    let place = |kind| kinds.iter().position(|found| *found == kind).unwrap();
    assert!(place("stdin.accepted") < place("stdin.closed"));
    assert!(place("stdin.closed") < place("child.exited"));
    world.assert_clean(&end);
}

#[test]
fn a_session_whose_input_is_open_is_stopped_and_cleaned_like_any_other() {
    let world = world();
    let launch = shell("trap 'exit 9' TERM; echo up; while read line; do echo $line; done");
    let attempt = world.launch(launch.stdin_text("brief\n").ends_with_its_input());
    assert!(attempt.text().next().unwrap().unwrap().text().starts_with("up\n"));
    attempt.stop().unwrap();
    let id = attempt.id().clone();
    let end = attempt.finish().unwrap();
    assert_eq!(count(&world, &id, "signal.term"), 1, "{}", world.told(&id));
    assert_eq!(count(&world, &id, "stdin.closed"), 0, "a stop closes no input");
    assert!(!end.is_success(), "{end}");
    world.assert_clean(&end);
}

#[test]
fn a_program_without_input_reads_its_end_all_the_time() {
    let world = world();
    let id = started(&world, &[], "cat; touch ended; exec sleep 300");
    world.wait_for_file("ended");
    assert!(world.host().close_stdin(&id).unwrap().closed);
    assert_eq!(count(&world, &id, "stdin.closed"), 0, "there was nothing to close");
    assert_eq!(world.program().run(["stop", "--force", id.as_str()]).code, 0);
    assert_eq!(world.program().run(["cleanup", id.as_str()]).code, 0);
}

#[test]
fn an_attempt_that_was_not_started_or_never_was_is_refused() {
    let world = world();
    let stage = world.stage();
    let id = stage.prepare(&stage.request("a", "true"));
    let refused = stage.service().close_stdin(&id).unwrap_err();
    assert_eq!(refused.code, placement::Code::Conflict);
    assert_eq!(world.kinds(&id), ["intent.recorded"]);
    let refused = world.program().run(["--json", "close-stdin", "never"]);
    assert!(refused.code == 125 && refused.stderr.contains("NOT_FOUND"), "{refused:?}");
}
