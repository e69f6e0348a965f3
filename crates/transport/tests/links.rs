//! Frames over real sockets: order, bounds, deadlines, ends and descriptors.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use placement_contract::{AttemptId, Generation, StreamName};
use placement_protocol::{
    Chunk, ControlCall, ControlRequest, Frame, FrameError, FromRecipient, FromRunner, Hello,
    HelloRefused, Input, Kind, LinkKind, RefusedWhy, Welcome,
};
use placement_transport::limits::{FILL_BYTES_MAX, OUTGOING_BYTES_MAX, OUTGOING_FRAMES_MAX};
use placement_transport::{Filled, Link, LinkError, Stream, pair};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

fn shortly() -> Instant {
    Instant::now() + Duration::from_millis(60)
}

fn links(kind: LinkKind) -> (Link, Link) {
    let (near, far) = pair().unwrap();
    (Link::new(Stream::adopt(near).unwrap(), kind), Link::new(Stream::adopt(far).unwrap(), kind))
}

/// A link whose other end is written to byte by byte.
fn link_and_raw(kind: LinkKind) -> (Link, UnixStream) {
    let (near, far) = pair().unwrap();
    (Link::new(Stream::adopt(near).unwrap(), kind), UnixStream::from(far))
}

fn chunk(sequence: u64, length: usize) -> Frame {
    let bytes = vec![u8::try_from(sequence % 251).unwrap(); length];
    FromRunner::Chunk(Chunk {
        stream: StreamName::Stdout,
        sequence,
        offset: 0,
        generation: Generation::FIRST,
        bytes,
    })
    .into_frame()
    .unwrap()
}

fn request(probe: u64) -> Frame {
    let attempt_id = AttemptId::parse("build-17").unwrap();
    ControlRequest { attempt_id, probe, call: ControlCall::Status }.to_frame().unwrap()
}

fn probe_of(frame: &Frame) -> u64 {
    ControlRequest::from_frame(frame).unwrap().probe
}

#[test]
fn chunks_arrive_whole_and_in_order() {
    let (mut near, mut far) = links(LinkKind::Data);
    let lengths = [1, 65_536, 17, 65_536, 40_000, 65_536, 65_536, 3];
    let sender = std::thread::spawn(move || {
        for (sequence, length) in (1..).zip(lengths) {
            near.send(chunk(sequence, length), soon()).unwrap();
        }
        near
    });
    for (sequence, length) in (1..).zip(lengths) {
        let frame = far.receive(soon()).unwrap();
        assert_eq!(frame.header().sequence, sequence);
        assert_eq!(frame.payload(), chunk(sequence, length).payload());
    }
    drop(sender.join().unwrap());
    assert_eq!(far.receive(soon()).unwrap_err(), LinkError::Closed);
}

#[test]
fn a_peer_that_does_not_read_holds_the_sender_at_its_bound() {
    let (mut near, mut far) = links(LinkKind::Data);
    let mut queued = 0;
    let refused = loop {
        near.flush().unwrap();
        match near.queue(chunk(queued + 1, 65_536)) {
            Ok(()) => queued += 1,
            Err(overflow) => break overflow.0,
        }
        assert!(near.outgoing_bytes() <= OUTGOING_BYTES_MAX);
        assert!(queued < 1_000, "the socket takes a bounded amount");
    };
    assert_eq!(refused.header().sequence, queued + 1);
    assert!(near.wants_write());
    for _ in 0..100 {
        assert!(near.queue(chunk(queued + 1, 65_536)).is_err());
    }
    assert!(near.outgoing_bytes() <= OUTGOING_BYTES_MAX);

    for sequence in 1..=queued {
        let frame = loop {
            near.flush().unwrap();
            match far.receive(Instant::now()) {
                Ok(frame) => break frame,
                Err(error) => assert_eq!(error, LinkError::Deadline),
            }
        };
        assert_eq!(frame.header().sequence, sequence);
    }
    assert!(!near.wants_write());
}

#[test]
fn small_frames_have_a_bound_of_their_own() {
    let (mut near, _far) = links(LinkKind::Data);
    let ack = || {
        let ack = FromRecipient::Ack { generation: Generation::FIRST, through: 1 };
        ack.into_frame().unwrap()
    };
    for _ in 0..OUTGOING_FRAMES_MAX {
        near.queue(ack()).unwrap();
    }
    assert!(near.queue(ack()).is_err());
}

#[test]
fn a_reader_that_is_behind_reads_no_further() {
    let (mut near, mut far) = links(LinkKind::Data);
    near.send(chunk(1, 65_536), soon()).unwrap();
    near.send(chunk(2, 65_536), soon()).unwrap();
    for _ in 0..10 {
        assert_eq!(far.fill(), Ok(Filled::Bytes));
    }
    assert_eq!(far.next_frame().unwrap().unwrap().header().sequence, 1);
    assert!(far.next_frame().unwrap().is_none());
    assert_eq!(far.fill(), Ok(Filled::Bytes));
    assert_eq!(far.next_frame().unwrap().unwrap().header().sequence, 2);
    assert_eq!(far.fill(), Ok(Filled::Nothing));
}

