//! The segments of a log: names, listing, opening, and records read through a bounded buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use placement_paths::{Access, Dir, OpenError, RelativePath};

use super::format::{
    RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
};
use super::reader::ReadLogError;
use crate::limits::READ_BUFFER_BYTES;

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
    let number = u64::from_str_radix(digits, 16).ok()?;
    (segment_name(number) == name).then_some(number)
}

/// A segment that is being read: its file, and a window of bytes not yet given out.
#[derive(Debug)]
pub(super) struct OpenSegment {
    file: File,
    pub(super) header: SegmentHeader,
    /// Where in the file the window begins.
    position: u64,
    window: Vec<u8>,
    /// Bytes of the window that were given out.
    start: usize,
}

/// What stands next in a segment.
pub(super) enum Next {
    /// A whole record; its payload is taken with [`OpenSegment::take`].
    Record(RecordHeader),
    /// Nothing, or the beginning of a record.
    Incomplete,
    /// Bytes that are no whole record.
    Damaged,
}

impl OpenSegment {
    /// Opens the segment that begins with `first`; `None` when there is none, or it has no whole
    /// header yet.
    pub(super) fn open(directory: &Dir, first: u64) -> Result<Option<Self>, ReadLogError> {
        let path =
            RelativePath::parse(&segment_name(first)).expect("a segment has a safe name");
        let file = match directory.open_file(&path, Access::Read) {
            Ok(file) => file,
            Err(OpenError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(ReadLogError::Open(error)),
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(ReadLogError::Read(error)),
        }
        let header = SegmentHeader::decode(&bytes)
            .filter(|header| header.first == first)
            .ok_or(ReadLogError::Damaged { segment: first, sequence: first })?;
        let position = SEGMENT_HEADER_BYTES as u64;
        Ok(Some(Self { file, header, position, window: Vec::new(), start: 0 }))
    }

    /// Looks at the next record and brings all of it into the window.
    pub(super) fn peek(&mut self) -> Result<Next, ReadLogError> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(Next::Incomplete);
        }
        let Some(header) = RecordHeader::decode(self.header_bytes()) else {
            return Ok(Next::Damaged);
        };
        if !self.fill(header.stored())? {
            return Ok(Next::Incomplete);
        }
        let from = self.start + RECORD_HEADER_BYTES;
        if header.fits(&self.window[from..from + header.length]) {
            Ok(Next::Record(header))
        } else {
            Ok(Next::Damaged)
        }
    }

    /// Takes the payload of a record that was just looked at.
    pub(super) fn take(&mut self, header: &RecordHeader) -> Vec<u8> {
        let from = self.start + RECORD_HEADER_BYTES;
        let bytes = self.window[from..from + header.length].to_vec();
        self.skip(header);
        bytes
    }

    /// Goes past a record that was just looked at.
    pub(super) fn skip(&mut self, header: &RecordHeader) {
        self.start += header.stored();
    }

    /// Forgets what was read ahead, so that the next look sees the file as it is then.
    ///
    /// A writer whose write failed half-way takes its bytes back and writes others there.
    pub(super) fn forget(&mut self) {
        self.position += self.start as u64;
        self.start = 0;
        self.window.clear();
    }

    /// Reads the header of the next record only and goes past the record.
    ///
    /// For a writer that counts its own records: the payload is not looked at.
    pub(super) fn next_header(&mut self) -> Result<Option<RecordHeader>, ReadLogError> {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        match self.file.read_exact_at(&mut bytes, self.position) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(ReadLogError::Read(error)),
        }
        let header = RecordHeader::decode(&bytes);
        self.position += header.map_or(0, |header| header.stored() as u64);
        Ok(header)
    }

    /// Says whether a bad record is followed by something, so that it is not a torn tail.
    pub(super) fn damaged_within(&mut self, sequence: u64) -> Result<bool, ReadLogError> {
        self.forget();
        if self.fill(RECORD_HEADER_BYTES)? {
            if let Some(header) = RecordHeader::decode(self.header_bytes()) {
                let end = self.position + header.stored() as u64;
                return Ok(self.file.metadata().map_err(ReadLogError::Read)?.len() > end);
            }
        }
        self.later_record(sequence)
    }

    /// Searches for the header of a later record, since a damaged one does not tell its length.
    fn later_record(&mut self, sequence: u64) -> Result<bool, ReadLogError> {
        let resume = self.position;
        let found = loop {
            if !self.fill(RECORD_HEADER_BYTES)? {
                break false;
            }
            let later = RecordHeader::decode(self.header_bytes())
                .is_some_and(|header| header.sequence > sequence);
            if later {
                break true;
            }
            self.start += 1;
        };
        self.position = resume;
        self.start = 0;
        self.window.clear();
        Ok(found)
    }

    fn header_bytes(&self) -> &[u8; RECORD_HEADER_BYTES] {
        self.window[self.start..]
            .first_chunk()
            .expect("the window was filled with a header before")
    }

    /// Reads until the window holds `wanted` bytes; `false` when the file ends before.
    fn fill(&mut self, wanted: usize) -> Result<bool, ReadLogError> {
        while self.window.len() - self.start < wanted {
            if self.start > 0 {
                self.window.drain(..self.start);
                self.position += self.start as u64;
                self.start = 0;
            }
            let held = self.window.len();
            self.window.resize(READ_BUFFER_BYTES, 0);
            let read = self.file.read_at(&mut self.window[held..], self.position + held as u64);
            self.window.truncate(held + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadLogError::Read(error)),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_sequences_and_are_parsed_back() {
        assert_eq!(segment_name(1), "0000000000000001.seg");
        assert_eq!(parse_name(&segment_name(u64::MAX)), Some(u64::MAX));
    }

    #[test]
    fn other_names_are_no_segments() {
        for name in ["head", "1.seg", "000000000000000G.seg", "000000000000000A.seg", "+00000000000001.seg"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
