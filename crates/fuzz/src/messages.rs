//! The messages of both sockets and of the host port.

use crate::input::Input as Bytes;
use placement_contract::{
    AttemptId, Code, EnvironmentName, Exit, Generation, Id, OwnerId, RecipientId, Refusal, Secret,
    StreamName,
};
use placement_identity::ProcessIdentity;
use placement_protocol::limits::HEADER_BYTES;
use placement_protocol::{
    Attach, AttachRefused, AttachReply, Chunk, ControlAnswer, ControlCall, ControlReply,
    ControlRequest, Decoder, Environment, Eof, ExitNotice, Expected, Frame, FromRecipient,
    FromRunner, Header, Hello, Input, InputAck, InputRefused, Kind, LaunchOrder, LinkKind, Order,
    OrderReply, RootId, Stop, StopMode, StoreLocation, Token, Welcome,
};
use std::collections::BTreeMap;

/// The first byte chooses the kind; header and payload follow, their lengths made to fit.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Bytes::new(bytes);
    let kind = input.choose(Kind::ALL);
    let mut header = [0; HEADER_BYTES];
    let given = input.take(HEADER_BYTES - 5);
    header[5..5 + given.len()].copy_from_slice(given);
    let payload = input.rest();
    let payload = &payload[..payload.len().min(kind.payload_bytes_max())];
    let length = u32::try_from(payload.len()).expect("an input is short");
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4] = kind.number();
    for link in [LinkKind::HostPort, LinkKind::Control, LinkKind::Data] {
        let mut decoder = Decoder::new(link);
        if decoder.push(&header).is_err() {
            continue;
        }
        let taken = decoder.push(payload).expect("a payload has no form of its own");
        assert_eq!(taken, payload.len(), "a payload is taken whole");
        let frame = decoder.take_frame().expect("it is whole");
        assert_eq!(frame.payload(), payload);
        read(*frame.header(), payload);
    }
}

/// Reads a frame as each message that there is. It is one at most; what was read is written and
/// read again as the same.
pub(crate) fn read(header: Header, payload: &[u8]) {
    let frame = || Frame::new(header, payload.to_vec()).expect("it was decoded");
    let read = [
        read_hello(&frame()),
        Welcome::from_frame(&frame()).is_ok_and(|answer| {
            if let Ok(welcome) = answer {
                let again = welcome.to_frame().expect("it was read");
                assert_eq!(Welcome::from_frame(&again), Ok(Ok(welcome)));
            }
            true
        }),
        read_order(&frame()),
        OrderReply::from_frame(&frame()).is_ok_and(|reply| {
            let again = reply.to_frame().expect("it was read");
            OrderReply::from_frame(&again).as_ref() == Ok(&reply) || changed(&reply)
        }),
        ControlRequest::from_frame(&frame()).is_ok_and(|request| {
            let again = request.to_frame().expect("it was read");
            ControlRequest::from_frame(&again).as_ref() == Ok(&request) || changed(&request)
        }),
        read_reply(&frame()),
        FromRunner::from_frame(frame()).is_ok_and(|message| {
            let again = message.clone().into_frame().expect("it was read");
            FromRunner::from_frame(again).as_ref() == Ok(&message) || changed(&message)
        }),
        FromRecipient::from_frame(frame()).is_ok_and(|message| {
            let again = message.clone().into_frame().expect("it was read");
            FromRecipient::from_frame(again).as_ref() == Ok(&message) || changed(&message)
        }),
    ];
    let count = read.iter().filter(|read| **read).count();
    assert!(count <= 1, "{header:?} is {count} messages");
}

fn changed(message: &dyn std::fmt::Debug) -> bool {
    panic!("{message:?} is another one once it was written");
}

/// Neither a hello nor an order can be compared: they hold secrets. Their texts can.
fn read_hello(frame: &Frame) -> bool {
    let Ok(hello) = Hello::from_frame(frame) else { return false };
    let written = hello.to_frame().expect("it was read");
    let again = Hello::from_frame(&written).expect("what was written is read");
    let again = again.to_frame().expect("it was read");
    assert_eq!(again.payload(), written.payload(), "a hello changed");
    true
}

fn read_order(frame: &Frame) -> bool {
    let Ok(order) = Order::from_frame(frame) else { return false };
    let written = order.to_frame().expect("it was read");
    let again = Order::from_frame(&written).expect("what was written is read");
    let again = again.to_frame().expect("it was read");
    assert_eq!(again.payload(), written.payload(), "an order changed");
    true
}

/// An answer is believed by a call that fits it, and by no other.
fn read_reply(frame: &Frame) -> bool {
    let Ok(said) = serde_json::from_slice::<ControlReply>(frame.payload()) else { return false };
    let fitting =
        Expected { attempt_id: &said.attempt_id, generation: said.generation, probe: said.probe };
    let other = Expected { probe: said.probe ^ 1, ..fitting };
    assert!(ControlReply::from_frame(frame, &other).is_err(), "an answer to another call");
    let Ok(reply) = ControlReply::from_frame(frame, &fitting) else { return false };
    let again = reply.to_frame().expect("it was read");
    assert_eq!(ControlReply::from_frame(&again, &fitting).as_ref(), Ok(&reply));
    true
}

