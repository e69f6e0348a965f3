//! Writing a log: one writer, the runner.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use placement_contract::StreamName;
use placement_paths::{CreateError, IoFailure};
use rustix::io::Errno;

use super::acknowledge::AcknowledgeError;
use super::format::{RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::head::Head;
use super::ledger::{self, Closed, Ledger};
use super::reader::{LogReader, ReadLogError};
use super::segment::segment_name;
use super::{DIRECTORY, HEAD, LogLimits, Offsets, RecordKind, StreamEnd};
use crate::attempt::AttemptDir;
use crate::limits::{
    RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
    SEGMENTS_PER_TRANSCRIPT, TAIL_BYTES_MAX,
};

/// Writes the log of one attempt: its only writer, for the attempt's life.
///
/// Memory does not grow with the log. A record is one
/// [pwritev(2)](https://man7.org/linux/man-pages/man2/pwritev.2.html), never synced.
#[derive(Debug)]
pub struct LogWriter {
    ledger: Ledger,
    limits: LogLimits,
    current: Option<Current>,
    /// Sequence of the last record.
    last: u64,
    written: Offsets,
}

/// The segment that is appended to.
#[derive(Debug)]
struct Current {
    file: File,
    first: u64,
    length: u64,
}

/// Why a log was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateLogError {
    /// The attempt has one already: it has one writer.
    #[error("the attempt has an output log already")]
    AlreadyExists,
    /// A directory or a file could not be created.
    #[error("the output log could not be created")]
    Create(#[source] CreateError),
    /// The head could not be locked or written.
    #[error(transparent)]
    Head(AcknowledgeError),
}

/// Why a record was not appended; the log is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The spool has no room until something is acknowledged.
    #[error("the spool is full ({bytes_max} bytes)")]
    SpoolFull {
        /// The spool's bound, in bytes.
        bytes_max: u64,
    },
    /// It holds more than 64 KiB.
    #[error("a record holds at most {RECORD_BYTES_MAX} bytes")]
    TooLarge,
    /// The disk, the quota or the file size limit is full (ENOSPC, EDQUOT, EFBIG).
    #[error("the disk is full")]
    DiskFull(#[source] io::Error),
    /// The next segment could not be created for another reason.
    #[error("a segment of the output log could not be created")]
    Create(#[source] CreateError),
    /// Writing failed for another reason.
    #[error("the output log could not be written")]
    Write(#[source] io::Error),
}

impl LogWriter {
    /// Creates the log of an attempt and locks its head.
    ///
    /// # Errors
    /// [`CreateLogError::AlreadyExists`] when there is one; it is left alone.
    pub fn create(attempt: &AttemptDir, limits: LogLimits) -> Result<Self, CreateLogError> {
        let directory = match attempt.dir().create_dir(DIRECTORY, 0o700) {
            Ok(directory) => directory.with_role("log"),
            Err(CreateError::AlreadyExists { .. }) => return Err(CreateLogError::AlreadyExists),
            Err(error) => return Err(CreateLogError::Create(error)),
        };
        let file = directory.create_file(HEAD, 0o600).map_err(CreateLogError::Create)?;
        ledger::lock(&file).map_err(CreateLogError::Head)?;
        let mut head = Head::new(limits.transcript_bytes_max);
        if let Err(error) = head.store(&file) {
            // On a full disk: what is left of it would pass for a damaged log.
            directory.remove_file(HEAD).ok();
            return Err(CreateLogError::Head(AcknowledgeError::Head(error)));
        }
        Ok(Self {
            ledger: Ledger::new(directory, file, head),
            limits,
            current: None,
            last: 0,
            written: Offsets::default(),
        })
    }

    /// Appends a chunk of at most 64 KiB and returns its sequence.
    ///
    /// It survives process death, not power loss.
    ///
    /// # Errors
    /// [`AppendError::SpoolFull`] where [`LogWriter::has_room`] says so,
    /// [`AppendError::DiskFull`]; the rest as named. Nothing of the record is left.
    pub fn append(&mut self, stream: StreamName, bytes: &[u8]) -> Result<u64, AppendError> {
        self.append_within(self.limits.spool_bytes_max, stream, bytes)
    }

    /// Appends what was left in the pipes after the exit: [`TAIL_BYTES_MAX`] bytes may go beyond
    /// the bound, since nobody can be made to wait for room any more.
    ///
    /// # Errors
    /// As [`LogWriter::append`].
    pub fn append_tail(&mut self, stream: StreamName, bytes: &[u8]) -> Result<u64, AppendError> {
        let bound = self.limits.spool_bytes_max.saturating_add(TAIL_BYTES_MAX);
        self.append_within(bound, stream, bytes)
    }

    /// Appends the end of a stream, whatever room there is, and returns its sequence.
    ///
    /// # Errors
    /// As [`LogWriter::append`], less [`AppendError::SpoolFull`].
    pub fn append_end(&mut self, stream: StreamName, end: StreamEnd) -> Result<u64, AppendError> {
        self.write(stream, RecordKind::Eof, end == StreamEnd::Truncated, &[])
    }

    /// Says whether a chunk of so many bytes can be appended now.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.fits(self.limits.spool_bytes_max, bytes)
    }

    /// Returns the stored bytes that wait for their acknowledgment: payload, and
    /// [`RECORD_OVERHEAD_BYTES`] a record.
    pub fn unacknowledged_bytes(&self) -> u64 {
        let records = self.last - self.consumed_through();
        self.unacknowledged_payload_bytes() + records * RECORD_OVERHEAD_BYTES
    }

    /// Returns the bytes of the streams that wait for their acknowledgment.
    pub fn unacknowledged_payload_bytes(&self) -> u64 {
        self.written.total() - self.ledger.acknowledged_bytes()
    }

    /// Advances the acknowledged cursor; one that is not beyond it changes nothing.
    ///
    /// Acknowledged segments beyond the transcript's bound are removed, and the gap is recorded
    /// first. It survives process death, not power loss.
    ///
    /// # Errors
    /// [`AcknowledgeError::BeyondEnd`] for records that do not exist; the rest as named.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), AcknowledgeError> {
        if through > self.last {
            return Err(AcknowledgeError::BeyondEnd { last: self.last });
        }
        self.ledger.acknowledge(through)?;
        self.drop_current()
    }

    /// Declares that nothing more will come.
    ///
    /// # Errors
    /// The head cannot be written, or an acknowledged segment not be removed.
    pub fn mark_ended(&mut self) -> Result<(), AcknowledgeError> {
        self.ledger.mark_ended()?;
        self.drop_current()
    }

    /// Opens a reader of this log at a sequence, such as the one after the acknowledged.
    ///
    /// # Errors
    /// A descriptor is missing, or the head cannot be opened.
    pub fn reader_from(&self, sequence: u64) -> Result<LogReader, ReadLogError> {
        let directory = self.ledger.directory.try_clone().map_err(ReadLogError::List)?;
        LogReader::over(directory, sequence)
    }

    /// Returns the sequence of the last acknowledged record, 0 before the first.
    pub fn consumed_through(&self) -> u64 {
        self.ledger.head.consumed_through
    }

    /// Returns the sequence of the last record, 0 before the first.
    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Returns the bytes of a stream that were appended.
    pub fn offset(&self, stream: StreamName) -> u64 {
        self.written.of(stream)
    }

    fn append_within(
        &mut self,
        bound: u64,
        stream: StreamName,
        bytes: &[u8],
    ) -> Result<u64, AppendError> {
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(AppendError::TooLarge);
        }
        if !self.fits(bound, bytes.len()) {
            return Err(AppendError::SpoolFull { bytes_max: bound });
        }
        self.write(stream, RecordKind::Chunk, false, bytes)
    }

    fn fits(&self, bound: u64, bytes: usize) -> bool {
        let added = RECORD_OVERHEAD_BYTES + bytes as u64;
        self.unacknowledged_bytes().saturating_add(added) <= bound
    }

    fn write(
        &mut self,
        stream: StreamName,
        kind: RecordKind,
        truncated: bool,
        bytes: &[u8],
    ) -> Result<u64, AppendError> {
        let sequence = self.last + 1;
        let offset = self.written.of(stream);
        let header = RecordHeader::new(sequence, offset, kind, stream, truncated, bytes);
        self.make_current(sequence)?;
        let current = self.current.as_mut().expect("the current segment was just made sure of");
        write_record(&current.file, current.length, &header.encode(), bytes)
            .map_err(AppendError::of)?;
        current.length += header.stored() as u64;
        self.last = sequence;
        self.written.add(stream, bytes.len() as u64);
        Ok(sequence)
    }

    /// Makes sure of a segment to append to: the current one until it is large enough.
    fn make_current(&mut self, sequence: u64) -> Result<(), AppendError> {
        let size = segment_bytes(self.limits);
        if self.current.as_ref().is_some_and(|current| current.length < size) {
            return Ok(());
        }
        let header = SegmentHeader { first: sequence, before: self.written };
        let name = segment_name(sequence);
        let directory = &self.ledger.directory;
        let file = directory.create_file(&name, 0o600).map_err(AppendError::of_create)?;
        if let Err(error) = file.write_all_at(&header.encode(), 0) {
            // Best effort: a segment without a whole header is one that is not there yet, but its
            // name would be taken.
            directory.remove_file(&name).ok();
            return Err(AppendError::of(error));
        }
        self.close_current();
        let length = SEGMENT_HEADER_BYTES as u64;
        self.current = Some(Current { file, first: sequence, length });
        Ok(())
    }

    fn close_current(&mut self) {
        if let Some(current) = self.current.take() {
            let through = self.written;
            self.ledger.close(Closed { first: current.first, last: self.last, through });
        }
    }

    /// Without a transcript, lets go of the current segment too once all of it is acknowledged:
    /// when it is worth a new file, and at the end.
    fn drop_current(&mut self) -> Result<(), AcknowledgeError> {
        let worth = self
            .current
            .as_ref()
            .is_some_and(|current| current.length >= SEGMENT_BYTES_MIN || self.ledger.head.ended);
        let all = self.ledger.head.consumed_through == self.last;
        if self.limits.transcript_bytes_max == 0 && worth && all {
            self.close_current();
            self.ledger.trim()?;
        }
        Ok(())
    }
}

