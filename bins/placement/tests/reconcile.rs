//! What is concluded when a runner or a host is gone, and what is never concluded.

use placement::{
    AttemptId, CleanupState, Code, EvidenceKind, ExecutionState, Exit, ExitSource, Mechanism,
    OnHostLoss, StopMode,
};
use placement_testkit::{Random, is_root, run_as_ordinary_user, wait_until};
use placement_world::contract::LaunchRequest;
use placement_world::identity::{ProcessIdentity, Signal, boot_id, machine_id};
use placement_world::service::IfUncertain;
use placement_world::store::Fields;
use placement_world::{Known, PATIENCE, Stage, World, contained, leader_in, shell};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// A child in whose tree one process has a session of its own; both say who they are.
const TREE: &str = "setsid sh -c 'echo $$ > far; exec sleep 300' & echo $$ > near; exec sleep 300";

fn world() -> World {
    World::new(PROGRAM)
}

/// The leader and the escapee of [`TREE`].
#[track_caller]
fn tree_in(world: &World) -> [Known; 2] {
    ["near", "far"].map(|name| Known::named_in(world.work().join(name)))
}

#[track_caller]
fn await_state(world: &World, id: &AttemptId, state: ExecutionState) {
    wait_until(PATIENCE, state.label(), || {
        world.host().attempt(id).expect("the attempt is recorded").execution_state == state
    });
}

#[track_caller]
fn started(world: &World, options: &[&str], script: &str) -> AttemptId {
    let mut arguments = vec!["start"];
    arguments.extend_from_slice(options);
    arguments.extend(["--", "/bin/sh", "-c", script]);
    let said = world.program().run(arguments);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    AttemptId::parse(said.stdout.trim()).expect("it prints the attempt")
}

#[track_caller]
fn last_detail(world: &World, id: &AttemptId, kind: EvidenceKind) -> String {
    let rows = world.host().evidence(id, 0, None).expect("the evidence is readable");
    let row = rows.into_iter().rfind(|row| row.kind == kind);
    row.unwrap_or_else(|| panic!("no {kind}:\n{}", world.told(id))).detail
}

/// A process that has nothing to do with any attempt and ends of any signal.
struct Decoy {
    child: Child,
    known: Known,
}

impl Decoy {
    #[expect(clippy::disallowed_methods, reason = "a test makes a process of its own")]
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("300").process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("sleep is there");
        let known = Known::of(child.id());
        Self { child, known }
    }

    fn identity(&self) -> &ProcessIdentity {
        self.known.identity()
    }

    /// A process that was here and is reaped, so that its absence can be proven.
    fn gone() -> ProcessIdentity {
        let mut decoy = Self::start();
        decoy.end();
        decoy.identity().clone()
    }

    fn end(&mut self) {
        // One that has ended takes no signal.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        self.end();
    }
}

/// A request for each way of cleaning up, whether it works here or not: nothing is started.
fn each_request(world: &World, stage: &Stage, name: &str) -> Vec<LaunchRequest> {
    let mechanisms = world.mechanisms().into_iter().map(Some).chain([None]);
    let request = |mechanism: Option<Mechanism>| {
        let label = mechanism.map_or("group", Mechanism::label);
        contained(stage.request(&format!("{name}-{label}"), "true"), mechanism)
    };
    mechanisms.map(request).collect()
}

/// Does everything to an attempt that might signal somebody.
fn do_everything(stage: &Stage, id: &AttemptId) {
    let service = stage.service();
    for mode in [StopMode::Cooperative, StopMode::Forced] {
        for if_uncertain in [IfUncertain::Leave, IfUncertain::EndSurvivors] {
            // What it answers is another test's question.
            service.stop(id, mode, if_uncertain).ok();
            service.reconcile(id).expect("what is seen can be recorded");
            service.cleanup(id).ok();
        }
    }
}

