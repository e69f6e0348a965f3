//! Says on a terminal what is awaited, once it takes longer than a second.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Silence that nobody wonders about.
const QUIET: Duration = Duration::from_secs(1);

/// Stands for something that is awaited; dropped when it is over.
#[derive(Debug)]
#[must_use]
pub(crate) struct Awaiting {
    over: Option<Sender<()>>,
}

impl Awaiting {
    /// Says the text on stderr in a second from now, unless this is dropped before.
    pub(crate) fn start(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { over: None };
        }
        let what = what.into();
        let (over, is_over) = mpsc::channel();
        let said = std::thread::Builder::new().spawn(move || {
            if is_over.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                writeln!(std::io::stderr(), "placement: {what} ...").ok();
            }
        });
        // Where no thread can be had nothing is said.
        Self { over: said.is_ok().then_some(over) }
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        // Closing the channel is what the thread waits for.
        drop(self.over.take());
    }
}
