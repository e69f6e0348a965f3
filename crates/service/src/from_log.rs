//! The rest of an ended attempt's output, from its log.

use crate::limits::UNACKNOWLEDGED_MAX;
use crate::refusal::conflict;
use crate::streams::Item;
use placement_contract::{Code, Refusal};
use placement_homes::{Acknowledger, AttemptDir, LogError, LogItem, LogReader, Record, RecordKind};
use std::collections::VecDeque;

/// Reads the log from its acknowledged cursor on, and moves that cursor.
///
/// The caller has a proof that the runner is gone.
#[derive(Debug)]
pub(crate) struct FromLog {
    directory: AttemptDir,
    reader: LogReader,
    /// Sequence and bytes of output up to it, of what was read and is not acknowledged.
    unacknowledged: VecDeque<(u64, u64)>,
    acknowledger: Option<Acknowledger>,
    /// What the recipient acknowledged to a runner that ended before it heard of it.
    acknowledged_through: u64,
    read_through: u64,
}

impl FromLog {
    /// Opens the log; nothing where the attempt has none.
    pub(crate) fn open(
        directory: AttemptDir,
        acknowledged_through: u64,
    ) -> Result<Option<Self>, Refusal> {
        match LogReader::open_unacknowledged(directory.dir()) {
            Ok(reader) => Ok(Some(Self {
                directory,
                reader,
                unacknowledged: VecDeque::new(),
                acknowledger: None,
                acknowledged_through,
                read_through: 0,
            })),
            Err(LogError::Missing) => Ok(None),
            Err(error) => Err(refuse_log(&error)),
        }
    }

    /// Returns the next record or gap after what the recipient has seen already.
    pub(crate) fn next(&mut self, seen_through: u64) -> Result<Option<Item>, Refusal> {
        loop {
            if self.unacknowledged.len() >= UNACKNOWLEDGED_MAX {
                return Err(conflict("acknowledge what has come before more is asked for"));
            }
            let record = match self.reader.next_item().map_err(|error| refuse_log(&error))? {
                None => return Ok(None),
                Some(LogItem::Gap { bytes }) => return Ok(Some(Item::Gap { bytes })),
                Some(LogItem::Record(record)) => record,
            };
            self.read_through = record.sequence;
            self.unacknowledged.push_back((record.sequence, self.reader.total()));
            if record.sequence <= self.acknowledged_through {
                self.move_cursor(record.sequence)?;
            }
            if record.sequence > seen_through {
                return Ok(Some(item(record)));
            }
        }
    }

    /// Returns the last record that was read.
    pub(crate) fn read_through(&self) -> u64 {
        self.read_through
    }

    /// Moves the cursor.
    pub(crate) fn acknowledge(&mut self, through: u64) -> Result<(), Refusal> {
        self.acknowledged_through = through;
        self.move_cursor(through.min(self.read_through))
    }

    fn move_cursor(&mut self, through: u64) -> Result<(), Refusal> {
        let mut total = None;
        while let Some((sequence, bytes)) = self.unacknowledged.front().copied()
            && sequence <= through
        {
            total = Some((sequence, bytes));
            self.unacknowledged.pop_front();
        }
        let Some((sequence, bytes)) = total else { return Ok(()) };
        let acknowledger = match &mut self.acknowledger {
            Some(acknowledger) => acknowledger,
            none => none.insert(
                Acknowledger::lock(self.directory.dir()).map_err(|error| refuse_log(&error))?,
            ),
        };
        acknowledger.acknowledge(sequence, bytes).map_err(|error| refuse_log(&error))
    }
}

pub(crate) fn item(record: Record) -> Item {
    let Record { sequence, offset, kind, stream, truncated, bytes } = record;
    match kind {
        RecordKind::Chunk => Item::Chunk { stream, sequence, offset, bytes },
        RecordKind::Eof => Item::Eof { stream, sequence, truncated },
    }
}

pub(crate) fn refuse_log(error: &LogError) -> Refusal {
    let code = match error {
        LogError::Held => Code::Conflict,
        LogError::Missing => Code::NotFound,
        LogError::NoRoom
        | LogError::Io { .. }
        | LogError::Damaged { .. }
        | LogError::DamagedHead => Code::Storage,
    };
    Refusal::new(code, error.to_string())
}
