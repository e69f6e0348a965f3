//! Output, its acknowledgments and input: one enum per direction.

use crate::frame::{Flags, Frame, Header};
use crate::json::{self, MessageError};
use crate::kind::Kind;
use crate::resize::{Resize, ResizeAck};
use placement_contract::{Exit, Generation, StreamName};
use serde::{Deserialize, Serialize};

/// Bytes of output, 1 to 65 536.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The stream.
    pub stream: StreamName,
    /// Its place among the chunks and ends of the attempt, from 1; the same when it is sent again.
    pub sequence: u64,
    /// The place of its first byte in its stream, from 0.
    pub offset: u64,
    /// The attachment.
    pub generation: Generation,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The end of one output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eof {
    /// The stream.
    pub stream: StreamName,
    /// Its place among the chunks and ends of the attempt.
    pub sequence: u64,
    /// How many bytes the stream had.
    pub offset: u64,
    /// The attachment.
    pub generation: Generation,
    /// Whether the runner closed the stream before its end.
    pub truncated: bool,
}

/// The exit of the child; separate from the ends of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitNotice {
    /// The exit, where it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Whether it cannot be said how the child ended.
    pub uncertain: bool,
    /// Whether a stop was accepted before.
    pub stopped: bool,
}

/// Bytes for the child's input, at most 65 536.
#[derive(Clone, PartialEq, Eq)]
pub struct Input {
    /// Its number, from 1; larger than every earlier one.
    pub write_id: u64,
    /// The attachment of the sender.
    pub generation: Generation,
    /// Whether the input is closed after these bytes.
    pub end: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Input {
    /// Leaves the bytes out: what is typed may be a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Input")
            .field("write_id", &self.write_id)
            .field("generation", &self.generation)
            .field("end", &self.end)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Why input is refused; the phrase is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum InputRefused {
    /// Another recipient, or another attachment of this one, is bound.
    #[error("not the bound recipient")]
    NotBound,
    /// The child has exited.
    #[error("the child has exited")]
    Exited,
    /// The input is closed, or the launch gave the child none.
    #[error("the input is closed")]
    Closed,
    /// The write is older than what the runner remembers; it may have been written.
    #[error("older than the remembered writes")]
    Forgotten,
    /// A later write was accepted before, and this one never was.
    #[error("a later write was accepted before")]
    OutOfOrder,
    /// The child does not read, and as much as may wait is waiting.
    #[error("too much input is waiting")]
    Full,
    /// A terminal has no end of its input; what its line discipline reads as one can be written.
    #[error("a window has no end of its input")]
    NoEnd,
    /// The write failed; a part of it may have been written.
    #[error("the input was written in part or not at all")]
    Uncertain,
}

/// Whether input was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputAck {
    /// The number of the write.
    pub write_id: u64,
    /// The attachment of whoever sent it, right or not.
    pub generation: Generation,
    /// Nothing if it was accepted, else why not.
    pub refused: Option<InputRefused>,
}

/// What a runner sends over the data link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRunner {
    /// Output.
    Chunk(Chunk),
    /// The end of a stream.
    Eof(Eof),
    /// The exit.
    Exit {
        /// The attachment.
        generation: Generation,
        /// What is said of it.
        notice: ExitNotice,
    },
    /// The runner ends in order; what was not sent yet is in the log.
    Finished {
        /// The attachment.
        generation: Generation,
    },
    /// The answer to input.
    InputAck(InputAck),
    /// The answer to a new size of the window.
    ResizeAck(ResizeAck),
}

/// What a recipient sends over the data link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRecipient {
    /// Everything up to a sequence is consumed and need not be kept.
    Ack {
        /// The attachment.
        generation: Generation,
        /// The sequence.
        through: u64,
    },
    /// Input.
    Input(Input),
    /// A new size of the window.
    Resize(Resize),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputAckPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<InputRefused>,
}

impl FromRunner {
    /// Turns the message into a frame without a copy of its bytes.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if a chunk is empty or above its bound, or a sequence is 0.
    pub fn into_frame(self) -> Result<Frame, MessageError> {
        match self {
            Self::Chunk(chunk) => {
                let header = Header {
                    stream: Some(chunk.stream),
                    generation: chunk.generation,
                    sequence: chunk.sequence,
                    offset: chunk.offset,
                    ..Header::plain(Kind::Chunk)
                };
                Frame::new(header, chunk.bytes).map_err(MessageError::Frame)
            }
            Self::Eof(eof) => {
                let header = Header {
                    stream: Some(eof.stream),
                    flags: Flags::TRUNCATED.when(eof.truncated),
                    generation: eof.generation,
                    sequence: eof.sequence,
                    offset: eof.offset,
                    ..Header::plain(Kind::Eof)
                };
                Frame::new(header, Vec::new()).map_err(MessageError::Frame)
            }
            Self::Exit { generation, notice } => {
                json::frame_with(Header { generation, ..Header::plain(Kind::Exit) }, &notice)
            }
            Self::Finished { generation } => {
                let header = Header { generation, ..Header::plain(Kind::Finished) };
                Frame::new(header, Vec::new()).map_err(MessageError::Frame)
            }
            Self::InputAck(ack) => {
                let header = Header {
                    flags: Flags::ACCEPTED.when(ack.refused.is_none()),
                    generation: ack.generation,
                    sequence: ack.write_id,
                    ..Header::plain(Kind::InputAck)
                };
                json::frame_with(header, &InputAckPayload { reason: ack.refused })
            }
            Self::ResizeAck(ack) => ack.into_frame(),
        }
    }

