//! The invariants: what must never be, wherever a process was killed.

use super::case::Job;
use super::facts::{Facts, Look, Moment, has};
use super::output;
use super::scenario::Contained;
use placement::{CleanupState, EvidenceKind, ExecutionState, ExitSource};
use std::time::Duration;

/// How long a command may take after a crash: the dead delay nobody.
const HELD_UP_MAX: Duration = Duration::from_secs(10);

/// Returns how the attempt ended and every rule that is broken.
pub(super) fn judge(job: &Job, facts: &Facts) -> (String, Vec<String>) {
    let mut broken = facts.violations.clone();
    for look in &facts.looks {
        for rule in [two_children, child_contradicts_evidence, state_is_ahead] {
            broken.extend(rule(look));
        }
        broken.extend(home_is_gone_under_a_process(facts, look));
    }
    if facts.ran_behind_its_gate {
        broken.push("the program ran before its gate was opened".to_owned());
    }
    if facts.touched {
        broken.push("a stranger with the number of a dead process was signalled".to_owned());
    }
    broken.extend(session_is_gone(job, facts));
    broken.extend(undecided_without_reason(job, facts));
    broken.extend(something_is_left(facts));
    broken.extend(output::broken(job, facts));
    broken.extend(an_answer_is_missing(facts));
    broken.dedup();
    (outcome(facts), broken)
}

fn two_children(look: &Look) -> Option<String> {
    (look.runs > 1).then(|| format!("{} children of one attempt ran", look.runs))
}

fn child_contradicts_evidence(look: &Look) -> Option<String> {
    use EvidenceKind::{ChildIdentified, ChildNotStarted, ChildStartFailed, StopBeforeStart};
    let never = [ChildNotStarted, ChildStartFailed, StopBeforeStart];
    if look.runs == 0 {
        return None;
    }
    if let Some(kind) = never.into_iter().find(|kind| has(&look.evidence, *kind)) {
        return Some(format!("{kind} is recorded and the child ran"));
    }
    let unrecorded = !has(&look.evidence, ChildIdentified);
    unrecorded.then(|| "the child ran and its identity is not recorded".to_owned())
}

fn state_is_ahead(look: &Look) -> Option<String> {
    let faults = look.faults.join(", ");
    (!look.faults.is_empty())
        .then(|| format!("at {:?} the row does not verify: {faults}", look.moment))
}

fn home_is_gone_under_a_process(facts: &Facts, look: &Look) -> Option<String> {
    let complete =
        look.attempt.as_ref().is_some_and(|it| it.cleanup_state == CleanupState::Complete);
    let gone = !look.has_home && has(&look.evidence, EvidenceKind::HomeCreated);
    let live = facts.in_scope(look);
    if (complete || gone) && live > 0 {
        return Some(format!("at {:?} the home is gone and {live} processes live", look.moment));
    }
    if complete && look.has_home {
        return Some("the cleanup is complete and the home is there".to_owned());
    }
    (look.moment == Moment::End && gone && !complete)
        .then(|| "the home is gone and the cleanup is not complete".to_owned())
}

/// What a session's home has stays, whatever becomes of its attempts.
fn session_is_gone(job: &Job, facts: &Facts) -> Option<String> {
    job.scenario.session()?;
    // A child leaves its file there before it says that it ran.
    let gone = facts.looks.iter().any(|look| look.runs > 0 && !look.has_turns);
    gone.then(|| "what the child left in the home of its session is gone".to_owned())
}

