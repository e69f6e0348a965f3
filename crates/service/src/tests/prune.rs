use crate::list::Listed;
use crate::testing::*;
use crate::{Kept, Pruning};
use placement_contract::{
    Attempt, AttemptId, Code, EvidenceKind, ExecutionState, Exit, Outcome, RecipientId,
};
use placement_homes::HomeKey;
use placement_protocol::StopMode;
use placement_store::{Draft, Fields};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// An attempt that went its whole way, with everything that it leaves.
fn complete(world: &World, id: &str, rows: &[Draft]) -> FakeRunner {
    let id = world.prepare(&request(id, &format!("key-{id}")));
    let mut runner = FakeRunner::claim(world, &id);
    runner.directory.create_home().unwrap();
    runner.run(world, &gone_process());
    world.record(&id, rows, &Fields::default());
    let finished = [Draft::new(EvidenceKind::RunnerFinished, "everything was sent")];
    world.record(&id, &finished, &Fields::default());
    runner.die();
    world.service.cleanup(&id).unwrap();
    runner
}

fn exited(code: i32) -> Vec<Draft> {
    vec![Draft::exited(Some(Exit::Code { code }))]
}

fn directory(world: &World, id: &AttemptId) -> camino::Utf8PathBuf {
    let key = HomeKey::of(world.service.owner(), id);
    world.root.join("attempts").join(key.as_str())
}

/// Removes an attempt's directory as a pruning does that is cut off right after.
fn remove(directory: &camino::Utf8Path) {
    let parent = placement_paths::Dir::open(directory.parent().unwrap(), "test").unwrap();
    parent.remove_tree(directory.file_name().unwrap()).unwrap();
}

#[track_caller]
fn pruned(pruning: &Pruning) -> Vec<&str> {
    assert!(pruning.kept.is_empty() && !pruning.more, "{pruning:?}");
    pruning.pruned.iter().map(AttemptId::as_str).collect()
}

#[test]
fn a_receipt_is_all_that_is_left() {
    let world = World::new();
    complete(&world, "a", &exited(3));
    let id = attempt("a");
    let before = world.service.recorded(&id).unwrap();
    assert!(directory(&world, &id).is_dir());
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), ["a"]);
    assert!(!directory(&world, &id).exists());
    assert!(world.service.list(Listed::All).unwrap().attempts.is_empty());
    let receipt = world.service.pruned(&id).unwrap().unwrap();
    assert_eq!(receipt.outcome, Outcome::Exited);
    let expected = Attempt { pruned: true, home_ref: None, ..before };
    assert_eq!(receipt.attempt, expected);
    assert_eq!(world.service.recorded(&id).unwrap(), expected);
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), [""; 0], "nothing is pruned twice");
}

#[test]
fn a_retry_is_answered_by_the_receipt_and_nothing_runs() {
    let world = World::new();
    let launch = request("a", "key-a");
    complete(&world, "a", &exited(0));
    world.service.prune(NOW).unwrap();
    // The host offers nothing by now, and is not asked.
    let known = world.service.inner.capability.lock().unwrap().take();
    let answered = world.service.prepare(&launch).unwrap();
    assert!(answered.pruned);
    let recipient = RecipientId::parse("r").unwrap();
    let started = world.service.start(&answered.attempt_id, &recipient).unwrap();
    assert!(started.streams.is_none() && started.attempt.pruned);
    let other = refusal(world.service.prepare(&request("b", "key-a")));
    assert_eq!(other.code, Code::Conflict);
    *world.service.inner.capability.lock().unwrap() = known;
    let taken = refusal(world.service.prepare(&request("a", "another key")));
    assert_eq!(taken.code, Code::Conflict);
    assert_eq!(refusal(world.service.recorded(&attempt("b"))).code, Code::NotFound);
    assert!(!directory(&world, &answered.attempt_id).exists());
}

