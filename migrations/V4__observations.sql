-- When an attempt was last looked at, in a table of its own: a pass over many writes a few small
-- pages, not the page of every attempt. What the attempts' own column held is taken over; that column
-- is not read or written any more.

CREATE TABLE placement_observations (
    attempt_id  TEXT NOT NULL PRIMARY KEY REFERENCES placement_attempts (attempt_id),
    observed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO placement_observations (attempt_id, observed_at)
    SELECT attempt_id, last_observed_at FROM placement_attempts WHERE last_observed_at IS NOT NULL;

CREATE INDEX placement_observations_by_time ON placement_observations (observed_at);

-- What is open is found by these; in which order it is taken, the observations say.
DROP INDEX placement_attempts_unsettled;
CREATE INDEX placement_attempts_unsettled ON placement_attempts (execution_state, attempt_id)
    WHERE execution_state IN ('starting', 'running', 'stopping', 'uncertain');
DROP INDEX placement_attempts_uncleaned;
CREATE INDEX placement_attempts_uncleaned ON placement_attempts (attempt_id)
    WHERE execution_state = 'exited' AND cleanup_state <> 'complete';

UPDATE placement_store_binding SET schema = 4;
