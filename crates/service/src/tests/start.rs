use crate::testing::*;
use placement_contract::{Code, EvidenceKind, ExecutionState, Generation, LaunchRequest, Timeouts};
use placement_policy::Snapshot;
use placement_protocol::StopMode;
use placement_testkit::{TempRoot, wait_until};
use std::cell::RefCell;
use std::rc::Rc;

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
fn the_end_of_a_runner_that_did_not_get_the_claim_says_nothing_of_the_one_that_did() {
    let world = Rc::new(World::with_runner("/bin/true"));
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let id = world.prepare(&request("a", "k"));
    let won = Rc::new(RefCell::new(None));
    let claim = {
        let (world, won, id) = (Rc::clone(&world), Rc::clone(&won), id.clone());
        move |point: &str| {
            if point == "service.runner.spawned" {
                *won.borrow_mut() = Some(FakeRunner::claim(&world, &id));
            }
        }
    };
    let start = || world.service.start(&id, &recipient("me"));
    let started = placement_crash::watch(claim, start).unwrap();
    assert!(won.borrow().is_some() && started.streams.is_none());
    assert_eq!(started.attempt.execution_state, ExecutionState::Starting);
    let kinds = world.kinds(&id);
    assert_eq!(*kinds.last().unwrap(), EvidenceKind::RunnerStarted, "{kinds:?}");
}

/// A runner that takes everything, says nothing, and ends when its host lets go of it.
fn silent_runner(directory: &TempRoot) -> String {
    let program = directory.join("silent");
    // Another process writes it: one that is forked here would hold it open for writing.
    let script = format!("printf '#!/bin/sh\\nexec cat\\n' > {program}; chmod 700 {program}");
    process(&script).0.wait().unwrap();
    program.into_string()
}

#[test]
fn a_runner_that_says_nothing_is_waited_for_until_the_start_budget_is_over() {
    let directory = TempRoot::new();
    let world = World::with_runner(&silent_runner(&directory));
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let timeouts = Timeouts { start_ms: 200, ..request("a", "k").timeouts };
    let id = world.prepare(&LaunchRequest { timeouts, ..request("a", "k") });
    let (service, started) = (world.service.clone(), id.clone());
    // A thread that is not waited for: one that never returns fails the test.
    let start = std::thread::spawn(move || service.start(&started, &recipient("me")));
    wait_until(PATIENCE, "the return of the start", || start.is_finished());
    let started = start.join().unwrap().unwrap();
    assert_eq!(started.attempt.execution_state, ExecutionState::Intended);
    assert!(started.streams.is_some(), "it goes on, for this recipient");
    assert_eq!(world.kinds(&id), [EvidenceKind::Attach]);
    let stopped = world.service.stop(&id, StopMode::Forced, crate::IfUncertain::Leave).unwrap();
    assert_eq!(stopped.execution_state, ExecutionState::Exited);
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
    let id = granted(&world);
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

#[test]
fn a_start_that_died_before_its_claim_is_waited_for_shortly_and_bars_nobody() {
    let world = World::with_runner("/bin/true");
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let id = world.prepare(&request("a", "k"));
    // Bound by a host that ended before it started a runner.
    let attachment = placement_store::Attachment {
        generation: Generation::FIRST,
        recipient: Some(recipient("dead")),
    };
    let fields = placement_store::Fields { attachment: Some(attachment), ..Default::default() };
    let rows = [placement_store::Draft::new(EvidenceKind::Attach, "generation 1")];
    let bound = world.record(&id, &rows, &fields);
    let asked = std::time::Instant::now();
    let refused = refusal(world.service.await_other(&id));
    let waited = asked.elapsed();
    assert_eq!(refused.code, Code::Unavailable);
    assert_eq!(refused.message, "another start has not claimed the attempt yet");
    assert!(waited >= crate::limits::OTHER_START, "{waited:?}");
    assert_eq!(world.row(&id), bound, "nothing is concluded from the silence");
    // Whoever comes next has read of the dead one, and goes on behind it.
    let refused = refusal(world.service.start(&id, &recipient("next")));
    assert_eq!(refused.message, "the runner ended before it claimed the attempt");
    assert_eq!(world.row(&id).attachment.generation, Generation::new(2));
}

#[test]
fn a_start_that_claims_while_another_waits_is_returned_by_both() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let (service, waited_for) = (world.service.clone(), id.clone());
    let waiting = std::thread::spawn(move || service.await_other(&waited_for));
    let _runner = FakeRunner::claim(&world, &id);
    let started = waiting.join().unwrap().unwrap();
    assert_eq!(started.attempt.execution_state, ExecutionState::Starting);
    assert!(started.streams.is_none(), "they are the other one's");
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
