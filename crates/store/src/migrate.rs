//! Bringing a store to this version's schema, under its lock.

use crate::open::OpenError;
use rusqlite::{Connection, OptionalExtension as _};

/// The schema that this version reads and writes: the number of the last migration.
pub const SCHEMA: u32 = 4;

const HISTORY: &str = "placement_schema_migrations";

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// No table at all, or a migration that did not end.
    Nothing,
    /// The tables of another program.
    Foreign,
    /// A store.
    Store(Binding),
}

/// Which store this is and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The last migration.
    pub(crate) schema: u32,
    /// The machine, where it has an id.
    pub(crate) machine_id: Option<String>,
    /// The boot in which it was created; empty until it is bound.
    pub(crate) created_boot: String,
}

/// Looks what a file holds, without changing it.
pub(crate) fn content(connection: &Connection) -> Result<Content, OpenError> {
    let count =
        |sql: &str| -> rusqlite::Result<u32> { connection.query_row(sql, [], |r| r.get(0)) };
    let ours = "SELECT count(*) FROM sqlite_schema WHERE name = 'placement_store_binding'";
    let theirs = "SELECT count(*) FROM sqlite_schema
        WHERE name NOT GLOB 'placement_*' AND name NOT GLOB 'sqlite_*'";
    if count(theirs).map_err(OpenError::sql("read the schema"))? > 0 {
        return Ok(Content::Foreign);
    }
    if count(ours).map_err(OpenError::sql("read the schema"))? == 0 {
        return Ok(Content::Nothing);
    }
    let binding = connection
        .query_row(
            "SELECT schema, machine_id, created_boot FROM placement_store_binding",
            [],
            |row| {
                Ok(Binding {
                    schema: row.get(0)?,
                    machine_id: row.get(1)?,
                    created_boot: row.get(2)?,
                })
            },
        )
        .optional()
        .map_err(OpenError::sql("read the binding"))?;
    binding.map_or(Err(OpenError::Malformed), |binding| Ok(Content::Store(binding)))
}

/// Applies the missing migrations, all of them in one transaction. The caller holds the lock: without
/// it, several processes that open one new store fail each other.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    check_history(connection)?;
    complete_history(connection)?;
    // A migration and its row in the history are one, or whoever is killed between the two leaves a
    // store in which the same migration fails ever after.
    let mut runner = embedded::migrations::runner().set_grouped(true);
    runner.set_migration_table_name(HISTORY);
    runner.run(connection).map_err(OpenError::migration)?;
    Ok(())
}

/// Writes the rows of the history that a process was killed before it wrote: earlier versions
/// committed them after their migrations. The binding is written by the migration itself.
fn complete_history(connection: &mut Connection) -> Result<(), OpenError> {
    let Content::Store(binding) = content(connection)? else { return Ok(()) };
    let schema = i32::try_from(binding.schema).map_err(|_| OpenError::Malformed)?;
    let target = refinery::Target::FakeVersion(schema);
    let mut runner = embedded::migrations::runner().set_grouped(true).set_target(target);
    runner.set_migration_table_name(HISTORY);
    runner.run(connection).map_err(OpenError::migration)?;
    Ok(())
}

/// Refuses a history that was edited by hand: the migration library panics on it.
fn check_history(connection: &Connection) -> Result<(), OpenError> {
    let failed = || OpenError::sql("read the migration history");
    let present: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = ?1", [HISTORY], |r| r.get(0))
        .map_err(failed())?;
    if present == 0 {
        return Ok(());
    }
    let sound: rusqlite::Result<Vec<bool>> = connection
        .prepare("SELECT version, name, applied_on, checksum FROM placement_schema_migrations")
        .and_then(|mut statement| {
            statement
                .query_map([], |row| {
                    let version = row.get::<_, i32>(0);
                    let name = row.get::<_, String>(1);
                    let applied_on = row.get::<_, String>(2).is_ok_and(|text| is_rfc3339(&text));
                    let checksum = row.get::<_, String>(3).is_ok_and(|t| t.parse::<u64>().is_ok());
                    Ok(version.is_ok() && name.is_ok() && applied_on && checksum)
                })?
                .collect()
        });
    match sound {
        Ok(rows) if rows.iter().all(|sound| *sound) => Ok(()),
        Ok(_) => Err(OpenError::Malformed),
        Err(source) => Err(failed()(source)),
    }
}

