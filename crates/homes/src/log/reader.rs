//! Reading a log, while it is written and afterwards.

use std::fs::File;
use std::io;
use std::time::Duration;

use placement_paths::{Access, Dir, IoFailure, OpenError};

use super::format::RecordHeader;
use super::head::Head;
use super::segment::{self, Next, OpenSegment};
use super::watch::{Waited, Watch};
use super::{DIRECTORY, Gap, HEAD, LogItem, Offsets, Record};
use crate::attempt::{AttemptDir, fixed_name};

/// Reads a log from a sequence on; never writes, never slows its writer.
///
/// Any number of readers may follow one log, from any process. Memory is bounded by the largest
/// record.
#[derive(Debug)]
pub struct LogReader {
    directory: Dir,
    head: File,
    segment: Option<OpenSegment>,
    /// Sequence that comes next.
    sequence: u64,
    /// Payload bytes before it, as far as they are known.
    offsets: Offsets,
    watch: Watch,
}

/// Why a log was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadLogError {
    /// The attempt has no log, or none yet.
    #[error("the attempt has no output log")]
    Missing,
    /// A record in the middle is damaged; what comes after it cannot be trusted.
    #[error("the output log is damaged in segment {segment:016x} at sequence {sequence}")]
    Damaged {
        /// First sequence of the segment.
        segment: u64,
        /// Sequence of the record.
        sequence: u64,
    },
    /// The head is damaged.
    #[error("the head of the output log is damaged")]
    HeadDamaged,
    /// A file could not be opened.
    #[error("a file of the output log could not be opened")]
    Open(#[source] OpenError),
    /// The segments could not be listed.
    #[error("the output log could not be listed")]
    List(#[source] IoFailure),
    /// A file could not be read.
    #[error("the output log could not be read")]
    Read(#[source] io::Error),
}

impl LogReader {
    /// Opens the log of an attempt at its beginning.
    ///
    /// # Errors
    /// [`ReadLogError::Missing`] when the attempt has none (yet); the rest as named.
    pub fn open(attempt: &AttemptDir) -> Result<Self, ReadLogError> {
        Self::open_from(attempt, 1)
    }

    /// Opens the log of an attempt at a sequence, such as the one after the acknowledged.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn open_from(attempt: &AttemptDir, sequence: u64) -> Result<Self, ReadLogError> {
        let directory =
            attempt.dir().open_dir(&fixed_name(DIRECTORY)).map_err(ReadLogError::of_open)?;
        Self::over(directory.with_role("log"), sequence)
    }

    pub(super) fn over(directory: Dir, sequence: u64) -> Result<Self, ReadLogError> {
        let head =
            directory.open_file(&fixed_name(HEAD), Access::Read).map_err(ReadLogError::of_open)?;
        Ok(Self {
            directory,
            head,
            segment: None,
            sequence: sequence.max(1),
            offsets: Offsets::default(),
            watch: Watch::Unset,
        })
    }

    /// Returns the next record or gap; `None` when there is nothing more at the moment.
    ///
    /// A torn record at the very end counts as nothing. Whoever wants to know that nothing more
    /// will come asks [`LogReader::is_ended`] *before* the call that gave `None`.
    ///
    /// # Errors
    /// [`ReadLogError::Damaged`] names a damaged record in the middle; the rest as named.
    pub fn next_item(&mut self) -> Result<Option<LogItem>, ReadLogError> {
        let mut looked_again = false;
        loop {
            let Some(segment) = self.segment.as_mut() else {
                match self.locate()? {
                    Located::Opened(None) => continue,
                    Located::Opened(Some(gap)) | Located::Dropped(gap) => {
                        return Ok(Some(LogItem::Gap(gap)));
                    }
                    Located::Nothing => return Ok(None),
                }
            };
            let torn = match segment.header()? {
                Next::Whole(header) if header.sequence < self.sequence => {
                    segment.pass(&header);
                    self.offsets.add(header.stream, header.length as u64);
                    continue;
                }
                Next::Whole(header) if header.sequence == self.sequence => {
                    match segment.payload(&header)? {
                        Next::Whole(bytes) => {
                            segment.pass(&header);
                            return Ok(Some(LogItem::Record(self.given_out(&header, bytes))));
                        }
                        Next::Incomplete => true,
                        Next::Damaged => false,
                    }
                }
                Next::Incomplete => true,
                Next::Whole(_) | Next::Damaged => false,
            };
            match self.go_on(torn)? {
                GoOn::Next => looked_again = false,
                GoOn::Gap(gap) => return Ok(Some(LogItem::Gap(gap))),
                GoOn::Tail => return Ok(None),
                // The writer may have gone on between the look at the record and the look at the
                // other segments: damage is what is there a second time.
                GoOn::Damaged(error) if looked_again => return Err(error),
                GoOn::Damaged(_) => looked_again = true,
            }
        }
    }

    /// Returns the sequence of the last acknowledged record, 0 before the first.
    ///
    /// # Errors
    /// The head is damaged or cannot be read.
    pub fn consumed_through(&self) -> Result<u64, ReadLogError> {
        Ok(self.load_head()?.consumed_through)
    }

    /// Returns what is not kept any more, `None` when everything is.
    ///
    /// # Errors
    /// The head is damaged or cannot be read.
    pub fn gap(&self) -> Result<Option<Gap>, ReadLogError> {
        let head = self.load_head()?;
        let gap = Gap { bytes: head.dropped.total(), through: head.dropped_through };
        Ok((gap.through > 0).then_some(gap))
    }

    /// Says whether the writer declared that nothing more will come.
    ///
    /// `false` proves nothing: a writer that was killed declares nothing.
    ///
    /// # Errors
    /// The head is damaged or cannot be read.
    pub fn is_ended(&self) -> Result<bool, ReadLogError> {
        Ok(self.load_head()?.ended)
    }

    /// Returns the sequence that comes next.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the log changes, at most `timeout`.
    ///
    /// A change may be one that brings no record. Without
    /// [inotify(7)](https://man7.org/linux/man-pages/man7/inotify.7.html) it looks again every
    /// 50 ms.
    pub fn wait(&mut self, timeout: Duration) -> Waited {
        self.watch.wait(&self.directory, timeout)
    }

    /// Opens the segment that holds the next sequence, or the first one after a gap.
    fn locate(&mut self) -> Result<Located, ReadLogError> {
        let firsts = segment::list(&self.directory)?;
        let before = firsts.iter().rev().find(|first| **first <= self.sequence);
        let after = firsts.iter().find(|first| **first > self.sequence);
        let head = self.load_head()?;
        if let Some(first) = before
            && let Some(segment) = OpenSegment::open(&self.directory, *first)?
        {
            // With everything up to the sequence dropped, this one is only not yet removed.
            if head.dropped_through < self.sequence || *first > head.dropped_through {
                self.offsets = segment.header.before;
                self.segment = Some(segment);
                return Ok(Located::Opened(None));
            }
        }
        if head.dropped_through < self.sequence {
            return Ok(Located::Nothing);
        }
        if let Some(first) = after
            && let Some(segment) = OpenSegment::open(&self.directory, *first)?
        {
            let gap = self.jump(segment.header.first, segment.header.before);
            self.segment = Some(segment);
            return Ok(Located::Opened(Some(gap)));
        }
        Ok(Located::Dropped(self.jump(head.dropped_through + 1, head.dropped)))
    }

    /// Leaves the end of what can be read in the open segment.
    fn go_on(&mut self, torn: bool) -> Result<GoOn, ReadLogError> {
        // Whatever stands at the end of this segment: if another begins with the very sequence
        // that is wanted, nothing is missing.
        if let Some(next) = OpenSegment::open(&self.directory, self.sequence)?
            && self.segment.as_ref().is_none_or(|open| open.header.first != self.sequence)
        {
            self.segment = Some(next);
            return Ok(GoOn::Next);
        }
        if self.load_head()?.dropped_through >= self.sequence {
            self.segment = None;
            return match self.locate()? {
                Located::Opened(Some(gap)) | Located::Dropped(gap) => Ok(GoOn::Gap(gap)),
                Located::Opened(None) => Ok(GoOn::Next),
                Located::Nothing => Ok(GoOn::Tail),
            };
        }
        let Some(open) = self.segment.as_ref() else { return Ok(GoOn::Tail) };
        let damaged = ReadLogError::Damaged { segment: open.header.first, sequence: self.sequence };
        let followed =
            segment::list(&self.directory)?.last().is_some_and(|last| *last > self.sequence);
        if followed || (!torn && open.damaged_within(self.sequence)?) {
            return Ok(GoOn::Damaged(damaged));
        }
        Ok(GoOn::Tail)
    }

    fn given_out(&mut self, header: &RecordHeader, bytes: Vec<u8>) -> Record {
        self.offsets.add(header.stream, header.length as u64);
        self.sequence += 1;
        Record {
            sequence: header.sequence,
            offset: header.offset,
            kind: header.kind,
            stream: header.stream,
            truncated: header.truncated,
            bytes,
        }
    }

    fn jump(&mut self, sequence: u64, offsets: Offsets) -> Gap {
        let bytes = offsets.total().saturating_sub(self.offsets.total());
        self.sequence = sequence;
        self.offsets = offsets;
        Gap { bytes, through: sequence - 1 }
    }

    fn load_head(&self) -> Result<Head, ReadLogError> {
        Head::load(&self.head).map_err(ReadLogError::Read)?.ok_or(ReadLogError::HeadDamaged)
    }
}

impl ReadLogError {
    pub(super) fn of_open(error: OpenError) -> Self {
        if let OpenError::Missing { .. } = error { Self::Missing } else { Self::Open(error) }
    }
}

enum Located {
    Opened(Option<Gap>),
    Dropped(Gap),
    Nothing,
}

enum GoOn {
    Next,
    Gap(Gap),
    Tail,
    Damaged(ReadLogError),
}
