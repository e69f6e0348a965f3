use crate::list::Listed;
use crate::testing::*;
use placement_contract::attempt::RunnerStatus;
use placement_contract::{Code, EvidenceKind, ExecutionState, Generation};
use placement_protocol::{ControlAnswer, ControlCall};
use std::time::{Duration, Instant};

fn running(generation: Generation) -> RunnerStatus {
    RunnerStatus {
        execution: ExecutionState::Running,
        exit: None,
        eof_seen: 0,
        unacknowledged_bytes: 3,
        output_full: false,
        generation,
        descendants: Some(1),
    }
}

type Operation = fn(&crate::Service, &placement_contract::AttemptId) -> Option<String>;

/// The text of a refusal, with one attempt's id in it.
fn text<T>(answer: Result<T, placement_contract::Refusal>) -> Option<String> {
    let refused = answer.err()?;
    assert_eq!(refused.code, Code::NotFound);
    Some(refused.message.replace("attempt a", "attempt b"))
}

#[test]
fn an_unknown_and_a_foreign_attempt_look_the_same_to_every_operation() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let other = world.another("local:other");
    let unknown = attempt("b");
    let operations: [Operation; 10] = [
        |service, id| text(service.start(id, &recipient("r"))),
        |service, id| text(service.status(id)),
        |service, id| {
            text(service.stop(id, crate::StopMode::Forced, crate::IfUncertain::EndSurvivors))
        },
        |service, id| text(service.reconcile(id)),
        |service, id| text(service.cleanup(id)),
        |service, id| text(service.evidence(id, 0, 64)),
        |service, id| text(service.verify(id, None)),
        |service, id| text(service.attach(id, &recipient("r"), crate::HostPlace::Keep)),
        |service, id| text(service.observe(id)),
        |service, id| text(service.close_stdin(id)),
    ];
    for (number, operation) in operations.iter().enumerate() {
        let foreign = operation(&other, &id);
        assert!(foreign.is_some(), "operation {number}");
        assert_eq!(foreign, operation(&other, &unknown), "operation {number}");
    }
    assert_eq!(world.row(&id).evidence_count, 1);
}

#[test]
fn a_status_shows_the_record_a_fresh_look_and_what_the_runner_says() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &this_process());
    runner.answer(Generation::FIRST, |call, _| {
        assert_eq!(call, ControlCall::Status);
        Some(ControlAnswer::Status(running(Generation::FIRST)))
    });
    let status = world.service.status(&id).unwrap();
    assert_eq!(status.attempt, world.row(&id).attempt());
    assert_eq!((status.liveness.observed, status.liveness.alive), (true, Some(true)));
    assert_eq!(status.runner, Some(running(Generation::FIRST)));
}

#[test]
fn a_status_that_sees_the_child_gone_does_not_change_the_record() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    runner.die();
    let before = world.row(&id);
    let status = world.service.status(&id).unwrap();
    assert_eq!(status.liveness.alive, Some(false));
    assert_eq!(status.runner, None);
    assert_eq!(world.row(&id), before);
}

#[test]
fn a_runner_that_does_not_answer_holds_a_status_up_to_the_fence_only() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.answer(Generation::FIRST, |_, _| None);
    let begun = Instant::now();
    assert_eq!(world.service.status(&id).unwrap().runner, None);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_status_does_not_wait_for_a_writer() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let lock = std::fs::File::open(world.root.join("placement.lock")).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        // It waits for the lock, and holds this process's writing connection meanwhile.
        let stop =
            || world.service.stop(&id, crate::StopMode::Forced, crate::IfUncertain::Leave).unwrap();
        let writer = scope.spawn(stop);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            let status = world.service.status(&id).unwrap();
            assert_eq!(status.attempt.execution_state, ExecutionState::Intended);
            world.service.list(Listed::All).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        lock.unlock().unwrap();
        assert_eq!(writer.join().unwrap().execution_state, ExecutionState::Exited);
    });
}

#[test]
fn evidence_comes_in_pages() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let _runner = FakeRunner::claim(&world, &id);
    let first = world.service.evidence(&id, 0, 2).unwrap();
    assert_eq!((first.evidence.len(), first.next_after), (2, Some(2)));
    let rest = world.service.evidence(&id, 2, 0).unwrap();
    assert_eq!((rest.evidence.len(), rest.next_after), (1, None));
    assert_eq!(rest.evidence[0].kind, EvidenceKind::RunnerStarted);
}

#[test]
fn a_kept_head_is_found_in_sound_evidence_and_another_is_a_fault() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let kept = world.row(&id).chain_head;
    let _runner = FakeRunner::claim(&world, &id);
    let sound = world.service.verify(&id, Some(&kept)).unwrap();
    assert!(sound.sound, "{:?}", sound.faults);
    assert_eq!((sound.kept_head_at, sound.evidence_count), (Some(1), 3));
    let other = placement_contract::Digest::of_bytes(b"another");
    let wrong = world.service.verify(&id, Some(&other)).unwrap();
    assert!(!wrong.sound);
    assert_eq!(wrong.faults.len(), 1);
}

#[test]
fn the_open_attempts_are_those_with_something_left_to_do() {
    let world = World::new();
    let running = world.prepare(&request("a", "k"));
    let _runner = FakeRunner::claim(&world, &running);
    let stopped = world.prepare(&request("b", "l"));
    world.service.stop(&stopped, crate::StopMode::Forced, crate::IfUncertain::Leave).unwrap();
    let ids = |listed| {
        let list = world.service.list(listed).unwrap();
        assert!(list.unreadable.is_empty());
        list.attempts.into_iter().map(|one| one.attempt_id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Listed::Open), std::slice::from_ref(&running));
    assert_eq!(ids(Listed::All), [stopped, running]);
    assert!(world.another("local:other").list(Listed::All).unwrap().attempts.is_empty());
}

#[test]
fn capabilities_say_the_bounds_of_the_contract() {
    use placement_contract::limits;
    let told = serde_json::to_value(World::new().service.capabilities().unwrap()).unwrap();
    assert_eq!(told["max_chunk_bytes"], limits::CHUNK_BYTES_MAX);
    assert_eq!(told["max_outstanding_chunks"], limits::OUTSTANDING_CHUNKS_MAX);
    assert_eq!(told["max_write_bytes"], limits::WRITE_BYTES_MAX);
    assert_eq!(told["max_evidence_page"], limits::EVIDENCE_PAGE_MAX);
    assert_eq!(told["capability"], "contained_tree");
    assert_eq!(told["resource_authority"], "host_configured");
    assert_eq!(told["delegated_resource_grants"], false);
    assert_eq!(told["credential_broker"], false);
    assert_eq!(told["survives_host"]["control_group"], false);
}
