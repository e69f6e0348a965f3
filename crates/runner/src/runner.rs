//! The state of one attempt's runner, and one turn of its loop.

use crate::closing::Closing;
use crate::desk::{Desk, Seat};
use crate::input::Input;
use crate::output::{Output, SpoolFailed};
use crate::scribe::{Entry, NotRecorded, Scribe, Ticket};
use crate::stop::{Stop, StopCause};
use crate::window::Window;
use placement_contract::{
    EvidenceKind, ExecutionState, Exit, LaunchRequest, Mechanism, OnHostLoss, StreamName,
};
use placement_executable::KnownDigests;
use placement_homes::{AliveLock, AttemptDir, Root, StreamEnd};
use placement_process::{Released, Signals, Tree, TreeEvent, TreeGone};
use placement_protocol::{ExitNotice, FromRunner, LaunchOrder, StopMode, Writes};
use placement_store::Row;
use placement_transport::Link;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Everything that one attempt's runner holds.
pub(crate) struct Runner {
    pub(crate) order: LaunchOrder,
    pub(crate) request: LaunchRequest,
    pub(crate) grants: Vec<placement_resources::ResolvedGrant>,
    pub(crate) mechanism: Option<Mechanism>,
    /// The root of the host, until the intent is made real.
    pub(crate) root: Option<Root>,
    pub(crate) attempt_dir: AttemptDir,
    /// Digests of programs, until the program is measured.
    pub(crate) known_digests: Option<KnownDigests>,
    /// Held for life: its end proves the runner gone.
    pub(crate) alive: AliveLock,
    pub(crate) port: Option<Link>,
    pub(crate) signals: Signals,
    /// The pidfd of the host while it is there.
    pub(crate) host: Option<OwnedFd>,
    pub(crate) scribe: Scribe,
    pub(crate) desk: Desk,
    pub(crate) output: Output,
    pub(crate) input: Input,
    pub(crate) closing: Closing,
    pub(crate) writes: Writes,
    /// The newest write id that waits for the child.
    pub(crate) queued_write: u64,
    /// The write of which the child took a part; there is one at most, since its input is closed then.
    pub(crate) torn_write: Option<u64>,
    pub(crate) stop: Stop,
    pub(crate) state: ExecutionState,
    pub(crate) exit: Option<Exit>,
    pub(crate) tree: Option<Tree>,
    pub(crate) gate: Gate,
    /// Processes of the tree that the kernel killed for want of memory, as far as they are recorded.
    pub(crate) oom_kills: u64,
    /// The leaf of a child that never ran, removed.
    pub(crate) gone_without_child: Option<TreeGone>,
    pub(crate) pipes: Pipes,
    /// The child's terminal, until it has ended.
    pub(crate) window: Option<Window>,
    pub(crate) deadline: Option<Instant>,
    /// A child or an orphan has ended since the last reaping.
    pub(crate) orphans_ended: bool,
    pub(crate) spool_failed: bool,
    /// Bytes came from a pipe in the last turn.
    pub(crate) bytes_came: bool,
    pub(crate) scratch: Box<[u8]>,
}

/// Whether the program may run, whatever is recorded by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It cannot: no process was made, or it waits.
    Shut,
    /// It may.
    Open,
}

/// The child's output pipes, our ends.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    /// The streams were cut off: what still comes is read and dropped, so that whoever holds a pipe
    /// is neither killed by it nor blocked.
    pub(crate) discarding: bool,
}

/// What a turn waits for besides the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polled {
    Scribe,
    Signals,
    Host,
    Desk(Seat),
    Leader,
    Tree,
    Stdout,
    Stderr,
    Stdin,
    Exec,
}

/// What a turn also waits for, because its caller looks after it: what stays readable until somebody
/// does, such as an ended leader, would end every other wait at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Also<'a> {
    /// The sockets are all.
    Nothing,
    /// A process that is about to become the program.
    Exec(&'a Released),
    /// The end of the leader.
    Leader,
    /// The end of what the leader has left.
    Tree,
}

impl Runner {
    /// Waits until something happens or until the moment given, and serves everything that is ready.
    pub(crate) fn turn(&mut self, wake_at: Option<Instant>) {
        self.turn_with(wake_at, Also::Nothing);
    }

