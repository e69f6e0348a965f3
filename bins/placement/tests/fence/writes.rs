//! Input is written once: under its number it is known again, whoever sends it and whatever became of
//! the child.

use crate::living::{RECIPIENT, accepted, bind};
use crate::world;
use placement::{AttemptHandle, Exit, InputRefused, Leftovers};
use placement_testkit::wait_until;
use placement_world::protocol::{FromRecipient, FromRunner, Input, InputAck};
use placement_world::{Data, PATIENCE, World, shell};
use std::fs;

/// Writes that a runner remembers.
const REMEMBERED: u64 = 256;

fn refused(write_id: u64, generation: u64, why: InputRefused) -> InputAck {
    InputAck { refused: Some(why), ..accepted(write_id, generation) }
}

fn cat(world: &World) -> AttemptHandle {
    world.launch(shell("exec cat").stdin_pipe())
}

#[test]
fn an_id_beyond_the_memory_is_refused_and_never_written_again() {
    let world = world();
    let attempt = cat(&world);
    let (_, mut data) = bind(&world.door(attempt.id()), 2);
    let (mut said, mut wanted) = (Vec::new(), Vec::new());
    for write_id in 1..=REMEMBERED + 2 {
        let line = format!("{write_id}\n");
        data.write(2, write_id, line.as_bytes());
        assert_eq!(data.answer(&mut said), accepted(write_id, 2));
        wanted.extend(line.into_bytes());
    }
    for write_id in [1, 2] {
        data.write(2, write_id, b"again\n");
        let forgotten = refused(write_id, 2, InputRefused::Forgotten);
        assert_eq!(data.answer(&mut said), forgotten);
    }
    for write_id in [3, REMEMBERED + 2] {
        data.write(2, write_id, b"again\n");
        assert_eq!(data.answer(&mut said), accepted(write_id, 2));
    }
    data.write(2, REMEMBERED + 3, b"last\n");
    assert_eq!(data.answer(&mut said), accepted(REMEMBERED + 3, 2));
    wanted.extend(b"last\n");
    data.hear(&mut said, &wanted);
}

#[test]
fn what_was_written_for_a_former_attachment_is_known_to_the_next() {
    let world = world();
    let attempt = cat(&world);
    let door = world.door(attempt.id());
    let (_, mut first) = bind(&door, 2);
    let mut said = Vec::new();
    for write_id in 1..=REMEMBERED + 1 {
        first.write(2, write_id, b"x");
        assert_eq!(first.answer(&mut said), accepted(write_id, 2));
    }
    let mut wanted = vec![b'x'; usize::try_from(REMEMBERED + 1).unwrap()];
    first.hear(&mut said, &wanted);
    let (reply, mut second) = bind(&door, 3);
    assert_eq!(reply.last_write_id, REMEMBERED + 1);
    second.write(3, 1, b"again");
    assert_eq!(second.answer(&mut said), refused(1, 3, InputRefused::Forgotten));
    for write_id in [2, REMEMBERED + 1] {
        second.write(3, write_id, b"again");
        assert_eq!(second.answer(&mut said), accepted(write_id, 3));
    }
    second.write(3, REMEMBERED + 2, b"new");
    assert_eq!(second.answer(&mut said), accepted(REMEMBERED + 2, 3));
    wanted.extend(b"new");
    second.hear(&mut said, &wanted);
}

