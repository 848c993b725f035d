CREATE INDEX calls_by_end ON calls (ended_seq) WHERE ended_seq IS NOT NULL;

CREATE INDEX calls_of_agents ON calls (session_id, agent_id, began_seq) WHERE agent_id IS NOT NULL;

CREATE INDEX calls_of_dispatches ON calls (dispatch_id, began_seq, id);

CREATE INDEX calls_of_sessions ON calls (session_id, call_id, began_seq, id);

CREATE INDEX calls_that_run ON calls (began_seq, id) WHERE ended_seq IS NULL;

CREATE INDEX checkpoints_below ON checkpoints (parent_id) WHERE parent_id IS NOT NULL;

CREATE UNIQUE INDEX checkpoints_by_seq ON checkpoints (seq);

CREATE INDEX checkpoints_by_suffix ON checkpoints (reversed_id);

CREATE INDEX checkpoints_kept ON checkpoints (seq) WHERE pruned_at IS NULL;

CREATE INDEX checkpoints_named ON checkpoints (root, name, seq) WHERE name IS NOT NULL;

CREATE INDEX checkpoints_of_advance ON checkpoints (advance_seq) WHERE advance_seq IS NOT NULL;

CREATE INDEX checkpoints_of_conversation ON checkpoints (conversation, seq) WHERE conversation IS NOT NULL;

CREATE INDEX checkpoints_of_root ON checkpoints (root, seq);

CREATE INDEX checkpoints_of_run ON checkpoints (run_id, seq) WHERE run_id IS NOT NULL;

CREATE INDEX checkpoints_of_workflow ON checkpoints (workflow, seq) WHERE workflow IS NOT NULL;

CREATE UNIQUE INDEX compensations_by_seq ON compensations (seq);

CREATE INDEX compensations_by_suffix ON compensations (reversed_id);

CREATE UNIQUE INDEX compensations_of_run ON compensations (run_id, ord);