#[test]
fn what_ends_an_attempt_answers_for_a_pruned_one_and_what_looks_into_it_says_what_became_of_it() {
    let world = World::new();
    complete(&world, "a", &exited(0));
    world.service.prune(NOW).unwrap();
    let (id, service) = (attempt("a"), &world.service);
    let stopped = service.stop(&id, StopMode::Forced, crate::IfUncertain::EndSurvivors).unwrap();
    for answer in [stopped, service.reconcile(&id).unwrap(), service.cleanup(&id).unwrap()] {
        assert!(answer.pruned && answer.execution_state == ExecutionState::Exited);
    }
    let status = service.status(&id).unwrap();
    assert_eq!((status.liveness.observed, status.attempt.pruned), (false, true));
    assert_eq!(service.wait_ended(&id, None).unwrap(), crate::Waited::Ended);
    let refusals = [
        refusal(service.evidence(&id, 0, 64)),
        refusal(service.verify(&id, None)),
        refusal(service.observe(&id)),
        refusal(service.close_stdin(&id)),
        refusal(service.attach(&id, &recipient("r"), crate::HostPlace::Keep)),
    ];
    for refused in refusals {
        assert_eq!(refused.code, Code::NotFound);
        assert_eq!(refused.message, "attempt a was pruned, and only its receipt is left");
    }
}

#[test]
fn another_owner_sees_no_receipt_and_prunes_nothing_of_it() {
    let world = World::new();
    complete(&world, "a", &exited(0));
    let other = world.another("local:other");
    assert_eq!(pruned(&other.prune(NOW).unwrap()), [""; 0]);
    world.service.prune(NOW).unwrap();
    assert_eq!(other.pruned(&attempt("a")).unwrap(), None);
    let refused = refusal(other.recorded(&attempt("a")));
    assert_eq!(refused.message, "this owner has no attempt a");
}

#[test]
fn only_what_is_settled_and_old_enough_goes() {
    let world = World::new();
    complete(&world, "old", &exited(0));
    world.prepare(&request("intended", "i"));
    let live = world.prepare(&request("live", "l"));
    let runner = FakeRunner::claim(&world, &live);
    runner.run(&world, &this_process());
    assert_eq!(pruned(&world.service.prune(Duration::from_hours(1)).unwrap()), [""; 0]);
    assert_eq!(pruned(&world.service.prune(Duration::MAX).unwrap()), [""; 0]);
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), ["old"]);
    assert_eq!(world.service.list(Listed::All).unwrap().attempts.len(), 2);
    assert!(directory(&world, &live).is_dir());
}

#[test]
fn an_attempt_that_was_stopped_before_its_start_goes_without_a_directory() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    world.service.stop(&id, StopMode::Cooperative, crate::IfUncertain::Leave).unwrap();
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), ["a"]);
    assert_eq!(world.service.pruned(&id).unwrap().unwrap().outcome, Outcome::NotStarted);
}

#[test]
fn an_attempt_whose_runner_holds_its_lock_is_kept_until_it_lets_go() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    let rows = [
        Draft::exited(Some(Exit::Code { code: 0 })),
        Draft::new(EvidenceKind::RunnerFinished, ""),
        Draft::new(EvidenceKind::CleanupComplete, "staged"),
    ];
    world.record(&id, &rows, &Fields::default());
    let kept = Kept { attempt_id: "a".to_owned(), why: "its runner lives".to_owned() };
    assert_eq!(world.service.prune(NOW).unwrap().kept, [kept]);
    assert!(runner.directory.dir().path().unwrap().is_dir());
    assert!(world.service.pruned(&id).unwrap().is_none());
    runner.die();
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), ["a"]);
}

