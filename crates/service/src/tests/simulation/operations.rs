//! The operations of a host, on whatever there is.

use super::bed::{Bed, OWNERS, Truth};
use super::life::Lie;
use super::runners::{bind_first, kill_runner, step_runner};
use super::steps::act;
use crate::IfUncertain::{EndSurvivors, Leave};
use crate::testing::{attempt, recipient, request};
use crate::{HostPlace, Item, Service};
use placement_contract::request::Argument;
use placement_contract::{
    AttemptId, CleanupScope, Code, Launch, LaunchRequest, Mechanism, OwnerId, Refusal, Supervision,
    Timeouts,
};
use placement_protocol::StopMode;
use std::fmt::Display;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long an item of a log may take to come; it is there.
const ITEM: Duration = Duration::from_secs(5);

/// Says what an operation was answered.
pub(super) fn told<T: Display>(answer: Result<T, Refusal>) -> String {
    match answer {
        Ok(value) => value.to_string(),
        Err(refusal) => refusal.code.to_string(),
    }
}

/// Prepares another attempt.
pub(super) fn prepare(bed: &Rc<Bed>) {
    let number = bed.truths.borrow().len() + 1;
    let owner = bed.below(OWNERS.len());
    let id = format!("a{number}");
    let scopes = [
        (CleanupScope::DirectProcess, None),
        (CleanupScope::ProcessGroup, None),
        (CleanupScope::ContainedTree, Some(Mechanism::Subreaper)),
        (CleanupScope::ContainedTree, Some(Mechanism::PidNamespace)),
        (CleanupScope::ContainedTree, Some(Mechanism::Cgroup)),
    ];
    let (required_cleanup, mechanism) = scopes[bed.below(scopes.len())];
    let request = LaunchRequest {
        owner_id: OwnerId::parse(OWNERS[owner]).unwrap(),
        required_cleanup,
        supervision: Supervision { mechanism, keep_home: bed.chance(6), ..Supervision::default() },
        timeouts: Timeouts { start_ms: 5_000, stop_grace_ms: 100, drain_ms: 100, retain_ms: 100 },
        ..request(&id, &format!("key-{id}"))
    };
    // Told before it is recorded: a host may end right behind its commit.
    let truth = Truth::new(attempt(&id), owner, request.clone());
    bed.truths.borrow_mut().insert(truth.id.clone(), truth);
    let what = format!("prepare {id} {required_cleanup}");
    let answer = act(bed, owner, &what, |service| prepared(service, &request));
    let there = bed.runners.find_any(&attempt(&id)).unwrap().is_some();
    if let Some(Ok(_)) = answer
        && !there
    {
        bed.broke(format!("{id} was prepared and is not recorded"));
    }
    if !there {
        bed.truths.borrow_mut().remove(&attempt(&id));
    }
}

fn prepared(service: &Service, request: &LaunchRequest) -> Result<AttemptId, Refusal> {
    service.prepare(request).map(|attempt| attempt.attempt_id)
}

/// Prepares again what was prepared, or another launch under its key.
pub(super) fn replay(bed: &Rc<Bed>) {
    let Some(id) = bed.pick() else { return };
    let (owner, request) = bed.truth(&id, |truth| (truth.owner, truth.request.clone()));
    let host = if owner == 2 { 2 } else { bed.below(2) };
    if bed.chance(2) {
        let launch = Launch::of(Argument::parse("false").unwrap());
        let other = LaunchRequest { launch, ..request };
        let what = format!("prepare something else as {id}");
        let answer = act(bed, host, &what, |service| prepared(service, &other));
        match answer {
            None => {}
            Some(Err(refusal)) if matches!(refusal.code, Code::Conflict | Code::Storage) => {}
            Some(other) => bed.broke(format!("{id}: its key was taken for another: {other:?}")),
        }
        return;
    }
    let what = format!("prepare {id} again");
    match act(bed, host, &what, |service| prepared(service, &request)) {
        Some(Ok(same)) if same != id => bed.broke(format!("{id}: its key gave {same}")),
        Some(Err(refusal)) if refusal.code != Code::Storage => {
            bed.broke(format!("{id}: a retry was refused: {refusal}"));
        }
        Some(_) | None => {}
    }
}

