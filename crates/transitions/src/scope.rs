//! The proof that everything which could still use an attempt's home is gone.

use placement_contract::{CleanupScope, ExecutionState, ExitSource};
use placement_identity::{AbsenceProof, GroupAbsence, Observer, Pid, Place};

/// Proves that the scope which an attempt requires is gone; what removes its home asks for it.
///
/// Only [`prove_scope`] makes it.
#[derive(Debug)]
#[must_use]
pub struct ScopeGone {
    scope: CleanupScope,
    because: &'static str,
}

impl ScopeGone {
    /// Returns the scope that is gone.
    pub fn scope(&self) -> CleanupScope {
        self.scope
    }

    /// Returns the fixed phrase that says how it is known.
    pub fn because(&self) -> &'static str {
        self.because
    }
}

/// The required scope is not proven gone: everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unproven {
    /// The fixed phrase that says what is missing.
    pub reason: &'static str,
}

/// How much of the child's identity is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedIdentity {
    /// No field at all.
    None,
    /// Some fields; they authorize nothing.
    Partial,
    /// Every field, the group among them.
    Complete {
        /// The recorded group.
        pgid: Pid,
    },
}

/// What was seen of a cgroup leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafSeen {
    /// There is no such leaf.
    Gone,
    /// It is there and has no process.
    Empty,
    /// It is there and has processes.
    Populated,
    /// It could not be told.
    Unknown,
}

/// What was seen of the attempt's leaf, and from where.
#[derive(Debug, Clone, Copy)]
pub struct LeafFacts<'a> {
    /// What was seen.
    pub seen: LeafSeen,
    /// The boot in which the leaf was made.
    pub made_boot: &'a str,
    /// The place from which it was made.
    pub made_by: &'a Observer,
    /// The boot in which it was looked for.
    pub seen_boot: &'a str,
    /// The place from which it was looked for.
    pub seen_by: &'a Observer,
}

/// Everything that is known of an attempt's processes: what is recorded and what was seen now.
#[derive(Debug, Clone, Copy)]
pub struct ScopeFacts<'a> {
    /// The recorded execution state.
    pub execution: ExecutionState,
    /// The recorded source of the exit.
    pub exit_source: Option<ExitSource>,
    /// The recorded proof of an empty tree.
    pub tree_gone_by: Option<&'a str>,
    /// Whether `group.gone` is recorded.
    pub group_gone_recorded: bool,
    /// Whether `child.not_started` is recorded.
    pub child_not_started_recorded: bool,
    /// Whether `child.start_failed` is recorded.
    pub child_start_failed_recorded: bool,
    /// How much of the child's identity is recorded.
    pub identity: RecordedIdentity,
    /// Where the attempt's processes belong: of the child's identity, else of the runner's.
    pub place: Option<&'a Place>,
    /// The leader, if it was looked for and is absent.
    pub leader: Option<&'a AbsenceProof>,
    /// The group, if it was looked for and is absent.
    pub group: Option<&'a GroupAbsence>,
    /// The init of the PID namespace that contains the tree, if there is one, it was looked for and is
    /// absent.
    pub init: Option<&'a AbsenceProof>,
    /// The leaf, if the attempt has one and it was looked for.
    pub leaf: Option<LeafFacts<'a>>,
}

impl ScopeFacts<'_> {
    /// Starts with what is recorded in no row and seen by nobody.
    pub const fn of(execution: ExecutionState, exit_source: Option<ExitSource>) -> Self {
        Self {
            execution,
            exit_source,
            tree_gone_by: None,
            group_gone_recorded: false,
            child_not_started_recorded: false,
            child_start_failed_recorded: false,
            identity: RecordedIdentity::None,
            place: None,
            leader: None,
            group: None,
            init: None,
            leaf: None,
        }
    }
}

/// Decides whether the required scope is gone.
///
/// A stronger scope proven gone proves the weaker ones. A partial identity proves nothing.
///
/// # Errors
/// [`Unproven`] says in a fixed phrase what is missing.
pub fn prove_scope(required: CleanupScope, facts: &ScopeFacts<'_>) -> Result<ScopeGone, Unproven> {
    if facts.execution != ExecutionState::Exited {
        return Err(Unproven { reason: "the attempt has not exited" });
    }
    let proof = whole(facts).or_else(|| match required {
        CleanupScope::ContainedTree => None,
        CleanupScope::ProcessGroup => group(facts),
        CleanupScope::DirectProcess => group(facts).or_else(|| direct(facts)),
    });
    match proof {
        Some(because) => Ok(ScopeGone { scope: required, because }),
        None => Err(Unproven { reason: missing(required, facts) }),
    }
}

