//! Ending an attempt, by its runner where one lives and without one where it is proven gone.

use crate::Service;
use crate::control::NoAnswer;
use crate::limits::{LOOK, STOP_RECORDED};
use crate::reconcile::{leader_seen, oldest_start_ticks, recorded_tree};
use crate::refusal::runner_silent;
use crate::service::Found;
use crate::survivors::{self, Processes};
use crate::tree::{RecordedTree, TreeEnd, end_tree};
use crate::verdict::{LeaderSeen, RunnerSeen};
use crate::wait::wait_readable;
use placement_contract::{Attempt, AttemptId, CleanupState, EvidenceKind, ExecutionState, Refusal};
use placement_crash::point;
use placement_identity::{Presence, Signal, Verified};
use placement_process::{GroupSignalError, signal_group_through_pidfd};
use placement_protocol::{Stop, StopMode};
use placement_store::{ChildIdentity, Draft, Durability, Fields, Row};
use std::time::Instant;

/// How often a stop that was overtaken by somebody else's commit begins again.
const ROUNDS_MAX: usize = 8;

/// What a stop does where no runner and no handle of the tree is left: with an uncertain attempt,
/// and with an exited one whose required scope is not proven gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUncertain {
    /// Nothing.
    Leave,
    /// It kills whatever carries the attempt's marker.
    EndSurvivors,
}

impl Service {
    /// Asks for the end of an attempt; a second, forced stop overtakes the grace of the first.
    ///
    /// An intent is completed at once and durably. A live attempt is stopped by its runner, which
    /// records it; without a runner the leader is signalled through a handle that was compared
    /// first, never by a number. Returns what is recorded then, which may still be the state before.
    ///
    /// # Errors
    /// `NOT_FOUND`; UNAVAILABLE where a living runner does not answer and nothing could be signalled;
    /// STORAGE.
    pub fn stop(
        &self,
        attempt_id: &AttemptId,
        mode: StopMode,
        if_uncertain: IfUncertain,
    ) -> Result<Attempt, Refusal> {
        for _ in 0..ROUNDS_MAX {
            // Not behind a writer of this process: a runner is asked although the store stalls.
            let row = match self.find(attempt_id)? {
                Found::Row(row) => *row,
                Found::Pruned(attempt) => return Ok(*attempt),
            };
            let done = match row.state.execution {
                ExecutionState::Intended => self.stop_before_start(&row)?,
                ExecutionState::Starting | ExecutionState::Running | ExecutionState::Stopping => {
                    self.stop_live(&row, mode)?
                }
                ExecutionState::Exited => Some(self.stop_leftovers(row, mode, if_uncertain)?),
                ExecutionState::Uncertain => match if_uncertain {
                    IfUncertain::Leave => Some(row),
                    IfUncertain::EndSurvivors => Some(self.end_survivors(&row)?),
                },
            };
            if let Some(row) = done {
                return Ok(row.attempt());
            }
        }
        Ok(self.look(attempt_id)?.attempt())
    }

    fn stop_before_start(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        let detail = "no runner had claimed it";
        let stopped = [Draft::new(EvidenceKind::StopBeforeStart, detail)];
        self.commit(row, &stopped, &Fields::default(), Durability::Durable)
    }

    fn stop_live(&self, row: &Row, mode: StopMode) -> Result<Option<Row>, Refusal> {
        let stop = Stop { mode, grace_ms: None };
        match self.ask_stop(row, stop) {
            Ok(reply) if reply.accepted => {
                point("service.stop.accepted");
                return Ok(Some(self.await_record(row)?));
            }
            Ok(_) | Err(NoAnswer::NotConnected | NoAnswer::Silent | NoAnswer::Refused(_)) => {}
        }
        match self.runner_seen(row) {
            RunnerSeen::Gone => self.stop_without_runner(row, mode),
            RunnerSeen::Alive | RunnerSeen::Unknown if row.child == ChildIdentity::None => {
                self.stop_before_child(row, stop)
            }
            RunnerSeen::Alive => match self.signal_leader(row, mode)? {
                Signalled::Yes(row) => Ok(Some(*row)),
                Signalled::Overtaken => Ok(None),
                // Never uncertain while the runner may live.
                Signalled::No(_) => Err(runner_silent()),
            },
            RunnerSeen::Unknown => match self.signal_leader(row, mode)? {
                Signalled::Yes(row) => Ok(Some(*row)),
                Signalled::Overtaken => Ok(None),
                Signalled::No(why) => self.unproven(row, why),
            },
        }
    }

