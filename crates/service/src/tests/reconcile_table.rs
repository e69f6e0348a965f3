//! The table of a reconcile, row by row: what is recorded, what is seen, and what becomes of it.

use crate::testing::*;
use placement_contract::EvidenceKind::{
    ChildCreating, ChildIdentified, ChildNotStarted, ChildStarted, ReconcileAbsent, ReconcileAlive,
    ReconcileSupervised, ReconcileUnidentified, ReconcileUnobserved, StopRequested,
};
use placement_contract::ExecutionState::{Exited, Running, Starting, Stopping, Uncertain};
use placement_contract::{AttemptId, EvidenceKind, ExecutionState, Exit, ExitSource};
use placement_identity::{Presence, ProcessIdentity, Signal};
use placement_process::Started;
use placement_store::{Draft, Fields};

/// What is recorded of a child, and what a look at it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Child {
    /// Nothing, and it never ran.
    None,
    /// Nothing, although it ran.
    Lost,
    /// It cannot be seen from here.
    Unseen,
    /// It runs.
    Alive,
    /// Nobody has its number any more.
    Gone,
    /// Another process has its number.
    Replaced,
    /// It was of an earlier boot of this machine.
    OfAnEarlierBoot,
}

/// What a look at the runner finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    Lives,
    Gone,
    Unseen,
}

/// What was recorded, with the processes that are part of it.
struct Scene {
    id: AttemptId,
    /// Lives as long as this, where it is one that lives.
    _runner: FakeRunner,
    child: Option<(Started, ProcessIdentity)>,
}

impl Scene {
    /// Ends the child that runs, which nobody may have signalled.
    #[track_caller]
    fn end(&mut self) {
        let Some((started, identity)) = &mut self.child else { return };
        let Presence::Present(alive) = identity.observe() else { panic!("it was signalled") };
        alive.signal(Signal::Kill).unwrap();
        started.wait().unwrap();
    }
}

/// Makes the attempt, reconciles it twice and asserts what became of it: the second look says nothing
/// new.
#[track_caller]
fn assert_becomes(
    from: ExecutionState,
    child: Child,
    runner: Runner,
    to: ExecutionState,
    says: Option<EvidenceKind>,
) {
    let case = format!("{from}, child {child:?}, runner {runner:?}");
    let world = World::new();
    let mut scene = recorded(&world, from, child, runner);
    let id = scene.id.clone();
    let before = world.kinds(&id);
    let settled = world.service.reconcile(&id).unwrap();
    assert_eq!(settled.execution_state, to, "{case}");
    let kinds = world.kinds(&id);
    assert_eq!(kinds[before.len()..].first().copied(), says, "{case}: {kinds:?}");
    assert_eq!(kinds.len(), before.len() + usize::from(says.is_some()), "{case}: {kinds:?}");
    let source = match says {
        Some(ChildNotStarted) => Some(ExitSource::Runner),
        Some(ReconcileAbsent) => Some(ExitSource::Reconcile),
        Some(_) | None => None,
    };
    assert_eq!((settled.exit_source, settled.exit), (source, None), "{case}");
    world.service.reconcile(&id).unwrap();
    assert_eq!(world.kinds(&id), kinds, "{case}: said twice");
    assert!(world.service.verify(&id, None).unwrap().sound, "{case}");
    scene.end();
}

/// An attempt in a state, with its child and its runner.
fn recorded(world: &World, state: ExecutionState, child: Child, runner: Runner) -> Scene {
    let id = world.prepare(&request("a", "k"));
    let elsewhere = |mut identity: ProcessIdentity| {
        identity.observer.pid_namespace = 7;
        identity
    };
    let earlier = |identity: ProcessIdentity| {
        let boot_id = "00000000-0000-0000-0000-00000000000f".to_owned();
        ProcessIdentity { boot_id, ..identity }
    };
    // Everything of an attempt is of one place: its runner measured its child.
    let mut played = FakeRunner::claim_as(
        world,
        &id,
        match (runner, child) {
            (Runner::Unseen, _) | (_, Child::Unseen) => elsewhere(this_process()),
            (_, Child::OfAnEarlierBoot) => earlier(this_process()),
            (Runner::Lives | Runner::Gone, _) => this_process(),
        },
    );
    let mut living = None;
    let identity = match child {
        Child::None | Child::Lost => None,
        Child::Unseen => Some(elsewhere(this_process())),
        Child::Alive => {
            let (started, identity) = process("exec sleep 600");
            living = Some((started, identity.clone()));
            Some(identity)
        }
        Child::Gone => Some(gone_process()),
        Child::Replaced => {
            let this = this_process();
            let start_ticks = this.start_ticks + 1;
            Some(ProcessIdentity { start_ticks, pidfd_inode: None, ..this })
        }
        Child::OfAnEarlierBoot => Some(earlier(this_process())),
    };
    let record = |kind, fields: &Fields| {
        world.record(&id, &[Draft::new(kind, "for this test")], fields);
    };
    if child != Child::None {
        record(ChildCreating, &Fields::default());
        if identity.is_some() {
            record(ChildIdentified, &Fields { child: identity, ..Fields::default() });
        }
        if state != Starting {
            record(ChildStarted, &Fields::default());
        }
    }
    match state {
        Stopping => record(StopRequested, &Fields::default()),
        Uncertain => record(EvidenceKind::StopUnproven, &Fields::default()),
        Exited => {
            world.record(&id, &[Draft::exited(Some(Exit::Code { code: 0 }))], &Fields::default());
        }
        ExecutionState::Intended | Starting | Running => {}
    }
    assert_eq!(world.row(&id).state.execution, state);
    match runner {
        Runner::Lives => {}
        Runner::Gone => played.die(),
        Runner::Unseen => {
            let directory = played.directory.dir().path().unwrap();
            std::fs::remove_file(directory.join("alive")).unwrap();
        }
    }
    Scene { id, _runner: played, child: living }
}

