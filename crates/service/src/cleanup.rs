//! Removing an attempt's home, once everything that could still use it is proven gone.

use crate::Service;
use crate::limits::{FINISH_EXTRA, GROUP_ZOMBIES, LOOK};
use crate::places::with_errno;
use crate::reconcile::{place_of, recorded_leaf};
use crate::refusal::{conflict, unavailable};
use crate::service::Found;
use crate::tree::RecordedLeaf;
use placement_contract::{
    Attempt, AttemptId, CleanupState, EvidenceKind, ExecutionState, LaunchRequest, Refusal,
};
use placement_crash::point;
use placement_homes::TemporaryDir;
use placement_identity::{
    AbsenceProof, GroupAbsence, GroupPresence, Observer, Presence, ProcessIdentity, boot_id,
    observe_group,
};
use placement_process::{LeafPresence, Population};
use placement_store::{ChildIdentity, Draft, Durability, Fields, Row};
use placement_transitions::{LeafFacts, LeafSeen, ScopeFacts, ScopeGone, prove_scope};
use std::time::Instant;

/// How often a cleanup that was overtaken by somebody else's commit begins again.
const ROUNDS_MAX: usize = 4;

impl Service {
    /// Removes the home of an exited attempt, with the proof that its required scope is gone.
    ///
    /// A runner that is still finishing is waited for within the launch's drain and grace. Repeated
    /// and concurrent cleanups are one.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT for an attempt that has not exited, and where the scope is not proven
    /// gone (`cleanup.refused`; nothing is removed); UNAVAILABLE where the removal failed
    /// (`cleanup.failed`; a later cleanup may succeed); STORAGE.
    pub fn cleanup(&self, attempt_id: &AttemptId) -> Result<Attempt, Refusal> {
        let row = match self.find(attempt_id)? {
            Found::Row(row) => *row,
            Found::Pruned(attempt) => return Ok(*attempt),
        };
        if row.state.cleanup == CleanupState::Complete {
            return Ok(row.attempt());
        }
        if row.state.execution != ExecutionState::Exited {
            let message = format!("the attempt is {} and not exited", row.state.execution);
            let hint = "stop it first, or wait until it ends; reconcile settles what is uncertain";
            return Err(conflict(message).with_hint(hint));
        }
        let request = row.request()?;
        let patience = request.timeouts.drain() + request.timeouts.stop_grace() + FINISH_EXTRA;
        self.wait_ended(attempt_id, Some(Instant::now() + patience))?;
        for _ in 0..ROUNDS_MAX {
            let row = self.reconcile_row(self.row(attempt_id)?)?;
            if row.state.cleanup == CleanupState::Complete {
                return Ok(row.attempt());
            }
            if let Some(row) = self.cleanup_once(&row, &request)? {
                // Outside a launch, so nobody waits for it; the next one tries again.
                self.inner.store.checkpoint_if_large().ok();
                return Ok(row.attempt());
            }
        }
        Err(unavailable("the attempt changed while it was cleaned"))
    }

    fn cleanup_once(&self, row: &Row, request: &LaunchRequest) -> Result<Option<Row>, Refusal> {
        let gone = match self.prove_gone(row)? {
            Ok(gone) => gone,
            Err(reason) => {
                let refused = [Draft::new(EvidenceKind::CleanupRefused, reason)];
                if self.record_cleanup(row, &refused)?.is_none() {
                    return Ok(None);
                }
                let hint = "`placement stop --force` ends what is left; then clean again";
                return Err(conflict(reason).with_hint(hint));
            }
        };
        point("service.scope.proven");
        match self.remove(row, request, &gone) {
            Ok(kept) => {
                let detail = format!("{}; {kept}", gone.because());
                self.record_cleanup(row, &[Draft::new(EvidenceKind::CleanupComplete, detail)])
            }
            Err(message) => {
                let failed = [Draft::new(EvidenceKind::CleanupFailed, message.as_str())];
                if self.record_cleanup(row, &failed)?.is_none() {
                    return Ok(None);
                }
                Err(unavailable(message))
            }
        }
    }

    /// Nothing where a concurrent cleanup or somebody else came first.
    fn record_cleanup(&self, row: &Row, rows: &[Draft]) -> Result<Option<Row>, Refusal> {
        self.commit(row, rows, &Fields::default(), Durability::Normal)
    }