    /// As [`Runner::turn`], and ends when there is news of what the caller looks after.
    pub(crate) fn turn_with(&mut self, wake_at: Option<Instant>, also: Also<'_>) {
        let ready = self.poll(wake_at, also);
        let now = Instant::now();
        self.bytes_came = false;
        for polled in ready {
            match polled {
                Polled::Scribe => self.scribe.collect(),
                Polled::Signals => self.signalled(),
                Polled::Host => self.host_lost(),
                Polled::Desk(seat) => self.serve(seat, now),
                Polled::Stdout => self.read_pipe(StreamName::Stdout, now),
                Polled::Stderr => self.read_pipe(StreamName::Stderr, now),
                Polled::Stdin => self.write_input(),
                // Their owners look for themselves after the turn.
                Polled::Leader | Polled::Tree | Polled::Exec => {}
            }
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline_elapsed();
        }
        self.desk.expire(now);
        self.answer_late_closings(now);
        let settled = self.output.settle(now);
        self.note_spool(settled);
        self.send_output();
    }

    /// Hands rows over without waiting for them.
    pub(crate) fn record(&mut self, kind: EvidenceKind, detail: impl Into<String>) {
        self.scribe.push(Entry::row(kind, detail));
    }

    /// Waits for a commit, and serves everything meanwhile.
    pub(crate) fn commit(&mut self, entry: Entry, by: Instant) -> Result<Row, NotRecorded> {
        let ticket = self.scribe.push(entry);
        self.await_answer(ticket, by)
    }

    fn await_answer(&mut self, ticket: Ticket, by: Instant) -> Result<Row, NotRecorded> {
        loop {
            if let Some(answer) = self.scribe.answer(ticket) {
                return answer;
            }
            if Instant::now() >= by {
                self.scribe.give_up();
                // The scribe answers at once now, from its own memory.
                self.turn(None);
            } else {
                self.turn(Some(by));
            }
        }
    }

    /// Accepts a stop, from wherever it comes.
    pub(crate) fn request_stop(&mut self, mode: StopMode, grace: Duration, cause: StopCause) {
        let Some(detail) = self.stop.request(mode, grace, cause) else { return };
        let ticket = self.scribe.push(Entry::row(EvidenceKind::StopRequested, detail));
        if cause != StopCause::Unrecorded {
            self.stop.hold(ticket, Instant::now());
        }
        if !self.has_exited() {
            self.state = ExecutionState::Stopping;
        }
    }

    /// Says whether there was a child and it has ended, though perhaps nobody knows how.
    pub(crate) fn has_exited(&self) -> bool {
        self.tree.is_some() && self.state == ExecutionState::Exited
    }

    /// Tells the bound recipient how the child ended.
    pub(crate) fn tell_exit(&mut self) {
        if self.has_exited() {
            let uncertain = self.exit.is_none();
            let stopped = self.stop.is_requested();
            let notice = ExitNotice { exit: self.exit, uncertain, stopped };
            let generation = self.desk.generation();
            self.desk.tell(FromRunner::Exit { generation, notice });
        }
    }

    /// Sends what the window admits.
    pub(crate) fn send_output(&mut self) {
        if let Some(link) = self.desk.data()
            && let Err(failed) = self.output.send(link)
        {
            self.desk.drop_data();
            self.note_spool(Err(failed));
        }
        self.desk.flush_data();
        self.hear_last_words();
    }

    /// Records a failed spool once, until it works again.
    pub(crate) fn note_spool(&mut self, outcome: Result<(), SpoolFailed>) {
        match outcome {
            Ok(()) => self.spool_failed = self.spool_failed && self.output.is_held_up(),
            Err(failed) if !self.spool_failed => {
                self.spool_failed = true;
                self.record(EvidenceKind::SpoolFailed, failed.phrase());
            }
            Err(_) => {}
        }
    }

    fn poll(&self, wake_at: Option<Instant>, also: Also<'_>) -> Vec<Polled> {
        let watched = self.watched(also);
        let mut polled: Vec<PollFd<'_>> = watched
            .iter()
            .map(|(_, descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags))
            .collect();
        let now = Instant::now();
        let times = [
            wake_at,
            self.output.wake_at(),
            self.desk.wake_at(),
            self.closing.wake_at(),
            self.deadline,
        ];
        let left = times.into_iter().flatten().min().map(|at| at.saturating_duration_since(now));
        let left = left.map(|left| Timespec::try_from(left).unwrap_or(A_SECOND));
        // An interrupted poll is a turn without news.
        match rustix::event::poll(&mut polled, left.as_ref()) {
            Ok(0) | Err(_) => Vec::new(),
            Ok(_) => polled
                .iter()
                .zip(&watched)
                .filter(|(descriptor, _)| !descriptor.revents().is_empty())
                .map(|(_, (what, _, _))| *what)
                .collect(),
        }
    }

