//! The end of a runner: the proof, the last row, and nothing left behind.

use crate::refused::NotStarted;
use crate::runner::Runner;
use crate::scribe::Entry;
use placement_contract::{CleanupScope, EvidenceKind, ExecutionState, StreamName};
use placement_crash::point;
use placement_homes::{AttemptDir, StreamEnd};
use placement_identity::{GroupPresence, ProcessIdentity, observe_group};
use placement_protocol::{FromRunner, OrderReply};
use placement_store::{Draft, ExitRecord};
use placement_transport::Link;
use std::time::{Duration, Instant};

/// How long a proof of an empty tree or group is sought: zombies of others go away slowly.
const PROOF: Duration = Duration::from_secs(5);
const PROOF_ROUND: Duration = Duration::from_millis(5);
/// How long the store is waited for at the very end, before an exit record is left instead.
const STORE: Duration = Duration::from_secs(10);
/// How long a recipient that still has something to acknowledge is heard after it was told the end:
/// one that is awake answers at once, and nobody is to wait for one that is not.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl Runner {
    /// Tells the host that the program runs, and lets go of the port.
    pub(crate) fn acknowledge_start(&mut self) {
        let attempt_id = self.order.attempt_id.clone();
        if let Some(port) = self.port.take() {
            answer(port, &OrderReply::Started { attempt_id });
        }
    }

    /// Records the end of an attempt without a child, and tells the host.
    pub(crate) fn refuse(&mut self, not_started: &NotStarted) {
        self.scribe.push(Entry::rows(not_started.rows()).durable());
        self.state = ExecutionState::Exited;
        self.deadline = None;
        let now = Instant::now();
        for stream in StreamName::ALL.iter().copied() {
            let outcome = self.output.end(stream, StreamEnd::Whole, now);
            self.note_spool(outcome);
        }
    }

    /// Records the proof and the end in one transaction, closes the log and the sockets.
    pub(crate) fn finish(mut self, not_started: Option<&NotStarted>) {
        // Before the leaf goes with its counts.
        self.record_oom_kills();
        let mut rows = self.proof_rows();
        point("runner.scope.proven");
        rows.push(Draft::new(EvidenceKind::RunnerFinished, self.closing_phrase()));
        self.scribe.push(Entry::rows(rows));
        // A log that cannot say that it ended is known to be by the runner's lock.
        self.output.finish().ok();
        point("runner.log.ended");
        self.await_scribe();
        // Acknowledgments that have come are taken; later ones go to the log.
        self.turn(Some(Instant::now()));
        if let (Some(port), Some(not_started)) = (self.port.take(), not_started) {
            answer(port, &OrderReply::Refused(not_started.refusal()));
        }
        self.tell_exit();
        let generation = self.desk.generation();
        self.desk.tell(FromRunner::Finished { generation });
        self.take_last_acknowledgments();
        // Names that stay are removed with the directory; nobody answers behind them.
        self.attempt_dir.remove_sockets().ok();
        point("runner.sockets.removed");
        let Self { scribe, attempt_dir, alive, .. } = self;
        leave_record(scribe.close(), &attempt_dir);
        // What stays is removed by the cleanup.
        attempt_dir.release_exit_reserve().ok();
        drop(alive);
        point("runner.alive.released");
    }

    /// Hears the recipient out, until it has acknowledged everything or closes its link.
    ///
    /// What it acknowledged must not come again, and it may be killed before it finds that nobody
    /// heard that, and writes it into the log itself.
    fn take_last_acknowledgments(&mut self) {
        let by = Instant::now() + LAST_WORDS;
        while self.desk.data().is_some() && !self.output.is_acknowledged() && Instant::now() < by {
            self.turn(Some(by));
        }
        point("runner.last-words.taken");
    }

    /// Serves its sockets until everything is written, at most ten seconds.
    fn await_scribe(&mut self) {
        let by = Instant::now() + STORE;
        while !self.scribe.is_idle() {
            if Instant::now() >= by {
                self.scribe.give_up();
                return;
            }
            self.turn(Some(by));
        }
    }

    fn proof_rows(&mut self) -> Vec<Draft> {
        if let Some(gone) = self.gone_without_child.take() {
            return vec![Draft::tree_gone(gone.mechanism(), gone.proof())];
        }
        if self.tree.is_none() {
            return Vec::new();
        }
        match self.request.required_cleanup {
            CleanupScope::DirectProcess => Vec::new(),
            CleanupScope::ProcessGroup => self.group_proof(),
            CleanupScope::ContainedTree => self.tree_proof(),
        }
    }

    fn tree_proof(&mut self) -> Vec<Draft> {
        let by = Instant::now() + PROOF;
        loop {
            let tree = self.tree.as_mut().expect("looked at by the caller");
            if let Ok(gone) = tree.prove_gone() {
                return vec![Draft::tree_gone(gone.mechanism(), gone.proof())];
            }
            if Instant::now() >= by {
                return Vec::new();
            }
            self.turn(Some(Instant::now() + PROOF_ROUND));
        }
    }

    fn group_proof(&mut self) -> Vec<Draft> {
        let by = Instant::now() + PROOF;
        let Ok(here) = ProcessIdentity::this_process() else { return Vec::new() };
        let group = self.tree.as_ref().expect("looked at by the caller").leader().pid();
        loop {
            self.tree.as_ref().expect("looked at by the caller").reap_orphans().ok();
            match observe_group(group, &here.boot_id, &here.observer) {
                GroupPresence::Absent(proof) => {
                    return vec![Draft::new(EvidenceKind::GroupGone, proof.because())];
                }
                GroupPresence::Members(_)
                | GroupPresence::ZombiesOnly
                | GroupPresence::Unknown(_) => {}
            }
            if Instant::now() >= by {
                return Vec::new();
            }
            self.turn(Some(Instant::now() + PROOF_ROUND));
        }
    }

    fn closing_phrase(&self) -> String {
        let unacknowledged = self.output.unacknowledged_bytes();
        let through = self.output.consumed_through();
        format!("{unacknowledged} bytes unacknowledged, consumed through {through}")
    }
}

/// Answers on the host port; a host that is gone needs no answer.
pub(crate) fn answer(mut port: Link, reply: &OrderReply) {
    let frame = reply.to_frame().expect("an answer fits a frame");
    port.send(frame, Instant::now() + Duration::from_secs(1)).ok();
}

/// Leaves what could not be committed where a reconcile finds it.
pub(crate) fn leave_record(record: Option<ExitRecord>, attempt_dir: &AttemptDir) {
    if let Some(Ok(bytes)) = record.map(|record| record.encode()) {
        // If even this fails, the attempt stays as it is recorded, and uncertain.
        attempt_dir.write_exit_record(&bytes).ok();
        point("runner.record.left");
    }
}
