//! Waiting for an attempt's runner to end.

use crate::Service;
use crate::limits::{FENCE, LOOK};
use crate::service::Found;
use crate::verdict::RunnerSeen;
use placement_contract::{AttemptId, ExecutionState, Refusal};
use placement_store::Row;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// What a wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The runner is gone, or there never was one.
    Ended,
    /// The deadline came first.
    DeadlineElapsed,
}

impl Service {
    /// Waits until the runner of an attempt has ended.
    ///
    /// Wakes by the runner's pidfd where this service started it, by the end of a control
    /// connection where it did not, and looks at its lock where neither can be had or the runner
    /// needs the connection for others. Without a deadline it waits as long as that takes. What
    /// became of the attempt is then in its record, or a reconcile finds it out.
    ///
    /// # Errors
    /// `NOT_FOUND` and STORAGE.
    pub fn wait_ended(
        &self,
        attempt_id: &AttemptId,
        deadline: Option<Instant>,
    ) -> Result<Waited, Refusal> {
        let mut pause = LOOK;
        let mut by_control = true;
        loop {
            let row = match self.find(attempt_id)? {
                Found::Row(row) => *row,
                Found::Pruned(_) => return Ok(Waited::Ended),
            };
            if self.has_ended(&row) {
                return Ok(Waited::Ended);
            }
            if is_past(deadline) {
                return Ok(Waited::DeadlineElapsed);
            }
            if let Some(pidfd) = self.inner.warden.pidfd_of(attempt_id) {
                if wait_readable(pidfd.as_fd(), deadline) {
                    return Ok(Waited::Ended);
                }
            } else if by_control && self.wait_by_control(&row, deadline) {
                // Where the attempt goes on all the same, connecting again would only push out
                // another one that waits.
                by_control = false;
            } else {
                std::thread::sleep(pause.min(left(deadline)));
                pause = (pause * 2).min(LOOK * 20);
            }
        }
    }

    /// Says whether no runner looks after the attempt any more.
    pub(crate) fn has_ended(&self, row: &Row) -> bool {
        if row.state.execution == ExecutionState::Intended || row.runner.is_none() {
            return self.inner.warden.pidfd_of(&row.attempt_id).is_none();
        }
        match self.runner_seen(row) {
            RunnerSeen::Gone => true,
            RunnerSeen::Alive => false,
            // What cannot be told by its process is told by its own last word.
            RunnerSeen::Unknown => !row.state.execution.is_live(),
        }
    }

    /// Holds a control connection until the runner closes it; says whether there was one.
    fn wait_by_control(&self, row: &Row, deadline: Option<Instant>) -> bool {
        match self.open_control(row, Instant::now() + FENCE.min(left(deadline))) {
            Ok(link) => {
                wait_readable(link.as_fd(), deadline);
                true
            }
            Err(_) => false,
        }
    }
}

/// Waits until a descriptor is readable or closed at its other end; says whether it is.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, deadline: Option<Instant>) -> bool {
    wait_for(descriptor, PollFlags::IN, deadline)
}

/// Waits by `poll(2)`; says whether the descriptor is ready, in error, or closed.
pub(crate) fn wait_for(
    descriptor: BorrowedFd<'_>,
    flags: PollFlags,
    deadline: Option<Instant>,
) -> bool {
    loop {
        let time = deadline.and_then(|_| Timespec::try_from(left(deadline)).ok());
        let mut polled = [PollFd::from_borrowed_fd(descriptor, flags)];
        match rustix::event::poll(&mut polled, time.as_ref()) {
            Ok(0) if is_past(deadline) => return false,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            // Too little memory for the moment: as if nothing had come.
            Err(_) => return false,
        }
    }
}

/// Returns the time until a deadline; without an end where there is none.
pub(crate) fn left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
}

pub(crate) fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}
