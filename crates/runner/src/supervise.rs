//! From the running program to an empty tree: pump, exit, drain, leftovers, the last bytes.

use crate::drain::Drain;
use crate::runner::{Also, Pipes, Runner};
use crate::scribe::Entry;
use crate::stop::StopStep;
use placement_contract::limits::DRAIN_IDLE_MS;
use placement_contract::{
    CleanupScope, EvidenceKind, ExecutionState, Leftovers, Mechanism, StreamName,
};
use placement_crash::point;
use placement_homes::StreamEnd;
use placement_identity::Signal;
use placement_process::{CgroupLeaf, Tree, TreeState, WaitError};
use placement_store::Draft;
use std::time::{Duration, Instant};

/// How often a tree without a descriptor is looked at while it is being ended.
const ROUND: Duration = Duration::from_millis(5);
/// How often an empty-going tree is looked at while it is left alone.
const WATCH: Duration = Duration::from_millis(100);
/// Time after which a tree that cannot be looked at, or does not go after SIGKILL, is given up.
const GIVE_UP: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_millis(DRAIN_IDLE_MS);
/// Reads that empty a pipe of one chunk's size: its bytes may end in two chunks, and its end follows.
const LAST_READS: usize = 3;

/// Where the supervision stands.
#[derive(Debug)]
enum Phase {
    /// The leader runs.
    Running,
    /// The leader ended; the pipes are read on.
    Draining(Drain),
    /// What is left is being ended.
    Ending(Ending),
    /// What is left is left; the runner stays until it is gone.
    Keeping,
    /// Everything is gone; the pipes are read to their end.
    Closing { drain: Drain, held_outside: bool },
    /// Bytes held in memory wait for a recipient.
    Delivering { until: Instant },
    /// Nothing is left to do.
    Over,
}

#[derive(Debug)]
struct Ending {
    kill_at: Instant,
    give_up_at: Instant,
    members: u32,
    killed: bool,
}

/// Says what a phase looks at after each turn.
const fn watched(phase: &Phase) -> Also<'static> {
    match phase {
        Phase::Running => Also::Leader,
        Phase::Ending(_) | Phase::Keeping => Also::Tree,
        Phase::Draining(_) | Phase::Closing { .. } | Phase::Delivering { .. } | Phase::Over => {
            Also::Nothing
        }
    }
}

impl Runner {
    /// Runs the loop until the child has ended and nothing of its tree is left, or all was done that
    /// can be.
    pub(crate) fn supervise(&mut self) {
        let mut phase = Phase::Running;
        loop {
            let now = Instant::now();
            self.take_stop_steps(now);
            phase = self.advance(phase, now);
            if matches!(phase, Phase::Over) {
                return;
            }
            self.turn_with(self.wake_at(&phase, now), watched(&phase));
        }
    }

    fn advance(&mut self, phase: Phase, now: Instant) -> Phase {
        match phase {
            Phase::Running => self.run_on(now),
            Phase::Draining(drain) => self.drain(drain, now),
            Phase::Ending(ending) => self.end_leftovers(ending, now),
            Phase::Keeping => self.keep_leftovers(now),
            Phase::Closing { drain, held_outside } => self.close(drain, held_outside, now),
            Phase::Delivering { until } => self.deliver(until, now),
            Phase::Over => Phase::Over,
        }
    }

    fn wake_at(&self, phase: &Phase, now: Instant) -> Option<Instant> {
        let own = match phase {
            Phase::Running => None,
            Phase::Draining(drain) | Phase::Closing { drain, .. } => Some(drain.wake_at(now)),
            Phase::Ending(_) => Some(now + ROUND),
            Phase::Keeping => Some(now + WATCH),
            Phase::Delivering { until } => Some(*until),
            Phase::Over => Some(now),
        };
        [own, self.stop.wake_at()].into_iter().flatten().min()
    }

