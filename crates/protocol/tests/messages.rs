//! Every message survives the wire exactly, and what is not exactly a message is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use placement_contract::attempt::RunnerStatus;
use placement_contract::{
    AttemptId, CapabilityReport, CleanupScope, Code, Controller, EnvironmentName, ExecutionState,
    Exit, ExitObservation, Generation, Id, Mechanism, MechanismReport, OwnerId, RecipientId,
    Refusal, Secret, StreamName, WindowSize,
};
use placement_identity::ProcessIdentity;
use placement_protocol::{
    Attach, AttachRefused, AttachReply, Chunk, ControlAnswer, ControlCall, ControlReply,
    ControlRequest, Environment, Eof, ExitNotice, Expected, Frame, FrameError, FromRecipient,
    FromRunner, Header, Hello, HelloRefused, Input, InputAck, InputRefused, Kind, LaunchOrder,
    LinkKind, MessageError, Order, OrderReply, RefusedWhy, ReplyError, Resize, ResizeAck,
    ResizeRefused, RootId, SPOKEN, StdinRefused, StdinReply, Stop, StopMode, StopReply,
    StoreLocation, Token, VersionRange, Welcome,
};
use std::collections::BTreeMap;

const ONE: Generation = Generation::FIRST;
const CANARY: &[u8] = b"canary-7f3a";

fn attempt() -> AttemptId {
    AttemptId::parse("build-17").unwrap()
}

fn recipient() -> RecipientId {
    RecipientId::parse("host-1").unwrap()
}

fn json_frame(kind: Kind, json: &str) -> Frame {
    Frame::new(Header::plain(kind), json.as_bytes().to_vec()).unwrap()
}

fn order(environment: Environment) -> Order {
    Order::Launch(Box::new(LaunchOrder {
        attempt_id: attempt(),
        owner_id: OwnerId::parse("local:0").unwrap(),
        root: "/srv/root".into(),
        root_id: RootId { device: u64::MAX, inode: 2 },
        store: StoreLocation {
            database: "/srv/root/placement.db".into(),
            lock: "/srv/root/placement.lock".into(),
        },
        home_key: Id::parse("ab12").unwrap(),
        tmp_base: Some("/tmp".into()),
        control_token: Token::new([7; 32]),
        search_path: "/usr/bin:/bin".into(),
        environment,
        host: ProcessIdentity::this_process().unwrap(),
        generation: ONE,
        recipient: recipient(),
        start_ms: 15_000,
    }))
}

