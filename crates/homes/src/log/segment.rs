//! The segments of a log: names, listing, opening, and records read one by one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use placement_paths::{Access, Dir, OpenError, RelativePath};

use super::format::{
    RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, sequence,
};
use super::reader::ReadLogError;
use crate::limits::SCAN_BYTES;

const SUFFIX: &str = ".seg";
const DIGITS: usize = 16;

pub(super) fn segment_name(first: u64) -> String {
    format!("{first:0DIGITS$x}{SUFFIX}")
}

/// Lists the first sequences of all segments, in order.
pub(super) fn list(directory: &Dir) -> Result<Vec<u64>, ReadLogError> {
    let mut firsts = Vec::new();
    for name in directory.entries().map_err(ReadLogError::List)? {
        let name = name.map_err(ReadLogError::List)?;
        if let Some(first) = name.to_str().and_then(parse_name) {
            firsts.push(first);
        }
    }
    firsts.sort_unstable();
    Ok(firsts)
}

fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = sequence(u64::from_str_radix(digits, 16).ok()?)?;
    (segment_name(number) == name).then_some(number)
}

/// A segment that is being read, record by record.
///
/// Nothing is read ahead: a writer whose write failed half-way takes its bytes back and writes
/// others there.
#[derive(Debug)]
pub(super) struct OpenSegment {
    file: File,
    pub(super) header: SegmentHeader,
    /// Where in the file the next record begins.
    position: u64,
}

/// What stands at a place where a record or a part of one is wanted.
pub(super) enum Next<T> {
    /// It, whole.
    Whole(T),
    /// Nothing, or the beginning of it.
    Incomplete,
    /// Bytes that are not it.
    Damaged,
}

impl OpenSegment {
    /// Opens the segment that begins with `first`; `None` when there is none, or it has no whole
    /// header yet.
    pub(super) fn open(directory: &Dir, first: u64) -> Result<Option<Self>, ReadLogError> {
        let path = RelativePath::parse(&segment_name(first)).expect("a segment has a safe name");
        let file = match directory.open_file(&path, Access::Read) {
            Ok(file) => file,
            Err(OpenError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(ReadLogError::Open(error)),
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        // Power loss may leave the length of a new segment without its bytes.
        if !read_whole(&file, &mut bytes, 0)? || bytes == [0; SEGMENT_HEADER_BYTES] {
            return Ok(None);
        }
        let header = SegmentHeader::decode(&bytes)
            .filter(|header| header.first == first)
            .ok_or(ReadLogError::Damaged { segment: first, sequence: first })?;
        Ok(Some(Self { file, header, position: SEGMENT_HEADER_BYTES as u64 }))
    }

    /// Reads the header of the next record; the payload is not looked at.
    pub(super) fn header(&self) -> Result<Next<RecordHeader>, ReadLogError> {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        if !read_whole(&self.file, &mut bytes, self.position)? {
            return Ok(Next::Incomplete);
        }
        Ok(RecordHeader::decode(&bytes).map_or(Next::Damaged, Next::Whole))
    }

    /// Reads the payload of the next record, whose header this is.
    pub(super) fn payload(&self, header: &RecordHeader) -> Result<Next<Vec<u8>>, ReadLogError> {
        let mut bytes = vec![0; header.length];
        if !read_whole(&self.file, &mut bytes, self.position + RECORD_HEADER_BYTES as u64)? {
            return Ok(Next::Incomplete);
        }
        Ok(if header.fits(&bytes) { Next::Whole(bytes) } else { Next::Damaged })
    }

    /// Goes past the next record, whose header this is.
    pub(super) fn pass(&mut self, header: &RecordHeader) {
        self.position += header.stored() as u64;
    }

    /// Says whether the damaged next record is followed by something, so that it is no torn tail.
    pub(super) fn damaged_within(&self, sequence: u64) -> Result<bool, ReadLogError> {
        if let Next::Whole(header) = self.header()? {
            let end = self.position + header.stored() as u64;
            return Ok(self.file.metadata().map_err(ReadLogError::Read)?.len() > end);
        }
        self.later_record(sequence)
    }

    /// Searches for the header of a later record, since a damaged one does not tell its length.
    fn later_record(&self, sequence: u64) -> Result<bool, ReadLogError> {
        let mut window = vec![0; SCAN_BYTES];
        let mut position = self.position;
        loop {
            let read = read_some(&self.file, &mut window, position)?;
            let found = window[..read]
                .windows(RECORD_HEADER_BYTES)
                .filter_map(|bytes| RecordHeader::decode(bytes.try_into().ok()?))
                .any(|header| header.sequence > sequence);
            if found || read < SCAN_BYTES {
                return Ok(found);
            }
            // A header may lie across the end of this window.
            position += (SCAN_BYTES - RECORD_HEADER_BYTES) as u64;
        }
    }
}

/// Fills all of `bytes`; `false` when the file ends before.
fn read_whole(file: &File, bytes: &mut [u8], position: u64) -> Result<bool, ReadLogError> {
    match file.read_exact_at(bytes, position) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(ReadLogError::Read(error)),
    }
}

/// Fills as much of `bytes` as the file has.
fn read_some(file: &File, bytes: &mut [u8], position: u64) -> Result<usize, ReadLogError> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], position + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ReadLogError::Read(error)),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PLACE_MAX;

    #[test]
    fn names_sort_as_their_sequences_and_are_parsed_back() {
        assert_eq!(segment_name(1), "0000000000000001.seg");
        assert_eq!(parse_name(&segment_name(PLACE_MAX)), Some(PLACE_MAX));
        assert_eq!(parse_name(&segment_name(PLACE_MAX + 1)), None);
        assert_eq!(parse_name(&segment_name(0)), None);
    }

    #[test]
    fn other_names_are_no_segments() {
        for name in
            ["head", "1.seg", "000000000000000G.seg", "000000000000000A.seg", "+00000000000001.seg"]
        {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
