//! What a request must name, and what a policy keeps from it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::{Code, LaunchRequest};
use placement_policy::{Definitions, Snapshot, resolve};
use serde_json::{Value, json};

fn request(snapshot: &Snapshot, change: impl FnOnce(&mut Value)) -> LaunchRequest {
    let mut value = json!({
        "idempotency_key": "k", "owner_id": "o", "owner_incarnation": 1, "action_id": "a",
        "attempt_id": "a", "binding_ref": snapshot.binding().r#ref,
        "policy_ref": snapshot.policy().r#ref, "profile_id": snapshot.profile().r#ref,
        "binding_digest": snapshot.binding().digest, "profile_digest": snapshot.profile().digest,
        "launch": { "executable": "sh", "argv": [], "readiness": "started" },
        "resources": [], "required_cleanup": "process_group",
    });
    change(&mut value);
    LaunchRequest::decode(&serde_json::to_vec(&value).unwrap()).unwrap()
}

fn code(snapshot: &Snapshot, change: impl FnOnce(&mut Value)) -> Option<Code> {
    resolve(&request(snapshot, change), snapshot).err().map(|refusal| refusal.code)
}

#[test]
fn what_the_host_offers_is_resolved() {
    let snapshot = Snapshot::embedded();
    assert_eq!(code(&snapshot, |_| ()), None);
}

#[test]
fn another_name_is_denied() {
    let snapshot = Snapshot::embedded();
    for field in ["binding_ref", "policy_ref", "profile_id"] {
        let asked = code(&snapshot, |request| request[field] = json!("other"));
        assert_eq!(asked, Some(Code::Denied), "{field}");
    }
}

#[test]
fn another_digest_is_a_conflict() {
    let snapshot = Snapshot::embedded();
    for field in ["binding_digest", "profile_digest"] {
        let asked = code(&snapshot, |request| request[field] = json!("0".repeat(64)));
        assert_eq!(asked, Some(Code::Conflict), "{field}");
    }
}

#[test]
fn the_embedded_digests_are_stable() {
    let one = Snapshot::embedded();
    assert_eq!(one, Snapshot::embedded());
    assert_ne!(one.binding().digest, one.profile().digest);
    assert_ne!(one.profile().digest, one.policy().digest);
    assert_eq!(one.binding().r#ref.as_str(), "placement.native:binding");
    assert_eq!(one.profile().r#ref.as_str(), "placement.native:command");
}

#[test]
fn a_changed_definition_has_another_digest() {
    let mut definitions = Definitions::embedded();
    definitions.binding.definition["kind"] = json!("contract.other");
    let changed = Snapshot::new(definitions);
    assert_ne!(changed.binding().digest, Snapshot::embedded().binding().digest);
    assert_eq!(changed.profile().digest, Snapshot::embedded().profile().digest);
}

#[test]
fn an_unlisted_program_is_denied() {
    let mut definitions = Definitions::embedded();
    definitions.policy.definition.executables = Some(["claude".to_owned()].into());
    let snapshot = Snapshot::new(definitions);
    assert_eq!(code(&snapshot, |_| ()), Some(Code::Denied));
    let listed = code(&snapshot, |request| request["launch"]["executable"] = json!("claude"));
    assert_eq!(listed, None);
}

#[test]
fn an_unlisted_reference_is_denied_by_its_name() {
    let mut definitions = Definitions::embedded();
    definitions.policy.definition.environment_refs = Some([].into());
    let snapshot = Snapshot::new(definitions);
    let asked = request(&snapshot, |request| {
        request["environment_refs"] = json!({ "REGION": "host:canary-id" });
    });
    let refusal = resolve(&asked, &snapshot).unwrap_err();
    assert_eq!(refusal.code, Code::Denied);
    assert!(refusal.message.contains("REGION"), "{refusal}");
    assert!(!refusal.message.contains("canary"), "{refusal}");
}

#[test]
fn an_exit_gated_by_the_output_is_for_simple_commands_only() {
    let gated = |request: &mut Value| request["required_exit_observation"] = json!("eof_gated");
    let commands = Snapshot::embedded();
    assert!(!commands.is_driven());
    assert_eq!(code(&commands, gated), None);
    let mut definitions = Definitions::embedded();
    definitions.binding.definition["meta"]["type"] = json!("harness.driver");
    let driven = Snapshot::new(definitions);
    assert!(driven.is_driven());
    assert_eq!(code(&driven, gated), Some(Code::Invalid));
    assert_eq!(code(&driven, |_| ()), None);
}

#[test]
fn nobody_is_an_operator_by_name_unless_the_host_says_so() {
    assert!(Snapshot::embedded().operators().is_empty());
    let ops = placement_contract::OwnerId::parse("team:ops").unwrap();
    let snapshot = Snapshot::embedded().with_operators([ops.clone()]);
    assert!(snapshot.operators().contains(&ops));
}
