-- Snapshots of working trees, and restores of them. Owner: crates/checkpoint. Content lies in objects.db beside the ledger.
-- advance_seq: the event that the checkpoint was taken for (an advance, the creation of a run).
-- tree, manifest: objects. pruned_at: its content may be gone; the row stays.
-- of_call: taken at the beginning or the end of a tool call. `checkpoint list` leaves it out, and it goes with its dispatch's other checkpoints.
-- git_hash: the SHA-256 of git's state as the checkpoint has it, so that two are compared without their content.

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

CREATE UNIQUE INDEX checkpoints_by_seq ON checkpoints (seq);
CREATE INDEX checkpoints_by_suffix ON checkpoints (reversed_id);
CREATE INDEX checkpoints_of_root ON checkpoints (root, seq);
CREATE INDEX checkpoints_of_run ON checkpoints (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX checkpoints_of_conversation ON checkpoints (conversation, seq) WHERE conversation IS NOT NULL;
CREATE INDEX checkpoints_of_workflow ON checkpoints (workflow, seq) WHERE workflow IS NOT NULL;
CREATE INDEX checkpoints_named ON checkpoints (root, name, seq) WHERE name IS NOT NULL;
CREATE INDEX checkpoints_below ON checkpoints (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX checkpoints_of_advance ON checkpoints (advance_seq) WHERE advance_seq IS NOT NULL;
CREATE INDEX checkpoints_kept ON checkpoints (seq) WHERE pruned_at IS NULL;

-- lost_at: what the restore needs to be finished, or undone, is lost: nothing waits for it any more.
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

CREATE UNIQUE INDEX restores_by_seq ON restores (seq);
CREATE INDEX restores_of_root ON restores (root, seq);
CREATE INDEX restores_unfinished ON restores (root) WHERE state <> 'applied';

CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
CREATE TRIGGER restores_are_not_deleted BEFORE DELETE ON restores
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
