//! A host in another PID or cgroup namespace on the same root: it settles, removes and signals
//! nothing that it cannot see.

use crate::{let_go, shown, world};
use placement::Mechanism;
use placement_testkit::is_root;
use placement_world::{Known, Program, Running, Said, World, through};
use serde_json::Value;
use std::process::Stdio;

/// One process in the group and one in a session of its own.
const TREE: &str = "setsid sh -c 'echo $$ > far; exec sleep 300' >/dev/null 2>&1 & \
                    echo $$ > near; exec sleep 300";
/// What somebody in the other place tries, one after the other.
const TRIED: [&[&str]; 7] = [
    &["sweep"],
    &["reconcile", "--all"],
    &["cleanup", "--all"],
    &["prune", "--older-than", "0s"],
    &["reconcile", "ID"],
    &["stop", "ID"],
    &["cleanup", "ID"],
];
/// What finds survivors by their marker, wherever their tree was made, if they are seen at all.
const FORCED: &[&str] = &["stop", "--force", "ID"];

/// The other place, as the arguments of `unshare`.
#[derive(Debug, Clone, Copy)]
struct Elsewhere(&'static [&'static str]);

const PID_NAMESPACE: Elsewhere = Elsewhere(&["--pid", "--fork", "--mount-proc"]);
const CGROUP_NAMESPACE: Elsewhere = Elsewhere(&["--cgroup"]);

impl Elsewhere {
    /// Says why there is no such place here.
    fn missing(self, program: &Program) -> Option<String> {
        let said = self.run(program, &["--version"]);
        (said.code != 0).then(|| said.stderr.trim().to_owned())
    }

    fn run(self, program: &Program, arguments: &[&str]) -> Said {
        let mut wrapper = vec!["unshare"];
        if !is_root() {
            wrapper.extend(["--user", "--map-root-user"]);
        }
        wrapper.extend(self.0);
        wrapper.push("--");
        let command = program.command(arguments.iter().copied());
        Running::start(through(&wrapper, &command).stdin(Stdio::null())).said()
    }

    /// Tries everything there, and returns what was said.
    fn try_all(self, program: &Program, id: &str) -> Vec<Said> {
        let is_blind = self.0 == PID_NAMESPACE.0;
        let tried = TRIED.iter().chain(is_blind.then_some(&FORCED)).map(|words| {
            words.iter().map(|word| if *word == "ID" { id } else { word }).collect::<Vec<_>>()
        });
        tried.map(|words| self.run(program, &words)).collect()
    }
}

/// An attempt whose host has ended, in a tree of two processes.
struct Left {
    id: String,
    runner: Known,
    tree: [Known; 2],
}

#[track_caller]
fn left(world: &World, mechanism: Mechanism) -> Left {
    let mechanism = mechanism.label();
    let words = ["start", "--mechanism", mechanism, "--", "/bin/sh", "-c", TREE];
    let said = world.program().run(words);
    assert_eq!(said.code, 0, "{said:?}");
    let id = said.stdout.trim().to_owned();
    let runner = shown(&world.program(), &id)["runner"].as_str().unwrap().to_owned();
    let runner = Known::of(runner.split('-').nth(1).unwrap().parse().unwrap());
    let tree = ["near", "far"].map(|name| Known::named_in(world.work().join(name)));
    Left { id, runner, tree }
}

#[track_caller]
fn count(attempt: &Value) -> u64 {
    let count = &attempt["evidence_count"];
    count.as_str().map_or_else(|| count.as_u64(), |text| text.parse().ok()).unwrap()
}

