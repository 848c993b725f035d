-- Files outside of the project that tool calls of coding agents named. Owner: crates/session.
-- path: absolute, without links. was: what stood there as the call began, became: what it left, as JSON; NULL: nobody told its end.
-- seq: the newest event as the call began.

CREATE TABLE outside_files (
    call_id     TEXT COLLATE "C" NOT NULL REFERENCES calls (id),
    path        TEXT COLLATE "C" NOT NULL,
    dispatch_id TEXT COLLATE "C" NOT NULL REFERENCES dispatches (id),
    was         TEXT COLLATE "C" NOT NULL,
    became      TEXT COLLATE "C",
    seq         BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (call_id, path)
);

CREATE INDEX outside_files_of_dispatches ON outside_files (dispatch_id, seq);

CREATE TRIGGER outside_files_are_not_deleted BEFORE DELETE ON outside_files
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
