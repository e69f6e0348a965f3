//! Row `recovery`: a host that comes back to 50 live attempts among many old ones.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, timed};
use super::setting::{Setting, finish, launch};
use crate::command::Failure;
use crate::proving_ground::{ProvingGround, told};
use placement::{AttemptHandle, Launch};
use rusqlite::Connection;

const LIVE: usize = 50;
const DECIDED_MAX_MS: f64 = 50.0;
/// What ten times the history may cost.
const GROWTH_MAX: f64 = 1.3;

/// What was measured with a history of one size.
struct Found {
    raw: Series,
    recovered: Series,
    launched: Series,
}

/// Measures a new host's look at everything that lives, and a launch beside the history.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    finish(launch(&ground, Launch::program("/bin/true"))?)?;
    let live: Result<Vec<AttemptHandle>, Failure> =
        (0..LIVE).map(|_| launch(&ground, Launch::program("sleep").arg("600"))).collect();
    let live = live?;
    let young = look(setting, &ground)?;
    let mut row = Row::default();
    let mut before: Option<Found> = None;
    for size in sizes(setting) {
        grow(&ground, *size)?;
        let found = look(setting, &ground)?;
        row.lines.extend(lines(*size, &found, before.as_ref().unwrap_or(&young)));
        before = Some(found);
    }
    for attempt in live {
        attempt.stop_forced().map_err(|error| told("stop", &error))?;
        finish(attempt)?;
    }
    if setting.quick {
        row.skipped.push("10^6 old attempts take a full run".to_owned());
    }
    Ok(row)
}

const fn sizes(setting: &Setting) -> &'static [u64] {
    if setting.quick { &[10_000, 100_000] } else { &[100_000, 1_000_000] }
}

fn lines(size: u64, found: &Found, before: &Found) -> [Line; 2] {
    let growth = found.recovered.median() / before.recovered.median();
    let launch_growth = found.launched.median() / before.launched.median();
    let recovered = Line::new(
        format!("{LIVE} live among {size}: all reconciled"),
        Unit::Milliseconds,
        found.recovered.clone(),
    );
    let met = found.recovered.median() <= DECIDED_MAX_MS && growth <= GROWTH_MAX;
    let launched =
        Line::new(format!("a launch among {size}"), Unit::Milliseconds, found.launched.clone());
    [
        recovered
            .beside(found.raw.clone())
            .must(format!("≤ 50 ms, growth ≤ 1.3 ({growth:.2})"), met),
        launched.beside(before.launched.clone()).must("as before", launch_growth <= GROWTH_MAX),
    ]
}

fn look(setting: &Setting, ground: &ProvingGround) -> Result<Found, Failure> {
    let contenders = vec![
        Contender::new("raw query by the partial index", || raw(ground)),
        Contender::new("ours", || recovered(ground)),
        Contender::new("with less history", || {
            timed(|| finish(launch(ground, Launch::program("/bin/true"))?))
        }),
    ];
    let all = alternate(setting.rounds(), contenders)?;
    let [raw, recovered, launched] = <[Series; 3]>::try_from(all).expect("three were measured");
    Ok(Found { raw, recovered, launched })
}

/// A host of its own opens the root and looks at all that is open.
fn recovered(ground: &ProvingGround) -> Result<f64, Failure> {
    timed(|| {
        let host = ground.another_host()?;
        let decided = host.attempts().reconcile().map_err(|error| told("reconcile", &error))?;
        let live = decided.attempts.iter().filter(|it| it.settled.is_ok()).count();
        if live != LIVE {
            return Err(Failure::new(format!("{live} of {LIVE} are decided")));
        }
        Ok(())
    })
}

fn raw(ground: &ProvingGround) -> Result<f64, Failure> {
    let connection = connect(ground)?;
    timed(|| {
        let live: i64 = connection
            .query_row(
                "SELECT count(*) FROM placement_attempts
                 WHERE execution_state IN ('starting', 'running', 'stopping', 'uncertain')",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        if usize::try_from(live) == Ok(LIVE) {
            Ok(())
        } else {
            Err(Failure::new(format!("{live} of {LIVE} are found")))
        }
    })
}

/// Copies the one settled attempt, with its last row of evidence, until there are so many.
fn grow(ground: &ProvingGround, size: u64) -> Result<(), Failure> {
    let mut connection = connect(ground)?;
    let columns = columns(&connection)?;
    let copied: Vec<&str> = columns
        .iter()
        .map(|name| match name.as_str() {
            "attempt_id" | "idempotency_key" => "'old-' || n",
            name => name,
        })
        .collect();
    let transaction = connection.transaction().map_err(failed)?;
    let have: i64 = transaction
        .query_row("SELECT count(*) FROM placement_attempts", [], |row| row.get(0))
        .map_err(failed)?;
    let numbers = format!(
        "WITH RECURSIVE numbers(n) AS (VALUES({have}) UNION ALL
         SELECT n + 1 FROM numbers WHERE n < {size})"
    );
    let settled = "(SELECT attempt_id FROM placement_attempts
         WHERE execution_state = 'exited' AND cleanup_state = 'complete' LIMIT 1)";
    transaction
        .execute_batch(&format!(
            "{numbers} INSERT INTO placement_attempts ({}) SELECT {} FROM numbers, placement_attempts
             WHERE attempt_id = {settled};
             {numbers} INSERT INTO placement_evidence
             SELECT 'old-' || n, sequence, at, kind, from_state, to_state, detail, chain
             FROM numbers, placement_evidence WHERE attempt_id = {settled} AND sequence = 1;",
            columns.join(", "),
            copied.join(", "),
        ))
        .map_err(failed)?;
    transaction.commit().map_err(failed)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)
}

fn columns(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection
        .prepare("SELECT name FROM pragma_table_info('placement_attempts')")
        .map_err(failed)?;
    let names = statement.query_map([], |row| row.get(0)).map_err(failed)?;
    names.collect::<Result<_, _>>().map_err(failed)
}

fn connect(ground: &ProvingGround) -> Result<Connection, Failure> {
    let path = ground.root().join("placement.db");
    Connection::open(path.as_std_path()).map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a failed call is mapped by")]
fn failed(error: rusqlite::Error) -> Failure {
    Failure::new(format!("the store could not be asked: {error}"))
}
