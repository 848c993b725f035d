-- Tool calls of coding agents that may change files, as their hooks tell of them. Owner: crates/session.
-- call_id: the client's own name of the call, if it has one. agent_id, agent_type: the subagent that made it.
-- line: what it was asked to do, one masked line. paths: a JSON array of the paths that it named, relative to the root.
-- began_seq: the checkpoint that shows the tree as it began. ended_seq: the call changed nothing after this event; NULL while it runs.
-- finished_at: when its end was told; NULL where it never was.

CREATE TABLE calls (
    id          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    dispatch_id TEXT COLLATE "C" NOT NULL REFERENCES dispatches (id),
    session_id  TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    call_id     TEXT COLLATE "C",
    agent_id    TEXT COLLATE "C",
    agent_type  TEXT COLLATE "C",
    tool        TEXT COLLATE "C" NOT NULL,
    line        TEXT COLLATE "C",
    paths       TEXT COLLATE "C" NOT NULL,
    began_seq   BIGINT NOT NULL,
    ended_seq   BIGINT,
    created_at  BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX calls_of_dispatches ON calls (dispatch_id, began_seq, id);
CREATE INDEX calls_of_sessions ON calls (session_id, call_id, began_seq, id);
CREATE INDEX calls_that_run ON calls (began_seq, id) WHERE ended_seq IS NULL;
CREATE INDEX calls_by_end ON calls (ended_seq) WHERE ended_seq IS NOT NULL;

CREATE TRIGGER calls_are_not_deleted BEFORE DELETE ON calls
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');

-- Whether the client tells of each call: outside its calls such a prompt is at no work.
ALTER TABLE prompts ADD COLUMN tells_calls BIGINT NOT NULL DEFAULT 0;

-- Whether the run in which it was given was made for its session: a session that is resumed has one for each time.
ALTER TABLE prompts ADD COLUMN owns_run BIGINT NOT NULL DEFAULT 0;
UPDATE prompts SET owns_run = (SELECT s.owns_run FROM sessions s WHERE s.id = prompts.session_id);

-- Taken at the beginning or the end of a tool call: what `checkpoint list` leaves out, and what goes with its dispatch's other checkpoints.
ALTER TABLE checkpoints ADD COLUMN of_call BIGINT NOT NULL DEFAULT 0;
