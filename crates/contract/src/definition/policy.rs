//! Launch policies: what a host allows, and what it alone selects.

use super::option_rule::OptionRule;
use super::profile::NATIVE_PROFILE;
use crate::canonical::canonical_json;
use crate::exact::{self, DecodeError, Exact, Prose, distinct, invalid, map, some_distinct};
use crate::id::{HookEvent, Id, PlacementBindingRef, PlacementProfileRef, ProviderRef, ToolName};
use crate::limits::{
    BUILDER_ARGUMENTS_BYTES_MAX, DEFINITION_BYTES_MAX, ENVIRONMENT_PASS_MAX, GATEWAY_HOOKS_MAX,
    GATEWAY_TOOLS_MAX, INSTRUCTIONS_BYTES_MAX, POLICY_NAMES_MAX, POLICY_OPTIONS_MAX,
    POLICY_PROFILES_MAX,
};
use crate::request::{Argument, EnvironmentName, OptionName, OptionValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a launch policy allows and selects; every field has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaunchPolicy {
    /// Whether HOME may be the machine's own home.
    pub allow_host_home: bool,
    /// The placement; this one where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_binding: Option<PlacementBindingRef>,
    /// Placement profiles that requests may name, at most 64, each once.
    #[serde(deserialize_with = "distinct::<_, _, 1, POLICY_PROFILES_MAX>")]
    pub placement_profiles: Vec<PlacementProfileRef>,
    /// Options of another placement; a native one has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_options: Option<Map<String, Value>>,
    /// Standing instructions, at most 4096 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Prose<INSTRUCTIONS_BYTES_MAX>>,
    /// The function that adds to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_builder: Option<InstructionBuilder>,
    /// The source of the driver's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
    /// The tools of the gateway, at most 16, each once.
    #[serde(deserialize_with = "distinct::<_, _, 0, GATEWAY_TOOLS_MAX>")]
    pub gateway_tools: Vec<ToolName>,
    /// The hook events of the gateway, at most 8, each once.
    #[serde(deserialize_with = "distinct::<_, _, 0, GATEWAY_HOOKS_MAX>")]
    pub gateway_hooks: Vec<HookEvent>,
    /// The program that carries hook events; needs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_command_ref: Option<Id>,
    /// Values of the driver's options, at most 64.
    #[serde(deserialize_with = "map::<_, _, _, POLICY_OPTIONS_MAX>")]
    pub prepare_options: BTreeMap<OptionName, OptionValue>,
    /// Options that saved preferences may set, at most 64, and to what.
    #[serde(deserialize_with = "map::<_, _, _, POLICY_OPTIONS_MAX>")]
    pub profile_options: BTreeMap<OptionName, OptionRule>,
    /// Whether saved preferences may add instructions.
    pub profile_instructions: bool,
    /// Whether the driver is a stand-in for tests.
    pub fixture: bool,
    /// Names of the host's environment that reach every child, at most 32.
    #[serde(deserialize_with = "distinct::<_, _, 0, ENVIRONMENT_PASS_MAX>")]
    pub environment_pass: Vec<EnvironmentName>,
    /// Entries that requests may refer to, at most 256; all where absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_distinct::<_, _, 0, POLICY_NAMES_MAX>"
    )]
    pub environment_refs: Option<Vec<Id>>,
    /// Programs, as a launch names them, that may be launched, at most 256; all where absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_distinct::<_, _, 0, POLICY_NAMES_MAX>"
    )]
    pub executables: Option<Vec<Argument>>,
    /// Absolute paths that may be measured, at most 256; those of `executables` where absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_distinct::<_, _, 0, POLICY_NAMES_MAX>"
    )]
    pub measurable: Option<Vec<Argument>>,
}

/// A function that adds to the instructions when an intent is rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionBuilder {
    /// The function.
    pub func_id: Id,
    /// Its arguments, at most 4096 bytes of canonical JSON.
    #[serde(default)]
    pub args: Map<String, Value>,
}

impl Default for LaunchPolicy {
    fn default() -> Self {
        let native = PlacementProfileRef::parse(NATIVE_PROFILE).expect("a short printable text");
        Self {
            allow_host_home: false,
            placement_binding: None,
            placement_profiles: vec![native],
            placement_options: None,
            instructions: None,
            instruction_builder: None,
            provider_ref: None,
            gateway_tools: Vec::new(),
            gateway_hooks: Vec::new(),
            hook_command_ref: None,
            prepare_options: BTreeMap::new(),
            profile_options: BTreeMap::new(),
            profile_instructions: false,
            fixture: false,
            environment_pass: Vec::new(),
            environment_refs: None,
            executables: None,
            measurable: None,
        }
    }
}

impl LaunchPolicy {
    /// Decodes a policy exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Checks a policy that was built in the program by the rules of [`LaunchPolicy::decode`].
    ///
    /// # Errors
    /// As [`LaunchPolicy::decode`].
    pub fn checked(self) -> Result<Self, DecodeError> {
        exact::checked(&self)
    }

    /// Says whether a launch under this policy needs the digest of its configuration.
    pub fn selects_configuration(&self) -> bool {
        self.provider_ref.is_some()
            || self.has_gateway()
            || self.instructions.is_some()
            || self.instruction_builder.is_some()
    }

    /// Says whether a launch under this policy has a gateway.
    pub fn has_gateway(&self) -> bool {
        !self.gateway_tools.is_empty() || !self.gateway_hooks.is_empty()
    }
}

impl Exact for LaunchPolicy {
    const NAME: &str = "launch_policy";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.hook_command_ref.is_some() && self.gateway_hooks.is_empty() {
            return Err(invalid("hook_command_ref", "needs gateway_hooks"));
        }
        if let Some(name) = self.profile_options.keys().find(|name| name.is_reserved()) {
            let field = format!("profile_options.{name}");
            return Err(invalid(field, "is not the name of an option"));
        }
        if let Some(builder) = &self.instruction_builder {
            let canonical = canonical_json(&builder.args)
                .map_err(|_| invalid("instruction_builder.args", "has no canonical form"))?;
            if canonical.len() > BUILDER_ARGUMENTS_BYTES_MAX {
                let rule = "must be at most 4096 bytes of canonical JSON";
                return Err(invalid("instruction_builder.args", rule));
            }
        }
        let relative = |path: &Argument| !path.as_str().starts_with('/');
        if self.measurable.iter().flatten().any(relative) {
            return Err(invalid("measurable", "must have absolute paths only"));
        }
        Ok(())
    }
}
