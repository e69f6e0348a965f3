//! The execution machine.

use placement_contract::EvidenceKind;
use placement_contract::ExecutionState::{
    self, Exited, Intended, Running, Starting, Stopping, Uncertain,
};

/// What a kind of evidence does to the execution.
struct Meaning {
    /// The states that it leaves, and the one that it reaches.
    moves: Option<(&'static [ExecutionState], ExecutionState)>,
    /// The states in which it only adds evidence.
    stays: &'static [ExecutionState],
}

const LIVE: &[ExecutionState] = &[Starting, Running, Stopping];
const NOT_EXITED: &[ExecutionState] = &[Starting, Running, Stopping, Uncertain];
/// Without a child yet; running is left out, since the program runs only after this.
const PREPARING: &[ExecutionState] = &[Starting, Stopping, Uncertain];
const CLAIMED: &[ExecutionState] = &[Starting, Running, Stopping, Exited, Uncertain];
const ENDED: &[ExecutionState] = &[Exited, Uncertain];

/// Returns the execution state after a row of evidence, or `None` where the row does not fit.
///
/// Exited is final. What only adds evidence returns the state that it found.
pub(crate) fn after(state: ExecutionState, kind: EvidenceKind) -> Option<ExecutionState> {
    let meaning = meaning(kind);
    match meaning.moves {
        Some((from, to)) if from.contains(&state) => Some(to),
        Some(_) | None => meaning.stays.contains(&state).then_some(state),
    }
}

/// Returns the state that a kind reaches, from wherever it may be recorded.
pub(crate) fn target(kind: EvidenceKind) -> Option<ExecutionState> {
    meaning(kind).moves.map(|(_, to)| to)
}

/// Lists every kind; nothing else in the house decides what is legal.
fn meaning(kind: EvidenceKind) -> Meaning {
    use EvidenceKind as Kind;
    match kind {
        // Comes first and makes a life; it fits nowhere in one.
        Kind::IntentRecorded => adds(&[]),
        Kind::StopBeforeStart => moves(&[Intended], Exited),
        Kind::RunnerStarted => moves(&[Intended], Starting),
        // A start that is refused, or a runner that ends before its claim, leaves the intent: a
        // later start may succeed. After the claim nobody knows what the runner did.
        Kind::Attach | Kind::AttachRefused | Kind::GrantRefused => adds(ExecutionState::ALL),
        Kind::PolicyRefused => adds(&[Intended]),
        Kind::GrantRevoked => adds(&[Intended, Starting, Running, Stopping]),
        Kind::EnvironmentRefused => adds(&[Intended, Starting, Stopping, Uncertain]),
        Kind::RunnerExited => moves(LIVE, Uncertain).or_stays(&[Intended, Uncertain, Exited]),

        Kind::HomeCreated
        | Kind::HomeFailed
        | Kind::SessionAttached
        | Kind::SessionFailed
        | Kind::EnvironmentFailed
        | Kind::WorkdirFailed
        | Kind::ExecutableMeasured
        | Kind::ExecutableChanged
        | Kind::ExecutableRefused
        | Kind::ExecutableNotFound
        | Kind::ChildIdentified => adds(PREPARING),
        // A stop that lands first has left `stopping` behind, and then no child is created.
        Kind::ChildCreating => adds(&[Starting]),
        // A stop that lands first wins over `running` as well.
        Kind::ChildStarted => moves(&[Starting], Running).or_stays(&[Stopping, Uncertain]),
        Kind::ChildStartFailed | Kind::ChildNotStarted => moves(PREPARING, Exited),

        Kind::StopRequested | Kind::SignalGroup => {
            moves(&[Starting, Running], Stopping).or_stays(&[Stopping, Exited, Uncertain])
        }
        Kind::StopUnproven
        | Kind::AttachUnfenced
        | Kind::ReconcileUnobserved
        | Kind::ReconcileUnidentified => moves(LIVE, Uncertain).or_stays(ENDED),

        // A runner may bring the exit after a reconcile has seen its unreaped child as gone.
        Kind::ChildExited => moves(NOT_EXITED, Exited).or_stays(&[Exited]),
        Kind::ReconcileAbsent => moves(NOT_EXITED, Exited),
        // A word, not an observation: where something can still be proven, it does not fit.
        Kind::OperatorResolved => moves(&[Uncertain], Exited),

        // Said only once the leader has ended or is not known to live.
        Kind::ChildOomKilled
        | Kind::OutputDrainElapsed
        | Kind::OutputLost
        | Kind::LeftoversStopped
        | Kind::LeftoversReported
        | Kind::TreeGone
        | Kind::GroupGone
        | Kind::AttachUnanswered => adds(ENDED),
        Kind::CleanupComplete | Kind::CleanupRefused | Kind::CleanupFailed => adds(&[Exited]),

        Kind::AttachFenced
        | Kind::StdinAccepted
        | Kind::StdinClosed
        | Kind::StdinUncertain
        | Kind::SpoolFailed
        | Kind::HostLost
        | Kind::HostAdopted
        | Kind::DeadlineElapsed
        | Kind::SignalTerm
        | Kind::SignalKill
        | Kind::RunnerFinished
        | Kind::RecordTaken
        | Kind::ReconcileAlive
        | Kind::ReconcileSupervised => adds(CLAIMED),
    }
}

const fn adds(stays: &'static [ExecutionState]) -> Meaning {
    Meaning { moves: None, stays }
}

const fn moves(from: &'static [ExecutionState], to: ExecutionState) -> Meaning {
    Meaning { moves: Some((from, to)), stays: &[] }
}

impl Meaning {
    const fn or_stays(self, stays: &'static [ExecutionState]) -> Self {
        Self { moves: self.moves, stays }
    }
}
