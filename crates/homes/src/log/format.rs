//! The bytes of records and segment headers. All numbers are little-endian.

use placement_contract::StreamName;

use super::{Offsets, RecordKind};
use crate::limits::{PLACE_MAX, RECORD_BYTES_MAX};

/// Bytes before a record's payload.
///
/// `magic u32 | payload length u32 | sequence u64 | offset u64 | kind u8 | stream u8 | flags u16 |
/// payload crc u32 | header crc u32`. The header has a CRC of its own, so that records can be
/// counted without reading their payload.
pub(super) const RECORD_HEADER_BYTES: usize = 36;

/// Bytes at the start of a segment.
///
/// `magic u32 | version u32 | first sequence u64 | stdout bytes before u64 | stderr bytes before
/// u64 | reserved u32 | crc u32`.
pub(super) const SEGMENT_HEADER_BYTES: usize = 40;

const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"PLR1");
const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"PLS1");
const VERSION: u32 = 1;
const FLAG_TRUNCATED: u16 = 1;
const CRC_AT: usize = RECORD_HEADER_BYTES - 4;
const SEGMENT_CRC_AT: usize = SEGMENT_HEADER_BYTES - 4;

const _: () = assert!(RECORD_HEADER_BYTES as u64 == crate::limits::RECORD_OVERHEAD_BYTES);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) length: usize,
    pub(super) sequence: u64,
    pub(super) offset: u64,
    pub(super) kind: RecordKind,
    pub(super) stream: StreamName,
    pub(super) truncated: bool,
    payload_crc: u32,
}

impl RecordHeader {
    pub(super) fn new(
        sequence: u64,
        offset: u64,
        kind: RecordKind,
        stream: StreamName,
        truncated: bool,
        payload: &[u8],
    ) -> Self {
        let payload_crc = crc32fast::hash(payload);
        Self { length: payload.len(), sequence, offset, kind, stream, truncated, payload_crc }
    }

    pub(super) fn encode(&self) -> [u8; RECORD_HEADER_BYTES] {
        let length = u32::try_from(self.length).expect("a payload is at most 64 KiB");
        let kind = match self.kind {
            RecordKind::Chunk => 1,
            RecordKind::Eof => 2,
        };
        let stream = match self.stream {
            StreamName::Stdout => 1,
            StreamName::Stderr => 2,
        };
        let flags = if self.truncated { FLAG_TRUNCATED } else { 0 };
        let mut bytes = [0; RECORD_HEADER_BYTES];
        put(&mut bytes, 0, &RECORD_MAGIC.to_le_bytes());
        put(&mut bytes, 4, &length.to_le_bytes());
        put(&mut bytes, 8, &self.sequence.to_le_bytes());
        put(&mut bytes, 16, &self.offset.to_le_bytes());
        put(&mut bytes, 24, &[kind, stream]);
        put(&mut bytes, 26, &flags.to_le_bytes());
        put(&mut bytes, 28, &self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Decodes a header; `None` when it is damaged or holds what no writer of ours writes.
    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES]) -> Option<Self> {
        if u32_at(bytes, 0) != RECORD_MAGIC
            || u32_at(bytes, CRC_AT) != crc32fast::hash(&bytes[..CRC_AT])
        {
            return None;
        }
        let length = usize::try_from(u32_at(bytes, 4)).ok()?;
        let kind = match bytes[24] {
            1 => RecordKind::Chunk,
            2 => RecordKind::Eof,
            _ => return None,
        };
        let stream = match bytes[25] {
            1 => StreamName::Stdout,
            2 => StreamName::Stderr,
            _ => return None,
        };
        let truncated = match u16::from_le_bytes([bytes[26], bytes[27]]) {
            0 => false,
            FLAG_TRUNCATED => true,
            _ => return None,
        };
        Some(Self {
            length: (length <= RECORD_BYTES_MAX).then_some(length)?,
            sequence: sequence(u64_at(bytes, 8))?,
            offset: place(u64_at(bytes, 16))?,
            kind,
            stream,
            truncated,
            payload_crc: u32_at(bytes, 28),
        })
    }

