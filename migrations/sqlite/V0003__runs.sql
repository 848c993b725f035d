-- Runs, their skips and their rollbacks. Owners: crates/phase (runs, run_skips), crates/kernel (rollbacks, rollback_steps).
-- reversed_id: the id's hex digits, last first, so that an index finds an id by its last digits.
-- seq: the event that recorded the row; what a cut is compared with.

CREATE TABLE runs (
    id           TEXT PRIMARY KEY,
    reversed_id  TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    goal         TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('active', 'rolling_back', 'completed', 'cancelled', 'failed')),
    phase        TEXT NOT NULL,
    phases       TEXT NOT NULL,
    project_dir  BLOB NOT NULL,
    complexity   INTEGER CHECK (complexity BETWEEN 1 AND 5),
    auto_advance INTEGER NOT NULL CHECK (auto_advance IN (0, 1)),
    gates        TEXT NOT NULL,
    scope_id     TEXT,
    metadata     TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    completed_at INTEGER
) STRICT;

CREATE INDEX runs_by_suffix ON runs (reversed_id);
CREATE UNIQUE INDEX runs_by_seq ON runs (seq);
CREATE INDEX runs_of_project ON runs (project_dir, seq);
CREATE INDEX runs_of_scope ON runs (scope_id, seq) WHERE scope_id IS NOT NULL;
CREATE INDEX runs_open ON runs (seq) WHERE status IN ('active', 'rolling_back');
CREATE INDEX runs_open_of_project ON runs (project_dir, seq) WHERE status IN ('active', 'rolling_back');

CREATE TABLE rollbacks (
    id          TEXT PRIMARY KEY,
    reversed_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    status      TEXT NOT NULL CHECK (status IN ('in_progress', 'stopped', 'done', 'aborted', 'undone')),
    layers      TEXT NOT NULL,
    from_phase  TEXT NOT NULL,
    to_phase    TEXT NOT NULL,
    include_target INTEGER NOT NULL CHECK (include_target IN (0, 1)),
    cut_seq     INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    reason      TEXT,
    plan_hash   TEXT NOT NULL,
    plan        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;

CREATE INDEX rollbacks_by_suffix ON rollbacks (reversed_id);
CREATE INDEX rollbacks_of_run ON rollbacks (run_id, seq);
CREATE UNIQUE INDEX rollbacks_by_seq ON rollbacks (seq);

CREATE TABLE run_skips (
    seq            INTEGER PRIMARY KEY,
    run_id         TEXT NOT NULL REFERENCES runs (id),
    phase          TEXT NOT NULL,
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    rolled_back_by TEXT REFERENCES rollbacks (id)
) STRICT;

CREATE UNIQUE INDEX run_skips_standing ON run_skips (run_id, phase) WHERE rolled_back_by IS NULL;
CREATE INDEX run_skips_rolled_back ON run_skips (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TRIGGER runs_are_not_deleted BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
CREATE TRIGGER rollbacks_are_not_deleted BEFORE DELETE ON rollbacks
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
CREATE TRIGGER run_skips_are_not_deleted BEFORE DELETE ON run_skips
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- The journal of rollbacks over several layers. Owner: crates/kernel.
-- layer: effects, tree (files and git), data, settle. detail: what the step found and did, a JSON object.
-- course: which way the rollback goes, in the row of its settlement alone. error_code: the code of a failed step.
-- What decides how a journal is resumed or undone is a column: a redaction takes the texts for people out.
CREATE TABLE rollback_steps (
    rollback_id TEXT NOT NULL REFERENCES rollbacks (id),
    ord         INTEGER NOT NULL,
    layer       TEXT NOT NULL CHECK (layer IN ('effects', 'tree', 'data', 'settle')),
    state       TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'skipped')),
    detail      TEXT,
    error       TEXT,
    updated_at  INTEGER NOT NULL,
    course      TEXT,
    error_code  TEXT,
    PRIMARY KEY (rollback_id, ord)
) STRICT;

CREATE TRIGGER rollback_steps_are_not_deleted BEFORE DELETE ON rollback_steps
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