CREATE INDEX compensations_rolled_back ON compensations (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE INDEX dispatch_commits_by_sha ON dispatch_commits (sha);

CREATE INDEX dispatch_commits_of_run ON dispatch_commits (run_id, seq, ord);

CREATE INDEX dispatch_files_by_seq ON dispatch_files (seq, ord);

CREATE INDEX dispatch_files_of_run ON dispatch_files (run_id, seq, ord);

CREATE UNIQUE INDEX dispatches_by_seq ON dispatches (seq);

CREATE INDEX dispatches_by_status ON dispatches (status, seq);

CREATE INDEX dispatches_by_suffix ON dispatches (reversed_id);

CREATE INDEX dispatches_of_parents ON dispatches (parent_id, seq) WHERE parent_id IS NOT NULL;

CREATE INDEX dispatches_of_run ON dispatches (run_id, seq);

CREATE INDEX dispatches_rolled_back ON dispatches (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE INDEX events_crossings ON events (run_id, seq) WHERE type IN ('advance', 'override');

CREATE INDEX events_of_run ON events (run_id, seq);

CREATE INDEX events_redactions ON events (subject_id) WHERE type = 'redacted';

CREATE INDEX outside_files_of_dispatches ON outside_files (dispatch_id, seq);

CREATE INDEX points_named ON points (kind, name);

CREATE INDEX points_of_run ON points (run_id, seq);

CREATE INDEX prompts_by_seq ON prompts (seq);

CREATE INDEX prompts_of_sessions ON prompts (session_id, seq);

CREATE UNIQUE INDEX restores_by_seq ON restores (seq);

CREATE INDEX restores_of_root ON restores (root, seq);

CREATE INDEX restores_unfinished ON restores (root) WHERE state <> 'applied';

CREATE UNIQUE INDEX rewinds_by_seq ON rewinds (seq);

CREATE INDEX rewinds_by_suffix ON rewinds (reversed_id);

CREATE INDEX rewinds_unfinished ON rewinds (database) WHERE status IN ('in_progress', 'stopped');

CREATE UNIQUE INDEX rollbacks_by_seq ON rollbacks (seq);

CREATE INDEX rollbacks_by_suffix ON rollbacks (reversed_id);

CREATE INDEX rollbacks_of_run ON rollbacks (run_id, seq);

CREATE INDEX run_agents_by_suffix ON run_agents (reversed_id);

CREATE INDEX run_agents_of_run ON run_agents (run_id, seq);

CREATE INDEX run_agents_rolled_back ON run_agents (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE INDEX run_artifacts_by_suffix ON run_artifacts (reversed_id);

CREATE INDEX run_artifacts_of_run ON run_artifacts (run_id, seq);

CREATE INDEX run_artifacts_rolled_back ON run_artifacts (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE INDEX run_skips_rolled_back ON run_skips (rolled_back_by) WHERE rolled_back_by IS NOT NULL;

CREATE UNIQUE INDEX run_skips_standing ON run_skips (run_id, phase) WHERE rolled_back_by IS NULL;

CREATE UNIQUE INDEX runs_by_seq ON runs (seq);

CREATE INDEX runs_by_suffix ON runs (reversed_id);

CREATE INDEX runs_of_project ON runs (project_dir, seq);

CREATE INDEX runs_of_scope ON runs (scope_id, seq) WHERE scope_id IS NOT NULL;

CREATE INDEX runs_open ON runs (seq) WHERE status IN ('active', 'rolling_back');

CREATE INDEX runs_open_of_project ON runs (project_dir, seq) WHERE status IN ('active', 'rolling_back');

CREATE INDEX sessions_by_client_id ON sessions (client_id);

CREATE INDEX sessions_by_end ON sessions (reversed_id);

CREATE INDEX sessions_in_order ON sessions (seq);

CREATE UNIQUE INDEX sessions_of_clients ON sessions (client, client_id);

CREATE INDEX sessions_of_runs ON sessions (run_id);

sqlite_autoindex_calls_1;

sqlite_autoindex_checkpoints_1;

sqlite_autoindex_compensations_1;

sqlite_autoindex_dispatch_commits_1;

sqlite_autoindex_dispatch_files_1;

sqlite_autoindex_dispatches_1;

sqlite_autoindex_event_cursors_1;

sqlite_autoindex_outside_files_1;

sqlite_autoindex_points_1;

sqlite_autoindex_prompts_1;

sqlite_autoindex_refinery_schema_history_1;

sqlite_autoindex_restores_1;

sqlite_autoindex_rewinds_1;

sqlite_autoindex_rollback_steps_1;

sqlite_autoindex_rollbacks_1;

sqlite_autoindex_run_agents_1;

sqlite_autoindex_run_artifacts_1;

sqlite_autoindex_run_owners_1;

sqlite_autoindex_runs_1;

sqlite_autoindex_sessions_1;

sqlite_autoindex_workflow_steps_1;

sqlite_autoindex_workflows_1;

CREATE TABLE calls (
    id             TEXT PRIMARY KEY NOT NULL,
    dispatch_id    TEXT NOT NULL REFERENCES dispatches (id),
    session_id     TEXT NOT NULL REFERENCES sessions (id),
    call_id        TEXT,
    agent_id       TEXT,
    agent_type     TEXT,
    tool           TEXT NOT NULL,
    line           TEXT,
    paths          TEXT NOT NULL,
    began_seq      INTEGER NOT NULL,
    ended_seq      INTEGER,
    created_at     INTEGER NOT NULL,
    finished_at    INTEGER,
    head           TEXT,
    head_log_start INTEGER
) STRICT;

CREATE TABLE checkpoints (
    id           TEXT PRIMARY KEY,
    reversed_id  TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    root         BLOB NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('manual', 'auto', 'safety', 'restored')),
    name         TEXT,
    message      TEXT,
    conversation TEXT,
    workflow     TEXT,
    run_id       TEXT REFERENCES runs (id),
    phase        TEXT,
    step         INTEGER,
    step_name    TEXT,
    dispatch_id  TEXT REFERENCES dispatches (id),
    parent_id    TEXT REFERENCES checkpoints (id),
    advance_seq  INTEGER,
    tree         BLOB NOT NULL,
    manifest     BLOB NOT NULL,
    complete     INTEGER NOT NULL CHECK (complete IN (0, 1)),
    settled      INTEGER NOT NULL CHECK (settled IN (0, 1)),
    files        INTEGER NOT NULL,
    directories  INTEGER NOT NULL,
    symlinks     INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    new_objects  INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    duration_ms  INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    pruned_at    INTEGER,
    of_call      INTEGER NOT NULL DEFAULT 0,
    git_hash     BLOB NOT NULL
) STRICT;

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

CREATE TABLE dispatch_commits (
    seq         INTEGER NOT NULL,
    ord         INTEGER NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    dispatch_id TEXT NOT NULL REFERENCES dispatches (id),
    sha         TEXT NOT NULL,
    before_sha  TEXT,
    late        INTEGER NOT NULL CHECK (late IN (0, 1)),
    PRIMARY KEY (dispatch_id, sha)
) STRICT;

CREATE TABLE dispatch_files (
    seq         INTEGER NOT NULL,
    ord         INTEGER NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    dispatch_id TEXT NOT NULL REFERENCES dispatches (id),
    path        BLOB NOT NULL,
    commit_sha  TEXT NOT NULL,
    late        INTEGER NOT NULL CHECK (late IN (0, 1)),
    PRIMARY KEY (dispatch_id, path, commit_sha)
) STRICT;

CREATE TABLE dispatches (
    id             TEXT PRIMARY KEY,
    reversed_id    TEXT NOT NULL,
    seq            INTEGER NOT NULL,
    run_id         TEXT NOT NULL REFERENCES runs (id),
    phase          TEXT NOT NULL,
    epoch          INTEGER NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed', 'timed_out', 'cancelled')),
    agent_type     TEXT,
    name           TEXT,
    model          TEXT,
    prompt_file    BLOB,
    pid            INTEGER,
    summary        TEXT,
    verdict        TEXT CHECK (verdict IN ('pass', 'fail')),
    error          TEXT,
    tokens_in      INTEGER NOT NULL,
    tokens_out     INTEGER NOT NULL,
    tokens_cache   INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    started_at     INTEGER,
    finished_at    INTEGER,
    rolled_back_by TEXT REFERENCES rollbacks (id),
    pid_start_time TEXT,
    pid_boot_id    TEXT,
    started_seq    INTEGER,
    finished_seq   INTEGER,
    parent_id      TEXT REFERENCES dispatches (id)
) STRICT;

CREATE TABLE event_cursors (
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (name, scope)
) STRICT;

CREATE TABLE event_head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY,
    run_id      TEXT,
    source      TEXT NOT NULL,
    type        TEXT NOT NULL,
    subject_id  TEXT,
    from_state  TEXT,
    to_state    TEXT,
    epoch       INTEGER,
    gate_result TEXT,
    gate_tier   TEXT,
    reason      TEXT,
    payload     TEXT,
    created_at  INTEGER NOT NULL,
    prev_hash   BLOB NOT NULL,
    hash        BLOB NOT NULL,
    reason_hash  BLOB,
    payload_hash BLOB
) STRICT;

CREATE TABLE ledger (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    id        TEXT NOT NULL,
    has_store INTEGER NOT NULL CHECK (has_store IN (0, 1))
) STRICT;

CREATE TABLE outside_files (
    call_id     TEXT NOT NULL REFERENCES calls (id),
    path        TEXT NOT NULL,
    dispatch_id TEXT NOT NULL REFERENCES dispatches (id),
    was         TEXT NOT NULL,
    became      TEXT,
    seq         INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (call_id, path)
) STRICT;

CREATE TABLE points (
    run_id        TEXT NOT NULL REFERENCES runs (id),
    kind          TEXT NOT NULL CHECK (kind IN ('step', 'dispatch', 'prompt', 'guard')),
    name          TEXT NOT NULL,
    epoch         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    phase         TEXT NOT NULL,
    checkpoint_id TEXT REFERENCES checkpoints (id),
    session       TEXT,
    title         TEXT,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (run_id, kind, name, epoch, attempt)
) STRICT;

CREATE TABLE prompts (
    dispatch_id      TEXT PRIMARY KEY NOT NULL REFERENCES dispatches (id),
    session_id       TEXT NOT NULL REFERENCES sessions (id),
    seq              INTEGER NOT NULL,
    prompt_id        TEXT,
    head             TEXT,
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    tells_calls      INTEGER NOT NULL DEFAULT 0,
    owns_run         INTEGER NOT NULL DEFAULT 0,
    held_count       INTEGER NOT NULL DEFAULT 0,
    held_at          INTEGER,
    held_for         TEXT,
    transcript_start INTEGER
) STRICT;

CREATE TABLE refinery_schema_history(
             version int4 PRIMARY KEY,
             name VARCHAR(255),
             applied_on VARCHAR(255),
             checksum VARCHAR(255));

CREATE TABLE restores (
    id          TEXT PRIMARY KEY,
    reversed_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    root        BLOB NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('restore', 'undo', 'redo')),
    state       TEXT NOT NULL CHECK (state IN ('prepared', 'applying', 'applied')),
    strategy    TEXT NOT NULL CHECK (strategy IN ('full', 'partial', 'files-only', 'git-only')),
    target_id   TEXT NOT NULL REFERENCES checkpoints (id),
    safety_id   TEXT NOT NULL REFERENCES checkpoints (id),
    restored_id TEXT REFERENCES checkpoints (id),
    plan        BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    lost_at     INTEGER,
    CHECK (state <> 'applied' OR restored_id IS NOT NULL)
) STRICT;

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

CREATE TABLE rollback_steps (
    rollback_id TEXT NOT NULL REFERENCES rollbacks (id),
    ord         INTEGER NOT NULL,
    layer       TEXT NOT NULL CHECK (layer IN ('effects', 'tree', 'data', 'settle')),
    state       TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'skipped')),
    detail      TEXT,
    error       TEXT,
    updated_at  INTEGER NOT NULL,
    course      TEXT,
    error_code  TEXT,
    PRIMARY KEY (rollback_id, ord)
) STRICT;

