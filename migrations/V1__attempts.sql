-- Receipts of attempts and their append-only evidence.
--
-- Numbers are 64 bits and signed; times are UTC text with milliseconds; digests are 64 lowercase
-- hexadecimal characters. A row is checked here when it is written and again when it is read.

CREATE TABLE placement_store_binding (
    one          INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    machine_id   TEXT,
    -- Empty until the store is bound to the machine that created it.
    created_boot TEXT NOT NULL,
    -- The last migration; each migration ends by setting it.
    schema       INTEGER NOT NULL CHECK (schema > 0)
) STRICT;

INSERT INTO placement_store_binding (one, machine_id, created_boot, schema) VALUES (1, NULL, '', 1);

CREATE TABLE placement_attempts (
    attempt_id                 TEXT    NOT NULL PRIMARY KEY,
    owner_id                   TEXT    NOT NULL,
    owner_incarnation          INTEGER NOT NULL CHECK (owner_incarnation > 0),
    action_id                  TEXT    NOT NULL,
    idempotency_key            TEXT    NOT NULL,
    request_digest             TEXT    NOT NULL CHECK (length(request_digest) = 64),
    request_json               TEXT    NOT NULL,
    grants_json                TEXT,
    program                    TEXT    NOT NULL,
    execution_state            TEXT    NOT NULL CHECK (execution_state IN
        ('intended', 'starting', 'running', 'stopping', 'exited', 'uncertain')),
    cleanup_state              TEXT    NOT NULL CHECK (cleanup_state IN
        ('pending', 'complete', 'uncertain')),
    capability                 TEXT    NOT NULL CHECK (capability IN
        ('direct_process', 'process_group', 'contained_tree')),
    required_cleanup           TEXT    NOT NULL CHECK (required_cleanup IN
        ('direct_process', 'process_group', 'contained_tree')),
    mechanism                  TEXT             CHECK (mechanism IN
        ('cgroup', 'subreaper', 'pid_namespace')),
    exit_observation           TEXT    NOT NULL CHECK (exit_observation IN
        ('independent', 'eof_gated')),
    exit_source                TEXT             CHECK (exit_source IN
        ('runner', 'reconcile', 'terminal', 'operator')),
    attachment_generation      INTEGER NOT NULL CHECK (attachment_generation >= 0),
    recipient                  TEXT,
    runner_id                  TEXT,
    runner_pid                 INTEGER          CHECK (runner_pid > 0),
    runner_pgid                INTEGER          CHECK (runner_pgid > 0),
    runner_start_ticks         INTEGER          CHECK (runner_start_ticks >= 0),
    runner_boot_id             TEXT,
    runner_pidfd_inode         INTEGER          CHECK (runner_pidfd_inode >= 0),
    runner_finished            INTEGER NOT NULL CHECK (runner_finished IN (0, 1)),
    pid                        INTEGER          CHECK (pid > 0),
    pgid                       INTEGER          CHECK (pgid > 0),
    start_ticks                INTEGER          CHECK (start_ticks >= 0),
    boot_id                    TEXT,
    pidfd_inode                INTEGER          CHECK (pidfd_inode >= 0),
    -- Where the runner stood when it measured itself and its child.
    observer_machine_id        TEXT,
    observer_pid_namespace     INTEGER          CHECK (observer_pid_namespace >= 0),
    observer_time_namespace    INTEGER          CHECK (observer_time_namespace >= 0),
    observer_cgroup_namespace  INTEGER          CHECK (observer_cgroup_namespace >= 0),
    leaf_path                  TEXT,
    leaf_id                    INTEGER          CHECK (leaf_id >= 0),
    home_key                   TEXT,
    tmp_key                    TEXT,
    exit_code                  INTEGER,
    exit_signal                INTEGER,
    exit_core                  INTEGER          CHECK (exit_core IN (0, 1)),
    tree_gone_by               TEXT,
    evidence_count             INTEGER NOT NULL CHECK (evidence_count > 0),
    chain_head                 TEXT    NOT NULL CHECK (length(chain_head) = 64),
    created_at                 TEXT    NOT NULL,
    updated_at                 TEXT    NOT NULL,
    last_observed_at           TEXT,
    UNIQUE (owner_id, idempotency_key),
    CHECK (exit_code IS NULL OR exit_signal IS NULL),
    CHECK ((exit_signal IS NULL) = (exit_core IS NULL))
) STRICT;

CREATE INDEX placement_attempts_by_owner ON placement_attempts (owner_id, created_at);
CREATE INDEX placement_attempts_unsettled ON placement_attempts (last_observed_at)
    WHERE execution_state IN ('starting', 'running', 'stopping', 'uncertain');
CREATE INDEX placement_attempts_uncleaned ON placement_attempts (last_observed_at)
    WHERE execution_state = 'exited' AND cleanup_state <> 'complete';

CREATE TABLE placement_evidence (
    attempt_id TEXT    NOT NULL REFERENCES placement_attempts (attempt_id),
    sequence   INTEGER NOT NULL CHECK (sequence > 0),
    at         TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    from_state TEXT,
    to_state   TEXT    NOT NULL,
    detail     TEXT    NOT NULL CHECK (length(CAST(detail AS BLOB)) <= 2048),
    chain      TEXT    NOT NULL CHECK (length(chain) = 64),
    PRIMARY KEY (attempt_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER placement_evidence_is_never_changed BEFORE UPDATE ON placement_evidence
BEGIN
    SELECT raise(ABORT, 'evidence is never changed');
END;

CREATE TRIGGER placement_evidence_is_never_removed BEFORE DELETE ON placement_evidence
BEGIN
    SELECT raise(ABORT, 'evidence is never removed');
END;

CREATE TABLE placement_runner_authorities (
    attempt_id    TEXT NOT NULL PRIMARY KEY REFERENCES placement_attempts (attempt_id),
    control_token BLOB NOT NULL UNIQUE CHECK (length(control_token) BETWEEN 16 AND 64)
) STRICT;
