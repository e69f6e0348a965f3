//! Input to the child: bounded, never blocking the loop, each write answered once it is whole.

use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of input that may wait for the child; a write beyond is refused and may be sent again.
pub(crate) const WAITING_BYTES_MAX: usize = 4 * placement_contract::limits::WRITE_BYTES_MAX;

/// Who asked for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The launch itself: its initial input.
    Launch,
    /// The recipient, under this write id.
    Recipient(u64),
    /// A control call; it only closes.
    Control,
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Every byte went into the pipe.
    Whole {
        /// Who asked for it.
        writer: Writer,
        /// How many bytes it had.
        bytes: usize,
    },
    /// The child closed its input before the last byte.
    Broken {
        /// Who asked for it.
        writer: Writer,
        /// How many bytes went into the pipe.
        written: usize,
    },
    /// Input was closed because it was asked for.
    Closed {
        /// Who asked for it.
        writer: Writer,
    },
}

#[derive(Debug)]
struct Write {
    writer: Writer,
    bytes: Vec<u8>,
    written: usize,
    then_close: bool,
}

/// The child's input pipe and what waits for it.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The program runs, with an input or without one.
    begun: bool,
    pipe: Option<OwnedFd>,
    waiting: VecDeque<Write>,
    waiting_bytes: usize,
}

impl Input {
    /// Takes over our end of the pipe.
    pub(crate) fn open(pipe: OwnedFd) -> Self {
        Self { begun: true, pipe: Some(pipe), ..Self::default() }
    }

    /// Stands for the input of a program that was given none.
    pub(crate) fn nothing() -> Self {
        Self { begun: true, ..Self::default() }
    }

    /// Says whether the program runs, with an input or without one.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Says whether the child reads the end of its input, once it has read what was written.
    pub(crate) const fn is_closed(&self) -> bool {
        self.begun && self.pipe.is_none()
    }

    /// Says whether input can still be taken.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.waiting.back().is_some_and(|last| last.then_close)
    }

    /// Says whether this many bytes more stay within the bound.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.waiting_bytes + bytes <= WAITING_BYTES_MAX
    }

    /// Queues a write; the caller has looked that input is open and has room.
    pub(crate) fn queue(&mut self, writer: Writer, bytes: Vec<u8>, then_close: bool) {
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(Write { writer, bytes, written: 0, then_close });
    }

    /// Returns the pipe while something waits for it.
    pub(crate) fn wants_write(&self) -> Option<BorrowedFd<'_>> {
        if self.waiting.is_empty() { None } else { self.pipe.as_ref().map(AsFd::as_fd) }
    }

    /// Writes what the pipe takes, and tells what was finished by it.
    pub(crate) fn pump(&mut self) -> Vec<Written> {
        let mut finished = Vec::new();
        while let (Some(pipe), Some(write)) = (&self.pipe, self.waiting.front_mut()) {
            let rest = write.bytes.get(write.written..).unwrap_or_default();
            let step = if rest.is_empty() { Ok(0) } else { rustix::io::write(pipe, rest) };
            match step {
                Ok(count) => {
                    write.written += count;
                    self.waiting_bytes -= count;
                    if write.written == write.bytes.len() {
                        self.finish_first(&mut finished);
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    finished.extend(self.abandon());
                    break;
                }
            }
        }
        finished
    }

    /// Gives up what waits, because the child ended or closed its input.
    pub(crate) fn abandon(&mut self) -> Vec<Written> {
        self.pipe = None;
        self.waiting_bytes = 0;
        self.waiting
            .drain(..)
            .map(|write| Written::Broken { writer: write.writer, written: write.written })
            .collect()
    }

    fn finish_first(&mut self, finished: &mut Vec<Written>) {
        let Some(write) = self.waiting.pop_front() else { return };
        finished.push(Written::Whole { writer: write.writer, bytes: write.bytes.len() });
        if write.then_close {
            self.pipe = None;
            finished.push(Written::Closed { writer: write.writer });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Read as _;

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
    }

    #[test]
    fn a_write_is_answered_after_its_last_byte() {
        let (theirs, ours) = pipe();
        let mut input = Input::open(ours);
        let big = vec![7; 100_000];
        input.queue(Writer::Recipient(1), big.clone(), true);
        assert_eq!(input.pump(), vec![]);
        assert!(!input.is_open(), "nothing is taken after a close was asked for");
        let mut reader = std::fs::File::from(theirs);
        let mut buffer = vec![0; 65_536];
        let mut seen = 0;
        let mut answers = Vec::new();
        while answers.is_empty() {
            seen += reader.read(&mut buffer).unwrap();
            answers = input.pump();
        }
        let whole = Written::Whole { writer: Writer::Recipient(1), bytes: 100_000 };
        let closed = Written::Closed { writer: Writer::Recipient(1) };
        assert_eq!(answers, vec![whole, closed]);
        while let Ok(count) = reader.read(&mut buffer) {
            if count == 0 {
                break;
            }
            seen += count;
        }
        assert_eq!(seen, big.len());
    }

    #[test]
    fn a_closed_pipe_breaks_every_waiting_write() {
        let (theirs, ours) = pipe();
        let mut input = Input::open(ours);
        input.queue(Writer::Launch, vec![1; 200_000], false);
        input.queue(Writer::Recipient(2), vec![2; 10], false);
        assert_eq!(input.pump(), vec![]);
        drop(theirs);
        let answers = input.pump();
        assert_eq!(answers.len(), 2);
        assert!(
            matches!(answers[0], Written::Broken { writer: Writer::Launch, written } if written > 0)
        );
        assert_eq!(answers[1], Written::Broken { writer: Writer::Recipient(2), written: 0 });
        assert!(!input.is_open());
    }

    #[test]
    fn an_empty_write_that_closes_is_answered_too() {
        let (_theirs, ours) = pipe();
        let mut input = Input::open(ours);
        input.queue(Writer::Recipient(1), Vec::new(), true);
        let whole = Written::Whole { writer: Writer::Recipient(1), bytes: 0 };
        let closed = Written::Closed { writer: Writer::Recipient(1) };
        assert_eq!(input.pump(), vec![whole, closed]);
        assert!(!input.is_open());
    }

    #[test]
    fn a_close_comes_after_what_was_written_before() {
        let (theirs, ours) = pipe();
        let mut input = Input::open(ours);
        input.queue(Writer::Recipient(1), vec![1; 100_000], false);
        input.queue(Writer::Control, Vec::new(), true);
        assert_eq!(input.pump(), vec![]);
        assert!(!input.is_open() && !input.is_closed(), "it is asked for and not yet so");
        let mut reader = std::fs::File::from(theirs);
        let mut buffer = vec![0; 65_536];
        let mut answers = Vec::new();
        while answers.is_empty() {
            assert!(reader.read(&mut buffer).unwrap() > 0, "no end before the last byte");
            answers = input.pump();
        }
        assert_eq!(answers.last(), Some(&Written::Closed { writer: Writer::Control }));
        assert!(input.is_closed());
    }

    #[test]
    fn an_input_that_was_never_given_is_closed_from_the_start_of_the_program() {
        assert!(!Input::default().has_begun() && !Input::default().is_closed());
        assert!(Input::nothing().has_begun() && Input::nothing().is_closed());
    }

    #[test]
    fn waiting_bytes_are_bounded() {
        let (_theirs, ours) = pipe();
        let mut input = Input::open(ours);
        assert!(input.has_room(WAITING_BYTES_MAX));
        input.queue(Writer::Recipient(1), vec![0; WAITING_BYTES_MAX], false);
        assert!(!input.has_room(1));
    }
}
