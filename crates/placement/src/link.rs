//! The data link of one attempt, shared by whoever reads its output and whoever writes its input.
//!
//! There is no thread for it: whichever caller waits for something reads the link for all of them,
//! and leaves what is another's in the state. That state is bounded, because a runner sends no more
//! than four chunks without an acknowledgment and no more than four writes are ever unanswered.

use crate::error::Error;
use crate::output::Chunk;
use placement_contract::limits::{OUTSTANDING_CHUNKS_MAX, WRITE_BYTES_MAX};
use placement_contract::{Refusal, StreamName};
use placement_service::{InputRefused, InputSender, Item, Streams};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most writes of input that are sent and not answered; the runner lets no more wait.
const OUTSTANDING_WRITES_MAX: usize = OUTSTANDING_CHUNKS_MAX;

/// How long a writer reads the link at a stretch: an acknowledgment by whoever takes the output
/// waits at most so long behind it.
const WRITER_READS: Duration = Duration::from_millis(20);

/// The shared link.
#[derive(Debug)]
pub(crate) struct Link {
    state: Mutex<State>,
    changed: Condvar,
    input: Option<InputSender>,
}

/// What a caller reads the link for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Output, which it alone acknowledges.
    Consumer,
    /// Answers to its input.
    Writer,
}

#[derive(Debug)]
struct State {
    /// The link, unless a caller reads it right now.
    streams: Option<Streams>,
    /// Output that nobody took yet.
    output: VecDeque<Piece>,
    /// The piece that was taken last and is not acknowledged.
    taken: Option<u64>,
    /// What is to be acknowledged by whoever reads the link next.
    consumed: Option<u64>,
    /// Streams that have not ended.
    open: BTreeMap<StreamName, Open>,
    /// Answers to writes that nobody took yet.
    answers: BTreeMap<u64, Option<InputRefused>>,
    /// Writes that are not answered.
    unanswered: usize,
    /// Why nothing more comes.
    end: Option<LinkEnd>,
    /// Whether the acknowledgments were seen to.
    settled: bool,
}

/// What is still to come of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Its end was not seen.
    Open,
    /// Its end was seen.
    Ended {
        /// Bytes of it may be missing at the end.
        truncated: bool,
    },
}

/// A piece of output.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes.
    Chunk(Chunk),
    /// The end of a stream, which is acknowledged like bytes.
    Eof {
        /// Its place among the pieces of both streams.
        sequence: u64,
    },
}

/// Why nothing more comes over a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// The attempt ended and everything was told.
    Ended,
    /// Another recipient took over.
    Taken,
    /// The link failed.
    Failed(Refusal),
}

/// What became of bytes that were written to a child's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum InputOutcome {
    /// Every byte went into the child's input.
    Accepted,
    /// The child ended or closed its input, or never had one; or the answer was lost with the runner
    /// or the link ([`InputRefused::Uncertain`]). What may have been written is not written again.
    NotAccepted(InputRefused),
    /// The link ended before everything could be sent; a part may have been written.
    Unanswered,
}

