//! Torn tails and damage.

use std::fs;
use std::path::PathBuf;

use placement_homes::{Acknowledger, LogLimits, RECORD_OVERHEAD_BYTES, ReadLogError};

use crate::support::{STDERR, STDOUT, World, items, limits, sequences};

const HEADER: usize = 40;

/// Three records of one segment, the writer gone; returns the segment and its bytes.
fn three(world: &World) -> (PathBuf, Vec<u8>) {
    let mut writer = world.writer(LogLimits::default());
    for (stream, bytes) in [(STDOUT, "first"), (STDERR, "the second"), (STDOUT, "third and last")] {
        writer.append(stream, bytes.as_bytes()).unwrap();
    }
    let path = world.segments().remove(0);
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

fn stored(text: &str) -> usize {
    text.len() + usize::try_from(RECORD_OVERHEAD_BYTES).unwrap()
}

#[track_caller]
fn damaged_at(world: &World, wanted: u64) {
    match items(&mut world.reader()) {
        Err(ReadLogError::Damaged { segment: 1, sequence }) => assert_eq!(sequence, wanted),
        other => panic!("damage must be named, not {other:?}"),
    }
}

#[test]
fn a_tail_torn_at_any_byte_ends_the_log_before_it() {
    let world = World::new();
    let (path, bytes) = three(&world);
    let last = bytes.len() - stored("third and last");
    for length in last..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(sequences(&mut world.reader()), [1, 2], "cut to {length}");
    }
}

#[test]
fn a_tail_damaged_at_any_byte_ends_the_log_before_it() {
    let world = World::new();
    let (path, bytes) = three(&world);
    for at in bytes.len() - stored("third and last")..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(sequences(&mut world.reader()), [1, 2], "byte {at}");
    }
}

#[test]
fn a_tail_of_zeros_ends_the_log_before_it() {
    let world = World::new();
    let (path, bytes) = three(&world);
    let mut zeros = bytes.clone();
    zeros.resize(bytes.len() + 200_000, 0);
    fs::write(&path, &zeros).unwrap();
    assert_eq!(sequences(&mut world.reader()), [1, 2, 3]);
}

#[test]
fn a_record_damaged_at_any_byte_in_the_middle_is_named() {
    let world = World::new();
    let (path, bytes) = three(&world);
    let second = HEADER + stored("first");
    for at in second..second + stored("the second") {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, &damaged).unwrap();
        damaged_at(&world, 2);
    }
}

#[test]
fn damage_far_before_the_next_record_is_named() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    for _ in 0..3 {
        writer.append(STDOUT, &vec![7; 65_536]).unwrap();
    }
    let path = world.segments().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[HEADER] ^= 1;
    fs::write(&path, &bytes).unwrap();
    damaged_at(&world, 1);
}

#[test]
fn records_before_the_damage_are_given_out() {
    let world = World::new();
    let (path, mut bytes) = three(&world);
    bytes[HEADER + stored("first") + 36] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut reader = world.reader();
    assert!(reader.next_item().unwrap().is_some());
    reader.next_item().unwrap_err();
}

#[test]
fn a_damaged_segment_header_is_named_and_a_missing_one_is_no_segment() {
    let world = World::new();
    let (path, bytes) = three(&world);
    for at in 0..HEADER {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, &damaged).unwrap();
        damaged_at(&world, 1);
    }
    for length in [0, 10, HEADER - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(sequences(&mut world.reader()).is_empty());
    }
    fs::write(&path, vec![0; 4096]).unwrap();
    assert!(sequences(&mut world.reader()).is_empty());
}

#[test]
fn a_segment_cut_short_with_others_after_it_is_damage() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 1 << 20));
    for _ in 0..20 {
        writer.append(STDOUT, &vec![7; 30_000]).unwrap();
    }
    assert!(world.segments().len() > 1);
    let path = world.segments().remove(0);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(items(&mut world.reader()), Err(ReadLogError::Damaged { segment: 1, .. })));
}

#[test]
fn a_missing_segment_that_nobody_dropped_is_damage() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 1 << 20));
    for _ in 0..30 {
        writer.append(STDOUT, &vec![7; 30_000]).unwrap();
    }
    fs::remove_file(&world.segments()[1]).unwrap();
    assert!(matches!(items(&mut world.reader()), Err(ReadLogError::Damaged { segment: 1, .. })));
}

#[test]
fn leftovers_of_a_failed_write_before_the_next_segment_are_no_damage() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 1 << 20));
    for _ in 0..20 {
        writer.append(STDOUT, &vec![7; 30_000]).unwrap();
    }
    let path = world.segments().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"half of a record");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(sequences(&mut world.reader()).len(), 20);
}

#[test]
fn output_that_imitates_records_is_read_as_output() {
    let world = World::new();
    let (path, imitation) = three(&world);
    let other = World::new();
    let mut writer = other.writer(LogLimits::default());
    writer.append(STDOUT, &imitation).unwrap();
    writer.append(STDOUT, b"after").unwrap();
    assert_eq!(sequences(&mut other.reader()), [1, 2]);
    drop(path);
}

#[test]
fn a_torn_tail_is_not_there_to_be_acknowledged() {
    let world = World::new();
    let (path, bytes) = three(&world);
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let acknowledger = Acknowledger::lock(&world.attempt).unwrap();
    assert_eq!(acknowledger.last_sequence(), 2);
}

#[test]
fn a_cursor_beyond_the_records_goes_back_to_what_is_there() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    for _ in 0..3 {
        writer.append(STDOUT, b"0123456789").unwrap();
    }
    writer.acknowledge(3).unwrap();
    drop(writer);
    let path = world.segments().remove(0);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let acknowledger = Acknowledger::lock(&world.attempt).unwrap();
    assert_eq!((acknowledger.consumed_through(), acknowledger.last_sequence()), (2, 2));
}

#[test]
fn a_damaged_head_is_named() {
    let world = World::new();
    three(&world);
    fs::write(world.attempt_path().join("log/head"), vec![0xff; 1024]).unwrap();
    let reader = world.reader();
    assert!(matches!(reader.is_ended(), Err(ReadLogError::HeadDamaged)));
}
