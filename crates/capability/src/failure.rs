//! Where a measurement failed.

use placement_contract::{Mechanism, MechanismReport};
use placement_identity::IdentityError;
use placement_process::{Errno, LeafError, NotGone, SiteError, SpawnError, TreeError, WaitError};

/// Names the step that failed, and what the kernel answered there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: &'static str,
    pub(crate) errno: Option<Errno>,
}

impl Failure {
    /// The kernel was not asked, or answered otherwise than with an error.
    pub(crate) fn at(step: &'static str) -> Self {
        Self { step, errno: None }
    }

    pub(crate) fn identity(error: &IdentityError) -> Self {
        Self { step: "reading the own identity", errno: error.errno() }
    }

    pub(crate) fn site(error: &SiteError) -> Self {
        Self { step: "finding the own cgroup", errno: error.errno() }
    }

    pub(crate) fn leaf(step: &'static str, error: LeafError) -> Self {
        Self { step, errno: error.errno() }
    }

    pub(crate) fn spawn(error: SpawnError) -> Self {
        Self { step: "creating the probe", errno: error.errno() }
    }

    pub(crate) fn namespace(error: SpawnError) -> Self {
        let step = match error {
            SpawnError::Namespace { step, .. } => step.phrase(),
            SpawnError::NoArguments
            | SpawnError::Pipe(_)
            | SpawnError::Duplicate(_)
            | SpawnError::Clone(_)
            | SpawnError::Socket(_)
            | SpawnError::Session(_) => "making a PID namespace",
        };
        Self { step, errno: error.errno() }
    }

    pub(crate) fn tree(step: &'static str, error: TreeError) -> Self {
        Self { step, errno: error.errno() }
    }

    pub(crate) fn wait(step: &'static str, error: WaitError) -> Self {
        let errno = match error {
            WaitError::Wait(errno) => Some(errno),
            WaitError::Running | WaitError::Unreported => None,
        };
        Self { step, errno }
    }

    pub(crate) fn not_gone(error: NotGone) -> Self {
        let errno = match error {
            NotGone::Unknown(error) => error.errno(),
            NotGone::LeaderNotReaped | NotGone::Populated | NotGone::NoProof => None,
        };
        Self { step: "proving that nothing is left", errno }
    }
}

/// Says what was measured of a mechanism.
pub(crate) fn report(mechanism: Mechanism, measured: Result<(), Failure>) -> MechanismReport {
    let failure = measured.err();
    // The end of a leaf's last member, and that of an init, can be seen by anybody later.
    let survives = match mechanism {
        Mechanism::Cgroup | Mechanism::PidNamespace => true,
        Mechanism::Subreaper => false,
    };
    MechanismReport {
        mechanism,
        available: failure.is_none(),
        proof_survives_runner: failure.is_none() && survives,
        failed_at: failure.map(|failure| failure.step.to_owned()),
        errno: failure.and_then(|failure| failure.errno).map(Errno::name),
    }
}
