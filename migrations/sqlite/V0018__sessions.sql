-- Sessions of coding agents, as their hooks tell of them, and the prompts in them. Owner: crates/session.
-- client_id: the client's own name of the session. owns_run: the run was made for the session, and ends with it.
-- told_seq: the last event of which the agent was told what it undid.

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
    ended_at    INTEGER
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
CREATE TABLE prompts (
    dispatch_id TEXT PRIMARY KEY NOT NULL REFERENCES dispatches (id),
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    seq         INTEGER NOT NULL,
    prompt_id   TEXT,
    head        TEXT,
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER
) STRICT;

CREATE INDEX prompts_of_sessions ON prompts (session_id, seq);

CREATE TRIGGER prompts_are_not_deleted BEFORE DELETE ON prompts
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
