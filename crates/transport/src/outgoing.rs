//! Frames that wait to be written.

use crate::descriptor;
use crate::limits::{GATHER_FRAMES_MAX, OUTGOING_BYTES_MAX, OUTGOING_FRAMES_MAX};
use crate::stream::Stream;
use placement_protocol::Frame;
use placement_protocol::limits::HEADER_BYTES;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd as _, OwnedFd};

/// A frame that finds no place behind what waits; it is given back.
#[derive(Debug, thiserror::Error)]
#[error("too much waits to be written")]
pub struct WouldOverflow(pub Frame);

/// Holds at most [`OUTGOING_BYTES_MAX`] bytes in [`OUTGOING_FRAMES_MAX`] frames, or one larger
/// frame alone.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    header: [u8; HEADER_BYTES],
    frame: Frame,
    written: usize,
    /// Goes with the first byte.
    descriptor: Option<OwnedFd>,
}

impl Outgoing {
    /// Returns the bytes that are not written yet.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Says whether a frame finds a place.
    fn has_room(&self, frame: &Frame) -> bool {
        self.is_empty()
            || (self.waiting.len() < OUTGOING_FRAMES_MAX
                && self.bytes + frame.wire_bytes() <= OUTGOING_BYTES_MAX)
    }

    pub(crate) fn push(
        &mut self,
        frame: Frame,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), WouldOverflow> {
        if !self.has_room(&frame) {
            return Err(WouldOverflow(frame));
        }
        self.bytes += frame.wire_bytes();
        let header = frame.header_bytes();
        self.waiting.push_back(Waiting { header, frame, written: 0, descriptor });
        Ok(())
    }

    /// Writes until nothing is left (`Ok`) or the socket takes no more (EAGAIN).
    pub(crate) fn write(&mut self, stream: &Stream) -> Result<(), Errno> {
        while !self.waiting.is_empty() {
            let written = self.write_once(stream)?;
            self.take_written(written);
        }
        Ok(())
    }

    /// Writes some frames by one system call, headers and payloads from where they lie.
    fn write_once(&self, stream: &Stream) -> Result<usize, Errno> {
        let mut parts = Vec::with_capacity(2 * GATHER_FRAMES_MAX);
        for (index, waiting) in self.waiting.iter().take(GATHER_FRAMES_MAX).enumerate() {
            // A frame with a descriptor starts a write and ends it: the receiver tells by the end
            // of its read which frame the descriptor came with.
            if waiting.descriptor.is_some() && index > 0 {
                break;
            }
            waiting.push_parts(&mut parts);
            if waiting.descriptor.is_some() {
                break;
            }
        }
        let first = self.waiting.front().and_then(|waiting| waiting.descriptor.as_ref());
        descriptor::send(stream, &parts, first.map(|descriptor| descriptor.as_fd()))
    }

    fn take_written(&mut self, mut written: usize) {
        self.bytes -= written;
        while written > 0 {
            let first = self.waiting.front_mut().expect("what was written had waited");
            // Written with the first byte; our copy is of no more use.
            first.descriptor = None;
            let now = written.min(first.frame.wire_bytes() - first.written);
            first.written += now;
            written -= now;
            if first.written == first.frame.wire_bytes() {
                self.waiting.pop_front();
            }
        }
    }
}

impl Waiting {
    fn push_parts<'a>(&'a self, parts: &mut Vec<IoSlice<'a>>) {
        let header = &self.header[self.written.min(HEADER_BYTES)..];
        let payload = &self.frame.payload()[self.written.saturating_sub(HEADER_BYTES)..];
        for part in [header, payload] {
            if !part.is_empty() {
                parts.push(IoSlice::new(part));
            }
        }
    }
}
