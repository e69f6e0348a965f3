use crate::streams::Streams;
use crate::testing::*;
use crate::{HostPlace, Item};
use placement_contract::{
    AttemptId, Code, EvidenceKind, Exit, Generation, LaunchRequest, StreamName, WindowSize,
};
use placement_homes::{LogLimits, LogReader, LogWriter, StreamEnd};
use placement_protocol::{
    Chunk, ControlAnswer, Eof, ExitNotice, FromRecipient, FromRunner, InputAck, InputRefused,
    ResizeAck, ResizeRefused,
};
use placement_store::{Draft, Fields};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const FIRST: Generation = Generation::FIRST;

fn chunk(sequence: u64, text: &str) -> FromRunner {
    FromRunner::Chunk(Chunk {
        stream: StreamName::Stdout,
        sequence,
        offset: (sequence - 1) * 2,
        generation: FIRST,
        bytes: text.as_bytes().to_vec(),
    })
}

fn exit(code: i32) -> FromRunner {
    let notice = ExitNotice { exit: Some(Exit::Code { code }), uncertain: false, stopped: false };
    FromRunner::Exit { generation: FIRST, notice }
}

fn running(world: &World) -> (AttemptId, FakeRunner) {
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim(world, &id);
    runner.run(world, &gone_process());
    (id, runner)
}

fn streams(world: &World, id: &AttemptId) -> Streams {
    Streams::of_start(&world.service, id, &recipient("first"), FIRST)
}

fn next(streams: &mut Streams) -> Item {
    let deadline = Instant::now() + PATIENCE;
    streams.next(Some(deadline)).unwrap().expect("something comes in time")
}

fn sequence_of(item: &Item) -> Option<u64> {
    match item {
        Item::Chunk { sequence, .. } | Item::Eof { sequence, .. } => Some(*sequence),
        Item::Gap { .. }
        | Item::Exit { .. }
        | Item::Input { .. }
        | Item::Resized { .. }
        | Item::Taken
        | Item::End => None,
    }
}

/// Takes everything, acknowledging as it goes, and says which sequences came.
fn drain(streams: &mut Streams) -> (Vec<u64>, Vec<Item>) {
    let (mut sequences, mut others) = (Vec::new(), Vec::new());
    loop {
        let item = next(streams);
        match sequence_of(&item) {
            Some(sequence) => {
                sequences.push(sequence);
                streams.acknowledge(sequence).unwrap();
            }
            None if matches!(item, Item::End | Item::Taken) => {
                others.push(item);
                return (sequences, others);
            }
            None => others.push(item),
        }
    }
}

#[test]
fn output_comes_over_the_link_and_acknowledgments_go_back() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    let eof = Eof {
        stream: StreamName::Stdout,
        sequence: 2,
        offset: 2,
        generation: FIRST,
        truncated: true,
    };
    runner.serve(vec![chunk(1, "ab"), FromRunner::Eof(eof), exit(3)], move |message| {
        told.send(message).unwrap();
        None
    });
    let mut streams = streams(&world, &id);
    assert_eq!(
        next(&mut streams),
        Item::Chunk { stream: StreamName::Stdout, sequence: 1, offset: 0, bytes: b"ab".to_vec() }
    );
    streams.acknowledge(1).unwrap();
    assert_eq!(
        heard.recv_timeout(PATIENCE).unwrap(),
        FromRecipient::Ack { generation: FIRST, through: 1 }
    );
    let ended = Item::Eof { stream: StreamName::Stdout, sequence: 2, truncated: true };
    assert_eq!(next(&mut streams), ended);
    let exited =
        Item::Exit { exit: Some(Exit::Code { code: 3 }), uncertain: false, stopped: false };
    assert_eq!(next(&mut streams), exited);
}

#[test]
fn nothing_comes_at_the_deadline() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.serve(Vec::new(), |_| None);
    let mut streams = streams(&world, &id);
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(streams.next(Some(deadline)).unwrap(), None);
}

#[test]
fn what_did_not_come_cannot_be_acknowledged() {
    let world = World::new();
    let (id, _runner) = running(&world);
    assert_eq!(refusal(streams(&world, &id).acknowledge(1)).code, Code::Invalid);
}

/// Writes six records and acknowledges two, as a runner that then ends.
fn write_log(runner: &FakeRunner) {
    let mut log = LogWriter::create(&runner.directory, LogLimits::default()).unwrap();
    for text in ["ab", "cd", "ef", "gh", "ij"] {
        log.append(StreamName::Stdout, text.as_bytes()).unwrap();
    }
    log.append_end(StreamName::Stdout, StreamEnd::Whole).unwrap();
    log.acknowledge(2).unwrap();
}

