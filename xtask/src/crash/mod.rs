//! `crash`: kills the host, the runner or both at every crash point, restarts, and looks whether
//! everything that must hold holds.
//!
//! The points are found in the code ([`points`]); a life of each scenario without a kill says which
//! of them it comes by, and then there is one case for each point, victim, containment and scenario.
//! Processes freeze themselves at their point, so a case has no race in it. `--sabotage` takes one
//! guard out of a copy of the code and fails unless a rule is then found broken.
//!
//! Reading order: `scenario`, `case`, `twins`, `aftermath`, `judge`, `output`, then `bed`, `facts`, `processes`,
//! `decoy`, `points`, `steps`, `sabotage`, `pool`, `report`.

mod aftermath;
mod bed;
mod case;
pub(crate) mod decoy;
mod facts;
mod judge;
mod output;
mod points;
mod pool;
pub(crate) mod processes;
mod report;
pub(crate) mod sabotage;
mod scenario;
mod steps;
mod twins;

use crate::command::{Failure, conclude, program, run as run_command};
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use case::Job;
use clap::Args;
use placement::Placement;
use placement_testkit::{Random, TempRoot};
use report::Report;
use sabotage::Guard;
use scenario::{Contained, Scenario, Victim};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How a campaign is run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Takes one guard out of a copy of the code, and fails unless that is found
    #[arg(long, value_enum, value_name = "GUARD")]
    sabotage: Option<Guard>,
    /// One scenario under one containment, with one victim at each point
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
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let (Some(host), true) = (&arguments.host, arguments.quick) {
        // Without the code, as an ordinary user may be.
        return campaign(arguments, host, &[]);
    }
    let workspace = &Workspace::load()?;
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
        (None, None) => build(&workspace.root, &workspace.target_directory.join("crash"))?,
        (None, Some(guard)) => {
            // Cargo takes two trees in one target directory for one.
            build(&guard.copy(workspace)?, &workspace.target_directory.join("crash-sabotaged"))?
        }
    };
    if arguments.sabotage == Some(Guard::Signal) && !pool::can_be_apart() {
        let why = "crash: without this guard whoever has the number of a dead process is signalled, \
                   so it needs a PID namespace of its own, and that root";
        return Err(Failure::nothing_shown(why));
    }
    let all = !arguments.quick && arguments.only.is_none();
    campaign(arguments, &host, if all { &points } else { &[] })
}

/// Drives the lives and the cases; every one of the points must come by.
fn campaign(arguments: &Arguments, host: &Utf8Path, points: &[String]) -> Result<(), Failure> {
    let contained = available(host)?;
    let mut report = Report::default();
    // A sabotage is found or not: nothing is learnt from finding it twice.
    let is_enough = |report: &Report| match arguments.sabotage {
        Some(_) if report.is_broken() => ControlFlow::Break(()),
        Some(_) | None => ControlFlow::Continue(()),
    };
    let lives = lives(arguments.quick, &contained);
    pool::run(host, arguments.workers, &lives, &mut |job, answer| {
        report.life(job, answer);
        is_enough(&report)
    })?;
    let cases = if is_enough(&report).is_break() { Vec::new() } else { cases(arguments, &report) };
    println!("crash: {} lives, {} cases", lives.len(), cases.len());
    pool::run(host, arguments.workers, &cases, &mut |job, answer| {
        report.case(job, answer);
        is_enough(&report)
    })?;
    report.show();
    match arguments.sabotage {
        Some(guard) => report.must_find(guard),
        None => report.must_be_clean(points),
    }
}

/// Serves jobs from standard input, one JSON line each.
pub(crate) fn serve(host: &Utf8Path) -> Result<(), Failure> {
    pool::serve(host).map_err(Failure::new)
}

/// Builds the program with crash points into a target directory of its own: the feature must not
/// find its way into any other build.
fn build(tree: &Utf8Path, target: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let mut cargo = program("cargo");
    cargo.current_dir(tree).args(["build", "--quiet", "-p", "placement-crash"]);
    cargo.args(["-p", "placement-cli", "--features", "placement-crash/points"]);
    run_command(cargo.args(["--target-dir", target.as_str()]))?;
    Ok(target.join("debug/placement"))
}

/// Returns what this machine can contain a tree with, the strongest first, and says what it cannot.
fn available(host: &Utf8Path) -> Result<Vec<Contained>, Failure> {
    let told =
        |what: &str, error: &placement::Error| Failure::new(format!("crash: {what}: {error}"));
    let root = TempRoot::new();
    let opened = Placement::builder().root(root.join("state")).runner_at(host).open();
    let opened = opened.map_err(|error| told("open a root", &error))?;
    let measured = opened.capabilities().map_err(|error| told("measure", &error))?.report;
    let (here, missing) = Contained::ALL.into_iter().partition::<Vec<_>, _>(|contained| {
        let mechanism = contained.mechanism();
        mechanism.is_none_or(|it| measured.of(it).is_some_and(|seen| seen.available))
    });
    for contained in missing {
        println!("crash: {contained} cannot be had here: see `placement doctor`");
    }
    if !decoy::may_choose() {
        println!(
            "crash: this user may not choose process numbers: no stranger gets one of the dead"
        );
    }
    Ok(here)
}

/// One life of each scenario under each containment, without a kill.
fn lives(quick: bool, contained: &[Contained]) -> Vec<Job> {
    let life = |scenario, contained| Job { scenario, contained, kill: None };
    if quick {
        let strongest = contained.iter().take(1);
        let both = |it: &Contained| [Scenario::Ends, Scenario::Aftermath].map(|s| life(s, *it));
        return strongest.flat_map(both).collect();
    }
    let each =
        contained.iter().flat_map(|contained| Scenario::DRIVEN.map(|it| life(it, *contained)));
    each.collect()
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
            | Scenario::Twins
            | Scenario::Aftermath,
            _,
        ) => points,
    }
}

/// Each point that a life came by, with each victim; with one of them in turn where it is to be quick.
fn cases(arguments: &Arguments, report: &Report) -> Vec<Job> {
    let mut jobs = BTreeSet::new();
    for (life, points) in report.lives() {
        let points = before_the_child_once(life.scenario, points).iter();
        let wanted = |point: &&String| {
            arguments.only.as_ref().is_none_or(|only| point.contains(only))
                && (life.scenario != Scenario::Aftermath || !report.is_of_ends(life, point))
        };
        for (turn, point) in points.filter(wanted).enumerate() {
            let turn = turn % Victim::ALL.len();
            let victims = if life.scenario == Scenario::Aftermath && point.starts_with("service.") {
                // No runner is left then.
                &[Victim::Host][..]
            } else if arguments.quick {
                &Victim::ALL[turn..=turn]
            } else {
                &Victim::ALL[..]
            };
            for victim in victims {
                jobs.insert(Job { kill: Some((point.clone(), *victim)), ..life.clone() });
            }
        }
        if arguments.only.is_none() {
            let kill = Some(("runner.order.taken".to_owned(), Victim::Host));
            jobs.insert(Job { scenario: Scenario::Twins, kill, ..life.clone() });
        }
    }
    let mut jobs: Vec<Job> = jobs.into_iter().collect();
    // In no order, so that a sabotage is soon found, wherever it shows; the same each time.
    let mut random = Random::seeded(0);
    for last in (1..jobs.len()).rev() {
        let bound = u64::try_from(last + 1).expect("there are few cases");
        let other = usize::try_from(random.next_u64() % bound).expect("it is below the bound");
        jobs.swap(last, other);
    }
    // But for those of which there are few.
    jobs.sort_by_key(|job| job.scenario != Scenario::Twins);
    jobs
}
