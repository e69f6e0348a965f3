use crate::HostPlace::{Adopt, Keep};
use crate::testing::*;
use placement_contract::{AttemptId, Code, EvidenceKind, ExecutionState, Exit, Generation};
use placement_protocol::{AttachRefused, AttachReply, ControlAnswer, ControlCall};
use placement_store::{Attachment, Draft, Fields};
use std::sync::mpsc;

fn fenced() -> AttachReply {
    AttachReply { fenced: true, refused: None, consumed_through: 4, last_write_id: 2 }
}

fn running(world: &World) -> (AttemptId, FakeRunner) {
    let id = world.prepare(&request("a", "k"));
    let runner = FakeRunner::claim(world, &id);
    runner.run(world, &this_process());
    (id, runner)
}

#[test]
fn an_attempt_that_was_not_started_has_nothing_to_attach_to() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    assert_eq!(refusal(world.service.attach(&id, &recipient("r"), Keep)).code, Code::Conflict);
    assert_eq!(world.row(&id).evidence_count, 1);
}

#[test]
fn a_newer_recipient_is_bound_once_the_runner_has_fenced_the_older() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    runner.answer(Generation::FIRST, move |call, descriptor| {
        told.send((call, descriptor.is_some())).unwrap();
        Some(ControlAnswer::Attach(fenced()))
    });
    let attached = world.service.attach(&id, &recipient("second"), Keep).unwrap();
    assert_eq!(attached.attempt.attachment_generation, Generation::new(2));
    assert_eq!(attached.streams.generation(), Generation::new(2));
    let kinds = world.kinds(&id);
    assert_eq!(kinds[kinds.len() - 2..], [EvidenceKind::Attach, EvidenceKind::AttachFenced]);
    let (ControlCall::Attach(asked), descriptor) = heard.recv().unwrap() else {
        panic!("an attachment was asked for")
    };
    assert_eq!((asked.generation, asked.adopt, descriptor), (Generation::new(2), false, false));
    assert_eq!(asked.recipient, recipient("second"));
}

#[test]
fn an_adoption_hands_over_the_new_hosts_own_descriptor() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (told, heard) = mpsc::channel();
    runner.answer(Generation::FIRST, move |_, descriptor| {
        told.send(descriptor).unwrap();
        Some(ControlAnswer::Attach(fenced()))
    });
    world.service.attach(&id, &recipient("second"), Adopt).unwrap();
    let descriptor = heard.recv().unwrap().expect("a descriptor came with it");
    let own = placement_identity::ProcessIdentity::of_pidfd(
        std::os::fd::AsFd::as_fd(&descriptor),
        placement_identity::Pid::this_process(),
    );
    assert_eq!(own.unwrap().pid, this_process().pid);
}

#[test]
fn a_refused_attachment_leaves_the_former_one_bound() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.answer(Generation::FIRST, |_, _| {
        let refused = Some(AttachRefused::NotMonitorable);
        Some(ControlAnswer::Attach(AttachReply { fenced: false, refused, ..fenced() }))
    });
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Conflict);
    let row = world.row(&id);
    assert_eq!(row.attachment.generation, Generation::FIRST);
    assert_eq!(row.attachment.recipient, Some(recipient("first")));
    assert_eq!(row.state.execution, ExecutionState::Running);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::AttachRefused);
}

#[test]
fn a_silent_runner_makes_a_live_attempt_uncertain() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    runner.answer(Generation::FIRST, |_, _| None);
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Uncertain);
    assert_eq!(world.row(&id).state.execution, ExecutionState::Uncertain);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::AttachUnfenced);
}

#[test]
fn a_runner_that_cannot_be_reached_changes_nothing() {
    let world = World::new();
    let (id, _runner) = running(&world);
    let before = world.row(&id);
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Unavailable);
    assert_eq!(world.row(&id), before);
}

