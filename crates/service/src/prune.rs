//! Replacing settled attempts by receipts.

use crate::Service;
use crate::outcome::outcome;
use crate::places::with_errno;
use crate::verdict::RunnerSeen;
use placement_contract::{AttemptId, Outcome, Pruned, Refusal, Timestamp};
use placement_crash::point;
use placement_homes::{HomeKey, RunnerAlive};
use placement_store::{PruneError, Row};
use placement_transitions::{RunnerFacts, Settled, prove_settled};
use std::time::Duration;

/// Most attempts that one call prunes: some seconds of work.
pub const PRUNED_MAX: usize = 1_000;

/// What a pruning did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruning {
    /// The attempts of which only a receipt is left.
    pub pruned: Vec<AttemptId>,
    /// Those that are old enough and were kept, each with the reason.
    pub kept: Vec<Kept>,
    /// Whether the bound of one call came before the end.
    pub more: bool,
}

/// An attempt that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What stands in the place of its id.
    pub attempt_id: String,
    /// Why, in a fixed phrase.
    pub why: String,
}

impl Service {
    /// Removes this owner's attempts that are exited, cleaned and unchanged for so long, and leaves
    /// one receipt each; at most [`PRUNED_MAX`] a call.
    ///
    /// A receipt answers a retry, so that nothing runs again, and keeps the attempt's id taken. What
    /// goes is the evidence, the log and a home that the launch kept; never a session's home. An
    /// attempt whose runner is not known to be gone is kept. Directories go first: what a crash
    /// leaves between is finished by the next pruning.
    ///
    /// # Errors
    /// STORAGE. What stands against one attempt is in the answer and keeps no other.
    pub fn prune(&self, older_than: Duration) -> Result<Pruning, Refusal> {
        let now_ms = self.inner.clock.now().unix_ms();
        let age_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        let unchanged_since = Timestamp::from_unix_ms(now_ms.saturating_sub(age_ms));
        let mut pruning = Pruning::default();
        let mut after = None;
        loop {
            let page =
                self.inner.store.settled(&self.inner.owner, &unchanged_since, after.as_ref())?;
            for corrupt in page.corrupt {
                let why = format!("its row is malformed ({})", corrupt.column);
                pruning.kept.push(Kept { attempt_id: corrupt.attempt_id, why });
            }
            for row in page.rows {
                if pruning.pruned.len() >= PRUNED_MAX {
                    pruning.more = true;
                    return Ok(pruning);
                }
                match self.prune_one(&row)? {
                    Ok(()) => pruning.pruned.push(row.attempt_id),
                    Err(why) => {
                        let attempt_id = row.attempt_id.to_string();
                        pruning.kept.push(Kept { attempt_id, why });
                    }
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        // Nobody waits for it; the next one tries again.
        self.inner.store.checkpoint_if_large().ok();
        Ok(pruning)
    }

    /// Returns the receipt of a pruned attempt of this owner, if it is one.
    ///
    /// # Errors
    /// STORAGE where it is malformed.
    pub fn pruned(&self, attempt_id: &AttemptId) -> Result<Option<Pruned>, Refusal> {
        Ok(self.inner.reader.find_pruned(&self.inner.owner, attempt_id)?)
    }

    fn prune_one(&self, row: &Row) -> Result<Result<(), String>, Refusal> {
        let settled = match prove_settled(row.state, self.runner_facts(row)) {
            Ok(settled) => settled,
            Err(unproven) => return Ok(Err(unproven.reason.to_owned())),
        };
        // Read before anything is removed, so that a malformed row removes nothing.
        let outcome = match self.outcome_of(row) {
            Ok(outcome) => outcome,
            Err(refusal) => return Ok(Err(refusal.message)),
        };
        if let Err(why) = self.remove_directory(row, &settled) {
            return Ok(Err(why));
        }
        point("service.attempt.removed");
        match self.inner.store.prune(row, outcome) {
            Ok(_) => Ok(Ok(())),
            Err(error @ (PruneError::Changed | PruneError::NotSettled | PruneError::NotFound)) => {
                Ok(Err(error.to_string()))
            }
            Err(error @ PruneError::Store(_)) => Err(error.into()),
        }
    }

    fn outcome_of(&self, row: &Row) -> Result<Outcome, Refusal> {
        let evidence = self.inner.store.all_evidence(&row.attempt_id)?;
        Ok(outcome(&row.attempt(), &evidence))
    }

    fn remove_directory(&self, row: &Row, settled: &Settled) -> Result<(), String> {
        let Some(key) = &row.home_key else { return Ok(()) };
        let key = HomeKey::parse(key).map_err(|_| "the recorded home is malformed".to_owned())?;
        match self.inner.root.remove_attempt(&key, settled) {
            Ok(_) => Ok(()),
            Err(error) => Err(with_errno(&error)),
        }
    }

    /// Asks for the runner by its lock; where a removal has begun before there may be none.
    fn runner_facts(&self, row: &Row) -> RunnerFacts {
        let Some(runner) = &row.runner else { return RunnerFacts::Never };
        let lock = match self.attempt_directory(row) {
            Ok(Some(directory)) => directory.observe_alive(),
            Ok(None) => RunnerAlive::Missing,
            Err(_) => return RunnerFacts::Unknown,
        };
        match lock {
            RunnerAlive::Missing if runner.finished => RunnerFacts::FinishedWithoutLock,
            RunnerAlive::Held
            | RunnerAlive::Released
            | RunnerAlive::Missing
            | RunnerAlive::Unknown(_) => match self.runner_seen(row) {
                RunnerSeen::Alive => RunnerFacts::Alive,
                RunnerSeen::Gone => RunnerFacts::Gone,
                RunnerSeen::Unknown => RunnerFacts::Unknown,
            },
        }
    }
}
