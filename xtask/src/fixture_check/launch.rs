//! Runs one scenario through the facade.

use super::outcome::Outcome;
use super::prepared;
use super::scenario::{Act, Action, Moment, Scenario};
use crate::command::Failure;
use crate::proving_ground::{ProvingGround, end, told};
use camino::Utf8Path;
use placement::{
    Attempt, AttemptHandle, CapabilityReport, CleanupScope, CleanupState, Launch, Mechanism,
    StreamName,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Longest run of a scenario that sets no deadline of its own; a broken one ends by it.
const RUN_MAX: Duration = Duration::from_mins(1);

/// Whether a scenario could be run on this machine.
#[derive(Debug)]
pub(super) enum Ran {
    /// It was run; what came of it.
    ToTheEnd(Box<Outcome>),
    /// This machine lacks what it demands.
    NotHere(String),
}

/// Launches the scenario's program in a fresh root and returns what came of it.
///
/// `mechanism` is the containment where the scenario leaves it to the host.
pub(super) fn run(
    scenario: &Scenario,
    mechanism: Option<Mechanism>,
    runner: Option<&Utf8Path>,
) -> Result<Ran, Failure> {
    let ground = ProvingGround::open(runner)?;
    let mechanism = scenario.mechanism.or(mechanism.filter(|_| scenario.contains_a_tree()));
    let measured =
        ground.host().capabilities().map_err(|error| told("measure this machine", &error))?;
    if let Some(reason) = missing(scenario, mechanism, &measured.report) {
        return Ok(Ran::NotHere(reason));
    }
    put_files(scenario, &ground.work())?;
    let outcome = if scenario.is_prepared_apart() {
        prepared::run(scenario, &ground)?
    } else {
        launch(scenario, mechanism, &ground)?
    };
    Ok(Ran::ToTheEnd(Box::new(outcome)))
}

/// Says what the scenario demands and this machine does not give.
fn missing(
    scenario: &Scenario,
    mechanism: Option<Mechanism>,
    measured: &CapabilityReport,
) -> Option<String> {
    if let Some(mechanism) = mechanism
        && !measured.of(mechanism).is_some_and(|report| report.available)
    {
        return Some(format!("it demands {mechanism}, which does not work here"));
    }
    let scope = scenario.require?;
    let given = measured.capability;
    (!given.satisfies(scope)).then(|| format!("it requires {scope}, and {given} was measured here"))
}

fn put_files(scenario: &Scenario, work: &Utf8Path) -> Result<(), Failure> {
    for (name, text) in &scenario.files {
        let path = work.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)))
            .map_err(|error| Failure::io("write", &path, &error))?;
    }
    Ok(())
}

fn launch(
    scenario: &Scenario,
    mechanism: Option<Mechanism>,
    ground: &ProvingGround,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    match ground.host().launch(described(scenario, mechanism, ground)) {
        Ok(attempt) => {
            let followed = follow(scenario, ground, &attempt, &mut outcome);
            if followed.is_err() {
                // Nobody waits for it any more; one that has ended needs no stop.
                attempt.stop_forced().ok();
            }
            let ended = attempt.finish().map_err(|error| told("finish", &error));
            followed?;
            settle(&mut outcome, ground, ended?.attempt())?;
        }
        Err(refusal) => {
            outcome.refused = Some(refusal.code());
            let list = ground.host().attempts().all();
            let list = list.map_err(|error| told("list the attempts", &error))?;
            if let Some(attempt) = list.attempts.first() {
                settle(&mut outcome, ground, attempt)?;
            }
        }
    }
    Ok(outcome)
}

fn described(scenario: &Scenario, mechanism: Option<Mechanism>, ground: &ProvingGround) -> Launch {
    let work = ground.work();
    let here = |text: &String| text.replace("{dir}", work.as_str());
    let mut launch = Launch::program(here(&scenario.program))
        .args(scenario.args.iter().map(here))
        .write(&work)
        .timeouts(scenario.timeouts)
        .deadline(scenario.supervision.deadline_ms.map_or(RUN_MAX, Duration::from_millis));
    for (name, value) in &scenario.env {
        launch = launch.env(name, value);
    }
    if let Some(text) = &scenario.stdin {
        launch = launch.stdin_text(text);
    }
    if let Some(scope) = scenario.require {
        launch = launch.require(scope);
    }
    if let Some(mechanism) = mechanism {
        launch = launch.mechanism(mechanism);
    }
    if let Some(rule) = scenario.supervision.on_host_loss {
        launch = launch.on_host_loss(rule);
    }
    if let Some(rule) = scenario.supervision.leftovers {
        launch = launch.leftovers(rule);
    }
    launch
}