#[test]
fn a_number_that_belongs_to_another_process_by_now_is_never_signalled() {
    let world = world();
    let stage = world.stage();
    let decoy = Decoy::start();
    let stale = |change: &dyn Fn(&mut ProcessIdentity)| {
        let mut identity = decoy.identity().clone();
        change(&mut identity);
        identity
    };
    let mut children = vec![
        (
            "later",
            stale(&|child| (child.pidfd_inode, child.start_ticks) = (None, child.start_ticks + 1)),
        ),
        ("earlier", stale(&|child| (child.pidfd_inode, child.start_ticks) = (None, 1))),
    ];
    if let Some(inode) = decoy.identity().pidfd_inode {
        // Started in the same hundredth of a second, and still another process.
        children.push(("tied", stale(&|child| child.pidfd_inode = Some(inode + 1))));
    } else {
        println!("this kernel gives a pidfd no inode of its own: start stamps alone decide");
    }
    for (name, child) in children {
        for request in each_request(&world, &stage, name) {
            let id = stage.prepare(&request);
            stage.claim(&id, &Decoy::gone());
            stage.run(&id, Some(&child));
            do_everything(&stage, &id);
            assert!(decoy.known.is_running(), "{name}:\n{}", world.told(&id));
            let attempt = stage.recorded(&id);
            let told = world.told(&id);
            assert!(!attempt.execution_state.is_live(), "{told}");
            assert_eq!(attempt.exit, None, "nobody has seen one:\n{told}");
            // The subreaper took the proof of the tree along.
            let lost = attempt.mechanism == Some(Mechanism::Subreaper);
            let uncertain = attempt.execution_state == ExecutionState::Uncertain;
            assert_eq!(uncertain, lost, "{told}");
            world.assert_verified(&id);
        }
    }
}

#[test]
fn another_boot_alone_proves_the_old_process_absent() {
    let world = world();
    let stage = world.stage();
    let decoy = Decoy::start();
    let old_boot = "00000000-0000-4000-8000-000000000000";
    assert_ne!(boot_id().unwrap(), old_boot);
    let of_old_boot = |identity: &ProcessIdentity| ProcessIdentity {
        boot_id: old_boot.to_owned(),
        ..identity.clone()
    };
    for request in each_request(&world, &stage, "old") {
        let id = stage.prepare(&request);
        stage.claim(&id, &of_old_boot(&Decoy::gone()));
        stage.run(&id, Some(&of_old_boot(decoy.identity())));
        do_everything(&stage, &id);
        assert!(decoy.known.is_running(), "{}", world.told(&id));
        let attempt = stage.recorded(&id);
        if machine_id().is_some() {
            assert_eq!(attempt.execution_state, ExecutionState::Exited, "{}", world.told(&id));
            assert_eq!(attempt.exit_source, Some(ExitSource::Reconcile));
            assert_eq!(attempt.cleanup_state, CleanupState::Complete, "{}", world.told(&id));
        } else {
            println!("no machine id here: another boot may be another machine, nothing is proven");
            assert_eq!(attempt.execution_state, ExecutionState::Uncertain, "{}", world.told(&id));
            assert_eq!(attempt.cleanup_state, CleanupState::Pending);
        }
        world.assert_verified(&id);
    }
}

#[test]
fn a_starting_attempt_of_an_earlier_boot_is_absent_and_not_never_started() {
    if machine_id().is_none() {
        println!("no machine id here: another boot may be another machine, nothing is proven");
        return;
    }
    let world = world();
    let stage = world.stage();
    let id = stage.prepare(&stage.request("old", "true"));
    let runner = ProcessIdentity {
        boot_id: "00000000-0000-4000-8000-000000000000".to_owned(),
        ..Decoy::gone()
    };
    stage.claim(&id, &runner);
    let attempt = stage.service().reconcile(&id).unwrap();
    assert_eq!(attempt.execution_state, ExecutionState::Exited);
    assert_eq!(attempt.exit_source, Some(ExitSource::Reconcile));
    assert!(!world.kinds(&id).contains(&"child.not_started"), "{}", world.told(&id));
}

