//! A runner as it writes the store, holds its lock and answers its control socket, one step at a
//! time.

use super::processes::Stubborn;
use placement_contract::attempt::RunnerStatus;
use placement_contract::{
    AttemptId, Clock, EvidenceKind, ExecutionState, Generation, Mechanism, StreamName,
};
use placement_homes::{AliveLock, AttemptDir, LogWriter, StreamEnd};
use placement_protocol::{
    AttachRefused, AttachReply, ControlAnswer, ControlCall, ControlReply, ControlRequest, LinkKind,
    StdinReply, StopReply, Token,
};
use placement_store::{
    Change, Draft, Durability, ExitRecord, Fields, RecordError, RecordedRow, Store,
};
use placement_transport::{Filled, Gate, Link, Listener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How far a runner has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Claimed,
    Creating,
    Identified,
    Started,
    Exited,
}

/// What became of rows that a runner had to see recorded before it went on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    Yes,
    /// The store could not be written.
    Later,
    /// What is recorded stands against it.
    Never,
}

/// One runner that lives.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) id: AttemptId,
    pub(super) token: Token,
    pub(super) directory: AttemptDir,
    pub(super) _alive: AliveLock,
    pub(super) control: Listener,
    pub(super) log: LogWriter,
    pub(super) generation: Generation,
    pub(super) mechanism: Option<Mechanism>,
    pub(super) phase: Phase,
    pub(super) child: Option<Stubborn>,
    pub(super) stop_requested: bool,
    /// It takes no stop once its child runs, as one does that hangs.
    pub(super) stubborn: bool,
    /// Rows that the store did not take yet.
    pub(super) unwritten: Vec<Draft>,
    pub(super) committed: u64,
}

impl Runner {
    /// Records rows without which it does not go on.
    pub(super) fn commit(
        &mut self,
        kind: EvidenceKind,
        detail: &str,
        fields: &Fields,
        expect: Option<&[ExecutionState]>,
    ) -> Recorded {
        if !self.flush() {
            return Recorded::Later;
        }
        let rows = [Draft::new(kind, detail)];
        match self.record(&rows, fields, expect) {
            Ok(()) => Recorded::Yes,
            Err(RecordError::Store(_)) => Recorded::Later,
            Err(_) => Recorded::Never,
        }
    }

    /// Hands rows over: they are recorded in their order, now or later.
    pub(super) fn push(&mut self, rows: impl IntoIterator<Item = Draft>) {
        self.unwritten.extend(rows);
        self.flush();
    }

    /// Says whether everything is recorded.
    pub(super) fn flush(&mut self) -> bool {
        while let Some(next) = self.unwritten.first().cloned() {
            // What stands against a row is recorded; the row is dropped, as a runner does.
            if let Err(RecordError::Store(_)) = self.record(&[next], &Fields::default(), None) {
                return false;
            }
            self.unwritten.remove(0);
        }
        true
    }

    fn record(
        &mut self,
        rows: &[Draft],
        fields: &Fields,
        expect: Option<&[ExecutionState]>,
    ) -> Result<(), RecordError> {
        let change = Change { attempt_id: &self.id, expect, expect_generation: None, rows, fields };
        self.committed = self.store.record(&change, Durability::Normal)?.evidence_count;
        Ok(())
    }

    /// Ends in order: what is not recorded goes into its exit record.
    pub(super) fn end(mut self) {
        for stream in [StreamName::Stdout, StreamName::Stderr] {
            self.log.append_end(stream, StreamEnd::Whole).ok();
        }
        self.log.mark_ended().ok();
        self.push([Draft::new(EvidenceKind::RunnerFinished, "in order")]);
        if !self.unwritten.is_empty() {
            let at = self.clock.now();
            let row = |draft: Draft| RecordedRow {
                kind: draft.kind,
                detail: draft.detail,
                at: at.clone(),
            };
            let record = ExitRecord {
                attempt_id: self.id.clone(),
                based_on_count: self.committed,
                rows: std::mem::take(&mut self.unwritten).into_iter().map(row).collect(),
                fields: Fields::default(),
            };
            self.directory.write_exit_record(&record.encode().unwrap()).unwrap();
        }
        self.directory.remove_sockets().unwrap();
    }

