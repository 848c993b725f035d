-- Which ledger this is: the object store next to it knows it by this id. Owner: crates/ledger; the process that makes the ledger adds the row.
-- has_store: a store was found and knows this id.

CREATE TABLE ledger (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    id        TEXT NOT NULL,
    has_store INTEGER NOT NULL CHECK (has_store IN (0, 1))
) STRICT;

CREATE TRIGGER ledger_keeps_its_id BEFORE UPDATE ON ledger WHEN OLD.has_store = 1
BEGIN
    SELECT RAISE(ABORT, 'a ledger keeps its id once a store knows it');
END;
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
