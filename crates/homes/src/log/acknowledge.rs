//! Acknowledging the records of a log whose writer is gone.

use std::io;

use placement_paths::{Access, CreateError};

use super::head::Head;
use super::ledger::{self, Closed, Ledger};
use super::reader::{LogReader, ReadLogError};
use super::segment::{self, OpenSegment};
use super::{DIRECTORY, HEAD, LogItem};
use crate::attempt::{AttemptDir, fixed_name};

/// Advances the acknowledged cursor of a log after the end of its writer.
///
/// It holds the lock on the head: neither a writer nor another one exists beside it.
#[derive(Debug)]
pub struct Acknowledger {
    ledger: Ledger,
    last: u64,
}

/// Why a cursor was not advanced.
#[derive(Debug, thiserror::Error)]
pub enum AcknowledgeError {
    /// The writer lives, or somebody else acknowledges.
    #[error("the output log is held by its writer or by another recipient")]
    Busy,
    /// It lies beyond the last record.
    #[error("the acknowledgment goes beyond the last record, {last}")]
    BeyondEnd {
        /// Sequence of the last record.
        last: u64,
    },
    /// The records could not be read.
    #[error(transparent)]
    Read(#[from] ReadLogError),
    /// The head could not be locked or written; the cursor may not be advanced.
    #[error("the head of the output log could not be written")]
    Head(#[source] io::Error),
    /// The cursor is advanced, but a segment could not be removed.
    #[error("an acknowledged segment of the output log could not be removed")]
    Trim(#[source] CreateError),
}

impl Acknowledger {
    /// Locks the log of an attempt whose writer is gone.
    ///
    /// # Errors
    /// [`AcknowledgeError::Busy`] at once while somebody else holds it; the rest as named.
    pub fn lock(attempt: &AttemptDir) -> Result<Self, AcknowledgeError> {
        let directory = attempt
            .dir()
            .open_dir(&fixed_name(DIRECTORY))
            .map_err(ReadLogError::of_open)?
            .with_role("log");
        let file = directory
            .open_file(&fixed_name(HEAD), Access::ReadWrite)
            .map_err(ReadLogError::of_open)?;
        ledger::lock(&file)?;
        let head =
            Head::load(&file).map_err(ReadLogError::Read)?.ok_or(ReadLogError::HeadDamaged)?;
        let mut found = Self { ledger: Ledger::new(directory, file, head), last: 0 };
        found.take_stock()?;
        Ok(found)
    }

    /// Returns the sequence of the last acknowledged record, 0 before the first.
    pub fn consumed_through(&self) -> u64 {
        self.ledger.head.consumed_through
    }

    /// Returns the sequence of the last record, 0 when there is none.
    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Advances the acknowledged cursor; one that is not beyond it changes nothing.
    ///
    /// It survives process death, not power loss.
    ///
    /// # Errors
    /// [`AcknowledgeError::BeyondEnd`] for records that do not exist; the rest as named.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), AcknowledgeError> {
        if through > self.last {
            return Err(AcknowledgeError::BeyondEnd { last: self.last });
        }
        self.ledger.acknowledge(through)
    }

    /// Declares that nothing more will come, for a writer that was killed before it could.
    ///
    /// # Errors
    /// The head cannot be written.
    pub fn mark_ended(&mut self) -> Result<(), AcknowledgeError> {
        self.ledger.mark_ended()
    }

    /// Learns from the files which segments there are and where the cursor stands in them.
    fn take_stock(&mut self) -> Result<(), AcknowledgeError> {
        let head = self.ledger.head;
        self.last = head.dropped_through;
        let firsts = segment::list(&self.ledger.directory)?;
        for (position, first) in firsts.iter().copied().enumerate() {
            let Some(closed) = self.closed(first, firsts.get(position + 1).copied())? else {
                continue;
            };
            if closed.last <= head.dropped_through {
                // Whoever dropped it died before it was removed.
                self.ledger.remove(closed.first)?;
                continue;
            }
            self.ledger.close(closed);
            self.last = closed.last;
        }
        // A head that says more than the records: power loss took the newest ones.
        let consumed = head.consumed_through.min(self.last);
        self.ledger.head.consumed_through = consumed;
        let kept = firsts.iter().copied().rev().find(|first| *first <= consumed + 1);
        match kept.filter(|first| *first > head.dropped_through) {
            Some(first) => self.ledger.resume(first),
            None => Ok(()),
        }
    }

    /// Tells where a segment ends: where the next one begins, or where its last whole record ends.
    fn closed(&self, first: u64, next: Option<u64>) -> Result<Option<Closed>, AcknowledgeError> {
        if let Some(next) = next
            && let Some(next) = OpenSegment::open(&self.ledger.directory, next)?
        {
            let last = next.header.first - 1;
            return Ok(Some(Closed { first, last, through: next.header.before }));
        }
        let Some(segment) = OpenSegment::open(&self.ledger.directory, first)? else {
            return Ok(None);
        };
        let (mut last, mut through) = (first - 1, segment.header.before);
        let directory = self.ledger.directory.try_clone().map_err(ReadLogError::List)?;
        let mut reader = LogReader::over(directory, first)?;
        while let Some(item) = reader.next_item()? {
            if let LogItem::Record(record) = item {
                last = record.sequence;
                through.add(record.stream, record.bytes.len() as u64);
            }
        }
        Ok((last >= first).then_some(Closed { first, last, through }))
    }
}
