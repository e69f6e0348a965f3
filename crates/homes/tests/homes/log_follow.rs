//! Readers beside a living writer.

use std::thread;
use std::time::{Duration, Instant};

use placement_contract::StreamName;
use placement_homes::{LogItem, LogLimits, LogReader, StreamEnd, Waited};
use placement_testkit::Random;

use crate::support::{STDERR, STDOUT, World, limits, sequences};

const PATIENCE: Duration = Duration::from_mins(1);

/// Follows a log to its end; returns records, their bytes, and bytes in gaps.
fn follow(mut reader: LogReader) -> (u64, u64, u64) {
    let deadline = Instant::now() + PATIENCE;
    let (mut next, mut bytes, mut missing, mut records) = (1, 0, 0, 0);
    loop {
        // Asked before the look, since records may come between the two.
        let ended = reader.is_ended().unwrap();
        match reader.next_item().unwrap() {
            Some(LogItem::Record(record)) => {
                assert_eq!(record.sequence, next);
                let expected = u8::try_from(record.sequence % 251).unwrap();
                assert!(record.bytes.iter().all(|byte| *byte == expected));
                next += 1;
                records += 1;
                bytes += record.bytes.len() as u64;
            }
            Some(LogItem::Gap(gap)) => {
                assert!(gap.through >= next);
                next = gap.through + 1;
                missing += gap.bytes;
            }
            None if ended => return (records, bytes, missing),
            None => {
                assert!(Instant::now() < deadline, "the log did not end");
                reader.wait(Duration::from_millis(500));
            }
        }
    }
}

/// Writes 3000 records of random sizes, each filled with its sequence, beside two followers.
fn race(limits: LogLimits, acknowledge: bool) -> Vec<(u64, u64, u64)> {
    let world = World::new();
    let mut writer = world.writer(limits);
    let followers: Vec<_> = (0..2)
        .map(|_| {
            let reader = world.reader();
            thread::spawn(move || follow(reader))
        })
        .collect();
    let mut random = Random::seeded(5);
    for number in 1..3000_u64 {
        let length = usize::try_from(random.next_u64() % 9_000).unwrap();
        let byte = u8::try_from(number % 251).unwrap();
        let stream = if random.next_u64().is_multiple_of(2) { STDERR } else { STDOUT };
        let sequence = writer.append(stream, &vec![byte; length]).unwrap();
        if acknowledge {
            writer.acknowledge(sequence).unwrap();
        }
    }
    writer.append_end(STDOUT, StreamEnd::Whole).unwrap();
    writer.mark_ended().unwrap();
    let total = writer.offset(StreamName::Stdout) + writer.offset(StreamName::Stderr);
    let seen: Vec<_> = followers.into_iter().map(|one| one.join().unwrap()).collect();
    for (_, bytes, missing) in &seen {
        assert_eq!(bytes + missing, total);
    }
    seen
}

#[test]
fn followers_see_every_record_in_order_while_it_is_written() {
    for (records, _, missing) in race(limits(1 << 30, 1 << 20), false) {
        assert_eq!((records, missing), (3000, 0));
    }
}

#[test]
fn followers_account_for_every_byte_while_segments_go() {
    race(limits(1 << 30, 256 * 1024), true);
    race(limits(1 << 30, 0), true);
}

#[test]
fn a_wait_ends_when_a_record_comes() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    let mut reader = world.reader();
    assert!(sequences(&mut reader).is_empty());
    // The first wait sets the watch and sends back for another look.
    assert_eq!(reader.wait(PATIENCE), Waited::Changed);
    assert!(sequences(&mut reader).is_empty());
    let begun = Instant::now();
    let waiting = thread::spawn(move || {
        let waited = reader.wait(PATIENCE);
        (waited, sequences(&mut reader))
    });
    writer.append(STDOUT, b"x").unwrap();
    assert_eq!(waiting.join().unwrap(), (Waited::Changed, vec![1]));
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_wait_without_a_change_times_out() {
    let world = World::new();
    let _writer = world.writer(LogLimits::default());
    let mut reader = world.reader();
    reader.wait(Duration::ZERO);
    assert_eq!(reader.wait(Duration::from_millis(20)), Waited::TimedOut);
}

#[test]
fn a_wait_ends_when_the_log_does() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    let mut reader = world.reader();
    reader.wait(Duration::ZERO);
    writer.mark_ended().unwrap();
    assert_eq!(reader.wait(PATIENCE), Waited::Changed);
    assert!(reader.is_ended().unwrap());
}