    /// Gathers what is recorded and what is seen now, and asks for the proof.
    pub(crate) fn prove_gone(&self, row: &Row) -> Result<Result<ScopeGone, &'static str>, Refusal> {
        self.prove_gone_by(row, look_at_processes)
    }

    /// The same, with whatever looks at the process table: it is asked only where it decides.
    pub(crate) fn prove_gone_by(
        &self,
        row: &Row,
        look: impl FnOnce(&Row) -> (Option<AbsenceProof>, Option<GroupAbsence>),
    ) -> Result<Result<ScopeGone, &'static str>, Refusal> {
        let folded = self.inner.store.folded(&row.attempt_id)?;
        let place = place_of(row);
        let init = row.init.as_ref().and_then(look_for_absence);
        let here = Observer::here().ok();
        let now = boot_id().ok();
        let leaf = recorded_leaf(row);
        let leaf = match (&leaf, &here, &now) {
            (Some(leaf), Some(seen_by), Some(seen_boot)) => Some(LeafFacts {
                seen: look_at_leaf(leaf),
                made_boot: leaf.boot_id,
                made_by: leaf.made_by,
                seen_boot,
                seen_by,
            }),
            (Some(_) | None, _, _) => None,
        };
        let facts = ScopeFacts {
            tree_gone_by: row.tree_gone_by.as_deref(),
            group_gone_recorded: folded.group_gone,
            child_not_started_recorded: folded.child_not_started,
            child_start_failed_recorded: folded.child_start_failed,
            identity: row.recorded_identity(),
            place: place.as_ref(),
            init: init.as_ref(),
            leaf,
            ..ScopeFacts::of(row.state.execution, row.exit_source)
        };
        // Most often the record proves it, and the process table need not be read.
        if let Ok(gone) = prove_scope(row.required_cleanup, &facts) {
            return Ok(Ok(gone));
        }
        let (leader, group) = look(row);
        let facts = ScopeFacts { leader: leader.as_ref(), group: group.as_ref(), ..facts };
        Ok(prove_scope(row.required_cleanup, &facts).map_err(|unproven| unproven.reason))
    }

    /// Removes the temporary directory, the home and the sockets; says what became of the home.
    fn remove(
        &self,
        row: &Row,
        request: &LaunchRequest,
        gone: &ScopeGone,
    ) -> Result<&'static str, String> {
        let directory = self.attempt_directory(row).map_err(|refusal| refusal.message)?;
        let Some(directory) = directory else { return Ok("there is no home") };
        if let Some(temporary) = TemporaryDir::open(&directory).map_err(|e| with_errno(&e))? {
            temporary.remove(gone).map_err(|error| with_errno(&error))?;
            point("service.temporary.removed");
        }
        directory.remove_sockets().map_err(|error| with_errno(&error))?;
        point("service.sockets.removed");
        directory.release_exit_reserve().map_err(|error| with_errno(&error))?;
        if request.supervision.keep_home {
            return Ok("the home is kept as the launch asked");
        }
        directory.remove_home(gone).map_err(|error| with_errno(&error))?;
        point("service.home.removed");
        Ok("the home is removed")
    }
}

fn look_at_processes(row: &Row) -> (Option<AbsenceProof>, Option<GroupAbsence>) {
    let ChildIdentity::Complete(child) = &row.child else { return (None, None) };
    let leader = look_for_absence(child);
    let deadline = Instant::now() + GROUP_ZOMBIES;
    loop {
        match observe_group(child.pgid, &child.boot_id, &child.observer) {
            GroupPresence::Absent(absence) => return (leader, Some(absence)),
            // What has ended waits for its reaper, who is at work.
            GroupPresence::ZombiesOnly if Instant::now() < deadline => std::thread::sleep(LOOK),
            GroupPresence::ZombiesOnly | GroupPresence::Members(_) | GroupPresence::Unknown(_) => {
                return (leader, None);
            }
        }
    }
}

fn look_for_absence(process: &ProcessIdentity) -> Option<AbsenceProof> {
    match process.observe() {
        Presence::Absent(proof) => Some(proof),
        Presence::Present(_) | Presence::Unknown(_) => None,
    }
}

fn look_at_leaf(leaf: &RecordedLeaf<'_>) -> LeafSeen {
    match leaf.look_up() {
        LeafPresence::Gone(_) => LeafSeen::Gone,
        LeafPresence::Unknown(_) => LeafSeen::Unknown,
        LeafPresence::Present(leaf) => match leaf.populated() {
            Ok(Population::Empty) => LeafSeen::Empty,
            Ok(Population::Populated) => LeafSeen::Populated,
            Err(_) => LeafSeen::Unknown,
        },
    }
}

const _: () = assert!(LOOK.as_millis() < GROUP_ZOMBIES.as_millis());
