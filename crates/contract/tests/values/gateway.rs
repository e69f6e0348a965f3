//! What a gateway hands out, and its tokens beside it.

use crate::sample::{CANARY, bytes, changed};
use placement_contract::authority::{GatewayTokens, MaterializedGateway};
use placement_contract::{AttemptId, Id, Secret};
use serde_json::{Value, json};

fn said() -> Value {
    json!({
        "binding": {
            "binding_id": "b", "subject": "owner-1", "action_id": "a", "attempt_id": "attempt-1",
            "thread_id": "t", "owner_incarnation": 1, "carrier_epoch": 3, "tools": ["read"],
            "hooks": ["Stop"], "epoch": 0, "credential_generation": 2,
            "expires_at": "2030-01-01T00:00:00.000Z", "revoked": false, "sealed": false,
            "workspace_name": "w",
        },
        "generation": 2,
    })
}

fn decoded(said: &Value, token: &str, hook: Option<&str>) -> Result<MaterializedGateway, String> {
    let token = Secret::new(token.into());
    let hook = hook.map(|hook| Secret::new(hook.into()));
    let tokens = GatewayTokens { token: &token, hook_token: hook.as_ref() };
    MaterializedGateway::decode(&bytes(said), &tokens).map_err(|error| {
        assert!(!error.to_string().contains(CANARY), "{error}");
        error.to_string()
    })
}

#[test]
fn tokens_are_those_of_one_attempt_carrier_and_binding() {
    let gateway = decoded(&said(), "token", Some("hook")).unwrap();
    let attempt = AttemptId::parse("attempt-1").unwrap();
    let binding = Id::parse("b").unwrap();
    assert!(gateway.is_for(&attempt, 3, &binding));
    assert!(!gateway.is_for(&attempt, 4, &binding));
    assert!(!gateway.is_for(&attempt, 3, &Id::parse("c").unwrap()));
    assert!(!gateway.is_for(&AttemptId::parse("attempt-2").unwrap(), 3, &binding));
}

#[test]
fn a_hook_token_is_there_where_there_are_hooks() {
    let rule = Err("hook_token: must be given where there are hooks and only there".to_owned());
    assert_eq!(decoded(&said(), "token", None), rule);
    let without = changed(said(), "binding/hooks", json!([]));
    assert_eq!(decoded(&without, "token", Some(CANARY)), rule);
    assert!(decoded(&without, "token", None).is_ok());
}

#[test]
fn a_token_has_1_to_128_bytes() {
    let long = format!("{CANARY}{}", "x".repeat(128));
    for wrong in ["", long.as_str()] {
        let rule = Err("token: must be 1 to 128 bytes".to_owned());
        assert_eq!(decoded(&said(), wrong, Some("hook")), rule);
        let rule = Err("hook_token: must be 1 to 128 bytes".to_owned());
        assert_eq!(decoded(&said(), "token", Some(wrong)), rule);
    }
}

#[test]
fn another_generation_is_refused() {
    let older = changed(said(), "generation", json!(1));
    let rule = Err("generation: must be that of the binding".to_owned());
    assert_eq!(decoded(&older, "token", Some("hook")), rule);
}

#[test]
fn a_token_in_the_text_is_an_unknown_field() {
    let inside = changed(said(), "token", json!(CANARY));
    let rule = Err("token: is not a field of this object".to_owned());
    assert_eq!(decoded(&inside, "token", Some("hook")), rule);
}
