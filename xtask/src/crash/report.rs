//! What a campaign found: point × victim × containment → outcome, with the count.

use super::case::{Answer, Job};
use super::sabotage::Guard;
use super::scenario::Scenario;
use crate::command::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    lives: Vec<(Job, Vec<String>)>,
    /// Point, victim and containment, then the outcome.
    outcomes: BTreeMap<(String, String, String), BTreeMap<String, usize>>,
    passed: BTreeSet<String>,
    cases: usize,
    without_victim: usize,
    decoys: usize,
    /// Lives and cases that break a rule.
    broken: usize,
    /// Those that could not be judged.
    failed: usize,
}

impl Report {
    /// Takes a life without a kill, and what it came by.
    pub(super) fn life(&mut self, job: &Job, answer: Answer) {
        self.passed.extend(answer.passed.iter().cloned());
        let mut points = answer.passed;
        if job.scenario == Scenario::Lost {
            // What came before the death of the runner is another scenario's matter.
            let alive = points.iter().rposition(|point| point.starts_with("runner."));
            points.drain(..alive.map_or(0, |last| last + 1));
        }
        self.lives.push((job.clone(), points));
        self.broken += usize::from(!answer.violations.is_empty());
        self.failed += usize::from(answer.failed.is_some());
        Self::note("VIOLATION", job, &answer.violations);
        Self::note("FAILED", job, answer.failed.as_slice());
    }

    /// Takes a case.
    pub(super) fn case(&mut self, job: &Job, answer: Answer) {
        let Some((point, victim)) = &job.kill else { return };
        self.passed.extend(answer.passed);
        self.decoys += answer.decoys;
        let key = (point.clone(), victim.to_string(), job.contained.to_string());
        let is_case = answer.no_case.is_none() && answer.failed.is_none();
        self.cases += usize::from(is_case);
        self.without_victim += usize::from(answer.no_case.is_some());
        let outcome = answer.no_case.unwrap_or(answer.outcome);
        if answer.failed.is_none() {
            *self.outcomes.entry(key).or_default().entry(outcome).or_default() += 1;
        }
        self.broken += usize::from(!answer.violations.is_empty());
        self.failed += usize::from(answer.failed.is_some());
        Self::note("VIOLATION", job, &answer.violations);
        Self::note("FAILED", job, answer.failed.as_slice());
    }

    /// Tells a broken rule at once: a campaign is long.
    fn note(what: &str, job: &Job, violations: &[String]) {
        if violations.is_empty() {
            return;
        }
        let kill = job.kill.as_ref().map_or("nobody killed".to_owned(), |(point, victim)| {
            format!("{victim} killed at {point}")
        });
        println!("{what} {} under {}, {kill}", job.scenario, job.contained);
        for line in violations.iter().flat_map(|text| text.lines()) {
            println!("    {line}");
        }
    }

    /// Returns the lives and the points that each came by.
    pub(super) fn lives(&self) -> &[(Job, Vec<String>)] {
        &self.lives
    }

    /// Says whether the plainest scenario comes by a point under the same containment.
    pub(super) fn is_of_ends(&self, life: &Job, point: &String) -> bool {
        self.lives.iter().any(|(other, points)| {
            other.scenario == Scenario::Ends
                && other.contained == life.contained
                && points.contains(point)
        })
    }

    /// Says whether a rule was found broken.
    pub(super) const fn is_broken(&self) -> bool {
        self.broken > 0
    }

    /// Prints everything.
    pub(super) fn show(&self) {
        for ((point, victim, contained), outcomes) in &self.outcomes {
            for (outcome, count) in outcomes {
                println!("{point:<42} {victim:<7} {contained:<14} {count:>2}  {outcome}");
            }
        }
        let rows = self.outcomes.len();
        println!(
            "crash: {} cases at {rows} of point × victim × containment, {} without such a victim, \
             {} lives, {} strangers under the numbers of the dead: {} violations, {} failed",
            self.cases,
            self.without_victim,
            self.lives.len(),
            self.decoys,
            self.broken,
            self.failed
        );
    }

    /// Fails for a violation, and for a point in the code that nothing came by.
    pub(super) fn must_be_clean(&self, points: &[String]) -> Result<(), Failure> {
        let missed: Vec<&String> =
            points.iter().filter(|point| !self.passed.contains(*point)).collect();
        if !missed.is_empty() {
            return Err(Failure::new(format!("crash: nothing came by {missed:?}")));
        }
        if self.cases == 0 {
            return Err(Failure::nothing_shown("crash: there was no case"));
        }
        match (self.broken, self.failed) {
            (0, 0) => Ok(()),
            (broken, failed) => Err(Failure::new(format!(
                "crash: {broken} cases break a rule, {failed} could not be judged"
            ))),
        }
    }

    /// Fails where a campaign on sabotaged code finds nothing.
    pub(super) fn must_find(&self, guard: Guard) -> Result<(), Failure> {
        if self.broken == 0 {
            return Err(Failure::new(format!(
                "crash: without its guard {guard:?} nothing is found"
            )));
        }
        println!("crash: without the guard {guard:?} {} cases break a rule", self.broken);
        Ok(())
    }
}
