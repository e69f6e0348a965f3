//! `crash`: kills the host, the runner or both at every crash point, restarts, and looks whether
//! everything that must hold holds.
//!
//! The points are found in the code ([`points`]); a life of each scenario without a kill says which
//! of them it comes by, and then there is one case for each point, victim, containment and scenario.
//! Processes freeze themselves at their point, so a case has no race in it. `--sabotage` takes one
//! guard out of a copy of the code and fails unless a rule is then found broken.
//!
//! Reading order: `scenario`, `case`, `twins`, `judge`, `output`, then `bed`, `facts`, `processes`,
//! `decoy`, `points`, `steps`, `sabotage`, `pool`, `report`.

mod bed;
mod case;
mod decoy;
mod facts;
mod judge;
mod output;
mod points;
mod pool;
mod processes;
mod report;
mod sabotage;
mod scenario;
mod steps;
mod twins;

use crate::command::{Failure, conclude, program, run as run_command};
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use case::Job;
use clap::Args;
use report::Report;
use sabotage::Guard;
use scenario::{Contained, Scenario, Victim};
use std::collections::BTreeSet;

/// How a campaign is run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Takes one guard out of a copy of the code, and fails unless that is found
    #[arg(long, value_enum, value_name = "GUARD")]
    sabotage: Option<Guard>,
    /// A few cases of each kind instead of all
    #[arg(long)]
    quick: bool,
    /// Lists the points that stand in the code and ends
    #[arg(long)]
    list: bool,
    /// Only points that hold this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The program with crash points; built when it is not given
    #[arg(long, value_name = "PATH")]
    host: Option<Utf8PathBuf>,
    /// Cases that run side by side
    #[arg(long, default_value_t = 4, value_name = "N")]
    workers: usize,
}

/// Runs a campaign, or shows its points.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Failure> {
    let points = points::listed(&workspace.root)?;
    conclude("crash points", &steps::without_point(&workspace.root)?)?;
    if arguments.list {
        for point in &points {
            println!("{point}");
        }
        return Ok(());
    }
    let host = match (&arguments.host, arguments.sabotage) {
        (Some(host), _) => host.clone(),
        (None, None) => build(workspace, &workspace.root)?,
        (None, Some(guard)) => build(workspace, &guard.copy(workspace)?)?,
    };
    let mut report = Report::default();
    let lives = lives(arguments.quick);
    pool::run(&host, arguments.workers, &lives, &mut |job, answer| report.life(job, answer))?;
    let cases = cases(arguments, &report);
    println!("crash: {} lives, {} cases", lives.len(), cases.len());
    pool::run(&host, arguments.workers, &cases, &mut |job, answer| report.case(job, answer))?;
    report.show();
    match arguments.sabotage {
        Some(guard) => report.must_find(guard),
        None if arguments.quick || arguments.only.is_some() => report.must_be_clean(&[]),
        None => report.must_be_clean(&points),
    }
}

/// Serves jobs from standard input, one JSON line each.
pub(crate) fn serve(host: &Utf8Path) -> Result<(), Failure> {
    pool::serve(host).map_err(Failure::new)
}

/// Builds the program with crash points into a target directory of its own: the feature must not
/// find its way into any other build.
fn build(workspace: &Workspace, tree: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let target = workspace.target_directory.join("crash");
    let mut cargo = program("cargo");
    cargo.current_dir(tree).args(["build", "--quiet", "-p", "placement-crash"]);
    cargo.args(["-p", "placement-cli", "--features", "placement-crash/points"]);
    run_command(cargo.args(["--target-dir", target.as_str()]))?;
    Ok(target.join("debug/placement"))
}

fn contained(quick: bool) -> Vec<Contained> {
    if quick { vec![Contained::Cgroup, Contained::Subreaper] } else { Contained::ALL.to_vec() }
}

/// One life of each scenario under each containment, without a kill.
fn lives(quick: bool) -> Vec<Job> {
    let scenarios = if quick { &Scenario::DRIVEN[..1] } else { &Scenario::DRIVEN[..] };
    let mut jobs = Vec::new();
    for contained in contained(quick) {
        for scenario in scenarios {
            jobs.push(Job { scenario: *scenario, contained, kill: None });
        }
    }
    jobs
}

/// What comes before there is a child is the same in every scenario: two of them are driven through
/// it, one whose child outlives its host and one whose child does not.
fn before_the_child_once(scenario: Scenario, points: &[String]) -> &[String] {
    let gate = points.iter().position(|point| point == "runner.gate.opened");
    match (scenario, gate) {
        (Scenario::Leaves | Scenario::Refused, Some(gate)) => &points[gate..],
        (
            Scenario::Ends
            | Scenario::Leaves
            | Scenario::Stopped
            | Scenario::Lost
            | Scenario::Refused
            | Scenario::Twins,
            _,
        ) => points,
    }
}

/// Each point that a life came by, with each victim.
fn cases(arguments: &Arguments, report: &Report) -> Vec<Job> {
    let mut jobs = BTreeSet::new();
    for (life, points) in report.lives() {
        for point in before_the_child_once(life.scenario, points) {
            let wanted = arguments.only.as_ref().is_none_or(|only| point.contains(only));
            for victim in Victim::ALL.into_iter().filter(|_| wanted) {
                jobs.insert(Job { kill: Some((point.clone(), victim)), ..life.clone() });
            }
        }
    }
    if arguments.only.is_none() {
        for contained in contained(arguments.quick) {
            let kill = Some(("runner.order.taken".to_owned(), Victim::Host));
            jobs.insert(Job { scenario: Scenario::Twins, contained, kill });
        }
    }
    jobs.into_iter().collect()
}
