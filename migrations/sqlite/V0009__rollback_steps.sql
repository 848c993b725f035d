-- The journal of rollbacks over several layers. Owner: crates/ops.
-- layer: effects, tree (files and git), data, settle. detail: what the step found and did, a JSON object.

CREATE TABLE rollback_steps (
    rollback_id TEXT NOT NULL REFERENCES rollbacks (id),
    ord         INTEGER NOT NULL,
    layer       TEXT NOT NULL CHECK (layer IN ('effects', 'tree', 'data', 'settle')),
    state       TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'skipped')),
    detail      TEXT,
    error       TEXT,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (rollback_id, ord)
) STRICT;

CREATE TRIGGER rollback_steps_are_not_deleted BEFORE DELETE ON rollback_steps
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- All rollbacks, oldest first.
CREATE UNIQUE INDEX rollbacks_by_seq ON rollbacks (seq);