/// Looks for a proof that holds for every scope.
fn whole(facts: &ScopeFacts<'_>) -> Option<&'static str> {
    if facts.tree_gone_by.is_some() {
        return Some("the tree is recorded as gone");
    }
    if no_child_came_to_be(facts) {
        return Some("no child came to be");
    }
    if facts.child_start_failed_recorded && facts.exit_source == Some(ExitSource::Runner) {
        // The runner reaped the process behind the gate, which had started nothing.
        return Some("the program never ran");
    }
    if matches!(facts.place, Some(Place::EarlierBoot(_))) {
        return Some("the machine was started again");
    }
    if facts.init.is_some() {
        // The kernel ends every member of a PID namespace before the end of its init can be seen.
        return Some("the init of the PID namespace has ended");
    }
    facts.leaf.filter(speaks_for_its_leaf).and_then(|leaf| match leaf.seen {
        LeafSeen::Gone => Some("the leaf of the tree is gone"),
        LeafSeen::Empty => Some("the leaf of the tree is empty"),
        LeafSeen::Populated | LeafSeen::Unknown => None,
    })
}

/// Any recorded field of an identity contradicts that there was no child.
fn no_child_came_to_be(facts: &ScopeFacts<'_>) -> bool {
    facts.child_not_started_recorded
        && facts.exit_source == Some(ExitSource::Runner)
        && facts.identity == RecordedIdentity::None
}

/// A path names another leaf, or none, in another boot or cgroup namespace.
fn speaks_for_its_leaf(leaf: &LeafFacts<'_>) -> bool {
    leaf.made_boot == leaf.seen_boot
        && leaf.made_by.cgroup_namespace == leaf.seen_by.cgroup_namespace
}

fn group(facts: &ScopeFacts<'_>) -> Option<&'static str> {
    if facts.group_gone_recorded {
        return Some("the process group is recorded as gone");
    }
    match (facts.identity, facts.group) {
        (RecordedIdentity::Complete { pgid }, Some(absence)) if absence.pgid() == pgid => {
            Some("the process group has no member")
        }
        (
            RecordedIdentity::None | RecordedIdentity::Partial | RecordedIdentity::Complete { .. },
            _,
        ) => None,
    }
}

/// An operator settles the state, not the process: then the leader itself must be seen absent.
fn direct(facts: &ScopeFacts<'_>) -> Option<&'static str> {
    match facts.exit_source {
        Some(ExitSource::Runner) => Some("the runner learnt of the exit"),
        Some(ExitSource::Terminal) => Some("the terminal ended"),
        Some(ExitSource::Reconcile) => Some("the process was proven absent"),
        Some(ExitSource::Operator) | None => facts.leader.map(|_| "the process is absent"),
    }
}

fn missing(required: CleanupScope, facts: &ScopeFacts<'_>) -> &'static str {
    match (required, facts.identity, facts.leaf) {
        (CleanupScope::ContainedTree, _, Some(leaf)) if !speaks_for_its_leaf(&leaf) => {
            "the leaf of the tree cannot be seen from here"
        }
        (CleanupScope::ContainedTree, _, Some(LeafFacts { seen: LeafSeen::Populated, .. })) => {
            "the leaf of the tree still has processes"
        }
        (CleanupScope::ContainedTree, _, _) => "the tree is not proven gone",
        (CleanupScope::ProcessGroup, RecordedIdentity::None | RecordedIdentity::Partial, _) => {
            "the group identity is missing"
        }
        (CleanupScope::ProcessGroup, RecordedIdentity::Complete { .. }, _) => {
            "the process group is not proven gone"
        }
        (CleanupScope::DirectProcess, _, _) => "the process is not proven gone",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_contract::CleanupScope::{ContainedTree, DirectProcess, ProcessGroup};
    use placement_identity::{
        GroupPresence, Presence, ProcessIdentity, boot_id, observe_group, place,
    };

    const NOBODY: i32 = i32::MAX;

    fn exited() -> ScopeFacts<'static> {
        ScopeFacts::of(ExecutionState::Exited, Some(ExitSource::Runner))
    }

    fn pid(number: i32) -> Pid {
        Pid::try_from(number).unwrap()
    }

    fn here() -> Observer {
        Observer::here().unwrap()
    }

    fn absent_group() -> GroupAbsence {
        let answer = observe_group(pid(NOBODY), &boot_id().unwrap(), &here());
        let GroupPresence::Absent(absence) = answer else {
            panic!("nobody has this number, yet {answer:?}")
        };
        absence
    }

    fn by(required: CleanupScope, facts: &ScopeFacts<'_>) -> Result<&'static str, &'static str> {
        prove_scope(required, facts)
            .map(|gone| {
                assert_eq!(gone.scope(), required);
                gone.because()
            })
            .map_err(|unproven| unproven.reason)
    }

    #[test]
    fn a_program_that_never_ran_left_nothing_in_any_scope() {
        let identity = RecordedIdentity::Complete { pgid: pid(4_242) };
        for required in CleanupScope::ALL {
            let facts = ScopeFacts { child_start_failed_recorded: true, identity, ..exited() };
            let gone = prove_scope(*required, &facts).unwrap();
            assert_eq!(gone.because(), "the program never ran");
            let facts = ScopeFacts { exit_source: Some(ExitSource::Operator), ..facts };
            assert!(prove_scope(*required, &facts).is_err());
        }
    }

    #[test]
    fn nothing_is_proven_before_the_exit() {
        for execution in ExecutionState::ALL.iter().filter(|e| **e != ExecutionState::Exited) {
            for required in CleanupScope::ALL {
                let facts = ScopeFacts {
                    execution: *execution,
                    tree_gone_by: Some("cgroup"),
                    child_not_started_recorded: true,
                    ..exited()
                };
                assert_eq!(by(*required, &facts), Err("the attempt has not exited"));
            }
        }
    }

    #[test]
    fn a_recorded_empty_tree_proves_every_scope() {
        let facts = ScopeFacts { tree_gone_by: Some("cgroup"), ..exited() };
        for required in CleanupScope::ALL {
            assert_eq!(by(*required, &facts), Ok("the tree is recorded as gone"));
        }
    }

    #[test]
    fn a_gone_group_does_not_prove_the_tree() {
        let facts = ScopeFacts { group_gone_recorded: true, ..exited() };
        assert_eq!(by(ContainedTree, &facts), Err("the tree is not proven gone"));
        assert_eq!(by(ProcessGroup, &facts), Ok("the process group is recorded as gone"));
        assert_eq!(by(DirectProcess, &facts), Ok("the process group is recorded as gone"));
    }

    #[test]
    fn a_learnt_exit_proves_the_process_only() {
        for (source, because) in [
            (ExitSource::Runner, "the runner learnt of the exit"),
            (ExitSource::Terminal, "the terminal ended"),
            (ExitSource::Reconcile, "the process was proven absent"),
        ] {
            let facts = ScopeFacts { exit_source: Some(source), ..exited() };
            assert_eq!(by(DirectProcess, &facts), Ok(because));
            assert_eq!(by(ProcessGroup, &facts), Err("the group identity is missing"));
            assert_eq!(by(ContainedTree, &facts), Err("the tree is not proven gone"));
        }
    }

    #[test]
    fn an_operator_proves_no_process_gone() {
        let facts = ScopeFacts { exit_source: Some(ExitSource::Operator), ..exited() };
        assert_eq!(by(DirectProcess, &facts), Err("the process is not proven gone"));
    }

    #[test]
    fn a_child_that_never_was_proves_every_scope() {
        let facts = ScopeFacts { child_not_started_recorded: true, ..exited() };
        for required in CleanupScope::ALL {
            assert_eq!(by(*required, &facts), Ok("no child came to be"));
        }
    }

    #[test]
    fn any_recorded_identity_contradicts_that_there_was_no_child() {
        for identity in
            [RecordedIdentity::Partial, RecordedIdentity::Complete { pgid: pid(NOBODY) }]
        {
            let facts = ScopeFacts { child_not_started_recorded: true, identity, ..exited() };
            assert!(by(ProcessGroup, &facts).is_err());
            assert!(by(ContainedTree, &facts).is_err());
        }
    }

    #[test]
    fn no_child_is_the_runners_word_only() {
        for source in [Some(ExitSource::Reconcile), Some(ExitSource::Operator), None] {
            let facts =
                ScopeFacts { exit_source: source, child_not_started_recorded: true, ..exited() };
            assert!(by(ContainedTree, &facts).is_err());
        }
    }

    #[test]
    fn an_absent_group_counts_for_its_own_number_and_a_complete_identity_only() {
        let absence = absent_group();
        let with = |identity| ScopeFacts { identity, group: Some(&absence), ..exited() };
        assert_eq!(
            by(ProcessGroup, &with(RecordedIdentity::Complete { pgid: pid(NOBODY) })),
            Ok("the process group has no member")
        );
        assert_eq!(
            by(ProcessGroup, &with(RecordedIdentity::Complete { pgid: pid(NOBODY - 1) })),
            Err("the process group is not proven gone")
        );
        for identity in [RecordedIdentity::Partial, RecordedIdentity::None] {
            assert_eq!(by(ProcessGroup, &with(identity)), Err("the group identity is missing"));
        }
    }

    #[test]
    fn an_earlier_boot_of_this_machine_proves_every_scope() {
        let observer = Observer { machine_id: here().machine_id, ..here() };
        let earlier = place("00000000-0000-0000-0000-00000000000f", &observer);
        let facts = ScopeFacts { place: Some(&earlier), ..exited() };
        for required in CleanupScope::ALL {
            let answer = by(*required, &facts);
            if observer.machine_id.is_some() {
                assert_eq!(answer, Ok("the machine was started again"));
            } else {
                println!("no machine id here: another boot must prove nothing");
                assert_eq!(answer.is_ok(), *required == DirectProcess);
            }
        }
    }

    #[test]
    fn an_absent_init_proves_the_tree_and_an_absent_leader_does_not() {
        let this = ProcessIdentity::this_process().unwrap();
        let nobody = ProcessIdentity { pid: pid(NOBODY), pidfd_inode: None, ..this };
        let Presence::Absent(absence) = nobody.observe() else { panic!("nobody has this number") };
        let facts = ScopeFacts { leader: Some(&absence), ..exited() };
        assert_eq!(by(ContainedTree, &facts), Err("the tree is not proven gone"));
        for required in CleanupScope::ALL {
            let facts = ScopeFacts { init: Some(&absence), ..exited() };
            assert_eq!(by(*required, &facts), Ok("the init of the PID namespace has ended"));
        }
    }

    #[test]
    fn a_leaf_that_is_gone_or_empty_proves_the_tree() {
        let here = here();
        let leaf = |seen| LeafFacts {
            seen,
            made_boot: "b",
            made_by: &here,
            seen_boot: "b",
            seen_by: &here,
        };
        let with = |seen| ScopeFacts { leaf: Some(leaf(seen)), ..exited() };
        assert_eq!(by(ContainedTree, &with(LeafSeen::Gone)), Ok("the leaf of the tree is gone"));
        assert_eq!(by(ContainedTree, &with(LeafSeen::Empty)), Ok("the leaf of the tree is empty"));
        assert_eq!(
            by(ContainedTree, &with(LeafSeen::Populated)),
            Err("the leaf of the tree still has processes")
        );
        assert_eq!(by(ContainedTree, &with(LeafSeen::Unknown)), Err("the tree is not proven gone"));
    }

    #[test]
    fn a_leaf_of_another_boot_or_namespace_proves_nothing() {
        let here = here();
        let other = Observer { cgroup_namespace: Some(7), ..here.clone() };
        for (seen_boot, seen_by) in [("c", &here), ("b", &other)] {
            let leaf = LeafFacts {
                seen: LeafSeen::Gone,
                made_boot: "b",
                made_by: &here,
                seen_boot,
                seen_by,
            };
            let facts = ScopeFacts { leaf: Some(leaf), ..exited() };
            assert_eq!(
                by(ContainedTree, &facts),
                Err("the leaf of the tree cannot be seen from here")
            );
        }
    }
}