fn environment(values: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Environment {
    let entry = |(name, value)| (EnvironmentName::parse(name).unwrap(), Secret::new(value));
    Environment(values.into_iter().map(entry).collect())
}

fn status(eof_seen: u8) -> RunnerStatus {
    RunnerStatus {
        execution: ExecutionState::Running,
        exit: None,
        eof_seen,
        unacknowledged_bytes: u64::MAX,
        output_full: false,
        generation: ONE,
        descendants: Some(3),
    }
}

fn reply(answer: ControlAnswer) -> ControlReply {
    ControlReply { attempt_id: attempt(), generation: ONE, probe: 5, answer }
}

fn believed(frame: &Frame) -> Result<ControlReply, ReplyError> {
    ControlReply::from_frame(frame, &Expected { attempt_id: &attempt(), generation: ONE, probe: 5 })
}

#[test]
fn a_launch_order_survives_the_wire() {
    let bytes: Vec<u8> = (1..=u8::MAX).collect();
    let sent = order(environment([("KEY", bytes.clone()), ("EMPTY", Vec::new())]));
    let Order::Launch(sent_launch) = &sent else { unreachable!("it was made as a launch") };
    let Order::Launch(read) = Order::from_frame(&sent.to_frame().unwrap()).unwrap() else {
        panic!("a launch was sent");
    };
    assert_eq!(read.attempt_id, sent_launch.attempt_id);
    assert_eq!(read.store, sent_launch.store);
    assert_eq!(read.tmp_base, sent_launch.tmp_base);
    assert_eq!(read.host, sent_launch.host);
    assert_eq!(read.control_token.expose(), [7; 32]);
    let values: BTreeMap<_, _> =
        read.environment.0.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(values, BTreeMap::from([("KEY", bytes.as_slice()), ("EMPTY", &[])]));
}

#[test]
fn the_largest_environment_fits_an_order() {
    let names = (0..64).map(|n| EnvironmentName::parse(&format!("NAME_{n}")).unwrap());
    let values = names.map(|name| (name, Secret::new(vec![b'x'; 16_384]))).collect();
    let frame = order(Environment(values)).to_frame().unwrap();
    assert!(frame.payload().len() > 2 * 64 * 16_384);
    assert!(Order::from_frame(&frame).is_ok());
}

#[test]
fn an_environment_above_its_bounds_is_refused() {
    let unfit = |value| order(environment([("KEY", value)])).to_frame().unwrap_err();
    assert_eq!(unfit(vec![b'x'; 16_385]), MessageError::Field("environment"));
    assert_eq!(unfit(vec![b'x', 0]), MessageError::Field("environment"));
    let names = (0..65).map(|n| EnvironmentName::parse(&format!("NAME_{n}")).unwrap());
    let many = names.map(|name| (name, Secret::new(Vec::new()))).collect();
    let refused = order(Environment(many)).to_frame().unwrap_err();
    assert_eq!(refused, MessageError::Field("environment"));
}

#[test]
fn nothing_secret_is_printed() {
    let order = order(environment([("KEY", CANARY.to_vec())]));
    let hello = Hello::control(attempt(), Token::new(*b"canary-7f3a-canary-7f3a-canary!!"));
    let input = Input { write_id: 1, generation: ONE, end: false, bytes: CANARY.to_vec() };
    let hex = "63616e617279";
    for printed in [
        format!("{order:?}"),
        format!("{:?}", order.to_frame().unwrap()),
        format!("{hello:?}"),
        format!("{:?}", hello.to_frame().unwrap()),
        format!("{input:?}"),
    ] {
        assert!(!printed.contains("canary"), "{printed}");
        assert!(!printed.contains(hex), "{printed}");
        assert!(!printed.contains("99, 97, 110"), "{printed}");
    }
}

#[test]
fn an_order_with_an_unknown_field_is_refused() {
    let frame = order(Environment::default()).to_frame().unwrap();
    let text = std::str::from_utf8(frame.payload()).unwrap();
    let more = text.replacen("\"attempt_id\"", "\"later\":1,\"attempt_id\"", 1);
    let refused = Order::from_frame(&json_frame(Kind::Order, &more)).unwrap_err();
    assert_eq!(refused, MessageError::Malformed(Kind::Order));
}

#[test]
fn a_token_that_is_too_short_is_refused() {
    let frame = order(Environment::default()).to_frame().unwrap();
    let text = std::str::from_utf8(frame.payload()).unwrap();
    let short = text.replacen(&"07".repeat(32), &"07".repeat(31), 1);
    assert_ne!(short, text);
    assert!(Order::from_frame(&json_frame(Kind::Order, &short)).is_err());
}

#[test]
fn a_probe_and_the_answers_to_an_order_survive_the_wire() {
    assert!(matches!(Order::from_frame(&Order::Probe.to_frame().unwrap()), Ok(Order::Probe)));
    let report = CapabilityReport {
        capability: CleanupScope::ContainedTree,
        mechanism: Some(Mechanism::Cgroup),
        exit_observation: ExitObservation::Independent,
        controllers: vec![Controller::Memory],
        mechanisms: vec![MechanismReport {
            mechanism: Mechanism::Cgroup,
            available: true,
            proof_survives_runner: true,
            failed_at: None,
            errno: None,
        }],
    };
    for answer in [
        OrderReply::Started { attempt_id: attempt() },
        OrderReply::Refused(Refusal::new(Code::Unavailable, "the program is gone")),
        OrderReply::Probed(report),
    ] {
        assert_eq!(OrderReply::from_frame(&answer.to_frame().unwrap()), Ok(answer));
    }
}

#[test]
fn a_hello_survives_the_wire() {
    let hello = Hello::data(attempt(), Token::new([9; 32]), ONE, recipient());
    let read = Hello::from_frame(&hello.to_frame().unwrap()).unwrap();
    assert_eq!((read.link, read.versions), (LinkKind::Data, SPOKEN));
    assert_eq!((read.attempt_id, read.generation), (Some(attempt()), Some(ONE)));
    assert_eq!(read.recipient, Some(recipient()));
    assert_eq!(read.token.unwrap().expose(), [9; 32]);
    let port = Hello::from_frame(&Hello::host_port().to_frame().unwrap()).unwrap();
    assert!(port.token.is_none());
}

#[test]
fn a_hello_without_what_its_link_needs_is_refused() {
    let bare = |link| Hello { link, ..Hello::host_port() };
    let unbound = Hello { link: LinkKind::Data, ..Hello::control(attempt(), Token::new([1; 32])) };
    let no_versions = Hello { versions: VersionRange { min: 2, max: 1 }, ..Hello::host_port() };
    for (hello, field) in [
        (bare(LinkKind::Control), "attempt or token"),
        (bare(LinkKind::Data), "attempt or token"),
        (unbound, "generation or recipient"),
        (no_versions, "version range"),
    ] {
        let refused = Hello::from_frame(&hello.to_frame().unwrap()).unwrap_err();
        assert_eq!(refused, MessageError::Field(field));
    }
}

#[test]
fn a_hello_of_a_newer_peer_can_be_read() {
    let json = r#"{"versions":{"min":2,"max":3},"link":"host_port","compression":"none"}"#;
    let hello = Hello::from_frame(&json_frame(Kind::Hello, json)).unwrap();
    assert_eq!(hello.versions.common(SPOKEN), None);
}

#[test]
fn the_answers_to_a_hello_survive_the_wire() {
    let welcome = Welcome { version: 1, versions: SPOKEN };
    assert_eq!(Welcome::from_frame(&welcome.to_frame().unwrap()), Ok(Ok(welcome)));
    let refused = HelloRefused::new(RefusedWhy::Busy);
    assert_eq!(Welcome::from_frame(&refused.to_frame().unwrap()), Ok(Err(refused)));
}

#[test]
fn a_version_that_was_not_offered_is_refused() {
    let welcome = Welcome { version: 2, versions: VersionRange { min: 1, max: 2 } };
    let refused = Welcome::from_frame(&welcome.to_frame().unwrap());
    assert_eq!(refused, Err(MessageError::Field("version")));
}

#[test]
fn a_refusal_of_a_newer_peer_is_unrecognized() {
    let json = r#"{"reason":"maintenance","versions":{"min":2,"max":3}}"#;
    let refused = Welcome::from_frame(&json_frame(Kind::HelloRefused, json)).unwrap();
    assert_eq!(refused.unwrap_err().reason, RefusedWhy::Unrecognized);
}

#[test]
fn every_call_survives_the_wire() {
    for call in [
        ControlCall::Status,
        ControlCall::Stop(Stop { mode: StopMode::Cooperative, grace_ms: Some(250) }),
        ControlCall::Stop(Stop { mode: StopMode::Forced, grace_ms: None }),
        ControlCall::Attach(Attach { recipient: recipient(), generation: ONE, adopt: true }),
        ControlCall::CloseStdin,
    ] {
        let request = ControlRequest { attempt_id: attempt(), probe: u64::MAX, call };
        assert_eq!(ControlRequest::from_frame(&request.to_frame().unwrap()), Ok(request));
    }
}

#[test]
fn a_call_that_is_not_exact_is_refused() {
    for json in [
        r#"{"attempt_id":"a","probe":1,"call":"start"}"#,
        r#"{"attempt_id":"a","probe":1,"call":{"stop":{"mode":"gentle"}}}"#,
        r#"{"attempt_id":"a","probe":1,"call":{"stop":{"mode":"forced","later":1}}}"#,
        r#"{"attempt_id":"a","probe":1,"call":{"stop":{"mode":"forced"},"status":null}}"#,
        r#"{"attempt_id":"a","probe":-1,"call":"status"}"#,
        r#"{"attempt_id":"a","probe":1,"probe":1,"call":"status"}"#,
        r#"{"attempt_id":"","probe":1,"call":"status"}"#,
        r#"{"attempt_id":"a","probe":1,"call":"status","later":1}"#,
        r#"{"attempt_id":"a","probe":1,"call":"status"} "trailing""#,
        "[]",
    ] {
        let refused = ControlRequest::from_frame(&json_frame(Kind::Request, json));
        assert_eq!(refused, Err(MessageError::Malformed(Kind::Request)), "{json}");
    }
}

#[test]
fn an_attachment_of_generation_0_is_refused() {
    let call = ControlCall::Attach(Attach {
        recipient: recipient(),
        generation: Generation::NONE,
        adopt: false,
    });
    let request = ControlRequest { attempt_id: attempt(), probe: 1, call };
    let refused = ControlRequest::from_frame(&request.to_frame().unwrap());
    assert_eq!(refused, Err(MessageError::Field("generation")));
}

#[test]
fn every_answer_survives_the_wire() {
    let bound = AttachReply { fenced: true, refused: None, consumed_through: 8, last_write_id: 2 };
    let unbound = AttachReply { fenced: false, refused: Some(AttachRefused::NotNewer), ..bound };
    let stop = StopReply { accepted: true, recorded: false, execution: ExecutionState::Stopping };
    for answer in [
        ControlAnswer::Status(status(2)),
        ControlAnswer::Stop(stop),
        ControlAnswer::Attach(bound),
        ControlAnswer::Attach(unbound),
        ControlAnswer::CloseStdin(StdinReply { closed: true, reason: None }),
        ControlAnswer::CloseStdin(StdinReply {
            closed: false,
            reason: Some(StdinRefused::Unsupported),
        }),
        ControlAnswer::Refused(Refusal::new(Code::Unsupported, "not offered")),
    ] {
        let sent = reply(answer);
        assert_eq!(believed(&sent.to_frame().unwrap()), Ok(sent));
    }
}

#[test]
fn an_answer_about_another_attempt_is_not_believed() {
    let other = AttemptId::parse("build-18").unwrap();
    let sent = ControlReply { attempt_id: other, ..reply(ControlAnswer::Status(status(0))) };
    assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::OtherAttempt));
}

