//! What must hold after every step, whatever happened.

use super::bed::{Bed, Truth};
use placement_contract::{
    AttemptId, CleanupScope, CleanupState, Evidence, EvidenceKind, ExecutionState, ExitSource,
    Mechanism,
};
use placement_store::Row;
use std::collections::BTreeMap;

/// Looks at every attempt; returns the first rule that is broken.
pub(super) fn look(bed: &Bed) -> Option<String> {
    if let Some(broken) = bed.broken.take() {
        return Some(broken);
    }
    if !bed.stranger.borrow().is_alive() {
        return Some("a stranger was ended".to_owned());
    }
    // The log only grows: nobody takes it in before it is larger than a life makes it.
    let log = std::fs::metadata(bed.root.join("placement.db-wal")).unwrap().len();
    let committed = bed.looked_at.replace(log) != log;
    let mut truths = bed.truths.borrow_mut();
    truths
        .iter_mut()
        .filter(|_| committed)
        .find_map(|(id, truth)| look_at(bed, id, truth).err().map(|rule| format!("{id}: {rule}")))
}

fn look_at(bed: &Bed, id: &AttemptId, truth: &mut Truth) -> Result<(), String> {
    let store = &bed.runners;
    let Some(row) = store.find_any(id).map_err(|error| format!("its row: {error}"))? else {
        return pruned(bed, id, truth);
    };
    check(!truth.pruned, "it was pruned and is there again")?;
    let home_is_gone = truth.home.as_ref().is_some_and(|home| !home.exists());
    if home_is_gone {
        look_at_removal(truth, &row)?;
    }
    // The chain holds every row: what has the same count and head is as it was.
    if truth.seen.as_ref().is_some_and(|seen| *seen == (row.evidence_count, row.chain_head.clone()))
    {
        return Ok(());
    }
    let kept = truth.seen.as_ref().map(|(_, head)| head.clone());
    let verdict = store.verify(id, kept.as_ref()).map_err(|error| format!("verify: {error}"))?;
    let verdict = verdict.ok_or("it went while it was looked at")?;
    if let Some(fault) = verdict.faults.first() {
        return Err(format!("state and evidence differ: {fault:?}"));
    }
    let before = truth.seen.as_ref().map_or(0, |(count, _)| *count);
    check(
        kept.is_none() || verdict.kept_head_at == Some(before),
        "evidence that was there is another one",
    )?;
    let evidence = store.all_evidence(id).map_err(|error| format!("evidence: {error}"))?;
    let new: Vec<&Evidence> = evidence.iter().filter(|it| it.sequence > before).collect();
    if !new.is_empty() {
        let kinds: Vec<&str> = new.iter().map(|it| it.kind.label()).collect();
        bed.note(format!("    {id}: {} → {}", kinds.join(", "), row.state));
    }
    truth.seen = Some((verdict.count, verdict.head));
    look_at_counts(truth, &row, &evidence)?;
    for evidence in new {
        look_at_new(truth, evidence)?;
    }
    look_at_claims_of_absence(truth, &row, &evidence)
}

fn pruned(bed: &Bed, id: &AttemptId, truth: &mut Truth) -> Result<(), String> {
    let service = bed.host(truth.owner);
    let receipt = service.pruned(id).map_err(|refusal| format!("its receipt: {refusal}"))?;
    check(receipt.is_some(), "it is gone without a receipt")?;
    truth.pruned = true;
    check(!truth.supervised, "it was pruned under its runner")?;
    check(!truth.scope_lives(truth.request.required_cleanup), "it was pruned and its scope lives")
}

