//! The acknowledged cursor, of the writer and after its end.

use placement_homes::{
    AcknowledgeError, Acknowledger, LogLimits, LogReader, ReadLogError, StreamEnd,
};

use crate::support::{STDERR, STDOUT, World, limits, records, sequences};

/// A log of 40 chunks over several segments, of which `consumed` are acknowledged.
fn written(world: &World, limits: LogLimits, consumed: u64) {
    let mut writer = world.writer(limits);
    for number in 0..40_u8 {
        writer
            .append(if number % 2 == 0 { STDOUT } else { STDERR }, &vec![number; 30_000])
            .unwrap();
    }
    writer.acknowledge(consumed).unwrap();
}

#[test]
fn the_cursor_of_the_writer_is_seen_by_readers_and_never_goes_back() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    for _ in 0..3 {
        writer.append(STDOUT, b"x").unwrap();
    }
    let reader = world.reader();
    assert_eq!(reader.consumed_through().unwrap(), 0);
    writer.acknowledge(2).unwrap();
    assert_eq!(reader.consumed_through().unwrap(), 2);
    writer.acknowledge(1).unwrap();
    assert_eq!(reader.consumed_through().unwrap(), 2);
}

#[test]
fn nothing_beyond_the_last_record_is_acknowledged() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, b"x").unwrap();
    let refused = writer.acknowledge(2);
    assert!(matches!(refused, Err(AcknowledgeError::BeyondEnd { last: 1 })));
    assert_eq!(writer.consumed_through(), 0);
}

#[test]
fn what_is_not_acknowledged_comes_again_the_same() {
    let world = World::new();
    written(&world, limits(1 << 30, 1 << 20), 17);
    let all = records(&mut world.reader());
    let consumed = world.reader().consumed_through().unwrap();
    let mut again = LogReader::open_from(&world.attempt, consumed + 1).unwrap();
    assert_eq!(records(&mut again), all[17..]);
}

#[test]
fn a_living_writer_and_another_recipient_exclude() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append(STDOUT, b"x").unwrap();
    assert!(matches!(Acknowledger::lock(&world.attempt), Err(AcknowledgeError::Busy)));
    drop(writer);
    let first = Acknowledger::lock(&world.attempt).unwrap();
    assert!(matches!(Acknowledger::lock(&world.attempt), Err(AcknowledgeError::Busy)));
    drop(first);
    Acknowledger::lock(&world.attempt).unwrap();
}

#[test]
fn a_missing_log_cannot_be_acknowledged() {
    let world = World::new();
    let refused = Acknowledger::lock(&world.attempt);
    assert!(matches!(refused, Err(AcknowledgeError::Read(ReadLogError::Missing))));
}

#[test]
fn the_cursor_goes_on_after_the_writer_from_every_place() {
    for consumed in [0, 1, 8, 9, 10, 39, 40] {
        let world = World::new();
        written(&world, limits(1 << 30, 1 << 30), consumed);
        let mut acknowledger = Acknowledger::lock(&world.attempt).unwrap();
        assert_eq!(acknowledger.consumed_through(), consumed);
        assert_eq!(acknowledger.last_sequence(), 40);
        let refused = acknowledger.acknowledge(41);
        assert!(matches!(refused, Err(AcknowledgeError::BeyondEnd { last: 40 })));
        for through in [20, 10, 40] {
            acknowledger.acknowledge(through).unwrap();
        }
        drop(acknowledger);
        let again = Acknowledger::lock(&world.attempt).unwrap();
        assert_eq!(again.consumed_through(), 40, "from {consumed}");
        assert_eq!(sequences(&mut world.reader()).len(), 40);
    }
}

#[test]
fn an_ended_log_says_so_whoever_ended_it() {
    let world = World::new();
    let mut writer = world.writer(LogLimits::default());
    writer.append_end(STDOUT, StreamEnd::Whole).unwrap();
    assert!(!world.reader().is_ended().unwrap());
    writer.mark_ended().unwrap();
    assert!(world.reader().is_ended().unwrap());

    let killed = World::new();
    drop(killed.writer(LogLimits::default()));
    Acknowledger::lock(&killed.attempt).unwrap().mark_ended().unwrap();
    assert!(killed.reader().is_ended().unwrap());
}

#[test]
fn an_empty_log_can_be_acknowledged_to_zero() {
    let world = World::new();
    drop(world.writer(LogLimits::default()));
    let mut acknowledger = Acknowledger::lock(&world.attempt).unwrap();
    acknowledger.acknowledge(0).unwrap();
    assert!(matches!(acknowledger.acknowledge(1), Err(AcknowledgeError::BeyondEnd { last: 0 })));
}