    fn run_on(&mut self, now: Instant) -> Phase {
        self.reap_orphans();
        let tree = self.tree.as_ref().expect("made before the supervision");
        let exit = match tree.leader().observe_exit() {
            Ok(Some(exit)) => Some(exit),
            // Its init was killed from outside, and it with it: nobody knows how it ended.
            Err(WaitError::Unreported) => None,
            // Nobody else reaps it, so an error passes: the next turn asks again.
            Ok(None) | Err(WaitError::Running | WaitError::Wait(_)) => return Phase::Running,
        };
        point("runner.exit.observed");
        self.exit = exit;
        self.state = ExecutionState::Exited;
        self.deadline = None;
        self.scribe.push(Entry::rows(vec![Draft::exited(exit)]).durable());
        self.record_oom_kills();
        // Our hold on its terminal would keep the output from coming to its end.
        self.window = None;
        let abandoned = self.input.abandon();
        self.answer_writes(abandoned);
        self.tell_exit();
        Phase::Draining(Drain::start(now, self.request.timeouts.drain(), IDLE))
    }

    /// Records how many processes the kernel has killed for want of memory since the last row of it.
    pub(crate) fn record_oom_kills(&mut self) {
        let leaf = self.tree.as_ref().and_then(Tree::leaf);
        // What cannot be read is no evidence.
        let Some(Ok(Some(kills))) = leaf.map(CgroupLeaf::oom_kills) else { return };
        let new = kills.saturating_sub(self.oom_kills);
        self.oom_kills = kills;
        if new > 0 {
            let noun = if new == 1 { "process" } else { "processes" };
            self.record(EvidenceKind::ChildOomKilled, format!("{new} {noun}, by the kernel"));
        }
    }

    /// Orphans of the tree come to this process and are reaped by number when one has ended.
    fn reap_orphans(&mut self) {
        if std::mem::take(&mut self.orphans_ended) {
            let tree = self.tree.as_ref().expect("made before the supervision");
            // What could not be listed now is tried again in the next turn.
            self.orphans_ended = tree.reap_orphans().is_err();
        }
    }

    fn drain(&mut self, mut drain: Drain, now: Instant) -> Phase {
        // In memory a full spool holds the drain back; on disk it is as good as silence, since the
        // rest is read when the tree is gone.
        let paused = self.output.is_in_memory() && self.output.is_full();
        drain.count(now, paused, self.bytes_came);
        self.lose_what_nobody_fetched(&drain, now);
        let at_end = StreamName::ALL.iter().all(|stream| !self.output.is_open(*stream));
        let ended = at_end || drain.is_elapsed() || drain.is_idle();
        if !ended && !self.stop.is_killed() {
            return Phase::Draining(drain);
        }
        if self.keeps_leftovers() {
            if !at_end {
                self.cut_off(&drain, now);
            }
            return Phase::Keeping;
        }
        self.begin_ending(now)
    }

    fn begin_ending(&mut self, now: Instant) -> Phase {
        let grace = self.request.timeouts.stop_grace();
        if self.request.required_cleanup == CleanupScope::DirectProcess {
            return self.begin_closing(now);
        }
        let tree = self.tree.as_ref().expect("made before the supervision");
        let forced = self.stop.is_killed();
        // What a forced stop has killed already is no leftover.
        let members = if forced {
            0
        } else {
            tree.terminate().map_or(0, |signalled| signalled.sent + signalled.refused)
        };
        // A stop that led here has used up a part of its grace already.
        let kill_at = match self.stop.kill_at() {
            _ if forced => now,
            Some(kill_at) => kill_at,
            None => now + grace,
        };
        let give_up_at = kill_at + GIVE_UP;
        self.end_leftovers(Ending { kill_at, give_up_at, members, killed: forced }, now)
    }

