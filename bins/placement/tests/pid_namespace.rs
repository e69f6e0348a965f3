//! Attempts in a PID namespace: what their ends are, with and without their runner, and where there
//! is no namespace to be had.

use placement::{
    AttemptId, CleanupState, EvidenceKind, ExecutionState, Exit, ExitSource, Launch, Leftovers,
    Mechanism,
};
use placement_testkit::{demoted, is_root, wait_until};
use placement_world::identity::Presence;
use placement_world::store::{Role, Row, Store, StorePaths};
use placement_world::{Known, PATIENCE, Running, World, shell, through};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// A child in whose tree one process has a session of its own; both say who they are.
const TREE: &str = "setsid sh -c 'echo $$ > far; exec sleep 300' & echo $$ > near; exec sleep 300";

/// A world in which there are PID namespaces, or the reason why there are none is printed.
fn world() -> Option<World> {
    let world = World::new(PROGRAM);
    world.mechanisms().contains(&Mechanism::PidNamespace).then_some(world)
}

fn contained(script: &str) -> Launch {
    shell(script).mechanism(Mechanism::PidNamespace)
}

#[track_caller]
fn tree_in(world: &World) -> [Known; 2] {
    ["near", "far"].map(|name| Known::named_in(world.work().join(name)))
}

#[track_caller]
fn row(world: &World, id: &AttemptId) -> Row {
    let clock = Arc::new(placement::SystemClock);
    let store = Store::open(&StorePaths::below(&world.root()), Role::Service, clock);
    let store = store.expect("the store opens");
    store.find_any(id).expect("the store reads").expect("the attempt is recorded")
}

#[track_caller]
fn detail(world: &World, id: &AttemptId, kind: EvidenceKind) -> String {
    let rows = world.host().evidence(id, 0, None).expect("the evidence reads");
    let row = rows.into_iter().find(|row| row.kind == kind);
    row.unwrap_or_else(|| panic!("no {kind}:\n{}", world.told(id))).detail
}

#[test]
fn the_same_holds_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut command = match demoted("test") {
        Ok(command) => command,
        Err(reason) => return println!("not run a second time: {reason}"),
    };
    if !command.arg("-x").arg(&own).status().unwrap().success() {
        return println!("not run a second time: an ordinary user cannot reach this program");
    }
    let skip = ["--skip", "ordinary_user", "--nocapture"];
    let output = demoted(&own).unwrap().args(skip).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_is_told_by_the_numbers_that_are_seen_from_outside() {
    let Some(world) = world() else { return };
    let script = "echo $$ > near; readlink /proc/self/ns/pid; while [ ! -e go ]; do sleep 0.02; done; exit 7";
    let attempt = world.launch(contained(script));
    let id = attempt.id().clone();
    let near = Known::named_in(world.work().join("near"));
    let identified = detail(&world, &id, EvidenceKind::ChildIdentified);
    let recorded = row(&world, &id);
    let init = recorded.init.expect("the init is recorded with the leader");
    let expected = format!("pid {0}, group {0}, init {1}", near.pid(), init.pid.get());
    assert_eq!(identified, expected);
    assert!(matches!(init.observe(), Presence::Present(_)));
    assert_eq!(detail(&world, &id, EvidenceKind::ChildCreating), "in a PID namespace");
    let status = world.host().status(&id).unwrap();
    assert_eq!(status.liveness.alive, Some(true));
    std::fs::write(world.work().join("go"), "").unwrap();
    let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
    assert_ne!(world.text(&attempt).stdout.trim(), own.to_str().unwrap());
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }));
    assert_eq!(end.attempt().exit_source, Some(ExitSource::Runner));
    let proof = "pid_namespace: init of the PID namespace reaped";
    assert_eq!(end.attempt().tree_gone_by.as_deref(), Some(proof));
    assert!(matches!(init.observe(), Presence::Absent(_)));
    world.assert_clean(&end);
}

