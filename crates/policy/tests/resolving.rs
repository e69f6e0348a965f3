//! What a request must name, and what a policy keeps from it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::definition::{LaunchPolicy, Method, NATIVE_BINDING, NATIVE_PROFILE};
use placement_contract::request::Destination;
use placement_contract::{
    Code, LaunchRequest, Line, PlacementBindingRef, PlacementProfileRef, Refusal,
};
use placement_policy::{Definitions, HostGateway, Snapshot, check_measurable, resolve};
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

fn refusal(snapshot: &Snapshot, change: impl FnOnce(&mut Value)) -> Option<Refusal> {
    let request = request(snapshot, change);
    let resolved = resolve(&request, snapshot);
    resolved.and_then(|resolved| resolved.check_configuration(&request, snapshot)).err()
}

fn code(snapshot: &Snapshot, change: impl FnOnce(&mut Value)) -> Option<Code> {
    refusal(snapshot, change).map(|refusal| refusal.code)
}

/// A host whose one policy is this one.
fn under(policy: &Value) -> Snapshot {
    let rules = LaunchPolicy::decode(&serde_json::to_vec(policy).unwrap()).unwrap();
    let mut definitions = Definitions::embedded();
    definitions.policies.insert(definitions.default_policy.clone(), rules);
    Snapshot::new(definitions).unwrap()
}

