-- Which ledger this is: the object store next to it knows it by this id. Owner: crates/ledger; the process that makes the ledger adds the row.
-- has_store: a store was found and knows this id.

CREATE TABLE ledger (
    one       BIGINT PRIMARY KEY CHECK (one = 1),
    id        TEXT COLLATE "C" NOT NULL,
    has_store BIGINT NOT NULL CHECK (has_store IN (0, 1))
);

CREATE TRIGGER ledger_keeps_its_id BEFORE UPDATE ON ledger
    FOR EACH ROW WHEN (OLD.has_store = 1) EXECUTE FUNCTION refuse('a ledger keeps its id once a store knows it');
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION refuse('ledger rows are marked, never deleted');
