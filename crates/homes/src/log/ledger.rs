//! The acknowledged cursor and what follows from it: which segments go.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};

use placement_paths::{CreateError, Dir};

use super::Offsets;
use super::acknowledge::AcknowledgeError;
use super::head::Head;
use super::reader::ReadLogError;
use super::segment::{Next, OpenSegment, segment_name};

/// The head of a log, locked, with the segments that are complete.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) directory: Dir,
    file: File,
    pub(super) head: Head,
    closed: VecDeque<Closed>,
    /// Where the record after the acknowledged one stands; found when it is first needed.
    walk: Option<OpenSegment>,
    /// Payload bytes up to and with the acknowledged record.
    acknowledged: Offsets,
}

/// A segment to which nothing is appended any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Payload bytes up to and with its last record.
    pub(super) through: Offsets,
}

/// Locks a head exclusively, for as long as the file is open.
pub(super) fn lock(file: &File) -> Result<(), AcknowledgeError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => AcknowledgeError::Busy,
        TryLockError::Error(error) => AcknowledgeError::Head(error),
    })
}

impl Drop for Ledger {
    /// Unlocks by the call: a process that is being forked at this moment holds a copy of the
    /// descriptor, and the lock is gone for the copy too.
    fn drop(&mut self) {
        self.file.unlock().ok();
    }
}

impl Ledger {
    pub(super) fn new(directory: Dir, file: File, head: Head) -> Self {
        Self {
            directory,
            file,
            head,
            closed: VecDeque::new(),
            walk: None,
            acknowledged: head.dropped,
        }
    }

    /// Adds the next segment to which nothing is appended any more.
    pub(super) fn close(&mut self, segment: Closed) {
        self.closed.push_back(segment);
    }

    pub(super) fn acknowledged_bytes(&self) -> u64 {
        self.acknowledged.total()
    }

    /// Counts the records that are acknowledged already, beginning in the segment that holds them.
    pub(super) fn resume(&mut self, first: u64) -> Result<(), AcknowledgeError> {
        let Some(segment) = OpenSegment::open(&self.directory, first)? else { return Ok(()) };
        self.acknowledged = segment.header.before;
        self.walk = Some(segment);
        self.walk_through(first, self.head.consumed_through)
    }

    /// Advances the cursor to `through` and removes what the transcript does not keep.
    ///
    /// The cursor is stored before anything is removed.
    pub(super) fn acknowledge(&mut self, through: u64) -> Result<(), AcknowledgeError> {
        if through > self.head.consumed_through {
            self.walk_through(self.head.consumed_through + 1, through)?;
            self.head.consumed_through = through;
            self.store()?;
        }
        self.trim()
    }

    pub(super) fn mark_ended(&mut self) -> Result<(), AcknowledgeError> {
        self.head.ended = true;
        self.store()
    }

    /// Removes the oldest segments that are wholly acknowledged, as long as too much is kept.
    pub(super) fn trim(&mut self) -> Result<(), AcknowledgeError> {
        while let Some(oldest) = self.closed.front().copied() {
            let bound = self.head.transcript_bytes_max;
            // A head that counts more than the segments say is damaged: then nothing goes by it.
            let kept = self.acknowledged.total().saturating_sub(self.head.dropped.total());
            if oldest.last > self.head.consumed_through || (bound > 0 && kept <= bound) {
                return Ok(());
            }
            // A reader that finds the segment missing must find the gap that explains it.
            self.head.dropped_through = oldest.last;
            self.head.dropped = oldest.through;
            self.store()?;
            self.remove(oldest.first)?;
            self.closed.pop_front();
        }
        Ok(())
    }

    /// Removes the file of a segment; one that is not there is no error.
    pub(super) fn remove(&self, first: u64) -> Result<(), AcknowledgeError> {
        match self.directory.remove_file(&segment_name(first)) {
            Ok(()) | Err(CreateError::Missing { .. }) => Ok(()),
            Err(error) => Err(AcknowledgeError::Trim(error)),
        }
    }

    /// Counts the bytes of the records from one sequence through another.
    fn walk_through(&mut self, from: u64, through: u64) -> Result<(), AcknowledgeError> {
        let mut sequence = from;
        while sequence <= through {
            let next = match self.walk.as_ref() {
                Some(segment) => segment.header()?,
                None => Next::Incomplete,
            };
            match (next, self.walk.as_mut()) {
                (Next::Whole(header), Some(segment)) if header.sequence == sequence => {
                    segment.pass(&header);
                    self.acknowledged.add(header.stream, header.length as u64);
                    sequence += 1;
                }
                (Next::Whole(_) | Next::Incomplete | Next::Damaged, _) => {
                    self.walk_into(sequence)?;
                }
            }
        }
        Ok(())
    }

    /// Goes on in the segment that begins with `sequence`.
    fn walk_into(&mut self, sequence: u64) -> Result<(), AcknowledgeError> {
        let before = self.walk.as_ref().map_or(0, |segment| segment.header.first);
        match OpenSegment::open(&self.directory, sequence)? {
            Some(next) if before < sequence => {
                self.walk = Some(next);
                Ok(())
            }
            Some(_) | None => {
                Err(AcknowledgeError::Read(ReadLogError::Damaged { segment: before, sequence }))
            }
        }
    }

    fn store(&mut self) -> Result<(), AcknowledgeError> {
        self.head.store(&self.file).map_err(AcknowledgeError::Head)
    }
}
