//! The output log of an attempt: its head and its segments.

use crate::input::{Input, piece};
use camino::Utf8PathBuf;
use placement_contract::{AttemptId, OwnerId, StreamName};
use placement_homes::{
    Acknowledger, AttemptDir, HomeKey, LogItem, LogLimits, LogReader, LogWriter, RECORD_BYTES_MAX,
    Root, StreamEnd,
};
use placement_testkit::TempRoot;
use std::fs;

/// The first sequences by which segments are named.
const FIRSTS: &[u64] = &[1, 2, 3, 4, 0, 1 << 62, u64::MAX];
const RECORD_HEADER: usize = 36;
const SEGMENT_HEADER: usize = 40;
const SLOT: usize = 64;
const SLOTS_AT: &[usize] = &[0, 512];
/// More items than an input has room for.
const ITEMS_MAX: usize = crate::INPUT_BYTES_MAX / RECORD_HEADER + FIRSTS.len() * 2 + 8;

struct Room {
    attempt: AttemptDir,
    directory: Utf8PathBuf,
    /// Goes last, with everything below it.
    _root: TempRoot,
}

thread_local! {
    static ROOM: Room = Room::new();
}

impl Room {
    fn new() -> Self {
        let root = TempRoot::new();
        let owner = OwnerId::parse("o").expect("a short text is an id");
        let attempt = AttemptId::parse("a").expect("a short text is an id");
        let key = HomeKey::of(&owner, &attempt);
        let opened = Root::open(root.path()).expect("a root of its own opens");
        let attempt = opened.create_attempt(&key).expect("there is none yet");
        let directory = opened.home_path(&key).with_file_name("log");
        Self { attempt, directory, _root: root }
    }

    fn clear(&self) {
        for file in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            fs::remove_file(file.path()).expect("it is its own file");
        }
    }
}

/// The first byte says whether sums are made to fit; then come the sequence to read from, the head
/// and up to three segments.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let fit = input.byte() % 2 == 1;
    let from = input.number64();
    let through = input.number64();
    ROOM.with(|room| {
        room.clear();
        let directory = &room.directory;
        fs::create_dir_all(directory).expect("a test can write");
        let mut head = input.piece().to_vec();
        if fit {
            fit_head(&mut head);
        }
        fs::write(directory.join("head"), head).expect("a test can write");
        for _ in 0..3 {
            if input.is_empty() {
                break;
            }
            let first = input.choose(FIRSTS);
            let mut segment = input.piece().to_vec();
            if fit {
                fit_segment(&mut segment, first);
            }
            let name = directory.join(format!("{first:016x}.seg"));
            fs::write(name, segment).expect("a test can write");
        }
        read(&room.attempt, from);
        read(&room.attempt, 1);
        acknowledge(&room.attempt, through);
        read(&room.attempt, 1);
    });
}

fn read(attempt: &AttemptDir, from: u64) {
    let Ok(mut reader) = LogReader::open_from(attempt, from) else { return };
    reader.gap().ok();
    reader.is_ended().ok();
    let mut last = None;
    for _ in 0..ITEMS_MAX {
        match reader.next_item() {
            Ok(Some(LogItem::Record(record))) => {
                assert!(record.bytes.len() <= RECORD_BYTES_MAX, "a record is bounded");
                assert!(last < Some(record.sequence), "sequences grow");
                last = Some(record.sequence);
            }
            Ok(Some(LogItem::Gap(gap))) => {
                assert!(last < Some(gap.through), "a gap goes on");
                last = Some(gap.through);
            }
            Ok(None) | Err(_) => return,
        }
    }
    panic!("a log of some bytes has no end");
}

fn acknowledge(attempt: &AttemptDir, through: u64) {
    let Ok(mut acknowledger) = Acknowledger::lock(attempt) else { return };
    let before = acknowledger.consumed_through();
    if acknowledger.acknowledge(through).is_ok() {
        assert!(acknowledger.consumed_through() >= before, "an acknowledgment is never taken back");
        assert!(acknowledger.consumed_through() <= acknowledger.last_sequence().max(before));
    }
    acknowledger.mark_ended().ok();
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Writes the sum of what is before the last four bytes of a part into those.
fn seal(bytes: &mut [u8], at: usize, length: usize) {
    if let Some(part) = bytes.get(at..at + length) {
        let sum = crc32fast::hash(&part[..length - 4]);
        put(bytes, at + length - 4, &sum.to_le_bytes());
    }
}

fn fit_head(head: &mut [u8]) {
    for slot in SLOTS_AT {
        put(head, *slot, b"PLH1\x01\0\0\0");
        seal(head, *slot, SLOT);
    }
}

fn fit_segment(segment: &mut [u8], first: u64) {
    put(segment, 0, b"PLS1\x01\0\0\0");
    put(segment, 8, &first.to_le_bytes());
    seal(segment, 0, SEGMENT_HEADER);
    let mut at = SEGMENT_HEADER;
    while at + RECORD_HEADER <= segment.len() {
        put(segment, at, b"PLR1");
        let length = u16::from_le_bytes([segment[at + 4], segment[at + 5]]);
        put(segment, at + 6, &[0, 0]);
        let end = at + RECORD_HEADER + usize::from(length);
        let sum = segment.get(at + RECORD_HEADER..end).map(crc32fast::hash).unwrap_or_default();
        put(segment, at + 28, &sum.to_le_bytes());
        seal(segment, at, RECORD_HEADER);
        at = end;
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let room = Room::new();
    let directory = &room.directory;
    let mut writer = LogWriter::create(&room.attempt, LogLimits::default()).expect("it is new");
    writer.append(StreamName::Stdout, b"first").expect("there is room");
    writer.append(StreamName::Stderr, b"the second").expect("there is room");
    writer.append_end(StreamName::Stderr, StreamEnd::Truncated).expect("there is room");
    writer.acknowledge(1).expect("it was appended");
    let head = fs::read(directory.join("head")).expect("it was written");
    let segment = fs::read(directory.join("0000000000000001.seg")).expect("it was written");
    let seed = |fit: u8, segments: &[u8]| {
        let numbers = [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        [vec![fit], numbers, piece(&head), segments.to_vec()].concat()
    };
    let one = [vec![0], piece(&segment)].concat();
    let empty = [vec![3], piece(&segment[..SEGMENT_HEADER])].concat();
    vec![seed(0, &one), seed(1, &one), seed(1, &[one.clone(), empty].concat())]
}
