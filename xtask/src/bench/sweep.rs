//! Row `sweep`: looking after attempts that live.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, figure};
use super::setting::{Setting, finish, launch};
use crate::command::{Failure, capture, program};
use crate::proving_ground::{ProvingGround, told};
use placement::{AttemptHandle, Launch};
use std::time::Instant;

const PER_ATTEMPT_MAX_US: f64 = 50.0;

/// Measures passes over live attempts, in microseconds an attempt.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let count = setting.pick(200, 50);
    let live: Result<Vec<AttemptHandle>, Failure> =
        (0..count).map(|_| launch(&ground, Launch::program("sleep").arg("600"))).collect();
    let live = live?;
    let contenders = vec![
        Contender::new("`ps` once for each", by_ps),
        Contender::new("ours", || swept(&ground)),
        Contender::new("ours", || reconciled(&ground, &live)),
        Contender::new("ours", || listed(&ground, live.len())),
    ];
    let all = alternate(setting.rounds(), contenders)?;
    let [ps, swept, reconciled, listed] = <[Series; 4]>::try_from(all).expect("four were measured");
    let line = |what: &str, ours| {
        Line::new(format!("{what}, per attempt of {count}"), Unit::Microseconds, ours)
            .beside(ps.clone())
    };
    let lines = vec![
        Line::new("a sweep, per attempt of a pass", Unit::Microseconds, swept)
            .beside(ps.clone())
            .at_most(PER_ATTEMPT_MAX_US),
        line("a reconcile of one after the other", reconciled),
        line("list of the live", listed),
    ];
    for attempt in live {
        attempt.stop_forced().map_err(|error| told("stop", &error))?;
        finish(attempt)?;
    }
    Ok(Row { lines, skipped: Vec::new() })
}

fn swept(ground: &ProvingGround) -> Result<f64, Failure> {
    let started = Instant::now();
    let sweep = ground.host().sweep().map_err(|error| told("sweep", &error))?;
    if sweep.reconciled == 0 || sweep.outcomes.iter().any(|swept| !swept.ok || swept.changed) {
        return Err(Failure::new("a pass over what lives has changed something".to_owned()));
    }
    Ok(each(started, sweep.reconciled))
}

fn reconciled(ground: &ProvingGround, live: &[AttemptHandle]) -> Result<f64, Failure> {
    let started = Instant::now();
    for attempt in live {
        ground.host().reconcile(attempt.id()).map_err(|error| told("reconcile", &error))?;
    }
    Ok(each(started, live.len()))
}

fn listed(ground: &ProvingGround, expected: usize) -> Result<f64, Failure> {
    let started = Instant::now();
    let found = ground.host().attempts().live().map_err(|error| told("list", &error))?;
    if found.attempts.len() != expected {
        return Err(Failure::new(format!("{} of {expected} are listed", found.attempts.len())));
    }
    Ok(each(started, expected))
}

fn by_ps() -> Result<f64, Failure> {
    let started = Instant::now();
    let pid = std::process::id().to_string();
    capture(program("ps").args(["-o", "pid=,ppid=,pgid=,stat=,lstart=", "-p", &pid]))?;
    Ok(each(started, 1))
}

fn each(started: Instant, count: usize) -> f64 {
    let count = figure(u64::try_from(count).unwrap_or(u64::MAX));
    started.elapsed().as_secs_f64() * 1e6 / count
}
