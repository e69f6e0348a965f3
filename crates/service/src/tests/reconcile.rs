use crate::IfUncertain;
use crate::testing::*;
use placement_contract::{
    AttemptId, CleanupScope, EvidenceKind, ExecutionState, Exit, ExitSource, LaunchRequest,
    Mechanism, Timestamp,
};
use placement_identity::{Presence, ProcessIdentity};
use placement_process::{CgroupLeaf, CgroupSite};
use placement_protocol::StopMode;
use placement_store::{Draft, ExitRecord, Fields, RecordedRow};

fn tree(mechanism: Mechanism) -> LaunchRequest {
    let mut launch =
        LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    launch.supervision.mechanism = Some(mechanism);
    launch
}

fn last(world: &World, id: &AttemptId) -> EvidenceKind {
    *world.kinds(id).last().unwrap()
}

#[test]
fn an_intent_is_left_alone() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    assert_eq!(world.service.reconcile(&id).unwrap().evidence_count, 1);
}

#[test]
fn a_living_runner_is_noted_without_evidence() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    let before = world.row(&id);
    let after = world.service.reconcile(&id).unwrap();
    assert_eq!(after.execution_state, ExecutionState::Running, "the runner is the one that knows");
    assert_eq!(after.evidence_count, before.evidence_count);
    assert!(after.last_observed_at > before.last_observed_at);
}

#[test]
fn a_runner_gone_before_an_identity_proves_that_no_child_was() {
    let world = World::new();
    let id = world.prepare(&tree(Mechanism::Subreaper));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!(settled.exit_source, Some(ExitSource::Runner));
    assert_eq!(last(&world, &id), EvidenceKind::ChildNotStarted);
    assert_eq!(world.service.reconcile(&id).unwrap(), settled);
}

#[test]
fn a_claim_without_a_lock_is_judged_by_the_runners_identity() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim_as(&world, &id, gone_process());
    std::fs::remove_file(runner.directory.dir().path().unwrap().join("alive")).unwrap();
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
}

#[test]
fn a_lock_that_is_free_here_says_nothing_of_another_machine() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut there = this_process();
    if there.observer.machine_id.is_none() {
        println!("this machine has no id: only the boot tells it from others");
        return;
    }
    there.observer.machine_id = Some("0".repeat(32));
    there.boot_id = "00000000-0000-4000-8000-000000000000".to_owned();
    let mut runner = FakeRunner::claim_as(&world, &id, there);
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Uncertain, "not taken for never started");
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileUnidentified);
}

#[test]
fn an_absent_leader_without_a_runner_is_exited_with_an_unknown_exit() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!((settled.exit_source, settled.exit), (Some(ExitSource::Reconcile), None));
    assert_eq!(settled.tree_gone_by, None, "nothing is said of the tree");
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileAbsent);
}

#[test]
fn a_leader_that_is_about_to_end_with_its_runner_is_not_taken_for_alive() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let (mut child, identity) = process("exec sleep 600");
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &identity);
    runner.die();
    let settled = std::thread::scope(|scope| {
        let looking = scope.spawn(|| world.service.reconcile(&id).unwrap());
        if let Presence::Present(leader) = identity.observe() {
            leader.signal(placement_identity::Signal::Kill).unwrap();
        }
        looking.join().unwrap()
    });
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileAbsent);
    child.wait().unwrap();
}

#[test]
fn a_leader_that_outlived_its_runner_is_recorded_once() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let (mut child, identity) = process("exec sleep 600");
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &identity);
    runner.die();
    let seen = world.service.reconcile(&id).unwrap();
    assert_eq!(seen.execution_state, ExecutionState::Running);
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileAlive);
    let again = world.service.reconcile(&id).unwrap();
    assert_eq!(again.evidence_count, seen.evidence_count);
    world.service.stop(&id, StopMode::Forced, IfUncertain::Leave).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_subreaper_that_is_gone_leaves_the_attempt_uncertain_with_a_count() {
    let world = World::new();
    let id = world.prepare(&tree(Mechanism::Subreaper));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    runner.die();
    let uncertain = world.service.reconcile(&id).unwrap();
    assert_eq!(uncertain.execution_state, ExecutionState::Uncertain);
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileUnobserved);
    assert!(world.last_detail(&id).contains("surviv"), "{}", world.last_detail(&id));
    let again = world.service.reconcile(&id).unwrap();
    assert_eq!(again.evidence_count, uncertain.evidence_count);
}

#[test]
fn what_cannot_be_seen_from_here_is_uncertain() {
    let world = World::new();
    let elsewhere = |mut identity: ProcessIdentity| {
        identity.observer.pid_namespace = 7;
        identity
    };
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim_as(&world, &id, elsewhere(this_process()));
    std::fs::remove_file(runner.directory.dir().path().unwrap().join("alive")).unwrap();
    let uncertain = world.service.reconcile(&id).unwrap();
    assert_eq!(uncertain.execution_state, ExecutionState::Uncertain);
    assert_eq!(last(&world, &id), EvidenceKind::ReconcileUnidentified);
}

#[test]
fn a_later_boot_settles_everything_with_an_unknown_exit() {
    let earlier = |mut identity: ProcessIdentity| {
        identity.boot_id = "00000000-0000-0000-0000-00000000000f".to_owned();
        identity
    };
    if this_process().observer.machine_id.is_none() {
        println!("no machine id here: another boot proves nothing");
        return;
    }
    for mechanism in [Mechanism::Cgroup, Mechanism::Subreaper] {
        let world = World::new();
        let id = world.prepare(&tree(mechanism));
        let runner = FakeRunner::claim_as(&world, &id, earlier(this_process()));
        drop(runner);
        let settled = world.service.reconcile(&id).unwrap();
        assert_eq!(settled.exit_source, Some(ExitSource::Reconcile));
        assert_eq!(last(&world, &id), EvidenceKind::ReconcileAbsent, "never child.not_started");
        assert!(world.service.cleanup(&id).is_ok(), "the boot proves the tree gone");
    }
}

