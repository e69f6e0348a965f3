//! Hashing the content of one file, a slice at a time.

use crate::facts::Which;
use crate::limits::{READ_BYTES, SCRIPT_HEAD_BYTES};
use crate::measuring::MeasureError;
use placement_contract::Digest;
use sha2::{Digest as _, Sha256};
use std::io;

/// The content of one file while it is hashed.
#[derive(Debug)]
pub(crate) struct Content {
    which: Which,
    size: u64,
    offset: u64,
    hasher: Sha256,
    head: Vec<u8>,
}

impl Content {
    pub(crate) fn new(which: Which, size: u64) -> Self {
        Self { which, size, offset: 0, hasher: Sha256::new(), head: Vec::new() }
    }

    /// Hashes at most `bytes` more through `read`; says whether the whole size was hashed.
    pub(crate) fn advance(
        &mut self,
        read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
        buffer: &mut [u8],
        bytes: usize,
    ) -> Result<bool, MeasureError> {
        let mut left = bytes;
        while self.offset < self.size && left > 0 {
            let to_end = usize::try_from(self.size - self.offset).unwrap_or(usize::MAX);
            let wanted = to_end.min(left).min(READ_BYTES).min(buffer.len());
            let count = match read(&mut buffer[..wanted], self.offset) {
                Ok(0) => return Err(MeasureError::ShortRead { which: self.which }),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(MeasureError::Read { which: self.which, source }),
            };
            self.take(&buffer[..count]);
            left -= count;
        }
        Ok(self.offset == self.size)
    }

    /// Returns the digest and the first bytes.
    pub(crate) fn finish(self) -> (Digest, Vec<u8>) {
        (Digest::from_sha256(self.hasher.finalize().into()), self.head)
    }

    /// Reads the first bytes alone, where the digest is known already.
    pub(crate) fn read_head(
        &mut self,
        read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
        buffer: &mut [u8],
    ) -> Result<(), MeasureError> {
        let whole = self.size;
        self.size = whole.min(SCRIPT_HEAD_BYTES as u64);
        let outcome = self.advance(read, buffer, SCRIPT_HEAD_BYTES);
        self.size = whole;
        outcome.map(|_| ())
    }

    fn take(&mut self, bytes: &[u8]) {
        let missing = SCRIPT_HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"#!/bin/sh\nexit 0\n";

    fn some_of(part: &mut [u8], offset: u64, count: usize) -> usize {
        let from = usize::try_from(offset).unwrap();
        let count = count.min(part.len()).min(BYTES.len() - from);
        part[..count].copy_from_slice(&BYTES[from..from + count]);
        count
    }

    #[test]
    fn reads_in_pieces_give_the_digest_of_the_whole() {
        let mut content = Content::new(Which::Program, BYTES.len() as u64);
        let read = |part: &mut [u8], offset| Ok(some_of(part, offset, 3));
        assert!(content.advance(read, &mut [0; 64], 1_000).unwrap());
        let (digest, head) = content.finish();
        assert_eq!(digest, Digest::of_bytes(BYTES));
        assert_eq!(head, BYTES);
    }

    #[test]
    fn a_step_ends_at_its_bytes() {
        let mut content = Content::new(Which::Program, BYTES.len() as u64);
        let read = |part: &mut [u8], offset| Ok(some_of(part, offset, 64));
        assert!(!content.advance(read, &mut [0; 64], 5).unwrap());
        assert_eq!(content.offset, 5);
        assert!(content.advance(read, &mut [0; 64], 64).unwrap());
    }

    #[test]
    fn a_read_error_is_refused_with_its_source() {
        let mut content = Content::new(Which::Interpreter, 10);
        let read = |_: &mut [u8], _| Err(io::Error::from_raw_os_error(5));
        let error = content.advance(read, &mut [0; 64], 10).unwrap_err();
        assert_eq!(error.to_string(), "the interpreter could not be read");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn a_short_read_is_refused() {
        let mut content = Content::new(Which::Program, BYTES.len() as u64 + 1);
        let read = |part: &mut [u8], offset| Ok(some_of(part, offset, 64));
        let error = content.advance(read, &mut [0; 64], 64).unwrap_err();
        assert!(matches!(error, MeasureError::ShortRead { which: Which::Program }));
    }

    #[test]
    fn an_interrupted_read_is_repeated() {
        let calls = std::cell::Cell::new(0);
        let mut content = Content::new(Which::Program, BYTES.len() as u64);
        let read = |part: &mut [u8], offset| {
            calls.set(calls.get() + 1);
            if calls.get() == 1 {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            Ok(some_of(part, offset, 64))
        };
        assert!(content.advance(read, &mut [0; 64], 64).unwrap());
    }
}