    fn end_leftovers(&mut self, mut ending: Ending, now: Instant) -> Phase {
        if self.is_nothing_left() || now >= ending.give_up_at {
            self.kill_what_was_missed();
            if ending.members > 0 {
                let how = if ending.killed { "SIGKILL" } else { "SIGTERM" };
                let detail = format!("{}, by {how}", counted(ending.members as usize));
                self.record(EvidenceKind::LeftoversStopped, detail);
            }
            return self.begin_closing(now);
        }
        if now >= ending.kill_at || self.stop.is_killed() {
            let tree = self.tree.as_ref().expect("made before the supervision");
            // Repeated until nothing is left: what forks can escape a round.
            match tree.kill() {
                Ok(signalled) if ending.members > 0 => {
                    ending.members = ending.members.max(signalled.sent);
                }
                // A failure is tried again until the end is given up.
                Ok(_) | Err(_) => {}
            }
            ending.killed = true;
        }
        Phase::Ending(ending)
    }

    fn keep_leftovers(&mut self, now: Instant) -> Phase {
        if !self.keeps_leftovers() {
            return self.begin_ending(now);
        }
        if self.is_nothing_left() { self.begin_closing(now) } else { Phase::Keeping }
    }

    /// Where only a group is cleaned: a member that forks and ends can escape every look at the
    /// process table, and no signal to the group; its ended leader holds the number until it is
    /// reaped.
    fn kill_what_was_missed(&mut self) {
        let tree = self.tree.as_ref().expect("made before the supervision");
        if tree.mechanism().is_none() {
            // An empty group takes no signal; that is what is wanted.
            tree.leader().signal_group(Signal::Kill).ok();
        }
    }

    /// Says whether nothing of the tree is left, now that its leader has ended.
    fn is_nothing_left(&mut self) -> bool {
        let tree = self.tree.as_mut().expect("made before the supervision");
        tree.reap_orphans().ok();
        if tree.state() != TreeState::Empty {
            return false;
        }
        match tree.mechanism() {
            // A look at the lists of children misses who forks and ends meanwhile. With the leader
            // reaped the kernel answers for all; members are found as descendants, so its number is
            // not needed any more.
            Some(Mechanism::Subreaper) => {
                tree.reap_leader().is_ok() && tree.state() == TreeState::Empty
            }
            Some(Mechanism::Cgroup | Mechanism::PidNamespace) | None => true,
        }
    }

    fn begin_closing(&mut self, now: Instant) -> Phase {
        let held_outside = self.report_escapees();
        if let Some(tree) = &mut self.tree {
            // It has ended, and its group was dealt with.
            tree.reap_leader().ok();
        }
        point("runner.leader.reaped");
        self.output.admit_tail();
        let drain = Drain::start(now, self.request.timeouts.drain(), IDLE);
        self.close(drain, held_outside, now)
    }

    /// Reads the pipes to their end; one that stays open is held by a process outside the tree.
    fn close(&mut self, mut drain: Drain, held_outside: bool, now: Instant) -> Phase {
        let paused = self.output.is_in_memory() && self.output.is_full();
        drain.count(now, paused, self.bytes_came);
        self.lose_what_nobody_fetched(&drain, now);
        let at_end = StreamName::ALL.iter().all(|stream| !self.output.is_open(*stream));
        if !at_end && (drain.is_elapsed() || (held_outside && drain.is_idle())) {
            self.cut_off(&drain, now);
        } else if !at_end {
            return Phase::Closing { drain, held_outside };
        }
        if !self.output.is_settled() && !drain.is_elapsed() {
            return Phase::Closing { drain, held_outside };
        }
        self.pipes = Pipes::default();
        point("runner.pipes.closed");
        if !self.output.is_settled() {
            let loss = self.output.loss();
            self.record(
                EvidenceKind::OutputLost,
                format!("the spool could not be written: {loss}"),
            );
        }
        if self.output.is_in_memory() {
            return self.deliver(now + self.request.timeouts.retain(), now);
        }
        Phase::Over
    }

    fn deliver(&mut self, until: Instant, now: Instant) -> Phase {
        if self.output.is_acknowledged() || self.output.is_given_up() {
            return Phase::Over;
        }
        if now >= until {
            self.record_loss();
            return Phase::Over;
        }
        Phase::Delivering { until }
    }

    /// After the exit, gives up a full spool in memory that nobody emptied in time, and with it what
    /// the pipes still hold.
    fn lose_what_nobody_fetched(&mut self, drain: &Drain, now: Instant) {
        if !drain.is_paused_for(self.request.timeouts.retain()) {
            return;
        }
        self.record_loss();
        self.end_open_streams(now);
    }

