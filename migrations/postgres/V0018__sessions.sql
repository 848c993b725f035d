-- Sessions of coding agents, as their hooks tell of them, and the prompts in them. Owner: crates/session.
-- client_id: the client's own name of the session. owns_run: the run was made for the session, and ends with it.
-- told_seq: the last event of which the agent was told what it undid.

CREATE TABLE sessions (
    id          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    reversed_id TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    client      TEXT COLLATE "C" NOT NULL,
    client_id   TEXT COLLATE "C" NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    owns_run    BIGINT NOT NULL CHECK (owns_run IN (0, 1)),
    project_dir BYTEA NOT NULL,
    transcript  BYTEA,
    told_seq    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT
);

CREATE UNIQUE INDEX sessions_of_clients ON sessions (client, client_id);
CREATE INDEX sessions_by_client_id ON sessions (client_id);
CREATE INDEX sessions_by_end ON sessions (reversed_id);
CREATE INDEX sessions_of_runs ON sessions (run_id);
CREATE INDEX sessions_in_order ON sessions (seq);

CREATE TRIGGER sessions_are_not_deleted BEFORE DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');

-- A prompt of a person, and the dispatch that is all the work until the agent stops. prompt_id: the client's name of it, if it has one.
-- head: the commit that was checked out then. ended_at: when the agent stopped, also where its work had been rolled back before.
CREATE TABLE prompts (
    dispatch_id TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES dispatches (id),
    session_id  TEXT COLLATE "C" NOT NULL REFERENCES sessions (id),
    seq         BIGINT NOT NULL,
    prompt_id   TEXT COLLATE "C",
    head        TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT
);

CREATE INDEX prompts_of_sessions ON prompts (session_id, seq);

CREATE TRIGGER prompts_are_not_deleted BEFORE DELETE ON prompts
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
