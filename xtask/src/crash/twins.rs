//! Two hosts, one key: the second one starts the attempt while the first one's runner, frozen, has
//! not claimed it.

use super::bed::{Bed, Host, Passed, Programs};
use super::case::{Job, settle};
use super::facts::{Facts, Moment};
use super::processes::{is_frozen, reap_orphans, runs, signal, until};
use rustix::process::Signal;

/// Where a runner has its order and no claim.
const UNCLAIMED: &str = "runner.order.taken";
/// Where the program runs and the attempt is still starting: whoever claims it now is believed.
const EXECUTED: &str = "runner.program.executed";

/// Lets both runners go for the claim, that of the living host first; each that wins freezes once more with its
/// program running and not yet recorded as that.
pub(super) fn drive(job: &Job, programs: &Programs, facts: &mut Facts) -> Result<(), String> {
    let bed = Bed::make(programs, job.scenario, job.contained, &[UNCLAIMED, EXECUTED])?;
    let mut first = bed.start()?;
    let one = frozen_at(&bed, &[&first], UNCLAIMED, &[]).ok_or("no runner came to its claim")?;
    signal(first.pid(), Signal::KILL);
    if !first.ends() {
        return Err("the host does not die".to_owned());
    }
    facts.look(Moment::Crash, &bed)?;
    let mut second = bed.start()?;
    facts.host = second.pid();
    let other = frozen_at(&bed, &[&second], UNCLAIMED, &[one])
        .ok_or("no second runner came to its claim")?;
    for runner in [other, one] {
        signal(runner, Signal::CONT);
        until(|| {
            reap_orphans(&[second.pid()]);
            let is_executed = |passed: &Passed| {
                passed.pid == runner && passed.point == EXECUTED && is_frozen(runner)
            };
            (!runs(runner) || bed.passed().iter().any(is_executed)).then_some(())
        })
        .ok_or("a runner neither wins the claim nor ends")?;
    }
    for runner in [one, other].into_iter().filter(|runner| is_frozen(*runner)) {
        signal(runner, Signal::CONT);
    }
    if !second.ends() {
        facts.violations.push("the second host does not end".to_owned());
    }
    facts.passed = bed.passed();
    settle(job, &bed, facts, Vec::new())
}

/// Waits until a process that is not known yet is frozen at a point.
fn frozen_at(bed: &Bed<'_>, hosts: &[&Host], point: &str, known: &[u32]) -> Option<u32> {
    let kept: Vec<u32> = hosts.iter().map(|host| host.pid()).collect();
    until(|| {
        reap_orphans(&kept);
        let passed = bed.passed();
        let frozen = passed.iter().find(|one| {
            one.frozen && one.point == point && !known.contains(&one.pid) && is_frozen(one.pid)
        });
        frozen.map(|one| one.pid)
    })
}
