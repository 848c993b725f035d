-- Where an application's own database was when a run moved. Owner: crates/rewind.
-- seq: the advance, or the run's creation. mark: the greatest order and key of each scope then, JSON.

CREATE TABLE state_marks (
    seq      INTEGER PRIMARY KEY,
    run_id   TEXT NOT NULL REFERENCES runs (id),
    database BLOB NOT NULL,
    mark     TEXT NOT NULL
) STRICT;

CREATE TRIGGER state_marks_are_not_deleted BEFORE DELETE ON state_marks
BEGIN
    SELECT RAISE(ABORT, 'ledger rows are marked, never deleted');
END;
