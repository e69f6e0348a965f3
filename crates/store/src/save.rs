//! Writing what follows from new evidence, and the fields that come with it.

use crate::error::StoreError;
use crate::evidence::Tail;
use crate::find::load;
use crate::record::{Attachment, Fields, RecordError};
use crate::row::Row;
use crate::sql::{failed, to_column};
use placement_contract::{AttemptId, Exit, ExitSource, Mechanism, RecipientId, Timestamp};
use placement_identity::ProcessIdentity;
use rusqlite::{Transaction, named_params};

/// Returns the attempt as it is read from the row that was just written.
pub(crate) fn reload(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
) -> Result<Row, RecordError> {
    load(transaction, attempt_id)?.ok_or(RecordError::NotFound)
}

/// Writes what follows from the evidence, and the fields that are given.
pub(crate) fn save(
    transaction: &Transaction<'_>,
    tail: &Tail<'_>,
    attempt_id: &AttemptId,
    fields: &Fields,
    now: &Timestamp,
) -> Result<(), StoreError> {
    save_outcome(transaction, tail, attempt_id, now)?;
    if let Some(attachment) = &fields.attachment {
        save_attachment(transaction, attempt_id, attachment)?;
    }
    if let Some(runner) = &fields.runner {
        save_identity(transaction, attempt_id, "runner_", &runner.identity)?;
        let sql = "UPDATE placement_attempts SET runner_id = ?1 WHERE attempt_id = ?2";
        execute(transaction, sql, &[&runner.id.as_str(), &attempt_id.as_str()])?;
    }
    if let Some(child) = &fields.child {
        save_identity(transaction, attempt_id, "", child)?;
    }
    if let Some(init) = &fields.init {
        save_identity(transaction, attempt_id, "init_", init)?;
    }
    save_places(transaction, attempt_id, fields)
}

fn save_outcome(
    transaction: &Transaction<'_>,
    tail: &Tail<'_>,
    attempt_id: &AttemptId,
    now: &Timestamp,
) -> Result<(), StoreError> {
    let folded = tail.folded();
    let (exit_code, exit_signal, exit_core) = match folded.exit {
        None => (None, None, None),
        Some(Exit::Code { code }) => (Some(code), None, None),
        Some(Exit::Signal { signal, core }) => (None, Some(signal), Some(core)),
    };
    let count = to_column(folded.count, "evidence_count")?;
    transaction
        .prepare_cached(
            "UPDATE placement_attempts SET execution_state = :execution, cleanup_state = :cleanup,
                exit_source = :exit_source, exit_code = :exit_code, exit_signal = :exit_signal,
                exit_core = :exit_core, tree_gone_by = :tree_gone_by,
                runner_finished = :runner_finished, evidence_count = :count,
                chain_head = :head, updated_at = :now
             WHERE attempt_id = :attempt_id",
        )
        .and_then(|mut statement| {
            statement.execute(named_params! {
                ":execution": folded.state.execution.label(),
                ":cleanup": folded.state.cleanup.label(),
                ":exit_source": folded.exit_source.map(ExitSource::label),
                ":exit_code": exit_code,
                ":exit_signal": exit_signal,
                ":exit_core": exit_core,
                ":tree_gone_by": folded.tree_gone_by,
                ":runner_finished": tail.runner_finished(),
                ":count": count,
                ":head": tail.head().as_str(),
                ":now": now.as_str(),
                ":attempt_id": attempt_id.as_str(),
            })
        })
        .map_err(failed("update the attempt"))?;
    Ok(())
}

fn save_attachment(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    attachment: &Attachment,
) -> Result<(), StoreError> {
    let generation = to_column(attachment.generation.number(), "attachment_generation")?;
    let recipient = attachment.recipient.as_ref().map(RecipientId::as_str);
    let sql = "UPDATE placement_attempts SET attachment_generation = ?1, recipient = ?2
               WHERE attempt_id = ?3";
    execute(transaction, sql, &[&generation, &recipient, &attempt_id.as_str()])
}

/// Writes an identity into the columns with a prefix, and where it was observed from.
fn save_identity(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    prefix: &'static str,
    identity: &ProcessIdentity,
) -> Result<(), StoreError> {
    let number =
        |number: Option<u64>, column| number.map(|number| to_column(number, column)).transpose();
    let observer = &identity.observer;
    let sql = format!(
        "UPDATE placement_attempts SET {prefix}pid = ?1, {prefix}pgid = ?2,
            {prefix}start_ticks = ?3, {prefix}boot_id = ?4, {prefix}pidfd_inode = ?5,
            observer_machine_id = ?6, observer_pid_namespace = ?7,
            observer_time_namespace = ?8, observer_cgroup_namespace = ?9
         WHERE attempt_id = ?10"
    );
    execute(
        transaction,
        &sql,
        &[
            &identity.pid.get(),
            &identity.pgid.get(),
            &to_column(identity.start_ticks, "start_ticks")?,
            &identity.boot_id,
            &number(identity.pidfd_inode, "pidfd_inode")?,
            &observer.machine_id,
            &to_column(observer.pid_namespace, "observer_pid_namespace")?,
            &number(observer.time_namespace, "observer_time_namespace")?,
            &number(observer.cgroup_namespace, "observer_cgroup_namespace")?,
            &attempt_id.as_str(),
        ],
    )
}

fn save_places(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
    fields: &Fields,
) -> Result<(), StoreError> {
    let leaf_id = fields.leaf_id.map(|id| to_column(id, "leaf_id")).transpose()?;
    let sql = "UPDATE placement_attempts SET mechanism = coalesce(?1, mechanism),
                   leaf_path = coalesce(?2, leaf_path), leaf_id = coalesce(?3, leaf_id),
                   home_key = coalesce(?4, home_key), tmp_key = coalesce(?5, tmp_key)
               WHERE attempt_id = ?6";
    execute(
        transaction,
        sql,
        &[
            &fields.mechanism.map(Mechanism::label),
            &fields.leaf_path.as_ref().map(|path| path.as_str()),
            &leaf_id,
            &fields.home_key,
            &fields.tmp_key,
            &attempt_id.as_str(),
        ],
    )
}

fn execute(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<(), StoreError> {
    transaction
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(failed("update the attempt"))?;
    Ok(())
}
