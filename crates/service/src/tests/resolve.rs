use crate::testing::*;
use placement_contract::{
    AttemptId, CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, ExitSource,
    LaunchRequest, Mechanism, OwnerId,
};
use placement_identity::{ProcessIdentity, Signal};
use placement_store::{Draft, Fields};

fn tree(id: &str) -> LaunchRequest {
    let mut tree = LaunchRequest {
        required_cleanup: CleanupScope::ContainedTree,
        ..request(id, &format!("key-{id}"))
    };
    tree.supervision.mechanism = Some(Mechanism::Subreaper);
    tree
}

/// An attempt whose runner died with the only proof of its tree.
fn uncertain(world: &World, id: &str) -> AttemptId {
    let id = world.prepare(&tree(id));
    let mut runner = FakeRunner::claim(world, &id);
    runner.run(world, &gone_process());
    runner.die();
    let seen = world.service.reconcile(&id).unwrap();
    assert_eq!(seen.execution_state, ExecutionState::Uncertain);
    id
}

fn operator(world: &World) -> OwnerId {
    world.service.root_owner()
}

#[test]
fn an_operator_settles_the_state_and_not_the_tree() {
    let world = World::new();
    let id = uncertain(&world, "a");
    let settled =
        world.service.resolve(&id, &operator(&world), "the machine was thrown away").unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!((settled.exit, settled.exit_source), (None, Some(ExitSource::Operator)));
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::OperatorResolved);
    let detail = format!("by {}: the machine was thrown away", operator(&world));
    assert_eq!(world.last_detail(&id), detail);
    assert!(world.service.verify(&id, None).unwrap().sound);
    let refused = refusal(world.service.cleanup(&id));
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::Conflict, "the tree is not proven gone")
    );
    assert_eq!(world.row(&id).state.cleanup, CleanupState::Pending);
}

#[test]
fn a_weaker_scope_that_is_seen_gone_is_cleaned_after_the_operators_word() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let elsewhere = ProcessIdentity { start_ticks: 0, ..gone_process() };
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &elsewhere);
    world.record(&id, &[Draft::new(EvidenceKind::RunnerExited, "lost")], &Fields::default());
    runner.die();
    // A reconcile proves the leader absent, which is better than a word.
    let refused = refusal(world.service.resolve(&id, &operator(&world), "gone"));
    assert_eq!(refused.message, "the attempt is exited and not uncertain");
    assert_eq!(world.row(&id).exit_source, Some(ExitSource::Reconcile));
}

#[test]
fn only_an_uncertain_attempt_is_settled_and_only_once() {
    let world = World::new();
    let intended = world.prepare(&request("i", "i"));
    let live = world.prepare(&request("l", "l"));
    let runner = FakeRunner::claim(&world, &live);
    runner.run(&world, &this_process());
    let settled = uncertain(&world, "a");
    world.service.resolve(&settled, &operator(&world), "gone").unwrap();
    for (id, state) in [(&intended, "intended"), (&live, "running"), (&settled, "exited")] {
        let before = world.row(id).evidence_count;
        let refused = refusal(world.service.resolve(id, &operator(&world), "gone"));
        assert_eq!(refused.code, Code::Conflict, "{state}");
        assert_eq!(refused.message, format!("the attempt is {state} and not uncertain"));
        assert_eq!(world.row(id).evidence_count, before, "{state}");
    }
}

#[test]
fn what_is_seen_alive_is_not_settled() {
    let world = World::new();
    let id = world.prepare(&tree("a"));
    let (mut child, identity) = process("exec sleep 600");
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &identity);
    let lost = [Draft::new(EvidenceKind::StopUnproven, "nothing answers")];
    world.record(&id, &lost, &Fields::default());
    let refused = refusal(world.service.resolve(&id, &operator(&world), "gone"));
    assert_eq!(refused.message, "the runner of the attempt lives");
    runner.die();
    let refused = refusal(world.service.resolve(&id, &operator(&world), "gone"));
    assert_eq!(refused.message, "the program of the attempt runs");
    assert!(refused.hint().contains("--force"));
    let placement_identity::Presence::Present(alive) = identity.observe() else {
        panic!("nothing is ended by a word")
    };
    alive.signal(Signal::Kill).unwrap();
    child.wait().unwrap();
    let settled = world.service.resolve(&id, &operator(&world), "killed by hand").unwrap();
    assert_eq!(settled.exit_source, Some(ExitSource::Operator));
}

#[test]
fn only_whom_the_host_names_is_the_operator() {
    let world = World::new();
    let id = uncertain(&world, "a");
    let ops = OwnerId::parse("team:ops").unwrap();
    let refused = refusal(world.service.resolve(&id, &ops, "gone"));
    assert_eq!(refused.code, Code::Denied, "nobody but the root's owner by default");
    world.service.change_snapshot(|snapshot| {
        *snapshot = snapshot.clone().with_operators([ops.clone()]);
    });
    let refused = refusal(world.service.resolve(&id, &operator(&world), "gone"));
    assert_eq!(refused.code, Code::Denied, "a name takes the place of the root's owner");
    assert!(!world.kinds(&id).contains(&EvidenceKind::OperatorResolved));
    assert!(world.service.resolve(&id, &ops, "gone").is_ok());
}

#[test]
fn a_reason_is_one_line_of_1_to_1024_bytes() {
    let world = World::new();
    let id = uncertain(&world, "a");
    for (reason, rule) in [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        (&"x".repeat(1_025), "must be at most 1024 bytes"),
        ("a\nb", "must not contain control characters"),
    ] {
        let refused = refusal(world.service.resolve(&id, &operator(&world), reason));
        assert_eq!(refused.code, Code::Invalid);
        assert_eq!(refused.message, format!("the reason {rule}"));
    }
    let longest = "x".repeat(1_024);
    world.service.resolve(&id, &operator(&world), &longest).unwrap();
    assert!(world.last_detail(&id).ends_with(&longest), "nothing of it is cut");
}

#[test]
fn an_unknown_and_a_foreign_attempt_are_not_found_alike() {
    let world = World::new();
    let id = uncertain(&world, "a");
    let other = world.another("local:other");
    for id in [id, attempt("never")] {
        let refused = refusal(other.resolve(&id, &operator(&world), "gone"));
        assert_eq!(refused.code, Code::NotFound);
    }
}
