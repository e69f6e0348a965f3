//! Writing a log and reading it back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use placement_contract::StreamName;
use placement_homes::{
    AppendError, CreateLogError, LogLimits, LogReader, LogWriter, RECORD_BYTES_MAX,
    RECORD_OVERHEAD_BYTES, ReadLogError, Record, RecordKind, StreamEnd, TAIL_BYTES_MAX,
};
use placement_testkit::Random;

use crate::support::{STDERR, STDOUT, World, items, limits, records, sequences};

fn chunk(sequence: u64, offset: u64, stream: StreamName, bytes: &[u8]) -> Record {
    let bytes = bytes.to_vec();
    Record { sequence, offset, kind: RecordKind::Chunk, stream, truncated: false, bytes }
}

fn end(sequence: u64, offset: u64, stream: StreamName, truncated: bool) -> Record {
    let bytes = Vec::new();
    Record { sequence, offset, kind: RecordKind::Eof, stream, truncated, bytes }
}

#[test]
fn one_counter_runs_over_both_streams_and_their_ends() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    assert_eq!(writer.append(STDOUT, b"one").unwrap(), 1);
    assert_eq!(writer.append(STDERR, b"two!").unwrap(), 2);
    assert_eq!(writer.append(STDOUT, b"three").unwrap(), 3);
    assert_eq!(writer.append_end(STDERR, StreamEnd::Whole).unwrap(), 4);
    assert_eq!(writer.append_end(STDOUT, StreamEnd::Truncated).unwrap(), 5);
    let expected = [
        chunk(1, 0, STDOUT, b"one"),
        chunk(2, 0, STDERR, b"two!"),
        chunk(3, 3, STDOUT, b"three"),
        end(4, 4, STDERR, false),
        end(5, 8, STDOUT, true),
    ];
    assert_eq!(records(&mut world.reader()), expected);
    assert_eq!(records(&mut writer.reader_from(1).unwrap()), expected);
    assert_eq!((writer.last_sequence(), writer.offset(STDOUT)), (5, 8));
}

#[test]
fn random_chunks_over_many_segments_come_back_byte_for_byte() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 1 << 20));
    let mut random = Random::seeded(11);
    let mut written = Vec::new();
    for _ in 0..300 {
        let length = usize::try_from(random.next_u64() % 20_000).unwrap();
        let byte = u8::try_from(random.next_u64() % 256).unwrap();
        let stream = if random.next_u64().is_multiple_of(3) { STDERR } else { STDOUT };
        let bytes = vec![byte; length];
        let offset = writer.offset(stream);
        let sequence = writer.append(stream, &bytes).unwrap();
        written.push(chunk(sequence, offset, stream, &bytes));
    }
    assert!(world.segments().len() > 5);
    assert_eq!(records(&mut world.reader()), written);
    let mut from = LogReader::open_from(&world.attempt, 150).unwrap();
    assert_eq!(records(&mut from), written[149..]);
}

#[test]
fn files_are_private() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, b"x").unwrap();
    let log = world.attempt_path().join("log");
    let mode =
        |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(log.as_std_path()), 0o700);
    for entry in fs::read_dir(log).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn an_attempt_has_one_log_and_one_writer() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, b"x").unwrap();
    let again = LogWriter::create(&world.attempt, LogLimits::default());
    assert!(matches!(again, Err(CreateLogError::AlreadyExists)));
    assert_eq!(sequences(&mut world.reader()), [1]);
}

#[test]
fn a_log_that_is_not_there_is_missing() {
    let world = World::new();
    assert!(matches!(LogReader::open(&world.attempt), Err(ReadLogError::Missing)));
}

#[test]
fn a_reader_finds_what_is_appended_after_it_saw_the_end() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    let mut reader = world.reader();
    assert!(sequences(&mut reader).is_empty());
    writer.append(STDOUT, b"x").unwrap();
    assert_eq!(sequences(&mut reader), [1]);
    assert!(sequences(&mut reader).is_empty());
    writer.append(STDOUT, b"y").unwrap();
    assert_eq!(sequences(&mut reader), [2]);
}

#[test]
fn a_reader_may_begin_beyond_the_end() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, b"x").unwrap();
    let mut reader = writer.reader_from(3).unwrap();
    assert!(sequences(&mut reader).is_empty());
    writer.append(STDOUT, b"y").unwrap();
    assert!(sequences(&mut reader).is_empty());
    writer.append(STDOUT, b"z").unwrap();
    assert_eq!(sequences(&mut reader), [3]);
}

#[test]
fn the_largest_chunk_is_taken_and_a_larger_one_refused() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, &vec![1; RECORD_BYTES_MAX]).unwrap();
    let refused = writer.append(STDOUT, &vec![1; RECORD_BYTES_MAX + 1]);
    assert!(matches!(refused, Err(AppendError::TooLarge)));
    assert_eq!(sequences(&mut world.reader()), [1]);
}

#[test]
fn the_spool_is_full_exactly_at_its_bound() {
    let world = World::new();
    let stored = 100 + RECORD_OVERHEAD_BYTES;
    let mut writer = world.writer(limits(3 * stored, 1 << 20));
    for _ in 0..3 {
        assert!(writer.has_room(100));
        writer.append(STDOUT, &[0; 100]).unwrap();
    }
    assert_eq!(writer.unacknowledged_bytes(), 3 * stored);
    assert!(!writer.has_room(0));
    let refused = writer.append(STDOUT, &[0; 1]);
    assert!(matches!(refused, Err(AppendError::SpoolFull { .. })));
    writer.acknowledge(1).unwrap();
    assert_eq!(writer.unacknowledged_bytes(), 2 * stored);
    assert!(writer.has_room(100));
    assert!(!writer.has_room(101));
    writer.append(STDOUT, &[0; 100]).unwrap();
    assert_eq!(sequences(&mut world.reader()), [1, 2, 3, 4]);
}

#[test]
fn the_tail_of_two_pipes_goes_beyond_the_bound_and_no_more() {
    let world = World::new();
    let mut writer = world.writer(limits(1_000, 0));
    for _ in 0..2 {
        writer.append_tail(STDOUT, &vec![0; RECORD_BYTES_MAX]).unwrap();
    }
    assert!(writer.unacknowledged_bytes() <= 1_000 + TAIL_BYTES_MAX);
    let refused = writer.append_tail(STDOUT, &vec![0; RECORD_BYTES_MAX]);
    assert!(matches!(refused, Err(AppendError::SpoolFull { .. })));
}

#[test]
fn the_end_of_a_stream_needs_no_room() {
    let world = World::new();
    let mut writer = world.writer(limits(0, 0));
    assert!(!writer.has_room(0));
    writer.append_end(STDOUT, StreamEnd::Whole).unwrap();
    writer.append_end(STDERR, StreamEnd::Whole).unwrap();
    assert_eq!(items(&mut world.reader()).unwrap().len(), 2);
}
