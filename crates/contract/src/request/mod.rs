//! The launch request: its fields, bounds, cross checks and digest.
//!
//! [`LaunchRequest::decode`] is the only way in from text; a value that exists has passed every
//! check. Defaults are filled in while decoding, so a request that spells a default out and one
//! that leaves it out have the same digest.

mod decode;
mod environment;
mod gateway;
mod home;
mod launch;
mod login;
mod login_evidence;
mod offered;
mod path;
mod planned;
mod preferences;
mod resource;
mod supervision;
mod timeouts;
mod window;

pub use crate::exact::DecodeError;
pub use environment::{Destination, EnvironmentName};
pub use gateway::{Gateway, HOOK_EVENTS, SHUTDOWN_EVENTS};
pub use home::{HomeFile, HomeFileKind, HomeVariable, HostFile, ProviderHome};
pub use launch::{Argument, Launch};
pub use login::Login;
pub use login_evidence::LoginEvidence;
pub use path::{RelativePath, Subpath, SubpathError};
pub use planned::{
    ConfigurationContext, ExecutableKind, PlannedExecutable, PreparerOptions, SessionEnd, Worktree,
};
pub use preferences::{BeePreferences, OptionName, OptionValue, PermissionAnswers, Preferences};
pub use resource::{Access, Purpose, ResourceGrant};
pub use supervision::{Confine, Leftovers, Limits, OnHostLoss, StdinMode, Supervision};
pub use timeouts::Timeouts;
pub use window::{Window, WindowSize};

use crate::canonical::Digest;
use crate::exact::{self, distinct, list, map, object, ranged};
use crate::id::{
    ActionId, AttemptId, BindingRef, Id, IdempotencyKey, OwnerId, PlacementBindingRef,
    PlacementProfileRef, PolicyRef, ProfileId, ProjectionId, SessionRef,
};
use crate::limits::{ENVIRONMENT_MAX, INTEGER_MAX, PROJECTIONS_MAX, RESOURCES_MAX};
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
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
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
    /// The placement binding that the plan was made for; its digest comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_binding_ref: Option<PlacementBindingRef>,
    /// The measured digest of that binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_binding_digest: Option<Digest>,
    /// The placement profile that the plan was made for; its digest comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_profile_ref: Option<PlacementProfileRef>,
    /// The measured digest of that profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_profile_digest: Option<Digest>,
    /// What to launch.
    pub launch: Launch,
    /// The digest of everything that the driver's configuration is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_digest: Option<Digest>,
    /// For which turn it was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_context: Option<ConfigurationContext>,
    /// The owner's saved preferences.
    #[serde(default, skip_serializing_if = "Preferences::is_empty", deserialize_with = "object")]
    pub preferences: Preferences,
    /// The program as it was measured for the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<PlannedExecutable>,
    /// The gateway that the launch may talk to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// Directories that the launch may use, at most 16, each name once.
    #[serde(deserialize_with = "list::<_, _, 0, RESOURCES_MAX>")]
    pub resources: Vec<ResourceGrant>,
    /// Nonsecret environment values, at most 64.
    #[serde(default, deserialize_with = "map::<_, _, _, ENVIRONMENT_MAX>")]
    pub environment: BTreeMap<EnvironmentName, String>,
    /// Environment values that the host resolves, at most 64.
    #[serde(default, deserialize_with = "map::<_, _, _, ENVIRONMENT_MAX>")]
    pub environment_refs: BTreeMap<EnvironmentName, Id>,
    /// Credential projections, at most 8, each once.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "distinct::<_, _, 0, PROJECTIONS_MAX>"
    )]
    pub projections: Vec<ProjectionId>,
    /// The retained session that the launch goes on with; needs `launch.home_ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_ref: Option<SessionRef>,
    /// What cleanup must prove gone.
    pub required_cleanup: CleanupScope,
    /// How the exit must be learnt.
    #[serde(default = "independent")]
    pub required_exit_observation: ExitObservation,
    /// Time limits.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// What workdir preparers are asked for.
    #[serde(
        default,
        skip_serializing_if = "PreparerOptions::is_empty",
        deserialize_with = "object"
    )]
    pub options: PreparerOptions,
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
        exact::decode(bytes)
    }

    /// Checks a request that was built in the program by the rules of [`LaunchRequest::decode`].
    ///
    /// # Errors
    /// As [`LaunchRequest::decode`].
    pub fn checked(self) -> Result<Self, DecodeError> {
        exact::checked(&self)
    }

    /// Returns the session whose retained home is the launch's own; without one the attempt's is.
    pub fn retained_session(&self) -> Option<&SessionRef> {
        self.session_ref.as_ref().filter(|_| self.launch.home_ref.is_some())
    }

    /// Returns the digest that identifies this request on a retry.
    pub fn digest(&self) -> Digest {
        Digest::of_value(REQUEST_REVISION, self)
            .expect("a checked request has text keys and whole numbers only")
    }
}
