//! What is recorded of a window, and who may touch it.

use crate::{assert_in_order, in_window, world};
use placement::{
    ExecutionState, Exit, Generation, InputOutcome, InputRefused, OnHostLoss, ResizeOutcome,
    ResizeRefused, WindowSize,
};
use placement_world::protocol::{
    Attach, ControlAnswer, ControlCall, FromRecipient, FromRunner, Input, InputAck, Resize,
    ResizeAck,
};
use placement_world::{Data, RecipientId, Shut, shell};

const FOREVER: &str = "echo ready; exec sleep 600";

fn resize(generation: u64, columns: u16) -> FromRecipient {
    let size = WindowSize::new(columns, 30).unwrap();
    let generation = Generation::new(generation);
    FromRecipient::Resize(Resize { resize_id: 7, generation, size })
}

#[track_caller]
fn answer(data: &mut Data) -> ResizeAck {
    loop {
        if let FromRunner::ResizeAck(ack) = data.receive().expect("the link stays open") {
            return ack;
        }
    }
}

#[test]
fn who_it_is_is_recorded_before_its_first_word() {
    let world = world();
    let attempt = world.launch(in_window("stty size; exec sleep 600"));
    let mut output = attempt.output();
    let first = output.next().unwrap().unwrap();
    assert_eq!(first.bytes(), b"24 80\r\n");
    assert_in_order(&world, attempt.id(), &["child.creating", "child.identified", "child.started"]);
    let rows = world.host().evidence(attempt.id(), 0, None).unwrap();
    let creating = rows.iter().find(|row| row.kind.label() == "child.creating").unwrap();
    let detail = &creating.detail;
    assert!(detail.ends_with(", in a window of 80 columns, 24 rows"), "{detail}");
}

#[test]
fn a_live_window_is_at_rest_in_a_sweep() {
    let world = world();
    let attempt = world.launch(in_window(FOREVER));
    let before = world.kinds(attempt.id());
    for _ in 0..2 {
        let said = world.program().run(["sweep"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "1 looked at, 0 changed\n"), "{said:?}");
    }
    let seen = world.host().reconcile(attempt.id()).unwrap();
    assert_eq!(seen.execution_state, ExecutionState::Running);
    assert_eq!(world.kinds(attempt.id()), before);
    assert_eq!(world.runner(attempt.id()).execution, ExecutionState::Running);
}

#[test]
fn only_the_bound_recipient_of_the_current_attachment_resizes() {
    let world = world();
    let attempt =
        world.launch(in_window("trap 'stty size' WINCH; : >ready; while :; do sleep 0.01; done"));
    world.wait_for_file("ready");
    let door = world.door(attempt.id());
    let recipient = RecipientId::parse("bound").unwrap();
    let generation = Generation::new(2);
    let call = ControlCall::Attach(Attach { recipient, generation, adopt: false });
    let bound = door.control().unwrap().ask(call, None);
    assert!(matches!(bound, Some(ControlAnswer::Attach(reply)) if reply.fenced), "{bound:?}");
    let mut data = door.data("bound", 2).unwrap();
    data.send(resize(1, 100));
    let refused = Some(ResizeRefused::NotBound);
    let ack = ResizeAck { resize_id: 7, generation: Generation::new(1), refused };
    assert_eq!(answer(&mut data), ack);
    data.send(resize(2, 110));
    let ack = ResizeAck { resize_id: 7, generation, refused: None };
    assert_eq!(answer(&mut data), ack);
    let mut said = Vec::new();
    while !said.ends_with(b"\n") {
        if let FromRunner::Chunk(chunk) = data.receive().expect("the link stays open") {
            said.extend(chunk.bytes);
        }
    }
    assert_eq!(said, b"30 110\r\n", "the refused size has no effect");
}

