-- Workflows and their steps. Owner: crates/workflow.
-- definition: the file as it was when the run was started. A step has one row for each epoch of its run.
-- head: the commit that was checked out when the step began. child: the process of an attempt under way. started: the place in the order of beginning, from 1.

CREATE TABLE workflows (
    run_id      TEXT COLLATE "C" PRIMARY KEY REFERENCES runs (id),
    name        TEXT COLLATE "C" NOT NULL,
    definition  TEXT COLLATE "C" NOT NULL,
    options     TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('running', 'stopped', 'failed', 'completed')),
    failed_step TEXT COLLATE "C",
    error       TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

CREATE TABLE workflow_steps (
    run_id          TEXT COLLATE "C" NOT NULL REFERENCES workflows (run_id),
    epoch           BIGINT NOT NULL,
    step            TEXT COLLATE "C" NOT NULL,
    state           TEXT COLLATE "C" NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'interrupted', 'skipped')),
    started         BIGINT NOT NULL,
    dispatch_id     TEXT COLLATE "C" REFERENCES dispatches (id),
    checkpoint_id   TEXT COLLATE "C" REFERENCES checkpoints (id),
    compensation_id TEXT COLLATE "C" REFERENCES compensations (id),
    attempts        BIGINT NOT NULL,
    exit_code       BIGINT,
    error           TEXT COLLATE "C",
    duration_ms     BIGINT,
    log             BYTEA,
    head            TEXT COLLATE "C",
    child           TEXT COLLATE "C",
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (run_id, epoch, step)
);

CREATE TRIGGER workflows_are_not_deleted BEFORE DELETE ON workflows
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER workflow_steps_are_not_deleted BEFORE DELETE ON workflow_steps
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