#[test]
fn a_leader_that_traps_the_request_to_end_gets_it_and_its_code_is_told() {
    let Some(world) = world() else { return };
    let script = "trap 'echo asked; exit 9' TERM; touch up; while :; do sleep 0.02; done";
    let attempt = world.launch(contained(script));
    world.wait_for_file("up");
    attempt.stop().unwrap();
    assert_eq!(world.text(&attempt).stdout, "asked\n");
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 9 }));
    assert_eq!(end.first(EvidenceKind::SignalKill), None);
    world.assert_clean(&end);
}

#[test]
fn a_leader_that_does_not_end_is_told_as_killed() {
    let Some(world) = world() else { return };
    let script = "trap '' TERM; setsid sleep 300 & touch up; while :; do sleep 0.02; done";
    let attempt = world.launch(contained(script).grace(Duration::from_millis(100)));
    world.wait_for_file("up");
    attempt.stop().unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Signal { signal: 9, core: false }));
    assert!(end.attempt().tree_gone_by.is_some(), "{end}");
    world.assert_clean(&end);
}

#[test]
fn nothing_outlives_a_killed_runner_and_its_host_settles_it_at_once() {
    let Some(world) = world() else { return };
    let attempt = world.launch(contained(TREE));
    let id = attempt.id().clone();
    let tree = tree_in(&world);
    let init = row(&world, &id).init.unwrap();
    Known::of(world.runner_pid(&id)).kill();
    // Nobody asks for anything from here on.
    tree.iter().for_each(Known::wait_gone);
    wait_until(PATIENCE, "the proof", || world.host().attempt(&id).unwrap().tree_gone_by.is_some());
    assert!(matches!(init.observe(), Presence::Absent(_)));
    let end = attempt.finish().unwrap();
    assert_eq!((end.exit(), end.attempt().exit_source), (None, Some(ExitSource::Reconcile)));
    let proof = "pid_namespace: the init of the PID namespace has ended";
    assert_eq!(end.attempt().tree_gone_by.as_deref(), Some(proof));
    world.assert_clean(&end);
}

#[test]
fn whoever_looks_later_has_the_proof_though_nobody_was_there() {
    let Some(world) = world() else { return };
    let program = world.program();
    let start = ["start", "--mechanism", "pid_namespace", "--", "/bin/sh", "-c", TREE];
    let said = program.run(start);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let id = AttemptId::parse(said.stdout.trim()).unwrap();
    let tree = tree_in(&world);
    Known::of(world.runner_pid(&id)).kill();
    tree.iter().for_each(Known::wait_gone);
    assert_eq!(program.run(["reconcile", id.as_str()]).code, 0);
    let settled = world.host().attempt(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited, "{}", world.told(&id));
    assert!(settled.tree_gone_by.is_some(), "{}", world.told(&id));
    assert_eq!(program.run(["cleanup", id.as_str()]).code, 0);
    world.assert_nothing_left(&id);
}

#[test]
fn an_init_that_was_killed_leaves_nothing_and_no_invented_exit() {
    let Some(world) = world() else { return };
    let attempt = world.launch(contained(TREE));
    let id = attempt.id().clone();
    let tree = tree_in(&world);
    Known::of(row(&world, &id).init.unwrap().pid.get()).kill();
    tree.iter().for_each(Known::wait_gone);
    let end = attempt.finish().unwrap();
    let told = world.told(&id);
    assert_eq!(end.attempt().execution_state, ExecutionState::Exited, "{told}");
    assert_eq!(end.exit(), None, "{told}");
    assert_eq!(detail(&world, &id, EvidenceKind::ChildExited), "not known");
    assert!(end.attempt().tree_gone_by.is_some(), "{told}");
    assert!(end.to_string().starts_with("exited, code unknown; tree gone"), "{end}");
    world.assert_clean(&end);
}

