//! The launch request: its fields, bounds, cross checks and digest.
//!
//! [`LaunchRequest::decode`] is the only way in from text; a value that exists has passed every
//! check. Defaults are filled in while decoding, so a request that spells a default out and one
//! that leaves it out have the same digest.

mod decode;
mod environment;
mod exact;
mod launch;
mod planned;
mod resource;
mod supervision;
mod timeouts;
mod worded;

pub use decode::DecodeError;
pub use environment::EnvironmentName;
pub use launch::{Argument, Launch};
pub use planned::{ExecutableKind, PlannedExecutable, SessionEnd};
pub use resource::{Access, Purpose, ResourceGrant, Subpath, SubpathError};
pub use supervision::{Confine, Leftovers, Limits, OnHostLoss, StdinMode, Supervision};
pub use timeouts::Timeouts;

use crate::canonical::Digest;
use crate::id::{
    ActionId, AttemptId, BindingRef, Id, IdempotencyKey, OwnerId, PolicyRef, ProfileId,
};
use crate::state::{CleanupScope, ExitObservation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name under which a request is hashed.
pub const REQUEST_REVISION: &str = "bee.launch-request@1";

/// One admitted launch, as its owner asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// The key under which this launch happens at most once per owner.
    pub idempotency_key: IdempotencyKey,
    /// The owner; must be the caller.
    pub owner_id: OwnerId,
    /// The owner's incarnation, at least 1.
    #[serde(deserialize_with = "decode::positive")]
    pub owner_incarnation: u64,
    /// The owner's action.
    pub action_id: ActionId,
    /// The attempt, unique in the store.
    pub attempt_id: AttemptId,
    /// The driver binding.
    pub binding_ref: BindingRef,
    /// The launch policy.
    pub policy_ref: PolicyRef,
    /// The profile of the driver.
    pub profile_id: ProfileId,
    /// The measured digest of the binding.
    pub binding_digest: Digest,
    /// The measured digest of the profile.
    pub profile_digest: Digest,
    /// What to launch.
    pub launch: Launch,
    /// The program as it was measured for the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<PlannedExecutable>,
    /// Directories that the launch may use, at most 16, each name once.
    pub resources: Vec<ResourceGrant>,
    /// Nonsecret environment values, at most 64.
    #[serde(default)]
    pub environment: BTreeMap<EnvironmentName, String>,
    /// Environment values that the host resolves, at most 64.
    #[serde(default)]
    pub environment_refs: BTreeMap<EnvironmentName, Id>,
    /// What cleanup must prove gone.
    pub required_cleanup: CleanupScope,
    /// How the exit must be learnt.
    #[serde(default = "independent")]
    pub required_exit_observation: ExitObservation,
    /// Time limits.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How the running attempt is supervised.
    #[serde(default)]
    pub supervision: Supervision,
}

const fn independent() -> ExitObservation {
    ExitObservation::Independent
}

impl LaunchRequest {
    /// Decodes and checks a request exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks, never its value.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode::decode(bytes)
    }

    /// Checks a request that was built in the program by the rules of [`LaunchRequest::decode`].
    ///
    /// # Errors
    /// As [`LaunchRequest::decode`].
    pub fn checked(self) -> Result<Self, DecodeError> {
        let bytes = serde_json::to_vec(&self).map_err(|_| DecodeError::not_json())?;
        decode::decode(&bytes)
    }

    /// Returns the digest that identifies this request on a retry.
    pub fn digest(&self) -> Digest {
        Digest::of_value(REQUEST_REVISION, self)
            .expect("a checked request has text keys and whole numbers only")
    }
}
