-- Owner: crates/checkpoint. lost_at: what the restore needs to be finished, or undone, is lost: nothing waits for it any more.

ALTER TABLE restores ADD COLUMN lost_at BIGINT;