/// Lets any host do anything to any attempt.
pub(super) fn any(bed: &Rc<Bed>) {
    let Some(id) = bed.pick() else { return };
    let owner = bed.truth(&id, |truth| truth.owner);
    let of_owner = if owner == 2 { 2 } else { bed.below(2) };
    if bed.chance(12) {
        return trespass(bed, &id, owner);
    }
    let host = of_owner;
    match bed.below(16) {
        0 | 1 => start(bed, host, &id),
        2 | 3 => stop(bed, host, &id),
        4 | 5 => {
            let state = |service: &Service| service.reconcile(&id).map(|it| it.execution_state);
            act(bed, host, &format!("reconcile {id}"), state);
        }
        6 => drop(act(bed, host, "sweep", |service| service.sweep().map(|it| it.reconciled))),
        7 => drop(act(bed, host, "reconcile all", |service| {
            service.reconcile_all().map(|it| it.attempts.len())
        })),
        8 => cleanup(bed, host, &id),
        9 => attach(bed, host, &id),
        10..=13 => read(bed, host, &id),
        14 => {
            let resolve = |service: &Service| {
                let operator = service.root_owner();
                service.resolve(&id, &operator, "seen on the machine").map(|it| it.execution_state)
            };
            act(bed, host, &format!("resolve {id}"), resolve);
        }
        _ => drop(act(bed, host, "prune", |service| {
            let age = Duration::from_secs(1);
            service.prune(age).map(|it| it.pruned.len())
        })),
    }
}

/// What somebody else does at a point of an operation.
pub(super) fn beside(bed: &Rc<Bed>) {
    let Some(id) = bed.pick() else { return };
    if bed.earlier_boot.get() {
        return step_runner(bed, &id);
    }
    let owner = bed.truth(&id, |truth| truth.owner);
    let service = bed.host(owner);
    let supervised = bed.truth(&id, |truth| truth.supervised);
    let (what, answer) = match bed.below(7) {
        0 => return kill_runner(bed, &id),
        1 => return step_runner(bed, &id),
        2 => {
            // A start by another host, whose runner is quick.
            bind_first(bed, &id);
            return step_runner(bed, &id);
        }
        3 => {
            let stopped = service.stop(&id, StopMode::Cooperative, Leave);
            ("stop", told(stopped.map(|it| it.execution_state)))
        }
        4 if !supervised => ("cleanup", told(service.cleanup(&id).map(|it| it.cleanup_state))),
        5 => {
            let attached = service.attach(&id, &recipient("beside"), HostPlace::Keep);
            ("attach", told(attached.map(|it| it.attempt.attachment_generation)))
        }
        _ => ("reconcile", told(service.reconcile(&id).map(|it| it.execution_state))),
    };
    bed.note(format!("    h{owner} {what} {id}: {answer}"));
}

/// Another owner's attempt is not there, whatever is asked.
fn trespass(bed: &Rc<Bed>, id: &AttemptId, owner: usize) {
    let host = if owner == 2 { 0 } else { 2 };
    let stop = |service: &Service| service.stop(id, StopMode::Forced, Leave).map(|_| "stopped");
    match act(bed, host, &format!("stop {id} of another"), stop) {
        Some(Err(refusal)) if matches!(refusal.code, Code::NotFound | Code::Storage) => {}
        None => {}
        Some(other) => bed.broke(format!("{id}: another owner was answered {other:?}")),
    }
}

/// Starts with a runner that ends at once, before its claim.
fn start(bed: &Rc<Bed>, host: usize, id: &AttemptId) {
    act(bed, host, &format!("start {id}"), |service| {
        let started = service.start(id, &recipient("starter"));
        started.map(|started| started.attempt.execution_state)
    });
}

