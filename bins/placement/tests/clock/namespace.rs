//! A time namespace, whose clocks since the boot differ from those outside.

use placement::{ExecutionState, OnHostLoss};
use placement_testkit::is_root;
use placement_world::{Known, Running, Said, World, shell, through};
use std::process::Stdio;

/// Runs the program in a time namespace where the boot was days earlier; nothing where there is none.
fn say(world: &World, arguments: &[&str]) -> Option<Said> {
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let clocks = ["--time", "--boottime", "1000000", "--monotonic", "500000", "--fork"];
    let unshare = [&["unshare"], user, &clocks[..]].concat();
    let command = world.program().command(arguments.iter().copied());
    let said = Running::start(through(&unshare, &command).stdin(Stdio::null())).said();
    if said.stderr.starts_with("unshare: ") {
        println!("no time namespace is looked at here: {}", said.stderr.trim());
        return None;
    }
    Some(said)
}

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

#[test]
fn an_attempt_in_a_time_namespace_is_as_any_other() {
    let world = world();
    let script = "setsid sleep 300 & echo out; exit 3";
    let run = ["run", "--timeout", "30s", "--", "/bin/sh", "-c", script];
    let Some(said) = say(&world, &run) else { return };
    assert_eq!((said.code, said.stdout.as_str()), (3, "out\n"), "{said:?}");
    let attempts = world.host().attempts().all().unwrap().attempts;
    world.assert_nothing_left(&attempts[0].attempt_id);
}

#[test]
fn what_lives_outside_a_time_namespace_is_neither_settled_nor_signalled_from_inside() {
    let world = world();
    let script = "touch up; until [ -e go ]; do sleep 0.01; done; exit 5";
    let attempt = world.launch(shell(script).on_host_loss(OnHostLoss::Keep));
    world.wait_for_file("up");
    let runner = Known::of(world.runner_pid(attempt.id()));
    let id = attempt.id().as_str();
    for look in [&["sweep"][..], &["reconcile", id], &["reconcile", "--all"]] {
        let Some(said) = say(&world, look) else { return };
        assert_eq!(said.code, 0, "{look:?}: {said:?}");
        assert!(runner.is_running());
        let state = world.host().attempt(attempt.id()).unwrap().execution_state;
        assert_eq!(state, ExecutionState::Running, "{}", world.told(attempt.id()));
    }
    std::fs::write(world.work().join("go"), "").unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_stop_from_inside_a_time_namespace_is_the_runners_to_carry_out() {
    let world = world();
    let script = "echo $$ > near; exec sleep 300";
    let attempt = world.launch(shell(script).on_host_loss(OnHostLoss::Keep));
    let near = Known::named_in(world.work().join("near"));
    // In there the child's stamp is another one, and so nothing is told by its number.
    let id = attempt.id().as_str();
    let Some(said) = say(&world, &["stop", "--force", id]) else { return };
    assert_eq!(said.code, 0, "its runner answers wherever it is asked from: {said:?}");
    near.wait_gone();
    world.assert_clean(&attempt.finish().unwrap());
}
