//! What is not kept, and how a reader learns of it.

use std::fs;

use placement_homes::{Acknowledger, Gap, LogItem, LogReader, StreamEnd};

use crate::support::{STDERR, STDOUT, World, items, limits, records, sequences};

const CHUNK: usize = 50_000;
const KIB: u64 = 1024;

/// Bytes of records and of gaps; checks that the sequences have no other hole.
fn add_up(items: &[LogItem]) -> (u64, u64) {
    let (mut recorded, mut missing, mut next) = (0, 0, 1);
    for item in items {
        match item {
            LogItem::Record(record) => {
                assert_eq!(record.sequence, next);
                recorded += record.bytes.len() as u64;
                next += 1;
            }
            LogItem::Gap(gap) => {
                assert!(gap.through >= next);
                missing += gap.bytes;
                next = gap.through + 1;
            }
        }
    }
    (recorded, missing)
}

#[test]
fn the_transcript_stays_within_its_bound_and_the_gap_is_told() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 20, 1024 * KIB));
    for number in 0..200_u8 {
        let stream = if number % 3 == 0 { STDERR } else { STDOUT };
        let sequence = writer.append(stream, &vec![number; CHUNK]).unwrap();
        writer.acknowledge(sequence).unwrap();
        // The bound, the segment that is written to, and the headers.
        assert!(world.segment_bytes() <= (1024 + 256 + 128) * KIB);
    }
    let mut reader = world.reader();
    let found = items(&mut reader).unwrap();
    let (recorded, missing) = add_up(&found);
    assert_eq!(recorded + missing, 200 * CHUNK as u64);
    assert!(recorded >= 700 * KIB, "{recorded}");
    let LogItem::Gap(gap) = found[0] else { panic!("the gap comes first") };
    assert_eq!(reader.gap().unwrap(), Some(gap));
    assert_eq!(found.iter().filter(|item| matches!(item, LogItem::Gap(_))).count(), 1);
}

#[test]
fn what_nobody_acknowledged_is_kept_whatever_the_bound() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 256 * KIB));
    for _ in 0..100 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    assert_eq!(world.reader().gap().unwrap(), None);
    writer.acknowledge(50).unwrap();
    let found = items(&mut world.reader()).unwrap();
    let LogItem::Gap(gap) = found[0] else { panic!("acknowledged segments go") };
    assert!(gap.through <= 50);
    let (recorded, missing) = add_up(&found);
    assert_eq!(recorded + missing, 100 * CHUNK as u64);
}

#[test]
fn a_reader_under_which_segments_go_reads_its_own_to_the_end_and_tells_the_gap() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 512 * KIB));
    for _ in 0..100 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    let mut reader = world.reader();
    let mut found = vec![reader.next_item().unwrap().unwrap()];
    writer.acknowledge(100).unwrap();
    assert!(world.reader().gap().unwrap().is_some());
    found.extend(items(&mut reader).unwrap());
    let gaps = found.iter().filter(|item| matches!(item, LogItem::Gap(_))).count();
    let (recorded, missing) = add_up(&found);
    assert_eq!((gaps, recorded + missing), (1, 100 * CHUNK as u64));
}

#[test]
fn without_a_transcript_acknowledged_segments_go_and_the_rest_goes_at_the_end() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 0));
    let mut reader = world.reader();
    for _ in 0..60 {
        let sequence = writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
        assert_eq!(sequences(&mut reader), [sequence]);
        writer.acknowledge(sequence).unwrap();
        assert!(world.segment_bytes() <= (256 + 64) * KIB);
    }
    writer.append_end(STDOUT, StreamEnd::Whole).unwrap();
    writer.mark_ended().unwrap();
    assert_eq!(sequences(&mut reader), [61], "the end is not acknowledged yet");
    writer.acknowledge(61).unwrap();
    assert!(world.segments().is_empty());
    let gone = Gap { bytes: 60 * CHUNK as u64, through: 61 };
    assert_eq!(items(&mut world.reader()).unwrap(), [LogItem::Gap(gone)]);
}

#[test]
fn a_log_goes_on_after_all_of_it_was_dropped() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 0));
    let mut early = world.reader();
    for _ in 0..6 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    writer.acknowledge(6).unwrap();
    assert!(world.segments().is_empty());
    writer.append(STDERR, b"more").unwrap();
    let gap = LogItem::Gap(Gap { bytes: 6 * CHUNK as u64, through: 6 });
    for reader in [&mut early, &mut world.reader()] {
        let found = items(reader).unwrap();
        assert_eq!(found[0], gap);
        assert_eq!(found.len(), 2);
    }
    assert_eq!(records(&mut writer.reader_from(7).unwrap())[0].bytes, b"more");
    writer.acknowledge(7).unwrap();
    assert_eq!(writer.unacknowledged_bytes(), 0);
}

#[test]
fn the_service_trims_after_the_end_as_the_writer_would() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 512 * KIB));
    for _ in 0..100 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    drop(writer);
    let mut acknowledger = Acknowledger::lock(&world.attempt).unwrap();
    acknowledger.acknowledge(100).unwrap();
    drop(acknowledger);
    assert!(world.segment_bytes() <= (512 + 64) * KIB);
    let found = items(&mut world.reader()).unwrap();
    let (recorded, missing) = add_up(&found);
    assert_eq!(recorded + missing, 100 * CHUNK as u64);
    let again = Acknowledger::lock(&world.attempt).unwrap();
    assert_eq!((again.consumed_through(), again.last_sequence()), (100, 100));
}

#[test]
fn without_a_transcript_the_service_leaves_no_segment() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 0));
    for _ in 0..20 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    drop(writer);
    Acknowledger::lock(&world.attempt).unwrap().acknowledge(20).unwrap();
    assert!(world.segments().is_empty());
    let again = Acknowledger::lock(&world.attempt).unwrap();
    assert_eq!((again.consumed_through(), again.last_sequence()), (20, 20));
}

#[test]
fn a_segment_whose_removal_was_cut_short_goes_with_the_next_recipient() {
    let world = World::new();
    let mut writer = world.writer(limits(1 << 30, 512 * KIB));
    for _ in 0..100 {
        writer.append(STDOUT, &vec![0; CHUNK]).unwrap();
    }
    let oldest = world.segments()[0].clone();
    let kept = fs::read(&oldest).unwrap();
    writer.acknowledge(60).unwrap();
    let gap = world.reader().gap().unwrap();
    drop(writer);
    fs::write(&oldest, kept).unwrap();
    let acknowledger = Acknowledger::lock(&world.attempt).unwrap();
    assert!(!oldest.exists());
    assert_eq!(acknowledger.consumed_through(), 60);
    assert_eq!(world.reader().gap().unwrap(), gap);
    let mut reader = LogReader::open(&world.attempt).unwrap();
    let (recorded, missing) = add_up(&items(&mut reader).unwrap());
    assert_eq!(recorded + missing, 100 * CHUNK as u64);
}
