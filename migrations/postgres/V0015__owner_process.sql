-- Owner: crates/saga. Which process has a run: its number, start time and boot, as JSON. The lock decides whether it lives; this names it.
-- NULL in rows from before.
ALTER TABLE run_owners ADD COLUMN process TEXT COLLATE "C";