CREATE TABLE rollbacks (
    id          TEXT PRIMARY KEY,
    reversed_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    status      TEXT NOT NULL CHECK (status IN ('in_progress', 'stopped', 'done', 'aborted', 'undone')),
    layers      TEXT NOT NULL,
    from_phase  TEXT NOT NULL,
    to_phase    TEXT NOT NULL,
    include_target INTEGER NOT NULL CHECK (include_target IN (0, 1)),
    cut_seq     INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    reason      TEXT,
    plan_hash   TEXT NOT NULL,
    plan        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;

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

CREATE TABLE run_owners (
    run_id        TEXT PRIMARY KEY REFERENCES runs (id),
    token         TEXT NOT NULL,
    status_before TEXT,
    taken_at      INTEGER NOT NULL,
    process       TEXT
) STRICT;

CREATE TABLE run_skips (
    seq            INTEGER PRIMARY KEY,
    run_id         TEXT NOT NULL REFERENCES runs (id),
    phase          TEXT NOT NULL,
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    rolled_back_by TEXT REFERENCES rollbacks (id)
) STRICT;

CREATE TABLE runs (
    id           TEXT PRIMARY KEY,
    reversed_id  TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    goal         TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('active', 'rolling_back', 'completed', 'cancelled', 'failed')),
    phase        TEXT NOT NULL,
    phases       TEXT NOT NULL,
    project_dir  BLOB NOT NULL,
    complexity   INTEGER CHECK (complexity BETWEEN 1 AND 5),
    auto_advance INTEGER NOT NULL CHECK (auto_advance IN (0, 1)),
    gates        TEXT NOT NULL,
    scope_id     TEXT,
    metadata     TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    completed_at INTEGER
) STRICT;

