//! Looking on: the transcript and what comes after it, without acknowledging anything.

use crate::Service;
use crate::from_log::{item, refuse_log};
use crate::item::Item;
use crate::refusal::conflict;
use crate::wait::{is_past, left};
use placement_contract::{AttemptId, Refusal};
use placement_homes::{LogItem, LogReader, ReadLogError};
use std::time::{Duration, Instant};

/// Longest sleep between two looks whether the runner still lives: its end changes no log.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Reads an attempt's output from its start, beside its recipient and whoever else looks on.
///
/// Never acknowledges, never writes input, never slows the child.
#[derive(Debug)]
pub struct Observer {
    service: Service,
    attempt_id: AttemptId,
    reader: Option<LogReader>,
    over: bool,
}

impl Service {
    /// Looks on at an attempt's output from the start of its transcript.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT where the launch keeps no log on disk; STORAGE.
    pub fn observe(&self, attempt_id: &AttemptId) -> Result<Observer, Refusal> {
        let request = self.look(attempt_id)?.request()?;
        if request.supervision.spool_bytes_max == 0 {
            let hint = "launch it without a spool bound of 0";
            return Err(conflict("the launch keeps no log on disk").with_hint(hint));
        }
        let attempt_id = attempt_id.clone();
        Ok(Observer { service: self.clone(), attempt_id, reader: None, over: false })
    }
}

impl Observer {
    /// Returns the next chunk, end of a stream, or gap; nothing at the deadline; [`Item::End`] once
    /// the runner is gone and everything was read. Without a deadline it waits as long as it takes.
    ///
    /// # Errors
    /// STORAGE where the log is damaged.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Item>, Refusal> {
        while !self.over {
            // Looked at before the log: what a runner wrote before it ended is then read.
            let row = self.service.look(&self.attempt_id)?;
            let ended = self.service.has_ended(&row);
            if self.reader.is_none()
                && let Some(directory) = self.service.attempt_directory(&row)?
            {
                self.reader = match LogReader::open(&directory) {
                    Ok(reader) => Some(reader),
                    Err(ReadLogError::Missing) => None,
                    Err(error) => return Err(refuse_log(&error)),
                };
            }
            if let Some(reader) = &mut self.reader {
                match reader.next_item().map_err(|error| refuse_log(&error))? {
                    Some(LogItem::Record(record)) => return Ok(Some(item(record))),
                    Some(LogItem::Gap(gap)) => return Ok(Some(Item::Gap { bytes: gap.bytes })),
                    None => {}
                }
            }
            if ended {
                self.over = true;
            } else if is_past(deadline) {
                return Ok(None);
            } else {
                self.wait(LOOK_AGAIN.min(left(deadline)));
            }
        }
        Ok(Some(Item::End))
    }

    fn wait(&mut self, at_most: Duration) {
        match &mut self.reader {
            // Changed or not, the next round looks.
            Some(reader) => drop(reader.wait(at_most)),
            // The log is made within the start budget, and no event tells of it.
            None => std::thread::sleep(at_most.min(crate::limits::LOOK)),
        }
    }
}