fn attempt_id() -> AttemptId {
    AttemptId::parse("attempt-1").expect("a short text is an id")
}

fn recipient() -> RecipientId {
    RecipientId::parse("reader").expect("a short text is an id")
}

/// One frame of each message, as their own sides write them.
pub(crate) fn sound() -> Vec<Frame> {
    let mut frames = host_port();
    frames.extend(control());
    frames.extend(data());
    frames
}

fn host_port() -> Vec<Frame> {
    let name = EnvironmentName::parse("LANG").expect("it is a name");
    let order = LaunchOrder {
        attempt_id: attempt_id(),
        owner_id: OwnerId::parse("local:1").expect("a short text is an id"),
        root: "/root".into(),
        root_id: RootId { device: 1, inode: 2 },
        store: StoreLocation { database: "/root/db".into(), lock: "/root/lock".into() },
        home_key: Id::parse("home").expect("a short text is an id"),
        tmp_base: Some("/tmp".into()),
        control_token: Token::new([7; 32]),
        search_path: "/bin".to_owned(),
        environment: Environment(BTreeMap::from([(name, Secret::new(b"C".to_vec()))])),
        host: ProcessIdentity {
            pid: placement_identity::Pid::try_from(7_u32).expect("it is above zero"),
            pgid: placement_identity::Pid::try_from(7_u32).expect("it is above zero"),
            start_ticks: 8_812,
            boot_id: "boot".to_owned(),
            pidfd_inode: Some(9),
            observer: placement_identity::Observer {
                machine_id: Some("machine".to_owned()),
                pid_namespace: 1,
                time_namespace: Some(2),
                cgroup_namespace: Some(3),
            },
        },
        generation: Generation::FIRST,
        recipient: recipient(),
        start_ms: 5_000,
    };
    let refusal = Refusal::new(Code::Unavailable, "not now").with_hint("later");
    let frames = [
        Hello::host_port().to_frame(),
        Order::Probe.to_frame(),
        Order::Launch(Box::new(order)).to_frame(),
        OrderReply::Started { attempt_id: attempt_id() }.to_frame(),
        OrderReply::Refused(refusal).to_frame(),
    ];
    frames.into_iter().map(|frame| frame.expect("a sound message fits")).collect()
}

fn control() -> Vec<Frame> {
    let generation = Generation::FIRST.next();
    let calls = [
        ControlCall::Status,
        ControlCall::Stop(Stop { mode: StopMode::Cooperative, grace_ms: Some(100) }),
        ControlCall::Attach(Attach { recipient: recipient(), generation, adopt: true }),
        ControlCall::CloseStdin,
    ];
    let requests = calls
        .into_iter()
        .map(|call| ControlRequest { attempt_id: attempt_id(), probe: 3, call }.to_frame());
    let attach = AttachReply {
        fenced: false,
        refused: Some(AttachRefused::NotNewer),
        consumed_through: 4,
        last_write_id: 2,
    };
    let replies = [
        ControlAnswer::Attach(attach),
        ControlAnswer::Refused(Refusal::new(Code::Conflict, "another one")),
    ]
    .into_iter()
    .map(|answer| {
        ControlReply { attempt_id: attempt_id(), generation, probe: 3, answer }.to_frame()
    });
    let hello = Hello::control(attempt_id(), Token::new([7; 32])).to_frame();
    let frames = std::iter::once(hello).chain(requests).chain(replies);
    frames.map(|frame| frame.expect("a sound message fits")).collect()
}

fn data() -> Vec<Frame> {
    let generation = Generation::FIRST;
    let chunk = Chunk {
        stream: StreamName::Stderr,
        sequence: 1,
        offset: 9,
        generation,
        bytes: b"seven".to_vec(),
    };
    let eof =
        Eof { stream: StreamName::Stdout, sequence: 2, offset: 14, generation, truncated: true };
    let notice = ExitNotice {
        exit: Some(Exit::Signal { signal: 9, core: false }),
        uncertain: false,
        stopped: true,
    };
    let refused = Some(InputRefused::Forgotten);
    let input = Input { write_id: 2, generation, end: true, bytes: b"yes".to_vec() };
    let hello = Hello::data(attempt_id(), Token::new([7; 32]), generation, recipient());
    let frames = [
        hello.to_frame(),
        FromRunner::Chunk(chunk).into_frame(),
        FromRunner::Eof(eof).into_frame(),
        FromRunner::Exit { generation, notice }.into_frame(),
        FromRunner::Finished { generation }.into_frame(),
        FromRunner::InputAck(InputAck { write_id: 2, generation, refused }).into_frame(),
        FromRecipient::Ack { generation, through: 2 }.into_frame(),
        FromRecipient::Input(input).into_frame(),
    ];
    frames.into_iter().map(|frame| frame.expect("a sound message fits")).collect()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let seed = |frame: &Frame| {
        let kind = Kind::ALL.iter().zip(0_u8..).find(|(kind, _)| **kind == frame.header().kind);
        let (_, number) = kind.expect("each kind is one of all");
        [&[number], &frame.header_bytes()[5..], frame.payload()].concat()
    };
    sound().iter().map(seed).collect()
}
