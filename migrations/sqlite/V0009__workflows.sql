-- Workflows and their steps. Owner: crates/workflow.
-- definition: the file as it was when the run was started. A step has one row for each epoch of its run.
-- head: the commit that was checked out when the step began. child: the process of an attempt under way. started: the place in the order of beginning, from 1.

CREATE TABLE workflows (
    run_id      TEXT PRIMARY KEY REFERENCES runs (id),
    name        TEXT NOT NULL,
    definition  TEXT NOT NULL,
    options     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('running', 'stopped', 'failed', 'completed')),
    failed_step TEXT,
    error       TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE workflow_steps (
    run_id          TEXT NOT NULL REFERENCES workflows (run_id),
    epoch           INTEGER NOT NULL,
    step            TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'interrupted', 'skipped')),
    started         INTEGER NOT NULL,
    dispatch_id     TEXT REFERENCES dispatches (id),
    checkpoint_id   TEXT REFERENCES checkpoints (id),
    compensation_id TEXT REFERENCES compensations (id),
    attempts        INTEGER NOT NULL,
    exit_code       INTEGER,
    error           TEXT,
    duration_ms     INTEGER,
    log             BLOB,
    head            TEXT,
    child           TEXT,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (run_id, epoch, step)
) STRICT;

CREATE TRIGGER workflows_are_not_deleted BEFORE DELETE ON workflows
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
CREATE TRIGGER workflow_steps_are_not_deleted BEFORE DELETE ON workflow_steps
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
