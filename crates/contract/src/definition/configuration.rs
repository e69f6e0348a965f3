//! What a driver's configuration is made from, and the digest that pins it.

use super::policy::InstructionBuilder;
use crate::canonical::{Digest, NotCanonical};
use crate::id::{ActionId, HookEvent, Id, ProviderRef, ToolName};
use crate::request::{ConfigurationContext, Destination, OptionName, OptionValue};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The name under which the inputs are hashed.
pub const CONFIGURATION_REVISION: &str = "bee.configuration-inputs@1";

/// Everything that a driver's configuration depends on but where it will lie: no home directory,
/// no attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigurationInputs {
    /// The driver's configure method.
    pub target: Id,
    /// The renderer that its descriptor names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configure_renderer: Option<Id>,
    /// The digest of the descriptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_digest: Option<Digest>,
    /// Values of options; none is the same as an empty map.
    pub option_values: BTreeMap<OptionName, OptionValue>,
    /// For which turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ConfigurationContext>,
    /// Standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The function that adds to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_builder: Option<InstructionBuilder>,
    /// The source of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
    /// The whole entry of that source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
    /// The gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<ConfigurationGateway>,
    /// Whether the driver is a stand-in for tests.
    pub fixture: bool,
}

/// A gateway as a configuration depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigurationGateway {
    /// Its address.
    pub endpoint: String,
    /// The action that it serves.
    pub action_id: ActionId,
    /// The tools.
    pub tools: Vec<ToolName>,
    /// The hook events.
    pub hooks: Vec<HookEvent>,
    /// The variable that has the token for the tools.
    pub token_environment: Destination,
    /// The variable that has the token for the hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_token_environment: Option<Destination>,
    /// The program that carries hook events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_command: Option<String>,
}

impl ConfigurationInputs {
    /// Measures the inputs; the order of tools and hooks does not count.
    ///
    /// # Errors
    /// [`NotCanonical`] where the source's entry has no canonical form.
    pub fn digest(&self) -> Result<Digest, NotCanonical> {
        let mut sorted = self.clone();
        if let Some(gateway) = &mut sorted.gateway {
            gateway.tools.sort();
            gateway.hooks.sort();
        }
        Digest::of_value(CONFIGURATION_REVISION, &sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> ConfigurationInputs {
        ConfigurationInputs {
            target: Id::parse("driver:configure").unwrap(),
            configure_renderer: None,
            descriptor_digest: None,
            option_values: BTreeMap::new(),
            context: Some(ConfigurationContext::Window),
            instructions: None,
            instruction_builder: None,
            provider_ref: None,
            provider: None,
            gateway: Some(ConfigurationGateway {
                endpoint: "http://127.0.0.1:1".to_owned(),
                action_id: ActionId::parse("a").unwrap(),
                tools: ["b", "a"].map(|name| ToolName::parse(name).unwrap()).to_vec(),
                hooks: Vec::new(),
                token_environment: Destination::parse("TOKEN").unwrap(),
                hook_token_environment: None,
                hook_command: None,
            }),
            fixture: false,
        }
    }

    #[test]
    fn the_order_of_tools_does_not_count() {
        let mut other = inputs();
        other.gateway.as_mut().unwrap().tools.reverse();
        assert_eq!(other.digest(), inputs().digest());
    }

    #[test]
    fn an_option_counts() {
        let mut other = inputs();
        let name = OptionName::parse("model").unwrap();
        other.option_values.insert(name, OptionValue::Flag(true));
        assert_ne!(other.digest(), inputs().digest());
    }
}
