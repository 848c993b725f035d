-- Actions that undo outside effects. Owner: crates/effects.
-- ord: the order in which what they undo was begun, within the run. needs: the steps that theirs depends on, a JSON array.
-- step_ended: how the step ended; NULL while that is not known. child: the process of an undo under way.
-- outcome_unknown: 1 when the process of the last undo died in its middle.

CREATE TABLE compensations (
    id              TEXT PRIMARY KEY,
    reversed_id     TEXT NOT NULL,
    seq             INTEGER NOT NULL,
    run_id          TEXT NOT NULL REFERENCES runs (id),
    dispatch_id     TEXT REFERENCES dispatches (id),
    step            TEXT NOT NULL,
    needs           TEXT NOT NULL,
    phase           TEXT NOT NULL,
    epoch           INTEGER NOT NULL,
    ord             INTEGER NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('exec', 'file', 'process', 'skip', 'retry', 'pivot')),
    args            TEXT NOT NULL,
    description     TEXT,
    state           TEXT NOT NULL CHECK (state IN ('registered', 'armed', 'running', 'done', 'failed', 'skipped')),
    step_ended      TEXT CHECK (step_ended IN ('succeeded', 'failed')),
    outputs         TEXT,
    attempts        INTEGER NOT NULL,
    last_error      TEXT,
    child           TEXT,
    rolled_back_by  TEXT REFERENCES rollbacks (id),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    outcome_unknown INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX compensations_by_seq ON compensations (seq);
CREATE INDEX compensations_by_suffix ON compensations (reversed_id);
CREATE UNIQUE INDEX compensations_of_run ON compensations (run_id, ord);
CREATE INDEX compensations_rolled_back ON compensations (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

-- Who compensates, or executes, a run. Only writes with this token count. process: its number, start time and boot, as JSON. The lock
-- decides whether it lives; this names it.
CREATE TABLE run_owners (
    run_id        TEXT PRIMARY KEY REFERENCES runs (id),
    token         TEXT NOT NULL,
    status_before TEXT,
    taken_at      INTEGER NOT NULL,
    process       TEXT
) STRICT;

CREATE TRIGGER compensations_are_not_deleted BEFORE DELETE ON compensations
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
