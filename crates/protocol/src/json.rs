//! JSON payloads: exact decoding, and encoding that leaves no unwiped copy behind.

use crate::frame::{Frame, FrameError, Header};
use crate::kind::Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Why a frame is not the message that was expected, or a message does not fit a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The frame is of another kind.
    #[error("frame of a kind that is not expected here")]
    Kind(Kind),
    /// The payload is not the JSON of the kind's message; its text is not repeated.
    #[error("payload that is not a message of its kind")]
    Malformed(Kind),
    /// Fields of the message contradict each other or break a rule.
    #[error("message with a wrong {0}")]
    Field(&'static str),
    /// The message does not fit a frame.
    #[error("message that does not fit a frame")]
    Frame(#[source] FrameError),
}

/// Writes a message as the payload of a plain frame.
pub(crate) fn frame<T: Serialize>(kind: Kind, message: &T) -> Result<Frame, MessageError> {
    frame_with(Header::plain(kind), message)
}

/// Writes a message as the payload of a frame.
pub(crate) fn frame_with<T: Serialize>(header: Header, message: &T) -> Result<Frame, MessageError> {
    // Measured first: a buffer that grows would leave copies of what it held.
    let mut measured = Measure(0);
    let malformed = |_| MessageError::Malformed(header.kind);
    serde_json::to_writer(&mut measured, message).map_err(malformed)?;
    let mut payload = Vec::with_capacity(measured.0);
    serde_json::to_writer(&mut payload, message).map_err(malformed)?;
    Frame::new(header, payload).map_err(MessageError::Frame)
}

/// Reads the message of a frame of one kind.
pub(crate) fn read<T: DeserializeOwned>(kind: Kind, frame: &Frame) -> Result<T, MessageError> {
    if frame.kind() != kind {
        return Err(MessageError::Kind(frame.kind()));
    }
    serde_json::from_slice(frame.payload()).map_err(|_| MessageError::Malformed(kind))
}

/// Counts what is written.
struct Measure(usize);

impl io::Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
