-- Files outside of the project that tool calls of coding agents named. Owner: crates/session.
-- path: absolute, without links. was: what stood there as the call began, became: what it left, as JSON; NULL: nobody told its end.
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
