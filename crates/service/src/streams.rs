//! The output of one attempt for its bound recipient: over the data link while the runner lives,
//! from the log on disk afterwards, without a gap and without a repetition.

use crate::Service;
use crate::from_log::FromLog;
use crate::input::{InputSender, Sent, Wire};
use crate::item::Item;
use crate::limits::{CONNECT, LOOK};
use crate::places::DATA_SOCKET;
use crate::refusal::{conflict, unavailable};
use crate::wait::{is_past, left, wait_for};
use placement_contract::{
    AttemptId, Code, EvidenceKind, ExecutionState, Generation, RecipientId, Refusal,
};
use placement_crash::point;
use placement_protocol::{FromRecipient, FromRunner, Hello, InputRefused, LinkKind, ResizeRefused};
use placement_store::{ChildIdentity, Row};
use placement_transport::{Filled, Link, LinkError, connect, open};
use rustix::event::PollFlags;
use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// The output of one attempt, for its bound recipient.
///
/// Connects when the first item is asked for. Dropping it lets go of the link and acknowledges
/// nothing more; the attempt goes on by the rule of its launch.
#[derive(Debug)]
pub struct Streams {
    service: Service,
    attempt_id: AttemptId,
    recipient: RecipientId,
    generation: Generation,
    wire: Arc<Wire>,
    phase: Phase,
    seen_through: u64,
    acknowledged_through: u64,
    exit_told: bool,
    /// What has lost its answer, still to be told.
    lost_answers: BTreeSet<Sent>,
    /// The last link was closed by the runner: it is given a moment to end before the next one.
    was_unlinked: bool,
}

#[derive(Debug)]
enum Phase {
    /// Between links: the runner does not listen yet, has closed the link, or has ended.
    Unlinked,
    /// Linked; the descriptor is a copy of the link's, to wait on.
    Linked(OwnedFd),
    /// The runner is gone and the log is served from disk; without a log, nothing is.
    Log(Option<Box<FromLog>>),
    /// Over; this is said again whenever it is asked. What came from the log can still be
    /// acknowledged.
    Over(Item, Option<Box<FromLog>>),
}

/// What one step of a phase came to.
enum Step {
    Item(Item),
    Again,
    DeadlineElapsed,
}

impl Streams {
    /// Makes the streams of the host that started the attempt.
    pub(crate) fn of_start(
        service: &Service,
        attempt_id: &AttemptId,
        recipient: &RecipientId,
        generation: Generation,
    ) -> Self {
        Self {
            service: service.clone(),
            attempt_id: attempt_id.clone(),
            recipient: recipient.clone(),
            generation,
            wire: Arc::new(Wire::new(generation, 0)),
            phase: Phase::Unlinked,
            seen_through: 0,
            acknowledged_through: 0,
            exit_told: false,
            lost_answers: BTreeSet::new(),
            was_unlinked: false,
        }
    }

    /// Makes the streams of a recipient that goes on where the acknowledgments ended.
    pub(crate) fn of_attach(
        service: &Service,
        attempt_id: &AttemptId,
        recipient: &RecipientId,
        generation: Generation,
        resume: Resume,
    ) -> Self {
        let mut streams = Self::of_start(service, attempt_id, recipient, generation);
        streams.wire = Arc::new(Wire::new(generation, resume.last_write_id));
        streams.seen_through = resume.consumed_through;
        streams.acknowledged_through = resume.consumed_through;
        streams
    }

    /// Returns the attempt.
    pub fn attempt_id(&self) -> &AttemptId {
        &self.attempt_id
    }

