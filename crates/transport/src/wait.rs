//! Waiting for a link, always with a deadline on the monotonic clock.

use crate::link::{Filled, Link, LinkError, broken};
use placement_protocol::Frame;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

impl Link {
    /// Sends a frame and waits for the next one that the peer sends.
    ///
    /// Whether that one is the answer is the caller's to check.
    ///
    /// # Errors
    /// As [`Link::send`] and [`Link::receive`].
    pub fn call(&mut self, frame: Frame, deadline: Instant) -> Result<Frame, LinkError> {
        let sent = self.send(frame, deadline);
        self.answer(sent, deadline)
    }

    /// Sends a frame with a descriptor and waits for the next one that the peer sends.
    ///
    /// # Errors
    /// As [`Link::send`] and [`Link::receive`].
    ///
    /// # Panics
    /// As [`Link::queue_with_descriptor`].
    pub fn call_with_descriptor(
        &mut self,
        frame: Frame,
        descriptor: OwnedFd,
        deadline: Instant,
    ) -> Result<Frame, LinkError> {
        let sent = self.drain(deadline).and_then(|()| {
            self.queue_with_descriptor(frame, descriptor).expect("nothing else waits");
            self.drain(deadline)
        });
        self.answer(sent, deadline)
    }

    /// Sends a frame and waits until it is written whole.
    ///
    /// # Errors
    /// [`LinkError::Deadline`] when the peer does not read in time; what is not written stays
    /// queued. [`LinkError::Closed`] and [`LinkError::Broken`] as [`Link::flush`].
    ///
    /// # Panics
    /// As [`Link::queue`].
    pub fn send(&mut self, frame: Frame, deadline: Instant) -> Result<(), LinkError> {
        self.drain(deadline)?;
        self.queue(frame).expect("nothing else waits");
        self.drain(deadline)
    }

    /// Waits for the next frame. What is there already is taken even when the deadline has passed.
    ///
    /// # Errors
    /// [`LinkError::Deadline`] when no whole frame came in time; the others as [`Link::fill`] and
    /// [`Link::next_frame`].
    pub fn receive(&mut self, deadline: Instant) -> Result<Frame, LinkError> {
        loop {
            if let Some(frame) = self.next_frame()? {
                return Ok(frame);
            }
            match self.fill()? {
                Filled::Nothing => self.wait(PollFlags::IN, deadline)?,
                // A peer that drips bytes for ever does not outlast the deadline.
                Filled::Bytes if remaining(deadline).is_zero() => {
                    return self.next_frame()?.ok_or(LinkError::Deadline);
                }
                Filled::Bytes => {}
            }
        }
    }

    /// Waits for an answer, even to a call that met a closed link: a peer that refuses may have
    /// answered before it closed.
    fn answer(
        &mut self,
        sent: Result<(), LinkError>,
        deadline: Instant,
    ) -> Result<Frame, LinkError> {
        match sent {
            Ok(()) | Err(LinkError::Closed) => self.receive(deadline),
            Err(error) => Err(error),
        }
    }

    fn drain(&mut self, deadline: Instant) -> Result<(), LinkError> {
        loop {
            self.flush()?;
            if !self.wants_write() {
                return Ok(());
            }
            self.wait(PollFlags::OUT, deadline)?;
        }
    }

    /// Waits by `poll(2)` until the link is ready or the peer is gone.
    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<(), LinkError> {
        loop {
            let time = Timespec::try_from(remaining(deadline)).ok();
            let mut polled = [PollFd::from_borrowed_fd(self.as_fd(), flags)];
            match rustix::event::poll(&mut polled, time.as_ref()) {
                Ok(0) if remaining(deadline).is_zero() => return Err(LinkError::Deadline),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(broken("wait for", error)),
            }
        }
    }
}

/// Returns the time until a deadline, zero once it has passed.
pub(crate) fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