CREATE TABLE sessions (
    id          TEXT PRIMARY KEY NOT NULL,
    reversed_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    client      TEXT NOT NULL,
    client_id   TEXT NOT NULL,
    run_id      TEXT NOT NULL REFERENCES runs (id),
    owns_run    INTEGER NOT NULL CHECK (owns_run IN (0, 1)),
    project_dir BLOB NOT NULL,
    transcript  BLOB,
    told_seq    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    spoken_seq  INTEGER,
    queued      TEXT,
    unprompted  TEXT
) STRICT;

CREATE TABLE state_marks (
    seq      INTEGER PRIMARY KEY,
    run_id   TEXT NOT NULL REFERENCES runs (id),
    database BLOB NOT NULL,
    mark     TEXT NOT NULL
) STRICT;

CREATE TABLE workflow_steps (
    run_id          TEXT NOT NULL REFERENCES workflows (run_id),
    epoch           INTEGER NOT NULL,
    step            TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'interrupted', 'skipped')),
    started         INTEGER NOT NULL,
    dispatch_id     TEXT REFERENCES dispatches (id),
    checkpoint_id   TEXT REFERENCES checkpoints (id),
    compensation_id TEXT REFERENCES compensations (id),
    attempts        INTEGER NOT NULL,
    exit_code       INTEGER,
    error           TEXT,
    duration_ms     INTEGER,
    log             BLOB,
    head            TEXT,
    child           TEXT,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (run_id, epoch, step)
) STRICT;

