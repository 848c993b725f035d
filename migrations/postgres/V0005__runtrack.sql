-- Who works on a run, and what it produced. Owner: crates/runtrack.

CREATE TABLE run_artifacts (
    id             TEXT COLLATE "C" PRIMARY KEY,
    reversed_id    TEXT COLLATE "C" NOT NULL,
    seq            BIGINT NOT NULL,
    run_id         TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    phase          TEXT COLLATE "C" NOT NULL,
    path           BYTEA NOT NULL,
    type           TEXT COLLATE "C" NOT NULL,
    content_hash   TEXT COLLATE "C",
    dispatch_id    TEXT COLLATE "C" REFERENCES dispatches (id),
    status         TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'rolled_back')),
    created_at     BIGINT NOT NULL,
    rolled_back_by TEXT COLLATE "C" REFERENCES rollbacks (id),
    CHECK ((status = 'rolled_back') = (rolled_back_by IS NOT NULL))
);

CREATE INDEX run_artifacts_by_suffix ON run_artifacts (reversed_id);
CREATE INDEX run_artifacts_of_run ON run_artifacts (run_id, seq);
CREATE INDEX run_artifacts_rolled_back ON run_artifacts (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TABLE run_agents (
    id             TEXT COLLATE "C" PRIMARY KEY,
    reversed_id    TEXT COLLATE "C" NOT NULL,
    seq            BIGINT NOT NULL,
    run_id         TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    phase          TEXT COLLATE "C" NOT NULL,
    type           TEXT COLLATE "C" NOT NULL,
    name           TEXT COLLATE "C",
    dispatch_id    TEXT COLLATE "C" REFERENCES dispatches (id),
    status         TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'completed', 'failed')),
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    rolled_back_by TEXT COLLATE "C" REFERENCES rollbacks (id)
);

CREATE INDEX run_agents_by_suffix ON run_agents (reversed_id);
CREATE INDEX run_agents_of_run ON run_agents (run_id, seq);
CREATE INDEX run_agents_rolled_back ON run_agents (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE TRIGGER run_artifacts_are_not_deleted BEFORE DELETE ON run_artifacts
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER run_agents_are_not_deleted BEFORE DELETE ON run_agents
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