    pub(super) fn fits(&self, payload: &[u8]) -> bool {
        crc32fast::hash(payload) == self.payload_crc
    }

    /// Bytes that the record takes in its segment.
    pub(super) fn stored(&self) -> usize {
        RECORD_HEADER_BYTES + self.length
    }
}

/// What the start of a segment says of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) first: u64,
    pub(super) before: Offsets,
}

impl SegmentHeader {
    pub(super) fn encode(self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        put(&mut bytes, 0, &SEGMENT_MAGIC.to_le_bytes());
        put(&mut bytes, 4, &VERSION.to_le_bytes());
        put(&mut bytes, 8, &self.first.to_le_bytes());
        put(&mut bytes, 16, &self.before.stdout.to_le_bytes());
        put(&mut bytes, 24, &self.before.stderr.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..SEGMENT_CRC_AT]);
        put(&mut bytes, SEGMENT_CRC_AT, &crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<Self> {
        let crc = crc32fast::hash(&bytes[..SEGMENT_CRC_AT]);
        if u32_at(bytes, 0) != SEGMENT_MAGIC
            || u32_at(bytes, 4) != VERSION
            || u32_at(bytes, SEGMENT_CRC_AT) != crc
        {
            return None;
        }
        let before =
            Offsets { stdout: place(u64_at(bytes, 16))?, stderr: place(u64_at(bytes, 24))? };
        Some(Self { first: sequence(u64_at(bytes, 8))?, before })
    }
}

/// A number that a writer can have come to, whatever the sum of its record says.
pub(super) fn place(number: u64) -> Option<u64> {
    (number <= PLACE_MAX).then_some(number)
}

/// A place among the records, which are numbered from 1.
pub(super) fn sequence(number: u64) -> Option<u64> {
    place(number).filter(|number| *number > 0)
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("the slice has eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_header_is_decoded_back() {
        let header = RecordHeader::new(7, 9, RecordKind::Eof, StreamName::Stderr, true, b"payload");
        let decoded = RecordHeader::decode(&header.encode()).unwrap();
        assert_eq!(decoded, header);
        assert!(decoded.fits(b"payload"));
        assert!(!decoded.fits(b"payloae"));
    }

    #[test]
    fn a_flipped_bit_anywhere_in_a_header_is_seen() {
        let header = RecordHeader::new(7, 9, RecordKind::Chunk, StreamName::Stdout, false, b"x");
        for bit in 0..RECORD_HEADER_BYTES * 8 {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHeader::decode(&bytes), None, "bit {bit}");
        }
        let header = SegmentHeader { first: 3, before: Offsets { stdout: 1, stderr: 2 } };
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn a_number_that_no_writer_comes_to_is_refused_whatever_its_sum_says() {
        for (sequence, offset, sound) in
            [(1, 0, true), (PLACE_MAX, PLACE_MAX, true), (0, 0, false), (PLACE_MAX + 1, 0, false)]
        {
            let (kind, stream) = (RecordKind::Chunk, StreamName::Stdout);
            let header = RecordHeader::new(sequence, offset, kind, stream, false, b"x");
            assert_eq!(RecordHeader::decode(&header.encode()).is_some(), sound, "{sequence}");
            let before = Offsets { stdout: offset, stderr: offset };
            let header = SegmentHeader { first: sequence, before };
            assert_eq!(SegmentHeader::decode(&header.encode()).is_some(), sound, "{sequence}");
        }
        let before = Offsets { stdout: u64::MAX, stderr: 1 };
        assert_eq!(SegmentHeader::decode(&SegmentHeader { first: 1, before }.encode()), None);
    }

    #[test]
    fn a_length_above_the_bound_is_refused() {
        let payload = vec![0; RECORD_BYTES_MAX + 1];
        let header =
            RecordHeader::new(1, 0, RecordKind::Chunk, StreamName::Stdout, false, &payload);
        assert_eq!(RecordHeader::decode(&header.encode()), None);
    }
}