#[test]
fn a_kept_tree_ends_by_itself_and_is_proven_then() {
    let Some(world) = world() else { return };
    let script = "setsid sh -c 'while [ ! -e go ]; do sleep 0.02; done' & exit 5";
    let attempt = world.launch(contained(script).leftovers(Leftovers::Keep));
    let id = attempt.id().clone();
    wait_until(PATIENCE, "the exit", || {
        world.host().attempt(&id).unwrap().execution_state == ExecutionState::Exited
    });
    let runner = world.host().status(&id).unwrap().runner.expect("the runner stays");
    assert!(runner.descendants.is_some_and(|count| count >= 1), "{runner:?}");
    assert_eq!(world.host().attempt(&id).unwrap().tree_gone_by, None);
    std::fs::write(world.work().join("go"), "").unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 5 }));
    assert_eq!(end.first(EvidenceKind::SignalKill), None);
    world.assert_clean(&end);
}

#[test]
fn a_program_that_does_not_exist_leaves_no_namespace() {
    let Some(world) = world() else { return };
    let program = world.program();
    let said = program.run(["run", "--mechanism", "pid_namespace", "--", "/nonexistent/program"]);
    assert_eq!(said.code, 127, "{said:?}");
    program.assert_nothing_is_left();
}

#[test]
fn a_script_without_its_interpreter_fails_behind_the_gate_and_leaves_nothing() {
    let Some(world) = world() else { return };
    let script = world.work().join("script");
    std::fs::write(&script, "\x7fELF").unwrap();
    let mut permissions = std::fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&script, permissions).unwrap();
    let program = world.program();
    let said = program.run(["run", "--mechanism", "pid_namespace", "--", script.as_str()]);
    assert_eq!(said.code, 126, "{said:?}");
    let [attempt] = &world.host().attempts().all().unwrap().attempts[..] else {
        panic!("{said:?}")
    };
    assert_eq!(
        attempt.cleanup_state,
        CleanupState::Complete,
        "{}",
        world.told(&attempt.attempt_id)
    );
    program.assert_nothing_is_left();
}

#[test]
fn it_is_never_chosen_unasked() {
    let world = World::new(PROGRAM);
    let attempt = world.launch(shell("exit 0"));
    assert_ne!(attempt.attempt().unwrap().mechanism, Some(Mechanism::PidNamespace));
    world.assert_clean(&attempt.finish().unwrap());
}

/// Nobody in it gets a namespace: no privilege, and none of user namespaces left.
const SANDBOX: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --inh-caps=-all --bounding-set=-all -- \"$@\"";

#[test]
fn in_a_sandbox_without_namespaces_the_launch_is_refused_with_the_error_and_leaves_nothing() {
    let world = World::new(PROGRAM);
    let program = world.program();
    let wrapper = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", SANDBOX, "sandboxed"];
    let sandboxed = |arguments: &[&str]| {
        let command = program.command(arguments.iter().copied());
        Running::start(through(&wrapper, &command).stdin(Stdio::null())).said()
    };
    let measured = sandboxed(&["--json", "capabilities"]);
    if measured.code != 0 {
        return println!("not looked at, no sandbox can be made here: {}", measured.stderr);
    }
    let measured: serde_json::Value = serde_json::from_str(&measured.stdout).unwrap();
    let seen = measured["mechanisms"].as_array().unwrap();
    let seen = seen.iter().find(|seen| seen["mechanism"] == "pid_namespace").unwrap();
    assert_eq!(seen["available"], false, "{seen}");
    assert_eq!(seen["failed_at"], "making a PID namespace", "{seen}");
    assert_eq!(seen["errno"], "ENOSPC", "{seen}");
    let said = sandboxed(&["run", "--mechanism", "pid_namespace", "--", "/bin/true"]);
    assert_eq!((said.code, said.stdout.as_str()), (125, ""), "{said:?}");
    assert!(said.stderr.starts_with("placement: UNSUPPORTED_CAPABILITY: "), "{said:?}");
    assert!(said.stderr.contains("making a PID namespace (ENOSPC)"), "{said:?}");
    program.assert_nothing_is_left();
    assert!(world.host().attempts().all().unwrap().attempts.is_empty());
}