#[test]
fn a_frame_larger_than_the_bound_goes_alone() {
    let (mut near, mut far) = links(LinkKind::HostPort);
    // The bytes of an order are its own; here only its size matters.
    let large = || {
        let header = placement_protocol::Header::plain(Kind::Order);
        Frame::new(header, vec![b' '; 2 * 1024 * 1024]).unwrap()
    };
    assert!(large().wire_bytes() > OUTGOING_BYTES_MAX);
    let reader = std::thread::spawn(move || {
        let bytes = far.receive(soon()).unwrap().payload().len();
        (bytes, far)
    });
    near.queue(large()).unwrap();
    assert!(near.queue(large()).is_err());
    near.send(Hello::host_port().to_frame().unwrap(), soon()).unwrap();
    let (bytes, mut far) = reader.join().unwrap();
    assert_eq!(bytes, 2 * 1024 * 1024);
    assert_eq!(far.receive(soon()).unwrap().kind(), Kind::Hello);
}

#[test]
fn sending_to_a_peer_that_does_not_read_ends_at_the_deadline() {
    let (mut near, _far) = links(LinkKind::Data);
    let deadline = shortly();
    let error =
        (1..).find_map(|sequence| near.send(chunk(sequence, 65_536), deadline).err()).unwrap();
    assert_eq!(error, LinkError::Deadline);
    assert!(Instant::now() >= deadline);
}

#[test]
fn a_call_without_an_answer_ends_at_the_deadline() {
    let (mut near, _far) = links(LinkKind::Control);
    let deadline = shortly();
    assert_eq!(near.call(request(1), deadline).unwrap_err(), LinkError::Deadline);
    assert!(Instant::now() >= deadline);
}

#[test]
fn what_is_there_is_taken_after_the_deadline() {
    let (mut near, mut far) = links(LinkKind::Control);
    near.send(request(1), soon()).unwrap();
    let passed = Instant::now();
    assert_eq!(probe_of(&far.receive(passed).unwrap()), 1);
    assert_eq!(far.receive(passed).unwrap_err(), LinkError::Deadline);
}

#[test]
fn a_peer_that_never_ends_a_frame_does_not_outlast_the_deadline() {
    let (mut near, mut far) = link_and_raw(LinkKind::HostPort);
    let mut started = vec![0; 2 * FILL_BYTES_MAX];
    started[..4].copy_from_slice(&8_000_000_u32.to_le_bytes());
    started[4] = Kind::Order.number();
    far.write_all(&started).unwrap();
    assert_eq!(near.receive(Instant::now()).unwrap_err(), LinkError::Deadline);
    assert_eq!(near.fill(), Ok(Filled::Bytes), "what was left is not read for it");
}

#[test]
fn a_closed_peer_is_closed_for_reading_and_writing() {
    let (mut near, far) = links(LinkKind::Data);
    drop(far);
    assert_eq!(near.send(chunk(1, 10), soon()).unwrap_err(), LinkError::Closed);
    assert_eq!(near.receive(soon()).unwrap_err(), LinkError::Closed);
}

#[test]
fn writing_to_a_closed_peer_raises_no_signal() {
    use nix::sys::signal::{SigSet, Signal};
    // Blocked, a signal that is raised stays pending even where it is ignored.
    let mut pipe = SigSet::empty();
    pipe.add(Signal::SIGPIPE);
    pipe.thread_block().unwrap();
    let (mut near, far) = links(LinkKind::Data);
    drop(far);
    assert_eq!(near.send(chunk(1, 10), soon()).unwrap_err(), LinkError::Closed);
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
    let pending = u64::from_str_radix(pending.trim(), 16).unwrap();
    assert_eq!(pending & (1 << (Signal::SIGPIPE as u32 - 1)), 0);
}

#[test]
fn a_peer_that_ended_with_bytes_unread_is_closed() {
    let (mut near, far) = links(LinkKind::Data);
    near.send(chunk(1, 10), soon()).unwrap();
    drop(far);
    assert_eq!(near.receive(soon()).unwrap_err(), LinkError::Closed);
}

#[test]
fn a_peer_that_ends_within_a_frame_is_closed_and_the_frame_not_given_out() {
    let (mut near, mut far) = link_and_raw(LinkKind::Data);
    let frame = chunk(1, 100);
    far.write_all(&frame.header_bytes()).unwrap();
    far.write_all(&frame.payload()[..99]).unwrap();
    drop(far);
    assert_eq!(near.receive(soon()).unwrap_err(), LinkError::Closed);
}

#[test]
fn what_a_peer_said_before_it_closed_is_heard() {
    let (mut near, mut far) = links(LinkKind::Control);
    let refused = HelloRefused::new(RefusedWhy::Busy);
    far.send(refused.to_frame().unwrap(), soon()).unwrap();
    drop(far);
    let answer = near.call(request(1), soon()).unwrap();
    assert_eq!(Welcome::from_frame(&answer), Ok(Err(refused)));
}