#[test]
fn an_exited_attempt_stays_as_it_is() {
    for runner in [Runner::Lives, Runner::Gone] {
        for child in [Child::Alive, Child::Gone, Child::Unseen] {
            let world = World::new();
            let mut scene = recorded(&world, Exited, child, runner);
            let before = world.row(&scene.id);
            let settled = world.service.reconcile(&scene.id).unwrap();
            assert_eq!(settled.evidence_count, before.evidence_count, "{child:?} {runner:?}");
            assert_eq!(settled.exit, Some(Exit::Code { code: 0 }));
            scene.end();
        }
    }
}

#[test]
fn without_an_identity_a_runner_that_is_gone_proves_that_no_child_was() {
    for from in [Starting, Stopping, Uncertain] {
        assert_becomes(from, Child::None, Runner::Gone, Exited, Some(ChildNotStarted));
    }
}

#[test]
fn without_an_identity_a_runner_that_cannot_be_seen_leaves_it_uncertain() {
    for from in [Starting, Stopping] {
        let says = Some(ReconcileUnidentified);
        assert_becomes(from, Child::None, Runner::Unseen, Uncertain, says);
    }
    assert_becomes(Uncertain, Child::None, Runner::Unseen, Uncertain, None);
}

#[test]
fn a_child_that_ran_and_whose_identity_is_lost_is_never_taken_for_not_started() {
    for runner in [Runner::Gone, Runner::Unseen] {
        for from in [Running, Stopping] {
            assert_becomes(from, Child::Lost, runner, Uncertain, Some(ReconcileUnidentified));
        }
        assert_becomes(Uncertain, Child::Lost, runner, Uncertain, None);
    }
}

#[test]
fn a_living_runner_is_believed_in_every_state() {
    for from in [Starting, Stopping, Uncertain] {
        assert_becomes(from, Child::None, Runner::Lives, from, None);
    }
    assert_becomes(Running, Child::Lost, Runner::Lives, Running, Some(ReconcileSupervised));
    for from in [Starting, Running, Stopping, Uncertain] {
        for child in [Child::Unseen, Child::Alive, Child::Gone, Child::Replaced] {
            assert_becomes(from, child, Runner::Lives, from, None);
        }
    }
}

#[test]
fn a_child_that_cannot_be_observed_is_uncertain_once_its_runner_does_not_answer_for_it() {
    for runner in [Runner::Gone, Runner::Unseen] {
        for from in [Starting, Running, Stopping] {
            assert_becomes(from, Child::Unseen, runner, Uncertain, Some(ReconcileUnobserved));
        }
        assert_becomes(Uncertain, Child::Unseen, runner, Uncertain, None);
    }
}

#[test]
fn a_child_that_runs_without_its_runner_is_told_alive_and_its_state_stays() {
    for from in [Starting, Running, Stopping, Uncertain] {
        assert_becomes(from, Child::Alive, Runner::Gone, from, Some(ReconcileAlive));
    }
}

#[test]
fn a_child_that_is_proven_absent_has_exited_and_nobody_knows_how() {
    let mut children = vec![Child::Gone, Child::Replaced];
    if this_process().observer.machine_id.is_some() {
        children.push(Child::OfAnEarlierBoot);
    } else {
        println!("no machine id here: another boot proves nothing");
    }
    for child in children {
        for from in [Starting, Running, Stopping, Uncertain] {
            assert_becomes(from, child, Runner::Gone, Exited, Some(ReconcileAbsent));
        }
    }
}
