//! What comes from an attempt.

use placement_contract::{Exit, StreamName};
use placement_protocol::{InputRefused, ResizeRefused};

/// What comes from an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Bytes of output.
    Chunk {
        /// The stream.
        stream: StreamName,
        /// Its place among the chunks and ends of the attempt, from 1.
        sequence: u64,
        /// The place of its first byte in its stream, from 0.
        offset: u64,
        /// The bytes, at most 65 536.
        bytes: Vec<u8>,
    },
    /// The end of one stream.
    Eof {
        /// The stream.
        stream: StreamName,
        /// Its place among the chunks and ends of the attempt.
        sequence: u64,
        /// Whether the stream was cut off before its end.
        truncated: bool,
    },
    /// Bytes that are not kept any more.
    Gap {
        /// How many, both streams together.
        bytes: u64,
    },
    /// The exit of the child; comes once, apart from the ends of its streams.
    Exit {
        /// The exit, where it was observed.
        exit: Option<Exit>,
        /// Whether it cannot be said how the child ended.
        uncertain: bool,
        /// Whether a stop was accepted before.
        stopped: bool,
    },
    /// The answer to input.
    Input {
        /// Its number.
        write_id: u64,
        /// Why it was not accepted.
        refused: Option<InputRefused>,
    },
    /// The answer to a new size of the window.
    Resized {
        /// Its number.
        resize_id: u64,
        /// Why the window does not have it.
        refused: Option<ResizeRefused>,
    },
    /// Another recipient took over; nothing comes after it.
    Taken,
    /// Everything came; nothing comes after it.
    End,
}