fn stop(bed: &Rc<Bed>, host: usize, id: &AttemptId) {
    let mode = if bed.chance(2) { StopMode::Forced } else { StopMode::Cooperative };
    let survivors = if bed.chance(8) { EndSurvivors } else { Leave };
    let what = format!("stop {id} {mode:?} {survivors:?}");
    act(bed, host, &what, |service| {
        service.stop(id, mode, survivors).map(|attempt| attempt.execution_state)
    });
}

fn cleanup(bed: &Rc<Bed>, host: usize, id: &AttemptId) {
    // It would wait for a runner that only goes on in a later step.
    if !bed.truth(id, |truth| truth.supervised) {
        act(bed, host, &format!("cleanup {id}"), |service| {
            service.cleanup(id).map(|attempt| attempt.cleanup_state)
        });
    }
}

fn attach(bed: &Rc<Bed>, host: usize, id: &AttemptId) {
    let place = if bed.chance(2) { HostPlace::Adopt } else { HostPlace::Keep };
    let name = format!("reader{}", bed.below(3));
    act(bed, host, &format!("attach {name} to {id}"), |service| {
        let attached = service.attach(id, &recipient(&name), place);
        attached.map(|attached| attached.attempt.attachment_generation)
    });
}

/// Reads what is left of an ended attempt's output, and acknowledges some of it.
fn read(bed: &Rc<Bed>, host: usize, id: &AttemptId) {
    let (supervised, claims) = bed.truth(id, |truth| (truth.supervised, truth.claims));
    if supervised || claims == 0 {
        return;
    }
    let wanted = 1 + bed.below(5);
    let acknowledged = bed.chance(2);
    act(bed, host, &format!("read {id}"), |service| {
        let mut streams = service.attach(id, &recipient("late"), HostPlace::Keep)?.streams;
        let mut last = 0;
        for _ in 0..wanted {
            let item = streams.next(Some(Instant::now() + ITEM))?;
            match item {
                Some(Item::Chunk { sequence, bytes, .. }) => {
                    check_item(bed, id, last, sequence, &bytes);
                    last = sequence;
                }
                Some(Item::Eof { sequence, .. }) => {
                    check_item(bed, id, last, sequence, &[]);
                    last = sequence;
                }
                Some(Item::Exit { .. } | Item::Gap { .. }) => {}
                Some(Item::Input { .. } | Item::Resized { .. } | Item::Taken | Item::End) => break,
                None => bed.broke(format!("{id}: its log does not come")),
            }
        }
        if acknowledged && last > 0 {
            if bed.lie != Lie::DeliveredAgain {
                streams.acknowledge(last)?;
            }
            bed.truth(id, |truth| truth.acknowledged = truth.acknowledged.max(last));
        }
        Ok(last)
    });
}

/// The first record is the one behind the acknowledged, and each is what was written.
fn check_item(bed: &Bed, id: &AttemptId, last: u64, sequence: u64, bytes: &[u8]) {
    bed.truth(id, |truth| {
        let expected = if last == 0 { truth.acknowledged } else { last } + 1;
        let place = usize::try_from(sequence).unwrap_or_default();
        let written = place.checked_sub(1).and_then(|place| truth.output.get(place));
        let broken = if sequence < expected {
            "was acknowledged and came again"
        } else if sequence > expected {
            "came before one that is missing"
        } else if written.is_none_or(|written| written != bytes) {
            "is not what was written"
        } else {
            return;
        };
        bed.broke(format!("{id}: record {sequence} {broken}"));
    });
}

impl Truth {
    fn new(id: AttemptId, owner: usize, request: LaunchRequest) -> Self {
        Self {
            id,
            owner,
            request,
            waiting: Vec::new(),
            claims: 0,
            runner: None,
            elsewhere: false,
            supervised: false,
            ran: false,
            leader_lives: false,
            escapee_lives: false,
            rebooted: false,
            home: None,
            output: Vec::new(),
            acknowledged: 0,
            seen: None,
            pruned: false,
        }
    }
}
