//! What a launch policy says by default, and what its rules allow.

use crate::sample::bytes;
use placement_contract::Digest;
use placement_contract::definition::LaunchPolicy;
use placement_contract::request::{OptionName, OptionValue};
use serde_json::{Value, json};

fn policy(value: &Value) -> LaunchPolicy {
    LaunchPolicy::decode(&bytes(value)).unwrap()
}

fn allows(rule: &Value, value: &Value) -> bool {
    let policy = policy(&json!({ "profile_options": { "model": rule } }));
    let name = OptionName::parse("model").unwrap();
    let value: OptionValue = serde_json::from_value(value.clone()).unwrap();
    policy.profile_options[&name].allows(&value)
}

#[test]
fn an_empty_policy_is_the_default_one() {
    let empty = policy(&json!({}));
    assert_eq!(empty, LaunchPolicy::default());
    assert!(!empty.allow_host_home && !empty.profile_instructions && !empty.fixture);
    assert_eq!(empty.placement_profiles[0].as_str(), "bee.placement:native");
    assert!(!empty.selects_configuration());
}

#[test]
fn what_a_driver_is_configured_from_is_a_selection() {
    let selections = [
        json!({ "provider_ref": "p" }),
        json!({ "instructions": "Be brief." }),
        json!({ "instruction_builder": { "func_id": "f" } }),
        json!({ "gateway_tools": ["read"] }),
        json!({ "gateway_hooks": ["Stop"] }),
    ];
    for selection in selections {
        assert!(policy(&selection).selects_configuration(), "{selection}");
    }
    assert!(!policy(&json!({ "executables": ["sh"] })).selects_configuration());
}

#[test]
fn a_listed_value_is_allowed_in_its_own_type_only() {
    let rule = json!({ "kind": "enum", "values": ["1", 2, true] });
    for fine in [json!("1"), json!(2), json!(true)] {
        assert!(allows(&rule, &fine), "{fine}");
    }
    for wrong in [json!(1), json!("2"), json!(2.0), json!("true"), json!(false)] {
        assert!(!allows(&rule, &wrong), "{wrong}");
    }
}

#[test]
fn a_text_is_allowed_up_to_its_bound() {
    let rule = json!({ "kind": "text", "max_bytes": 3 });
    assert!(allows(&rule, &json!("abc")));
    for wrong in [json!("abcd"), json!(""), json!(1), json!(true)] {
        assert!(!allows(&rule, &wrong), "{wrong}");
    }
}

#[test]
fn an_empty_map_of_options_is_as_good_as_none() {
    let given = policy(&json!({ "prepare_options": {}, "profile_options": {} }));
    assert_eq!(given, policy(&json!({})));
    let digest = |policy: &LaunchPolicy| Digest::of_value("placement.launch-policy@1", policy);
    assert_eq!(digest(&given), digest(&LaunchPolicy::default()));
}