#[test]
fn what_is_acknowledged_behind_the_end_does_not_come_again() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    runner.die();
    let mut first = streams(&world, &id);
    while next(&mut first) != Item::End {}
    first.acknowledge(4).unwrap();
    let mut second = streams(&world, &id);
    assert_eq!(sequence_of(&next(&mut second)), Some(5));
    // The first one has let go of the cursor, and takes it again.
    second.acknowledge(5).unwrap();
    drop(second);
    first.acknowledge(6).unwrap();
    assert_eq!(sequence_of(&next(&mut streams(&world, &id))), None);
}

#[test]
fn the_log_goes_on_where_the_link_ended_without_gap_or_repetition() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    let messages = (1..=4).map(|sequence| chunk(sequence, "xx"));
    let finished = FromRunner::Finished { generation: FIRST };
    runner.serve(messages.chain([finished]).collect(), |_| None);
    let mut streams = streams(&world, &id);
    let first: Vec<_> = (1..=4).map(|_| sequence_of(&next(&mut streams)).unwrap()).collect();
    assert_eq!(first, [1, 2, 3, 4]);
    // Acknowledged to a runner that ends before it hears of it.
    streams.acknowledge(3).unwrap();
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    runner.die();
    let (rest, others) = drain(&mut streams);
    assert_eq!(rest, [5, 6]);
    let exited =
        Item::Exit { exit: Some(Exit::Code { code: 0 }), uncertain: false, stopped: false };
    assert_eq!(others, [exited, Item::End]);
    let cursor = LogReader::open(&runner.directory).unwrap().consumed_through().unwrap();
    assert_eq!(cursor, 6);
}

#[test]
fn an_ended_attempt_is_served_from_the_acknowledged_cursor() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    let rows = [
        Draft::new(EvidenceKind::StopRequested, "forced"),
        Draft::exited(Some(Exit::Signal { signal: 9, core: false })),
    ];
    world.record(&id, &rows, &Fields::default());
    runner.die();
    let attach = || world.service.attach(&id, &recipient("later"), HostPlace::Keep).unwrap();
    let mut attached = attach();
    assert_eq!(sequence_of(&next(&mut attached.streams)), Some(3));
    attached.streams.acknowledge(3).unwrap();
    drop(attached);
    let (rest, others) = drain(&mut attach().streams);
    assert_eq!(rest, [4, 5, 6], "what was acknowledged does not come again");
    let signal = Exit::Signal { signal: 9, core: false };
    let exited = Item::Exit { exit: Some(signal), uncertain: false, stopped: true };
    assert_eq!(others, [exited, Item::End]);
    assert_eq!(drain(&mut attach().streams).0, Vec::<u64>::new());
}

#[test]
fn two_recipients_of_an_ended_attempt_do_not_both_move_the_cursor() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    runner.die();
    let mut one = streams(&world, &id);
    let mut two = streams(&world, &id);
    assert_eq!(sequence_of(&next(&mut one)), Some(3));
    one.acknowledge(3).unwrap();
    next(&mut two);
    assert_eq!(refusal(two.acknowledge(3)).code, Code::Conflict);
}

#[test]
fn a_runner_that_died_leaves_everything_that_it_had_written() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    runner.serve(vec![chunk(3, "ef")], |_| None);
    let mut streams = streams(&world, &id);
    assert_eq!(sequence_of(&next(&mut streams)), Some(3));
    runner.die();
    let (rest, others) = drain(&mut streams);
    assert_eq!(rest, [4, 5, 6]);
    assert_eq!(others, [Item::Exit { exit: None, uncertain: true, stopped: false }, Item::End]);
}

#[test]
fn a_recipient_whose_place_was_taken_is_told_so() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.serve(vec![chunk(1, "ab"), FromRunner::Finished { generation: FIRST }], |_| None);
    runner.answer(FIRST, |_, _| {
        Some(ControlAnswer::Attach(placement_protocol::AttachReply {
            fenced: true,
            refused: None,
            consumed_through: 0,
            last_write_id: 0,
        }))
    });
    let mut first = streams(&world, &id);
    next(&mut first);
    world.service.attach(&id, &recipient("second"), HostPlace::Keep).unwrap();
    assert_eq!(next(&mut first), Item::Taken);
    assert_eq!(next(&mut first), Item::Taken);
}

#[test]
fn input_is_numbered_and_its_answers_come_with_the_output() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    runner.serve(Vec::new(), move |message| {
        let FromRecipient::Input(input) = message else { panic!("input was sent") };
        let (write_id, end) = (input.write_id, input.end);
        told.send((write_id, input.bytes, end)).unwrap();
        let refused = end.then_some(InputRefused::Closed);
        Some(FromRunner::InputAck(InputAck { write_id, generation: FIRST, refused }))
    });
    let mut streams = streams(&world, &id);
    let sender = streams.input_sender().unwrap();
    assert_eq!(sender.send(b"hello").unwrap(), 1);
    let other = sender.clone();
    assert_eq!(std::thread::spawn(move || other.close().unwrap()).join().unwrap(), 2);
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), (1, b"hello".to_vec(), false));
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), (2, Vec::new(), true));
    assert_eq!(next(&mut streams), Item::Input { write_id: 1, refused: None });
    let refused = Some(InputRefused::Closed);
    assert_eq!(next(&mut streams), Item::Input { write_id: 2, refused });
    assert_eq!(refusal(sender.send(&vec![0; 65_537])).code, Code::Invalid);
}

