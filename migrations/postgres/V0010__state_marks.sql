-- Where an application's own database was when a run moved. Owner: crates/rewind.
-- seq: the advance, or the run's creation. mark: the greatest order and key of each scope then, JSON.

CREATE TABLE state_marks (
    seq      BIGINT PRIMARY KEY,
    run_id   TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    database BYTEA NOT NULL,
    mark     TEXT COLLATE "C" NOT NULL
);

CREATE TRIGGER state_marks_are_not_deleted BEFORE DELETE ON state_marks
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