/// At most one of each of these, whoever tried.
fn look_at_counts(truth: &Truth, row: &Row, evidence: &[Evidence]) -> Result<(), String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for row in evidence {
        *counts.entry(row.kind.label()).or_default() += 1;
    }
    let count = |kind: EvidenceKind| counts.get(kind.label()).copied().unwrap_or_default();
    check(truth.claims <= 1, "it was claimed twice")?;
    check(count(EvidenceKind::RunnerStarted) <= 1, "two runners have claimed it")?;
    check(count(EvidenceKind::ChildCreating) <= 1, "two children were created")?;
    check(count(EvidenceKind::ChildExited) <= 1, "it exited twice")?;
    let recorded = count(EvidenceKind::RunnerStarted);
    check(recorded == truth.claims, "a claim that was told is not recorded, or the other way")?;
    check(row.runner.is_some() == (truth.claims > 0), "a claim has no runner")
}

/// Rows that only a host writes, about somebody else's processes.
fn look_at_new(truth: &Truth, evidence: &Evidence) -> Result<(), String> {
    let label = evidence.kind.label();
    let against_a_runner = matches!(
        evidence.kind,
        EvidenceKind::ReconcileAbsent
            | EvidenceKind::ReconcileAlive
            | EvidenceKind::ReconcileUnobserved
            | EvidenceKind::ReconcileUnidentified
            | EvidenceKind::StopUnproven
            | EvidenceKind::RunnerExited
            | EvidenceKind::OperatorResolved
    );
    check(
        !against_a_runner || !truth.supervised,
        &format!("{label} was recorded while its runner lives"),
    )?;
    let says_gone = evidence.kind == EvidenceKind::ReconcileAbsent;
    check(
        !says_gone || !truth.leader_lives || truth.rebooted,
        "the leader was called absent and lives",
    )?;
    let from_elsewhere = truth.elsewhere && !truth.rebooted;
    check(
        !from_elsewhere || (!says_gone && evidence.kind != EvidenceKind::SignalGroup),
        &format!("{label} was recorded of a process in another namespace"),
    )
}

fn look_at_claims_of_absence(
    truth: &Truth,
    row: &Row,
    evidence: &[Evidence],
) -> Result<(), String> {
    let has = |kind: EvidenceKind| evidence.iter().any(|it| it.kind == kind);
    check(
        !(truth.ran && has(EvidenceKind::ChildNotStarted)),
        "a child that ran was called never started",
    )?;
    check(
        !(has(EvidenceKind::TreeGone) && truth.tree_lives()),
        "a tree was called gone and lives",
    )?;
    if row.state.cleanup == CleanupState::Complete {
        check(!truth.scope_lives(row.required_cleanup), "it was cleaned and its scope lives")?;
    }
    Ok(())
}

fn look_at_removal(truth: &Truth, row: &Row) -> Result<(), String> {
    check(row.state.execution == ExecutionState::Exited, "a home went before the exit")?;
    check(!truth.request.supervision.keep_home, "a home went that was to be kept")?;
    check(!truth.scope_lives(row.required_cleanup), "a home went and its scope lives")
}

/// Once nobody acts any more, each attempt is settled, or uncertain for a reason that is true.
pub(super) fn look_at_the_end(bed: &Bed) -> Option<String> {
    bed.truths.borrow().values().find_map(|truth| {
        let row = bed.runners.find_any(&truth.id).ok()??;
        let unprovable = (truth.elsewhere && !truth.rebooted)
            || matches!(row.mechanism, Some(Mechanism::Subreaper | Mechanism::Cgroup));
        let settled = match row.state.execution {
            ExecutionState::Intended | ExecutionState::Exited => true,
            ExecutionState::Uncertain => unprovable,
            ExecutionState::Starting | ExecutionState::Running | ExecutionState::Stopping => false,
        };
        let told = row.exit_source != Some(ExitSource::Runner) || truth.claims == 1;
        (!settled || !told).then(|| format!("{}: it stays {}", truth.id, row.state))
    })
}

impl Truth {
    pub(super) fn tree_lives(&self) -> bool {
        self.leader_lives || self.escapee_lives
    }

    /// Says whether what a cleanup must prove gone lives.
    fn scope_lives(&self, required: CleanupScope) -> bool {
        match required {
            CleanupScope::DirectProcess | CleanupScope::ProcessGroup => self.leader_lives,
            CleanupScope::ContainedTree => self.tree_lives(),
        }
    }
}

fn check(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}