CREATE TABLE workflows (
    run_id      TEXT PRIMARY KEY REFERENCES runs (id),
    name        TEXT NOT NULL,
    definition  TEXT NOT NULL,
    options     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('running', 'stopped', 'failed', 'completed')),
    failed_step TEXT,
    error       TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TRIGGER calls_are_not_deleted BEFORE DELETE ON calls
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER compensations_are_not_deleted BEFORE DELETE ON compensations
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER dispatch_commits_are_not_deleted BEFORE DELETE ON dispatch_commits
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER dispatch_files_are_not_deleted BEFORE DELETE ON dispatch_files
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER dispatches_are_not_deleted BEFORE DELETE ON dispatches
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER event_head_is_not_deleted BEFORE DELETE ON event_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the events cannot be deleted');
END;

CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
WHEN NEW.seq IS NOT OLD.seq
    OR NEW.run_id IS NOT OLD.run_id
    OR NEW.source IS NOT OLD.source
    OR NEW.type IS NOT OLD.type
    OR NEW.subject_id IS NOT OLD.subject_id
    OR NEW.from_state IS NOT OLD.from_state
    OR NEW.to_state IS NOT OLD.to_state
    OR NEW.epoch IS NOT OLD.epoch
    OR NEW.gate_result IS NOT OLD.gate_result
    OR NEW.gate_tier IS NOT OLD.gate_tier
    OR NEW.created_at IS NOT OLD.created_at
    OR NEW.prev_hash IS NOT OLD.prev_hash
    OR NEW.hash IS NOT OLD.hash
    OR NOT (
        (NEW.reason IS OLD.reason AND NEW.reason_hash IS OLD.reason_hash)
        OR (OLD.reason IS NOT NULL AND NEW.reason IS NULL AND length(NEW.reason_hash) IS 32)
    )
    OR NOT (
        (NEW.payload IS OLD.payload AND NEW.payload_hash IS OLD.payload_hash)
        OR (OLD.payload IS NOT NULL AND NEW.payload IS NULL AND length(NEW.payload_hash) IS 32)
    )
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: only a redaction may change one');
END;

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: they cannot be deleted');
END;

CREATE TRIGGER events_follow_the_head BEFORE INSERT ON events
WHEN NEW.seq <> (SELECT seq + 1 FROM event_head)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: seq must follow the head');
END;

CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER ledger_keeps_its_id BEFORE UPDATE ON ledger WHEN OLD.has_store = 1
BEGIN
    SELECT RAISE(ABORT, 'a ledger keeps its id once a store knows it');
END;

CREATE TRIGGER outside_files_are_not_deleted BEFORE DELETE ON outside_files
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER points_are_not_deleted BEFORE DELETE ON points
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER prompts_are_not_deleted BEFORE DELETE ON prompts
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER restores_are_not_deleted BEFORE DELETE ON restores
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER rewinds_are_not_deleted BEFORE DELETE ON rewinds
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER rollback_steps_are_not_deleted BEFORE DELETE ON rollback_steps
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER rollbacks_are_not_deleted BEFORE DELETE ON rollbacks
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER run_agents_are_not_deleted BEFORE DELETE ON run_agents
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER run_artifacts_are_not_deleted BEFORE DELETE ON run_artifacts
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER run_skips_are_not_deleted BEFORE DELETE ON run_skips
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER runs_are_not_deleted BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER state_marks_are_not_deleted BEFORE DELETE ON state_marks
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER workflow_steps_are_not_deleted BEFORE DELETE ON workflow_steps
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE TRIGGER workflows_are_not_deleted BEFORE DELETE ON workflows
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

CREATE VIEW dispatch_events AS
SELECT seq AS id, subject_id AS dispatch_id, run_id, from_state AS from_status, to_state AS to_status,
    type AS event_type, epoch, reason, payload, created_at
FROM events
WHERE source = 'dispatch';

CREATE VIEW phase_events AS
SELECT seq AS id, run_id, from_state AS from_phase, to_state AS to_phase, type AS event_type, gate_result, gate_tier,
    epoch, reason, payload, created_at
FROM events
WHERE source = 'phase';
