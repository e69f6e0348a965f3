//! Looking at many attempts at once: a bounded pass over what lives, whoever owns it, and all that
//! an owner has open.

use crate::Service;
use crate::limits::SWEEP;
use crate::list::Unreadable;
use crate::refusal::unavailable;
use crate::survivors::Processes;
use crate::verdict::RunnerSeen;
use placement_contract::limits::SWEEP_ATTEMPTS_MAX;
use placement_contract::{Attempt, AttemptId, Code, ExecutionState, Refusal};
use placement_identity::Here;
use placement_store::{ChildIdentity, Row, Selection};
use serde::Serialize;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What one pass came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sweep {
    /// How many attempts were looked at and answered for.
    pub reconciled: usize,
    /// Each attempt that was looked at.
    pub outcomes: Vec<Swept>,
}

/// What a pass came to with one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Whether it was looked at; what was not is taken by a later pass.
    pub ok: bool,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Its state now; as it was where it was not looked at, absent where its row cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_state: Option<ExecutionState>,
    /// Whether this look recorded anything.
    pub changed: bool,
}

/// What a pass takes.
struct Due {
    rows: Vec<Row>,
    /// Attempts whose rows cannot be read.
    unreadable: Vec<AttemptId>,
}

/// What became of one attempt when all that are open were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What it is now, or what stood against the look.
    pub settled: Result<Attempt, Refusal>,
}

/// What became of all that are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciledAll {
    /// The attempts: those that a living runner looks after, then the others, the newest of each first.
    pub attempts: Vec<Reconciled>,
    /// Attempts whose rows cannot be read; they keep no other from being looked at.
    pub unreadable: Vec<Unreadable>,
}

impl Service {
    /// Looks once at the live attempts that were not observed for the longest time, of all owners:
    /// at most 64.
    ///
    /// What a living runner looks after is left alone. The others are reconciled side by side, with
    /// one look at the process table between them; one that does not answer within 5 seconds is left
    /// to a later pass and holds up no other. That all were looked at is noted in one transaction. Also taken are exited
    /// attempts whose tree can be ended and proven gone by anybody; intended and uncertain ones
    /// never are.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read or written.
    pub fn sweep(&self) -> Result<Sweep, Refusal> {
        let Due { rows, unreadable } = self.due()?;
        let here = Here::read();
        let (resting, open): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| self.is_at_rest(row, &here));
        let mut outcomes: Vec<Swept> = resting.iter().map(unchanged).collect();
        let settled = self.settle_side_by_side(open);
        outcomes.extend(settled.into_iter().map(|(row, settled)| concluded(&row, settled)));
        outcomes.extend(unreadable.into_iter().map(damaged));
        if !outcomes.is_empty() {
            // Those too that gave no answer: they are not to keep later passes from the others.
            self.inner.store.touch_observed(outcomes.iter().map(|it| &it.attempt_id))?;
        }
        self.inner.store.checkpoint_if_large()?;
        Ok(Sweep { reconciled: outcomes.iter().filter(|it| it.ok).count(), outcomes })
    }

    /// Finds what is due, the longest unobserved first, damaged rows before all others.
    fn due(&self) -> Result<Due, Refusal> {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for selection in [Selection::Live, Selection::TreeNotGone] {
            let listing = self.inner.store.list(None, selection, SWEEP_ATTEMPTS_MAX)?;
            rows.extend(listing.rows);
            let ids = listing.corrupt.iter().map(|row| AttemptId::parse(&row.attempt_id));
            unreadable.extend(ids.flatten());
        }
        let bound = usize::try_from(SWEEP_ATTEMPTS_MAX).unwrap_or(usize::MAX);
        unreadable.truncate(bound);
        rows.sort_by(|a, b| a.last_observed_at.cmp(&b.last_observed_at));
        rows.truncate(bound - unreadable.len());
        Ok(Due { rows, unreadable })
    }

    /// Says whether a living runner looks after an attempt, and nothing is missing from its row.
    fn is_at_rest(&self, row: &Row, here: &Here) -> bool {
        let is_complete = row.state.execution != ExecutionState::Running
            || matches!(row.child, ChildIdentity::Complete(_));
        is_complete && self.runner_seen_from(row, here) == RunnerSeen::Alive
    }

    /// Looks at every open attempt of this owner, as [`Service::reconcile`] does, side by side: one
    /// whose runner hangs holds up no other.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read; what stands against one attempt is told with it.
    pub fn reconcile_all(&self) -> Result<ReconciledAll, Refusal> {
        let open = self.open_rows()?;
        let here = Here::read();
        let (resting, rest): (Vec<Row>, Vec<Row>) =
            open.rows.into_iter().partition(|row| self.is_at_rest(row, &here));
        if !resting.is_empty() {
            self.inner.store.touch_observed(resting.iter().map(|row| &row.attempt_id))?;
        }
        let batch = usize::try_from(SWEEP_ATTEMPTS_MAX).unwrap_or(1);
        let settled = rest.chunks(batch).flat_map(|rows| self.settle_side_by_side(rows.to_vec()));
        let told = |(row, settled): (Row, Result<Row, Refusal>)| Reconciled {
            attempt_id: row.attempt_id,
            settled: settled.map(|row| row.attempt()),
        };
        Ok(ReconciledAll {
            attempts: resting
                .into_iter()
                .map(|row| (row.clone(), Ok(row)))
                .chain(settled)
                .map(told)
                .collect(),
            unreadable: open.corrupt.into_iter().map(Unreadable::from).collect(),
        })
    }

    fn settle_side_by_side(&self, rows: Vec<Row>) -> Vec<(Row, Result<Row, Refusal>)> {
        let seen = Arc::new(Processes::default());
        let deadline = Instant::now() + SWEEP;
        let answers: Vec<_> =
            rows.into_iter().map(|row| (self.settle_aside(row.clone(), &seen), row)).collect();
        answers.into_iter().map(|(answer, row)| (row, heard_by(answer, deadline))).collect()
    }

    /// Reconciles in a thread of its own, which ends by itself: every step of it has its deadline.
    fn settle_aside(
        &self,
        row: Row,
        seen: &Arc<Processes>,
    ) -> Result<Receiver<Result<Row, Refusal>>, Refusal> {
        let busy = Busy::with(self, &row.attempt_id)
            .ok_or_else(|| unavailable("an earlier sweep is still busy with it"))?;
        let (told, heard) = mpsc::sync_channel(1);
        let seen = Arc::clone(seen);
        let named = std::thread::Builder::new().name("placement-sweep".to_owned());
        let started = named.spawn(move || {
            let settled = busy.service.reconcile_seeing(row, &seen);
            drop(busy);
            // A pass that waits no longer has told that there was no answer.
            told.send(settled).ok();
        });
        started.map_err(|_| unavailable("no thread could be had"))?;
        Ok(heard)
    }
}