    /// Returns the attachment.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the next item; nothing at the deadline. Without a deadline it waits as long as it
    /// takes.
    ///
    /// At most four chunks and ends come unacknowledged while the runner lives: then nothing comes
    /// until [`Streams::acknowledge`]. After [`Item::Taken`] and [`Item::End`] the same comes again.
    ///
    /// # Errors
    /// STORAGE where the log on disk is damaged; `NOT_FOUND`; UNAVAILABLE.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Item>, Refusal> {
        loop {
            if let Some(lost) = self.lost_answers.pop_first() {
                return Ok(Some(unanswered(lost)));
            }
            let step = match &mut self.phase {
                Phase::Over(last, _) => Step::Item(last.clone()),
                Phase::Unlinked => self.find_source(deadline)?,
                Phase::Linked(_) => self.next_of_link(deadline),
                Phase::Log(_) => self.next_of_log()?,
            };
            match step {
                Step::Item(item) => return Ok(Some(item)),
                Step::Again => {}
                Step::DeadlineElapsed => return Ok(None),
            }
        }
    }

    /// Says that everything up to a sequence is consumed: it never comes again.
    ///
    /// # Errors
    /// INVALID for a sequence that did not come; CONFLICT where another process serves the log of
    /// an ended attempt; STORAGE where its cursor cannot be written.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), Refusal> {
        if through > self.seen_through {
            let message = "an acknowledgment is of what has come";
            return Err(Refusal::new(Code::Invalid, message));
        }
        if through <= self.acknowledged_through {
            return Ok(());
        }
        self.acknowledged_through = through;
        match &mut self.phase {
            Phase::Linked(_) => {
                self.tell_acknowledged(through);
                point("service.output.acknowledged");
                Ok(())
            }
            Phase::Log(Some(log)) => log.acknowledge(through),
            Phase::Over(_, Some(log)) => {
                let acknowledged = log.acknowledge(through);
                log.let_go();
                acknowledged
            }
            // Between links it is told again with whatever comes again.
            Phase::Unlinked | Phase::Log(None) | Phase::Over(_, None) => Ok(()),
        }
    }

    /// Returns what sends input to the child, from this thread or another.
    ///
    /// # Errors
    /// CONFLICT where the runner cannot be reached within two seconds, or has ended.
    pub fn input_sender(&mut self) -> Result<InputSender, Refusal> {
        let deadline = Some(Instant::now() + CONNECT);
        while matches!(self.phase, Phase::Unlinked) && !is_past(deadline) {
            if let Step::Item(item) = self.find_source(deadline)? {
                self.phase = Phase::Over(item, None);
            }
        }
        match self.phase {
            Phase::Linked(_) => Ok(InputSender::new(Arc::clone(&self.wire))),
            Phase::Unlinked | Phase::Log(_) | Phase::Over(..) => {
                Err(conflict("the child's input cannot be reached"))
            }
        }
    }

    /// Finds where the output comes from now: a link, the log, or nowhere any more.
    fn find_source(&mut self, deadline: Option<Instant>) -> Result<Step, Refusal> {
        let row = self.service.look(&self.attempt_id)?;
        let is_newest = row.attachment.generation <= self.generation;
        // Looked at before the connection is tried: what is gone then stays gone.
        if self.service.has_ended(&row) {
            return if is_newest { self.open_log(&row) } else { Ok(self.over(Item::Taken)) };
        }
        if self.was_unlinked {
            self.was_unlinked = false;
            std::thread::sleep(LOOK.min(left(deadline)));
            return Ok(Step::Again);
        }
        match self.connect_data(&row, Instant::now() + CONNECT.min(left(deadline))) {
            Some(link) => {
                let copy = link.as_fd().try_clone_to_owned();
                let copy = copy.map_err(|_| unavailable("no descriptor could be had"))?;
                self.wire.put(link);
                self.phase = Phase::Linked(copy);
                Ok(Step::Again)
            }
            // The runner says who is bound; the record says it only of one that it does not serve.
            None if !is_newest => Ok(self.over(Item::Taken)),
            None if is_past(deadline) => Ok(Step::DeadlineElapsed),
            None => {
                std::thread::sleep(LOOK.min(left(deadline)));
                Ok(Step::Again)
            }
        }
    }

    fn connect_data(&self, row: &Row, deadline: Instant) -> Option<Link> {
        let directory = self.service.attempt_directory(row).ok()??;
        let token = self.service.token(row)?;
        let stream = connect(directory.dir().as_fd(), DATA_SOCKET, deadline).ok()?;
        let mut link = Link::new(stream, LinkKind::Data);
        let hello =
            Hello::data(self.attempt_id.clone(), token, self.generation, self.recipient.clone());
        // Refused or not, the record tells at the next look who is bound.
        open(&mut link, &hello, deadline).ok().map(|_| link)
    }

    fn next_of_link(&mut self, deadline: Option<Instant>) -> Step {
        let Phase::Linked(descriptor) = &self.phase else { return Step::Again };
        let received = self.wire.with(|link| {
            link.flush()?;
            if let Some(frame) = link.next_frame()? {
                return Ok((Some(frame), Filled::Bytes, false));
            }
            let filled = link.fill()?;
            Ok::<_, LinkError>((None, filled, link.wants_write()))
        });
        match received {
            Some(Ok((Some(frame), _, _))) => match FromRunner::from_frame(frame) {
                Ok(message) => self.take(message),
                Err(_) => self.unlink(),
            },
            Some(Ok((None, Filled::Bytes, _))) => Step::Again,
            Some(Ok((None, Filled::Nothing, wants_write))) => {
                let write = if wants_write { PollFlags::OUT } else { PollFlags::empty() };
                if wait_for(descriptor.as_fd(), PollFlags::IN | write, deadline) {
                    Step::Again
                } else {
                    Step::DeadlineElapsed
                }
            }
            Some(Err(_)) | None => self.unlink(),
        }
    }

    fn take(&mut self, message: FromRunner) -> Step {
        match message {
            FromRunner::Chunk(chunk) if self.is_new(chunk.sequence) => Step::Item(Item::Chunk {
                stream: chunk.stream,
                sequence: chunk.sequence,
                offset: chunk.offset,
                bytes: chunk.bytes,
            }),
            FromRunner::Eof(eof) if self.is_new(eof.sequence) => Step::Item(Item::Eof {
                stream: eof.stream,
                sequence: eof.sequence,
                truncated: eof.truncated,
            }),
            FromRunner::Exit { notice, .. } if !self.exit_told => {
                self.exit_told = true;
                Step::Item(Item::Exit {
                    exit: notice.exit,
                    uncertain: notice.uncertain,
                    stopped: notice.stopped,
                })
            }
            FromRunner::InputAck(ack) if self.wire.take_answer(Sent::Write(ack.write_id)) => {
                Step::Item(Item::Input { write_id: ack.write_id, refused: ack.refused })
            }
            FromRunner::ResizeAck(ack) if self.wire.take_answer(Sent::Resize(ack.resize_id)) => {
                Step::Item(Item::Resized { resize_id: ack.resize_id, refused: ack.refused })
            }
            FromRunner::Finished { .. } => self.unlink(),
            FromRunner::Chunk(_)
            | FromRunner::Eof(_)
            | FromRunner::Exit { .. }
            | FromRunner::InputAck(_)
            | FromRunner::ResizeAck(_) => Step::Again,
        }
    }

    /// Says whether a record was not given out before. One that comes again after a link broke and
    /// was acknowledged meanwhile is acknowledged again: the runner has not heard of it.
    fn is_new(&mut self, sequence: u64) -> bool {
        if sequence > self.seen_through {
            self.seen_through = sequence;
            return true;
        }
        if sequence <= self.acknowledged_through {
            self.tell_acknowledged(sequence);
        }
        false
    }

    fn tell_acknowledged(&self, through: u64) {
        let generation = self.generation;
        if let Ok(frame) = (FromRecipient::Ack { generation, through }).into_frame() {
            // A link that is broken is found broken by the next read, and this told again.
            self.wire.with(|link| link.queue(frame).is_ok() && link.flush().is_ok());
        }
    }

    fn unlink(&mut self) -> Step {
        self.lost_answers.append(&mut self.wire.close());
        self.phase = Phase::Unlinked;
        self.was_unlinked = true;
        Step::Again
    }

    fn open_log(&mut self, row: &Row) -> Result<Step, Refusal> {
        let log = match self.service.attempt_directory(row)? {
            Some(directory) => FromLog::open(directory, self.acknowledged_through)?,
            None => None,
        };
        self.phase = Phase::Log(log.map(Box::new));
        Ok(Step::Again)
    }

    fn next_of_log(&mut self) -> Result<Step, Refusal> {
        let Phase::Log(log) = &mut self.phase else { return Ok(Step::Again) };
        if let Some(log) = log {
            match log.next(self.seen_through)? {
                Some(Item::Gap { bytes }) => return Ok(Step::Item(Item::Gap { bytes })),
                Some(item) => {
                    self.seen_through = log.read_through();
                    return Ok(Step::Item(item));
                }
                None => {}
            }
        }
        if !self.exit_told {
            self.exit_told = true;
            if let Some(exit) = self.recorded_exit()? {
                return Ok(Step::Item(exit));
            }
        }
        Ok(self.over(Item::End))
    }

    /// Tells the exit as it is recorded once the runner is gone.
    fn recorded_exit(&self) -> Result<Option<Item>, Refusal> {
        let row = self.service.reconcile_row(self.service.row(&self.attempt_id)?)?;
        let had_child = row.child != ChildIdentity::None;
        let ended = match row.state.execution {
            ExecutionState::Exited => had_child,
            ExecutionState::Uncertain => true,
            ExecutionState::Intended
            | ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping => false,
        };
        if !ended {
            return Ok(None);
        }
        let evidence = self.service.inner.reader.all_evidence(&self.attempt_id)?;
        let stopped = evidence.iter().any(|row| row.kind == EvidenceKind::StopRequested);
        Ok(Some(Item::Exit { exit: row.exit, uncertain: row.exit.is_none(), stopped }))
    }

    fn over(&mut self, last: Item) -> Step {
        let log = match std::mem::replace(&mut self.phase, Phase::Unlinked) {
            Phase::Log(mut log) | Phase::Over(_, mut log) => {
                if let Some(log) = &mut log {
                    // Another recipient may go on with it.
                    log.let_go();
                }
                log
            }
            Phase::Unlinked | Phase::Linked(_) => None,
        };
        self.phase = Phase::Over(last.clone(), log);
        Step::Item(last)
    }
}

fn unanswered(lost: Sent) -> Item {
    match lost {
        Sent::Write(write_id) => Item::Input { write_id, refused: Some(InputRefused::Uncertain) },
        Sent::Resize(resize_id) => {
            Item::Resized { resize_id, refused: Some(ResizeRefused::Uncertain) }
        }
    }
}

/// Where a recipient goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resume {
    pub(crate) consumed_through: u64,
    pub(crate) last_write_id: u64,
}
