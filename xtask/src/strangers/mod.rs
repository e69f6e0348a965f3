//! `strangers`: the numbers of an attempt's dead are given to strangers, again and again, while
//! everything is done to the attempt that might signal somebody. No stranger may be signalled.
//!
//! It runs in a PID namespace of its own, where numbers can be chosen and nobody else is met. Two ways:
//! [`staged`] attempts whose recorded processes have died, so that each operation decides about a
//! number that belongs to another by now; and a [`churn`] of processes that carry the marker of a lost
//! attempt and are replaced by strangers while a forced stop looks for them.

mod churn;
mod staged;

use crate::command::{Failure, program, shown};
use crate::crash::decoy::may_choose;
use crate::crash::processes::adopt_orphans;
use crate::crash::sabotage::Guard;
use crate::without_guard::must_find;
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, ValueEnum};
use nix::sys::signal::SigSet;
use placement_testkit::is_root;
use std::process::Stdio;
use std::time::Instant;

/// How a campaign is run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many numbers of the dead are given to strangers
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    reuses: u64,
    /// Takes one guard out of a copy of the code, and fails unless that is found
    #[arg(long, value_enum, value_name = "GUARD")]
    sabotage: Option<StrangerGuard>,
    /// Namespaces side by side
    #[arg(long, default_value_t = 2, value_name = "N")]
    workers: u64,
    /// This process is in the namespace
    #[arg(long, hide = true)]
    inside: bool,
}

/// A guard that can be taken out.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum StrangerGuard {
    /// A process is compared with its identity before it is signalled
    Signal,
}

/// Where files are in memory.
const IN_MEMORY: &str = "/dev/shm";
/// Reuses of a campaign on sabotaged code: the first ones show it.
const SABOTAGED_REUSES: &str = "2000";
/// Staged reuses for each one of the churn.
const STAGED_PER_CHURN: u64 = 1;

/// What a campaign came to.
#[derive(Debug, Default)]
struct Count {
    /// Strangers under the number of a recorded runner, leader or init.
    staged: u64,
    /// Attempts that these belonged to.
    attempts: u64,
    /// Strangers under the number of a process that carried a marker.
    churned: u64,
    /// Carriers that the product had killed before they were replaced.
    carriers_killed: u64,
    /// Operations meanwhile.
    operations: u64,
}

/// Runs a campaign.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(StrangerGuard::Signal) = arguments.sabotage {
        let workspace = Workspace::load()?;
        let campaign = ["strangers", "--reuses", SABOTAGED_REUSES];
        return must_find(&workspace, "signal", Guard::Signal.changes(), &campaign);
    }
    if arguments.inside {
        inside(arguments.reuses)
    } else {
        enter(arguments.reuses, arguments.workers)
    }
}

/// Runs this program again, each worker in namespaces of its own.
fn enter(reuses: u64, workers: u64) -> Result<(), Failure> {
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let namespaces =
        [user, &["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]].concat();
    let mut probe = program("unshare");
    probe.args(&namespaces).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let why = "strangers: this user gets no PID namespace with a process table of its own here";
        return Err(Failure::nothing_shown(why));
    }
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("strangers: find this program: {error}")))?;
    let workers = workers.max(1);
    let share = reuses.div_ceil(workers).to_string();
    let mut running = Vec::new();
    for _ in 0..workers {
        let mut unshare = program("unshare");
        unshare.args(&namespaces).arg(&own).args(["strangers", "--inside", "--reuses", &share]);
        if has_room_in_memory() {
            // A root that is nobody's needs no disk.
            unshare.env("TMPDIR", IN_MEMORY);
        }
        let worker = unshare.spawn();
        let failed = |error| Failure::new(format!("run {}: {error}", shown(&unshare)));
        running.push(worker.map_err(failed)?);
    }
    let mut outcome = Ok(());
    for mut worker in running {
        let status = worker.wait();
        let status = status.map_err(|error| Failure::new(format!("strangers: wait: {error}")))?;
        // What it said stands above.
        let ended = Failure::from_code(status.code(), "strangers: a worker found or failed");
        outcome = outcome.and(ended);
    }
    outcome?;
    println!("strangers: at least {reuses} by {workers} workers: 0 strangers signalled");
    Ok(())
}

fn has_room_in_memory() -> bool {
    let probe = Utf8Path::new(IN_MEMORY).join(format!("placement-{}", std::process::id()));
    std::fs::create_dir(&probe).and_then(|()| std::fs::remove_dir(&probe)).is_ok()
}

/// The campaign itself.
fn inside(reuses: u64) -> Result<(), Failure> {
    if !may_choose() {
        let why = "strangers: process numbers cannot be chosen here";
        return Err(Failure::nothing_shown(why));
    }
    // Strangers have this from here: what they are sent they keep. A runner sets its own.
    SigSet::all()
        .thread_block()
        .map_err(|error| Failure::new(format!("strangers: block signals: {error}")))?;
    adopt_orphans().map_err(Failure::new)?;
    let runner =
        std::env::current_exe().ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    let runner = runner.ok_or_else(|| Failure::new("strangers: this program has no path"))?;
    let mut count = Count::default();
    let begun = Instant::now();
    while count.reuses() < reuses {
        if count.staged < count.churned.saturating_add(1).saturating_mul(STAGED_PER_CHURN) {
            staged::round(&runner, reuses - count.reuses(), &mut count)?;
        } else {
            churn::round(&runner, reuses - count.reuses(), &mut count)?;
        }
    }
    println!(
        "strangers: {} numbers of the dead given to strangers in {} s: {} of recorded processes of {} \
         attempts, {} of processes with a marker ({} of these the product had killed), {} \
         operations meanwhile: 0 strangers signalled",
        count.reuses(),
        begun.elapsed().as_secs(),
        count.staged,
        count.attempts,
        count.churned,
        count.carriers_killed,
        count.operations,
    );
    if count.churned > 0 && count.carriers_killed == 0 {
        let why =
            "strangers: no process with a marker was ever killed: nothing signals here at all";
        return Err(Failure::new(why));
    }
    Ok(())
}

impl Count {
    const fn reuses(&self) -> u64 {
        self.staged + self.churned
    }
}
