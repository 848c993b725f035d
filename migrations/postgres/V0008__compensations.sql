-- Actions that undo outside effects. Owner: crates/effects.
-- ord: the order in which what they undo was begun, within the run. needs: the steps that theirs depends on, a JSON array.
-- step_ended: how the step ended; NULL while that is not known. child: the process of an undo under way.
-- outcome_unknown: 1 when the process of the last undo died in its middle.

CREATE TABLE compensations (
    id              TEXT COLLATE "C" PRIMARY KEY,
    reversed_id     TEXT COLLATE "C" NOT NULL,
    seq             BIGINT NOT NULL,
    run_id          TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    dispatch_id     TEXT COLLATE "C" REFERENCES dispatches (id),
    step            TEXT COLLATE "C" NOT NULL,
    needs           TEXT COLLATE "C" NOT NULL,
    phase           TEXT COLLATE "C" NOT NULL,
    epoch           BIGINT NOT NULL,
    ord             BIGINT NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL CHECK (kind IN ('exec', 'file', 'process', 'skip', 'retry', 'pivot')),
    args            TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C",
    state           TEXT COLLATE "C" NOT NULL CHECK (state IN ('registered', 'armed', 'running', 'done', 'failed', 'skipped')),
    step_ended      TEXT COLLATE "C" CHECK (step_ended IN ('succeeded', 'failed')),
    outputs         TEXT COLLATE "C",
    attempts        BIGINT NOT NULL,
    last_error      TEXT COLLATE "C",
    child           TEXT COLLATE "C",
    rolled_back_by  TEXT COLLATE "C" REFERENCES rollbacks (id),
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    outcome_unknown BIGINT NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX compensations_by_seq ON compensations (seq);
CREATE INDEX compensations_by_suffix ON compensations (reversed_id);
CREATE UNIQUE INDEX compensations_of_run ON compensations (run_id, ord);
CREATE INDEX compensations_rolled_back ON compensations (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

-- Who compensates, or executes, a run. Only writes with this token count. process: its number, start time and boot, as JSON. The lock
-- decides whether it lives; this names it.
CREATE TABLE run_owners (
    run_id        TEXT COLLATE "C" PRIMARY KEY REFERENCES runs (id),
    token         TEXT COLLATE "C" NOT NULL,
    status_before TEXT COLLATE "C",
    taken_at      BIGINT NOT NULL,
    process       TEXT COLLATE "C"
);

CREATE TRIGGER compensations_are_not_deleted BEFORE DELETE ON compensations
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
