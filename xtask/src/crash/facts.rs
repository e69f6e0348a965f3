//! What was seen in one case, gathered without asking whether it is right.

use super::bed::{Bed, Passed, Said};
use super::case::Job;
use super::processes::group;
use super::scenario::{Contained, Scenario};
use placement::{Attempt, AttemptId, CleanupState, Evidence, EvidenceKind, ExecutionState};
use placement_identity::{Marker, MarkerScan, Presence, ProcessIdentity, Signal, scan_marker};
use std::fmt::Write as _;

/// The variable that marks every process of an attempt.
const MARKER: &str = "PLACEMENT_ATTEMPT_ID";

/// When something was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// The victims are dead, and nobody has looked yet.
    Crash,
    /// Reconciled, and followed to its end.
    Attached,
    Cleaned,
    /// An operator has settled what is uncertain.
    Resolved,
    /// Survivors were ended by force.
    Forced,
    End,
}

/// Everything at one moment.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) moment: Moment,
    pub(super) attempt: Option<Attempt>,
    pub(super) evidence: Vec<Evidence>,
    /// What does not fit between the evidence and the row.
    pub(super) faults: Vec<String>,
    pub(super) has_home: bool,
    /// What a child left in the home of its session is there.
    pub(super) has_turns: bool,
    /// How often the child ran.
    pub(super) runs: usize,
    /// Processes that carry the attempt's marker and run.
    pub(super) live: Vec<Live>,
}

#[derive(Debug, Clone)]
pub(super) struct Live {
    process: ProcessIdentity,
    /// Whether it is in the child's own group.
    pub(super) in_group: bool,
}

/// Everything that was seen in a case.
#[derive(Debug)]
pub(super) struct Facts {
    contained: Contained,
    /// The host under the campaign.
    pub(super) host: u32,
    pub(super) passed: Vec<Passed>,
    /// The runner was killed, by the case or as the scenario has it.
    pub(super) runner_killed: bool,
    pub(super) ran_behind_its_gate: bool,
    /// The numbers of the leader, and of the init of its PID namespace.
    pub(super) identified: Vec<u32>,
    pub(super) decoys: usize,
    /// A stranger was signalled.
    pub(super) touched: bool,
    pub(super) looks: Vec<Look>,
    pub(super) said: Vec<Said>,
    /// What the host passed on, and what the one after it did.
    pub(super) host_said: String,
    pub(super) attached: String,
    /// The exit code of the retry after everything.
    pub(super) replayed: Option<i32>,
    pub(super) violations: Vec<String>,
}

impl Facts {
    pub(super) fn of(job: &Job) -> Self {
        let killed = job.kill.as_ref().is_some_and(|(_, victim)| victim.includes_runner());
        Self {
            contained: job.contained,
            host: 0,
            passed: Vec::new(),
            runner_killed: killed || job.scenario == Scenario::Lost,
            ran_behind_its_gate: false,
            identified: Vec::new(),
            decoys: 0,
            touched: false,
            looks: Vec::new(),
            said: Vec::new(),
            host_said: String::new(),
            attached: String::new(),
            replayed: None,
            violations: Vec::new(),
        }
    }

    /// Looks at everything now.
    pub(super) fn look(&mut self, moment: Moment, bed: &Bed<'_>) -> Result<(), String> {
        let host = bed.look()?;
        let attempt = Bed::attempt(&host)?;
        let (mut evidence, mut faults, mut live) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(attempt) = &attempt {
            let id = &attempt.attempt_id;
            evidence = host.evidence(id, 0, None).map_err(|error| error.to_string())?;
            let verified = host.verify(id, None).map_err(|error| error.to_string())?;
            faults = verified.faults.iter().map(|fault| fault.why.to_string()).collect();
            self.identified = identified(&evidence);
            live = marked(id, self.identified.first().copied());
        }
        let has_home = bed.has_home();
        self.looks.push(Look {
            moment,
            attempt,
            evidence,
            faults,
            has_home,
            has_turns: bed.has_turns(),
            runs: bed.runs(),
            live,
        });
        Ok(())
    }

    pub(super) fn heard(&mut self, said: Said) {
        self.said.push(said);
    }

    /// The runner that passed a point, if one did.
    pub(super) fn runner(&self) -> Option<u32> {
        self.passed.iter().find(|one| one.pid != self.host).map(|one| one.pid)
    }