#[test]
fn another_machines_process_is_unknown_and_everything_is_kept() {
    let world = world();
    let stage = world.stage();
    let decoy = Decoy::start();
    let mut elsewhere = decoy.identity().clone();
    elsewhere.observer.pid_namespace += 1;
    let runner = ProcessIdentity { observer: elsewhere.observer.clone(), ..Decoy::gone() };
    for request in each_request(&world, &stage, "elsewhere") {
        let id = stage.prepare(&request);
        stage.claim(&id, &runner);
        stage.run(&id, Some(&elsewhere));
        do_everything(&stage, &id);
        assert!(decoy.known.is_running(), "{}", world.told(&id));
        let attempt = stage.recorded(&id);
        assert_eq!(attempt.cleanup_state, CleanupState::Pending, "{}", world.told(&id));
        // Without its lock nobody can say that the runner of another place is gone.
        assert_ne!(attempt.execution_state, ExecutionState::Exited, "{}", world.told(&id));
        world.assert_verified(&id);
    }
    assert_eq!(world.homes_left().len(), world.mechanisms().len() + 1);
}

#[test]
fn a_running_attempt_without_identity_and_runner_is_uncertain_and_kept() {
    let world = world();
    let stage = world.stage();
    for request in each_request(&world, &stage, "nobody") {
        let id = stage.prepare(&request);
        stage.claim(&id, &Decoy::gone());
        stage.run(&id, None);
        let service = stage.service();
        let attempt = service.reconcile(&id).unwrap();
        assert_eq!(attempt.execution_state, ExecutionState::Uncertain, "{}", world.told(&id));
        let kinds = world.kinds(&id);
        assert_eq!(kinds.last(), Some(&"reconcile.unidentified"), "{}", world.told(&id));
        // Neither a stop nor another look changes it, and neither repeats itself.
        for mode in [StopMode::Cooperative, StopMode::Forced] {
            let stopped = service.stop(&id, mode, IfUncertain::Leave).unwrap();
            assert_eq!(stopped.execution_state, ExecutionState::Uncertain);
            service.reconcile(&id).unwrap();
        }
        assert_eq!(world.kinds(&id), kinds, "{}", world.told(&id));
        assert_eq!(service.cleanup(&id).unwrap_err().code, Code::Conflict);
    }
    assert_eq!(world.homes_left().len(), world.mechanisms().len() + 1, "the homes are kept");
}

#[test]
fn a_runner_gone_before_an_identity_proves_that_no_child_came_to_be() {
    let world = world();
    let stage = world.stage();
    for created in [false, true] {
        for request in each_request(&world, &stage, if created { "created" } else { "claimed" }) {
            let id = stage.prepare(&request);
            stage.claim(&id, &Decoy::gone());
            if created {
                let creating = (EvidenceKind::ChildCreating, "staged");
                stage.record(&id, &[creating], &Fields::default());
            }
            let attempt = stage.service().reconcile(&id).unwrap();
            assert_eq!(attempt.execution_state, ExecutionState::Exited, "{}", world.told(&id));
            assert!(world.kinds(&id).contains(&"child.not_started"), "{}", world.told(&id));
            stage.service().cleanup(&id).unwrap();
            world.assert_nothing_left(&id);
        }
    }
}

#[test]
fn a_living_runner_is_believed_whatever_is_recorded_of_its_child() {
    let world = world();
    let stage = world.stage();
    let runner = Decoy::start();
    for (name, child) in [("none", None), ("gone", Some(Decoy::gone()))] {
        let id = stage.prepare(&stage.request(name, "true"));
        stage.claim(&id, runner.identity());
        stage.run(&id, child.as_ref());
        for _ in 0..2 {
            let attempt = stage.service().reconcile(&id).unwrap();
            assert_eq!(attempt.execution_state, ExecutionState::Running, "{}", world.told(&id));
        }
        // What contradicts itself is said, and said once.
        let kinds = world.kinds(&id);
        let supervised = kinds.iter().filter(|kind| **kind == "reconcile.supervised");
        assert_eq!(supervised.count(), usize::from(child.is_none()), "{}", world.told(&id));
        assert!(stage.recorded(&id).last_observed_at.is_some(), "the look is noted");
        assert_eq!(stage.service().cleanup(&id).unwrap_err().code, Code::Conflict);
        assert!(runner.known.is_running());
    }
}

