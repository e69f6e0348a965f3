//! The decoder against bytes that nobody promised anything about.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use placement_contract::{Generation, StreamName};
use placement_protocol::limits::{HEADER_BYTES, ORDER_BYTES_MAX};
use placement_protocol::{
    Chunk, ControlCall, ControlRequest, Decoder, Eof, Frame, FrameError, FromRecipient, FromRunner,
    Header, Input, Kind, LinkKind, Order, encode,
};
use placement_testkit::Random;

const LINKS: [LinkKind; 3] = [LinkKind::HostPort, LinkKind::Control, LinkKind::Data];

/// A header with the length and kind given, as a peer that wants no good would write it.
fn raw_header(len: u32, kind: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4] = kind;
    bytes
}

fn chunk(sequence: u64, bytes: Vec<u8>) -> Frame {
    FromRunner::Chunk(Chunk {
        stream: StreamName::Stdout,
        sequence,
        offset: sequence * 10,
        generation: Generation::FIRST,
        bytes,
    })
    .into_frame()
    .unwrap()
}

/// Pushes everything in pieces of at most `piece` bytes and returns the frames.
fn decode_all(link: LinkKind, wire: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = Decoder::new(link);
    let mut frames = Vec::new();
    for piece in wire.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = decoder.push(rest)?;
            rest = &rest[taken..];
            frames.extend(decoder.take_frame());
        }
    }
    Ok(frames)
}

fn wire_of(frames: &[Frame]) -> Vec<u8> {
    let mut wire = Vec::new();
    for frame in frames {
        encode(frame, &mut wire);
    }
    wire
}

#[test]
fn frames_are_the_same_in_whatever_pieces_they_come() {
    let eof = Eof {
        stream: StreamName::Stderr,
        sequence: 3,
        offset: 0,
        generation: Generation::FIRST,
        truncated: true,
    };
    let ack = FromRecipient::Ack { generation: Generation::FIRST, through: 2 };
    let sent = [
        chunk(1, vec![7; 300]),
        chunk(2, vec![8]),
        FromRunner::Eof(eof).into_frame().unwrap(),
        ack.into_frame().unwrap(),
    ];
    let wire = wire_of(&sent);
    for piece in 1..wire.len() {
        let frames = decode_all(LinkKind::Data, &wire, piece).unwrap();
        assert_eq!(frames.len(), sent.len());
        for (frame, sent) in frames.iter().zip(&sent) {
            assert_eq!(frame.header(), sent.header());
            assert_eq!(frame.payload(), sent.payload());
        }
    }
}

#[test]
fn a_frame_that_is_cut_short_is_never_given_out() {
    let wire = wire_of(&[chunk(1, vec![7; 300])]);
    for end in 1..wire.len() {
        let mut decoder = Decoder::new(LinkKind::Data);
        assert_eq!(decoder.push(&wire[..end]), Ok(end));
        assert!(decoder.take_frame().is_none());
        assert!(decoder.is_inside_frame());
    }
}

#[test]
fn nothing_is_taken_beyond_a_frame_until_it_was_taken() {
    let wire = wire_of(&[chunk(1, vec![7; 30]), chunk(2, vec![8; 30])]);
    let mut decoder = Decoder::new(LinkKind::Data);
    let taken = decoder.push(&wire).unwrap();
    assert_eq!(taken, HEADER_BYTES + 30);
    assert_eq!(decoder.push(&wire[taken..]), Ok(0));
    assert_eq!(decoder.take_frame().map(|frame| frame.header().sequence), Some(1));
    assert_eq!(decoder.push(&wire[taken..]), Ok(wire.len() - taken));
    assert_eq!(decoder.take_frame().map(|frame| frame.header().sequence), Some(2));
    assert!(!decoder.is_inside_frame());
}

#[test]
fn only_the_host_port_takes_more_than_a_chunk() {
    let largest = u32::try_from(ORDER_BYTES_MAX).unwrap();
    let order = raw_header(largest, Kind::Order.number());
    assert_eq!(Decoder::new(LinkKind::HostPort).push(&order), Ok(HEADER_BYTES));
    for link in [LinkKind::Control, LinkKind::Data] {
        let refused = Decoder::new(link).push(&order);
        assert_eq!(refused, Err(FrameError::Misplaced { kind: Kind::Order, link }));
    }
}

#[test]
fn a_kind_of_another_link_is_refused() {
    for link in LINKS {
        for kind in Kind::ALL.iter().filter(|kind| !kind.belongs_to(link)) {
            let refused = Decoder::new(link).push(&raw_header(0, kind.number()));
            assert_eq!(refused, Err(FrameError::Misplaced { kind: *kind, link }));
        }
    }
}

#[test]
fn an_unknown_kind_is_refused() {
    for number in (0..=u8::MAX).filter(|number| Kind::from_number(*number).is_none()) {
        let refused = Decoder::new(LinkKind::Data).push(&raw_header(0, number));
        assert_eq!(refused, Err(FrameError::UnknownKind(number)));
    }
}

