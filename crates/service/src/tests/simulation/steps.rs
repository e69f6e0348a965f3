//! One step of a life: who acts, on what, and what goes wrong meanwhile.

use super::bed::{Bed, OWNERS};
use super::life::Lie;
use super::operations;
use super::runner::serve;
use super::runners::{kill_runner, step_runner};
use crate::Service;
use crate::testing::this_process;
use placement_contract::{AttemptId, Refusal};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Attempts of one life.
const ATTEMPTS_MAX: usize = 5;
/// Points within which something goes wrong, when it does.
const POINTS: usize = 6;

/// The end of a host at a point.
struct Killed;

/// What happens at a point of an operation.
#[derive(Clone, Copy)]
enum Fault {
    Nothing,
    /// The host ends there.
    Kill,
    /// Somebody else acts there.
    Other,
    /// The store cannot be written from there on.
    Busy,
}

/// Takes one step, whoever's it is.
pub(super) fn take(bed: &Rc<Bed>) {
    if bed.lie == Lie::StrangerEnded && bed.chance(20) {
        bed.stranger.borrow_mut().kill();
    }
    match bed.below(20) {
        0..=8 => {
            if let Some(id) = bed.pick() {
                (0..=bed.below(3)).for_each(|_| step_runner(bed, &id));
            }
        }
        9 if bed.chance(2) => {
            if let Some(id) = bed.pick() {
                kill_runner(bed, &id);
            }
        }
        9 if bed.chance(2) => move_clock(bed),
        9 => {
            let host = bed.below(OWNERS.len());
            bed.note(format!("h{host} starts again"));
            bed.restart(host);
        }
        10..=12 if bed.truths.borrow().len() < ATTEMPTS_MAX => operations::prepare(bed),
        10 => operations::replay(bed),
        _ => operations::any(bed),
    }
}

/// Before the machine is started again nobody looks at a process: what is recorded then is seen only
/// afterwards, as of an earlier boot.
pub(super) fn take_before_the_boot(bed: &Rc<Bed>) {
    match bed.below(4) {
        0 if bed.truths.borrow().len() < 4 => operations::prepare(bed),
        _ => {
            if let Some(id) = bed.pick() {
                step_runner(bed, &id);
            }
        }
    }
}

/// The end of everything that runs, without a last word.
pub(super) fn start_the_machine_again(bed: &Rc<Bed>) {
    bed.note("the machine starts again");
    let ids: Vec<AttemptId> = bed.truths.borrow().keys().cloned().collect();
    let known = this_process().observer.machine_id.is_some();
    for id in ids {
        kill_runner(bed, &id);
        bed.truth(&id, |truth| {
            truth.waiting.clear();
            truth.escapee_lives = false;
            truth.rebooted = truth.claims > 0 && known;
            // Without a machine id another boot id may be another machine's.
            truth.elsewhere |= truth.claims > 0 && !known;
        });
    }
    (0..OWNERS.len()).for_each(|host| bed.restart(host));
}

/// Ends every runner and lets each owner settle and clean what it has, in part by an operator's word.
pub(super) fn settle(bed: &Rc<Bed>) {
    bed.note("everybody ends, and each owner settles");
    let ids: Vec<AttemptId> = bed.truths.borrow().keys().cloned().collect();
    for id in ids {
        kill_runner(bed, &id);
        let host = bed.truth(&id, |truth| truth.owner);
        let service = bed.host(host);
        let settled = service.reconcile(&id).map(|attempt| attempt.execution_state);
        bed.note(format!("{id} {}", operations::told(settled)));
        if bed.chance(2) {
            let operator = service.root_owner();
            let word = service.resolve(&id, &operator, "nobody acts any more");
            bed.note(format!("{id} {}", operations::told(word.map(|it| it.execution_state))));
        }
        let cleaned = service.cleanup(&id).map(|attempt| attempt.cleanup_state);
        bed.note(format!("{id} {}", operations::told(cleaned)));
    }
}

/// Lets a host act, with what goes wrong meanwhile, and notes what it was answered.
pub(super) fn act<T: std::fmt::Display>(
    bed: &Rc<Bed>,
    host: usize,
    what: &str,
    body: impl FnOnce(&Service) -> Result<T, Refusal>,
) -> Option<Result<T, Refusal>> {
    let fault = match bed.below(10) {
        0 => Fault::Kill,
        1 | 2 => Fault::Other,
        3 => Fault::Busy,
        _ => Fault::Nothing,
    };
    let mut points_left = bed.below(POINTS);
    let kept = Rc::new(std::cell::RefCell::new(None));
    if matches!(fault, Fault::Busy) && points_left == 0 {
        *kept.borrow_mut() = Some(bed.keep_store());
        bed.note("  the store is kept from all");
    }
    let at = Rc::clone(bed);
    let keeping = Rc::clone(&kept);
    let watcher = move |point: &str| {
        // The lock and a transaction are held there: nobody else can act.
        let within = point.ends_with(".uncommitted");
        if points_left == usize::MAX || (within && !matches!(fault, Fault::Kill)) {
            return;
        }
        if points_left > 0 {
            points_left -= 1;
            return;
        }
        points_left = usize::MAX;
        match fault {
            Fault::Nothing => {}
            Fault::Kill => {
                at.note(format!("  it ends at {point}"));
                resume_unwind(Box::new(Killed));
            }
            Fault::Other => {
                at.note(format!("  at {point}:"));
                operations::beside(&at);
            }
            Fault::Busy => {
                at.note(format!("  from {point} on the store is kept from all"));
                keeping.borrow_mut().get_or_insert_with(|| at.keep_store());
            }
        }
    };
    let service = bed.host(host);
    let end = AtomicBool::new(false);
    let living = Arc::clone(&bed.living);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| serve(&living, &end));
        let done =
            catch_unwind(AssertUnwindSafe(|| placement_crash::watch(watcher, || body(&service))));
        end.store(true, Ordering::SeqCst);
        done
    });
    drop(kept.borrow_mut().take());
    match done {
        Ok(answer) => {
            let told = match &answer {
                Ok(value) => format!("{value}"),
                Err(refusal) => refusal.code.to_string(),
            };
            bed.note(format!("h{host} {what}: {told}"));
            Some(answer)
        }
        Err(payload) if payload.is::<Killed>() => {
            bed.note(format!("h{host} {what}: it ended"));
            drop(service);
            bed.restart(host);
            None
        }
        Err(payload) => resume_unwind(payload),
    }
}

fn move_clock(bed: &Bed) {
    let now = bed.clock.0.unix_ms();
    let by = i64::try_from(bed.below(7_200_000)).unwrap() - 3_600_000;
    bed.note(format!("the clock goes by {by} ms"));
    bed.clock.0.set(now + by);
}
