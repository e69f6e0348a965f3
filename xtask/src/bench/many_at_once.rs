//! Row `many_at_once`: 64 launches that begin together, in one host and as one process each.

use super::row::{Line, Row, Unit};
use super::samples::{Series, milliseconds};
use super::setting::{Setting, finish, launch};
use crate::command::{self, Failure, program};
use crate::proving_ground::ProvingGround;
use placement::Launch;
use placement_testkit::TempRoot;
use rusqlite::{Connection, TransactionBehavior};
use std::process::Stdio;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 64;
/// What the slowest may take, in parts of the median.
const SLOWEST_MAX: f64 = 6.0;
/// Commits of one launch, which the raw store makes too.
const COMMITS: usize = 5;

/// Measures how far the slowest falls behind.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let rounds = setting.pick(7, 1);
    let mut raw = Gathered::default();
    let mut busy = Gathered::default();
    let mut service = Gathered::default();
    let mut processes = Gathered::default();
    let ground = setting.ground()?;
    let shared = TempRoot::new();
    // The store of the processes is made before they meet.
    as_process(setting, &shared)?;
    for _ in 0..rounds {
        raw.add(together(|| super::launch::raw().map(drop))?);
        busy.add(together_on_sqlite()?);
        service.add(together(|| in_service(&ground))?);
        processes.add(together(|| as_process(setting, &shared))?);
    }
    let mut lines = Vec::new();
    lines.extend(service.lines("in one host", &raw, &busy));
    lines.extend(processes.lines("as 64 processes", &raw, &busy));
    Ok(Row { lines, skipped: Vec::new() })
}

/// The median and the slowest of each round, in milliseconds.
#[derive(Debug, Default)]
struct Gathered {
    medians: Vec<f64>,
    slowest: Vec<f64>,
}

impl Gathered {
    fn add(&mut self, times: Vec<f64>) {
        let series = Series::new("one round", times);
        self.medians.push(series.median());
        self.slowest.push(series.worst());
    }

    fn lines(&self, place: &str, raw: &Self, busy: &Self) -> [Line; 3] {
        let series = |name: &str, samples: &[f64]| Series::new(name, samples.to_vec());
        let behind = self.slowest.iter().zip(&self.medians).map(|(slow, median)| slow / median);
        let behind = Series::new("ours", behind.collect());
        let met = behind.median() <= SLOWEST_MAX;
        [
            Line::new(
                format!("64 {place}, median"),
                Unit::Milliseconds,
                series("ours", &self.medians),
            )
            .beside(series("64 raw starts at once", &raw.medians)),
            Line::new(
                format!("64 {place}, slowest"),
                Unit::Milliseconds,
                series("ours", &self.slowest),
            )
            .beside(series("64 raw starts at once", &raw.slowest))
            .beside(series("SQLite's busy handler, 64 connections of 5 commits", &busy.slowest)),
            Line::new(format!("64 {place}, slowest/median"), Unit::Ratio, behind)
                .must(format!("≤ {SLOWEST_MAX:.0}x, no error"), met),
        ]
    }
}

/// Does something 64 times at once and returns how long each took.
fn together(action: impl Fn() -> Result<(), Failure> + Sync) -> Result<Vec<f64>, Failure> {
    let begin = Barrier::new(AT_ONCE);
    std::thread::scope(|scope| {
        let one = || {
            begin.wait();
            let started = Instant::now();
            action().map(|()| milliseconds(started.elapsed()))
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        joined.collect()
    })
}

fn in_service(ground: &ProvingGround) -> Result<(), Failure> {
    finish(launch(ground, Launch::program("/bin/true"))?)
}

fn as_process(setting: &Setting, shared: &TempRoot) -> Result<(), Failure> {
    let mut command = program(setting.built.join("placement"));
    command.current_dir(shared.path()).stdin(Stdio::null());
    command.args(["--root", shared.join("state").as_str(), "run", "--", "/bin/true"]);
    command::run(&mut command)
}

/// The same commits with nothing but SQLite's own waiting between the writers.
fn together_on_sqlite() -> Result<Vec<f64>, Failure> {
    let directory = TempRoot::new();
    let path = directory.join("raw.db");
    let failed = |error: rusqlite::Error| Failure::new(format!("the raw store failed: {error}"));
    let connect = || -> Result<Connection, rusqlite::Error> {
        let connection = Connection::open(path.as_std_path())?;
        connection.busy_timeout(Duration::from_mins(1))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    };
    let first = connect().map_err(failed)?;
    first.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    first.execute_batch("CREATE TABLE rows (text TEXT)").map_err(failed)?;
    together(|| {
        let mut connection = connect().map_err(failed)?;
        for _ in 0..COMMITS {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(failed)?;
            transaction.execute("INSERT INTO rows VALUES ('x')", []).map_err(failed)?;
            transaction.commit().map_err(failed)?;
        }
        Ok(())
    })
}
