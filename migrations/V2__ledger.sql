-- What is left of pruned attempts: one receipt each, which answers a retry and keeps the id taken.

CREATE TABLE placement_ledger (
    attempt_id            TEXT    NOT NULL PRIMARY KEY,
    owner_id              TEXT    NOT NULL,
    owner_incarnation     INTEGER NOT NULL CHECK (owner_incarnation > 0),
    action_id             TEXT    NOT NULL,
    idempotency_key       TEXT    NOT NULL,
    request_digest        TEXT    NOT NULL CHECK (length(request_digest) = 64),
    program               TEXT    NOT NULL,
    outcome               TEXT    NOT NULL CHECK (outcome IN
        ('exited', 'deadline_elapsed', 'not_started', 'executable_not_found',
         'executable_refused', 'unknown')),
    capability            TEXT    NOT NULL CHECK (capability IN
        ('direct_process', 'process_group', 'contained_tree')),
    required_cleanup      TEXT    NOT NULL CHECK (required_cleanup IN
        ('direct_process', 'process_group', 'contained_tree')),
    mechanism             TEXT             CHECK (mechanism IN
        ('cgroup', 'subreaper', 'pid_namespace')),
    exit_observation      TEXT    NOT NULL CHECK (exit_observation IN
        ('independent', 'eof_gated')),
    exit_source           TEXT             CHECK (exit_source IN
        ('runner', 'reconcile', 'terminal', 'operator')),
    exit_code             INTEGER,
    exit_signal           INTEGER,
    exit_core             INTEGER          CHECK (exit_core IN (0, 1)),
    tree_gone_by          TEXT,
    attachment_generation INTEGER NOT NULL CHECK (attachment_generation >= 0),
    evidence_count        INTEGER NOT NULL CHECK (evidence_count > 0),
    chain_head            TEXT    NOT NULL CHECK (length(chain_head) = 64),
    created_at            TEXT    NOT NULL,
    updated_at            TEXT    NOT NULL,
    pruned_at             TEXT    NOT NULL,
    UNIQUE (owner_id, idempotency_key),
    CHECK (exit_code IS NULL OR exit_signal IS NULL),
    CHECK ((exit_signal IS NULL) = (exit_core IS NULL))
) STRICT;

CREATE TRIGGER placement_ledger_is_never_changed BEFORE UPDATE ON placement_ledger
BEGIN
    SELECT raise(ABORT, 'the ledger is never changed');
END;

CREATE TRIGGER placement_ledger_is_never_removed BEFORE DELETE ON placement_ledger
BEGIN
    SELECT raise(ABORT, 'the ledger is never removed');
END;

-- Evidence goes only once its attempt has its receipt.
DROP TRIGGER placement_evidence_is_never_removed;

CREATE TRIGGER placement_evidence_is_never_removed BEFORE DELETE ON placement_evidence
WHEN NOT EXISTS (SELECT 1 FROM placement_ledger WHERE attempt_id = OLD.attempt_id)
BEGIN
    SELECT raise(ABORT, 'evidence is never removed before its attempt is in the ledger');
END;

CREATE INDEX placement_attempts_settled ON placement_attempts (owner_id, updated_at, attempt_id)
    WHERE execution_state = 'exited' AND cleanup_state = 'complete';

UPDATE placement_store_binding SET schema = 2;
