//! Where output goes: each stream to its own, or both as JSON lines.

use crate::context::Style;
use placement::{AttemptId, StreamName, Utf8Decoder};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Passes output on.
#[derive(Debug)]
pub(crate) struct Sink {
    attempt_id: AttemptId,
    json: Option<BTreeMap<StreamName, Utf8Decoder>>,
}

/// One piece of output as a line of JSON.
#[derive(Debug, Serialize)]
struct JsonChunk<'a> {
    attempt_id: &'a AttemptId,
    stream: StreamName,
    sequence: u64,
    offset: u64,
    text: String,
}

impl Sink {
    pub(crate) fn new(attempt_id: AttemptId, style: Style) -> Self {
        Self { attempt_id, json: style.json.then(BTreeMap::new) }
    }

    /// Passes a piece on, and returns only when the system has it.
    ///
    /// # Errors
    /// The system's, such as a pipe without a reader.
    pub(crate) fn write(&mut self, chunk: &placement::Chunk) -> io::Result<()> {
        let stream = chunk.stream();
        let Some(decoders) = &mut self.json else {
            return match stream {
                StreamName::Stdout => write_through(io::stdout().lock(), chunk.bytes()),
                StreamName::Stderr => write_through(io::stderr().lock(), chunk.bytes()),
            };
        };
        let text = decoders.entry(stream).or_default().push(chunk.bytes());
        let (sequence, offset) = (chunk.sequence(), chunk.offset());
        let attempt_id = &self.attempt_id;
        let mut line =
            serde_json::to_vec(&JsonChunk { attempt_id, stream, sequence, offset, text })?;
        line.push(b'\n');
        write_through(io::stdout().lock(), &line)
    }
}

/// Writes bytes and returns only when the system has them.
pub(super) fn write_through(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
