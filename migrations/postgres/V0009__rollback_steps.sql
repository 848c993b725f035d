-- The journal of rollbacks over several layers. Owner: crates/ops.
-- layer: effects, tree (files and git), data, settle. detail: what the step found and did, a JSON object.

CREATE TABLE rollback_steps (
    rollback_id TEXT COLLATE "C" NOT NULL REFERENCES rollbacks (id),
    ord         BIGINT NOT NULL,
    layer       TEXT COLLATE "C" NOT NULL CHECK (layer IN ('effects', 'tree', 'data', 'settle')),
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'skipped')),
    detail      TEXT COLLATE "C",
    error       TEXT COLLATE "C",
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (rollback_id, ord)
);

CREATE TRIGGER rollback_steps_are_not_deleted BEFORE DELETE ON rollback_steps
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');

-- All rollbacks, oldest first.
CREATE UNIQUE INDEX rollbacks_by_seq ON rollbacks (seq);
