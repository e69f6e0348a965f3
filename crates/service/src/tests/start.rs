use crate::testing::*;
use placement_contract::{
    Access, Code, EvidenceKind, ExecutionState, Generation, GrantRef, LaunchRequest, Purpose,
    ResourceGrant, ResourceName, Subpath,
};
use placement_policy::Snapshot;
use placement_protocol::StopMode;

#[test]
fn a_runner_program_that_is_missing_leaves_the_intent() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let refused = refusal(world.service.start(&id, &recipient("me")));
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("ENOENT"), "{refused}");
    assert_eq!(world.row(&id).state.execution, ExecutionState::Intended);
}

#[test]
fn a_runner_that_ends_before_its_claim_leaves_the_intent_for_a_later_start() {
    let world = World::with_runner("/bin/true");
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let id = world.prepare(&request("a", "k"));
    for generation in 1..=2 {
        let refused = refusal(world.service.start(&id, &recipient("me")));
        assert_eq!(refused.code, Code::Unavailable);
        let row = world.row(&id);
        assert_eq!(row.state.execution, ExecutionState::Intended);
        assert_eq!(row.attachment.generation, Generation::new(generation));
    }
    assert_eq!(world.kinds(&id), [EvidenceKind::Attach, EvidenceKind::Attach]);
}

#[test]
fn an_attempt_that_is_not_intended_is_returned_as_it_is() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let _runner = FakeRunner::claim(&world, &id);
    let started = world.service.start(&id, &recipient("me")).unwrap();
    assert_eq!(started.attempt, world.row(&id).attempt());
    assert!(started.streams.is_none());
}

#[test]
fn a_start_after_a_stop_returns_the_exit() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    world.service.stop(&id, StopMode::Forced, crate::IfUncertain::Leave).unwrap();
    let started = world.service.start(&id, &recipient("me")).unwrap();
    assert_eq!(started.attempt.execution_state, ExecutionState::Exited);
}

#[test]
fn a_grant_that_no_longer_holds_refuses_the_start_and_keeps_the_intent() {
    let world = World::new();
    let path = world.root.join("project");
    std::fs::create_dir(&path).unwrap();
    let root_ref =
        world.service.change_snapshot(|snapshot| snapshot.admit(&path, Access::Write)).unwrap();
    let grant = ResourceGrant {
        name: ResourceName::parse("project").unwrap(),
        grant_ref: GrantRef::parse("g").unwrap(),
        root_ref,
        subpath: Subpath::default(),
        access: Access::Write,
        purpose: Purpose::Project,
    };
    let id = world.prepare(&LaunchRequest { resources: vec![grant], ..request("a", "k") });
    world.service.change_snapshot(|snapshot| *snapshot = Snapshot::embedded());
    assert_eq!(refusal(world.service.start(&id, &recipient("me"))).code, Code::Forbidden);
    assert_eq!(world.kinds(&id), [EvidenceKind::GrantRefused]);
    assert_eq!(world.row(&id).state.execution, ExecutionState::Intended);
    assert!(world.last_detail(&id).starts_with("FORBIDDEN: "));
}

#[test]
fn an_attempt_that_was_claimed_by_another_start_keeps_its_recipient() {
    let world = World::with_runner("/bin/true");
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let id = world.prepare(&request("a", "k"));
    let _runner = FakeRunner::claim(&world, &id);
    let row = world.row(&id);
    let attachment = placement_store::Attachment {
        generation: Generation::new(2),
        recipient: Some(recipient("second")),
    };
    let fields = placement_store::Fields { attachment: Some(attachment), ..Default::default() };
    let rows = [placement_store::Draft::new(EvidenceKind::Attach, "generation 2")];
    let second = world.record(&id, &rows, &fields);
    let refusal = placement_contract::Refusal::new(Code::Conflict, "the attempt is starting");
    let other = placement_identity::Pid::try_from(i32::MAX).unwrap();
    let started = world.service.conclude_refused(&second, &row.attachment, other, refusal).unwrap();
    assert!(started.streams.is_none());
    assert_eq!(started.attempt.attachment_generation, Generation::FIRST);
    assert_eq!(world.row(&id).attachment, row.attachment);
}

/// A host whose definitions were changed since the launch was prepared, and what a start says then.
#[track_caller]
fn changed(change: impl FnOnce(&mut placement_policy::Definitions), code: Code, message: &str) {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut definitions = placement_policy::Definitions::embedded();
    change(&mut definitions);
    let snapshot = Snapshot::new(definitions).unwrap();
    world.service.change_snapshot(|host| *host = snapshot);
    let refused = refusal(world.service.start(&id, &recipient("me")));
    assert_eq!(refused.code, code, "{refused}");
    assert!(refused.message.starts_with(message), "{refused}");
    assert_eq!(world.kinds(&id), [EvidenceKind::PolicyRefused]);
    assert_eq!(world.last_detail(&id), refused.to_string());
    let row = world.row(&id);
    assert_eq!(row.state.execution, ExecutionState::Intended);
    assert_eq!(row.attachment.generation, Generation::NONE);
    assert!(!world.root.join("attempts").exists(), "nothing outside the store");
    world.service.change_snapshot(|host| *host = Snapshot::embedded());
    // It goes as far as the runner, which is missing here.
    assert_eq!(refusal(world.service.start(&id, &recipient("me"))).code, Code::Unavailable);
}

#[test]
fn a_policy_that_is_gone_or_allows_less_refuses_the_start_and_keeps_the_intent() {
    use placement_contract::PolicyRef;
    use placement_contract::definition::LaunchPolicy;
    let gone = |definitions: &mut placement_policy::Definitions| {
        let rules = definitions.policies.remove(&definitions.default_policy).unwrap();
        definitions.default_policy = PolicyRef::parse("another").unwrap();
        definitions.policies.insert(definitions.default_policy.clone(), rules);
    };
    changed(gone, Code::Denied, "the launch policy is not one of this host");
    let narrowed = |rules: &'static str| {
        move |definitions: &mut placement_policy::Definitions| {
            let rules = LaunchPolicy::decode(rules.as_bytes()).unwrap();
            definitions.policies.insert(definitions.default_policy.clone(), rules);
        }
    };
    let unlisted = narrowed(r#"{ "executables": ["claude"] }"#);
    changed(unlisted, Code::Denied, "the launch policy does not list the program");
    let moved = narrowed(r#"{ "placement_binding": "docker" }"#);
    changed(moved, Code::Denied, "the launch policy selects another placement");
    let configured = narrowed(r#"{ "provider_ref": "provider" }"#);
    changed(configured, Code::Denied, "configuration_digest: is needed");
}

#[test]
fn a_definition_that_changed_refuses_the_start_and_keeps_the_intent() {
    let binding = |definitions: &mut placement_policy::Definitions| {
        definitions.binding.definition["meta"]["changed"] = true.into();
    };
    changed(binding, Code::Conflict, "the binding is not the one that was measured");
    let profile = |definitions: &mut placement_policy::Definitions| {
        definitions.profile.definition["changed"] = true.into();
    };
    changed(profile, Code::Conflict, "the profile is not the one that was measured");
}
