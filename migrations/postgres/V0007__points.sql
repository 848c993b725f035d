-- Places in runs to which they can go back, besides the phases that they leave. Owner: crates/phase.
-- seq: the event of the point; what begins there lies after it. Steps that begin from one look at the tree share it.
-- name: the step's name, or the id of the dispatch, prompt or guarded command. attempt: from 1, in the run's epoch.

CREATE TABLE points (
    run_id        TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    kind          TEXT COLLATE "C" NOT NULL CHECK (kind IN ('step', 'dispatch', 'prompt', 'guard')),
    name          TEXT COLLATE "C" NOT NULL,
    epoch         BIGINT NOT NULL,
    attempt       BIGINT NOT NULL,
    seq           BIGINT NOT NULL,
    phase         TEXT COLLATE "C" NOT NULL,
    checkpoint_id TEXT COLLATE "C" REFERENCES checkpoints (id),
    session       TEXT COLLATE "C",
    title         TEXT COLLATE "C",
    created_at    BIGINT NOT NULL,
    PRIMARY KEY (run_id, kind, name, epoch, attempt)
);

CREATE INDEX points_of_run ON points (run_id, seq);
CREATE INDEX points_named ON points (kind, name);

CREATE TRIGGER points_are_not_deleted BEFORE DELETE ON points
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
