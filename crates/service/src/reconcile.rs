//! Settling an attempt by what can be proven now.

use crate::Service;
use crate::limits::PARENT_DEATH;
use crate::service::Found;
use crate::survivors::{self, Processes};
use crate::tree::{Ended, RecordedLeaf, RecordedTree, TreeEnd, end_tree};
use crate::verdict::{Facts, LeaderSeen, RunnerSeen, Verdict, decide};
use crate::wait::wait_readable;
use placement_contract::{Attempt, AttemptId, EvidenceKind, ExecutionState, Mechanism, Refusal};
use placement_homes::HomeKey;
use placement_identity::{Here, Place, Presence, ProcessIdentity};
use placement_store::{ChildIdentity, Draft, Durability, Fields, Row, Selection};
use std::time::Instant;

/// How often a reconcile that was overtaken by somebody else's commit begins again.
const ROUNDS_MAX: usize = 8;

impl Service {
    /// Looks at an attempt's runner, leader and tree and records what that proves.
    ///
    /// A living runner is believed and left alone. Without one, a tree in a control group or a PID
    /// namespace is ended; what cannot be proven is recorded as uncertain, and everything is kept. A repeated
    /// observation adds no evidence.
    ///
    /// # Errors
    /// `NOT_FOUND` and STORAGE.
    pub fn reconcile(&self, attempt_id: &AttemptId) -> Result<Attempt, Refusal> {
        match self.find(attempt_id)? {
            Found::Row(row) => Ok(self.reconcile_row(*row)?.attempt()),
            Found::Pruned(attempt) => Ok(*attempt),
        }
    }

    /// Reconciles when a runner of this service has ended; what fails is left to the next one.
    pub(crate) fn look_after(&self, attempt_id: &AttemptId) {
        if let Ok(row) = self.row(attempt_id)
            && (row.state.execution.is_live() || row.tree_gone_by.is_none())
        {
            self.reconcile_row(row).ok();
        }
    }

    pub(crate) fn reconcile_row(&self, row: Row) -> Result<Row, Refusal> {
        let seen = Processes::since(oldest_start_ticks(&row));
        self.reconcile_seeing(row, &seen)
    }

    /// Reconciles with a look at the process table that others share.
    pub(crate) fn reconcile_seeing(&self, row: Row, seen: &Processes) -> Result<Row, Refusal> {
        let mut row = row;
        for _ in 0..ROUNDS_MAX {
            match self.reconcile_once(&row, seen)? {
                Some(settled) => return Ok(settled),
                None => row = self.reread(&row)?,
            }
        }
        Ok(row)
    }

    /// Returns nothing where somebody else has changed the attempt meanwhile.
    fn reconcile_once(&self, row: &Row, seen: &Processes) -> Result<Option<Row>, Refusal> {
        if row.state.execution == ExecutionState::Intended {
            return Ok(Some(row.clone()));
        }
        let runner = self.runner_seen(row);
        if runner == RunnerSeen::Gone
            && let Some(taken) = self.take_exit_record(row)?
            && taken.evidence_count != row.evidence_count
        {
            return Ok(None);
        }
        let leader = match (runner, row.mechanism) {
            // What ends a leaf or a PID namespace ends the leader with it.
            (RunnerSeen::Gone, None | Some(Mechanism::Subreaper)) => leader_after_its_runner(row),
            (RunnerSeen::Alive | RunnerSeen::Gone | RunnerSeen::Unknown, _) => leader_seen(row),
        };
        // Asked only where it decides: the evidence of every other attempt need not be read.
        let child_started = leader == LeaderSeen::NotRecorded
            && self.inner.store.folded(&row.attempt_id)?.child_started;
        let facts = Facts {
            execution: row.state.execution,
            mechanism: row.mechanism,
            tree_gone: row.tree_gone_by.is_some(),
            child_started,
            earlier_boot: is_of_an_earlier_boot(row),
            runner,
            leader,
        };
        self.act(row, decide(facts), seen)
    }

