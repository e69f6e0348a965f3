//! Row `stop`: from a forced stop to a tree that is proven gone.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, milliseconds};
use super::setting::{Setting, finish, launch, shell};
use crate::command::{Failure, program};
use crate::own_cgroup::own_directory;
use crate::proving_ground::{ProvingGround, told};
use camino::{Utf8Path, Utf8PathBuf};
use placement::{ExecutionState, Launch, Mechanism};
use placement_testkit::{TempRoot, wait_until};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Processes besides the leader, every second one in a session of its own.
const PROCESSES: usize = 100;
const TREE: &str = "i=0; while [ $i -lt 50 ]; do sleep 600 & setsid sleep 600 & i=$((i+1)); done; \
    touch up; wait";
const PATIENCE: Duration = Duration::from_mins(1);
const MEDIAN_MAX_MS: f64 = 5.0;
const TAIL_MAX_MS: f64 = 25.0;
/// With a full spool and nobody who reads it.
const FULL_MAX_MS: f64 = 100.0;
/// Small, so that it is full at once.
const SPOOL_BYTES: u64 = 1024 * 1024;

/// Measures forced stops of a tree of a hundred, and of a program that waits for a full spool.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let report = ground.host().capabilities().map_err(|error| told("measure", &error))?.report;
    let rounds = setting.pick(25, 5);
    let mut row = Row::default();
    for seen in &report.mechanisms {
        let mechanism = seen.mechanism;
        if !seen.available {
            row.skipped.push(format!("{mechanism} does not work here"));
            continue;
        }
        let ours = Contender::new("ours", || forced(&ground, mechanism));
        let mut contenders = vec![ours];
        if mechanism == Mechanism::Cgroup {
            contenders.push(Contender::new("cgroup.kill, then populated 0", raw));
        }
        let mut all = alternate(rounds, contenders)?.into_iter();
        let ours = all.next().expect("it was measured");
        let floor = all.next();
        row.lines.extend(lines(mechanism, ours, floor));
    }
    let full = alternate(setting.rounds(), vec![Contender::new("ours", || full(&ground))])?;
    let full = full.into_iter().next().expect("it was measured");
    row.lines.push(
        Line::new("full spool, dead reader: exit recorded", Unit::Milliseconds, full)
            .at_most(FULL_MAX_MS),
    );
    Ok(row)
}

fn lines(mechanism: Mechanism, ours: Series, floor: Option<Series>) -> [Line; 2] {
    let tail = Series::new("ours", vec![ours.at(0.95)]);
    let what = |part: &str| format!("{PROCESSES} in a {mechanism}, tree gone, {part}");
    let mut median = Line::new(what("p50"), Unit::Milliseconds, ours).at_most(MEDIAN_MAX_MS);
    let mut tail = Line::new(what("p95"), Unit::Milliseconds, tail).at_most(TAIL_MAX_MS);
    if let Some(floor) = floor {
        tail.beside.push(Series::new(&*floor.name, vec![floor.at(0.95)]));
        median.beside.push(floor);
    }
    [median, tail]
}

fn forced(ground: &ProvingGround, mechanism: Mechanism) -> Result<f64, Failure> {
    let attempt = launch(ground, shell(TREE).mechanism(mechanism))?;
    let up = ground.work().join("up");
    wait_until(PATIENCE, "the tree", || up.exists());
    fs::remove_file(&up).map_err(|error| Failure::io("remove", &up, &error))?;
    let started = Instant::now();
    attempt.stop_forced().map_err(|error| told("stop", &error))?;
    // The proof of an empty tree and the end of the runner are one commit.
    loop {
        let recorded = attempt.attempt().map_err(|error| told("look", &error))?;
        if recorded.tree_gone_by.is_some() {
            break;
        }
        std::thread::yield_now();
    }
    let gone = milliseconds(started.elapsed());
    finish(attempt)?;
    Ok(gone)
}

/// The child waits for room in its spool, which nobody makes.
fn full(ground: &ProvingGround) -> Result<f64, Failure> {
    let pour = Launch::program("dd").args(["if=/dev/zero", "bs=64k", "status=none"]);
    let attempt = launch(ground, pour.spool_bytes_max(SPOOL_BYTES))?;
    let host = ground.host();
    wait_until(PATIENCE, "a full spool", || {
        host.status(attempt.id())
            .is_ok_and(|seen| seen.runner.is_some_and(|runner| runner.output_full))
    });
    let started = Instant::now();
    attempt.stop_forced().map_err(|error| told("stop", &error))?;
    while attempt.attempt().map_err(|error| told("look", &error))?.execution_state
        != ExecutionState::Exited
    {
        std::thread::yield_now();
    }
    let exited = milliseconds(started.elapsed());
    finish(attempt)?;
    Ok(exited)
}

/// Kills a cgroup of as many processes by hand.
fn raw() -> Result<f64, Failure> {
    let leaf = own_directory().map_err(Failure::new)?.join("placement-bench-raw");
    fs::create_dir_all(&leaf).map_err(|error| Failure::io("make", &leaf, &error))?;
    let measured = kill_in(&leaf);
    let removed = fs::remove_dir(&leaf).map_err(|error| Failure::io("remove", &leaf, &error));
    removed.and(measured)
}

fn kill_in(leaf: &Utf8Path) -> Result<f64, Failure> {
    let directory = TempRoot::new();
    let mut command = program("/bin/sh");
    let script = format!("echo $$ > {}; {TREE}", leaf.join("cgroup.procs"));
    command.current_dir(directory.path()).args(["-c", &script]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let failed = |error: std::io::Error| Failure::new(format!("the raw tree failed: {error}"));
    let mut leader = command.spawn().map_err(failed)?;
    let up: Utf8PathBuf = directory.join("up");
    wait_until(PATIENCE, "the raw tree", || up.exists());
    let kill = leaf.join("cgroup.kill");
    let events = leaf.join("cgroup.events");
    let started = Instant::now();
    fs::write(&kill, "1").map_err(|error| Failure::io("write", &kill, &error))?;
    leader.wait().map_err(failed)?;
    while !fs::read_to_string(&events)
        .map_err(|error| Failure::io("read", &events, &error))?
        .contains("populated 0")
    {
        std::thread::yield_now();
    }
    Ok(milliseconds(started.elapsed()))
}
