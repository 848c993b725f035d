-- Runs, their skips and their rollbacks. Owners: crates/phase (runs, run_skips), crates/kernel (rollbacks, rollback_steps).
-- reversed_id: the id's hex digits, last first, so that an index finds an id by its last digits.
-- seq: the event that recorded the row; what a cut is compared with.

CREATE TABLE runs (
    id           TEXT COLLATE "C" PRIMARY KEY,
    reversed_id  TEXT COLLATE "C" NOT NULL,
    seq          BIGINT NOT NULL,
    goal         TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'rolling_back', 'completed', 'cancelled', 'failed')),
    phase        TEXT COLLATE "C" NOT NULL,
    phases       TEXT COLLATE "C" NOT NULL,
    project_dir  BYTEA NOT NULL,
    complexity   BIGINT CHECK (complexity BETWEEN 1 AND 5),
    auto_advance BIGINT NOT NULL CHECK (auto_advance IN (0, 1)),
    gates        TEXT COLLATE "C" NOT NULL,
    scope_id     TEXT COLLATE "C",
    metadata     TEXT COLLATE "C" NOT NULL,
    epoch        BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    completed_at BIGINT
);

CREATE INDEX runs_by_suffix ON runs (reversed_id);
CREATE UNIQUE INDEX runs_by_seq ON runs (seq);
CREATE INDEX runs_of_project ON runs (project_dir, seq);
CREATE INDEX runs_of_scope ON runs (scope_id, seq) WHERE scope_id IS NOT NULL;
CREATE INDEX runs_open ON runs (seq) WHERE status IN ('active', 'rolling_back');
CREATE INDEX runs_open_of_project ON runs (project_dir, seq) WHERE status IN ('active', 'rolling_back');

CREATE TABLE rollbacks (
    id          TEXT COLLATE "C" PRIMARY KEY,
    reversed_id TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    status      TEXT COLLATE "C" NOT NULL CHECK (status IN ('in_progress', 'stopped', 'done', 'aborted', 'undone')),
    layers      TEXT COLLATE "C" NOT NULL,
    from_phase  TEXT COLLATE "C" NOT NULL,
    to_phase    TEXT COLLATE "C" NOT NULL,
    include_target BIGINT NOT NULL CHECK (include_target IN (0, 1)),
    cut_seq     BIGINT NOT NULL,
    epoch       BIGINT NOT NULL,
    reason      TEXT COLLATE "C",
    plan_hash   TEXT COLLATE "C" NOT NULL,
    plan        TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX rollbacks_by_suffix ON rollbacks (reversed_id);
CREATE INDEX rollbacks_of_run ON rollbacks (run_id, seq);
CREATE UNIQUE INDEX rollbacks_by_seq ON rollbacks (seq);

CREATE TABLE run_skips (
    seq            BIGINT PRIMARY KEY,
    run_id         TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    phase          TEXT COLLATE "C" NOT NULL,
    reason         TEXT COLLATE "C",
    created_at     BIGINT NOT NULL,
    rolled_back_by TEXT COLLATE "C" REFERENCES rollbacks (id)
);

CREATE UNIQUE INDEX run_skips_standing ON run_skips (run_id, phase) WHERE rolled_back_by IS NULL;
CREATE INDEX run_skips_rolled_back ON run_skips (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TRIGGER runs_are_not_deleted BEFORE DELETE ON runs
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER rollbacks_are_not_deleted BEFORE DELETE ON rollbacks
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER run_skips_are_not_deleted BEFORE DELETE ON run_skips
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');

-- The journal of rollbacks over several layers. Owner: crates/kernel.
-- layer: effects, tree (files and git), data, settle. detail: what the step found and did, a JSON object.
-- course: which way the rollback goes, in the row of its settlement alone. error_code: the code of a failed step.
-- What decides how a journal is resumed or undone is a column: a redaction takes the texts for people out.
CREATE TABLE rollback_steps (
    rollback_id TEXT COLLATE "C" NOT NULL REFERENCES rollbacks (id),
    ord         BIGINT NOT NULL,
    layer       TEXT COLLATE "C" NOT NULL CHECK (layer IN ('effects', 'tree', 'data', 'settle')),
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'skipped')),
    detail      TEXT COLLATE "C",
    error       TEXT COLLATE "C",
    updated_at  BIGINT NOT NULL,
    course      TEXT COLLATE "C",
    error_code  TEXT COLLATE "C",
    PRIMARY KEY (rollback_id, ord)
);

CREATE TRIGGER rollback_steps_are_not_deleted BEFORE DELETE ON rollback_steps
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
