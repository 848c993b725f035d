-- A process number is used again: start time and boot say which process it was. NULL in rows from before: nobody knows.
ALTER TABLE dispatches ADD COLUMN pid_start_time TEXT COLLATE "C";
ALTER TABLE dispatches ADD COLUMN pid_boot_id TEXT COLLATE "C";
