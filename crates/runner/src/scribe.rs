//! The second thread: it alone touches the store and takes its lock.
//!
//! The loop hands rows over and goes on; only a step that needs its commit first waits for an
//! answer, and goes on serving its sockets meanwhile. While the store cannot be written the rows
//! wait in order; what is still unwritten when the runner ends becomes its exit record.

use placement_contract::{AttemptId, Clock, EvidenceKind, ExecutionState, Generation, Refusal};
use placement_process::give_back_memory;
use placement_store::{
    Change, Draft, Durability, ExitRecord, Fields, OpenError, RecordError, RecordedRow, Row, Store,
    StoreError, StorePaths,
};
use rustix::event::EventfdFlags;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Changes that may wait for the store. An attempt makes some twenty in its life; what a restless
/// host adds beyond is refused where it comes in.
const QUEUE_MAX: usize = 256;
/// How long the store is left alone after a failure that is not a busy lock.
const RETRY: Duration = Duration::from_millis(250);
/// How long nothing comes before the store is closed: a connection takes a megabyte, an attempt has
/// nothing to record for hours, and opening it again takes some milliseconds.
const IDLE: Duration = Duration::from_secs(1);

/// Rows to record, with what goes with them.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) expect: Option<&'static [ExecutionState]>,
    pub(crate) expect_generation: Option<Generation>,
    pub(crate) rows: Vec<Draft>,
    pub(crate) fields: Fields,
    pub(crate) durability: Durability,
}

impl Entry {
    /// One row that may be lost by power failure, never by the death of a process.
    pub(crate) fn row(kind: EvidenceKind, detail: impl Into<String>) -> Self {
        Self::rows(vec![Draft::new(kind, detail)])
    }

    /// Several rows in one transaction.
    pub(crate) fn rows(rows: Vec<Draft>) -> Self {
        Self {
            expect: None,
            expect_generation: None,
            rows,
            fields: Fields::default(),
            durability: Durability::Normal,
        }
    }

    /// Records them only in these states.
    pub(crate) fn expecting(mut self, states: &'static [ExecutionState]) -> Self {
        self.expect = Some(states);
        self
    }

    /// Records them only under this attachment.
    pub(crate) fn under(mut self, generation: Generation) -> Self {
        self.expect_generation = Some(generation);
        self
    }

    /// Records these fields with them.
    pub(crate) fn with(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// Makes them survive a power failure.
    pub(crate) fn durable(mut self) -> Self {
        self.durability = Durability::Durable;
        self
    }
}

/// Why rows were not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRecorded {
    /// The store could not be opened.
    #[error(transparent)]
    Open(Box<OpenError>),
    /// What is recorded stands against it, or the store failed for good.
    #[error(transparent)]
    Record(Box<RecordError>),
    /// The store could not be written in time; the rows go into the exit record.
    #[error("the store could not be written in time")]
    GivenUp,
}

impl From<NotRecorded> for Refusal {
    fn from(error: NotRecorded) -> Self {
        match error {
            NotRecorded::Open(error) => (*error).into(),
            NotRecorded::Record(error) => (*error).into(),
            NotRecorded::GivenUp => {
                Self::new(placement_contract::Code::Storage, NotRecorded::GivenUp.to_string())
            }
        }
    }
}

/// An answer that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[cfg(test)]
impl Ticket {
    /// Makes the ticket with a number.
    pub(crate) const fn numbered(number: u64) -> Self {
        Self(number)
    }
}

/// The loop's end of the queue.
#[derive(Debug)]
pub(crate) struct Scribe {
    clock: Arc<dyn Clock>,
    /// Boxed: the queue holds room for all of them at once.
    entries: Option<SyncSender<Box<Numbered>>>,
    answers: Receiver<(Ticket, Result<Row, NotRecorded>)>,
    arrived: BTreeMap<Ticket, Result<Row, NotRecorded>>,
    wake: Arc<OwnedFd>,
    give_up: Arc<AtomicBool>,
    last: u64,
    answered: u64,
    /// The newest ticket that the thread has answered; it answers in order.
    newest: u64,
    thread: Option<JoinHandle<Option<ExitRecord>>>,
}

#[derive(Debug)]
struct Numbered {
    ticket: Ticket,
    at: placement_contract::Timestamp,
    entry: Entry,
}

impl Scribe {
    /// Starts the thread; it opens the store with the first rows.
    pub(crate) fn start(
        paths: StorePaths,
        attempt_id: AttemptId,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (entries, queue) = sync_channel(QUEUE_MAX);
        let (answer, answers) = channel();
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let wake = Arc::new(wake);
        let give_up = Arc::new(AtomicBool::new(false));
        let writing = Writing {
            paths,
            attempt_id,
            clock: Arc::clone(&clock),
            answer,
            wake: Arc::clone(&wake),
            give_up: Arc::clone(&give_up),
            store: None,
            committed: 0,
            unwritten: None,
        };
        let thread = std::thread::Builder::new()
            .name("scribe".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || writing.run(&queue))?;
        Ok(Self {
            clock,
            entries: Some(entries),
            answers,
            arrived: BTreeMap::new(),
            wake,
            give_up,
            last: 0,
            answered: 0,
            newest: 0,
            thread: Some(thread),
        })
    }

