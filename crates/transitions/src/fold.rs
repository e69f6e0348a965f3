//! A whole life of evidence folded into what it says.

use crate::after::{Refused, after};
use placement_contract::{AttemptState, Evidence, EvidenceKind, Exit, ExitSource};

/// The detail of a `child.exited` row whose exit could not be learnt.
pub const EXIT_NOT_KNOWN: &str = "not known";

/// What the evidence of an attempt says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says of a kind whether it is recorded")]
pub struct Folded {
    /// The states after the last row.
    pub state: AttemptState,
    /// The exit, where it was observed.
    pub exit: Option<Exit>,
    /// Who learnt of the exit.
    pub exit_source: Option<ExitSource>,
    /// The detail of the first `tree.gone` row.
    pub tree_gone_by: Option<String>,
    /// Whether a `group.gone` row is recorded.
    pub group_gone: bool,
    /// Whether a `child.not_started` row is recorded.
    pub child_not_started: bool,
    /// Whether `child.start_failed` is recorded.
    pub child_start_failed: bool,
    /// Whether `child.started` is recorded.
    pub child_started: bool,
    /// How many rows there are.
    pub count: u64,
}

/// The evidence of an attempt contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("row {sequence}: {why}")]
pub struct FoldError {
    /// The sequence at which it was noticed.
    pub sequence: u64,
    /// What does not fit.
    pub why: FoldWhy,
}

/// What does not fit in a row of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FoldWhy {
    /// There is no row, or the first one is another.
    #[error("the first row is not intent.recorded")]
    First,
    /// A sequence is missing or comes twice.
    #[error("the sequence is not the next one")]
    Sequence,
    /// The state before is not the state after the row before.
    #[error("the state before is not the one that was reached")]
    From,
    /// The state after does not follow.
    #[error("the state after does not follow from the kind")]
    To,
    /// The kind does not fit the state.
    #[error("the kind does not fit the state")]
    Kind(Refused),
    /// A `child.exited` row does not tell an exit, or tells a second one.
    #[error("the exit is not one exit in its one form")]
    Exit,
}

impl Folded {
    /// Starts a life: the first row alone.
    pub const fn intended() -> Self {
        Self {
            state: AttemptState::INTENDED,
            exit: None,
            exit_source: None,
            tree_gone_by: None,
            group_gone: false,
            child_not_started: false,
            child_start_failed: false,
            child_started: false,
            count: 1,
        }
    }

    /// Adds one row.
    ///
    /// # Errors
    /// [`FoldWhy::Exit`] where a `child.exited` row tells no exit or a second one.
    /// [`FoldWhy::Kind`] where the kind does not fit the state.
    pub fn with(mut self, kind: EvidenceKind, detail: &str) -> Result<Self, FoldWhy> {
        let to = after(self.state, kind).map_err(FoldWhy::Kind)?;
        if kind == EvidenceKind::ChildExited {
            self.learn_exit(detail)?;
        } else if to.execution != self.state.execution {
            self.exit_source = exit_source_of(kind).or(self.exit_source);
        }
        if kind == EvidenceKind::TreeGone && self.tree_gone_by.is_none() {
            self.tree_gone_by = Some(detail.to_owned());
        }
        self.group_gone |= kind == EvidenceKind::GroupGone;
        self.child_not_started |= kind == EvidenceKind::ChildNotStarted;
        self.child_start_failed |= kind == EvidenceKind::ChildStartFailed;
        self.child_started |= kind == EvidenceKind::ChildStarted;
        self.state = to;
        self.count += 1;
        Ok(self)
    }

    /// Takes the one exit; a runner may bring it after a reconcile has settled the attempt.
    fn learn_exit(&mut self, detail: &str) -> Result<(), FoldWhy> {
        let exit = match detail {
            EXIT_NOT_KNOWN => None,
            phrase => Some(Exit::from_phrase(phrase).ok_or(FoldWhy::Exit)?),
        };
        let told_in_its_one_form = exit.is_none_or(|exit| exit.to_string() == detail);
        if self.exit.is_some() || !told_in_its_one_form {
            return Err(FoldWhy::Exit);
        }
        self.exit = exit;
        self.exit_source = Some(ExitSource::Runner);
        Ok(())
    }
}

/// Says who learnt of the end that a kind tells of.
fn exit_source_of(kind: EvidenceKind) -> Option<ExitSource> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds tell of no end")]
    match kind {
        EvidenceKind::ChildNotStarted | EvidenceKind::ChildStartFailed => Some(ExitSource::Runner),
        EvidenceKind::ReconcileAbsent => Some(ExitSource::Reconcile),
        EvidenceKind::OperatorResolved => Some(ExitSource::Operator),
        _ => None,
    }
}

