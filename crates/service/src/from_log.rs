//! The rest of an ended attempt's output, from its log.

use crate::item::Item;
use crate::limits::{CURSOR, LOOK};
use crate::places::with_errno;
use placement_contract::{Code, Refusal};
use placement_homes::{
    AcknowledgeError, Acknowledger, AttemptDir, LogItem, LogReader, ReadLogError, Record,
    RecordKind,
};
use std::time::Instant;

/// Reads the log from its acknowledged cursor on, and moves that cursor.
///
/// The caller has a proof that the runner is gone.
#[derive(Debug)]
pub(crate) struct FromLog {
    directory: AttemptDir,
    reader: LogReader,
    acknowledger: Option<Acknowledger>,
    /// What the recipient acknowledged to a runner that ended before it heard of it.
    untold_through: u64,
    read_through: u64,
}

impl FromLog {
    /// Opens the log; nothing where the attempt has none.
    pub(crate) fn open(
        directory: AttemptDir,
        acknowledged_through: u64,
    ) -> Result<Option<Self>, Refusal> {
        match open_unacknowledged(&directory) {
            Ok((reader, consumed_through)) => Ok(Some(Self {
                directory,
                reader,
                acknowledger: None,
                untold_through: acknowledged_through,
                read_through: consumed_through,
            })),
            Err(ReadLogError::Missing) => Ok(None),
            Err(error) => Err(refuse_log(&error)),
        }
    }

    /// Returns the next record or gap after what the recipient has seen already.
    pub(crate) fn next(&mut self, seen_through: u64) -> Result<Option<Item>, Refusal> {
        loop {
            let record = match self.reader.next_item().map_err(|error| refuse_log(&error))? {
                None => return Ok(None),
                Some(LogItem::Gap(gap)) => return Ok(Some(Item::Gap { bytes: gap.bytes })),
                Some(LogItem::Record(record)) => record,
            };
            self.read_through = record.sequence;
            if record.sequence <= self.untold_through {
                self.acknowledge(record.sequence)?;
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

    /// Moves the cursor, as far as was read.
    pub(crate) fn acknowledge(&mut self, through: u64) -> Result<(), Refusal> {
        let acknowledger = match &mut self.acknowledger {
            Some(acknowledger) => acknowledger,
            none => none.insert(lock(&self.directory)?),
        };
        acknowledger.acknowledge(through.min(self.read_through)).map_err(|e| refuse_cursor(&e))
    }

    /// Lets go of the cursor; the next acknowledgment takes it again.
    pub(crate) fn let_go(&mut self) {
        self.acknowledger = None;
    }
}

/// Takes the cursor, giving one that was just let go of a moment: a process that is being started
/// has a copy of the lock until it executes its program.
fn lock(directory: &AttemptDir) -> Result<Acknowledger, Refusal> {
    let deadline = Instant::now() + CURSOR;
    loop {
        match Acknowledger::lock(directory) {
            Ok(acknowledger) => return Ok(acknowledger),
            Err(AcknowledgeError::Busy) if Instant::now() < deadline => std::thread::sleep(LOOK),
            Err(error) => return Err(refuse_cursor(&error)),
        }
    }
}

fn open_unacknowledged(directory: &AttemptDir) -> Result<(LogReader, u64), ReadLogError> {
    let consumed_through = LogReader::open(directory)?.consumed_through()?;
    let reader = LogReader::open_from(directory, consumed_through.saturating_add(1))?;
    Ok((reader, consumed_through))
}

pub(crate) fn item(record: Record) -> Item {
    let Record { sequence, offset, kind, stream, truncated, bytes } = record;
    match kind {
        RecordKind::Chunk => Item::Chunk { stream, sequence, offset, bytes },
        RecordKind::Eof => Item::Eof { stream, sequence, truncated },
    }
}

pub(crate) fn refuse_log(error: &ReadLogError) -> Refusal {
    Refusal::new(Code::Storage, with_errno(error))
}

fn refuse_cursor(error: &AcknowledgeError) -> Refusal {
    let code = match error {
        AcknowledgeError::Busy | AcknowledgeError::BeyondEnd { .. } => Code::Conflict,
        AcknowledgeError::Read(_) | AcknowledgeError::Head(_) | AcknowledgeError::Trim(_) => {
            Code::Storage
        }
    };
    Refusal::new(code, with_errno(error))
}
