//! The memory of a log's writer and reader does not grow with the log. One test only: the memory
//! is the whole process's.

use std::fs;

use placement_contract::{AttemptId, OwnerId, StreamName};
use placement_homes::{HomeKey, LogItem, LogLimits, LogReader, LogWriter, Root};
use placement_testkit::TempRoot;

const MIB: u64 = 1024 * 1024;
const CHUNKS: u64 = 100 * MIB / CHUNK;
const CHUNK: u64 = 16 * 1024;

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("the peak of resident memory is a number")
}

#[test]
fn a_hundred_mebibytes_are_written_and_read_in_little_memory() {
    let scratch = TempRoot::new();
    let root = Root::open(scratch.join("root")).unwrap();
    let bytes = vec![3; usize::try_from(CHUNK).unwrap()];
    let before = peak_kib();
    for (name, spool, acknowledge) in [("kept", 200 * MIB, false), ("trimmed", MIB, true)] {
        let key = HomeKey::of(&OwnerId::parse("ci").unwrap(), &AttemptId::parse(name).unwrap());
        let attempt = root.create_attempt(&key).unwrap();
        let limits = LogLimits { spool_bytes_max: spool, transcript_bytes_max: 4 * MIB };
        let mut writer = LogWriter::create(&attempt, limits).unwrap();
        for _ in 0..CHUNKS {
            let sequence = writer.append(StreamName::Stdout, &bytes).unwrap();
            if acknowledge {
                writer.acknowledge(sequence).unwrap();
            }
        }
        let mut reader = LogReader::open(&attempt).unwrap();
        let mut seen = 0;
        while let Some(item) = reader.next_item().unwrap() {
            seen += match item {
                LogItem::Record(record) => record.bytes.len() as u64,
                LogItem::Gap(gap) => gap.bytes,
            };
        }
        assert_eq!(seen, CHUNKS * CHUNK);
        if !acknowledge {
            writer.acknowledge(writer.last_sequence()).unwrap();
        }
    }
    let grown = peak_kib() - before;
    assert!(grown < 4096, "the peak grew by {grown} KiB");
}