/// Reads the output to its end and does what is due meanwhile.
fn follow(
    scenario: &Scenario,
    ground: &ProvingGround,
    attempt: &AttemptHandle,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let mut due = scenario.happens.as_slice();
    act(&mut due, scenario, ground, attempt, outcome)?;
    for chunk in attempt.output() {
        let chunk = chunk.map_err(|error| told("read the output", &error))?;
        match chunk.stream() {
            StreamName::Stdout => outcome.stdout.extend_from_slice(chunk.bytes()),
            StreamName::Stderr => outcome.stderr.extend_from_slice(chunk.bytes()),
        }
        act(&mut due, scenario, ground, attempt, outcome)?;
    }
    match due {
        [] => Ok(()),
        [next, ..] => Err(Failure::new(format!("the moment {:?} never came", next.after))),
    }
}

/// Does what is due by now, in order.
fn act(
    due: &mut &[Action],
    scenario: &Scenario,
    ground: &ProvingGround,
    attempt: &AttemptHandle,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    while let [action, rest @ ..] = *due
        && has_come(&action.after, &outcome.stdout)
    {
        if scenario.expect.home_while_running.is_some() && outcome.home_while_running.is_none() {
            let recorded = attempt.attempt().map_err(|error| told("read the attempt", &error))?;
            outcome.home_while_running = Some(ground.home_entries(&recorded)?);
        }
        let asked = match action.act {
            Act::Stop => attempt.stop(),
            Act::ForcedStop => attempt.stop_forced(),
        };
        asked.map_err(|error| told("stop", &error))?;
        *due = rest;
    }
    Ok(())
}

fn has_come(moment: &Moment, stdout: &[u8]) -> bool {
    match moment {
        Moment::Prepared | Moment::Started => true,
        Moment::Output(text) => stdout.windows(text.len()).any(|part| part == text.as_bytes()),
    }
}

/// Fills in what is recorded of an ended attempt and what it left, and ends what still lives.
pub(super) fn settle(
    outcome: &mut Outcome,
    ground: &ProvingGround,
    attempt: &Attempt,
) -> Result<(), Failure> {
    let host = ground.host();
    let id = &attempt.attempt_id;
    let living = ProvingGround::living(attempt);
    outcome.survivors = living.len();
    end(&living);
    let rows = host.evidence(id, 0, None).map_err(|error| told("read the evidence", &error))?;
    let verified = host.verify(id, None).map_err(|error| told("verify", &error))?;
    outcome.exit = attempt.exit;
    outcome.cleanup = Some(attempt.cleanup_state);
    outcome.evidence = rows.into_iter().map(|row| (row.kind, row.detail)).collect();
    outcome.faults = verified.faults.iter().map(|fault| format!("{fault:?}")).collect();
    outcome.faults.extend(claim_of_the_tree(attempt));
    if attempt.cleanup_state == CleanupState::Complete {
        outcome.left_behind = ground.places_left(attempt)?;
    }
    Ok(())
}

/// Finds a missing proof where the whole tree had to go, and a claim where nothing was proven.
fn claim_of_the_tree(attempt: &Attempt) -> Option<String> {
    let cleaned = attempt.exit.is_some() && attempt.cleanup_state == CleanupState::Complete;
    match (attempt.mechanism, &attempt.tree_gone_by) {
        (Some(mechanism), Some(by)) if by.starts_with(mechanism.label()) => None,
        (Some(mechanism), by) => cleaned.then(|| format!("{mechanism} does not prove it: {by:?}")),
        (None, Some(by)) => Some(format!("{by} is claimed of a tree that was not contained")),
        (None, None) => (attempt.required_cleanup == CleanupScope::ContainedTree)
            .then(|| "no mechanism is recorded".to_owned()),
    }
}
