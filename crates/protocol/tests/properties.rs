//! What holds for any bytes on a link: the pieces in which they come change nothing, and every
//! frame is a message or is refused.
//!
//! Every run takes the same values, so that a failure is seen again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::{
    AttemptId, EnvironmentName, Generation, Id, OwnerId, RecipientId, Secret, StreamName,
};
use placement_identity::ProcessIdentity;
use placement_protocol::limits::HEADER_BYTES;
use placement_protocol::{
    Chunk, ControlCall, ControlRequest, Decoder, Environment, Frame, FrameError, FromRecipient,
    FromRunner, Header, Hello, Input, Kind, LaunchOrder, LinkKind, Order, OrderReply, RootId,
    StoreLocation, Token, Welcome, encode,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const LINKS: [LinkKind; 3] = [LinkKind::HostPort, LinkKind::Control, LinkKind::Data];

fn order(values: Vec<Vec<u8>>) -> Order {
    let named = values.into_iter().enumerate().map(|(number, value)| {
        (EnvironmentName::parse(&format!("N{number}")).unwrap(), Secret::new(value))
    });
    Order::Launch(Box::new(LaunchOrder {
        attempt_id: AttemptId::parse("a").unwrap(),
        owner_id: OwnerId::parse("o").unwrap(),
        root: "/root".into(),
        root_id: RootId { device: 1, inode: 2 },
        store: StoreLocation { database: "/root/db".into(), lock: "/root/lock".into() },
        home_key: Id::parse("home").unwrap(),
        tmp_base: None,
        control_token: Token::new([7; 32]),
        search_path: "/bin".to_owned(),
        environment: Environment(named.collect()),
        host: ProcessIdentity::this_process().unwrap(),
        generation: Generation::FIRST,
        recipient: RecipientId::parse("me").unwrap(),
        start_ms: 1,
    }))
}

/// Frames that belong to a link, as their own side writes them.
fn sound() -> Vec<Frame> {
    let attempt_id = AttemptId::parse("a").unwrap();
    let call = ControlCall::CloseStdin;
    let chunk = |sequence| Chunk {
        stream: StreamName::Stderr,
        sequence,
        offset: 9,
        generation: Generation::FIRST,
        bytes: vec![7; 40],
    };
    let input = Input { write_id: 2, generation: Generation::FIRST, end: true, bytes: vec![1] };
    let ack = FromRecipient::Ack { generation: Generation::FIRST, through: 2 };
    vec![
        Order::Probe.to_frame().unwrap(),
        OrderReply::Started { attempt_id: attempt_id.clone() }.to_frame().unwrap(),
        ControlRequest { attempt_id, probe: 3, call }.to_frame().unwrap(),
        FromRunner::Chunk(chunk(1)).into_frame().unwrap(),
        FromRunner::Chunk(chunk(2)).into_frame().unwrap(),
        FromRecipient::Input(input).into_frame().unwrap(),
        ack.into_frame().unwrap(),
    ]
}

/// Bytes of a link: frames one after another, some of them damaged, and at last anything.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    let frames = vec((any::<prop::sample::Index>(), damage), 0..8);
    (frames, vec(any::<u8>(), 0..80)).prop_map(|(frames, tail)| {
        let sound = sound();
        let mut bytes = Vec::new();
        for (which, damage) in frames {
            let mut frame = Vec::new();
            encode(which.get(&sound), &mut frame);
            if let Some((at, byte)) = damage {
                *at.get_mut(&mut frame) = byte;
            }
            bytes.extend(frame);
        }
        bytes.extend(tail);
        bytes
    })
}

/// Everything that a decoder gives out, how it ends, and whether that is within a frame.
type Decoded = (Vec<(Header, Vec<u8>)>, Result<bool, FrameError>);

fn decode(link: LinkKind, bytes: &[u8], mut piece: impl FnMut(usize) -> usize) -> Decoded {
    let mut decoder = Decoder::new(link);
    let (mut frames, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        match decoder.push(&rest[..piece(rest.len())]) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) => return (frames, Err(error)),
        }
        if let Some(frame) = decoder.take_frame() {
            frames.push((*frame.header(), frame.payload().to_vec()));
        }
    }
    (frames, Ok(decoder.is_inside_frame()))
}