#[test]
fn an_exit_record_is_taken_in_before_anything_is_decided() {
    let world = World::new();
    let id = world.prepare(&tree(Mechanism::Subreaper));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    let row = |kind, detail: &str| RecordedRow {
        kind,
        detail: detail.to_owned(),
        at: Timestamp::from_unix_ms(1_800_000_001_000),
    };
    let record = ExitRecord {
        attempt_id: id.clone(),
        based_on_count: world.row(&id).evidence_count,
        rows: vec![
            row(EvidenceKind::ChildExited, "code 3"),
            row(EvidenceKind::TreeGone, "subreaper: ECHILD"),
            row(EvidenceKind::RunnerFinished, "everything was sent"),
        ],
        fields: Fields::default(),
    };
    runner.directory.write_exit_record(&record.encode().unwrap()).unwrap();
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.exit, Some(Exit::Code { code: 3 }));
    assert_eq!(settled.tree_gone_by.as_deref(), Some("subreaper: ECHILD"));
    assert_eq!(last(&world, &id), EvidenceKind::RecordTaken);
    assert_eq!(world.service.reconcile(&id).unwrap(), settled);
}

#[test]
fn a_record_that_does_not_decode_hides_nothing_from_the_decision() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    runner.directory.write_exit_record(b"{").unwrap();
    runner.die();
    assert_eq!(world.service.reconcile(&id).unwrap().exit_source, Some(ExitSource::Reconcile));
}

/// Makes a leaf with a process in it, where this machine lets us.
fn populated_leaf(name: &str, identity: &ProcessIdentity) -> Option<CgroupLeaf> {
    let leaf = match CgroupSite::find().map(|site| site.create(name)) {
        Ok(Ok(leaf)) => leaf,
        Ok(Err(error)) => {
            println!("no leaf can be made here: {error}");
            return None;
        }
        Err(error) => {
            println!("no place for a leaf here: {error}");
            return None;
        }
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    let mount = mount.split(' ').nth(4).unwrap();
    let procs = format!("{mount}{}/cgroup.procs", leaf.path());
    match std::fs::write(&procs, identity.pid.to_string()) {
        Ok(()) => Some(leaf),
        Err(error) => {
            println!("the process cannot be put into the leaf: {error}");
            leaf.remove().ok();
            None
        }
    }
}

fn in_leaf(world: &World, leaf: &CgroupLeaf, child: &ProcessIdentity) -> FakeRunner {
    let id = world.prepare(&tree(Mechanism::Cgroup));
    let runner = FakeRunner::claim(world, &id);
    let fields = Fields {
        leaf_path: Some(leaf.path().into()),
        leaf_id: Some(leaf.id()),
        ..Fields::default()
    };
    let rows = [Draft::new(EvidenceKind::ExecutableMeasured, "elf")];
    world.record(&id, &rows, &fields);
    runner.run(world, child);
    runner
}

#[test]
fn a_leaf_without_a_runner_is_killed_and_proven_empty() {
    let world = World::new();
    let (mut child, identity) = process("exec sleep 600");
    let Some(leaf) = populated_leaf("placement-test-reconcile-1", &identity) else {
        end(&mut child, &identity);
        return;
    };
    let id = attempt("a");
    let mut runner = in_leaf(&world, &leaf, &identity);
    assert_eq!(
        world.service.reconcile(&id).unwrap().execution_state,
        ExecutionState::Running,
        "not while the runner lives"
    );
    assert!(matches!(identity.observe(), Presence::Present(_)));
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    child.wait().unwrap();
    assert_eq!(settled.execution_state, ExecutionState::Exited);
    assert_eq!(settled.tree_gone_by.as_deref(), Some("cgroup: cgroup populated 0 and removed"));
    let kinds = world.kinds(&id);
    let last = [EvidenceKind::ReconcileAbsent, EvidenceKind::TreeGone];
    assert_eq!(kinds[kinds.len() - 2..], last);
    assert!(world.service.cleanup(&id).is_ok());
}

#[test]
fn the_leaf_of_an_exited_attempt_is_ended_once_its_runner_is_gone() {
    let world = World::new();
    let (mut child, identity) = process("exec sleep 600");
    let Some(leaf) = populated_leaf("placement-test-reconcile-2", &identity) else {
        end(&mut child, &identity);
        return;
    };
    let id = attempt("a");
    let mut runner = in_leaf(&world, &leaf, &gone_process());
    let exit = Exit::Code { code: 0 };
    world.record(&id, &[Draft::exited(Some(exit))], &Fields::default());
    runner.die();
    let settled = world.service.reconcile(&id).unwrap();
    child.wait().unwrap();
    assert_eq!((settled.exit, settled.exit_source), (Some(exit), Some(ExitSource::Runner)));
    assert!(settled.tree_gone_by.is_some());
    assert_eq!(last(&world, &id), EvidenceKind::TreeGone);
}

fn end(child: &mut placement_process::Started, identity: &ProcessIdentity) {
    if let Presence::Present(alive) = identity.observe() {
        alive.signal(placement_identity::Signal::Kill).unwrap();
    }
    child.wait().unwrap();
}