#[test]
fn a_pruning_that_was_cut_off_is_finished_by_the_next() {
    let world = World::new();
    // Everything of the directory went and the row did not.
    complete(&world, "whole", &exited(0));
    remove(&directory(&world, &attempt("whole")));
    // Only the lock went.
    complete(&world, "half", &exited(0));
    std::fs::remove_file(directory(&world, &attempt("half")).join("alive")).unwrap();
    assert_eq!(pruned(&world.service.prune(NOW).unwrap()), ["whole", "half"]);
    assert!(!directory(&world, &attempt("half")).exists());
}

#[test]
fn two_prunings_at_once_leave_one_receipt_each() {
    let world = World::new();
    for number in 0..6 {
        complete(&world, &format!("a{number}"), &exited(0));
    }
    let other = world.another("local:test");
    std::thread::scope(|scope| {
        for service in [&world.service, &other] {
            scope.spawn(|| service.prune(NOW).unwrap());
        }
    });
    for number in 0..6 {
        let id = attempt(&format!("a{number}"));
        assert!(world.service.pruned(&id).unwrap().is_some() && !directory(&world, &id).exists());
    }
}

#[test]
fn a_receipt_keeps_how_the_attempt_ended() {
    let world = World::new();
    let signal = Exit::Signal { signal: 9, core: false };
    let cases = [
        ("exit", exited(7), Outcome::Exited, Some(Exit::Code { code: 7 })),
        ("signal", vec![Draft::exited(Some(signal))], Outcome::Exited, Some(signal)),
        (
            "deadline",
            vec![
                Draft::new(EvidenceKind::DeadlineElapsed, "after 5 ms"),
                Draft::exited(Some(signal)),
            ],
            Outcome::DeadlineElapsed,
            Some(signal),
        ),
        ("unlearnt", vec![Draft::exited(None)], Outcome::Unknown, None),
    ];
    for (id, rows, _, _) in &cases {
        complete(&world, id, rows);
    }
    world.service.prune(NOW).unwrap();
    for (id, _, outcome, exit) in cases {
        let receipt = world.service.pruned(&attempt(id)).unwrap().unwrap();
        assert_eq!((receipt.outcome, receipt.attempt.exit), (outcome, exit), "{id}");
    }
}

#[test]
fn a_receipt_keeps_why_no_child_came_to_be() {
    let world = World::new();
    let not_started = || Draft::new(EvidenceKind::ChildNotStarted, "no child was created");
    let refused = |detail| vec![Draft::new(EvidenceKind::ExecutableRefused, detail), not_started()];
    let creating = || Draft::new(EvidenceKind::ChildCreating, "in a process group");
    let failed = |detail| vec![creating(), Draft::new(EvidenceKind::ChildStartFailed, detail)];
    let changed = vec![Draft::new(EvidenceKind::ExecutableChanged, "planned"), not_started()];
    let cases = [
        ("missing", refused("the program was not found"), Outcome::ExecutableNotFound),
        ("refused", refused("the program is not executable"), Outcome::ExecutableRefused),
        ("changed", changed, Outcome::ExecutableRefused),
        ("vanished", failed("execve: ENOENT"), Outcome::ExecutableNotFound),
        ("foreign", failed("execve: ENOEXEC"), Outcome::ExecutableRefused),
        ("late", failed("a stop came first"), Outcome::NotStarted),
        ("plain", vec![not_started()], Outcome::NotStarted),
    ];
    for (id, rows, _) in &cases {
        let id = world.prepare(&request(id, id));
        let mut runner = FakeRunner::claim(&world, &id);
        world.record(&id, rows, &Fields::default());
        let finished = [Draft::new(EvidenceKind::RunnerFinished, "without a child")];
        world.record(&id, &finished, &Fields::default());
        runner.die();
        world.service.cleanup(&id).unwrap();
    }
    assert_eq!(world.service.prune(NOW).unwrap().pruned.len(), cases.len());
    for (id, _, outcome) in cases {
        assert_eq!(world.service.pruned(&attempt(id)).unwrap().unwrap().outcome, outcome, "{id}");
    }
}
