-- Sessions: the attempt that holds one, and what the files of its retained home first were.

ALTER TABLE placement_attempts ADD COLUMN session_ref TEXT;
ALTER TABLE placement_ledger   ADD COLUMN session_ref TEXT;

-- One holder for each session of an owner, until it is exited and cleaned up.
CREATE UNIQUE INDEX placement_attempts_holding ON placement_attempts (owner_id, session_ref)
    WHERE session_ref IS NOT NULL
        AND (execution_state <> 'exited' OR cleanup_state <> 'complete');

CREATE TABLE placement_session_files (
    owner_id    TEXT NOT NULL,
    session_ref TEXT NOT NULL,
    path        TEXT NOT NULL,
    digest      TEXT NOT NULL CHECK (length(digest) = 64),
    created_at  TEXT NOT NULL,
    PRIMARY KEY (owner_id, session_ref, path)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER placement_session_files_are_never_changed BEFORE UPDATE ON placement_session_files
BEGIN
    SELECT raise(ABORT, 'the first digest of a file stays');
END;

CREATE TRIGGER placement_session_files_are_never_removed BEFORE DELETE ON placement_session_files
BEGIN
    SELECT raise(ABORT, 'the first digest of a file stays');
END;

UPDATE placement_store_binding SET schema = 5;
