//! Says once that output waits because the disk of the root has no room for it.

use crate::failure::say;
use placement::{AttemptId, Placement};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Silence of an attempt after which its runner is asked for the first time.
const QUIET: Duration = Duration::from_secs(2);
/// Longest time between two questions to the runner of an attempt that says nothing for hours.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What whoever passes output on is at: waiting for it, or writing it.
#[derive(Debug, Default)]
pub(crate) struct Passing(AtomicU64);

impl Passing {
    /// Notes that output has come, or that it was passed on.
    pub(crate) fn turn(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the count of turns while output is waited for; one that is written waits for no room
    /// but its reader's.
    fn awaited(&self) -> Option<u64> {
        let turns = self.0.load(Ordering::Relaxed);
        turns.is_multiple_of(2).then_some(turns)
    }
}

/// Asks the runner whenever nothing has come for some time, until it has said why or the sender of
/// `is_over` is gone.
pub(crate) fn watch(
    host: &Placement,
    attempt: &AttemptId,
    passing: &Passing,
    is_over: &Receiver<()>,
) {
    let mut pause = QUIET;
    let mut seen = passing.awaited();
    while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let now = passing.awaited();
        if now.is_none() || now != seen {
            seen = now;
            pause = QUIET;
            continue;
        }
        // Everything that has come was acknowledged: only the disk keeps the rest back.
        let runner = host.status(attempt).ok().and_then(|status| status.runner);
        if runner.is_some_and(|runner| runner.output_full) {
            say(
                "the output waits: the disk of the root has no room for it; it goes on once there is some",
            );
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