#[test]
fn an_unknown_stream_or_flag_is_refused() {
    let good = chunk(1, vec![7]).header_bytes();
    let mut stream = good;
    stream[5] = 3;
    let mut flag = good;
    flag[7] = 0x80;
    let push = |bytes: &[u8]| Decoder::new(LinkKind::Data).push(bytes);
    assert_eq!(push(&good), Ok(HEADER_BYTES));
    assert_eq!(push(&stream), Err(FrameError::UnknownStream(3)));
    assert_eq!(push(&flag), Err(FrameError::UnknownFlag));
}

#[test]
fn after_an_error_the_decoder_takes_nothing_more() {
    let mut decoder = Decoder::new(LinkKind::Data);
    let error = decoder.push(&raw_header(0, 0)).unwrap_err();
    assert_eq!(decoder.push(&wire_of(&[chunk(1, vec![7])])), Err(error));
    assert!(decoder.take_frame().is_none());
}

#[test]
fn random_bytes_do_not_panic() {
    let mut random = Random::seeded(0x7f3a);
    for round in 0..4_000 {
        let link = *random.pick(&LINKS);
        let length = usize::try_from(random.below(4_096)).unwrap();
        let mut bytes = random.bytes(length);
        // Half of the rounds get past the kind and the length, so that later checks are reached.
        if round % 2 == 0 && bytes.len() > HEADER_BYTES {
            bytes[1..4].fill(0);
            bytes[4] = random.pick(Kind::ALL).number();
            bytes[5] %= 3;
            bytes[7] = 0;
        }
        decode_whatever(link, &bytes, &mut random);
    }
}

#[test]
fn damaged_frames_do_not_panic() {
    let request = ControlRequest {
        attempt_id: placement_contract::AttemptId::parse("build-17").unwrap(),
        probe: 9,
        call: ControlCall::Status,
    };
    let input =
        Input { write_id: 1, generation: Generation::FIRST, end: true, bytes: b"input".to_vec() };
    let wires = [
        (LinkKind::HostPort, wire_of(&[Order::Probe.to_frame().unwrap()])),
        (LinkKind::Control, wire_of(&[request.to_frame().unwrap()])),
        (LinkKind::Data, wire_of(&[chunk(1, vec![7; 50]), chunk(2, vec![8; 50])])),
        (LinkKind::Data, wire_of(&[FromRecipient::Input(input).into_frame().unwrap()])),
    ];
    let mut random = Random::seeded(0x51ee);
    for _ in 0..4_000 {
        let (link, wire) = random.pick(&wires).clone();
        let mut wire = wire;
        for _ in 0..=random.below(3) {
            let place = usize::try_from(random.below(wire.len() as u64)).unwrap();
            wire[place] ^= 1 << random.below(8);
        }
        decode_whatever(link, &wire, &mut random);
    }
}

/// Decodes in random pieces and reads whatever comes out as every message.
fn decode_whatever(link: LinkKind, bytes: &[u8], random: &mut Random) {
    let mut decoder = Decoder::new(link);
    let mut rest = bytes;
    while !rest.is_empty() {
        let piece = usize::try_from(1 + random.below(rest.len() as u64)).unwrap();
        let Ok(taken) = decoder.push(&rest[..piece]) else { return };
        rest = &rest[taken..];
        if let Some(frame) = decoder.take_frame() {
            read_as_every_message(frame);
        }
    }
}

fn read_as_every_message(frame: Frame) {
    use placement_protocol::{Hello, OrderReply, Welcome};
    let copy = |frame: &Frame| {
        Frame::new(*frame.header(), frame.payload().to_vec()).expect("it was decoded")
    };
    let outcomes = [
        Hello::from_frame(&frame).is_ok(),
        Welcome::from_frame(&frame).is_ok(),
        Order::from_frame(&frame).is_ok(),
        OrderReply::from_frame(&frame).is_ok(),
        ControlRequest::from_frame(&frame).is_ok(),
        FromRunner::from_frame(copy(&frame)).is_ok(),
        FromRecipient::from_frame(frame).is_ok(),
    ];
    let accepted = outcomes.iter().filter(|accepted| **accepted).count();
    assert!(accepted <= 1, "a frame is one message at most");
}

#[test]
fn a_header_alone_stands_for_an_acknowledgment() {
    let ack = FromRecipient::Ack { generation: Generation::new(2), through: 5 };
    let frame = ack.clone().into_frame().unwrap();
    assert_eq!(frame.wire_bytes(), HEADER_BYTES);
    assert_eq!(FromRecipient::from_frame(frame), Ok(ack));
    let nothing = Header { sequence: 0, ..Header::plain(Kind::Ack) };
    assert_eq!(Frame::new(nothing, Vec::new()).unwrap_err(), FrameError::Field("sequence"));
}
