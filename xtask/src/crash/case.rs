//! One case: launch, freeze at the point, kill, and all that comes after.

use super::aftermath;
use super::bed::{Bed, Host, Passed, Programs, Said};
use super::decoy::Decoy;
use super::facts::{Facts, Moment};
use super::judge::judge;
use super::processes::{is_frozen, reap_orphans, runs, signal, until};
use super::scenario::{Contained, Scenario, Victim};
use super::twins;
use placement::{CleanupState, ExecutionState};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a program that is not held by its gate is given to show itself.
const UNGATED: Duration = Duration::from_millis(40);

/// How often a case is tried whose point is not reached.
const TRIES: usize = 3;
pub(super) const NOT_REACHED: &str = "was not reached";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) scenario: Scenario,
    pub(super) contained: Contained,
    /// Where a process freezes, and who is killed then; without it nobody is.
    pub(super) kill: Option<(String, Victim)>,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Every point that was passed under the campaign, once each, in order.
    pub(super) passed: Vec<String>,
    /// How the attempt ended, in one phrase.
    pub(super) outcome: String,
    /// What must not be.
    pub(super) violations: Vec<String>,
    /// Why the case came to no end that could be judged.
    pub(super) failed: Option<String>,
    /// Why this is no case: the victim is not there at this point.
    pub(super) no_case: Option<String>,
    /// How many numbers of the dead were given to strangers.
    pub(super) decoys: usize,
}

/// Runs one job.
pub(super) fn run(job: &Job, programs: &Programs) -> Answer {
    let mut facts = Facts::of(job);
    let mut outcome = drive(job, programs, &mut facts);
    for _ in 1..TRIES {
        // On a busy machine a host may refuse a launch, since it could not measure in time.
        if !matches!(&outcome, Err(broken) if broken.contains(NOT_REACHED)) {
            break;
        }
        facts = Facts::of(job);
        outcome = drive(job, programs, &mut facts);
    }
    reap_orphans(&[]);
    let mut answer = Answer { decoys: facts.decoys, ..Answer::default() };
    for passed in &facts.passed {
        if !answer.passed.contains(&passed.point) {
            answer.passed.push(passed.point.clone());
        }
    }
    match outcome {
        Ok(Some(no_case)) => answer.no_case = Some(no_case),
        Ok(None) => (answer.outcome, answer.violations) = judge(job, &facts),
        Err(failed) => answer.failed = Some(format!("{failed}\n{}", facts.story())),
    }
    if !answer.violations.is_empty() {
        answer.violations.push(facts.story());
    }
    answer
}

/// Returns why this is no case; an error where the campaign itself, or the product in a way that no
/// rule names, failed.
fn drive(job: &Job, programs: &Programs, facts: &mut Facts) -> Result<Option<String>, String> {
    match job.scenario {
        Scenario::Twins => return twins::drive(job, programs, facts).map(|()| None),
        Scenario::Aftermath => return aftermath::drive(job, programs, facts).map(|()| None),
        Scenario::Ends
        | Scenario::Leaves
        | Scenario::Stopped
        | Scenario::Lost
        | Scenario::Refused => {}
    }
    let points: Vec<&str> = job.kill.iter().map(|(point, _)| point.as_str()).collect();
    let bed = Bed::make(programs, job.scenario, job.contained, &points)?;
    let mut host = bed.start()?;
    facts.host = host.pid();
    let end = watch(job, &bed, &mut host);
    facts.passed = bed.passed();
    let frozen = match (end?, &job.kill) {
        (Some(frozen), Some(_)) => frozen,
        (None, Some((point, _))) => {
            let said = bed.host_complained();
            return Err(format!("{point} {NOT_REACHED}: {}", said.trim()));
        }
        (_, None) => {
            settle(job, &bed, facts, Vec::new())?;
            return Ok(None);
        }
    };
    let (_, victim) = job.kill.as_ref().expect("looked at above");
    let runner = facts.runner().or_else(|| host.runner()).filter(|runner| runs(*runner));
    if victim.includes_runner() && runner.is_none() {
        signal(frozen.pid, Signal::CONT);
        end_everything(&bed, &mut host);
        return Ok(Some("no runner".to_owned()));
    }
    if facts.is_behind_its_gate() {
        std::thread::sleep(UNGATED);
        facts.ran_behind_its_gate = bed.runs() > 0;
    }
    kill(*victim, &mut host, runner)?;
    facts.look(Moment::Crash, &bed)?;
    let decoys = plant(*victim, facts, &host);
    recover(&bed, facts, &mut host, &frozen, *victim)?;
    settle(job, &bed, facts, decoys)?;
    Ok(None)
}

/// Watches until a process is frozen at the point, or the host has ended; does the scenario's part
/// meanwhile.
fn watch(job: &Job, bed: &Bed<'_>, host: &mut Host) -> Result<Option<Passed>, String> {
    let mut acted = !job.scenario.lives();
    let pid = host.pid();
    let seen = until(|| {
        reap_orphans(&[pid]);
        let passed = bed.passed();
        if let Some(frozen) = passed.iter().find(|one| one.frozen) {
            return is_frozen(frozen.pid).then(|| Some(frozen.clone()));
        }
        if host.has_ended() {
            // The last runner may still be frozen behind it.
            return bed.passed().iter().all(|one| !one.frozen).then_some(None);
        }
        if !acted && bed.is_up() && passed.iter().any(|one| one.point == "service.order.answered") {
            acted = true;
            match job.scenario {
                Scenario::Lost => {
                    let runner = passed.iter().find(|one| one.pid != pid).map(|one| one.pid);
                    signal(runner.unwrap_or(pid), Signal::KILL);
                }
                Scenario::Ends
                | Scenario::Leaves
                | Scenario::Stopped
                | Scenario::Refused
                | Scenario::Twins
                | Scenario::Aftermath => signal(pid, Signal::TERM),
            }
        }
        None
    });
    seen.ok_or_else(|| "neither the point nor the end came".to_owned())
}