/// An attempt may stay undecided only where the one proof of its tree died with its runner, and
/// unclean only there and where a member of the group is seen.
fn undecided_without_reason(job: &Job, facts: &Facts) -> Option<String> {
    let cleaned = facts.at(Moment::Cleaned)?;
    let attempt = cleaned.attempt.as_ref()?;
    let had_child = has(&cleaned.evidence, EvidenceKind::ChildIdentified);
    let proof_died = job.contained == Contained::Subreaper && facts.runner_killed && had_child;
    match attempt.execution_state {
        ExecutionState::Exited => {}
        ExecutionState::Uncertain if proof_died => return untrue_reason(facts, cleaned),
        state @ (ExecutionState::Intended
        | ExecutionState::Starting
        | ExecutionState::Running
        | ExecutionState::Stopping
        | ExecutionState::Uncertain) => {
            return Some(format!("the attempt is {state} after everything"));
        }
    }
    let unclean = attempt.cleanup_state != CleanupState::Complete;
    let member = job.contained == Contained::Group && facts.in_scope(cleaned) > 0;
    // A stranger that leads a group of the same number cannot be told from what is left of it.
    let stranger = job.contained == Contained::Group && facts.decoys > 0;
    let has_reason = proof_died || stranger || (member && facts.runner_killed);
    if unclean && !has_reason {
        return Some("the attempt is exited and not cleaned, without a reason".to_owned());
    }
    let last = facts.last()?.attempt.as_ref()?;
    (last.cleanup_state != CleanupState::Complete && !proof_died)
        .then(|| "the home is kept though nothing is left".to_owned())
}

/// What is said of survivors must be what is there.
fn untrue_reason(facts: &Facts, cleaned: &Look) -> Option<String> {
    let rows = cleaned.evidence.iter();
    let row = rows.rev().find(|row| row.kind == EvidenceKind::ReconcileUnobserved)?;
    let live = facts.at(Moment::Attached)?.live.len();
    // Some may have ended by themselves since.
    let is_true = row.detail.contains("unknown") || said_survivors(&row.detail) >= Some(live);
    (!is_true).then(|| format!("\"{}\" is said and {live} live", row.detail))
}

/// Reads "2 survivors seen" and "no survivor seen".
fn said_survivors(detail: &str) -> Option<usize> {
    let said = detail.rsplit("; ").next()?.split(' ').next()?;
    if said == "no" { Some(0) } else { said.parse().ok() }
}

fn something_is_left(facts: &Facts) -> Option<String> {
    let live = facts.in_scope(facts.last()?);
    (live > 0).then(|| format!("{live} processes are left after everything"))
}

fn an_answer_is_missing(facts: &Facts) -> Vec<String> {
    let mut missing: Vec<String> = facts
        .said
        .iter()
        .filter(|said| said.took >= HELD_UP_MAX)
        .map(|said| format!("`{}` took {} ms", said.command, said.took.as_millis()))
        .collect();
    let failed = |said: &&super::bed::Said| {
        said.command.starts_with("reconcile") && said.code.is_some_and(|code| code != 0)
    };
    missing.extend(facts.said.iter().filter(failed).map(|it| format!("`{}` fails", it.command)));
    if facts.replayed != Some(0) {
        missing.push("the key does not lead to the recorded attempt".to_owned());
    }
    missing
}

/// Words the end so that equal ends have equal words.
fn outcome(facts: &Facts) -> String {
    let Some(last) = facts.last() else { return "nothing was seen".to_owned() };
    let Some(attempt) = &last.attempt else { return "nothing is recorded".to_owned() };
    let crash = facts.at(Moment::Crash);
    let again = crash.is_some_and(|look| {
        let state = look.attempt.as_ref().map(|attempt| attempt.execution_state);
        matches!(state, None | Some(ExecutionState::Intended)) && facts.runner_killed
            || state.is_none()
    });
    let end = if has(&last.evidence, EvidenceKind::ChildNotStarted) {
        "no child was made"
    } else if has(&last.evidence, EvidenceKind::ChildStartFailed) {
        "the program never ran"
    } else {
        match attempt.exit_source {
            Some(ExitSource::Runner) => "exit seen",
            Some(ExitSource::Reconcile) => "gone, exit unknown",
            Some(ExitSource::Operator) => "uncertain: the proof died with the runner",
            Some(ExitSource::Terminal) | None => "undecided",
        }
    };
    let cleaned = last.evidence.iter().rfind(|row| row.kind == EvidenceKind::CleanupComplete);
    let cleaned = match cleaned {
        Some(row) => row.detail.split(';').next().unwrap_or_default().to_owned(),
        None => "home kept".to_owned(),
    };
    let forced = if facts.at(Moment::Forced).is_some() { ", survivors ended by force" } else { "" };
    let again = if again { "launched by the retry; " } else { "" };
    format!("{again}{end}; {cleaned}{forced}")
}