    /// Hands rows over and returns the ticket of their answer.
    ///
    /// Never blocks. A full queue is a defect of the caller's bounds; the rows are then answered as
    /// given up.
    pub(crate) fn push(&mut self, entry: Entry) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        let numbered = Box::new(Numbered { ticket, at: self.clock.now(), entry });
        let taken = match &self.entries {
            Some(entries) => entries.try_send(numbered).is_ok(),
            None => false,
        };
        if !taken {
            self.arrived.insert(ticket, Err(NotRecorded::GivenUp));
            self.answered += 1;
        }
        ticket
    }

    /// Says whether a few more rows find a place.
    pub(crate) fn has_room(&self) -> bool {
        self.last - self.answered < (QUEUE_MAX / 2) as u64
    }

    /// Borrows the descriptor that is readable when an answer has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes what has come.
    pub(crate) fn collect(&mut self) {
        let mut count = [0; 8];
        rustix::io::read(&*self.wake, &mut count).ok();
        while let Ok((ticket, answer)) = self.answers.try_recv() {
            self.answered += 1;
            self.newest = ticket.0;
            self.arrived.insert(ticket, answer);
        }
    }

    /// Returns the answer to a ticket once it has come.
    pub(crate) fn answer(&mut self, ticket: Ticket) -> Option<Result<Row, NotRecorded>> {
        let answer = self.arrived.remove(&ticket);
        if answer.is_some() {
            // Answers that nobody waits for are those before it.
            self.arrived.retain(|other, _| *other > ticket);
        }
        answer
    }

    /// Says whether the thread is done with a ticket, whatever came of it; takes no answer away.
    pub(crate) const fn is_answered(&self, ticket: Ticket) -> bool {
        ticket.0 <= self.newest
    }

    /// Says whether everything that was handed over was answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.answered == self.last
    }

    /// Lets what cannot be written now become the exit record.
    pub(crate) fn give_up(&self) {
        self.give_up.store(true, Ordering::Relaxed);
    }

    /// Ends the thread and returns what could not be written.
    pub(crate) fn close(mut self) -> Option<ExitRecord> {
        self.entries = None;
        // A panic of the thread has left nothing that could be told.
        self.thread.take().and_then(|thread| thread.join().ok()).flatten()
    }
}

/// The thread's own state.
struct Writing {
    paths: StorePaths,
    attempt_id: AttemptId,
    clock: Arc<dyn Clock>,
    answer: Sender<(Ticket, Result<Row, NotRecorded>)>,
    wake: Arc<OwnedFd>,
    give_up: Arc<AtomicBool>,
    store: Option<Store>,
    committed: u64,
    unwritten: Option<ExitRecord>,
}

impl Writing {
    fn run(mut self, queue: &Receiver<Box<Numbered>>) -> Option<ExitRecord> {
        while let Some(numbered) = self.next(queue) {
            let ticket = numbered.ticket;
            let answer = self.write(*numbered);
            // The loop that would hear it may have ended.
            self.answer.send((ticket, answer)).ok();
            rustix::io::write(&*self.wake, &1_u64.to_ne_bytes()).ok();
        }
        self.unwritten
    }

    /// Waits for rows; with the store closed where they do not come soon.
    fn next(&mut self, queue: &Receiver<Box<Numbered>>) -> Option<Box<Numbered>> {
        if self.store.is_some() {
            match queue.recv_timeout(IDLE) {
                Ok(numbered) => return Some(numbered),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.store = None;
                    give_back_memory();
                }
            }
        }
        queue.recv().ok()
    }

    fn write(&mut self, numbered: Numbered) -> Result<Row, NotRecorded> {
        if self.unwritten.is_some() {
            return Err(self.keep(numbered));
        }
        loop {
            match self.try_write(&numbered.entry) {
                Ok(row) => {
                    self.committed = row.evidence_count;
                    return Ok(row);
                }
                Err(error) => match Failure::of(&error, self.committed > 0) {
                    Failure::Refused => return Err(error),
                    Failure::ForGood => return Err(self.keep(numbered)),
                    Failure::Busy | Failure::Passing if self.give_up.load(Ordering::Relaxed) => {
                        return Err(self.keep(numbered));
                    }
                    Failure::Busy => {}
                    Failure::Passing => std::thread::sleep(RETRY),
                },
            }
        }
    }

    fn try_write(&mut self, entry: &Entry) -> Result<Row, NotRecorded> {
        if self.store.is_none() {
            let opened = Store::open_ready(&self.paths, Arc::clone(&self.clock))
                .map_err(|error| NotRecorded::Open(Box::new(error)))?;
            self.store = Some(opened.with_lock_wait(Duration::from_millis(500)));
        }
        let store = self.store.as_ref().expect("opened above");
        let change = Change {
            attempt_id: &self.attempt_id,
            expect: entry.expect,
            expect_generation: entry.expect_generation,
            rows: &entry.rows,
            fields: &entry.fields,
        };
        store
            .record(&change, entry.durability)
            .map_err(|error| NotRecorded::Record(Box::new(error)))
    }

    /// Keeps rows for the exit record, in their order.
    fn keep(&mut self, numbered: Numbered) -> NotRecorded {
        let record = self.unwritten.get_or_insert_with(|| ExitRecord {
            attempt_id: self.attempt_id.clone(),
            based_on_count: self.committed,
            rows: Vec::new(),
            fields: Fields::default(),
        });
        record.rows.extend(numbered.entry.rows.into_iter().map(|draft| RecordedRow {
            kind: draft.kind,
            detail: draft.detail,
            at: numbered.at.clone(),
        }));
        merge(&mut record.fields, numbered.entry.fields);
        NotRecorded::GivenUp
    }
}