impl Link {
    /// Takes the streams over; connects at once where the child has an input to write to.
    ///
    /// A child that ended meanwhile has none, which each write then says.
    pub(crate) fn new(mut streams: Streams, has_input: bool) -> Self {
        let input = if has_input { streams.input_sender().ok() } else { None };
        let open = StreamName::ALL.iter().map(|stream| (*stream, Open::Open)).collect();
        let state = State {
            streams: Some(streams),
            output: VecDeque::new(),
            taken: None,
            consumed: None,
            open,
            answers: BTreeMap::new(),
            unanswered: 0,
            end: None,
            settled: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), input }
    }

    /// Acknowledges the piece that was taken last and waits for the next one; nothing once both
    /// streams or the link ended.
    pub(crate) fn next_chunk(&self) -> Result<Option<Chunk>, Error> {
        loop {
            self.acknowledge()?;
            let piece = self.wait(Role::Consumer, |state| match state.output.pop_front() {
                Some(piece) => {
                    state.taken = Some(piece.sequence());
                    Some(Some(piece))
                }
                None => state.open.values().all(|open| *open != Open::Open).then_some(None),
            });
            match piece {
                Ok(Some(Piece::Chunk(chunk))) => return Ok(Some(chunk)),
                Ok(Some(Piece::Eof { .. })) => {}
                Ok(None) | Err(LinkEnd::Ended | LinkEnd::Taken) => return Ok(None),
                Err(LinkEnd::Failed(refusal)) => return Err(refusal.into()),
            }
        }
    }

    /// Acknowledges the piece that was taken last.
    pub(crate) fn acknowledge(&self) -> Result<(), Error> {
        let mut state = self.lock();
        let Some(through) = state.taken.take() else { return Ok(()) };
        if let Some(streams) = &mut state.streams {
            return Ok(streams.acknowledge(through)?);
        }
        state.consumed = Some(through);
        Ok(())
    }

    /// Writes input of any size and waits for the answers.
    pub(crate) fn write(&self, bytes: &[u8]) -> InputOutcome {
        let Some(sender) = &self.input else {
            return InputOutcome::NotAccepted(InputRefused::Closed);
        };
        let mut sent = VecDeque::new();
        let mut outcome = InputOutcome::Accepted;
        for piece in bytes.chunks(WRITE_BYTES_MAX) {
            if self.claim_write().is_err() {
                outcome = InputOutcome::Unanswered;
                break;
            }
            let Ok(write_id) = sender.send(piece) else {
                // Nothing says how much of the frame the runner got.
                self.release_write();
                outcome = InputOutcome::Unanswered;
                break;
            };
            sent.push_back(write_id);
            outcome = self.answered(&mut sent, outcome);
            if outcome != InputOutcome::Accepted {
                break;
            }
        }
        while let Some(write_id) = sent.pop_front() {
            let answer = self.answer(write_id);
            if outcome == InputOutcome::Accepted {
                outcome = answer;
            }
        }
        outcome
    }

    /// Asks to close the input after everything that was written; does not wait until it is.
    pub(crate) fn close_input(&self) {
        let Some(sender) = &self.input else { return };
        if self.claim_write().is_ok() && sender.close().is_err() {
            // The child's input is gone with its link.
            self.release_write();
        }
    }

    /// Sees to it that what was acknowledged is, once the runner is gone: it may have ended before
    /// it read the last acknowledgments, which are then made in its log.
    pub(crate) fn settle(&self) {
        let mut state = self.lock();
        if state.settled || state.end.is_some() {
            return;
        }
        let Some(mut streams) = state.streams.take() else { return };
        state.settled = true;
        let consumed = state.consumed.take();
        drop(state);
        let mut items = Vec::new();
        if consumed.is_none_or(|through| streams.acknowledge(through).is_ok()) {
            // The first piece that was not seen yet lies behind everything that was acknowledged.
            while let Ok(Some(item)) = streams.next(Some(Instant::now())) {
                let is_last = match item {
                    Item::Exit { .. } | Item::Input { .. } | Item::Gap { .. } => false,
                    Item::Chunk { .. } | Item::Eof { .. } | Item::Taken | Item::End => true,
                };
                items.push(item);
                if is_last {
                    break;
                }
            }
        }
        let mut state = self.lock();
        state.streams = Some(streams);
        for item in items {
            state.take_in(Ok(Some(item)));
        }
        self.changed.notify_all();
    }

    /// Says why nothing more comes, once that is so.
    pub(crate) fn end(&self) -> Option<LinkEnd> {
        self.lock().end.clone()
    }

    /// Says whether bytes may be missing at the end of a stream; `None` while it is open.
    pub(crate) fn truncated(&self, stream: StreamName) -> Option<bool> {
        match self.lock().open.get(&stream) {
            Some(Open::Ended { truncated }) => Some(*truncated),
            Some(Open::Open) | None => None,
        }
    }

    /// Takes the answers that came already, without waiting.
    fn answered(&self, sent: &mut VecDeque<u64>, so_far: InputOutcome) -> InputOutcome {
        let mut state = self.lock();
        while let Some(answer) = sent.front().and_then(|id| state.answers.remove(id)) {
            sent.pop_front();
            if let Some(refused) = answer {
                return InputOutcome::NotAccepted(refused);
            }
        }
        so_far
    }

    fn answer(&self, write_id: u64) -> InputOutcome {
        match self.wait(Role::Writer, |state| state.answers.remove(&write_id)) {
            Ok(None) => InputOutcome::Accepted,
            Ok(Some(refused)) => InputOutcome::NotAccepted(refused),
            Err(_) => InputOutcome::Unanswered,
        }
    }

    /// Waits until one more write may be sent.
    fn claim_write(&self) -> Result<(), LinkEnd> {
        self.wait(Role::Writer, |state| {
            let room = state.unanswered < OUTSTANDING_WRITES_MAX;
            state.unanswered += usize::from(room);
            room.then_some(())
        })
    }

    fn release_write(&self) {
        let mut state = self.lock();
        state.unanswered = state.unanswered.saturating_sub(1);
        self.changed.notify_all();
    }

    /// Waits until the state has what is looked for, or the link ended without it.
    fn wait<T>(
        &self,
        role: Role,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, LinkEnd> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            let Some(mut streams) = state.streams.take() else {
                // Somebody else reads, and wakes everybody after each item.
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let consumed = state.consumed.take();
            drop(state);
            let deadline = match role {
                Role::Consumer => None,
                Role::Writer => Some(Instant::now() + WRITER_READS),
            };
            let item = match consumed.map(|through| streams.acknowledge(through)) {
                Some(Err(refusal)) => Err(refusal),
                Some(Ok(())) | None => streams.next(deadline),
            };
            state = self.lock();
            state.streams = Some(streams);
            state.take_in(item);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Piece {
    const fn sequence(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.sequence,
            Self::Eof { sequence } => *sequence,
        }
    }
}

impl State {
    fn take_in(&mut self, item: Result<Option<Item>, Refusal>) {
        match item {
            Ok(Some(Item::Chunk { stream, sequence, offset, bytes })) => {
                let chunk = Chunk { stream, sequence, offset, bytes };
                self.output.push_back(Piece::Chunk(chunk));
            }
            Ok(Some(Item::Eof { stream, sequence, truncated })) => {
                self.open.insert(stream, Open::Ended { truncated });
                self.output.push_back(Piece::Eof { sequence });
            }
            Ok(Some(Item::Input { write_id, refused })) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.answers.insert(write_id, refused);
            }
            // The exit is read from the record, where it is durable; bytes that were dropped
            // beyond the transcript's bound show as a step in the offsets.
            Ok(Some(Item::Exit { .. } | Item::Gap { .. }) | None) => {}
            Ok(Some(Item::Taken)) => self.end = Some(LinkEnd::Taken),
            Ok(Some(Item::End)) => self.end = Some(LinkEnd::Ended),
            Err(refusal) => self.end = Some(LinkEnd::Failed(refusal)),
        }
    }
}