#[test]
fn a_frame_of_another_link_is_a_breach_of_the_protocol() {
    let (near, far) = pair().unwrap();
    let mut data = Link::new(Stream::adopt(near).unwrap(), LinkKind::Data);
    let mut control = Link::new(Stream::adopt(far).unwrap(), LinkKind::Control);
    data.send(chunk(1, 10), soon()).unwrap();
    let misplaced = FrameError::Misplaced { kind: Kind::Chunk, link: LinkKind::Control };
    assert_eq!(control.receive(soon()).unwrap_err(), LinkError::Protocol(misplaced));
}

#[test]
fn a_length_that_is_too_large_is_a_breach_of_the_protocol() {
    let (mut near, mut far) = link_and_raw(LinkKind::Data);
    let mut header = chunk(1, 10).header_bytes();
    header[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    far.write_all(&header).unwrap();
    assert!(matches!(
        near.receive(soon()).unwrap_err(),
        LinkError::Protocol(FrameError::TooLarge { .. })
    ));
}

#[test]
#[should_panic(expected = "frame of another link")]
fn queueing_a_frame_of_another_link_is_a_mistake_of_the_caller() {
    let (mut near, _far) = links(LinkKind::Data);
    drop(near.queue(request(1)));
}

#[test]
fn a_descriptor_arrives_with_its_frame_and_no_other() {
    let (mut near, mut far) = links(LinkKind::Control);
    let (mut reader, writer) = std::io::pipe().unwrap();
    near.queue(request(1)).unwrap();
    near.queue(request(2)).unwrap();
    near.queue_with_descriptor(request(3), OwnedFd::from(writer)).unwrap();
    near.queue(request(4)).unwrap();
    near.flush().unwrap();
    let mut came_with = Vec::new();
    let mut descriptor = None;
    for _ in 0..4 {
        let frame = far.receive(soon()).unwrap();
        if let Some(came) = far.take_descriptor() {
            came_with.push(probe_of(&frame));
            descriptor = Some(came);
        }
    }
    assert_eq!(came_with, [3]);
    let descriptor = descriptor.unwrap();
    let flags = rustix::io::fcntl_getfd(&descriptor).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    std::fs::File::from(descriptor).write_all(b"through").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn a_descriptor_that_is_not_taken_is_closed_with_the_next_frame() {
    let (mut near, mut far) = links(LinkKind::Control);
    let (mut reader, writer) = std::io::pipe().unwrap();
    near.queue_with_descriptor(request(1), OwnedFd::from(writer)).unwrap();
    near.send(request(2), soon()).unwrap();
    far.receive(soon()).unwrap();
    far.receive(soon()).unwrap();
    assert!(far.take_descriptor().is_none());
    assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the last writer is closed");
}

/// Sends bytes with two descriptors, as no link does.
fn send_two(stream: &UnixStream, bytes: &[u8], [first, second]: [OwnedFd; 2]) {
    let borrowed = [first.as_fd(), second.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
    let parts = [IoSlice::new(bytes)];
    rustix::net::sendmsg(stream, &parts, &mut ancillary, SendFlags::empty()).unwrap();
}

fn wire(frame: &Frame) -> Vec<u8> {
    let mut wire = Vec::new();
    placement_protocol::encode(frame, &mut wire);
    wire
}

#[test]
fn a_second_descriptor_is_closed() {
    let (mut near, far) = link_and_raw(LinkKind::Control);
    let (_first_reader, first) = std::io::pipe().unwrap();
    let (mut second_reader, second) = std::io::pipe().unwrap();
    send_two(&far, &wire(&request(1)), [first.into(), second.into()]);
    near.receive(soon()).unwrap();
    assert!(near.take_descriptor().is_some());
    assert!(near.take_descriptor().is_none());
    assert_eq!(second_reader.read(&mut [0]).unwrap(), 0, "the second one is closed");
}

#[test]
fn descriptors_on_a_data_link_are_closed() {
    let (mut near, far) = link_and_raw(LinkKind::Data);
    let (mut first_reader, first) = std::io::pipe().unwrap();
    let (mut second_reader, second) = std::io::pipe().unwrap();
    let input = Input { write_id: 1, generation: Generation::FIRST, end: true, bytes: vec![] };
    let frame = FromRecipient::Input(input).into_frame().unwrap();
    send_two(&far, &wire(&frame), [first.into(), second.into()]);
    near.receive(soon()).unwrap();
    assert!(near.take_descriptor().is_none());
    assert_eq!(first_reader.read(&mut [0]).unwrap(), 0);
    assert_eq!(second_reader.read(&mut [0]).unwrap(), 0);
}

#[test]
fn one_read_takes_a_whole_chunk() {
    assert_eq!(FILL_BYTES_MAX, chunk(1, 65_536).wire_bytes());
}

#[test]
fn a_link_prints_no_bytes() {
    let (mut near, mut far) = links(LinkKind::Data);
    let input = Input {
        write_id: 1,
        generation: Generation::FIRST,
        end: false,
        bytes: b"canary-7f3a".to_vec(),
    };
    near.queue(FromRecipient::Input(input).into_frame().unwrap()).unwrap();
    assert!(!format!("{near:?}").contains("canary"));
    near.flush().unwrap();
    far.fill().unwrap();
    assert!(!format!("{far:?}").contains("99, 97"));
}