fn merge(kept: &mut Fields, new: Fields) {
    let Fields {
        runner,
        child,
        init,
        attachment,
        mechanism,
        leaf_path,
        leaf_id,
        home_key,
        tmp_key,
    } = new;
    kept.runner = runner.or(kept.runner.take());
    kept.child = child.or(kept.child.take());
    kept.init = init.or(kept.init.take());
    kept.attachment = attachment.or(kept.attachment.take());
    kept.mechanism = mechanism.or(kept.mechanism);
    kept.leaf_path = leaf_path.or(kept.leaf_path.take());
    kept.leaf_id = leaf_id.or(kept.leaf_id);
    kept.home_key = home_key.or(kept.home_key.take());
    kept.tmp_key = tmp_key.or(kept.tmp_key.take());
}

/// What a failed write means for the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// Another writer holds the lock; the store has waited already.
    Busy,
    /// The same write may succeed later: a full disk, a file system that is read-only for a while.
    Passing,
    /// No write of this runner will succeed: another version has changed the store.
    ForGood,
    /// The rows do not fit what is recorded.
    Refused,
}

impl Failure {
    /// Tells what a failure means; a store that was written before and does not open again is like one
    /// that cannot be written.
    fn of(error: &NotRecorded, was_written: bool) -> Self {
        match error {
            NotRecorded::Open(error) if was_written => match &**error {
                OpenError::Busy => Self::Busy,
                OpenError::ReadOnly
                | OpenError::Full
                | OpenError::Boot(_)
                | OpenError::Io { .. }
                | OpenError::Sql { .. } => Self::Passing,
                OpenError::Missing
                | OpenError::NotAFile
                | OpenError::Lost
                | OpenError::NotADatabase
                | OpenError::Damaged
                | OpenError::Foreign
                | OpenError::Malformed
                | OpenError::Newer { .. }
                | OpenError::NotMigrated { .. }
                | OpenError::OtherMachine
                | OpenError::Migration(_) => Self::ForGood,
            },
            NotRecorded::Record(error) => match &**error {
                RecordError::Store(StoreError::Busy) => Self::Busy,
                RecordError::Store(
                    StoreError::Full
                    | StoreError::ReadOnly
                    | StoreError::Lock(_)
                    | StoreError::Sql { .. },
                ) => Self::Passing,
                RecordError::Store(StoreError::SchemaChanged { .. }) => Self::ForGood,
                // Somebody may put an intact copy in its place.
                RecordError::Store(StoreError::Damaged | StoreError::Corrupt { .. })
                    if was_written =>
                {
                    Self::ForGood
                }
                // What could not be synced is recorded all the same.
                RecordError::Store(
                    StoreError::Damaged
                    | StoreError::Corrupt { .. }
                    | StoreError::TooLarge { .. }
                    | StoreError::Sync(_),
                )
                | RecordError::Refused(_)
                | RecordError::Exit
                | RecordError::Expected { .. }
                | RecordError::Generation { .. }
                | RecordError::AlreadySet { .. }
                | RecordError::NotFound => Self::Refused,
            },
            NotRecorded::Open(_) | NotRecorded::GivenUp => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_store_keeps_back_what_comes_after_the_claim_and_refuses_the_claim() {
        let damages: [fn() -> StoreError; 2] =
            [|| StoreError::Damaged, || StoreError::Corrupt { column: "program" }];
        for damage in damages {
            let error = NotRecorded::Record(Box::new(RecordError::Store(damage())));
            assert_eq!(Failure::of(&error, true), Failure::ForGood);
            assert_eq!(Failure::of(&error, false), Failure::Refused);
        }
    }
}
