-- What decides how a journal is resumed or undone is a column, and no text for people, which a redaction takes out.

-- Owner: crates/saga. outcome_unknown: 1 when the process of the last undo died in its middle.
ALTER TABLE compensations ADD COLUMN outcome_unknown BIGINT NOT NULL DEFAULT 0;
-- No ledger on a server has rows from before this.

-- Owner: crates/ops. course: which way the rollback goes, in the row of its settlement alone. error_code: the code of a failed step.
ALTER TABLE rollback_steps ADD COLUMN course TEXT COLLATE "C";
ALTER TABLE rollback_steps ADD COLUMN error_code TEXT COLLATE "C";