    fn record_loss(&mut self) {
        let after = self.request.timeouts.retain_ms;
        let loss = self.output.give_up();
        self.record(EvidenceKind::OutputLost, format!("after {after} ms: {loss}"));
    }

    /// Ends streams that are still open, as truncated; what still comes is dropped.
    fn cut_off(&mut self, drain: &Drain, now: Instant) {
        self.read_what_is_there(now);
        let open = StreamName::ALL.iter().copied().filter(|stream| self.output.is_open(*stream));
        let names: Vec<_> = open.map(StreamName::label).collect();
        if names.is_empty() {
            return;
        }
        let detail = format!("after {} ms: {} truncated", drain.used_ms(), names.join(" and "));
        self.record(EvidenceKind::OutputDrainElapsed, detail);
        self.end_open_streams(now);
    }

    /// Reads what the pipes hold by now: a runner that stood still must not hold that against them.
    fn read_what_is_there(&mut self, now: Instant) {
        for _ in 0..LAST_READS {
            for stream in StreamName::ALL.iter().copied() {
                self.read_pipe(stream, now);
            }
        }
    }

    fn end_open_streams(&mut self, now: Instant) {
        let open: Vec<_> =
            StreamName::ALL.iter().copied().filter(|stream| self.output.is_open(*stream)).collect();
        for stream in open {
            let outcome = self.output.end(stream, StreamEnd::Truncated, now);
            self.note_spool(outcome);
        }
        self.pipes.discarding = true;
    }

    /// Where only a group is cleaned: reports processes that left it, and says whether there are any.
    fn report_escapees(&mut self) -> bool {
        let Some(tree) = self.tree.as_ref().filter(|tree| tree.mechanism().is_none()) else {
            return false;
        };
        let escapees = tree.escapees().map_or(0, |escapees| escapees.len());
        if escapees > 0 {
            let detail = format!("{} outside the group, left alone", counted(escapees));
            self.record(EvidenceKind::LeftoversReported, detail);
        }
        escapees > 0
    }

    fn keeps_leftovers(&self) -> bool {
        self.request.supervision.leftovers == Leftovers::Keep && !self.stop.is_requested()
    }

    fn take_stop_steps(&mut self, now: Instant) {
        // Whoever is told of a signal finds the stop recorded before it.
        if self.stop.is_held(now, |row| self.scribe.is_answered(row)) {
            return;
        }
        while let Some(step) = self.stop.step(now) {
            let Some(tree) = &self.tree else { return };
            match step {
                StopStep::Term => {
                    if !self.has_exited() {
                        let detail = self.terminate(tree);
                        point("runner.termination.sent");
                        self.record(EvidenceKind::SignalTerm, detail);
                    }
                }
                // After the exit the end of the leftovers has its own escalation.
                StopStep::Escalate if self.has_exited() => {}
                StopStep::Kill | StopStep::Escalate => {
                    let detail = self.kill(tree);
                    point("runner.kill.sent");
                    self.record(EvidenceKind::SignalKill, detail);
                }
            }
        }
    }

    fn terminate(&self, tree: &Tree) -> String {
        if self.request.required_cleanup == CleanupScope::DirectProcess {
            return outcome("to the process", tree.leader().signal(Signal::Term).is_ok());
        }
        outcome("to the group", tree.leader().signal_group(Signal::Term).is_ok())
    }

    fn kill(&self, tree: &Tree) -> String {
        if self.request.required_cleanup == CleanupScope::DirectProcess {
            return outcome("to the process", tree.leader().signal(Signal::Kill).is_ok());
        }
        let whom = if self.mechanism.is_some() { "to the whole tree" } else { "to the group" };
        outcome(whom, tree.kill().is_ok())
    }
}

fn counted(processes: usize) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

fn outcome(whom: &str, sent: bool) -> String {
    if sent { whom.to_owned() } else { format!("{whom}, refused or already gone") }
}
