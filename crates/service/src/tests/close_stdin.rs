use crate::testing::*;
use placement_contract::{
    AttemptId, Code, EvidenceKind, ExecutionState, Exit, Generation, SessionEnd, StdinMode,
};
use placement_protocol::{ControlAnswer, ControlCall, StdinRefused, StdinReply};
use placement_store::{Draft, Fields};
use std::time::Instant;

fn running(world: &World) -> (AttemptId, FakeRunner) {
    let mut launch = request("a", "k");
    launch.launch.session_end = Some(SessionEnd::StdinClose);
    launch.supervision.stdin = StdinMode::Pipe;
    let id = world.prepare(&launch);
    let runner = FakeRunner::claim(world, &id);
    runner.run(world, &this_process());
    (id, runner)
}

fn answer(refused: Option<StdinRefused>) -> ControlAnswer {
    ControlAnswer::CloseStdin(StdinReply { closed: refused.is_none(), reason: refused })
}

#[test]
fn a_runner_closes_it_and_its_row_is_there_with_the_answer() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (service, recorded) = (world.service.clone(), id.clone());
    runner.answer(Generation::FIRST, move |call, _| {
        assert_eq!(call, ControlCall::CloseStdin);
        let rows = [Draft::new(EvidenceKind::StdinClosed, "asked for")];
        let row = service.row(&recorded).unwrap();
        service
            .commit(&row, &rows, &Fields::default(), placement_store::Durability::Normal)
            .unwrap();
        Some(answer(None))
    });
    let closing = world.service.close_stdin(&id).unwrap();
    assert_eq!((closing.closed, closing.reason), (true, None));
    assert_eq!(closing.attempt.evidence_count, world.row(&id).evidence_count);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::StdinClosed);
}

#[test]
fn what_the_runner_cannot_do_is_an_answer_with_its_reason() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let mut refusals = [StdinRefused::Waiting, StdinRefused::NotStarted].into_iter();
    runner.answer(Generation::FIRST, move |_, _| Some(answer(refusals.next())));
    let before = world.row(&id).evidence_count;
    for reason in [StdinRefused::Waiting, StdinRefused::NotStarted] {
        let closing = world.service.close_stdin(&id).unwrap();
        assert_eq!((closing.closed, closing.reason), (false, Some(reason.to_string())));
    }
    assert_eq!(world.row(&id).evidence_count, before);
}

#[test]
fn an_ended_child_is_an_answer_without_evidence_and_without_a_runner() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    let started = Instant::now();
    let closing = world.service.close_stdin(&id).unwrap();
    assert!(started.elapsed() < PATIENCE);
    assert_eq!((closing.closed, closing.reason.as_deref()), (false, Some("the child has exited")));
    assert!(!world.kinds(&id).contains(&EvidenceKind::StdinClosed));
    runner.die();
}

#[test]
fn a_child_that_is_found_ended_meanwhile_is_the_same_answer() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let mut runner = FakeRunner::claim(&world, &id);
    runner.run(&world, &gone_process());
    runner.die();
    let closing = world.service.close_stdin(&id).unwrap();
    assert_eq!((closing.closed, closing.reason.as_deref()), (false, Some("the child has exited")));
    assert_eq!(closing.attempt.execution_state, ExecutionState::Exited);
}

#[test]
fn an_attempt_that_was_not_started_or_does_not_answer_is_a_conflict() {
    let world = World::new();
    let id = world.prepare(&request("b", "l"));
    let refused = refusal(world.service.close_stdin(&id));
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::Conflict, "the attempt was not started")
    );
    let (id, mut runner) = running(&world);
    let refused = refusal(world.service.close_stdin(&id));
    assert_eq!(refused.message, "the runner of the attempt does not answer");
    runner.answer(Generation::FIRST, |_, _| None);
    let refused = refusal(world.service.close_stdin(&id));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refusal(world.service.close_stdin(&attempt("never"))).code, Code::NotFound);
    assert_eq!(world.row(&id).state.execution, ExecutionState::Running);
}

#[test]
fn an_answer_that_contradicts_itself_is_not_believed() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.answer(Generation::FIRST, |_, _| {
        Some(ControlAnswer::CloseStdin(StdinReply { closed: false, reason: None }))
    });
    assert_eq!(refusal(world.service.close_stdin(&id)).code, Code::Conflict);
}