#[test]
fn a_write_whose_answer_is_lost_with_the_runner_is_uncertain_and_told_once() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    runner.serve(Vec::new(), move |message| {
        let FromRecipient::Input(input) = message else { panic!("input was sent") };
        let write_id = input.write_id;
        told.send(write_id).unwrap();
        let ack = InputAck { write_id, generation: FIRST, refused: None };
        (write_id == 1).then_some(FromRunner::InputAck(ack))
    });
    let mut streams = streams(&world, &id);
    let sender = streams.input_sender().unwrap();
    for write_id in 1..=3 {
        assert_eq!(sender.send(b"hello").unwrap(), write_id);
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), write_id);
    }
    assert_eq!(next(&mut streams), Item::Input { write_id: 1, refused: None });
    runner.die();
    let (_, others) = drain(&mut streams);
    let uncertain = |write_id| Item::Input { write_id, refused: Some(InputRefused::Uncertain) };
    let exit = Item::Exit { exit: None, uncertain: true, stopped: false };
    assert_eq!(others, [uncertain(2), uncertain(3), exit, Item::End]);
    assert_eq!(refusal(sender.send(b"again")).code, Code::Conflict);
}

#[test]
fn a_size_whose_answer_is_lost_with_the_runner_is_uncertain_and_told_once() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    runner.serve(Vec::new(), move |message| {
        let FromRecipient::Resize(resize) = message else { panic!("a size was sent") };
        let resize_id = resize.resize_id;
        told.send(resize_id).unwrap();
        let ack = ResizeAck { resize_id, generation: FIRST, refused: None };
        (resize_id == 1).then_some(FromRunner::ResizeAck(ack))
    });
    let mut streams = streams(&world, &id);
    let sender = streams.input_sender().unwrap();
    let size = WindowSize::new(80, 24).unwrap();
    for resize_id in 1..=2 {
        assert_eq!(sender.resize(size).unwrap(), resize_id);
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), resize_id);
    }
    assert_eq!(next(&mut streams), Item::Resized { resize_id: 1, refused: None });
    runner.die();
    let (_, others) = drain(&mut streams);
    let uncertain = Item::Resized { resize_id: 2, refused: Some(ResizeRefused::Uncertain) };
    let exit = Item::Exit { exit: None, uncertain: true, stopped: false };
    assert_eq!(others, [uncertain, exit, Item::End]);
}

#[test]
fn an_answer_to_a_former_recipients_write_is_not_given_out() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let former = InputAck { write_id: 7, generation: FIRST, refused: None };
    runner.serve(vec![FromRunner::InputAck(former), chunk(1, "ab")], |_| None);
    assert_eq!(sequence_of(&next(&mut streams(&world, &id))), Some(1));
}

#[test]
fn input_for_an_attempt_without_a_runner_is_a_conflict() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.die();
    let mut streams = streams(&world, &id);
    assert_eq!(refusal(streams.input_sender()).code, Code::Conflict);
}

#[test]
fn an_observer_reads_from_the_start_and_acknowledges_nothing() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    write_log(&runner);
    let mut observer = world.service.observe(&id).unwrap();
    let deadline = || Some(Instant::now() + PATIENCE);
    for expected in 1..=6 {
        let item = observer.next(deadline()).unwrap().unwrap();
        assert_eq!(sequence_of(&item), Some(expected));
    }
    let shortly = Some(Instant::now() + Duration::from_millis(30));
    assert_eq!(observer.next(shortly).unwrap(), None, "the runner may write more");
    runner.die();
    assert_eq!(observer.next(deadline()).unwrap(), Some(Item::End));
    let cursor = LogReader::open(&runner.directory).unwrap().consumed_through().unwrap();
    assert_eq!(cursor, 2);
}

#[test]
fn an_attempt_without_a_log_cannot_be_looked_on_at() {
    let world = World::new();
    let mut memory = LaunchRequest { ..request("a", "k") };
    memory.supervision.spool_bytes_max = 0;
    let id = world.prepare(&memory);
    assert_eq!(refusal(world.service.observe(&id)).code, Code::Conflict);
}

#[test]
fn an_attempt_that_ended_without_a_child_has_no_exit_to_tell() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.die();
    let (sequences, others) = drain(&mut streams(&world, &id));
    assert!(sequences.is_empty());
    assert_eq!(others, [Item::End]);
}
