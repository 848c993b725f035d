-- Owner: crates/dispatch. The event that ended the work: who else was at work meanwhile is decided by when it ended, and never by a
-- clock. NULL while it has not ended, and in rows from before.
ALTER TABLE dispatches ADD COLUMN finished_seq BIGINT;