/// Folds all rows of an attempt, in their order.
///
/// # Errors
/// [`FoldError`] names the first row that does not fit. An empty life is an error at row 1.
pub fn fold<'a>(rows: impl IntoIterator<Item = &'a Evidence>) -> Result<Folded, FoldError> {
    let mut folded: Option<Folded> = None;
    for row in rows {
        let error = |why| FoldError { sequence: row.sequence, why };
        folded = Some(match folded.take() {
            None => first(row).map_err(error)?,
            Some(before) => next(before, row).map_err(error)?,
        });
    }
    folded.ok_or(FoldError { sequence: 1, why: FoldWhy::First })
}

fn first(row: &Evidence) -> Result<Folded, FoldWhy> {
    if row.sequence != 1 {
        return Err(FoldWhy::Sequence);
    }
    if row.kind != EvidenceKind::IntentRecorded || row.from.is_some() {
        return Err(FoldWhy::First);
    }
    if row.state_after() != Some(AttemptState::INTENDED) {
        return Err(FoldWhy::To);
    }
    Ok(Folded::intended())
}

fn next(before: Folded, row: &Evidence) -> Result<Folded, FoldWhy> {
    if before.count.checked_add(1) != Some(row.sequence) {
        return Err(FoldWhy::Sequence);
    }
    let from = before.state.to_string();
    if row.from.as_deref() != Some(from.as_str()) {
        return Err(FoldWhy::From);
    }
    let folded = before.with(row.kind, &row.detail)?;
    if row.state_after() != Some(folded.state) {
        return Err(FoldWhy::To);
    }
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_contract::EvidenceKind::*;
    use placement_contract::{Digest, ExecutionState, Timestamp};

    /// Rows as a store would write them.
    fn life(rows: &[(EvidenceKind, &str)]) -> Vec<Evidence> {
        let mut state = AttemptState::INTENDED;
        let mut made = vec![row(1, IntentRecorded, None, state, "")];
        for (sequence, (kind, detail)) in (2..).zip(rows) {
            let to = after(state, *kind).unwrap();
            made.push(row(sequence, *kind, Some(state), to, detail));
            state = to;
        }
        made
    }

    fn row(
        sequence: u64,
        kind: EvidenceKind,
        from: Option<AttemptState>,
        to: AttemptState,
        detail: &str,
    ) -> Evidence {
        Evidence {
            sequence,
            at: Timestamp::from_unix_ms(0),
            kind,
            from: from.map(|state| state.to_string()),
            to: to.to_string(),
            detail: detail.to_owned(),
            chain: Digest::of_bytes(b""),
        }
    }

    const GOOD_RUN: &[(EvidenceKind, &str)] = &[
        (RunnerStarted, ""),
        (HomeCreated, ""),
        (ChildCreating, ""),
        (ChildIdentified, ""),
        (ChildStarted, ""),
        (ChildExited, "code 3"),
        (TreeGone, "cgroup"),
        (RunnerFinished, ""),
        (CleanupComplete, ""),
    ];

    #[test]
    fn a_good_run_folds_into_its_end() {
        let folded = fold(&life(GOOD_RUN)).unwrap();
        assert_eq!(folded.state.to_string(), "exited/complete");
        assert_eq!(folded.exit, Some(Exit::Code { code: 3 }));
        assert_eq!(folded.exit_source, Some(ExitSource::Runner));
        assert_eq!(folded.tree_gone_by.as_deref(), Some("cgroup"));
        assert_eq!(folded.count, 10);
    }

    #[test]
    fn a_life_without_rows_is_an_error() {
        assert_eq!(fold(&[]), Err(FoldError { sequence: 1, why: FoldWhy::First }));
    }

    #[test]
    fn a_missing_row_is_noticed_wherever_it_was() {
        for missing in 0..GOOD_RUN.len() {
            let mut rows = life(GOOD_RUN);
            rows.remove(missing);
            assert_eq!(fold(&rows).unwrap_err().why, FoldWhy::Sequence, "row {missing}");
        }
    }

    #[test]
    fn a_changed_label_is_noticed() {
        let mut from = life(GOOD_RUN);
        from[5].from = Some("running/pending".into());
        assert_eq!(fold(&from), Err(FoldError { sequence: 6, why: FoldWhy::From }));
        let mut to = life(GOOD_RUN);
        to[5].to = "uncertain/pending".into();
        assert_eq!(fold(&to), Err(FoldError { sequence: 6, why: FoldWhy::To }));
        let mut kind = life(GOOD_RUN);
        kind[5].kind = RunnerStarted;
        let error = fold(&kind).unwrap_err();
        assert_eq!(error.sequence, 6);
        assert!(matches!(error.why, FoldWhy::Kind(_)));
    }

    #[test]
    fn an_exit_is_told_once_and_in_one_form() {
        for detail in ["", "gone", "code  3", "code +3", "code 03"] {
            let mut rows = life(GOOD_RUN);
            rows[6].detail = detail.into();
            assert_eq!(fold(&rows).unwrap_err().why, FoldWhy::Exit, "{detail:?}");
        }
        let twice = life(&[(RunnerStarted, ""), (ChildExited, "code 0"), (ChildExited, "code 1")]);
        assert_eq!(fold(&twice), Err(FoldError { sequence: 4, why: FoldWhy::Exit }));
    }

    #[test]
    fn an_exit_that_was_not_learnt_is_told_as_such() {
        let folded = fold(&life(&[(RunnerStarted, ""), (ChildExited, EXIT_NOT_KNOWN)])).unwrap();
        assert_eq!((folded.exit, folded.exit_source), (None, Some(ExitSource::Runner)));
    }

    #[test]
    fn a_runner_brings_the_exit_after_a_reconcile() {
        let settled = life(&[(RunnerStarted, ""), (ReconcileAbsent, "")]);
        assert_eq!(fold(&settled).unwrap().exit_source, Some(ExitSource::Reconcile));
        let late = life(&[(RunnerStarted, ""), (ReconcileAbsent, ""), (ChildExited, "signal 9")]);
        let folded = fold(&late).unwrap();
        assert_eq!(folded.exit, Some(Exit::Signal { signal: 9, core: false }));
        assert_eq!(folded.exit_source, Some(ExitSource::Runner));
    }

    #[test]
    fn an_operator_settles_what_is_uncertain_and_the_runner_may_know_better() {
        let settled =
            [(RunnerStarted, ""), (StopUnproven, ""), (OperatorResolved, "by ops: box is gone")];
        let folded = fold(&life(&settled)).unwrap();
        assert_eq!(folded.state.to_string(), "exited/pending");
        assert_eq!((folded.exit, folded.exit_source), (None, Some(ExitSource::Operator)));
        let late = life(&[settled.as_slice(), &[(ChildExited, "code 3")]].concat());
        assert_eq!(fold(&late).unwrap().exit_source, Some(ExitSource::Runner));
    }

    /// What is told of a child and of its group, in the order of the fields.
    fn told(rows: &[(EvidenceKind, &str)]) -> [bool; 4] {
        let folded = fold(&life(rows)).unwrap();
        let Folded { group_gone, child_not_started, child_start_failed, child_started, .. } =
            folded;
        [group_gone, child_not_started, child_start_failed, child_started]
    }

    #[test]
    fn each_fact_is_told_by_its_own_kind_and_stays_told() {
        let begun = [(RunnerStarted, ""), (ChildCreating, ""), (ChildIdentified, "")];
        let then = |rows: &[(EvidenceKind, &'static str)]| [&begun, rows].concat();
        assert_eq!(told(&begun), [false; 4]);
        let started = then(&[(ChildStarted, ""), (ChildExited, "code 0")]);
        assert_eq!(told(&started), [false, false, false, true]);
        let gone = [started.as_slice(), &[(GroupGone, ""), (RunnerFinished, "")]].concat();
        assert_eq!(told(&gone), [true, false, false, true]);
        let not_started = then(&[(ChildNotStarted, ""), (RunnerFinished, "")]);
        assert_eq!(told(&not_started), [false, true, false, false]);
        let failed = then(&[(ChildStartFailed, ""), (RunnerFinished, "")]);
        assert_eq!(told(&failed), [false, false, true, false]);
    }

    #[test]
    fn that_no_child_came_to_be_is_known_from_the_runner() {
        for kind in [ChildNotStarted, ChildStartFailed] {
            let folded = fold(&life(&[(RunnerStarted, ""), (kind, "")])).unwrap();
            assert_eq!((folded.exit, folded.exit_source), (None, Some(ExitSource::Runner)));
        }
    }

    #[test]
    fn the_first_proof_of_an_empty_tree_stays() {
        let twice =
            [(RunnerStarted, ""), (ChildExited, "code 0"), (TreeGone, "a"), (TreeGone, "b")];
        assert_eq!(fold(&life(&twice)).unwrap().tree_gone_by.as_deref(), Some("a"));
        let other = [(RunnerStarted, ""), (ChildExited, "code 0"), (GroupGone, "none is left")];
        assert_eq!(fold(&life(&other)).unwrap().tree_gone_by, None);
    }

    #[test]
    fn a_life_begins_with_an_intent_that_nothing_came_before() {
        let intended = AttemptState::INTENDED;
        let other = row(1, RunnerStarted, None, intended, "");
        let after_something = row(1, IntentRecorded, Some(intended), intended, "");
        for begun in [other, after_something] {
            assert_eq!(fold(&[begun]), Err(FoldError { sequence: 1, why: FoldWhy::First }));
        }
    }

    #[test]
    fn a_stop_before_a_claim_has_no_exit() {
        let folded = fold(&life(&[(StopBeforeStart, "")])).unwrap();
        assert_eq!(folded.state.execution, ExecutionState::Exited);
        assert_eq!((folded.exit, folded.exit_source), (None, None));
    }
}
