//! The definitions of a host: one driver binding, one profile, one launch policy.

use placement_contract::{BindingRef, Digest, EnvironmentName, Id, PolicyRef, ProfileId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The name under which a binding is hashed.
pub const BINDING_REVISION: &str = "placement.binding@1";
/// The name under which a profile is hashed.
pub const PROFILE_REVISION: &str = "placement.profile@1";
/// The name under which a launch policy is hashed.
pub const POLICY_REVISION: &str = "placement.launch-policy@1";

const EMBEDDED: &str = include_str!("definitions.json");

/// What a host offers: one driver binding, one profile, one launch policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// The driver binding.
    pub binding: Definition<BindingRef, Value>,
    /// The profile.
    pub profile: Definition<ProfileId, Value>,
    /// The launch policy.
    pub policy: Definition<PolicyRef, LaunchPolicy>,
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

/// What a launch policy allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchPolicy {
    /// Names of the host's environment that reach every child.
    pub environment_pass: BTreeSet<EnvironmentName>,
    /// Entries that requests may refer to; all where absent.
    #[serde(default)]
    pub environment_refs: Option<BTreeSet<Id>>,
    /// Programs, as a launch names them, that may be launched and measured; all where absent.
    #[serde(default)]
    pub executables: Option<BTreeSet<String>>,
}

impl Definitions {
    /// Returns the definitions that are built in.
    pub fn embedded() -> Self {
        serde_json::from_str(EMBEDDED).expect("the embedded definitions are part of the build")
    }
}

impl<R: Serialize, D: Serialize> Definition<R, D> {
    /// Hashes the name and the definition.
    pub(crate) fn digest(&self, revision: &str) -> Digest {
        Digest::of_value(revision, self).expect("definitions have text keys and no numbers")
    }
}
