//! Looking at many attempts at once: a bounded pass over what lives, whoever owns it, and all that
//! an owner has open.

use crate::Service;
use crate::list::LISTED_MAX;
use crate::refusal::unavailable;
use crate::survivors::Processes;
use crate::verdict::RunnerSeen;
use placement_contract::limits::{SWEEP_ATTEMPTS_MAX, SWEEP_RECONCILE_MS};
use placement_contract::{Attempt, AttemptId, Code, ExecutionState, Refusal};
use placement_store::{ChildIdentity, Row, Selection};
use serde::Serialize;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long a pass waits for what it settles: they are settled side by side, so each has all of it.
const PATIENCE: Duration = Duration::from_millis(SWEEP_RECONCILE_MS);

/// What one pass came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sweep {
    /// How many attempts were looked at and answered for.
    pub reconciled: usize,
    /// Each attempt that was looked at, the longest unobserved first.
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
    /// Its state now; as it was where it was not looked at.
    pub execution_state: ExecutionState,
    /// Whether this look recorded anything.
    pub changed: bool,
}

/// What became of one attempt when all that are open were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What it is now, or what stood against the look.
    pub settled: Result<Attempt, Refusal>,
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
        let due = self.due()?;
        let (resting, open): (Vec<Row>, Vec<Row>) =
            due.iter().cloned().partition(|row| self.is_at_rest(row));
        let settled = self.settle_side_by_side(open);
        let mut outcomes: Vec<Swept> = resting.iter().map(unchanged).collect();
        outcomes.extend(settled.into_iter().map(|(row, settled)| concluded(&row, settled)));
        if !outcomes.is_empty() {
            // Those too that gave no answer: they are not to keep later passes from the others.
            self.inner.store.touch_observed(outcomes.iter().map(|it| &it.attempt_id))?;
        }
        self.inner.store.checkpoint_if_large()?;
        let place = |id: &AttemptId| due.iter().position(|row| row.attempt_id == *id);
        outcomes.sort_by_key(|outcome| place(&outcome.attempt_id));
        Ok(Sweep { reconciled: outcomes.iter().filter(|it| it.ok).count(), outcomes })
    }

    fn due(&self) -> Result<Vec<Row>, Refusal> {
        let reader = &self.inner.reader;
        let mut due = reader.list(None, Selection::Live, SWEEP_ATTEMPTS_MAX)?.rows;
        let room = SWEEP_ATTEMPTS_MAX.saturating_sub(u32::try_from(due.len()).unwrap_or(u32::MAX));
        if room > 0 {
            due.extend(reader.list(None, Selection::TreeNotGone, room)?.rows);
        }
        Ok(due)
    }

    /// Says whether a living runner looks after an attempt, and nothing is missing from its row.
    fn is_at_rest(&self, row: &Row) -> bool {
        let is_complete = row.state.execution != ExecutionState::Running
            || matches!(row.child, ChildIdentity::Complete(_));
        is_complete && self.runner_seen(row) == RunnerSeen::Alive
    }

    /// Looks at every open attempt of this owner, as [`Service::reconcile`] does, side by side: one
    /// whose runner hangs holds up no other.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read; what stands against one attempt is told with it.
    pub fn reconcile_all(&self) -> Result<Vec<Reconciled>, Refusal> {
        let mut rows = Vec::new();
        for open in [Selection::Unsettled, Selection::Uncleaned] {
            rows.extend(self.inner.reader.list(Some(&self.inner.owner), open, LISTED_MAX)?.rows);
        }
        let batch = usize::try_from(SWEEP_ATTEMPTS_MAX).unwrap_or(1);
        let settled = rows.chunks(batch).flat_map(|rows| self.settle_side_by_side(rows.to_vec()));
        let told = |(row, settled): (Row, Result<Row, Refusal>)| Reconciled {
            attempt_id: row.attempt_id,
            settled: settled.map(|row| row.attempt()),
        };
        Ok(settled.map(told).collect())
    }

    fn settle_side_by_side(&self, rows: Vec<Row>) -> Vec<(Row, Result<Row, Refusal>)> {
        let seen = Arc::new(Processes::default());
        let deadline = Instant::now() + PATIENCE;
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
            execution_state: settled.state.execution,
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
        execution_state: row.state.execution,
        changed: false,
    }
}
