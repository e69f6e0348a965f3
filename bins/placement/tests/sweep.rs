//! Passes over what lives, from the command line.

use placement::{AttemptId, ExecutionState, Mechanism};
use placement_testkit::wait_until;
use placement_world::{Known, World};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn started(world: &World, options: &[&str]) -> AttemptId {
    let program = ["--", "/bin/sh", "-c", "exec sleep 300"];
    let said = world.program().run([&["start"], options, &program[..]].concat());
    let id = AttemptId::parse(said.stdout.trim()).expect("it prints the attempt");
    // The one who started it has ended; that is recorded when its runner sees it.
    wait_until(PATIENCE, "the loss of the host", || world.kinds(&id).contains(&"host.lost"));
    id
}

#[test]
fn a_pass_leaves_alone_what_its_runner_looks_after() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let id = started(&world, &[]);
    let before = world.kinds(&id);
    let said = world.program().run(["sweep"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1 looked at, 0 changed\n"), "{said:?}");
    assert_eq!(world.kinds(&id), before);
    world.program().run(["stop", "--force", id.as_str()]);
}

#[test]
fn a_watch_settles_what_loses_its_runner_and_goes_on() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let id = started(&world, &["--mechanism", "subreaper"]);
    let runner = Known::of(world.runner_pid(&id));
    let arguments = ["--json", "--owner", "local:other", "sweep", "--watch", "--every", "10ms"];
    let mut command = world.program().bare_command(["--root", world.root().as_str()]);
    let mut watch = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut passes = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut pass = || -> serde_json::Value {
        serde_json::from_str(&passes.next().unwrap().unwrap()).expect("a pass is one line of JSON")
    };
    assert_eq!(pass()["outcomes"][0]["changed"], false);
    runner.kill();
    wait_until(PATIENCE, "the loss to be seen", || {
        let seen = pass();
        let outcomes = seen["outcomes"].as_array().unwrap();
        outcomes.iter().any(|it| it["attempt_id"] == id.as_str() && it["changed"] == true)
    });
    assert_eq!(pass()["outcomes"].as_array().unwrap().len(), 0, "uncertain ones are not swept");
    watch.kill().unwrap();
    watch.wait().unwrap();
    let attempt = world.host().attempt(&id).unwrap();
    assert_eq!(attempt.execution_state, ExecutionState::Uncertain);
    world.program().run(["stop", "--force", id.as_str()]);
}

#[test]
fn a_sweep_settles_what_lost_its_runner_as_its_mechanism_allows() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let tree = "setsid sh -c 'echo $$ > far; exec sleep 300' & echo $$ > near; exec sleep 300";
    for mechanism in world.mechanisms() {
        let options = ["start", "--mechanism", mechanism.label(), "--", "/bin/sh", "-c", tree];
        let said = world.program().run(options);
        let id = AttemptId::parse(said.stdout.trim()).expect("it prints the attempt");
        let [near, far] = ["near", "far"].map(|name| Known::named_in(world.work().join(name)));
        Known::of(world.runner_pid(&id)).kill();
        near.wait_gone();
        let said = world.program().run(["sweep"]);
        assert!(said.stdout.ends_with("1 looked at, 1 changed\n"), "{said:?}");
        let settled = world.host().attempt(&id).unwrap();
        let is_lost = mechanism == Mechanism::Subreaper;
        let state = if is_lost { ExecutionState::Uncertain } else { ExecutionState::Exited };
        assert_eq!(settled.execution_state, state, "{mechanism}:\n{}", world.told(&id));
        assert_eq!(settled.tree_gone_by.is_some(), !is_lost, "{mechanism}");
        assert_eq!(far.is_running(), is_lost, "{mechanism}");
        far.kill();
        for name in ["near", "far"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}