#[test]
fn what_the_host_offers_is_resolved() {
    let snapshot = Snapshot::embedded();
    let resolved = resolve(&request(&snapshot, |_| ()), &snapshot).unwrap();
    assert_eq!(resolved.placement.binding_id.as_str(), NATIVE_BINDING);
    assert_eq!(&resolved.policy, snapshot.policy());
    for method in Method::ALL {
        let target = resolved.placement.methods.target(*method).as_str();
        assert_eq!(target, format!("bee.placement.native:{method}"));
    }
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
fn this_placement_is_resolved_by_its_digest() {
    let snapshot = Snapshot::embedded();
    let binding = PlacementBindingRef::parse(NATIVE_BINDING).unwrap();
    let digest = snapshot.placement_binding(&binding).unwrap().binding_digest.clone();
    let with = |name: &str, digest: Value| {
        code(&snapshot, |request| {
            request["placement_binding_ref"] = json!(name);
            request["placement_binding_digest"] = digest;
        })
    };
    assert_eq!(with(NATIVE_BINDING, json!(digest)), None);
    assert_eq!(with(NATIVE_BINDING, json!("0".repeat(64))), Some(Code::Conflict));
    assert_eq!(with("other", json!(digest)), Some(Code::Denied));
}

#[test]
fn another_placement_is_refused_before_anything_else() {
    let snapshot = Snapshot::embedded();
    let refused = refusal(&snapshot, |request| {
        request["placement_binding_ref"] = json!("other");
        request["placement_binding_digest"] = json!("0".repeat(64));
        request["binding_ref"] = json!("unknown");
        request["policy_ref"] = json!("unknown");
    });
    assert_eq!(refused.unwrap().message, "placement_binding_ref: is not this placement");
}

/// A change of a request, and what it is refused for.
type Step = (&'static str, fn(&mut Value), &'static str);

/// What is asked of a request, in the order in which it is asked.
const STEPS: &[Step] = &[
    (
        "placement binding",
        |request| {
            request["placement_binding_ref"] = json!(NATIVE_BINDING);
            request["placement_binding_digest"] = json!("0".repeat(64));
        },
        "the placement binding is not the one",
    ),
    (
        "binding",
        |request| request["binding_digest"] = json!("0".repeat(64)),
        "the binding is not the one",
    ),
    ("profile", |request| request["profile_id"] = json!("other"), "the profile is not activated"),
    (
        "placement profile",
        |request| {
            request["placement_profile_ref"] = json!("other");
            request["placement_profile_digest"] = json!("0".repeat(64));
        },
        "the launch policy does not list the placement profile",
    ),
    (
        "exit observation",
        |request| request["required_exit_observation"] = json!("eof_gated"),
        "required_exit_observation: ",
    ),
    (
        "program",
        |request| request["launch"]["executable"] = json!("other"),
        "the launch policy does not list the program",
    ),
    (
        "preferences",
        |request| request["preferences"] = json!({ "instructions": "In German." }),
        "preferences.instructions: ",
    ),
    (
        "configuration",
        |request| request["configuration_digest"] = json!("0".repeat(64)),
        "the configuration is not the one",
    ),
    (
        "gateway",
        |request| {
            let tools = ["read"];
            request["gateway"] = json!({ "endpoint": "x", "tools": tools, "destination": "T" });
        },
        "gateway: ",
    ),
    (
        "tools",
        |request| request["launch"]["argv"] = json!(["--allowedTools=mcp__bee__read"]),
        "launch.argv: ",
    ),
];

#[test]
fn of_two_reasons_the_earlier_one_is_told() {
    let mut definitions = Definitions::embedded();
    definitions.binding.definition["meta"]["type"] = json!("harness.driver");
    let rules = LaunchPolicy::decode(br#"{ "executables": ["sh"] }"#).unwrap();
    definitions.policies.insert(definitions.default_policy.clone(), rules);
    let snapshot = Snapshot::new(definitions).unwrap();
    for (index, (earlier, one, message)) in STEPS.iter().enumerate() {
        for (later, other, _) in &STEPS[index + 1..] {
            let refused = refusal(&snapshot, |request| {
                other(request);
                one(request);
            });
            let refused = refused.unwrap().message;
            assert!(refused.starts_with(message), "{earlier} before {later}: {refused}");
        }
    }
    assert_eq!(refusal(&snapshot, |_| ()), None);
}

#[test]
fn a_profile_is_listed_defined_and_measured() {
    let snapshot = Snapshot::embedded();
    let profile = PlacementProfileRef::parse(NATIVE_PROFILE).unwrap();
    let digest = snapshot.placement_profile_digest(&profile).unwrap().clone();
    let with = |snapshot: &Snapshot, name: &str, digest: Value| {
        code(snapshot, |request| {
            request["placement_profile_ref"] = json!(name);
            request["placement_profile_digest"] = digest;
        })
    };
    assert_eq!(with(&snapshot, NATIVE_PROFILE, json!(digest)), None);
    assert_eq!(with(&snapshot, NATIVE_PROFILE, json!("0".repeat(64))), Some(Code::Conflict));
    assert_eq!(with(&snapshot, "other", json!(digest)), Some(Code::Denied));
    let listed = under(&json!({ "placement_profiles": [NATIVE_PROFILE, "other"] }));
    assert_eq!(with(&listed, "other", json!(digest)), Some(Code::Denied));
}

#[test]
fn a_policy_that_selects_another_placement_is_denied_without_a_hint() {
    let policies = [
        json!({ "placement_binding": "bee.placement.docker.binding:binding" }),
        json!({ "placement_profiles": ["docker"] }),
        json!({ "placement_options": { "image": "x" } }),
    ];
    for policy in policies {
        assert_eq!(code(&under(&policy), |_| ()), Some(Code::Denied), "{policy}");
    }
    let named = under(&json!({ "placement_binding": NATIVE_BINDING }));
    assert_eq!(code(&named, |_| ()), None);
}

#[test]
fn a_profile_of_a_container_is_of_another_placement() {
    let mut definitions = Definitions::embedded();
    let container = json!({
        "schema_revision": "bee.placement-profile@1", "placement_binding": "docker",
        "image_recipe_ref": "recipe", "user": "1000:1000", "network": "agents",
        "limits": { "memory": 16_777_216, "cpu": 1_000, "pids": 1 },
    });
    let name = PlacementProfileRef::parse("container").unwrap();
    definitions.placement_profiles.insert(name.clone(), container);
    let rules = LaunchPolicy { placement_profiles: vec![name.clone()], ..LaunchPolicy::default() };
    definitions.policies.insert(definitions.default_policy.clone(), rules);
    let snapshot = Snapshot::new(definitions).unwrap();
    let digest = snapshot.placement_profile_digest(&name).unwrap().clone();
    let refused = refusal(&snapshot, |request| {
        request["placement_profile_ref"] = json!("container");
        request["placement_profile_digest"] = json!(digest);
    });
    assert_eq!(refused.unwrap().message, "the placement profile selects another placement");
}

#[test]
fn the_embedded_digests_are_stable() {
    let one = Snapshot::embedded();
    assert_eq!(one, Snapshot::embedded());
    let digests = [&one.binding().digest, &one.profile().digest, &one.policy().digest];
    assert_ne!(digests[0], digests[1]);
    assert_ne!(digests[1], digests[2]);
    assert_eq!(one.binding().r#ref.as_str(), "placement.command:binding");
    assert_eq!(one.profile().r#ref.as_str(), "placement.command:batch");
}

#[test]
fn a_changed_definition_has_another_digest() {
    let mut definitions = Definitions::embedded();
    definitions.binding.definition["kind"] = json!("contract.other");
    let changed = Snapshot::new(definitions).unwrap();
    assert_ne!(changed.binding().digest, Snapshot::embedded().binding().digest);
    assert_eq!(changed.profile().digest, Snapshot::embedded().profile().digest);
}

#[test]
fn a_definition_that_breaks_its_rules_makes_no_snapshot() {
    let mut definitions = Definitions::embedded();
    let binding = definitions.placement_bindings.values_mut().next().unwrap();
    binding.data.insert("contracts".to_owned(), json!([]));
    let refused = Snapshot::new(definitions).unwrap_err();
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.message.contains("exactly one placement contract"), "{refused}");
    let mut definitions = Definitions::embedded();
    definitions.profile.definition["number"] = json!(u64::MAX);
    assert_eq!(Snapshot::new(definitions).unwrap_err().code, Code::Invalid);
}

#[test]
fn an_unlisted_program_is_denied() {
    let snapshot = under(&json!({ "executables": ["claude"] }));
    assert_eq!(code(&snapshot, |_| ()), Some(Code::Denied));
    let listed = code(&snapshot, |request| request["launch"]["executable"] = json!("claude"));
    assert_eq!(listed, None);
}

#[test]
fn an_unlisted_reference_is_denied_by_its_name() {
    let snapshot = under(&json!({ "environment_refs": [] }));
    let refused = refusal(&snapshot, |request| {
        request["environment_refs"] = json!({ "REGION": "host:canary-id" });
    });
    let refused = refused.unwrap();
    assert_eq!(refused.code, Code::Denied);
    assert!(refused.message.contains("REGION"), "{refused}");
    assert!(!refused.message.contains("canary"), "{refused}");
}

#[test]
fn a_file_is_measured_where_a_policy_lets_it() {
    let code = |policy: Value, path: &str| {
        let stands_for = |name: &str| (name, path) == ("sh", "/bin/sh");
        let checked = check_measurable(path.into(), &under(&policy), stands_for);
        checked.err().map(|refusal| refusal.code)
    };
    assert_eq!(code(json!({}), "/bin/anything"), None);
    let listed = json!({ "measurable": ["/bin/sh"] });
    assert_eq!(code(listed.clone(), "/bin/sh"), None);
    assert_eq!(code(listed, "/bin/ls"), Some(Code::Denied));
    let named = json!({ "executables": ["sh"] });
    assert_eq!(code(named.clone(), "/bin/sh"), None);
    assert_eq!(code(named, "/bin/ls"), Some(Code::Denied));
    let programs = json!({ "executables": ["/bin/sh"] });
    assert_eq!(code(programs.clone(), "/bin/sh"), None);
    assert_eq!(code(programs, "/bin/ls"), Some(Code::Denied));
    let wider = json!({ "executables": ["/bin/sh"], "measurable": ["/bin/ls"] });
    assert_eq!(code(wider.clone(), "/bin/ls"), None);
    assert_eq!(code(wider, "/bin/sh"), Some(Code::Denied));
}

#[test]
fn a_configuration_that_the_policy_selects_is_pinned() {
    for policy in [json!({ "provider_ref": "p" }), json!({ "instructions": "Be brief." })] {
        assert_eq!(code(&under(&policy), |_| ()), Some(Code::Denied), "{policy}");
        let pinned = |request: &mut Value| request["configuration_digest"] = json!("0".repeat(64));
        assert_eq!(code(&under(&policy), pinned), Some(Code::Conflict), "{policy}");
    }
}

fn gateway(snapshot: Snapshot) -> Snapshot {
    snapshot.with_gateway(HostGateway {
        endpoint: Line::parse("http://127.0.0.1:1").unwrap(),
        destination: Destination::parse("TOKEN").unwrap(),
        hook_destination: Destination::parse("HOOK_TOKEN").unwrap(),
    })
}

#[test]
fn a_gateway_that_nobody_selects_is_denied() {
    let asked = json!({ "endpoint": "x", "tools": ["read"], "destination": "TOKEN" });
    let seen = refusal(&Snapshot::embedded(), |request| request["gateway"] = asked);
    assert_eq!(seen.unwrap().message, "gateway: the launch policy selects none");
}

#[test]
fn a_gateway_needs_its_configuration_pinned() {
    let snapshot = gateway(under(&json!({ "gateway_tools": ["read"] })));
    let seen = refusal(&snapshot, |_| ()).unwrap();
    let message = "configuration_digest: is needed for what the launch policy selects";
    assert_eq!((seen.code, seen.message.as_str()), (Code::Denied, message));
}

#[test]
fn an_exit_gated_by_the_output_is_for_simple_commands_only() {
    let gated = |request: &mut Value| request["required_exit_observation"] = json!("eof_gated");
    let commands = Snapshot::embedded();
    assert!(!commands.is_driven());
    assert_eq!(code(&commands, gated), None);
    let mut definitions = Definitions::embedded();
    definitions.binding.definition["meta"]["type"] = json!("harness.driver");
    let driven = Snapshot::new(definitions).unwrap();
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
