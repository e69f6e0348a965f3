//! An attempt's whole output.

use placement::{AttemptHandle, StreamName};

/// Both streams as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

#[track_caller]
pub(crate) fn read(attempt: &AttemptHandle) -> Text {
    let mut text = Text::default();
    for piece in attempt.text() {
        let piece = piece.expect("the stream holds");
        match piece.stream() {
            StreamName::Stdout => text.stdout.push_str(piece.text()),
            StreamName::Stderr => text.stderr.push_str(piece.text()),
        }
    }
    text
}

#[track_caller]
pub(crate) fn read_bytes(attempt: &AttemptHandle) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in attempt.output() {
        bytes.extend_from_slice(chunk.expect("the stream holds").bytes());
    }
    bytes
}
