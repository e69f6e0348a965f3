//! What a host defines: a driver binding and its profile, launch policies, placement bindings and
//! placement profiles.

use placement_contract::definition::{BindingEntry, LaunchPolicy};
use placement_contract::{
    BindingRef, Digest, PlacementBindingRef, PlacementProfileRef, PolicyRef, ProfileId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The name under which a driver binding is hashed.
pub const DRIVER_BINDING_REVISION: &str = "placement.binding@1";
/// The name under which a profile of a driver is hashed.
pub const DRIVER_PROFILE_REVISION: &str = "placement.profile@1";
/// The name under which a launch policy is hashed.
pub const POLICY_REVISION: &str = "placement.launch-policy@1";

const EMBEDDED: &str = include_str!("definitions.json");

/// What a host defines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// The driver binding.
    pub binding: Definition<BindingRef, Value>,
    /// The profile of the driver.
    pub profile: Definition<ProfileId, Value>,
    /// The launch policy of who names none.
    pub default_policy: PolicyRef,
    /// The launch policies.
    pub policies: BTreeMap<PolicyRef, LaunchPolicy>,
    /// The placement bindings.
    pub placement_bindings: BTreeMap<PlacementBindingRef, BindingEntry>,
    /// The placement profiles.
    pub placement_profiles: BTreeMap<PlacementProfileRef, Value>,
}

/// One definition under its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition<R, D> {
    /// The name by which requests refer to it.
    pub r#ref: R,
    /// The definition, which is what is hashed together with its name.
    pub definition: D,
}

impl Definitions {
    /// Returns the definitions that are built in.
    pub fn embedded() -> Self {
        serde_json::from_str(EMBEDDED).expect("the embedded definitions are part of the build")
    }
}

impl<R: Serialize, D: Serialize> Definition<R, D> {
    /// Hashes the name and the definition; `None` for a number that canonical JSON would round.
    pub(crate) fn digest(&self, revision: &str) -> Option<Digest> {
        Digest::of_value(revision, self).ok()
    }
}