#[test]
fn a_write_that_was_taken_in_part_stays_uncertain() {
    let world = world();
    let wait = |file| format!("while [ ! -e {file} ]; do sleep 0.01; done");
    let script = format!(
        "{}; head -c 8192 >took; {}; exec 0<&-; {}; sleep 600 & exit 4",
        wait("take"),
        wait("shut"),
        wait("go")
    );
    let attempt = world.launch(shell(&script).stdin_pipe().leftovers(Leftovers::Keep));
    let door = world.door(attempt.id());
    let (_, mut data) = bind(&door, 2);
    let mut said = Vec::new();
    data.write(2, 1, &vec![b'x'; 65_536]);
    assert_eq!(data.answer(&mut said), accepted(1, 2));
    // The pipe is full: this one waits in the runner.
    data.write(2, 2, &vec![b'y'; 65_536]);
    // Answered at once, and so after everything before it was heard.
    let turn = |data: &mut Data| {
        data.write(1, 9, b"not bound");
        let not_bound = refused(9, 1, InputRefused::NotBound);
        assert_eq!(data.answer(&mut Vec::new()), not_bound);
    };
    turn(&mut data);
    fs::write(world.work().join("take"), "").unwrap();
    wait_until(PATIENCE, "what the child takes", || {
        fs::metadata(world.work().join("took")).is_ok_and(|took| took.len() == 8192)
    });
    // Two turns, since in one the runner may answer before it looks at the pipe.
    turn(&mut data);
    turn(&mut data);
    fs::write(world.work().join("shut"), "").unwrap();
    let uncertain = |generation| refused(2, generation, InputRefused::Uncertain);
    assert_eq!(data.answer(&mut said), uncertain(2));
    data.write(2, 2, &vec![b'y'; 65_536]);
    assert_eq!(data.answer(&mut said), uncertain(2));
    // The next one is numbered behind it, and does not pass for it.
    let (reply, mut next) = bind(&door, 3);
    assert_eq!(reply.last_write_id, 2);
    next.write(3, 2, b"again");
    assert_eq!(next.answer(&mut said), uncertain(3));
    next.write(3, 3, b"more");
    assert_eq!(next.answer(&mut said), refused(3, 3, InputRefused::Closed));
    // Whatever becomes of the child.
    fs::write(world.work().join("go"), "").unwrap();
    while !matches!(next.receive(), Some(FromRunner::Exit { .. })) {}
    next.write(3, 2, b"again");
    assert_eq!(next.answer(&mut said), uncertain(3));
    let kinds = world.kinds(attempt.id());
    assert_eq!(kinds.iter().filter(|kind| **kind == "stdin.uncertain").count(), 1, "{kinds:?}");
}

#[test]
fn an_accepted_write_is_accepted_again_though_the_child_has_exited() {
    let world = world();
    let script = "read line; echo got $line; sleep 600 & while [ ! -e go ]; do sleep 0.01; done
        exit 3";
    let attempt = world.launch(shell(script).stdin_pipe().leftovers(Leftovers::Keep));
    let (_, mut data) = bind(&world.door(attempt.id()), 2);
    let mut said = Vec::new();
    data.write(2, 1, b"one\n");
    assert_eq!(data.answer(&mut said), accepted(1, 2));
    data.hear(&mut said, b"got one\n");
    fs::write(world.work().join("go"), "").unwrap();
    while !matches!(data.receive(), Some(FromRunner::Exit { .. })) {}
    data.write(2, 1, b"one\n");
    assert_eq!(data.answer(&mut said), accepted(1, 2));
    data.write(2, 2, b"two\n");
    assert_eq!(data.answer(&mut said), refused(2, 2, InputRefused::Exited));
}

#[test]
fn a_former_recipient_writes_nothing_more() {
    let world = world();
    let attempt = cat(&world);
    let door = world.door(attempt.id());
    let (_, mut first) = bind(&door, 2);
    let (_, mut second) = bind(&door, 3);
    assert_eq!(first.receive(), None, "its link is closed");
    assert!(door.data(RECIPIENT, 2).is_err(), "and it gets no other one");
    let mut said = Vec::new();
    second.write(3, 1, b"second\n");
    assert_eq!(second.answer(&mut said), accepted(1, 3));
    // Under the attachment of the former one it is refused with that one's number.
    second.write(2, 2, b"first\n");
    assert_eq!(second.answer(&mut said), refused(2, 2, InputRefused::NotBound));
    second.hear(&mut said, b"second\n");
    let generation = placement::Generation::new(3);
    let end = Input { write_id: 2, generation, end: true, bytes: Vec::new() };
    second.send(FromRecipient::Input(end));
    assert_eq!(second.answer(&mut said), accepted(2, 3));
    let mut ended = None;
    wait_until(PATIENCE, "the end", || {
        let attempt = attempt.attempt().unwrap();
        ended = attempt.exit;
        ended.is_some()
    });
    assert_eq!((ended, said.as_slice()), (Some(Exit::Code { code: 0 }), &b"second\n"[..]));
}
