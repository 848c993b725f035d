-- Snapshots of working trees, and restores of them. Owner: crates/checkpoint. Content lies in objects.db beside the ledger.
-- advance_seq: the event that the checkpoint was taken for (an advance, the creation of a run).
-- tree, manifest: objects. pruned_at: its content may be gone; the row stays.
-- of_call: taken at the beginning or the end of a tool call. `checkpoint list` leaves it out, and it goes with its dispatch's other checkpoints.
-- git_hash: the SHA-256 of git's state as the checkpoint has it, so that two are compared without their content.

CREATE TABLE checkpoints (
    id           TEXT COLLATE "C" PRIMARY KEY,
    reversed_id  TEXT COLLATE "C" NOT NULL,
    seq          BIGINT NOT NULL,
    root         BYTEA NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('manual', 'auto', 'safety', 'restored')),
    name         TEXT COLLATE "C",
    message      TEXT COLLATE "C",
    conversation TEXT COLLATE "C",
    workflow     TEXT COLLATE "C",
    run_id       TEXT COLLATE "C" REFERENCES runs (id),
    phase        TEXT COLLATE "C",
    step         BIGINT,
    step_name    TEXT COLLATE "C",
    dispatch_id  TEXT COLLATE "C" REFERENCES dispatches (id),
    parent_id    TEXT COLLATE "C" REFERENCES checkpoints (id),
    advance_seq  BIGINT,
    tree         BYTEA NOT NULL,
    manifest     BYTEA NOT NULL,
    complete     BIGINT NOT NULL CHECK (complete IN (0, 1)),
    settled      BIGINT NOT NULL CHECK (settled IN (0, 1)),
    files        BIGINT NOT NULL,
    directories  BIGINT NOT NULL,
    symlinks     BIGINT NOT NULL,
    bytes        BIGINT NOT NULL,
    new_objects  BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    duration_ms  BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    pruned_at    BIGINT,
    of_call      BIGINT NOT NULL DEFAULT 0,
    git_hash     BYTEA NOT NULL
);

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
    id          TEXT COLLATE "C" PRIMARY KEY,
    reversed_id TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    root        BYTEA NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL CHECK (kind IN ('restore', 'undo', 'redo')),
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('prepared', 'applying', 'applied')),
    strategy    TEXT COLLATE "C" NOT NULL CHECK (strategy IN ('full', 'partial', 'files-only', 'git-only')),
    target_id   TEXT COLLATE "C" NOT NULL REFERENCES checkpoints (id),
    safety_id   TEXT COLLATE "C" NOT NULL REFERENCES checkpoints (id),
    restored_id TEXT COLLATE "C" REFERENCES checkpoints (id),
    plan        BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    lost_at     BIGINT,
    CHECK (state <> 'applied' OR restored_id IS NOT NULL)
);

CREATE UNIQUE INDEX restores_by_seq ON restores (seq);
CREATE INDEX restores_of_root ON restores (root, seq);
CREATE INDEX restores_unfinished ON restores (root) WHERE state <> 'applied';

CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
CREATE TRIGGER restores_are_not_deleted BEFORE DELETE ON restores
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