/// Kills who is to die, and waits until they are dead.
pub(super) fn kill(victim: Victim, host: &mut Host, runner: Option<u32>) -> Result<(), String> {
    if victim.includes_host() {
        signal(host.pid(), Signal::KILL);
        if !host.ends() {
            return Err("the host does not die".to_owned());
        }
    }
    if let Some(runner) = runner.filter(|_| victim.includes_runner()) {
        signal(runner, Signal::KILL);
        until(|| (!runs(runner)).then_some(())).ok_or("the runner does not die")?;
    }
    Ok(())
}

/// Gives the numbers of the dead to strangers.
fn plant(victim: Victim, facts: &mut Facts, host: &Host) -> Vec<Decoy> {
    if !victim.includes_runner() {
        return Vec::new();
    }
    let numbers = facts.identified.clone();
    let decoys = numbers.into_iter().filter_map(|pid| Decoy::under(pid, &[host.pid()]));
    let decoys: Vec<Decoy> = decoys.collect();
    facts.decoys = decoys.len();
    decoys
}

/// Restarts: a fresh host looks while the survivor is still frozen, then the survivor goes on, and the
/// launch is retried.
fn recover(
    bed: &Bed<'_>,
    facts: &mut Facts,
    host: &mut Host,
    frozen: &Passed,
    victim: Victim,
) -> Result<(), String> {
    let runner_is_frozen = victim == Victim::Host && frozen.pid != host.pid();
    // One that is frozen within a transaction has the store's lock, and nobody else can write. Its
    // other thread may be within one wherever the first has come: then the store is busy, and honestly.
    if runner_is_frozen && !frozen.point.ends_with(".uncommitted") {
        let looked = bed.look()?;
        if let Some(attempt) = Bed::attempt(&looked)? {
            let said = bed.say(&["reconcile", attempt.attempt_id.as_str()]);
            if !said.stderr.contains("the store is busy") {
                facts.heard(said);
            }
            if attempt.execution_state == ExecutionState::Intended {
                facts.heard(bed.retry());
            }
        }
    }
    // The dead take no signal, but whoever has their number by now would.
    let is_dead =
        if frozen.pid == host.pid() { victim.includes_host() } else { victim.includes_runner() };
    if !is_dead {
        signal(frozen.pid, Signal::CONT);
    }
    if victim == Victim::Runner && !host.ends() {
        facts.violations.push("the host does not end after the death of its runner".to_owned());
    }
    facts.heard(bed.retry());
    Ok(())
}

/// Brings the attempt to its end as an operator would, looking at everything after each step.
pub(super) fn settle(
    job: &Job,
    bed: &Bed<'_>,
    facts: &mut Facts,
    mut decoys: Vec<Decoy>,
) -> Result<(), String> {
    let looked = bed.look()?;
    let attempt = Bed::attempt(&looked)?.ok_or("nothing is recorded after the retry")?;
    let id = attempt.attempt_id.to_string();
    let id = id.as_str();
    facts.heard(bed.say(&["reconcile", id]));
    if job.scenario.lives() {
        let state = looked.attempt(&attempt.attempt_id).map_err(|error| error.to_string())?;
        if state.execution_state.is_live() {
            facts.heard(bed.say(&["stop", id]));
        }
    }
    let attached = bed.say(&["--json", "attach", id]);
    facts.attached.clone_from(&attached.stdout);
    facts.heard(attached);
    facts.look(Moment::Attached, bed)?;
    facts.heard(bed.say(&["cleanup", id]));
    facts.look(Moment::Cleaned, bed)?;
    if facts.state() == Some(ExecutionState::Uncertain) {
        let reason = ["--operator", "--as", "exited", "--reason", "the campaign knows"];
        facts.heard(bed.say(&[&["resolve", id], &reason[..]].concat()));
        facts.heard(bed.say(&["cleanup", id]));
        facts.look(Moment::Resolved, bed)?;
    }
    if facts.cleanup() != Some(CleanupState::Complete) {
        facts.heard(bed.say(&["stop", "--force", id]));
        facts.heard(bed.say(&["reconcile", id]));
        facts.heard(bed.say(&["cleanup", id]));
        facts.look(Moment::Forced, bed)?;
    }
    facts.touched = decoys.iter_mut().any(|decoy| !decoy.is_untouched());
    drop(decoys);
    if facts.cleanup() != Some(CleanupState::Complete) {
        facts.heard(bed.say(&["cleanup", id]));
    }
    let replayed = bed.retry();
    facts.replayed = replayed.code;
    facts.heard(replayed);
    facts.look(Moment::End, bed)?;
    facts.host_said = bed.host_said();
    facts.heard(Said {
        command: "the host".to_owned(),
        code: None,
        stdout: String::new(),
        stderr: bed.host_complained(),
        took: Duration::ZERO,
    });
    facts.end_what_is_left();
    Ok(())
}

/// Ends what a job that is no case has started.
fn end_everything(bed: &Bed<'_>, host: &mut Host) {
    signal(host.pid(), Signal::TERM);
    host.ends();
    if let Ok(looked) = bed.look()
        && let Ok(Some(attempt)) = Bed::attempt(&looked)
    {
        bed.say(&["stop", "--force", attempt.attempt_id.as_str()]);
    }
}
