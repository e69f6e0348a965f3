//! An operator's word on what nobody can prove.

use placement::{AttemptId, CleanupState, EvidenceKind, ExecutionState, ExitSource};
use placement_testkit::is_root;
use placement_world::{Known, Said, World};

/// A child in whose tree one process has a session of its own; both say who they are.
const TREE: &str = "setsid sh -c 'echo $$ > far; exec sleep 300' & echo $$ > near; exec sleep 300";

/// An attempt whose runner was killed with the only proof of its tree, and what is left of it.
fn uncertain() -> (World, AttemptId, Known) {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let options = ["start", "--mechanism", "subreaper", "--", "/bin/sh", "-c", TREE];
    let said = world.program().run(options);
    let id = AttemptId::parse(said.stdout.trim()).expect("it prints the attempt");
    let [near, far] = ["near", "far"].map(|name| Known::named_in(world.work().join(name)));
    Known::of(world.runner_pid(&id)).kill();
    near.wait_gone();
    let settled = world.host().reconcile(&id).expect("it can be looked at");
    assert_eq!(settled.execution_state, ExecutionState::Uncertain, "{}", world.told(&id));
    (world, id, far)
}

fn resolve(world: &World, id: &AttemptId, options: &[&str]) -> Said {
    let arguments = [&["--json", "resolve", id.as_str(), "--as", "exited"], options].concat();
    world.program().run(arguments)
}

#[track_caller]
fn refused(said: &Said, code: &str, words: &str) {
    assert_eq!((said.code, said.stdout.as_str()), (125, ""), "{said:?}");
    let error: serde_json::Value = serde_json::from_str(&said.stderr).expect("the error is JSON");
    assert_eq!(error["error"]["code"], code, "{said:?}");
    assert!(said.stderr.contains(words), "{words}: {said:?}");
}

#[test]
fn an_operators_word_settles_the_state_and_the_home_is_kept_without_a_proof() {
    let (world, id, far) = uncertain();
    let said = resolve(&world, &id, &["--operator", "--reason", "the agent was thrown away"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let told: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!(
        (&told["execution_state"], &told["exit_source"]),
        (&"exited".into(), &"operator".into())
    );
    let rows = world.host().evidence(&id, 0, None).unwrap();
    let row = rows.last().unwrap();
    let by = world.host().root_owner();
    assert_eq!(row.kind, EvidenceKind::OperatorResolved);
    assert_eq!(row.detail, format!("by {by}: the agent was thrown away"));
    world.assert_verified(&id);
    let cleaned = world.program().run(["cleanup", id.as_str()]);
    assert_eq!(cleaned.code, 125, "{cleaned:?}");
    let attempt = world.host().attempt(&id).unwrap();
    assert_eq!(attempt.cleanup_state, CleanupState::Pending);
    assert_eq!(attempt.exit_source, Some(ExitSource::Operator));
    assert_eq!(world.homes_left().len(), 1, "{}", world.told(&id));
    assert!(far.is_running(), "a word ends nobody");
    assert_eq!(world.program().run(["wait", id.as_str()]).code, 120, "the exit is not known");
    // What is left is found by its marker all the same.
    assert_eq!(world.program().run(["stop", "--force", id.as_str()]).code, 0);
    far.wait_gone();
}

#[test]
fn a_word_is_an_operators_and_comes_once() {
    let (world, id, far) = uncertain();
    let kinds = world.kinds(&id);
    refused(&resolve(&world, &id, &["--reason", "gone"]), "DENIED", "say --operator");
    let long = "x".repeat(1_025);
    for (reason, words) in [("", "must not be empty"), (&long, "at most 1024 bytes")] {
        refused(&resolve(&world, &id, &["--operator", "--reason", reason]), "INVALID", words);
    }
    assert_eq!(world.kinds(&id), kinds, "{}", world.told(&id));
    assert_eq!(resolve(&world, &id, &["--operator", "--reason", "gone"]).code, 0);
    let again = resolve(&world, &id, &["--operator", "--reason", "gone"]);
    refused(&again, "CONFLICT", "the attempt is exited and not uncertain");
    far.kill();
}

#[test]
fn a_running_attempt_is_not_settled_by_a_word() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let attempt = world.launch_shell("exec sleep 300");
    let said = resolve(&world, attempt.id(), &["--operator", "--reason", "gone"]);
    refused(&said, "CONFLICT", "the attempt is running and not uncertain");
    attempt.stop_forced().unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn arguments_of_a_settlement_are_asked_for() {
    let program = World::new(env!("CARGO_BIN_EXE_placement")).program();
    for arguments in [
        &["resolve", "a", "--operator", "--reason", "r"][..],
        &["resolve", "a", "--operator", "--as", "exited"],
        &["resolve", "a", "--operator", "--as", "running", "--reason", "r"],
        &["resolve", "--operator", "--as", "exited", "--reason", "r"],
    ] {
        assert_eq!(program.run(arguments.iter().copied()).code, 2, "{arguments:?}");
    }
    let unknown = ["resolve", "never", "--operator", "--as", "exited", "--reason", "r"];
    assert_eq!(program.refused(125, &unknown).code, "NOT_FOUND");
}

#[test]
fn whom_the_host_names_takes_the_place_of_the_roots_owner() {
    let (world, id, far) = uncertain();
    let host = placement::Placement::builder()
        .root(world.root())
        .owner(placement_world::OWNER)
        .operator("team:ops")
        .runner_at(env!("CARGO_BIN_EXE_placement"))
        .open()
        .unwrap();
    let refused = host.resolve(&id, &host.root_owner(), "gone").unwrap_err();
    assert_eq!(refused.code(), placement::Code::Denied, "root or not: {}", is_root());
    let ops = placement::OwnerId::parse("team:ops").unwrap();
    assert_eq!(host.resolve(&id, &ops, "gone").unwrap().exit_source, Some(ExitSource::Operator));
    far.kill();
}