#[test]
fn a_group_whose_runner_was_lost_is_settled_by_its_absent_leader() {
    let world = world();
    let script = "sleep 300 & echo $! > member; echo $$ > near; exec sleep 300";
    let attempt = world.launch(shell(script).require(placement::CleanupScope::ProcessGroup));
    let id = attempt.id().clone();
    let near = Known::named_in(world.work().join("near"));
    let member = Known::named_in(world.work().join("member"));
    Known::of(world.runner_pid(&id)).kill();
    // The kernel ends the leader with its runner; the living host looks at once.
    near.wait_gone();
    await_state(&world, &id, ExecutionState::Exited);
    let settled = world.host().attempt(&id).unwrap();
    assert_eq!((settled.exit, settled.exit_source), (None, Some(ExitSource::Reconcile)));
    assert!(world.kinds(&id).contains(&"reconcile.absent"), "{}", world.told(&id));
    let refused = world.host().cleanup(&id).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict, "a member of the group lives");
    assert_eq!(world.homes_left().len(), 1);
    member.kill();
    member.wait_reaped();
    let end = attempt.finish().unwrap();
    assert!(end.to_string().starts_with("exited, code unknown; "), "{end}");
    world.assert_clean(&end);
}

#[test]
fn a_living_host_ends_the_cgroup_of_a_lost_runner_at_once() {
    let world = world();
    if !world.mechanisms().contains(&Mechanism::Cgroup) {
        return;
    }
    let attempt = world.launch(shell(TREE).mechanism(Mechanism::Cgroup));
    let id = attempt.id().clone();
    let tree = tree_in(&world);
    Known::of(world.runner_pid(&id)).kill();
    // Nobody asks for anything from here on.
    tree.iter().for_each(Known::wait_gone);
    await_state(&world, &id, ExecutionState::Exited);
    wait_until(PATIENCE, "the proof", || world.host().attempt(&id).unwrap().tree_gone_by.is_some());
    let end = attempt.finish().unwrap();
    assert_eq!((end.exit(), end.attempt().exit_source), (None, Some(ExitSource::Reconcile)));
    world.assert_clean(&end);
}