    fn act(&self, row: &Row, verdict: Verdict, seen: &Processes) -> Result<Option<Row>, Refusal> {
        match verdict {
            Verdict::Unchanged => Ok(Some(row.clone())),
            Verdict::Supervised => self.note_supervised(row),
            Verdict::Alive => self.note_alive(row),
            Verdict::NotStarted => {
                let mut rows = vec![Draft::new(
                    EvidenceKind::ChildNotStarted,
                    "the runner is gone and the gate never opened",
                )];
                // Nothing runs in the leaf; it may have been made and is not to be left behind.
                if let Some(TreeEnd::Gone(ended)) = recorded_tree(row).as_ref().map(end_tree) {
                    rows.push(tree_gone(&ended));
                }
                self.settle(row, &rows)
            }
            Verdict::Absent => self.settle(row, &absent(row)),
            Verdict::EndTree => self.end_tree(row),
            Verdict::SettleTree => self.settle_tree(row),
            Verdict::Unobserved => self.settle(row, &[unobserved(row)]),
            Verdict::Unidentified => {
                let detail = "no identity is recorded and the runner cannot be observed";
                self.settle(row, &[Draft::new(EvidenceKind::ReconcileUnidentified, detail)])
            }
            Verdict::ProofLost => {
                let seen = match place_of(row) {
                    // That none is seen here says nothing of there.
                    Some(Place::Elsewhere(why)) => format!("survivors unknown: {}", why.because()),
                    Some(Place::Here | Place::EarlierBoot(_)) | None => {
                        survivors::phrase(&self.find_survivors(row, seen))
                    }
                };
                let detail = format!("the runner ended with the proof of its tree; {seen}");
                self.settle(row, &[Draft::new(EvidenceKind::ReconcileUnobserved, detail)])
            }
        }
    }

    /// Notes a repeated observation, without evidence.
    fn touch(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        self.inner.store.touch_observed([&row.attempt_id])?;
        Ok(Some(self.reread(row)?))
    }

    /// Records once what a runner reports whose child should be identified and is not; any other
    /// look at a living runner is only noted.
    fn note_supervised(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        let is_identified = matches!(row.child, ChildIdentity::Complete(_));
        if row.state.execution != ExecutionState::Running
            || is_identified
            || self.was_seen(row, EvidenceKind::ReconcileSupervised)?
        {
            return self.touch(row);
        }
        let reports = match self.ask_status(row) {
            Ok(status) => format!("its runner reports {}", status.execution),
            Err(_) => "its runner lives and does not answer".to_owned(),
        };
        let detail = format!("the child is not identified; {reports}");
        self.settle(row, &[Draft::new(EvidenceKind::ReconcileSupervised, detail)])
    }

    /// Says whether the last row is of this kind, so that nothing is said twice.
    pub(crate) fn was_seen(&self, row: &Row, kind: EvidenceKind) -> Result<bool, Refusal> {
        let last = row.evidence_count.saturating_sub(1);
        let last = self.inner.store.evidence(&row.attempt_id, last, 1)?;
        Ok(last.rows.last().is_some_and(|row| row.kind == kind))
    }

    /// Records once that the leader runs without a runner.
    fn note_alive(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        if self.was_seen(row, EvidenceKind::ReconcileAlive)? {
            return self.touch(row);
        }
        let detail = "the process runs and its runner does not";
        self.settle(row, &[Draft::new(EvidenceKind::ReconcileAlive, detail)])
    }

