-- Sessions of coding agents, as their hooks tell of them, and the prompts in them. Owner: crates/session.
-- client_id: the client's own name of the session. owns_run: the run was made for the session, and ends with it.
-- told_seq: the last event of which the agent was told what it undid.
-- spoken_seq: the newest event when a person last typed a command of ic to the agent: what was undone before is no news to either.
-- queued: what a person typed while the agent still worked, its title: the client gives it a name when its turn comes.
-- unprompted: what the client calls the turn that no prompt of a person began, and that may go on: the news of a task's end, or a
-- command of ic. Empty where the client has no name for it. NULL: the newest turn is a prompt's.

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

CREATE UNIQUE INDEX sessions_of_clients ON sessions (client, client_id);
CREATE INDEX sessions_by_client_id ON sessions (client_id);
CREATE INDEX sessions_by_end ON sessions (reversed_id);
CREATE INDEX sessions_of_runs ON sessions (run_id);
CREATE INDEX sessions_in_order ON sessions (seq);

CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- A prompt of a person, and the dispatch that is all the work until the agent stops. prompt_id: the client's name of it, if it has one.
-- head: the commit that was checked out then. ended_at: when the agent stopped, also where its work had been rolled back before.
-- tells_calls: whether the client tells of each call: outside its calls such a prompt is at no work.
-- owns_run: whether the run in which it was given was made for its session: a session that is resumed has one for each time.
-- held_count, held_at, held_for: how often the gate of the run held the agent's stop back, when it did so last, and what it asked for then.
-- transcript_start: how long the client's own record of the session was, in bytes, when the prompt was given: its tokens are counted
-- from there on. NULL: there was none that could be read.
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

CREATE INDEX prompts_of_sessions ON prompts (session_id, seq);
CREATE INDEX prompts_by_seq ON prompts (seq);

CREATE TRIGGER prompts_are_not_deleted BEFORE DELETE ON prompts
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- Tool calls of coding agents that may change files, as their hooks tell of them. Owner: crates/session.
-- call_id: the client's own name of the call, if it has one. agent_id, agent_type: the subagent that made it.
-- line: what it was asked to do, one masked line. paths: a JSON array of the paths that it named, relative to the root.
-- began_seq: the checkpoint that shows the tree as it began. ended_seq: the call changed nothing after this event; NULL while it runs.
-- finished_at: when its end was told; NULL where it never was.
-- head: the commit that was checked out as the call began: what is checked out as it ends, and was on no branch before, it made.
-- head_log_start: how long git's log of HEAD was as the call began, in bytes: what it says from there on the call did. NULL: git kept none.

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

CREATE INDEX calls_of_dispatches ON calls (dispatch_id, began_seq, id);
CREATE INDEX calls_of_sessions ON calls (session_id, call_id, began_seq, id);
CREATE INDEX calls_of_agents ON calls (session_id, agent_id, began_seq) WHERE agent_id IS NOT NULL;
CREATE INDEX calls_that_run ON calls (began_seq, id) WHERE ended_seq IS NULL;
CREATE INDEX calls_by_end ON calls (ended_seq) WHERE ended_seq IS NOT NULL;

CREATE TRIGGER calls_are_not_deleted BEFORE DELETE ON calls
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;

-- Files outside of the project that tool calls of coding agents named. Owner: crates/session.
-- path: absolute, without links. was: what stood there as the call began, became: what it left, as JSON; NULL: its end was not told.
-- seq: the newest event as the call began.

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

CREATE INDEX outside_files_of_dispatches ON outside_files (dispatch_id, seq);

CREATE TRIGGER outside_files_are_not_deleted BEFORE DELETE ON outside_files
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
