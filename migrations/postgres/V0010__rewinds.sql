-- Rewinds of an application's own database. Owner: crates/rewind. The rows that one took lie in its archive, beside the ledger.
-- root: the working tree that git moved. target: the configuration as it was then, JSON. scope: the task's, JSON.
-- task_id: the task that is gone back to. git_commit: the commit that the tree goes to; NULL: the tree stays.
-- forced: local changes are no hindrance. left_*: what was checked out before; kept_ref keeps it reachable.
-- stage: what is done. child: the process of the command for vectors, while it runs. result: what was deleted, JSON.

CREATE TABLE rewinds (
    id          TEXT COLLATE "C" PRIMARY KEY,
    reversed_id TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    root        BYTEA NOT NULL,
    database    BYTEA NOT NULL,
    task_id     TEXT COLLATE "C" NOT NULL,
    scope       TEXT COLLATE "C" NOT NULL,
    target      TEXT COLLATE "C" NOT NULL,
    git_commit  TEXT COLLATE "C",
    forced      BIGINT NOT NULL CHECK (forced IN (0, 1)),
    stage       TEXT COLLATE "C" NOT NULL CHECK (stage IN ('planned', 'git_done', 'db_done', 'vector_done')),
    status      TEXT COLLATE "C" NOT NULL CHECK (status IN ('in_progress', 'stopped', 'done', 'undone')),
    safety_id   TEXT COLLATE "C" REFERENCES checkpoints (id),
    left_branch BYTEA,
    left_head   TEXT COLLATE "C",
    kept_ref    BYTEA,
    archive     BYTEA NOT NULL,
    child       TEXT COLLATE "C",
    result      TEXT COLLATE "C" NOT NULL,
    error       TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    CHECK (status <> 'done' OR stage = 'vector_done')
);

CREATE UNIQUE INDEX rewinds_by_seq ON rewinds (seq);
CREATE INDEX rewinds_by_suffix ON rewinds (reversed_id);
CREATE INDEX rewinds_unfinished ON rewinds (database) WHERE status IN ('in_progress', 'stopped');

CREATE TRIGGER rewinds_are_not_deleted BEFORE DELETE ON rewinds
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');

-- Where an application's own database was when a run moved. Owner: crates/rewind.
-- seq: the advance, or the run's creation. mark: the greatest order and key of each scope then, JSON.

CREATE TABLE state_marks (
    seq      BIGINT PRIMARY KEY,
    run_id   TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    database BYTEA NOT NULL,
    mark     TEXT COLLATE "C" NOT NULL
);

CREATE TRIGGER state_marks_are_not_deleted BEFORE DELETE ON state_marks
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
