//! What holds for any output and for any damage to its log: what is read is what was written, up to
//! the damage.

use std::fs;

use placement_contract::StreamName;
use placement_homes::{LogItem, LogLimits, LogReader, Record};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{STDERR, STDOUT, World, records};

fn pieces() -> impl Strategy<Value = Vec<(StreamName, Vec<u8>)>> {
    let stream = prop::sample::select(&[STDOUT, STDERR][..]);
    vec((stream, vec(any::<u8>(), 1..200)), 1..12)
}

/// A log of these pieces, its writer gone.
fn written(world: &World, pieces: &[(StreamName, Vec<u8>)]) {
    let mut writer = world.writer(LogLimits::default());
    for (stream, bytes) in pieces {
        writer.append(*stream, bytes).unwrap();
    }
}

/// What can be read, up to the end or the damage.
fn readable(world: &World) -> Vec<Record> {
    let Ok(mut reader) = LogReader::open(&world.attempt) else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(Some(item)) = reader.next_item() {
        if let LogItem::Record(record) = item {
            found.push(record);
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_output_reads_back_in_its_order(pieces in pieces()) {
        let world = World::new();
        written(&world, &pieces);
        let read = records(&mut world.reader());
        let read: Vec<_> = read.into_iter().map(|it| (it.sequence, it.stream, it.bytes)).collect();
        let expected: Vec<_> =
            (1..).zip(pieces).map(|(at, (stream, bytes))| (at, stream, bytes)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn of_a_damaged_segment_only_what_was_written_is_given_out(
        pieces in pieces(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let world = World::new();
        written(&world, &pieces);
        let whole = records(&mut world.reader());
        let path = world.segments().remove(0);
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        if let Some(at) = cut {
            bytes.truncate(at.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        prop_assert!(whole.starts_with(&readable(&world)));
    }

    #[test]
    fn any_bytes_in_the_place_of_a_segment_or_the_head_give_nothing_out(
        segment in vec(any::<u8>(), 0..400),
        head in prop::option::of(vec(any::<u8>(), 0..200)),
    ) {
        let world = World::new();
        written(&world, &[(STDOUT, b"first".to_vec())]);
        fs::write(world.segments().remove(0), segment).unwrap();
        if let Some(head) = head {
            fs::write(world.attempt_path().join("log").join("head"), head).unwrap();
        }
        prop_assert_eq!(readable(&world), Vec::new());
    }
}
