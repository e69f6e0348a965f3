//! What comes after: a runner that cannot write the store leaves its exit record, a later host takes
//! it in, and in the end the attempt is pruned. Whoever is killed meanwhile, the exit is known once,
//! and a receipt answers in the place of the attempt.

use super::bed::{Bed, Host, Passed, Programs};
use super::case::{Job, NOT_REACHED, kill, settle};
use super::facts::{Facts, Moment};
use super::processes::{is_frozen, reap_orphans, runs, signal, until};
use super::scenario::Victim;
use placement::{Attempt, CleanupState, EvidenceKind, Exit, ExitSource};
use placement_world::change_store;
use rustix::process::Signal;

/// Where the host has its answer, and all that comes before the end is recorded.
const ANSWERED: &str = "service.order.answered";
/// What a newer version does to the store, so that this one writes nothing more.
const MIGRATED: &str = "UPDATE placement_store_binding SET schema = schema + 1";
const KNOWN_AGAIN: &str = "UPDATE placement_store_binding SET schema = schema - 1";
/// What the child exits with.
const CODE: u8 = 7;

/// Drives one life through all of it.
pub(super) fn drive(job: &Job, programs: &Programs, facts: &mut Facts) -> Result<(), String> {
    let points: Vec<&str> = job.kill.iter().map(|(point, _)| point.as_str()).collect();
    let victim = job.kill.as_ref().map_or(Victim::Host, |(_, victim)| *victim);
    let bed = Bed::make(programs, job.scenario, job.contained, &points)?;
    let mut host = bed.start()?;
    facts.host = host.pid();
    let mut was_killed = end_unwritten(&bed, facts, &mut host, victim)?;
    facts.look(Moment::Crash, &bed)?;
    let attempt = facts.last().and_then(|look| look.attempt.clone());
    let id = attempt.ok_or("nothing is recorded")?.attempt_id.to_string();
    was_killed |= is_killed_in(&bed, &["reconcile", &id])?;
    settle(job, &bed, facts, Vec::new())?;
    let settled = facts.last().and_then(|look| look.attempt.clone()).ok_or("it is gone")?;
    check_exit(facts, &settled);
    was_killed |= is_killed_in(&bed, &["prune", "--older-than", "0s"])?;
    facts.passed = bed.passed();
    if let (Some((point, _)), false) = (&job.kill, was_killed) {
        return Err(format!("{point} {NOT_REACHED}: {}", bed.host_complained().trim()));
    }
    check_receipt(&bed, facts, &settled);
    Ok(())
}

/// Brings the store out of reach, lets the child end and waits until nobody is left but the dead;
/// then the store is as it was. Says whether somebody was killed.
fn end_unwritten(
    bed: &Bed<'_>,
    facts: &mut Facts,
    host: &mut Host,
    victim: Victim,
) -> Result<bool, String> {
    let pid = host.pid();
    until(|| {
        let passed = bed.passed();
        (bed.is_up() && passed.iter().any(|one| one.point == ANSWERED)).then_some(())
    })
    .ok_or_else(|| format!("the child {NOT_REACHED}: {}", bed.host_complained().trim()))?;
    facts.passed = bed.passed();
    let runner = facts.runner().ok_or("there is no runner")?;
    change_store(&bed.root(), MIGRATED);
    bed.let_go()?;
    let frozen = until(|| {
        reap_orphans(&[pid]);
        let frozen = bed.passed().into_iter().find(|one| one.frozen);
        match frozen {
            Some(frozen) => is_frozen(frozen.pid).then_some(Some(frozen)),
            None => (!runs(runner)).then_some(None),
        }
    });
    let frozen = frozen.ok_or("the runner neither ends nor comes to the point")?;
    if let Some(frozen) = &frozen {
        kill(victim, host, Some(runner).filter(|_| runs(runner)))?;
        if frozen.pid != pid && !victim.includes_runner() {
            signal(frozen.pid, Signal::CONT);
            until(|| {
                reap_orphans(&[pid]);
                (!runs(runner)).then_some(())
            })
            .ok_or("the runner does not end")?;
        }
    }
    if !host.ends() {
        facts.violations.push("the host does not end after its runner".to_owned());
    }
    facts.passed = bed.passed();
    change_store(&bed.root(), KNOWN_AGAIN);
    Ok(frozen.is_some())
}

/// Runs a command under the campaign, and kills it where it freezes; says whether it did.
fn is_killed_in(bed: &Bed<'_>, command: &[&str]) -> Result<bool, String> {
    let mut host = bed.start_to(command)?;
    let pid = host.pid();
    let seen = until(|| {
        reap_orphans(&[pid]);
        let is_here = |one: &Passed| one.frozen && one.pid == pid;
        if bed.passed().iter().any(is_here) {
            return is_frozen(pid).then_some(true);
        }
        host.has_ended().then_some(false)
    });
    let is_killed = seen.ok_or_else(|| format!("`{}` does not end", command.join(" ")))?;
    if is_killed {
        kill(Victim::Host, &mut host, None)?;
    }
    Ok(is_killed)
}

/// A record that was left is taken in once, with the exit that it holds.
fn check_exit(facts: &mut Facts, attempt: &Attempt) {
    let Some(last) = facts.last() else { return };
    let count = |kind| last.evidence.iter().filter(|row| row.kind == kind).count();
    let (exits, taken) = (count(EvidenceKind::ChildExited), count(EvidenceKind::RecordTaken));
    // A runner that was killed while it wrote the record has told nobody.
    let was_left =
        !facts.runner_killed || facts.passed.iter().any(|one| one.point == "runner.record.left");
    let expected = usize::from(was_left);
    if (exits, taken) != (expected, expected) {
        let told = format!("{exits} exits are recorded and {taken} records taken in");
        facts.violations.push(format!("{told}, and {expected} was left"));
    }
    let is_known = attempt.exit == Some(Exit::Code { code: CODE.into() })
        && attempt.exit_source == Some(ExitSource::Runner);
    if was_left && !is_known {
        facts.violations.push(format!("the exit of the record is lost: {:?}", attempt.exit));
    }
}

/// The next pruning finishes what the one before it began, and the receipt answers as the attempt did.
fn check_receipt(bed: &Bed<'_>, facts: &mut Facts, attempt: &Attempt) {
    let pruned = bed.say(&["prune", "--older-than", "0s"]);
    let shown = bed.say(&["--json", "show", attempt.attempt_id.as_str()]);
    let again = bed.rerun();
    let mut broken = |is_broken: bool, why: String| {
        if is_broken {
            facts.violations.push(why);
        }
    };
    broken(pruned.code != Some(0), format!("the pruning fails: {}", pruned.stderr.trim()));
    // What was not proven gone is kept with all that it has.
    let is_settled = attempt.cleanup_state == CleanupState::Complete;
    let (directories, kept) = (bed.directories(), usize::from(!is_settled));
    broken(directories != kept, format!("{directories} directories are there, and not {kept}"));
    let is_receipt = shown.stdout.contains("\"pruned\":true");
    broken(is_receipt != is_settled, format!("that is told: {}", shown.stdout));
    broken(bed.runs() > 1, "the retry of a pruned key runs".to_owned());
    let known = attempt.exit.is_some();
    let exits_alike = !known || again.code == Some(i32::from(CODE));
    broken(!exits_alike, format!("the retry of a pruned key exits with {:?}", again.code));
    for said in [pruned, shown, again] {
        facts.heard(said);
    }
}
