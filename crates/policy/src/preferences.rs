//! What becomes of a launch policy under the saved preferences of an owner.

use crate::refusal::denied;
use placement_contract::definition::LaunchPolicy;
use placement_contract::limits::INSTRUCTIONS_BYTES_MAX;
use placement_contract::request::Preferences;
use placement_contract::{Prose, Refusal};

/// Applies preferences that the policy admits; the policy itself is not changed.
///
/// # Errors
/// DENIED for an option that the policy does not declare or a value that it does not allow, for a
/// tool that it does not have, and for instructions that it does not take or that are too long
/// together.
pub fn apply_preferences(
    preferences: &Preferences,
    rules: &LaunchPolicy,
) -> Result<LaunchPolicy, Refusal> {
    let mut applied = rules.clone();
    for (name, value) in &preferences.options {
        let Some(rule) = rules.profile_options.get(name) else {
            return Err(denied(format!(
                "preferences.options.{name}: the policy has no such option"
            )));
        };
        if !rule.allows(value) {
            return Err(denied(format!(
                "preferences.options.{name}: the policy does not allow it"
            )));
        }
        applied.prepare_options.insert(name.clone(), value.clone());
    }
    if let Some(tools) = &preferences.mcp_tools {
        if tools.iter().any(|tool| !rules.gateway_tools.contains(tool)) {
            return Err(denied("preferences.mcp_tools: has a tool that the policy does not have"));
        }
        applied.gateway_tools.clone_from(tools);
        applied.gateway_tools.sort();
    }
    if let Some(added) = &preferences.instructions {
        if !rules.profile_instructions {
            return Err(denied("preferences.instructions: the policy takes none"));
        }
        applied.instructions = Some(joined(rules.instructions.as_ref(), added)?);
    }
    Ok(applied)
}

type Instructions = Prose<INSTRUCTIONS_BYTES_MAX>;

fn joined(host: Option<&Instructions>, added: &Instructions) -> Result<Instructions, Refusal> {
    let text = match host {
        None => added.to_string(),
        Some(host) => format!("{host}\n\n{added}"),
    };
    Prose::parse(&text).ok_or_else(|| {
        denied("preferences.instructions: are longer than 4096 bytes with those of the policy")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{policy, request};
    use placement_contract::Code;
    use serde_json::{Value, json};

    fn rules() -> Value {
        json!({
            "gateway_tools": ["read", "write"], "instructions": "Be brief.",
            "profile_instructions": true, "prepare_options": { "model": "small", "loud": true },
            "profile_options": { "model": { "kind": "enum", "values": ["small", "large"] } },
        })
    }

    fn applied(rules: &Value, preferences: Value) -> Result<LaunchPolicy, String> {
        let request = request(&[], |request| request["preferences"] = preferences);
        apply_preferences(&request.preferences, &policy(rules)).map_err(|refusal| {
            assert_eq!(refusal.code, Code::Denied);
            assert!(!refusal.message.contains("canary"), "{refusal}");
            refusal.message
        })
    }

    #[test]
    fn admitted_preferences_are_laid_over_the_policy() {
        let preferences = json!({
            "options": { "model": "large" }, "mcp_tools": ["read"], "instructions": "In German.",
        });
        let applied = applied(&rules(), preferences).unwrap();
        let expected = json!({ "model": "large", "loud": true });
        assert_eq!(serde_json::to_value(&applied.prepare_options).unwrap(), expected);
        assert_eq!(serde_json::to_value(&applied.gateway_tools).unwrap(), json!(["read"]));
        assert_eq!(applied.instructions.unwrap().as_str(), "Be brief.\n\nIn German.");
    }

    #[test]
    fn nothing_preferred_is_the_policy_itself() {
        assert_eq!(applied(&rules(), json!({})), Ok(policy(&rules())));
    }

    #[test]
    fn no_tools_are_a_choice_too() {
        let applied = applied(&rules(), json!({ "mcp_tools": [] })).unwrap();
        assert!(!applied.has_gateway());
    }

    #[test]
    fn what_the_policy_does_not_declare_is_denied() {
        let option = |preferences| applied(&rules(), json!({ "options": preferences }));
        let rule = "preferences.options.effort: the policy has no such option";
        assert_eq!(option(json!({ "effort": "canary" })), Err(rule.to_owned()));
        let rule = "preferences.options.model: the policy does not allow it";
        assert_eq!(option(json!({ "model": "canary" })), Err(rule.to_owned()));
        let rule = "preferences.mcp_tools: has a tool that the policy does not have";
        assert_eq!(applied(&rules(), json!({ "mcp_tools": ["canary"] })), Err(rule.to_owned()));
    }

    #[test]
    fn instructions_are_taken_where_the_policy_says_so_and_have_a_bound() {
        let long = json!({ "instructions": "x".repeat(4_090) });
        let rule = "preferences.instructions: are longer than 4096 bytes with those of the policy";
        assert_eq!(applied(&rules(), long), Err(rule.to_owned()));
        let mut closed = rules();
        closed["profile_instructions"] = json!(false);
        let rule = "preferences.instructions: the policy takes none";
        let given = json!({ "instructions": "canary" });
        assert_eq!(applied(&closed, given), Err(rule.to_owned()));
    }
}
