//! Receipts in the place of old attempts, and what they answer.

use placement::{CleanupScope, CleanupState, ExecutionState, Launch, Leftovers, Timeouts};
use placement_testkit::wait_until;
use placement_world::{Known, PATIENCE, Program, Said, World};
use serde_json::Value;
use std::fs;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

fn keyed<'a>(key: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--key", key], rest].concat()
}

fn prune(program: &Program) -> Said {
    let said = program.run(["prune", "--older-than", "0s"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    said
}

fn directories(program: &Program) -> usize {
    fs::read_dir(program.root().join("attempts")).map_or(0, Iterator::count)
}

#[test]
fn a_retry_of_a_pruned_key_runs_nothing_and_exits_as_the_attempt_did() {
    let program = program();
    let launch = keyed("k", &["--", "/bin/sh", "-c", "echo ran >> ran; echo out; exit 3"]);
    let first = program.run(launch.clone());
    assert_eq!((first.code, first.stdout.as_str()), (3, "out\n"), "{first:?}");
    let id = program.attempts()[0]["attempt_id"].as_str().unwrap().to_owned();
    assert_eq!(prune(&program).stdout, "1 attempt pruned\n");
    assert_eq!(directories(&program), 0);
    assert!(program.attempts().is_empty());
    let again = program.run(launch.clone());
    assert_eq!((again.code, again.stdout.as_str()), (3, ""), "{again:?}");
    assert!(again.stderr.starts_with(&format!(
        "placement: replayed: the recorded attempt {id} was pruned; nothing runs"
    )));
    assert_eq!(again.stderr.lines().count(), 1, "{again:?}");
    let told = program.run([&["--json"], &launch[..]].concat());
    let told: Value = serde_json::from_str(told.stdout.trim()).unwrap();
    assert_eq!((&told["replayed"], &told["attempt"]["pruned"]), (&true.into(), &true.into()));
    assert_eq!(told["attempt"]["exit"]["code"], 3);
    assert_eq!(fs::read_to_string(program.work().join("ran")).unwrap(), "ran\n");
    assert_eq!(directories(&program), 0, "nothing was made");
    let started = program.run(["start", "--key", "k", "--", "true"]);
    assert_eq!(started.code, 125, "another launch under the key: {started:?}");
}

#[test]
fn every_exit_code_outlives_the_evidence() {
    let program = program();
    fs::write(program.work().join("plain"), "no program\n").unwrap();
    let sh = |script| ["--", "/bin/sh", "-c", script];
    let launches = [
        ("zero", keyed("zero", &["--", "true"]), 0),
        ("seven", keyed("seven", &sh("exit 7")), 7),
        ("killed", keyed("killed", &sh("kill -9 $$")), 128 + 9),
        ("late", keyed("late", &["--timeout", "50ms", "--", "sleep", "300"]), 124),
        ("missing", keyed("missing", &["--", "no-such-program"]), 127),
        ("refused", keyed("refused", &["--", "./plain"]), 126),
    ];
    for (name, launch, code) in &launches {
        assert_eq!(program.run(launch.clone()).code, *code, "{name}");
    }
    assert_eq!(prune(&program).stdout, format!("{} attempts pruned\n", launches.len()));
    for (name, launch, code) in launches {
        let said = program.run(launch);
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{name}: {said:?}");
    }
}

#[test]
fn what_is_left_of_an_attempt_can_be_shown_and_the_rest_says_that_it_is_gone() {
    let program = program();
    assert_eq!(program.run(keyed("k", &["--", "true"])).code, 0);
    let id = program.attempts()[0]["attempt_id"].as_str().unwrap().to_owned();
    prune(&program);
    let shown = program.run(["show", &id]);
    assert!(shown.code == 0 && shown.stdout.contains("only this receipt is left"), "{shown:?}");
    assert_eq!(program.run(["wait", &id]).code, 0);
    for command in ["stop", "cleanup", "reconcile"] {
        let said = program.run([command, &id]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{command}");
    }
    for command in ["evidence", "verify", "logs", "attach", "close-stdin"] {
        let refused = program.refused(125, &[command, &id]);
        assert_eq!(refused.code, "NOT_FOUND", "{command}");
        assert!(refused.message.contains("was pruned"), "{command}: {refused:?}");
    }
}

#[test]
fn only_old_and_settled_attempts_go_and_a_kept_home_goes_with_its_attempt() {
    let program = program();
    assert_eq!(program.run(["run", "--keep-home", "--", "/bin/sh", "-c", ": > ~/kept"]).code, 0);
    let live = program.run(["start", "--", "/bin/sh", "-c", "exec sleep 300"]);
    let live = live.stdout.trim();
    assert_eq!(program.homes_left().len(), 2);
    let young = program.run(["prune", "--older-than", "1h"]);
    assert_eq!((young.code, young.stdout.as_str()), (0, "0 attempts pruned\n"), "{young:?}");
    assert_eq!(prune(&program).stdout, "1 attempt pruned\n");
    assert_eq!(program.homes_left().len(), 1, "the live one has its own");
    assert_eq!(program.run(["stop", "--force", live]).code, 0);
    assert_eq!(prune(&program).stdout, "0 attempts pruned\n", "it is not cleaned up");
    assert_eq!(program.run(["cleanup", live]).code, 0);
    let said = program.run(["--json", "prune", "--older-than", "0s"]);
    let told: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!((&told["attempt_id"], &told["pruned"]), (&live.into(), &true.into()));
    assert_eq!(directories(&program), 0);
}

#[test]
fn an_attempt_whose_runner_stays_for_what_is_left_is_kept() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "sleep 300 < /dev/null > /dev/null 2>&1 & echo $! > member; exit 0";
    let timeouts = Timeouts { drain_ms: 100, stop_grace_ms: 0, ..Timeouts::default() };
    let launch = Launch::program("/bin/sh")
        .args(["-c", script])
        .require(CleanupScope::ProcessGroup)
        .leftovers(Leftovers::Keep)
        .timeouts(timeouts);
    let attempt = world.launch(launch);
    let id = attempt.id().clone();
    let member = Known::named_in(world.work().join("member"));
    wait_until(PATIENCE, "the recorded exit", || {
        world.host().attempt(&id).unwrap().execution_state == ExecutionState::Exited
    });
    // As if the group had been proven gone from elsewhere while its runner stays.
    let stage = world.stage();
    let row = [(placement::EvidenceKind::CleanupComplete, "staged")];
    stage.record(&id, &row, &placement_world::store::Fields::default());
    let pruning = world.host().prune(std::time::Duration::ZERO).unwrap();
    assert_eq!((pruning.pruned.len(), pruning.kept.len()), (0, 1), "{pruning:?}");
    assert_eq!(pruning.kept[0].why, "its runner lives");
    assert_eq!(world.host().attempt(&id).unwrap().cleanup_state, CleanupState::Complete);
    member.kill();
    assert!(world.host().wait(&id, None).unwrap().is_some());
    assert_eq!(world.host().prune(std::time::Duration::ZERO).unwrap().pruned, [id]);
    attempt.detach();
}

#[test]
fn a_pruning_says_how_old_is_old() {
    let program = program();
    for arguments in
        [&["prune"][..], &["prune", "--older-than", "5"], &["prune", "--older-than", "1w"]]
    {
        assert_eq!(program.run(arguments.iter().copied()).code, 2, "{arguments:?}");
    }
    let said = program.run(["prune", "--older-than", "30d"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "0 attempts pruned\n"), "{said:?}");
}
