-- Places in runs to which they can go back, besides the phases that they leave. Owner: crates/phase.
-- seq: the event of the point; what begins there lies after it. Steps that begin from one look at the tree share it.
-- name: the step's name, or the id of the dispatch, prompt or guarded command. attempt: from 1, in the run's epoch.

CREATE TABLE points (
    run_id        TEXT NOT NULL REFERENCES runs (id),
    kind          TEXT NOT NULL CHECK (kind IN ('step', 'dispatch', 'prompt', 'guard')),
    name          TEXT NOT NULL,
    epoch         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    phase         TEXT NOT NULL,
    checkpoint_id TEXT REFERENCES checkpoints (id),
    session       TEXT,
    title         TEXT,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (run_id, kind, name, epoch, attempt)
) STRICT;

CREATE INDEX points_of_run ON points (run_id, seq);
CREATE INDEX points_named ON points (kind, name);

CREATE TRIGGER points_are_not_deleted BEFORE DELETE ON points
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