/// Checks the form that the migration library writes, such as `2026-11-30T10:02:11.204817Z`.
fn is_rfc3339(text: &str) -> bool {
    let Some((seconds, fraction)) =
        text.strip_suffix('Z').and_then(|text| text.split_at_checked(19))
    else {
        return false;
    };
    let fraction_fits = fraction.is_empty()
        || (fraction.len() <= 10
            && fraction.strip_prefix('.').is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            }));
    let whole = format!("{seconds}.000Z");
    fraction_fits && placement_contract::Timestamp::parse(&whole).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_last_migration() {
        let last = embedded::migrations::runner()
            .get_migrations()
            .iter()
            .map(refinery::Migration::version)
            .max();
        assert_eq!(last.map(|version| u32::try_from(version).unwrap()), Some(SCHEMA));
    }

    #[test]
    fn the_migrations_leave_the_schema_behind() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(content(&connection).unwrap(), Content::Nothing);
        migrate(&mut connection).unwrap();
        let Content::Store(binding) = content(&connection).unwrap() else { panic!("no store") };
        assert_eq!((binding.schema, binding.created_boot.as_str()), (SCHEMA, ""));
        migrate(&mut connection).unwrap();
    }

    #[test]
    fn a_store_of_the_first_schema_is_brought_up_with_what_it_holds() {
        let mut connection = Connection::open_in_memory().unwrap();
        let mut runner = embedded::migrations::runner().set_target(refinery::Target::Version(1));
        runner.set_migration_table_name(HISTORY);
        runner.run(&mut connection).unwrap();
        let digest = "d".repeat(64);
        connection
            .execute_batch(&format!(
                "INSERT INTO placement_attempts (attempt_id, owner_id, owner_incarnation, action_id,
                     idempotency_key, request_digest, request_json, program, execution_state,
                     cleanup_state, capability, required_cleanup, exit_observation,
                     attachment_generation, runner_finished, evidence_count, chain_head, created_at,
                     updated_at)
                 VALUES ('a', 'o', 1, 'x', 'k', '{digest}', '{{}}', 'true', 'exited', 'complete',
                     'contained_tree', 'process_group', 'independent', 0, 0, 1, '{digest}',
                     '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z');
                 INSERT INTO placement_evidence
                 VALUES ('a', 1, '2026-01-01T00:00:00.000Z', 'intent.recorded', NULL,
                     'intended/pending', '', '{digest}');"
            ))
            .unwrap();
        migrate(&mut connection).unwrap();
        let Content::Store(binding) = content(&connection).unwrap() else { panic!("no store") };
        assert_eq!(binding.schema, SCHEMA);
        let kept: String = connection
            .query_row("SELECT request_digest FROM placement_attempts", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, digest);
        // The guard was widened for the ledger, not lifted.
        assert!(connection.execute("DELETE FROM placement_evidence", []).is_err());
    }

    #[test]
    fn a_history_that_was_not_written_any_more_is_completed() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let delete = format!("DELETE FROM {HISTORY} WHERE version > 1");
        assert!(connection.execute(&delete, []).unwrap() > 0);
        migrate(&mut connection).unwrap();
        let count = format!("SELECT count(*) FROM {HISTORY}");
        let count: u32 = connection.query_row(&count, [], |row| row.get(0)).unwrap();
        assert_eq!(count, SCHEMA);
    }

    #[test]
    fn an_edited_history_is_refused_and_does_not_panic() {
        for (column, value) in [("checksum", "x"), ("applied_on", "yesterday"), ("applied_on", "")]
        {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection).unwrap();
            let sql = format!("UPDATE {HISTORY} SET {column} = ?1");
            connection.execute(&sql, [value]).unwrap();
            assert!(matches!(migrate(&mut connection), Err(OpenError::Malformed)), "{column}");
        }
    }

    #[test]
    fn another_programs_tables_are_told_apart() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
        assert_eq!(content(&connection).unwrap(), Content::Foreign);
    }
}
