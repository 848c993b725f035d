-- Rewinds of an application's own database. Owner: crates/rewind. The rows that one took lie in its archive, beside the ledger.
-- root: the working tree that git moved. target: the configuration as it was then, JSON. scope: the task's, JSON.
-- task_id: the task that is gone back to. git_commit: the commit that the tree goes to; NULL: the tree stays.
-- forced: local changes are no hindrance. left_*: what was checked out before; kept_ref keeps it reachable.
-- stage: what is done. child: the process of the command for vectors, while it runs. result: what was deleted, JSON.

CREATE TABLE rewinds (
    id          TEXT PRIMARY KEY,
    reversed_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    root        BLOB NOT NULL,
    database    BLOB NOT NULL,
    task_id     TEXT NOT NULL,
    scope       TEXT NOT NULL,
    target      TEXT NOT NULL,
    git_commit  TEXT,
    forced      INTEGER NOT NULL CHECK (forced IN (0, 1)),
    stage       TEXT NOT NULL CHECK (stage IN ('planned', 'git_done', 'db_done', 'vector_done')),
    status      TEXT NOT NULL CHECK (status IN ('in_progress', 'stopped', 'done', 'undone')),
    safety_id   TEXT REFERENCES checkpoints (id),
    left_branch BLOB,
    left_head   TEXT,
    kept_ref    BLOB,
    archive     BLOB NOT NULL,
    child       TEXT,
    result      TEXT NOT NULL,
    error       TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    CHECK (status <> 'done' OR stage = 'vector_done')
) STRICT;

CREATE UNIQUE INDEX rewinds_by_seq ON rewinds (seq);
CREATE INDEX rewinds_by_suffix ON rewinds (reversed_id);
CREATE INDEX rewinds_unfinished ON rewinds (database) WHERE status IN ('in_progress', 'stopped');

CREATE TRIGGER rewinds_are_not_deleted BEFORE DELETE ON rewinds
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- Where an application's own database was when a run moved. Owner: crates/rewind.
-- seq: the advance, or the run's creation. mark: the greatest order and key of each scope then, JSON.

CREATE TABLE state_marks (
    seq      INTEGER PRIMARY KEY,
    run_id   TEXT NOT NULL REFERENCES runs (id),
    database BLOB NOT NULL,
    mark     TEXT NOT NULL
) STRICT;

CREATE TRIGGER state_marks_are_not_deleted BEFORE DELETE ON state_marks
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
