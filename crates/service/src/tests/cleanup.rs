use crate::testing::*;
use placement_contract::{
    CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, Exit, LaunchRequest,
};
use placement_homes::TemporaryDir;
use placement_identity::ProcessIdentity;
use placement_store::{Draft, Fields};

/// An attempt whose child has exited, with a home, a temporary directory and a finished runner.
fn exited(world: &World, launch: &LaunchRequest, child: &ProcessIdentity) -> FakeRunner {
    let id = world.prepare(launch);
    let mut runner = FakeRunner::claim(world, &id);
    let home = runner.directory.create_home().unwrap();
    std::fs::write(home.join("file"), "x").unwrap();
    TemporaryDir::create(world.root.path(), &runner.directory).unwrap();
    runner.run(world, child);
    let rows = [
        Draft::exited(Some(Exit::Code { code: 0 })),
        Draft::new(EvidenceKind::RunnerFinished, "everything was sent"),
    ];
    world.record(&id, &rows, &Fields::default());
    runner.die();
    runner
}

fn group() -> LaunchRequest {
    LaunchRequest { required_cleanup: CleanupScope::ProcessGroup, ..request("a", "k") }
}

#[test]
fn an_attempt_that_has_not_exited_is_a_conflict_without_evidence() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let refused = refusal(world.service.cleanup(&id));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refused.message, "the attempt is intended and not exited");
    let runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &this_process());
    assert_eq!(refusal(world.service.cleanup(&id)).code, Code::Conflict);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::ChildStarted);
}

#[test]
fn a_proven_scope_lets_the_home_go_and_the_log_stay() {
    let world = World::new();
    let runner = exited(&world, &group(), &gone_process());
    let directory = runner.directory.dir().path().unwrap();
    std::fs::create_dir(directory.join("log")).unwrap();
    let temporary = TemporaryDir::open(&runner.directory).unwrap().unwrap();
    let id = attempt("a");
    let cleaned = world.service.cleanup(&id).unwrap();
    assert_eq!(cleaned.cleanup_state, CleanupState::Complete);
    assert_eq!(cleaned.execution_state, ExecutionState::Exited);
    assert_eq!(world.last_detail(&id), "the process group has no member; the home is removed");
    assert!(!directory.join("home").exists());
    assert!(!temporary.path().exists());
    assert!(directory.join("log").exists());
    assert_eq!(world.service.cleanup(&id).unwrap(), cleaned);
}

#[test]
fn a_group_with_a_member_refuses_the_cleanup_with_the_recorded_reason() {
    let world = World::new();
    let (mut child, identity) = process("exec sleep 600");
    let runner = exited(&world, &group(), &identity);
    let id = attempt("a");
    let refused = refusal(world.service.cleanup(&id));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refused.message, "the process group is not proven gone");
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::CleanupRefused);
    assert_eq!(world.last_detail(&id), refused.message);
    assert_eq!(world.row(&id).state.cleanup, CleanupState::Pending);
    assert!(runner.directory.dir().path().unwrap().join("home/file").exists());
    let placement_identity::Presence::Present(alive) = identity.observe() else {
        panic!("a cleanup ends nothing")
    };
    alive.signal(placement_identity::Signal::Kill).unwrap();
    child.wait().unwrap();
    assert!(world.service.cleanup(&id).is_ok());
}

#[test]
fn a_tree_without_a_proof_is_not_cleaned_though_its_group_is_gone() {
    let world = World::new();
    let mut tree =
        LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    tree.supervision.mechanism = Some(placement_contract::Mechanism::Subreaper);
    exited(&world, &tree, &gone_process());
    let refused = refusal(world.service.cleanup(&attempt("a")));
    assert_eq!(refused.message, "the tree is not proven gone");
}

#[test]
fn a_kept_home_stays_and_its_temporary_directory_does_not() {
    let world = World::new();
    let mut keep = group();
    keep.supervision.keep_home = true;
    let runner = exited(&world, &keep, &gone_process());
    let temporary = TemporaryDir::open(&runner.directory).unwrap().unwrap();
    world.service.cleanup(&attempt("a")).unwrap();
    assert!(runner.directory.dir().path().unwrap().join("home/file").exists());
    assert!(!temporary.path().exists());
    assert!(world.last_detail(&attempt("a")).ends_with("the home is kept as the launch asked"));
}

#[test]
fn two_cleanups_at_once_are_both_answered() {
    let world = World::new();
    exited(&world, &group(), &gone_process());
    let other = world.another("local:test");
    let id = attempt("a");
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| world.service.cleanup(&id).unwrap());
        (other.cleanup(&id).unwrap(), one.join().unwrap())
    });
    assert_eq!(one.cleanup_state, CleanupState::Complete);
    assert_eq!(two.cleanup_state, CleanupState::Complete);
    let complete = world.kinds(&id).into_iter().filter(|k| *k == EvidenceKind::CleanupComplete);
    assert_eq!(complete.count(), 1);
}

#[test]
fn a_removal_that_fails_is_recorded_and_a_later_cleanup_succeeds() {
    let world = World::new();
    let runner = exited(&world, &group(), &gone_process());
    let directory = runner.directory.dir().path().unwrap();
    let aside = world.root.join("aside");
    std::fs::rename(&directory, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &directory).unwrap();
    let id = attempt("a");
    assert_eq!(refusal(world.service.cleanup(&id)).code, Code::Unavailable);
    assert_eq!(world.row(&id).state.cleanup, CleanupState::Uncertain);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::CleanupFailed);
    assert!(aside.join("home/file").exists(), "nothing is removed through a link");
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    assert_eq!(world.service.cleanup(&id).unwrap().cleanup_state, CleanupState::Complete);
}

#[test]
fn a_runner_that_is_still_finishing_is_waited_for() {
    let world = World::new();
    let id = world.prepare(&group());
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    std::thread::scope(|scope| {
        let cleanup = scope.spawn(|| world.service.cleanup(&id).unwrap());
        let rows = [
            Draft::new(EvidenceKind::GroupGone, "no member"),
            Draft::new(EvidenceKind::RunnerFinished, "everything was sent"),
        ];
        world.record(&id, &rows, &Fields::default());
        runner.die();
        assert_eq!(cleanup.join().unwrap().cleanup_state, CleanupState::Complete);
    });
    assert!(!world.kinds(&id).contains(&EvidenceKind::CleanupRefused));
    assert!(world.last_detail(&id).starts_with("the process group is recorded as gone"));
}

#[test]
fn a_child_that_never_was_needs_no_other_proof() {
    let world = World::new();
    let id = world.prepare(&group());
    let mut runner = FakeRunner::claim(&world, &id);
    runner.die();
    world.service.reconcile(&id).unwrap();
    world.service.cleanup(&id).unwrap();
    assert!(world.last_detail(&id).starts_with("no child came to be"));
}

#[test]
fn the_process_table_is_read_only_where_the_record_proves_nothing() {
    let world = World::new();
    let runner = exited(&world, &group(), &gone_process());
    let id = attempt("a");
    drop(runner);
    let mut looked = false;
    let unproven = world.service.prove_gone_by(&world.row(&id), |_| {
        looked = true;
        (None, None)
    });
    assert!(looked && unproven.unwrap().is_err(), "nothing is recorded of the group");
    let gone = [Draft::new(EvidenceKind::GroupGone, "no member is left")];
    world.record(&id, &gone, &Fields::default());
    let proven = world.service.prove_gone_by(&world.row(&id), |_| panic!("nobody need look"));
    assert!(proven.unwrap().is_ok());
}