    /// Waits shortly for the runner's commit, so that a reply mostly says that it is stopping.
    fn await_record(&self, asked: &Row) -> Result<Row, Refusal> {
        let deadline = Instant::now() + STOP_RECORDED;
        loop {
            let row = self.look(&asked.attempt_id)?;
            let waits = match row.state.execution {
                ExecutionState::Starting | ExecutionState::Running => true,
                ExecutionState::Intended
                | ExecutionState::Stopping
                | ExecutionState::Exited
                | ExecutionState::Uncertain => false,
            };
            if !waits || Instant::now() >= deadline {
                return Ok(row);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Commits the stop where the runner has no socket yet, so that it creates no child, and waits
    /// within the start budget for its socket or its end.
    fn stop_before_child(&self, row: &Row, stop: Stop) -> Result<Option<Row>, Refusal> {
        let budget = row.request()?.timeouts.start();
        if row.state.execution == ExecutionState::Starting {
            let detail = format!("{}, before the runner answered", label(stop.mode));
            let asked = [Draft::new(EvidenceKind::StopRequested, detail)];
            if self.commit(row, &asked, &Fields::default(), Durability::Normal)?.is_none() {
                return Ok(None);
            }
        }
        let deadline = Instant::now() + budget;
        loop {
            let row = self.look(&row.attempt_id)?;
            if !row.state.execution.is_live() {
                return Ok(Some(row));
            }
            // A child may have been made before the stop was committed.
            if self.ask_stop(&row, stop).is_ok_and(|reply| reply.accepted) {
                return Ok(Some(row));
            }
            if self.runner_seen(&row) == RunnerSeen::Gone {
                return Ok(Some(self.reconcile_row(row)?));
            }
            if Instant::now() >= deadline {
                return Ok(Some(row));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn stop_without_runner(&self, row: &Row, mode: StopMode) -> Result<Option<Row>, Refusal> {
        let mut row = row.clone();
        let contained_in = recorded_tree(&row).map(|tree| match tree {
            RecordedTree::Leaf(_) => "cgroup",
            RecordedTree::Namespace(_) => "PID namespace",
        });
        if let Some(what) = contained_in
            && leader_seen(&row) == LeaderSeen::Present
        {
            let detail = format!("{}, without a runner: the {what} is killed", label(mode));
            let asked = [Draft::new(EvidenceKind::StopRequested, detail)];
            let Some(stopping) =
                self.commit(&row, &asked, &Fields::default(), Durability::Normal)?
            else {
                return Ok(None);
            };
            row = stopping;
        }
        // Ends what contains the tree; a leader without it, or out of it, is signalled then.
        row = self.reconcile_row(row)?;
        if !row.state.execution.is_live() || leader_seen(&row) != LeaderSeen::Present {
            return Ok(Some(row));
        }
        match self.signal_leader(&row, mode)? {
            Signalled::Yes(row) => Ok(Some(self.reconcile_row(*row)?)),
            Signalled::Overtaken => Ok(None),
            Signalled::No(why) => self.unproven(&row, why),
        }
    }

    /// Signals the group of a leader that was compared first, and records that.
    fn signal_leader(&self, row: &Row, mode: StopMode) -> Result<Signalled, Refusal> {
        let ChildIdentity::Complete(child) = &row.child else {
            return Ok(Signalled::No("no identity is recorded"));
        };
        let verified = match child.observe() {
            Presence::Present(verified) => verified,
            Presence::Absent(proof) => return Ok(Signalled::No(proof.because())),
            Presence::Unknown(why) => return Ok(Signalled::No(why.because())),
        };
        let signal = match mode {
            StopMode::Cooperative => Signal::Term,
            StopMode::Forced => Signal::Kill,
        };
        let reached = match signal_group(&verified, signal) {
            Ok(reached) => reached,
            Err(why) => return Ok(Signalled::No(why)),
        };
        if mode == StopMode::Forced {
            // So that a reconcile right after it sees the end.
            wait_readable(verified.pidfd(), Some(Instant::now() + STOP_RECORDED));
        }
        let sent = [Draft::new(EvidenceKind::SignalGroup, format!("{signal} to {reached}"))];
        Ok(match self.commit(row, &sent, &Fields::default(), Durability::Normal)? {
            Some(row) => Signalled::Yes(Box::new(row)),
            None => Signalled::Overtaken,
        })
    }

    /// The exit is settled; what is left of the tree is the runner's to end, or the leaf's.
    fn stop_leftovers(
        &self,
        row: Row,
        mode: StopMode,
        if_uncertain: IfUncertain,
    ) -> Result<Row, Refusal> {
        if row.tree_gone_by.is_some() || row.state.cleanup == CleanupState::Complete {
            return Ok(row);
        }
        let mut row = row;
        if row.runner.as_ref().is_some_and(|runner| !runner.finished) {
            match self.ask_stop(&row, Stop { mode, grace_ms: None }) {
                Ok(_) => return self.await_record(&row),
                Err(_) if self.runner_seen(&row) == RunnerSeen::Gone => {
                    row = self.reconcile_row(row)?;
                }
                Err(_) => return Err(runner_silent()),
            }
        }
        if if_uncertain == IfUncertain::EndSurvivors && self.prove_gone(&row)?.is_err() {
            self.kill_survivors(&row)?;
            row = self.row(&row.attempt_id)?;
        }
        Ok(row)
    }

    /// Ends whatever of an uncertain attempt is found: by its runner, by what contains its tree, or by
    /// its marker.
    fn end_survivors(&self, row: &Row) -> Result<Row, Refusal> {
        let forced = Stop { mode: StopMode::Forced, grace_ms: None };
        if self.ask_stop(row, forced).is_ok_and(|reply| reply.accepted) {
            return self.await_record(row);
        }
        // What became of it is looked at again by the reconcile.
        let _: Option<TreeEnd> = recorded_tree(row).as_ref().map(end_tree);
        self.kill_survivors(row)?;
        let row = self.row(&row.attempt_id)?;
        self.reconcile_row(row)
    }

    /// Kills what carries the attempt's marker, where no handle of the tree is left.
    fn kill_survivors(&self, row: &Row) -> Result<(), Refusal> {
        let scan = self.find_survivors(row, &Processes::since(oldest_start_ticks(row)));
        let killed = survivors::kill(&scan);
        if killed > 0 {
            let detail = format!("{killed} by the attempt's marker; {}", survivors::phrase(&scan));
            let sent = [Draft::new(EvidenceKind::SignalKill, detail)];
            self.commit(row, &sent, &Fields::default(), Durability::Normal)?;
        }
        Ok(())
    }

    fn unproven(&self, row: &Row, why: &str) -> Result<Option<Row>, Refusal> {
        let unproven = [Draft::new(EvidenceKind::StopUnproven, why)];
        self.commit(row, &unproven, &Fields::default(), Durability::Normal)
    }
}

enum Signalled {
    Yes(Box<Row>),
    /// Nothing was reached, and why.
    No(&'static str),
    Overtaken,
}

/// Signals the group through the leader's handle, or the leader alone where the kernel cannot.
fn signal_group(leader: &Verified, signal: Signal) -> Result<&'static str, &'static str> {
    match signal_group_through_pidfd(leader.pidfd(), signal) {
        Ok(()) => Ok("the group"),
        Err(GroupSignalError::Unsupported) => leader
            .signal(signal)
            .map(|()| "the leader alone")
            .map_err(|_| "the leader could not be signalled"),
        Err(GroupSignalError::Gone) => Err("the group is gone"),
        Err(GroupSignalError::Refused(_)) => Err("the kernel refused the signal"),
    }
}

fn label(mode: StopMode) -> &'static str {
    match mode {
        StopMode::Cooperative => "cooperative",
        StopMode::Forced => "forced",
    }
}