    fn answer(&mut self, call: ControlCall) -> (Generation, ControlAnswer) {
        match call {
            ControlCall::Status => (self.generation, ControlAnswer::Status(self.status())),
            ControlCall::CloseStdin => {
                let reply = StdinReply { closed: true, reason: None };
                (self.generation, ControlAnswer::CloseStdin(reply))
            }
            ControlCall::Stop(_) => {
                let accepted = self.take_stop();
                let execution = self.state();
                let reply = StopReply { accepted, recorded: accepted, execution };
                (self.generation, ControlAnswer::Stop(reply))
            }
            ControlCall::Attach(attach) => {
                let fenced = attach.generation > self.generation;
                if fenced {
                    self.generation = attach.generation;
                }
                let reply = AttachReply {
                    fenced,
                    refused: (!fenced).then_some(AttachRefused::NotNewer),
                    consumed_through: self.log.consumed_through(),
                    last_write_id: 0,
                };
                let of = if fenced { attach.generation } else { self.generation };
                (of, ControlAnswer::Attach(reply))
            }
        }
    }

    fn take_stop(&mut self) -> bool {
        if self.phase == Phase::Exited || self.stop_requested {
            return self.flush();
        }
        if self.stubborn && self.phase >= Phase::Identified {
            return false;
        }
        let asked = Draft::new(EvidenceKind::StopRequested, "by control");
        if !self.flush() || self.record(&[asked], &Fields::default(), None).is_err() {
            return false;
        }
        self.stop_requested = true;
        true
    }

    fn state(&self) -> ExecutionState {
        match self.phase {
            _ if self.stop_requested => ExecutionState::Stopping,
            Phase::Claimed | Phase::Creating | Phase::Identified => ExecutionState::Starting,
            Phase::Started => ExecutionState::Running,
            Phase::Exited => ExecutionState::Exited,
        }
    }

    fn status(&self) -> RunnerStatus {
        RunnerStatus {
            execution: self.state(),
            exit: None,
            eof_seen: 0,
            unacknowledged_bytes: self.log.unacknowledged_payload_bytes(),
            output_full: false,
            generation: self.generation,
            descendants: None,
        }
    }
}

/// The runners that live, each behind a lock of its own.
pub(super) type Living = Arc<Mutex<Vec<Arc<Mutex<Option<Runner>>>>>>;

/// Answers for every runner that lives until it is told to end.
pub(super) fn serve(living: &Living, end: &AtomicBool) {
    let mut links: Vec<(Arc<Mutex<Option<Runner>>>, Link)> = Vec::new();
    while !end.load(Ordering::SeqCst) {
        let runners = living.lock().unwrap().clone();
        for cell in &runners {
            while let Some(link) = accept(cell) {
                links.push((Arc::clone(cell), link));
            }
        }
        links.retain_mut(|(cell, link)| reply(cell, link));
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn accept(cell: &Mutex<Option<Runner>>) -> Option<Link> {
    let guard = cell.lock().unwrap();
    let runner = guard.as_ref()?;
    let mut link = Link::new(runner.control.accept().ok()??, LinkKind::Control);
    let by = Instant::now() + crate::testing::PATIENCE;
    Gate::attempt(LinkKind::Control, &runner.id, &runner.token).admit(&mut link, by).ok()?;
    Some(link)
}

/// Answers what has come; says whether the link goes on.
fn reply(cell: &Mutex<Option<Runner>>, link: &mut Link) -> bool {
    let mut guard = cell.lock().unwrap();
    let Some(runner) = guard.as_mut() else { return false };
    match link.fill() {
        Err(_) => return false,
        Ok(Filled::Nothing) => return true,
        Ok(Filled::Bytes) => {}
    }
    while let Ok(Some(frame)) = link.next_frame() {
        drop(link.take_descriptor());
        let request = ControlRequest::from_frame(&frame).unwrap();
        let (generation, answer) = runner.answer(request.call);
        let reply = ControlReply {
            attempt_id: runner.id.clone(),
            generation,
            probe: request.probe,
            answer,
        };
        let by = Instant::now() + crate::testing::PATIENCE;
        if link.send(reply.to_frame().unwrap(), by).is_err() {
            return false;
        }
    }
    true
}
