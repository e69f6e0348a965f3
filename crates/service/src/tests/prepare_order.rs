//! What prepare checks, and in which order.

use super::prepare::grant;
use crate::list::Listed;
use crate::testing::*;
use placement_contract::definition::{LaunchPolicy, NATIVE_BINDING};
use placement_contract::request::Argument;
use placement_contract::{
    Access, ActionId, CleanupScope, Code, Digest, EnvironmentName, IdempotencyKey, LaunchRequest,
    OwnerId, PlacementBindingRef, PolicyRef, ProjectionId, RootRef,
};
use placement_policy::{Definitions, Snapshot};

/// A change of a request, and what it is refused for.
type Breach = (&'static str, fn(&mut LaunchRequest), Code, &'static str);

fn stale() -> Digest {
    Digest::of_bytes(b"older")
}

/// What prepare checks, in its order.
const CHECKS: &[Breach] = &[
    ("shape", |request| request.owner_incarnation = 0, Code::Invalid, "owner_incarnation: "),
    (
        "placement",
        |request| {
            request.placement_binding_ref = PlacementBindingRef::parse("docker").ok();
            request.placement_binding_digest = Some(stale());
        },
        Code::Denied,
        "placement_binding_ref: is not this placement",
    ),
    (
        "owner",
        |request| request.owner_id = OwnerId::parse("other").unwrap(),
        Code::Forbidden,
        "owner_id: ",
    ),
    (
        "key",
        |request| {
            let key = IdempotencyKey::parse("taken");
            request.idempotency_key = key.unwrap();
        },
        Code::Conflict,
        "the idempotency key was used for another request",
    ),
    (
        "what is offered",
        |request| {
            let login = ProjectionId::parse("login").unwrap();
            request.projections = vec![login];
        },
        Code::Unsupported,
        "projections: ",
    ),
    (
        "environment",
        |request| {
            let home = EnvironmentName::parse("HOME").unwrap();
            request.environment.insert(home, "/x".to_owned());
        },
        Code::Invalid,
        "environment.HOME: ",
    ),
    (
        "grants",
        |request| {
            let unlisted = RootRef::parse("dir:0").unwrap();
            request.resources = vec![grant(unlisted, Access::Read)];
        },
        Code::Forbidden,
        "the resource project names a root",
    ),
    (
        "placement binding",
        |request| {
            request.placement_binding_ref = PlacementBindingRef::parse(NATIVE_BINDING).ok();
            request.placement_binding_digest = Some(stale());
        },
        Code::Conflict,
        "the placement binding is not the one",
    ),
    (
        "binding",
        |request| request.binding_digest = stale(),
        Code::Conflict,
        "the binding is not the one",
    ),
    (
        "policy",
        |request| request.policy_ref = PolicyRef::parse("other").unwrap(),
        Code::Denied,
        "the launch policy is not one of this host",
    ),
    (
        "capability",
        |request| request.required_cleanup = CleanupScope::ContainedTree,
        Code::UnsupportedCapability,
        "contained_tree is required",
    ),
    (
        "configuration",
        |request| request.policy_ref = PolicyRef::parse("configured").unwrap(),
        Code::Denied,
        "configuration_digest: is needed",
    ),
    (
        "tools",
        |request| {
            let argument = "--allowedTools=mcp__bee__read";
            let argument = Argument::parse(argument).unwrap();
            request.launch.argv = vec![argument];
        },
        Code::Denied,
        "launch.argv: allows a tool",
    ),
    (
        "attempt id",
        |request| {
            request.attempt_id = attempt("taken");
            request.action_id = ActionId::parse("taken").unwrap();
        },
        Code::Conflict,
        "the attempt id is already recorded",
    ),
];

#[test]
fn of_two_reasons_the_earlier_check_tells_its_own_and_nothing_is_recorded() {
    let world = World::new();
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let mut definitions = Definitions::embedded();
    let configured = LaunchPolicy::decode(br#"{ "provider_ref": "provider" }"#);
    let name = PolicyRef::parse("configured").unwrap();
    definitions.policies.insert(name, configured.unwrap());
    let snapshot = Snapshot::new(definitions).unwrap();
    world.service.change_snapshot(|host| *host = snapshot);
    // Another request than any of those below: it is no replay.
    world.prepare(&LaunchRequest { owner_incarnation: 2, ..request("taken", "taken") });
    for (index, (earlier, breach, code, message)) in CHECKS.iter().enumerate() {
        for (later, another, ..) in &CHECKS[index..] {
            let mut launch = request("a", "k");
            another(&mut launch);
            breach(&mut launch);
            let refused = refusal(world.service.prepare(&launch));
            assert_eq!(refused.code, *code, "{earlier} before {later}: {refused}");
            assert!(refused.message.starts_with(message), "{earlier} before {later}: {refused}");
        }
    }
    assert_eq!(world.service.list(Listed::All).unwrap().attempts.len(), 1);
    world.prepare(&request("a", "k"));
}
