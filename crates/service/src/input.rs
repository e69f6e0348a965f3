//! Input for a child, over the data link that its output comes from.

use crate::limits::FENCE;
use crate::refusal::{conflict, unavailable};
use crate::wait::{is_past, wait_for};
use placement_contract::limits::WRITE_BYTES_MAX;
use placement_contract::{Code, Generation, Refusal};
use placement_protocol::{FromRecipient, Input};
use placement_transport::{Link, WouldOverflow};
use rustix::event::PollFlags;
use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A data link that one thread reads and others write; nobody waits while holding it.
#[derive(Debug)]
pub(crate) struct Wire {
    generation: Generation,
    ends: Mutex<Ends>,
}

#[derive(Debug)]
struct Ends {
    link: Option<Link>,
    last_write_id: u64,
    /// Writes over this link without an answer; no more than the sockets and the runner hold.
    unanswered: BTreeSet<u64>,
}

impl Wire {
    pub(crate) fn new(generation: Generation, last_write_id: u64) -> Self {
        let ends = Ends { link: None, last_write_id, unanswered: BTreeSet::new() };
        Self { generation, ends: Mutex::new(ends) }
    }

    pub(crate) fn put(&self, link: Link) {
        self.ends().link = Some(link);
    }

    /// Closes the link, and returns the writes whose answers are lost with it, in their order.
    pub(crate) fn close(&self) -> BTreeSet<u64> {
        let mut ends = self.ends();
        ends.link = None;
        std::mem::take(&mut ends.unanswered)
    }

    /// Takes the answer to a write; false for one that nobody waits for: it was told as lost before,
    /// or was another recipient's.
    pub(crate) fn take_answer(&self, write_id: u64) -> bool {
        self.ends().unanswered.remove(&write_id)
    }

    /// Works on the link; nothing where it is closed.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Link) -> T) -> Option<T> {
        self.ends().link.as_mut().map(work)
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends input to one attempt's child; clones send from other threads.
///
/// Whether input was accepted comes as [`crate::Item::Input`] from the streams, once for each number.
/// Where the answer was lost with its link or its runner it is told as uncertain: it may have been
/// written, and is not to be sent again without a look.
#[derive(Debug, Clone)]
pub struct InputSender {
    wire: Arc<Wire>,
}

impl InputSender {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Self { wire }
    }

    /// Sends bytes, at most 65 536, and returns the number under which they are answered.
    ///
    /// # Errors
    /// INVALID for more bytes; CONFLICT where the link is closed; UNAVAILABLE where the runner
    /// takes nothing for two seconds, after which the bytes may or may not be accepted.
    pub fn send(&self, bytes: &[u8]) -> Result<u64, Refusal> {
        self.write(bytes, false)
    }

    /// Closes the child's input and returns the number under which that is answered.
    ///
    /// # Errors
    /// As [`InputSender::send`].
    pub fn close(&self) -> Result<u64, Refusal> {
        self.write(&[], true)
    }

    fn write(&self, bytes: &[u8], end: bool) -> Result<u64, Refusal> {
        if bytes.len() > WRITE_BYTES_MAX {
            let message = format!("input is at most {WRITE_BYTES_MAX} bytes a write");
            return Err(Refusal::new(Code::Invalid, message));
        }
        let deadline = Some(Instant::now() + FENCE);
        let write_id = self.queue(bytes, end, deadline)?;
        while self.with(Link::flush)?.is_ok() && self.with(|link| link.wants_write())? {
            self.await_room(deadline)?;
        }
        Ok(write_id)
    }

    fn queue(&self, bytes: &[u8], end: bool, deadline: Option<Instant>) -> Result<u64, Refusal> {
        loop {
            let mut ends = self.wire.ends();
            // Numbered under the lock, so that numbers grow in the order of sending.
            let write_id = ends.last_write_id + 1;
            let generation = self.wire.generation;
            let input = Input { write_id, generation, end, bytes: bytes.to_vec() };
            let frame = FromRecipient::Input(input)
                .into_frame()
                .map_err(|_| Refusal::new(Code::Internal, "the input does not fit a frame"))?;
            let link = ends.link.as_mut().ok_or_else(closed)?;
            match link.queue(frame) {
                Ok(()) => {
                    ends.last_write_id = write_id;
                    ends.unanswered.insert(write_id);
                    return Ok(write_id);
                }
                Err(WouldOverflow(_)) => drop(ends),
            }
            self.await_room(deadline)?;
            // A broken link is found by the one who reads it.
            self.with(Link::flush)?.ok();
        }
    }

    /// Waits, without holding the link, until it takes more.
    fn await_room(&self, deadline: Option<Instant>) -> Result<(), Refusal> {
        let copy = self.with(|link| link.as_fd().try_clone_to_owned())?;
        let copy = copy.map_err(|_| unavailable("no descriptor could be had"))?;
        if !wait_for(copy.as_fd(), PollFlags::OUT, deadline) && is_past(deadline) {
            return Err(unavailable("the runner does not take the input"));
        }
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Link) -> T) -> Result<T, Refusal> {
        self.wire.with(work).ok_or_else(closed)
    }
}

fn closed() -> Refusal {
    conflict("the link to the child's input is closed")
}
