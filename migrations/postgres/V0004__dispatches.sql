-- Dispatches, the commits and files they produced. Owner: crates/dispatch.
-- pid_start_time, pid_boot_id: which process the number names, because numbers are used again. NULL: it is not known.
-- started_seq: the event that began the work. What it belongs to is decided by when it began. NULL: it has not begun.
-- finished_seq: the event that ended the work. What else was at work at the same time is decided by events, never by a clock. NULL: it goes on.
-- ttl_millis, due_at: how long the work may be silent, and when it is lost unless it beats before. NULL: it does not beat.
-- parent_id: the work that began this one, and that takes it along when it is undone: a prompt, for what a subagent did for it.
-- NULL: a person or a script began it.

CREATE TABLE dispatches (
    id             TEXT COLLATE "C" PRIMARY KEY,
    reversed_id    TEXT COLLATE "C" NOT NULL,
    seq            BIGINT NOT NULL,
    run_id         TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    phase          TEXT COLLATE "C" NOT NULL,
    epoch          BIGINT NOT NULL,
    status         TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed', 'timed_out', 'interrupted', 'cancelled')),
    agent_type     TEXT COLLATE "C",
    name           TEXT COLLATE "C",
    model          TEXT COLLATE "C",
    prompt_file    BYTEA,
    pid            BIGINT,
    summary        TEXT COLLATE "C",
    verdict        TEXT COLLATE "C" CHECK (verdict IN ('pass', 'fail')),
    error          TEXT COLLATE "C",
    tokens_in      BIGINT NOT NULL,
    tokens_out     BIGINT NOT NULL,
    tokens_cache   BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    finished_at    BIGINT,
    rolled_back_by TEXT COLLATE "C" REFERENCES rollbacks (id),
    pid_start_time TEXT COLLATE "C",
    pid_boot_id    TEXT COLLATE "C",
    started_seq    BIGINT,
    finished_seq   BIGINT,
    parent_id      TEXT COLLATE "C" REFERENCES dispatches (id),
    ttl_millis     BIGINT,
    due_at         BIGINT
);

CREATE INDEX dispatches_by_suffix ON dispatches (reversed_id);
CREATE UNIQUE INDEX dispatches_by_seq ON dispatches (seq);
CREATE INDEX dispatches_of_run ON dispatches (run_id, seq);
CREATE INDEX dispatches_by_status ON dispatches (status, seq);
CREATE INDEX dispatches_rolled_back ON dispatches (rolled_back_by) WHERE rolled_back_by IS NOT NULL;
CREATE INDEX dispatches_of_parents ON dispatches (parent_id, seq) WHERE parent_id IS NOT NULL;

-- seq: the event that recorded the commit; ord: its place in that report, oldest first.
-- late: the dispatch had been rolled back when it reported.
-- before_sha: a commit known already that came after this one, when a later report closed a gap of an earlier one.
CREATE TABLE dispatch_commits (
    seq         BIGINT NOT NULL,
    ord         BIGINT NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    dispatch_id TEXT COLLATE "C" NOT NULL REFERENCES dispatches (id),
    sha         TEXT COLLATE "C" NOT NULL,
    before_sha  TEXT COLLATE "C",
    late        BIGINT NOT NULL CHECK (late IN (0, 1)),
    PRIMARY KEY (dispatch_id, sha)
);

CREATE INDEX dispatch_commits_of_run ON dispatch_commits (run_id, seq, ord);
CREATE INDEX dispatch_commits_by_sha ON dispatch_commits (sha);

-- commit_sha: the commit that the file belongs to, or '' when it was recorded by itself.
CREATE TABLE dispatch_files (
    seq         BIGINT NOT NULL,
    ord         BIGINT NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    dispatch_id TEXT COLLATE "C" NOT NULL REFERENCES dispatches (id),
    path        BYTEA NOT NULL,
    commit_sha  TEXT COLLATE "C" NOT NULL,
    late        BIGINT NOT NULL CHECK (late IN (0, 1))
);

-- The key; of the hash of the path, because an index holds no more than 2,704 bytes and a path has up to 4,096.
CREATE UNIQUE INDEX dispatch_files_key ON dispatch_files (dispatch_id, sha256(path), commit_sha);

CREATE INDEX dispatch_files_of_run ON dispatch_files (run_id, seq, ord);
-- What other runs recorded since a checkpoint.
CREATE INDEX dispatch_files_by_seq ON dispatch_files (seq, ord);

CREATE TRIGGER dispatches_are_not_deleted BEFORE DELETE ON dispatches
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER dispatch_commits_are_not_deleted BEFORE DELETE ON dispatch_commits
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER dispatch_files_are_not_deleted BEFORE DELETE ON dispatch_files
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