/// Keeps a second sweep from an attempt that an earlier one is busy with.
struct Busy {
    service: Service,
    attempt_id: AttemptId,
}

impl Busy {
    fn with(service: &Service, attempt_id: &AttemptId) -> Option<Self> {
        let mut busy = service.inner.being_swept.lock().unwrap_or_else(PoisonError::into_inner);
        busy.insert(attempt_id.clone())
            .then(|| Self { service: service.clone(), attempt_id: attempt_id.clone() })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let being_swept = &self.service.inner.being_swept;
        being_swept.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.attempt_id);
    }
}

fn heard_by(
    answer: Result<Receiver<Result<Row, Refusal>>, Refusal>,
    deadline: Instant,
) -> Result<Row, Refusal> {
    let left = deadline.saturating_duration_since(Instant::now());
    answer?.recv_timeout(left).unwrap_or_else(|_| Err(unavailable("it did not answer in time")))
}

fn concluded(row: &Row, settled: Result<Row, Refusal>) -> Swept {
    match settled {
        Ok(settled) => Swept {
            execution_state: Some(settled.state.execution),
            changed: settled.evidence_count != row.evidence_count,
            ..unchanged(row)
        },
        Err(refusal) => Swept { ok: false, code: Some(refusal.code), ..unchanged(row) },
    }
}

fn unchanged(row: &Row) -> Swept {
    Swept {
        attempt_id: row.attempt_id.clone(),
        ok: true,
        code: None,
        execution_state: Some(row.state.execution),
        changed: false,
    }
}

fn damaged(attempt_id: AttemptId) -> Swept {
    let code = Some(Code::Storage);
    Swept { attempt_id, ok: false, code, execution_state: None, changed: false }
}