    fn end_tree(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        let end = recorded_tree(row).as_ref().map(end_tree);
        let live = row.state.execution.is_live();
        if let Some(TreeEnd::Elsewhere(phrase)) = end {
            // Not even that the leader is gone is said: its tree lives on where nobody looked.
            let rows = [Draft::new(EvidenceKind::ReconcileUnobserved, phrase)];
            return if live { self.settle(row, &rows) } else { Ok(Some(row.clone())) };
        }
        // Looked at after the tree: a process that moved itself out of its leaf is still there.
        match leader_seen(row) {
            LeaderSeen::Absent => {
                let mut rows = absent(row);
                // Where it remains, the next reconcile finds it again.
                if let Some(TreeEnd::Gone(ended)) = end {
                    rows.extend(self.told_by_its_end(row, &ended)?);
                }
                self.settle(row, &rows)
            }
            LeaderSeen::Present => match end {
                Some(TreeEnd::Remains(phrase)) if live => {
                    let detail = format!("the runner is gone: {phrase}");
                    self.settle(row, &[Draft::new(EvidenceKind::ReconcileUnobserved, detail)])
                }
                Some(TreeEnd::Remains(_) | TreeEnd::Elsewhere(_) | TreeEnd::Gone(_)) | None => {
                    self.note_alive(row)
                }
            },
            LeaderSeen::Unknown | LeaderSeen::NotRecorded if live => {
                self.settle(row, &[unobserved(row)])
            }
            LeaderSeen::Unknown | LeaderSeen::NotRecorded => Ok(Some(row.clone())),
        }
    }

    fn settle_tree(&self, row: &Row) -> Result<Option<Row>, Refusal> {
        match recorded_tree(row).as_ref().map(end_tree) {
            Some(TreeEnd::Gone(ended)) => {
                let rows = self.told_by_its_end(row, &ended)?;
                self.settle(row, &rows)
            }
            Some(TreeEnd::Remains(_) | TreeEnd::Elsewhere(_)) | None => Ok(Some(row.clone())),
        }
    }

    /// Says what a tree told at its end, but what its runner has recorded already.
    fn told_by_its_end(&self, row: &Row, ended: &Ended) -> Result<Vec<Draft>, Refusal> {
        let mut rows = Vec::new();
        if ended.oom_kills > 0 {
            let recorded = self.inner.store.all_evidence(&row.attempt_id)?;
            if recorded.iter().all(|row| row.kind != EvidenceKind::ChildOomKilled) {
                let noun = if ended.oom_kills == 1 { "process" } else { "processes" };
                let detail = format!("{} {noun}, by the kernel", ended.oom_kills);
                rows.push(Draft::new(EvidenceKind::ChildOomKilled, detail));
            }
        }
        rows.push(tree_gone(ended));
        Ok(rows)
    }

    fn settle(&self, row: &Row, rows: &[Draft]) -> Result<Option<Row>, Refusal> {
        self.commit(row, rows, &Fields::default(), Durability::Normal)
    }

    /// Looks for what is left of a tree without a leaf; runners and inits are known to be none of it,
    /// and hide their environment.
    pub(crate) fn find_survivors(
        &self,
        row: &Row,
        seen: &Processes,
    ) -> placement_identity::MarkerScan {
        let home = row.home_key.as_deref().and_then(|key| HomeKey::parse(key).ok());
        let home = home.map(|key| self.inner.root.home_path(&key));
        let lost = survivors::Lost {
            attempt_id: &row.attempt_id,
            home: home.as_deref(),
            child_start_ticks: oldest_start_ticks(row),
        };
        survivors::find(lost, seen.look(|| self.runners_and_inits()))
    }

    fn runners_and_inits(&self) -> Vec<ProcessIdentity> {
        let listing = self.inner.reader.list(None, Selection::Unsettled, crate::list::LISTED_MAX);
        let rows = listing.map(|listing| listing.rows).unwrap_or_default();
        rows.into_iter()
            .flat_map(|row| row.runner.map(|runner| runner.identity).into_iter().chain(row.init))
            .collect()
    }
}

/// Returns the stamp of the first process that an attempt may have left: its child, or its runner
/// where no child is recorded yet.
pub(crate) fn oldest_start_ticks(row: &Row) -> u64 {
    match (&row.child, &row.runner) {
        (ChildIdentity::Complete(child), _) => child.start_ticks,
        (ChildIdentity::None | ChildIdentity::Partial, Some(runner)) => runner.identity.start_ticks,
        (ChildIdentity::None | ChildIdentity::Partial, None) => 0,
    }
}

