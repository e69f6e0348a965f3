//! The output log of one attempt: `<attempt>/log/`, files 0600.
//!
//! Segments `<first sequence, 16 hex digits>.seg` hold records; `head` holds the cursors. The
//! writer writes a record with one call and replaces one of the two slots of the head with
//! another. Neither is synced: it survives the death of every process, not power loss.

mod acknowledge;
mod format;
mod head;
mod ledger;
mod reader;
mod segment;
mod watch;
mod writer;

use placement_contract::StreamName;
use placement_contract::limits::{SPOOL_BYTES_DEFAULT, TRANSCRIPT_BYTES_DEFAULT};

pub use acknowledge::{AcknowledgeError, Acknowledger};
pub use reader::{LogReader, ReadLogError};
pub use watch::Waited;
pub use writer::{AppendError, CreateLogError, LogWriter};

const DIRECTORY: &str = "log";
const HEAD: &str = "head";

/// How much a log keeps, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Stored bytes (payload and [`RECORD_OVERHEAD_BYTES`](crate::RECORD_OVERHEAD_BYTES) a record)
    /// that may wait for their acknowledgment.
    pub spool_bytes_max: u64,
    /// Acknowledged payload bytes that are kept. With 0 a segment goes as soon as all of it is
    /// acknowledged, and the rest when the log has ended.
    pub transcript_bytes_max: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            spool_bytes_max: SPOOL_BYTES_DEFAULT,
            transcript_bytes_max: TRANSCRIPT_BYTES_DEFAULT,
        }
    }
}

/// What a record says about its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Bytes of it.
    Chunk,
    /// It ended.
    Eof,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// All of its bytes were read.
    Whole,
    /// It was closed while bytes may have been missing.
    Truncated,
}

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number in the log, from 1, over both streams and their ends.
    pub sequence: u64,
    /// Bytes of its stream before it.
    pub offset: u64,
    /// What it says.
    pub kind: RecordKind,
    /// Which stream it is about.
    pub stream: StreamName,
    /// The end is one where bytes may be missing.
    pub truncated: bool,
    /// The bytes, at most 64 KiB; none at an end.
    pub bytes: Vec<u8>,
}

/// What a reader finds next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogItem {
    /// The next record.
    Record(Record),
    /// Records that are not kept any more.
    Gap(Gap),
}

/// Records that were acknowledged and are not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Payload bytes that are missing.
    pub bytes: u64,
    /// Sequence of the last record that is missing.
    pub through: u64,
}

/// Payload bytes of each stream up to a place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    stdout: u64,
    stderr: u64,
}

impl Offsets {
    fn of(self, stream: StreamName) -> u64 {
        match stream {
            StreamName::Stdout => self.stdout,
            StreamName::Stderr => self.stderr,
        }
    }

    fn add(&mut self, stream: StreamName, bytes: u64) {
        match stream {
            StreamName::Stdout => self.stdout += bytes,
            StreamName::Stderr => self.stderr += bytes,
        }
    }

    fn total(self) -> u64 {
        self.stdout + self.stderr
    }
}
