//! What a machine can clean, as it was measured.

use crate::state::{CleanupScope, Controller, ExitObservation, Mechanism};
use serde::{Deserialize, Serialize};

/// Error numbers that say that something had run out for the moment: descriptors, processes, memory.
const SHORTAGES: [&str; 4] = ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"];

/// Says whether an error number, by its name, tells of a shortage that may be over soon, and so nothing of
/// what was tried.
pub fn is_shortage(errno: &str) -> bool {
    SHORTAGES.contains(&errno)
}

/// What was measured of one mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismReport {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Whether the probe's escaped descendant was killed and counted.
    pub available: bool,
    /// Whether the proof of an empty tree outlives the runner.
    pub proof_survives_runner: bool,
    /// The step at which the measurement failed, in a fixed phrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<String>,
    /// The name of the error number there, such as `EACCES`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<String>,
}

impl MechanismReport {
    /// Says whether its measurement failed for want of descriptors, processes or memory: then nothing is
    /// known of it.
    pub fn was_short(&self) -> bool {
        !self.available && self.errno.as_deref().is_some_and(is_shortage)
    }

    /// Says in a phrase what its proof is worth, or where its measurement failed.
    pub fn worth(&self) -> String {
        if self.available {
            let fate = if self.proof_survives_runner { "outlives" } else { "dies with" };
            return format!("its proof {fate} the runner");
        }
        let step = self.failed_at.as_deref().unwrap_or("measuring it");
        match &self.errno {
            Some(errno) => format!("does not work: {step} ({errno})"),
            None => format!("does not work: {step}"),
        }
    }
}

/// What this machine can clean where attempts of this host would live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityReport {
    /// The strongest scope.
    pub capability: CleanupScope,
    /// The mechanism that gives it; absent where only a group can be cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// How an exit is learnt.
    pub exit_observation: ExitObservation,
    /// The controllers that a leaf would have, so that limits can be set by them.
    #[serde(default)]
    pub controllers: Vec<Controller>,
    /// Each mechanism, in the order in which one is chosen.
    pub mechanisms: Vec<MechanismReport>,
}

impl CapabilityReport {
    /// Returns what was measured of a mechanism.
    pub fn of(&self, mechanism: Mechanism) -> Option<&MechanismReport> {
        self.mechanisms.iter().find(|report| report.mechanism == mechanism)
    }
}