/// Bytes after which a segment is followed by a new one.
fn segment_bytes(limits: LogLimits) -> u64 {
    let part = limits.transcript_bytes_max / SEGMENTS_PER_TRANSCRIPT;
    part.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
}

/// Writes a record at a position; on an error the file ends there again.
fn write_record(
    file: &File,
    position: u64,
    header: &[u8; RECORD_HEADER_BYTES],
    payload: &[u8],
) -> io::Result<()> {
    let written = write_parts(file, position, header, payload);
    if written.is_err() {
        // Best effort: should it fail too, readers take what is there for a torn tail, and the
        // next record is written over it.
        rustix::fs::ftruncate(file, position).ok();
    }
    written
}

fn write_parts(
    file: &File,
    position: u64,
    header: &[u8; RECORD_HEADER_BYTES],
    payload: &[u8],
) -> io::Result<()> {
    let parts = [IoSlice::new(header), IoSlice::new(payload)];
    let written = loop {
        match rustix::io::pwritev(file, &parts, position) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    // A short write is followed by the error that caused it.
    let rest_at = position + written as u64;
    if written < header.len() {
        file.write_all_at(&header[written..], rest_at)?;
        return file.write_all_at(payload, position + header.len() as u64);
    }
    file.write_all_at(&payload[written - header.len()..], rest_at)
}

impl AppendError {
    fn of(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Self::DiskFull(error),
            Some(_) | None => Self::Write(error),
        }
    }

    fn of_create(error: CreateError) -> Self {
        if let CreateError::Io(IoFailure { source, .. }) = error {
            Self::of(source)
        } else {
            Self::Create(error)
        }
    }
}
