//! Frames over a stream, without blocking.

use crate::address::errno;
use crate::descriptor;
use crate::limits::FILL_BYTES_MAX;
use crate::outgoing::{Outgoing, WouldOverflow};
use crate::stream::Stream;
use placement_identity::Errno;
use placement_protocol::{Decoder, Frame, FrameError, LinkKind};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use zeroize::Zeroize as _;

/// Carries the frames of one kind of link over a stream.
///
/// Memory is bounded whatever the peer does: one read of [`FILL_BYTES_MAX`] bytes, one frame that
/// is being put together, and what [`Link::queue`] admits. After an error the link is of no use.
pub struct Link {
    stream: Stream,
    kind: LinkKind,
    decoder: Decoder,
    read: Read,
    /// Came with the frame that is being put together.
    arriving: Option<OwnedFd>,
    /// Came with the frame that was given out last.
    descriptor: Option<OwnedFd>,
    outgoing: Outgoing,
}

/// What one read brought and the decoder has not taken yet.
struct Read {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Belongs to the last of the bytes.
    descriptor: Option<OwnedFd>,
}

/// Why a link carries nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The peer closed it, or ended.
    #[error("the link is closed")]
    Closed,
    /// The kernel refused to read, write or wait.
    #[error("cannot {step} the link: {errno}")]
    Broken {
        /// The step.
        step: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
    /// The peer sent what is no frame of this link.
    #[error("the peer does not keep to the protocol")]
    Protocol(#[source] FrameError),
    /// It took longer than it may.
    #[error("no answer within the time")]
    Deadline,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Bytes are there: take frames.
    Bytes,
    /// Nothing is there for now: wait until the descriptor is readable.
    Nothing,
}

impl Link {
    /// Starts a link over a stream.
    pub fn new(stream: Stream, kind: LinkKind) -> Self {
        let buffer = vec![0; FILL_BYTES_MAX].into_boxed_slice();
        Self {
            stream,
            kind,
            decoder: Decoder::new(kind),
            read: Read { buffer, start: 0, end: 0, descriptor: None },
            arriving: None,
            descriptor: None,
            outgoing: Outgoing::default(),
        }
    }

    /// Returns the kind of the link.
    pub const fn kind(&self) -> LinkKind {
        self.kind
    }

    /// Returns the stream, for questions about the peer.
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Reads once what is there, at most [`FILL_BYTES_MAX`] bytes.
    ///
    /// Reads nothing while earlier bytes are not taken by [`Link::next_frame`], so a reader that is
    /// behind holds its peer back.
    ///
    /// # Errors
    /// [`LinkError::Closed`] at the end, every frame before it having been taken;
    /// [`LinkError::Broken`] when the kernel refuses.
    pub fn fill(&mut self) -> Result<Filled, LinkError> {
        if self.read.start < self.read.end {
            return Ok(Filled::Bytes);
        }
        // Only a control call may bring a descriptor.
        let outcome = if self.kind == LinkKind::Control {
            descriptor::receive(&self.stream, &mut self.read.buffer)
        } else {
            descriptor::receive_bytes(&self.stream, &mut self.read.buffer).map(|n| (n, None))
        };
        match outcome {
            Ok((0, _)) => Err(LinkError::Closed),
            Ok((bytes, descriptor)) => {
                self.read.start = 0;
                self.read.end = bytes;
                self.read.descriptor = descriptor;
                Ok(Filled::Bytes)
            }
            Err(rustix::io::Errno::AGAIN) => Ok(Filled::Nothing),
            Err(error) => Err(broken("read", error)),
        }
    }

    /// Gives out the next frame that was read whole.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] when the bytes are no frame of this link.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, LinkError> {
        let unread = &self.read.buffer[self.read.start..self.read.end];
        if unread.is_empty() {
            return Ok(None);
        }
        self.read.start += self.decoder.push(unread).map_err(LinkError::Protocol)?;
        if self.read.start == self.read.end {
            // The read ended here, so its descriptor came with the frame that ends it.
            self.arriving = self.arriving.take().or(self.read.descriptor.take());
        }
        let frame = self.decoder.take_frame();
        if let Some(frame) = &frame {
            self.descriptor = self.arriving.take();
            if frame.kind().is_secret() {
                self.read.wipe();
            }
        }
        Ok(frame)
    }

    /// Takes the descriptor that came with the frame that was given out last.
    pub const fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Puts a frame behind what waits to be written; [`Link::flush`] writes it.
    ///
    /// # Errors
    /// [`WouldOverflow`] gives it back when too much waits already: the peer does not read.
    ///
    /// # Panics
    /// If the frame is not one of this link: control and data are never mixed.
    pub fn queue(&mut self, frame: Frame) -> Result<(), WouldOverflow> {
        self.push(frame, None)
    }

    /// Puts a frame behind what waits to be written, with a descriptor that goes with it.
    ///
    /// # Errors
    /// As [`Link::queue`]; the descriptor is then closed.
    ///
    /// # Panics
    /// If the link is not a control link, or the frame not one of it.
    pub fn queue_with_descriptor(
        &mut self,
        frame: Frame,
        descriptor: OwnedFd,
    ) -> Result<(), WouldOverflow> {
        assert_eq!(self.kind, LinkKind::Control, "only a control call brings a descriptor");
        self.push(frame, Some(descriptor))
    }

    fn push(&mut self, frame: Frame, descriptor: Option<OwnedFd>) -> Result<(), WouldOverflow> {
        assert!(frame.kind().belongs_to(self.kind), "frame of another link");
        self.outgoing.push(frame, descriptor)
    }

    /// Writes what waits until nothing is left or the peer takes no more for now.
    ///
    /// # Errors
    /// [`LinkError::Closed`] when the peer closed the link; frames that it sent before can still be
    /// read. [`LinkError::Broken`] when the kernel refuses.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        match self.outgoing.write(&self.stream) {
            Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(broken("write", error)),
        }
    }

    /// Says whether something waits to be written: wait until the descriptor is writable.
    pub fn wants_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Returns the bytes that wait to be written.
    pub const fn outgoing_bytes(&self) -> usize {
        self.outgoing.bytes()
    }
}

impl Read {
    /// Wipes what is not still to be taken.
    fn wipe(&mut self) {
        self.buffer[..self.start].zeroize();
        self.buffer[self.end..].zeroize();
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Link")
            .field("stream", &self.stream)
            .field("kind", &self.kind)
            .field("outgoing_bytes", &self.outgoing.bytes())
            .finish_non_exhaustive()
    }
}

/// Words a failure; a peer that ended is no failure of the link.
pub(crate) fn broken(step: &'static str, error: rustix::io::Errno) -> LinkError {
    use rustix::io::Errno as E;
    match error {
        E::PIPE | E::CONNRESET | E::NOTCONN => LinkError::Closed,
        other => LinkError::Broken { step, errno: errno(other) },
    }
}