    /// Says whether the child was made and its gate is shut.
    pub(super) fn is_behind_its_gate(&self) -> bool {
        let has = |point: &str| self.passed.iter().any(|one| one.point == point);
        has("runner.child.gated") && !has("runner.gate.opened")
    }

    pub(super) fn at(&self, moment: Moment) -> Option<&Look> {
        self.looks.iter().find(|look| look.moment == moment)
    }

    pub(super) fn last(&self) -> Option<&Look> {
        self.looks.last()
    }

    pub(super) fn state(&self) -> Option<ExecutionState> {
        Some(self.last()?.attempt.as_ref()?.execution_state)
    }

    pub(super) fn cleanup(&self) -> Option<CleanupState> {
        Some(self.last()?.attempt.as_ref()?.cleanup_state)
    }

    /// Kills whatever still carries the marker: what left a group that alone was cleaned, and what a
    /// broken product has left.
    pub(super) fn end_what_is_left(&self) {
        for live in self.last().into_iter().flat_map(|look| &look.live) {
            // Never by its number, which may be another's since.
            if let Presence::Present(verified) = live.process.observe() {
                verified.signal(Signal::Kill).ok();
            }
        }
    }

    /// Counts what the required scope still has.
    pub(super) fn in_scope(&self, look: &Look) -> usize {
        let whole = self.contained != Contained::Group;
        look.live.iter().filter(|live| whole || live.in_group).count()
    }

    /// Tells everything, for whoever looks into a violation.
    pub(super) fn story(&self) -> String {
        let mut story = String::new();
        let points: Vec<String> = self
            .passed
            .iter()
            .map(|one| format!("{}{}", one.point, if one.frozen { " (frozen)" } else { "" }))
            .collect();
        // Writing to a text does not fail.
        writeln!(story, "passed: {}", points.join(", ")).ok();
        for look in &self.looks {
            let state = look.attempt.as_ref().map_or("nothing recorded".to_owned(), |attempt| {
                format!("{}/{}", attempt.execution_state, attempt.cleanup_state)
            });
            let (moment, runs, home) = (look.moment, look.runs, look.has_home);
            let live: Vec<(u32, bool)> =
                look.live.iter().map(|it| (it.process.pid.get(), it.in_group)).collect();
            writeln!(story, "{moment:?}: {state}, {runs} runs, home {home}, live {live:?}").ok();
        }
        for row in self.last().into_iter().flat_map(|look| &look.evidence) {
            writeln!(story, "{:>3} {} {}: {}", row.sequence, row.to, row.kind, row.detail).ok();
        }
        for said in &self.said {
            let code = said.code.map_or("-".to_owned(), |code| code.to_string());
            let (out, err) = (said.stdout.trim(), said.stderr.trim());
            let took = said.took.as_millis();
            writeln!(story, "$ {} -> {code} in {took} ms: {out} | {err}", said.command).ok();
        }
        story
    }
}

/// Says whether a kind is in the evidence.
pub(super) fn has(evidence: &[Evidence], kind: EvidenceKind) -> bool {
    evidence.iter().any(|row| row.kind == kind)
}

/// Reads the numbers out of `child.identified`: "pid 7, group 7, init 6".
fn identified(evidence: &[Evidence]) -> Vec<u32> {
    let row = evidence.iter().find(|row| row.kind == EvidenceKind::ChildIdentified);
    let number = |part: &str| {
        let (word, number) = part.trim().split_once(' ')?;
        if word == "group" { None } else { number.parse().ok() }
    };
    row.map_or_else(Vec::new, |row| row.detail.split(',').filter_map(number).collect())
}

fn marked(attempt: &AttemptId, leader: Option<u32>) -> Vec<Live> {
    let marker = Marker {
        name: MARKER,
        value: attempt.as_str(),
        not_older_than_start_ticks: 0,
        except: &[],
    };
    let found = match scan_marker(&marker) {
        MarkerScan::Found(found) | MarkerScan::Unknown { found, .. } => found,
        MarkerScan::None => Vec::new(),
    };
    let live = found.into_iter().map(|process| {
        let in_group = leader.is_some() && group(process.pid.get()) == leader;
        Live { process, in_group }
    });
    live.collect()
}