fn absent(row: &Row) -> Vec<Draft> {
    let because = match &row.child {
        ChildIdentity::Complete(child) => match child.observe() {
            Presence::Absent(proof) => proof.because(),
            Presence::Present(_) | Presence::Unknown(_) => "the machine was started again",
        },
        ChildIdentity::None | ChildIdentity::Partial => "the machine was started again",
    };
    vec![Draft::new(EvidenceKind::ReconcileAbsent, format!("{because}; exit not known"))]
}

fn unobserved(row: &Row) -> Draft {
    let why = match &row.child {
        ChildIdentity::Complete(child) => match child.observe() {
            Presence::Unknown(why) => why.because(),
            Presence::Present(_) | Presence::Absent(_) => "the runner cannot be observed",
        },
        ChildIdentity::Partial => "the identity of the child is incomplete",
        ChildIdentity::None => "no identity is recorded",
    };
    Draft::new(EvidenceKind::ReconcileUnobserved, why)
}

fn tree_gone(ended: &Ended) -> Draft {
    Draft::tree_gone(ended.gone.mechanism(), ended.gone.proof())
}

/// Everything of an attempt is of one place: its runner measured its child.
pub(crate) fn place_of(row: &Row) -> Option<Place> {
    place_from(row, &Here::read())
}

/// Compares the place of an attempt with one that was read before.
pub(crate) fn place_from(row: &Row, here: &Here) -> Option<Place> {
    let identity = match (&row.child, &row.runner) {
        (ChildIdentity::Complete(child), _) => child,
        (ChildIdentity::None | ChildIdentity::Partial, Some(runner)) => &runner.identity,
        (ChildIdentity::None | ChildIdentity::Partial, None) => return None,
    };
    Some(here.place(&identity.boot_id, &identity.observer))
}

fn is_of_an_earlier_boot(row: &Row) -> bool {
    matches!(place_of(row), Some(Place::EarlierBoot(_)))
}

pub(crate) fn leader_seen(row: &Row) -> LeaderSeen {
    match &row.child {
        ChildIdentity::None => LeaderSeen::NotRecorded,
        ChildIdentity::Partial => LeaderSeen::Unknown,
        ChildIdentity::Complete(child) => match child.observe() {
            Presence::Present(_) => LeaderSeen::Present,
            Presence::Absent(_) => LeaderSeen::Absent,
            Presence::Unknown(_) => LeaderSeen::Unknown,
        },
    }
}

/// Returns what contains the tree, where it was recorded.
pub(crate) fn recorded_tree(row: &Row) -> Option<RecordedTree<'_>> {
    let leaf = recorded_leaf(row).map(RecordedTree::Leaf);
    leaf.or_else(|| row.init.as_ref().map(RecordedTree::Namespace))
}

/// Looks for the leader of a runner that is gone. The kernel ends the one with the other, but not in
/// the same moment: a look in between would take it for one that lives on.
fn leader_after_its_runner(row: &Row) -> LeaderSeen {
    if let ChildIdentity::Complete(child) = &row.child
        && let Presence::Present(verified) = child.observe()
    {
        wait_readable(verified.pidfd(), Some(Instant::now() + PARENT_DEATH));
    }
    leader_seen(row)
}

/// Returns the leaf as it was recorded: the runner made it, where the runner was.
pub(crate) fn recorded_leaf(row: &Row) -> Option<RecordedLeaf<'_>> {
    let leaf = row.leaf.as_ref()?;
    let runner = &row.runner.as_ref()?.identity;
    Some(RecordedLeaf {
        path: leaf.path.as_str(),
        id: leaf.id,
        boot_id: &runner.boot_id,
        made_by: &runner.observer,
    })
}