#[test]
fn whoever_has_no_token_neither_stops_nor_resizes_it() {
    let world = world();
    let attempt = world.launch(in_window(FOREVER));
    let before = attempt.attempt().unwrap();
    let stranger = world.door(attempt.id()).without_the_token();
    assert_eq!(stranger.control().err(), Some(Shut::Silently));
    assert_eq!(stranger.data("stranger", 1).err(), Some(Shut::Silently));
    assert_eq!(world.runner(attempt.id()).execution, ExecutionState::Running);
    assert_eq!(attempt.attempt().unwrap(), before);
}

#[test]
fn the_end_of_its_input_is_refused() {
    let world = world();
    let attempt = world.launch(in_window("exec cat"));
    let door = world.door(attempt.id());
    let recipient = RecipientId::parse("bound").unwrap();
    let generation = Generation::new(2);
    let call = ControlCall::Attach(Attach { recipient, generation, adopt: false });
    door.control().unwrap().ask(call, None);
    let mut data = door.data("bound", 2).unwrap();
    data.send(FromRecipient::Input(Input { write_id: 1, generation, end: true, bytes: vec![] }));
    loop {
        if let FromRunner::InputAck(ack) = data.receive().expect("the link stays open") {
            let refused = Some(InputRefused::NoEnd);
            assert_eq!(ack, InputAck { write_id: 1, generation, refused });
            break;
        }
    }
    assert_eq!(world.runner(attempt.id()).execution, ExecutionState::Running);
}

#[test]
fn an_embedder_writes_resizes_and_reads() {
    let world = world();
    let script = "echo ready; read line; echo \"got $line\"; read line; stty size; exit 6";
    let attempt = world.launch(in_window(script));
    assert!(attempt.is_window());
    assert_eq!(attempt.write_input(b"hello\r").unwrap(), InputOutcome::Accepted);
    assert_eq!(attempt.resize(1000, 500).unwrap(), ResizeOutcome::Accepted);
    assert_eq!(attempt.resize(1001, 500).unwrap_err().code(), placement::Code::Invalid);
    assert_eq!(attempt.write_input(b"\r").unwrap(), InputOutcome::Accepted);
    let said = world.text(&attempt);
    assert_eq!(said.stderr, "");
    assert!(said.stdout.ends_with("500 1000\r\n"), "{said:?}");
    assert!(said.stdout.contains("got hello\r\n"), "{said:?}");
    let ended = attempt.resize(80, 24).unwrap();
    assert!(!matches!(ended, ResizeOutcome::Accepted), "{ended:?}");
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 6 }));
    world.assert_clean(&end);
}

#[test]
fn a_program_without_a_window_is_not_resized() {
    let world = world();
    let attempt = world.launch(shell("exec sleep 600").stdin_pipe());
    let refused = ResizeOutcome::NotAccepted(ResizeRefused::NoWindow);
    assert_eq!(attempt.resize(80, 24).unwrap(), refused);
    let mut data = world.door(attempt.id()).data(&recipient_of(&world, &attempt), 1);
    let data = data.as_mut().unwrap();
    data.send(resize(1, 100));
    let refused = Some(ResizeRefused::NoWindow);
    assert_eq!(answer(data), ResizeAck { resize_id: 7, generation: Generation::FIRST, refused });
}

/// The host of a world names itself by its process.
fn recipient_of(_world: &placement_world::World, _attempt: &placement::AttemptHandle) -> String {
    format!("host:{}", std::process::id())
}

#[test]
fn a_launch_with_a_key_keeps_its_recorded_window() {
    let world = world();
    let launch = |columns| {
        let launch = shell("echo up; read line; stty size").window(columns, 24, "xterm-test");
        launch.key("k").on_host_loss(OnHostLoss::Keep)
    };
    let first = world.launch(launch(80));
    let again = world.launch(launch(100));
    assert_eq!((again.id(), again.is_replay()), (first.id(), true));
    assert_eq!(again.write_input(b"\r").unwrap(), InputOutcome::Accepted);
    assert!(world.text(&again).stdout.ends_with("24 80\r\n"));
}
