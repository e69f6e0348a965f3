//! Input for a child, over the data link that its output comes from.

use crate::limits::FENCE;
use crate::refusal::{conflict, unavailable};
use crate::wait::{is_past, wait_for};
use placement_contract::limits::WRITE_BYTES_MAX;
use placement_contract::{Code, Generation, Refusal, WindowSize};
use placement_protocol::{FromRecipient, Input, Resize};
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
    last_resize_id: u64,
    /// What was sent over this link and has no answer; no more than the sockets and the runner hold.
    unanswered: BTreeSet<Sent>,
}

/// What was sent and is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sent {
    /// Input, under this number.
    Write(u64),
    /// A new size, under this number.
    Resize(u64),
}

/// What is sent beside acknowledgments.
#[derive(Clone, Copy)]
enum Message<'a> {
    Input { bytes: &'a [u8], end: bool },
    Resize(WindowSize),
}

impl Wire {
    pub(crate) fn new(generation: Generation, last_write_id: u64) -> Self {
        let unanswered = BTreeSet::new();
        let ends = Ends { link: None, last_write_id, last_resize_id: 0, unanswered };
        Self { generation, ends: Mutex::new(ends) }
    }

    pub(crate) fn put(&self, link: Link) {
        self.ends().link = Some(link);
    }

    /// Closes the link, and returns what has lost its answer with it, in its order.
    pub(crate) fn close(&self) -> BTreeSet<Sent> {
        let mut ends = self.ends();
        ends.link = None;
        std::mem::take(&mut ends.unanswered)
    }

    /// Takes an answer; false for one that nobody waits for: it was told as lost before, or was
    /// another recipient's.
    pub(crate) fn take_answer(&self, to: Sent) -> bool {
        self.ends().unanswered.remove(&to)
    }

    /// Works on the link; nothing where it is closed.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Link) -> T) -> Option<T> {
        self.ends().link.as_mut().map(work)
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends input to one attempt's child, and new sizes of its window; clones send from other threads.
///
/// Whether they were accepted comes as [`crate::Item::Input`] and [`crate::Item::Resized`] from the
/// streams, once for each number. Where the answer was lost with its link or its runner it is told as
/// uncertain: input may have been written, and is not to be sent again without a look.
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
        self.tell(Message::Input { bytes, end })
    }

    /// Sends a new size of the child's window and returns the number under which it is answered.
    ///
    /// # Errors
    /// As [`InputSender::send`].
    pub fn resize(&self, size: WindowSize) -> Result<u64, Refusal> {
        self.tell(Message::Resize(size))
    }

    fn tell(&self, message: Message<'_>) -> Result<u64, Refusal> {
        let deadline = Some(Instant::now() + FENCE);
        let number = self.queue(message, deadline)?;
        while self.with(Link::flush)?.is_ok() && self.with(|link| link.wants_write())? {
            self.await_room(deadline)?;
        }
        Ok(number)
    }

    fn queue(&self, message: Message<'_>, deadline: Option<Instant>) -> Result<u64, Refusal> {
        loop {
            let mut ends = self.wire.ends();
            // Numbered under the lock, so that numbers grow in the order of sending.
            let number = ends.number_after(message);
            let frame = message
                .numbered(number, self.wire.generation)
                .into_frame()
                .map_err(|_| Refusal::new(Code::Internal, "the input does not fit a frame"))?;
            let link = ends.link.as_mut().ok_or_else(closed)?;
            match link.queue(frame) {
                Ok(()) => {
                    ends.note(message, number);
                    return Ok(number);
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

impl Ends {
    const fn number_after(&self, message: Message<'_>) -> u64 {
        match message {
            Message::Input { .. } => self.last_write_id + 1,
            Message::Resize(_) => self.last_resize_id + 1,
        }
    }

    fn note(&mut self, message: Message<'_>, number: u64) {
        match message {
            Message::Input { .. } => {
                self.last_write_id = number;
                self.unanswered.insert(Sent::Write(number));
            }
            Message::Resize(_) => {
                self.last_resize_id = number;
                self.unanswered.insert(Sent::Resize(number));
            }
        }
    }
}

impl Message<'_> {
    fn numbered(self, number: u64, generation: Generation) -> FromRecipient {
        match self {
            Self::Input { bytes, end } => {
                let bytes = bytes.to_vec();
                FromRecipient::Input(Input { write_id: number, generation, end, bytes })
            }
            Self::Resize(size) => {
                FromRecipient::Resize(Resize { resize_id: number, generation, size })
            }
        }
    }
}

fn closed() -> Refusal {
    conflict("the link to the child's input is closed")
}
