-- Who works on a run, and what it produced. Owner: crates/runtrack.

CREATE TABLE run_artifacts (
    id             TEXT PRIMARY KEY,
    reversed_id    TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    run_id         TEXT NOT NULL REFERENCES runs (id),
    phase          TEXT NOT NULL,
    path           BLOB NOT NULL,
    type           TEXT NOT NULL,
    content_hash   TEXT,
    dispatch_id    TEXT REFERENCES dispatches (id),
    status         TEXT NOT NULL CHECK (status IN ('active', 'rolled_back')),
    created_at     INTEGER NOT NULL,
    rolled_back_by TEXT REFERENCES rollbacks (id),
    CHECK ((status = 'rolled_back') = (rolled_back_by IS NOT NULL))
) STRICT;

CREATE INDEX run_artifacts_by_suffix ON run_artifacts (reversed_id);
CREATE INDEX run_artifacts_of_run ON run_artifacts (run_id, seq);
CREATE INDEX run_artifacts_rolled_back ON run_artifacts (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TABLE run_agents (
    id             TEXT PRIMARY KEY,
    reversed_id    TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    run_id         TEXT NOT NULL REFERENCES runs (id),
    phase          TEXT NOT NULL,
    type           TEXT NOT NULL,
    name           TEXT,
    dispatch_id    TEXT REFERENCES dispatches (id),
    status         TEXT NOT NULL CHECK (status IN ('active', 'completed', 'failed')),
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    rolled_back_by TEXT REFERENCES rollbacks (id)
) STRICT;

CREATE INDEX run_agents_by_suffix ON run_agents (reversed_id);
CREATE INDEX run_agents_of_run ON run_agents (run_id, seq);
CREATE INDEX run_agents_rolled_back ON run_agents (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TRIGGER run_artifacts_are_not_deleted BEFORE DELETE ON run_artifacts
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
CREATE TRIGGER run_agents_are_not_deleted BEFORE DELETE ON run_agents
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