/// Reads a frame as each message that there is; it is one at most, and read alike from its own
/// writing.
fn read(header: Header, payload: &[u8]) {
    let frame = || Frame::new(header, payload.to_vec()).expect("it was decoded");
    let read = [
        Hello::from_frame(&frame()).is_ok(),
        Welcome::from_frame(&frame()).is_ok(),
        OrderReply::from_frame(&frame()).is_ok(),
        ControlRequest::from_frame(&frame()).is_ok(),
        FromRunner::from_frame(frame()).is_ok(),
        FromRecipient::from_frame(frame()).is_ok(),
        Order::from_frame(&frame()).is_ok(),
    ];
    assert!(read.iter().filter(|read| **read).count() <= 1, "{header:?}");
    if let Ok(order) = Order::from_frame(&frame()) {
        let written = order.to_frame().unwrap();
        let again = Order::from_frame(&written).unwrap().to_frame().unwrap();
        assert_eq!(written.payload(), again.payload());
    }
}

/// Puts a value in the place of another one, found by walking down with a list of choices.
fn replace(value: &mut Value, choices: &[usize], by: Value) {
    let Some((choice, deeper)) = choices.split_first() else { return *value = by };
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            let name = entries.keys().nth(choice % entries.len()).unwrap().clone();
            replace(&mut entries[&name], deeper, by);
        }
        Value::Array(items) if !items.is_empty() => {
            let index = choice % items.len();
            replace(&mut items[index], deeper, by);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => *value = by,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_the_same_frames_in_whatever_pieces_they_come(
        link in prop::sample::select(&LINKS[..]),
        bytes in stream(),
        pieces in vec(1_usize..70, 1..20),
    ) {
        let whole = decode(link, &bytes, |rest| rest);
        let mut next = pieces.iter().cycle();
        let parts = decode(link, &bytes, |rest| rest.min(*next.next().unwrap()));
        prop_assert_eq!(&parts, &whole);
        let single = decode(link, &bytes, |_| 1);
        prop_assert_eq!(&single, &whole);
        for (header, payload) in &whole.0 {
            read(*header, payload);
        }
    }

    #[test]
    fn frames_that_were_decoded_are_written_as_they_came(
        link in prop::sample::select(&LINKS[..]),
        bytes in stream(),
    ) {
        let (frames, _) = decode(link, &bytes, |rest| rest);
        let mut written = Vec::new();
        for (header, payload) in frames {
            encode(&Frame::new(header, payload).unwrap(), &mut written);
        }
        prop_assert!(bytes.starts_with(&written));
    }

    #[test]
    fn a_payload_of_any_kind_is_a_message_or_is_refused(
        kind in prop::sample::select(Kind::ALL),
        header in vec(any::<u8>(), HEADER_BYTES),
        payload in vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = header;
        bytes[..4].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        bytes[4] = kind.number();
        bytes[5] %= 3;
        bytes[7] = 0;
        bytes.extend(payload);
        for link in LINKS {
            for (header, payload) in decode(link, &bytes, |rest| rest).0 {
                read(header, &payload);
            }
        }
    }

    #[test]
    fn an_order_is_read_as_it_was_written(values in vec(vec(1_u8.., 0..40), 0..6)) {
        let frame = order(values).to_frame().unwrap();
        let again = Order::from_frame(&frame).unwrap().to_frame().unwrap();
        prop_assert_eq!(again.payload(), frame.payload());
    }

    #[test]
    fn a_changed_order_is_read_or_refused(
        choices in vec(any::<usize>(), 1..5),
        planted in prop_oneof![
            Just(json!(null)),
            Just(json!("")),
            Just(json!("a\0b")),
            Just(json!([])),
            Just(json!({ "A": "zz" })),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
        ],
    ) {
        let frame = order(vec![vec![1, 2]]).to_frame().unwrap();
        let mut value: Value = serde_json::from_slice(frame.payload()).unwrap();
        replace(&mut value, &choices, planted);
        read(Header::plain(Kind::Order), &serde_json::to_vec(&value).unwrap());
    }
}