#[test]
fn an_answer_from_another_attachment_is_not_believed() {
    let mut sent = reply(ControlAnswer::Status(status(0)));
    sent.generation = ONE.next();
    assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::OtherGeneration));
    let inner = RunnerStatus { generation: ONE.next(), ..status(0) };
    let sent = reply(ControlAnswer::Status(inner));
    assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::OtherGeneration));
}

#[test]
fn an_answer_to_another_call_is_not_believed() {
    let sent = ControlReply { probe: 6, ..reply(ControlAnswer::Status(status(0))) };
    assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::OtherProbe));
}

#[test]
fn more_ends_than_streams_are_not_believed() {
    let sent = reply(ControlAnswer::Status(status(3)));
    assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::EofSeen));
}

#[test]
fn a_refusal_without_a_reason_is_not_believed() {
    let stdin = StdinReply { closed: false, reason: None };
    let attach =
        AttachReply { fenced: false, refused: None, consumed_through: 0, last_write_id: 0 };
    for answer in [ControlAnswer::CloseStdin(stdin), ControlAnswer::Attach(attach)] {
        let sent = reply(answer);
        assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::Contradiction));
    }
}

#[test]
fn a_success_with_a_reason_is_not_believed() {
    let stdin = StdinReply { closed: true, reason: Some(StdinRefused::Exited) };
    let attach = AttachReply {
        fenced: true,
        refused: Some(AttachRefused::NotNewer),
        consumed_through: 0,
        last_write_id: 0,
    };
    for answer in [ControlAnswer::CloseStdin(stdin), ControlAnswer::Attach(attach)] {
        let sent = reply(answer);
        assert_eq!(believed(&sent.to_frame().unwrap()), Err(ReplyError::Contradiction));
    }
}