    fn watched<'a>(&'a self, also: Also<'a>) -> Vec<(Polled, BorrowedFd<'a>, PollFlags)> {
        let mut watched = vec![
            (Polled::Scribe, self.scribe.descriptor(), PollFlags::IN),
            (Polled::Signals, self.signals.descriptor(), PollFlags::IN),
        ];
        if let Some(host) = &self.host {
            watched.push((Polled::Host, host.as_fd(), PollFlags::IN));
        }
        for (seat, descriptor, for_writing) in self.desk.seats() {
            let flags = if for_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            watched.push((Polled::Desk(seat), descriptor, flags));
        }
        watched.extend(self.watched_also(also));
        for (what, pipe, stream) in [
            (Polled::Stdout, &self.pipes.stdout, StreamName::Stdout),
            (Polled::Stderr, &self.pipes.stderr, StreamName::Stderr),
        ] {
            if let Some(pipe) = pipe
                && (self.pipes.discarding || self.output.room(stream) > 0)
            {
                watched.push((what, pipe.as_fd(), PollFlags::IN));
            }
        }
        if let Some(stdin) = self.input.wants_write() {
            watched.push((Polled::Stdin, stdin, PollFlags::OUT));
        }
        watched
    }

    fn watched_also<'a>(&'a self, also: Also<'a>) -> Option<(Polled, BorrowedFd<'a>, PollFlags)> {
        match also {
            Also::Nothing => None,
            Also::Exec(released) => Some((Polled::Exec, released.descriptor(), PollFlags::IN)),
            Also::Leader => {
                let exit = self.tree.as_ref()?.leader().exit_descriptor();
                Some((Polled::Leader, exit, PollFlags::IN))
            }
            Also::Tree => match self.tree.as_ref()?.event()? {
                TreeEvent::Changed(events) => Some((Polled::Tree, events, PollFlags::PRI)),
                TreeEvent::Ended(end) => Some((Polled::Tree, end, PollFlags::IN)),
            },
        }
    }

    fn signalled(&mut self) {
        // What cannot be read now is readable again in the next turn.
        let arrived = self.signals.take().unwrap_or_default();
        self.orphans_ended |= arrived.child;
        if arrived.termination {
            let grace = self.request.timeouts.stop_grace();
            self.request_stop(StopMode::Cooperative, grace, StopCause::Terminated);
        }
    }

    pub(crate) fn host_lost(&mut self) {
        self.host = None;
        let rule = self.request.supervision.on_host_loss;
        // Until there is a child, what the launch needs comes from its host. The state does not tell:
        // it is starting until the start is committed, and the program runs by then.
        let stops = rule == OnHostLoss::Stop || self.gate == Gate::Shut;
        self.record(EvidenceKind::HostLost, if stops { "stopping" } else { "kept running" });
        self.desk.drop_data();
        self.hear_last_words();
        if stops {
            let grace = self.request.timeouts.stop_grace();
            self.request_stop(StopMode::Cooperative, grace, StopCause::HostLost);
        }
    }

    fn deadline_elapsed(&mut self) {
        self.deadline = None;
        if !self.has_exited() {
            let after = self.request.supervision.deadline_ms.unwrap_or_default();
            self.record(EvidenceKind::DeadlineElapsed, format!("after {after} ms"));
            let grace = self.request.timeouts.stop_grace();
            self.request_stop(StopMode::Cooperative, grace, StopCause::Deadline);
        }
    }

    /// Reads a pipe once, as far as there is room for what it holds.
    pub(crate) fn read_pipe(&mut self, stream: StreamName, now: Instant) {
        let room = self.output.room(stream);
        let is_window = self.has_window();
        let pipe = match stream {
            StreamName::Stdout => &mut self.pipes.stdout,
            StreamName::Stderr => &mut self.pipes.stderr,
        };
        let Some(source) = pipe else { return };
        let limit = if self.pipes.discarding { self.scratch.len() } else { room };
        let buffer = &mut self.scratch[..limit];
        if buffer.is_empty() {
            return;
        }
        let outcome = match rustix::io::read(source, buffer) {
            Ok(0) => {
                *pipe = None;
                self.output.end(stream, StreamEnd::Whole, now)
            }
            // A terminal says so once nobody holds its other end.
            Err(rustix::io::Errno::IO) if is_window => {
                *pipe = None;
                self.output.end(stream, StreamEnd::Whole, now)
            }
            Ok(_) if self.pipes.discarding => Ok(()),
            Ok(count) => {
                self.bytes_came = true;
                self.output.take(stream, &self.scratch[..count], now)
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(_) => {
                // A pipe has no other error; were there one, its bytes would be missing.
                *pipe = None;
                self.output.end(stream, StreamEnd::Truncated, now)
            }
        };
        self.note_spool(outcome);
    }
}

const A_SECOND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