    /// Reads the message of a frame without a copy of its bytes.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is none that a runner sends, or contradicts itself.
    pub fn from_frame(frame: Frame) -> Result<Self, MessageError> {
        let header = *frame.header();
        let generation = header.generation;
        let stream = header.stream.ok_or(MessageError::Field("stream"));
        match header.kind {
            Kind::Chunk => Ok(Self::Chunk(Chunk {
                stream: stream?,
                sequence: header.sequence,
                offset: header.offset,
                generation,
                bytes: frame.into_payload().into_vec(),
            })),
            Kind::Eof => Ok(Self::Eof(Eof {
                stream: stream?,
                sequence: header.sequence,
                offset: header.offset,
                generation,
                truncated: header.flags.has(Flags::TRUNCATED),
            })),
            Kind::Exit => {
                let notice: ExitNotice = json::read(Kind::Exit, &frame)?;
                if notice.exit.is_some() && notice.uncertain {
                    return Err(MessageError::Field("exit"));
                }
                Ok(Self::Exit { generation, notice })
            }
            Kind::Finished => Ok(Self::Finished { generation }),
            Kind::InputAck => {
                let payload: InputAckPayload = json::read(Kind::InputAck, &frame)?;
                if header.flags.has(Flags::ACCEPTED) == payload.reason.is_some() {
                    return Err(MessageError::Field("reason"));
                }
                let write_id = header.sequence;
                Ok(Self::InputAck(InputAck { write_id, generation, refused: payload.reason }))
            }
            Kind::ResizeAck => ResizeAck::from_frame(&frame).map(Self::ResizeAck),
            other @ (Kind::Hello
            | Kind::Welcome
            | Kind::HelloRefused
            | Kind::Order
            | Kind::Started
            | Kind::StartRefused
            | Kind::ProbeReport
            | Kind::Request
            | Kind::Reply
            | Kind::Ack
            | Kind::Input
            | Kind::Resize) => Err(MessageError::Kind(other)),
        }
    }
}

impl FromRecipient {
    /// Turns the message into a frame without a copy of its bytes.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if the input is above its bound, or a sequence or write id is 0.
    pub fn into_frame(self) -> Result<Frame, MessageError> {
        let (header, bytes) = match self {
            Self::Ack { generation, through } => {
                (Header { generation, sequence: through, ..Header::plain(Kind::Ack) }, Vec::new())
            }
            Self::Input(input) => {
                let header = Header {
                    flags: Flags::END.when(input.end),
                    generation: input.generation,
                    sequence: input.write_id,
                    ..Header::plain(Kind::Input)
                };
                (header, input.bytes)
            }
            Self::Resize(resize) => return resize.into_frame(),
        };
        Frame::new(header, bytes).map_err(MessageError::Frame)
    }

    /// Reads the message of a frame without a copy of its bytes.
    ///
    /// # Errors
    /// [`MessageError::Kind`] if the frame is none that a recipient sends.
    pub fn from_frame(frame: Frame) -> Result<Self, MessageError> {
        let header = *frame.header();
        match header.kind {
            Kind::Ack => Ok(Self::Ack { generation: header.generation, through: header.sequence }),
            Kind::Input => Ok(Self::Input(Input {
                write_id: header.sequence,
                generation: header.generation,
                end: header.flags.has(Flags::END),
                bytes: frame.into_payload().into_vec(),
            })),
            Kind::Resize => Resize::from_frame(&frame).map(Self::Resize),
            other @ (Kind::Hello
            | Kind::Welcome
            | Kind::HelloRefused
            | Kind::Order
            | Kind::Started
            | Kind::StartRefused
            | Kind::ProbeReport
            | Kind::Request
            | Kind::Reply
            | Kind::Chunk
            | Kind::Eof
            | Kind::Exit
            | Kind::Finished
            | Kind::InputAck
            | Kind::ResizeAck) => Err(MessageError::Kind(other)),
        }
    }
}