#[test]
fn a_status_that_is_not_exact_is_not_believed() {
    let sent = reply(ControlAnswer::Status(status(0))).to_frame().unwrap();
    let text = std::str::from_utf8(sent.payload()).unwrap();
    for (exact, damaged) in [
        ("\"running\"", "\"sleeping\""),
        ("\"eof_seen\":0", "\"eof_seen\":0.5"),
        ("\"eof_seen\":0", "\"eof_seen\":-1"),
        ("\"eof_seen\":0", "\"eof_seen\":0,\"later\":1"),
        ("\"output_full\":false", "\"output_full\":\"no\""),
        ("\"output_full\":false,", ""),
        ("\"probe\":5", "\"probe\":5,\"later\":1"),
    ] {
        let changed = text.replacen(exact, damaged, 1);
        assert_ne!(changed, text, "{exact} is in the message");
        let refused = believed(&json_frame(Kind::Reply, &changed));
        let malformed = ReplyError::Malformed(MessageError::Malformed(Kind::Reply));
        assert_eq!(refused, Err(malformed), "{damaged}");
    }
}

#[test]
fn everything_that_a_runner_sends_survives_the_wire() {
    let exit = |exit, uncertain| FromRunner::Exit {
        generation: ONE,
        notice: ExitNotice { exit, uncertain, stopped: true },
    };
    let eof = Eof {
        stream: StreamName::Stderr,
        sequence: 9,
        offset: u64::MAX,
        generation: ONE,
        truncated: true,
    };
    let ack = InputAck { write_id: 4, generation: ONE.next(), refused: None };
    let resized = ResizeAck { resize_id: 5, generation: ONE.next(), refused: None };
    for message in [
        FromRunner::Chunk(Chunk {
            stream: StreamName::Stdout,
            sequence: u64::MAX,
            offset: 12,
            generation: ONE,
            bytes: vec![0; 65_536],
        }),
        FromRunner::Eof(eof),
        FromRunner::Eof(Eof { truncated: false, ..eof }),
        exit(Some(Exit::Code { code: 137 }), false),
        exit(Some(Exit::Signal { signal: 9, core: false }), false),
        exit(None, true),
        exit(None, false),
        FromRunner::Finished { generation: ONE },
        FromRunner::InputAck(ack),
        FromRunner::InputAck(InputAck { refused: Some(InputRefused::NotBound), ..ack }),
        FromRunner::ResizeAck(resized),
        FromRunner::ResizeAck(ResizeAck { refused: Some(ResizeRefused::NotBound), ..resized }),
    ] {
        let frame = message.clone().into_frame().unwrap();
        assert_eq!(FromRunner::from_frame(frame), Ok(message));
    }
}

