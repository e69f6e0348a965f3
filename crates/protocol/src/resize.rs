//! The size of a child's window, and whether it was taken.

use crate::frame::{Flags, Frame, Header};
use crate::json::{self, MessageError};
use crate::kind::Kind;
use placement_contract::{Generation, WindowSize};
use serde::{Deserialize, Serialize};

/// A new size of the child's window; the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Its number, from 1, which the answer repeats.
    pub resize_id: u64,
    /// The attachment of the sender.
    pub generation: Generation,
    /// The size.
    pub size: WindowSize,
}

/// Why a size is refused; the phrase is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ResizeRefused {
    /// Another recipient, or another attachment of this one, is bound.
    #[error("not the bound recipient")]
    NotBound,
    /// The child was not launched in a window.
    #[error("the child has no window")]
    NoWindow,
    /// The child does not run yet.
    #[error("the child does not run yet")]
    NotStarted,
    /// The child has exited.
    #[error("the child has exited")]
    Exited,
    /// The terminal did not take it.
    #[error("the terminal did not take the size")]
    Failed,
    /// The answer was lost.
    #[error("it is not known whether the window has the size")]
    Uncertain,
}

/// Whether the window has a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeAck {
    /// The number of the resize.
    pub resize_id: u64,
    /// The attachment of whoever sent it, right or not.
    pub generation: Generation,
    /// Nothing if the window has the size, else why not.
    pub refused: Option<ResizeRefused>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResizeAckPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<ResizeRefused>,
}

impl Resize {
    pub(crate) fn into_frame(self) -> Result<Frame, MessageError> {
        let header = Header {
            generation: self.generation,
            sequence: self.resize_id,
            ..Header::plain(Kind::Resize)
        };
        json::frame_with(header, &self.size)
    }

    pub(crate) fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        let Header { generation, sequence, .. } = *frame.header();
        let size = json::read(Kind::Resize, frame)?;
        Ok(Self { resize_id: sequence, generation, size })
    }
}

impl ResizeAck {
    pub(crate) fn into_frame(self) -> Result<Frame, MessageError> {
        let header = Header {
            flags: Flags::ACCEPTED.when(self.refused.is_none()),
            generation: self.generation,
            sequence: self.resize_id,
            ..Header::plain(Kind::ResizeAck)
        };
        json::frame_with(header, &ResizeAckPayload { reason: self.refused })
    }

    pub(crate) fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        let Header { flags, generation, sequence, .. } = *frame.header();
        let payload: ResizeAckPayload = json::read(Kind::ResizeAck, frame)?;
        if flags.has(Flags::ACCEPTED) == payload.reason.is_some() {
            return Err(MessageError::Field("reason"));
        }
        Ok(Self { resize_id: sequence, generation, refused: payload.reason })
    }
}
