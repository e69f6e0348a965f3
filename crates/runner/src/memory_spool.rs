//! Output that nobody acknowledged yet, kept in memory: for launches without a spool file.

use crate::output::place;
use placement_contract::StreamName;
use placement_contract::limits::MEMORY_SPOOL_BYTES_MAX;
use placement_homes::{Record, RecordKind, StreamEnd};
use std::collections::VecDeque;

/// At most 256 KiB of unacknowledged output.
#[derive(Debug, Default)]
pub(crate) struct MemorySpool {
    records: VecDeque<Record>,
    bytes: u64,
    last_sequence: u64,
    offsets: [u64; 2],
}

impl MemorySpool {
    /// Keeps bytes of a stream under the next sequence.
    pub(crate) fn append(&mut self, stream: StreamName, mut bytes: Vec<u8>) {
        // What is kept is what is counted.
        bytes.shrink_to_fit();
        self.push(stream, RecordKind::Chunk, StreamEnd::Whole, bytes);
    }

    /// Keeps the end of a stream under the next sequence.
    pub(crate) fn append_end(&mut self, stream: StreamName, end: StreamEnd) {
        self.push(stream, RecordKind::Eof, end, Vec::new());
    }

    fn push(&mut self, stream: StreamName, kind: RecordKind, end: StreamEnd, bytes: Vec<u8>) {
        self.last_sequence += 1;
        let length = bytes.len() as u64;
        let offset = &mut self.offsets[place(stream)];
        self.records.push_back(Record {
            sequence: self.last_sequence,
            offset: *offset,
            kind,
            stream,
            truncated: end == StreamEnd::Truncated,
            bytes,
        });
        *offset += length;
        self.bytes += length;
    }

    /// Returns how many bytes more stay within the bound.
    pub(crate) fn room_bytes(&self) -> u64 {
        MEMORY_SPOOL_BYTES_MAX.saturating_sub(self.bytes)
    }

    /// Returns the record with this sequence while it is kept.
    pub(crate) fn get(&self, sequence: u64) -> Option<&Record> {
        let first = self.records.front()?.sequence;
        let place = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.records.get(place)
    }

    /// Lets go of everything up to this sequence.
    pub(crate) fn acknowledge(&mut self, through: u64) {
        while self.records.front().is_some_and(|record| record.sequence <= through) {
            if let Some(gone) = self.records.pop_front() {
                self.bytes -= gone.bytes.len() as u64;
            }
        }
    }

    /// Returns the bytes that nobody acknowledged.
    pub(crate) fn unacknowledged_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many chunks nobody acknowledged.
    pub(crate) fn unacknowledged_chunks(&self) -> usize {
        self.records.iter().filter(|record| record.kind == RecordKind::Chunk).count()
    }

    /// Returns the sequence of the newest record, 0 before the first.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_sequence_until_they_are_acknowledged() {
        let mut spool = MemorySpool::default();
        spool.append(StreamName::Stdout, b"one".to_vec());
        spool.append(StreamName::Stderr, b"two".to_vec());
        spool.append(StreamName::Stdout, b"three".to_vec());
        assert_eq!(spool.get(3).map(|r| (r.offset, r.bytes.as_slice())), Some((3, &b"three"[..])));
        spool.acknowledge(2);
        assert!(spool.get(2).is_none());
        assert_eq!(spool.get(3).map(|r| r.sequence), Some(3));
        assert_eq!(spool.unacknowledged_bytes(), 5);
    }

    #[test]
    fn the_bound_is_256_kib() {
        let mut spool = MemorySpool::default();
        for _ in 0..4 {
            assert!(spool.room_bytes() >= 65_536);
            spool.append(StreamName::Stdout, vec![0; 65_536]);
        }
        assert_eq!(spool.room_bytes(), 0);
        spool.acknowledge(1);
        assert_eq!(spool.room_bytes(), 65_536);
    }
}