#[test]
fn everything_that_a_recipient_sends_survives_the_wire() {
    for (end, bytes) in [(true, Vec::new()), (false, vec![7; 65_536])] {
        let input = FromRecipient::Input(Input { write_id: 3, generation: ONE, end, bytes });
        let frame = input.clone().into_frame().unwrap();
        assert_eq!(FromRecipient::from_frame(frame), Ok(input));
    }
    let size = WindowSize::new(1000, 500).unwrap();
    let resize = FromRecipient::Resize(Resize { resize_id: 7, generation: ONE, size });
    let frame = resize.clone().into_frame().unwrap();
    assert_eq!(FromRecipient::from_frame(frame), Ok(resize));
}

#[test]
fn an_absurd_size_is_refused() {
    let header = Header { generation: ONE, sequence: 1, ..Header::plain(Kind::Resize) };
    for json in [
        r#"{"columns":0,"rows":0}"#,
        r#"{"columns":65535,"rows":65535}"#,
        r#"{"columns":1001,"rows":1}"#,
        r#"{"columns":80,"rows":501}"#,
        r#"{"columns":80}"#,
        r#"{"columns":80,"rows":24,"depth":1}"#,
    ] {
        let frame = Frame::new(header, json.as_bytes().to_vec()).unwrap();
        let refused = FromRecipient::from_frame(frame);
        assert_eq!(refused, Err(MessageError::Malformed(Kind::Resize)), "{json}");
    }
}

#[test]
fn an_accepted_size_with_a_reason_is_refused() {
    let ack = ResizeAck { resize_id: 4, generation: ONE, refused: None };
    let frame = FromRunner::ResizeAck(ack).into_frame().unwrap();
    let changed = Frame::new(*frame.header(), br#"{"reason":"no_window"}"#.to_vec()).unwrap();
    assert_eq!(FromRunner::from_frame(changed), Err(MessageError::Field("reason")));
}

#[test]
fn input_above_its_bound_is_refused() {
    let input = Input { write_id: 1, generation: ONE, end: false, bytes: vec![7; 65_537] };
    let refused = FromRecipient::Input(input).into_frame().unwrap_err();
    let too_large = FrameError::TooLarge { bytes: 65_537, bytes_max: 65_536 };
    assert_eq!(refused, MessageError::Frame(too_large));
}

#[test]
fn a_message_of_the_other_direction_is_refused() {
    let ack = FromRecipient::Ack { generation: ONE, through: 1 };
    let refused = FromRunner::from_frame(ack.into_frame().unwrap());
    assert_eq!(refused, Err(MessageError::Kind(Kind::Ack)));
    let finished = FromRunner::Finished { generation: ONE };
    let refused = FromRecipient::from_frame(finished.into_frame().unwrap());
    assert_eq!(refused, Err(MessageError::Kind(Kind::Finished)));
}

#[test]
fn an_exit_that_is_known_and_uncertain_is_refused() {
    let header = Header { generation: ONE, ..Header::plain(Kind::Exit) };
    let json = br#"{"exit":{"code":0},"uncertain":true,"stopped":false}"#;
    let frame = Frame::new(header, json.to_vec()).unwrap();
    assert_eq!(FromRunner::from_frame(frame), Err(MessageError::Field("exit")));
}

#[test]
fn an_accepted_input_with_a_reason_is_refused() {
    let ack = InputAck { write_id: 4, generation: ONE, refused: None };
    let frame = FromRunner::InputAck(ack).into_frame().unwrap();
    let changed = Frame::new(*frame.header(), br#"{"reason":"closed"}"#.to_vec()).unwrap();
    assert_eq!(FromRunner::from_frame(changed), Err(MessageError::Field("reason")));
}
