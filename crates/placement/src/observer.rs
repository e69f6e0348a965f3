//! Watching an attempt's output without taking part.

use crate::error::Error;
use crate::output::Chunk;
use placement_service::Item;
use std::time::Instant;

/// Reads an attempt's log from the first byte that is still kept.
#[derive(Debug)]
pub struct Observer {
    observer: placement_service::Observer,
}

/// What an observer sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Output.
    Chunk(Chunk),
    /// Output that is no longer kept.
    Gap {
        /// How many bytes, both streams together.
        bytes: u64,
    },
    /// Nothing came until the deadline.
    Nothing,
    /// The attempt has ended and everything that is kept was seen.
    End,
}

impl Observer {
    pub(crate) const fn new(observer: placement_service::Observer) -> Self {
        Self { observer }
    }

    /// Waits for the next thing to see, for ever without a deadline.
    ///
    /// # Errors
    /// STORAGE for a damaged log.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Seen, Error> {
        loop {
            return Ok(match self.observer.next(deadline)? {
                Some(Item::Chunk { stream, sequence, offset, bytes }) => {
                    Seen::Chunk(Chunk { stream, sequence, offset, bytes })
                }
                Some(Item::Gap { bytes }) => Seen::Gap { bytes },
                Some(Item::End | Item::Taken) => Seen::End,
                Some(
                    Item::Eof { .. }
                    | Item::Exit { .. }
                    | Item::Input { .. }
                    | Item::Resized { .. },
                ) => continue,
                None => Seen::Nothing,
            });
        }
    }
}