#[test]
fn a_reconcile_ends_the_cgroup_that_neither_host_nor_runner_is_left_for() {
    let world = world();
    if !world.mechanisms().contains(&Mechanism::Cgroup) {
        return;
    }
    let id = started(&world, &["--mechanism", "cgroup"], TREE);
    let [near, far] = tree_in(&world);
    Known::of(world.runner_pid(&id)).kill();
    near.wait_gone();
    assert!(far.is_running(), "the kernel ends the leader alone");
    let said = world.program().run(["reconcile", id.as_str()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!far.is_running(), "{}", world.told(&id));
    let settled = world.host().attempt(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert!(settled.tree_gone_by.is_some(), "{}", world.told(&id));
    assert_eq!(world.program().run(["cleanup", id.as_str()]).code, 0);
    world.assert_nothing_left(&id);
}

#[test]
fn a_lost_subreaper_leaves_everything_uncertain_until_survivors_are_ended_by_force() {
    let world = world();
    let id = started(&world, &["--mechanism", "subreaper"], TREE);
    let [near, far] = tree_in(&world);
    Known::of(world.runner_pid(&id)).kill();
    near.wait_gone();
    let program = world.program();
    let run = |command: &str| program.run([command, id.as_str()]);
    assert_eq!(run("reconcile").code, 0);
    let settled = world.host().attempt(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Uncertain, "{}", world.told(&id));
    let seen = last_detail(&world, &id, EvidenceKind::ReconcileUnobserved);
    assert!(seen.contains("1 survivor seen"), "{seen}");
    let kinds = world.kinds(&id);
    // A second look, a cleanup and a stop that is not forced change nothing and say nothing twice.
    assert_eq!(run("reconcile").code, 0);
    assert_eq!(run("cleanup").code, 125);
    assert_eq!(run("stop").code, 0);
    assert_eq!(run("wait").code, 120);
    assert_eq!(world.kinds(&id), kinds, "{}", world.told(&id));
    assert!(far.is_running(), "{}", world.told(&id));
    assert_eq!(world.homes_left().len(), 1, "{}", world.told(&id));
    assert_eq!(world.temporary_left().len(), 1, "{}", world.told(&id));
    let said = program.run(["stop", "--force", id.as_str()]);
    assert_eq!(said.code, 0, "{said:?}");
    far.wait_gone();
    // What a marker finds proves nothing of what it does not find.
    assert_eq!(world.homes_left().len(), 1, "{}", world.told(&id));
    assert_eq!(run("cleanup").code, 125);
    world.assert_verified(&id);
}

#[test]
fn survivors_are_unknown_where_a_process_of_that_age_hides_its_environment() {
    if is_root() {
        // Nothing is hidden from root.
        let test = "survivors_are_unknown_where_a_process_of_that_age_hides_its_environment";
        if let Err(reason) = run_as_ordinary_user(test) {
            println!("not tested as root: {reason}");
        }
        return;
    }
    let world = world();
    // What may be executed and not be read hides its process from everybody but root.
    let closed = world.work().join("closed");
    std::fs::copy("/bin/sleep", &closed).unwrap();
    std::fs::set_permissions(&closed, Permissions::from_mode(0o111)).unwrap();
    let hides = "until [ -e seen ]; do sleep 0.01; done; exec ./closed 300";
    let tree = TREE.replacen("exec sleep 300", hides, 1);
    let id = started(&world, &["--mechanism", "subreaper"], &tree);
    let [near, far] = tree_in(&world);
    std::fs::write(world.work().join("seen"), "").unwrap();
    wait_until(PATIENCE, "the exec of what hides", || {
        std::fs::read(format!("/proc/{}/environ", far.pid())).is_err()
    });
    Known::of(world.runner_pid(&id)).kill();
    near.wait_gone();
    let program = world.program();
    let run = |command: &[&str]| program.run([command, &[id.as_str()]].concat());
    assert_eq!(run(&["reconcile"]).code, 0);
    let settled = world.host().attempt(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Uncertain, "{}", world.told(&id));
    let seen = last_detail(&world, &id, EvidenceKind::ReconcileUnobserved);
    let unknown = "survivors unknown: processes of that age do not show their environment";
    assert!(seen.ends_with(unknown), "{seen}");
    // Not even force ends what only may be one, and no home goes under it.
    run(&["stop", "--force"]);
    assert!(far.is_running(), "{}", world.told(&id));
    assert_eq!(run(&["cleanup"]).code, 125);
    assert_eq!(world.homes_left().len(), 1, "{}", world.told(&id));
    far.kill();
    world.assert_verified(&id);
}

#[test]
fn what_a_lost_runner_left_of_an_exited_attempt_is_ended_by_force_alone() {
    let world = world();
    let script = "setsid sh -c 'echo $$ > far; exec sleep 300' < /dev/null > /dev/null 2>&1 &
        while [ ! -s far ]; do sleep 0.01; done; exit 3";
    let mut scopes = vec![("--mechanism", "subreaper"), ("--require", "process_group")];
    if world.mechanisms().contains(&Mechanism::Cgroup) {
        scopes.push(("--mechanism", "cgroup"));
    }
    for (option, value) in scopes {
        let id = started(&world, &[option, value, "--leftovers", "keep"], script);
        let far = Known::named_in(world.work().join("far"));
        await_state(&world, &id, ExecutionState::Exited);
        if value == "process_group" {
            // The escapee is none of the group, and so its runner need not stay for it.
            wait_until(PATIENCE, "the end of the runner", || {
                world.kinds(&id).contains(&"runner.finished")
            });
        } else {
            Known::of(world.runner_pid(&id)).kill();
        }
        let program = world.program();
        assert_eq!(program.run(["reconcile", id.as_str()]).code, 0);
        // A leaf can be ended and proven empty by anybody.
        assert_eq!(far.is_running(), value != "cgroup", "{}", world.told(&id));
        assert_eq!(program.run(["stop", id.as_str()]).code, 0);
        assert_eq!(far.is_running(), value != "cgroup", "{}", world.told(&id));
        let said = program.run(["stop", "--force", id.as_str()]);
        assert_eq!(said.code, 0, "{said:?}");
        let settled = world.host().attempt(&id).unwrap();
        assert_eq!(settled.exit, Some(Exit::Code { code: 3 }), "{}", world.told(&id));
        if value == "process_group" {
            assert!(far.is_running(), "it was reported and let go: {}", world.told(&id));
            far.kill();
        }
        far.wait_gone();
        let cleaned = program.run(["cleanup", id.as_str()]).code;
        assert_eq!(cleaned, if value == "subreaper" { 125 } else { 0 }, "{}", world.told(&id));
        world.assert_verified(&id);
        std::fs::remove_file(world.work().join("far")).unwrap();
    }
}

#[test]
fn many_reconciles_at_once_are_one() {
    let world = world();
    for mechanism in world.mechanisms() {
        let id = started(&world, &["--mechanism", mechanism.label()], TREE);
        let [near, far] = tree_in(&world);
        let hosts: Vec<_> = (0..4).map(|_| world.another_host()).collect();
        Known::of(world.runner_pid(&id)).kill();
        near.wait_gone();
        std::thread::scope(|scope| {
            for host in &hosts {
                scope.spawn(|| host.reconcile(&id).unwrap());
            }
        });
        let kinds = world.kinds(&id);
        let expected: &[_] = match mechanism {
            Mechanism::Cgroup | Mechanism::PidNamespace => &["reconcile.absent", "tree.gone"],
            Mechanism::Subreaper => &["reconcile.unobserved"],
        };
        assert!(kinds.ends_with(expected), "{}", world.told(&id));
        for kind in expected {
            assert_eq!(kinds.iter().filter(|seen| *seen == kind).count(), 1, "{kind}");
        }
        far.kill();
        for name in ["near", "far"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}

#[test]
fn nothing_lives_after_the_host_of_a_run_was_killed() {
    for mechanism in world().mechanisms() {
        let world = world();
        let run = ["run", "--mechanism", mechanism.label(), "--", "/bin/sh", "-c", TREE];
        let mut host = world.program().start(run, Stdio::null());
        let tree = tree_in(&world);
        let [attempt] = &world.host().attempts().all().unwrap().attempts[..] else {
            panic!("not one attempt")
        };
        let id = attempt.attempt_id.clone();
        host.process().kill().unwrap();
        tree.iter().for_each(Known::wait_gone);
        wait_until(PATIENCE, "the end of the runner", || {
            world.kinds(&id).contains(&"runner.finished")
        });
        let kinds = world.kinds(&id);
        let place = |kind| kinds.iter().position(|seen| *seen == kind);
        let order = ["host.lost", "stop.requested", "signal.term", "child.exited", "tree.gone"];
        let places = order.map(place);
        assert!(places.is_sorted() && !places.contains(&None), "{}", world.told(&id));
        let settled = world.host().attempt(&id).unwrap();
        assert_eq!(settled.exit, Some(Exit::Signal { signal: 15, core: false }));
        world.host().cleanup(&id).unwrap();
        world.assert_nothing_left(&id);
    }
}

#[test]
fn one_key_has_one_child_however_often_it_is_asked_for() {
    let world = world();
    let script = "echo $$ >> pids; echo $$ > near; exec sleep 300";
    let launch = ["--key", "k", "--on-host-loss", "keep", "--", "/bin/sh", "-c", script];
    let with = |command| [command].into_iter().chain(launch).collect::<Vec<_>>();
    let mut host = world.program().start(with("run"), Stdio::null());
    let near = Known::named_in(world.work().join("near"));
    host.process().kill().unwrap();
    host.process().wait().unwrap();
    // While the first child lives: processes of their own, and threads of one host.
    let ids = std::thread::scope(|scope| {
        let programs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| world.program().run(with("start")))).collect();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let launch = shell(script).write(world.work()).key("k");
                let launch = launch.on_host_loss(OnHostLoss::Keep);
                scope.spawn(|| {
                    let attempt = world.host().launch(launch).unwrap();
                    assert!(attempt.is_replay());
                    attempt.id().to_string()
                })
            })
            .collect();
        let mut ids = Vec::new();
        for program in programs {
            let said = program.join().unwrap();
            assert_eq!(said.code, 0, "{said:?}");
            ids.push(said.stdout.trim().to_owned());
        }
        ids.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        ids
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let id = AttemptId::parse(&ids[0]).unwrap();
    assert!(near.is_running(), "nobody took it for dead:\n{}", world.told(&id));
    let stopped = world.program().run(["stop", "--force", id.as_str()]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    world.host().cleanup(&id).unwrap();
    // And once more after it has ended.
    let again = world.program().run(with("run"));
    assert_eq!(again.code, 128 + 9, "{again:?}");
    let pids = std::fs::read_to_string(world.work().join("pids")).unwrap();
    assert_eq!(pids, format!("{}\n", near.pid()), "one child ever");
    assert_eq!(world.host().attempts().all().unwrap().attempts.len(), 1);
    let evidence = world.host().evidence(&id, 0, None).unwrap();
    assert_eq!(leader_in(&evidence), Some(near.pid()));
    world.assert_nothing_left(&id);
}

#[test]
fn a_host_killed_at_any_moment_of_its_start_leaves_at_most_one_child() {
    let world = world();
    let mut random = Random::seeded(7);
    let mut ran = 0;
    for round in 0..12 {
        let key = format!("k-{round}");
        let script = format!("echo $$ >> pids-{round}; exec sleep 300");
        let launch = ["--key", &key, "--on-host-loss", "keep", "--", "/bin/sh", "-c", &script];
        let with = |command| [command].into_iter().chain(launch).collect::<Vec<_>>();
        let mut host = world.program().start(with("run"), Stdio::null());
        let before = Instant::now();
        let delay = Duration::from_micros(random.below(120_000));
        while before.elapsed() < delay {
            std::thread::yield_now();
        }
        host.process().kill().unwrap();
        host.process().wait().unwrap();
        // Started again where it never was; followed where it runs; reported where it ended.
        let again = world.program().run(with("start"));
        let listed = world.host().attempts().all().unwrap().attempts;
        assert_eq!(listed.len(), round + 1, "{again:?}");
        let attempt = listed.iter().max_by_key(|attempt| attempt.created_at.unix_ms()).unwrap();
        let id = attempt.attempt_id.clone();
        world.host().stop(&id, StopMode::Forced).unwrap();
        world.host().wait(&id, None).unwrap();
        world.host().cleanup(&id).unwrap();
        let pids = std::fs::read_to_string(world.work().join(format!("pids-{round}")));
        let children = pids.unwrap_or_default().lines().count();
        assert!(children <= 1, "{children} children:\n{}", world.told(&id));
        let kinds = world.kinds(&id);
        let told = world.told(&id);
        assert!(children == 0 || kinds.contains(&"child.started"), "{told}");
        if kinds.contains(&"child.started") {
            let rows = world.host().evidence(&id, 0, None).unwrap();
            let lost = rows.iter().filter(|row| row.kind == EvidenceKind::HostLost);
            assert!(lost.map(|row| &row.detail).all(|detail| detail == "kept running"), "{told}");
        }
        ran += children;
        world.assert_nothing_left(&id);
    }
    assert!(ran > 0, "some hosts lived long enough");
}

#[test]
fn a_runner_that_stands_still_is_not_taken_for_dead() {
    let world = world();
    let attempt = world.launch_shell("echo $$ > near; exec sleep 300");
    let id = attempt.id().clone();
    let near = Known::named_in(world.work().join("near"));
    let runner = Known::of(world.runner_pid(&id));
    runner.signal(Signal::Stop);
    let before = world.kinds(&id);
    let looked_at = world.another_host().reconcile(&id).unwrap();
    assert_eq!(looked_at.execution_state, ExecutionState::Running);
    assert_eq!(world.kinds(&id), before);
    assert!(near.is_running());
    runner.signal(Signal::Cont);
    attempt.stop_forced().unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}