#[test]
fn what_lives_is_left_alone_from_another_pid_namespace() {
    let world = world();
    let program = world.program();
    if let Some(why) = PID_NAMESPACE.missing(&program) {
        return println!("not tested here: {why}");
    }
    for mechanism in world.mechanisms() {
        let left = left(&world, mechanism);
        let before = shown(&program, &left.id);
        for words in &TRIED[..4] {
            let said = PID_NAMESPACE.run(&program, words);
            assert_eq!(said.code, 0, "{words:?}: {said:?}");
        }
        let cleaned = PID_NAMESPACE.run(&program, &["cleanup", &left.id]);
        assert_eq!(cleaned.code, 125, "{cleaned:?}");
        let after = shown(&program, &left.id);
        assert_eq!(after["execution_state"], "running", "{after}");
        assert_eq!(count(&after), count(&before), "{mechanism}: nothing was recorded");
        assert!(left.runner.is_running() && left.tree.iter().all(Known::is_running));
        assert_eq!(world.homes_left().len(), 1);
        // Its runner is asked, and it does the signalling.
        assert_eq!(PID_NAMESPACE.run(&program, &["stop", &left.id]).code, 0);
        left.tree.iter().for_each(Known::wait_gone);
        left.runner.wait_gone();
        assert_eq!(program.run(["cleanup", &left.id]).code, 0);
        world.assert_nothing_left(&placement::AttemptId::parse(&left.id).unwrap());
        for name in ["near", "far"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}

#[test]
fn a_tree_without_a_runner_is_left_alone_from_another_namespace() {
    for (place, mechanism) in [
        (PID_NAMESPACE, Mechanism::Cgroup),
        (PID_NAMESPACE, Mechanism::Subreaper),
        (CGROUP_NAMESPACE, Mechanism::Cgroup),
    ] {
        let world = world();
        if let Some(why) = place.missing(&world.program()) {
            println!("{place:?} is not tested here: {why}");
        } else if world.mechanisms().contains(&mechanism) {
            assert_left_alone(&world, place, mechanism);
        }
    }
}

/// Kills the runner of an attempt and asserts that its tree is not touched from another place, and
/// is ended where it was made.
#[track_caller]
fn assert_left_alone(world: &World, place: Elsewhere, mechanism: Mechanism) {
    let program = world.program();
    let Left { id, runner, tree: [near, far] } = left(world, mechanism);
    runner.kill();
    // It goes with its runner, whoever looks.
    near.wait_gone();
    let said = place.try_all(&program, &id);
    assert!(far.is_running(), "{place:?}, {mechanism}: it was killed: {said:#?}");
    let attempt = shown(&program, &id);
    assert_eq!(attempt["execution_state"], "uncertain", "{place:?}, {mechanism}: {said:#?}");
    assert_ne!(attempt["cleanup_state"], "complete", "{attempt}");
    assert_eq!(world.homes_left().len(), 1, "{said:#?}");
    let told = program.run(["evidence", &id]).stdout;
    assert!(!told.contains("no survivor seen"), "{told}");

    // Where it was made it is ended by its leaf, or as a survivor that is found.
    let ended = program.run(["stop", "--force", &id]);
    assert_eq!(ended.code, 0, "{ended:?}");
    far.wait_gone();
    let expected = if mechanism == Mechanism::Cgroup { "exited" } else { "uncertain" };
    let attempt = shown(&program, &id);
    assert_eq!(attempt["execution_state"], expected, "{attempt}");
    if mechanism == Mechanism::Cgroup {
        assert_eq!(program.run(["cleanup", &id]).code, 0);
        assert!(world.homes_left().is_empty());
    }
    assert_eq!(program.run(["verify", &id]).code, 0);
}

#[test]
fn the_tree_of_an_exited_attempt_is_left_alone_from_another_namespace() {
    let world = world();
    let program = world.program();
    if !world.mechanisms().contains(&Mechanism::Cgroup) {
        return;
    }
    let script = "setsid sh -c 'echo $$ > far; exec sleep 300' >/dev/null 2>&1 & \
                  while [ ! -e go ]; do sleep 0.01; done; exit 7";
    let words =
        ["start", "--mechanism", "cgroup", "--leftovers", "keep", "--", "/bin/sh", "-c", script];
    let id = program.run(words).stdout.trim().to_owned();
    let far = Known::named_in(world.work().join("far"));
    let runner = shown(&program, &id)["runner"].as_str().unwrap().to_owned();
    let runner = Known::of(runner.split('-').nth(1).unwrap().parse().unwrap());
    let_go(&world);
    placement_testkit::wait_until(placement_world::PATIENCE, "the exit", || {
        shown(&program, &id)["execution_state"] == "exited"
    });
    runner.kill();
    for place in [PID_NAMESPACE, CGROUP_NAMESPACE] {
        if let Some(why) = place.missing(&program) {
            println!("{place:?} is not tested here: {why}");
            continue;
        }
        let said = place.try_all(&program, &id);
        assert!(far.is_running(), "{place:?}: it was killed: {said:#?}");
        let attempt = shown(&program, &id);
        assert_ne!(attempt["cleanup_state"], "complete", "{attempt}");
        assert_eq!(world.homes_left().len(), 1, "{said:#?}");
    }
    assert_eq!(program.run(["cleanup", &id]).code, 0);
    far.wait_gone();
    assert!(world.homes_left().is_empty());
    assert_eq!(shown(&program, &id)["exit"]["code"], 7);
}
