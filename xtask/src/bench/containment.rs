//! Row `containment`: what a contained tree costs more than a process group.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, timed};
use super::setting::{Setting, finish, launch};
use crate::command::Failure;
use crate::proving_ground::{ProvingGround, told};
use placement::{CleanupScope, Launch, Mechanism};

/// Milliseconds that a launch may take longer for it.
const ADDED_MAX_MS: f64 = 0.5;

/// Measures launches of `/bin/true`, cleaned up, under each mechanism that works here.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let report = ground.host().capabilities().map_err(|error| told("measure", &error))?.report;
    let work: Vec<Mechanism> =
        report.mechanisms.iter().filter(|seen| seen.available).map(|seen| seen.mechanism).collect();
    let group = Contender::new("in a process group", || {
        timed(|| one(&ground, |launch| launch.require(CleanupScope::ProcessGroup)))
    });
    let mut contenders = vec![group];
    for mechanism in work.iter().copied() {
        let ground = &ground;
        contenders.push(Contender::new(format!("{mechanism}"), move || {
            timed(|| one(ground, |launch| launch.mechanism(mechanism)))
        }));
    }
    let all = alternate(setting.pick(31, 7), contenders)?;
    let (group, contained) = all.split_first().expect("the group was measured");
    let lines = contained.iter().map(|series| line(group, series)).collect();
    let missing = report.mechanisms.iter().filter(|seen| !seen.available);
    let skipped = missing.map(|seen| format!("{} does not work here", seen.mechanism)).collect();
    Ok(Row { lines, skipped })
}

/// The difference of each round: what disturbs the machine disturbs both.
fn line(group: &Series, contained: &Series) -> Line {
    let pairs = contained.samples.iter().zip(&group.samples);
    let added = Series::new("ours", pairs.map(|(with, without)| with - without).collect());
    let mut line = Line::new(format!("added by {}", contained.name), Unit::Milliseconds, added);
    line = line.at_most(ADDED_MAX_MS);
    // A difference has no ratio to what it was taken from.
    line.beside.clear();
    line
}

fn one(ground: &ProvingGround, change: impl FnOnce(Launch) -> Launch) -> Result<(), Failure> {
    finish(launch(ground, change(Launch::program("/bin/true")))?)
}
