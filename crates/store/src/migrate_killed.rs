//! Migrations that are killed, at every statement and at many of the steps in between: the store has
//! the old schema or the new one whole, and the next host goes on.

use crate::migrate::{Content, SCHEMA, content};
use crate::open::{Here, bring_up};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::TempRoot;
use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the other process where and when it is killed: `statement:N:PATH` or `step:N:PATH`.
const KILLED_AT: &str = "PLACEMENT_TEST_KILLED_AT";
/// Kills between two statements, spread over all their steps.
const KILLS_BETWEEN: u64 = 16;

static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static LAST_STATEMENT: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST_STEP: AtomicU64 = AtomicU64::new(u64::MAX);

/// Kills this process; nothing of it runs afterwards.
#[expect(clippy::disallowed_methods, reason = "nothing here may send a signal by itself")]
fn kill() -> ! {
    Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().ok();
    loop {
        std::thread::park();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form of what SQLite calls")]
fn count_statement(event: TraceEvent<'_>) {
    if matches!(event, TraceEvent::Stmt(..))
        && STATEMENTS.fetch_add(1, Ordering::Relaxed) == LAST_STATEMENT.load(Ordering::Relaxed)
    {
        kill();
    }
}

/// Brings a store up as a host does, counting; is killed where that was asked for.
fn bring_up_counted(database: &Utf8Path) {
    let mut connection = Connection::open(database.as_std_path()).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count_statement)).unwrap();
    let step = || {
        if STEPS.fetch_add(1, Ordering::Relaxed) == LAST_STEP.load(Ordering::Relaxed) {
            kill();
        }
        false
    };
    connection.progress_handler(1, Some(step)).unwrap();
    bring_up(&mut connection, &Here::read().unwrap()).unwrap();
}

/// Is nothing but the process that is killed, where it is started as that.
#[test]
#[expect(clippy::disallowed_methods, reason = "the other process is told so by its environment")]
fn the_one_that_is_killed() {
    let Ok(told) = std::env::var(KILLED_AT) else { return };
    let mut words = told.splitn(3, ':');
    let (kind, number, database) = (words.next(), words.next(), words.next().unwrap());
    let last = if kind == Some("statement") { &LAST_STATEMENT } else { &LAST_STEP };
    last.store(number.unwrap().parse().unwrap(), Ordering::Relaxed);
    bring_up_counted(database.into());
    println!(
        "{} statements, {} steps.",
        STATEMENTS.load(Ordering::Relaxed),
        STEPS.load(Ordering::Relaxed)
    );
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn in_another_process(kind: &str, number: u64, database: &Utf8Path) -> String {
    let output = Command::new("/proc/self/exe")
        .args(["migrate_killed::the_one_that_is_killed", "--exact", "--nocapture"])
        .env(KILLED_AT, format!("{kind}:{number}:{database}"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names of everything that a schema has; of nothing where there is no schema yet.
fn names(connection: &Connection) -> BTreeSet<String> {
    let sql = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema";
    let mut statement = connection.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}

fn copy(root: &TempRoot, start: &Utf8Path, name: &str) -> Utf8PathBuf {
    let path = root.join(name);
    std::fs::copy(start, &path).unwrap();
    path
}

fn opened(database: &Utf8Path) -> Connection {
    Connection::open(database.as_std_path()).unwrap()
}

/// A file with a dump in it, or an empty one.
fn start(root: &TempRoot, dump: Option<&str>) -> Utf8PathBuf {
    let path = root.join("start");
    std::fs::write(&path, "").unwrap();
    if let Some(dump) = dump {
        let text = std::fs::read_to_string(format!(
            "{}/../../fixtures/stores/{dump}.sql",
            env!("CARGO_MANIFEST_DIR")
        ));
        opened(&path).execute_batch(&text.unwrap()).unwrap();
    }
    path
}

fn attempts(connection: &Connection) -> i64 {
    let sql = "SELECT count(*) FROM placement_attempts";
    connection.query_row(sql, [], |row| row.get(0)).unwrap_or_default()
}

/// Kills a migration of this file everywhere.
fn kill_everywhere(dump: Option<&str>) {
    let root = TempRoot::new();
    let start = start(&root, dump);
    let old = opened(&start);
    let (old_names, old_content, count) = (names(&old), content(&old).unwrap(), attempts(&old));
    drop(old);
    let whole = copy(&root, &start, "whole");
    let told = in_another_process("statement", u64::MAX, &whole);
    let number = |unit: &str| -> u64 {
        let (before, _) = told.split_once(unit).unwrap_or_else(|| panic!("{told}"));
        before
            .rsplit(|c: char| !c.is_ascii_digit())
            .find(|text| !text.is_empty())
            .unwrap()
            .parse()
            .unwrap()
    };
    let (statements, steps) = (number(" statements"), number(" steps"));
    assert!(statements > 8 && steps > 100, "{told}");
    let new_names = names(&opened(&whole));
    let between = (0..KILLS_BETWEEN).map(|part| ("step", part * steps / KILLS_BETWEEN));
    let (mut olds, mut news) = (0, 0);
    for (kind, number) in (0..statements).map(|number| ("statement", number)).chain(between) {
        let database = copy(&root, &start, "killed");
        let told = in_another_process(kind, number, &database);
        assert!(!told.contains("statements,"), "{kind} {number} was not reached");
        let mut connection = opened(&database);
        let (found, is_new) = (names(&connection), names(&connection) == new_names);
        if is_new {
            news += 1;
        } else {
            olds += 1;
            // An empty history is no schema yet.
            let mut found = found;
            found.retain(|name| {
                old_names.contains(name) || !name.contains("placement_schema_migrations")
            });
            assert_eq!(found, old_names, "{kind} {number} left something in between");
            assert_eq!(content(&connection).unwrap(), old_content, "{kind} {number}");
        }
        bring_up(&mut connection, &Here::read().unwrap()).unwrap();
        assert_eq!(names(&connection), new_names, "{kind} {number}");
        let Content::Store(binding) = content(&connection).unwrap() else { panic!("no store") };
        assert_eq!(binding.schema, SCHEMA);
        assert_eq!(attempts(&connection), count, "{kind} {number}");
        for suffix in ["", "-wal", "-shm", "-journal"] {
            std::fs::remove_file(format!("{database}{suffix}")).ok();
        }
    }
    println!("{dump:?}: {statements} statements, {steps} steps: {olds} old, {news} new");
    assert!(olds > 0 && news > 0, "{olds} old, {news} new");
}

#[test]
fn a_creation_that_is_killed_leaves_nothing_or_a_store() {
    kill_everywhere(None);
}

#[test]
fn a_migration_that_is_killed_leaves_the_old_schema_or_the_new_one() {
    kill_everywhere(Some("v1"));
}