#[test]
fn a_recipient_is_bound_in_every_state_in_which_a_runner_answers() {
    let states = [
        (ExecutionState::Starting, None),
        (ExecutionState::Running, None),
        (ExecutionState::Stopping, Some(Draft::new(EvidenceKind::StopRequested, "cooperative"))),
        (ExecutionState::Exited, Some(Draft::exited(Some(Exit::Code { code: 0 })))),
        (ExecutionState::Uncertain, Some(Draft::new(EvidenceKind::StopUnproven, "nobody"))),
    ];
    for (state, row) in states {
        let world = World::new();
        let id = world.prepare(&request("a", "k"));
        let mut runner = FakeRunner::claim(&world, &id);
        if state != ExecutionState::Starting {
            runner.run(&world, &this_process());
        }
        if let Some(row) = row {
            world.record(&id, &[row], &Fields::default());
        }
        assert_eq!(world.row(&id).state.execution, state);
        runner.answer(Generation::FIRST, |_, _| Some(ControlAnswer::Attach(fenced())));
        let attached = world.service.attach(&id, &recipient("second"), Keep).unwrap();
        assert_eq!(attached.attempt.execution_state, state, "the state is not touched");
        assert_eq!(attached.attempt.attachment_generation, Generation::new(2), "{state}");
        assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::AttachFenced, "{state}");
    }
}

#[test]
fn a_silent_runner_of_an_exited_attempt_leaves_it_exited() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    runner.answer(Generation::FIRST, |_, _| None);
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(world.row(&id).state.execution, ExecutionState::Exited);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::AttachUnanswered);
    assert_eq!(world.last_detail(&id), "generation 2: no answer within 2000 ms");
}

#[test]
fn a_fence_of_another_attachment_is_none() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let manners = Manners { keeps_up: false, ..Manners::usual(Generation::FIRST) };
    runner.answer_with(manners, |_, _| Some(ControlAnswer::Attach(fenced())));
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Uncertain);
    assert_eq!(*world.kinds(&id).last().unwrap(), EvidenceKind::AttachUnfenced);
}

#[test]
fn an_attachment_that_was_recorded_meanwhile_comes_first_and_the_runner_is_not_asked() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let (service, other) = (world.service.clone(), id.clone());
    let before_welcome = Box::new(move || {
        let row = service.row(&other).unwrap();
        let generation = row.attachment.generation.next();
        let attachment = Some(Attachment { generation, recipient: Some(recipient("other")) });
        let fields = Fields { attachment, ..Fields::default() };
        let rows = [Draft::new(EvidenceKind::Attach, "generation 2")];
        let normal = placement_store::Durability::Normal;
        service.commit(&row, &rows, &fields, normal).unwrap().unwrap();
    });
    let manners = Manners { before_welcome, ..Manners::usual(Generation::FIRST) };
    runner.answer_with(manners, |call, _| panic!("{call:?}"));
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refused.message, "another attachment came first");
    let row = world.row(&id);
    assert_eq!(row.attachment.generation, Generation::new(2));
    assert_eq!(row.attachment.recipient, Some(recipient("other")));
}

#[test]
fn what_one_attachment_left_open_the_next_one_settles_under_a_newer_number() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    let mut calls = 0;
    runner.answer(Generation::FIRST, move |_, _| {
        calls += 1;
        // Only the second one is answered.
        (calls > 1).then(|| ControlAnswer::Attach(fenced()))
    });
    let refused = refusal(world.service.attach(&id, &recipient("second"), Keep));
    assert_eq!(refused.code, Code::Uncertain);
    let attached = world.service.attach(&id, &recipient("third"), Keep).unwrap();
    assert_eq!(attached.attempt.attachment_generation, Generation::new(3));
    assert_eq!(attached.attempt.execution_state, ExecutionState::Uncertain, "no proof of anything");
}

#[test]
fn an_ended_attempt_is_served_to_everybody_under_the_recorded_attachment() {
    let world = World::new();
    let (id, mut runner) = running(&world);
    world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
    runner.die();
    let before = world.row(&id).evidence_count;
    let attached = world.service.attach(&id, &recipient("second"), Keep).unwrap();
    assert_eq!(attached.streams.generation(), Generation::FIRST);
    assert_eq!(attached.attempt.evidence_count, before, "there is nobody to fence");
}
