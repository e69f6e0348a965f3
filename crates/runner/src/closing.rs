//! Closing the child's input on demand: what was written before comes first, and the call is
//! answered once it is so, or in time.

use crate::input::Writer;
use crate::runner::Runner;
use placement_contract::limits::FENCE_MS;
use placement_protocol::{ControlAnswer, StdinRefused, StdinReply};
use std::time::{Duration, Instant};

/// How long an answer waits for what was written before: half of the time that the caller has.
const ANSWER: Duration = Duration::from_millis(FENCE_MS / 2);
/// Calls that wait for one close; a few services and commands.
const CALLS_MAX: usize = 32;

/// Calls that wait until the input is closed.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    peer: u32,
    probe: u64,
    by: Instant,
}

impl Closing {
    /// Returns when [`Runner::answer_late_closings`] has something to do.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.calls.iter().map(|call| call.by).min()
    }
}

impl Runner {
    /// Closes the input after everything that waits for the child, and answers then.
    pub(crate) fn close_stdin(&mut self, peer: u32, probe: u64) {
        let refused = if self.has_exited() {
            Some(StdinRefused::Exited)
        } else if self.has_window() {
            Some(StdinRefused::Unsupported)
        } else if !self.input.has_begun() {
            Some(StdinRefused::NotStarted)
        } else if self.input.is_closed() {
            None
        } else if self.closing.calls.len() >= CALLS_MAX {
            Some(StdinRefused::Waiting)
        } else {
            self.closing.calls.push(Call { peer, probe, by: Instant::now() + ANSWER });
            if self.input.is_open() {
                self.input.queue(Writer::Control, Vec::new(), true);
            }
            // Answers the call too where nothing waits.
            self.write_input();
            return;
        };
        self.answer_closing(peer, probe, refused);
    }

    /// Answers every call that waits: the input is closed, or will never be.
    pub(crate) fn answer_closings(&mut self, refused: Option<StdinRefused>) {
        for call in std::mem::take(&mut self.closing.calls) {
            self.answer_closing(call.peer, call.probe, refused);
        }
    }

    /// Answers calls whose time is over; the input is closed all the same once the child has taken
    /// what waits.
    pub(crate) fn answer_late_closings(&mut self, now: Instant) {
        let (late, waiting) =
            std::mem::take(&mut self.closing.calls).into_iter().partition(|call| now >= call.by);
        self.closing.calls = waiting;
        let late: Vec<Call> = late;
        for call in late {
            self.answer_closing(call.peer, call.probe, Some(StdinRefused::Waiting));
        }
    }

    fn answer_closing(&mut self, peer: u32, probe: u64, refused: Option<StdinRefused>) {
        let reply = StdinReply { closed: refused.is_none(), reason: refused };
        self.desk.answer(peer, probe, ControlAnswer::CloseStdin(reply));
    }
}
