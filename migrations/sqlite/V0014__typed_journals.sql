-- What decides how a journal is resumed or undone is a column, and no text for people, which a redaction takes out.

-- Owner: crates/saga. outcome_unknown: 1 when the process of the last undo died in its middle. Older versions said so in the error
-- alone; where that was redacted, nothing tells the two apart, and the careful answer holds.
ALTER TABLE compensations ADD COLUMN outcome_unknown INTEGER NOT NULL DEFAULT 0;
UPDATE compensations SET outcome_unknown = 1 WHERE state = 'failed'
    AND (last_error IS NULL OR last_error = 'the process that undid it died, and nobody knows how far it came');

-- Owner: crates/ops. course: which way the rollback goes, in the row of its settlement alone. error_code: the code of a failed step.
ALTER TABLE rollback_steps ADD COLUMN course TEXT;
ALTER TABLE rollback_steps ADD COLUMN error_code TEXT;
-- A text that is not known is kept as it is: whoever reads it is told.
UPDATE rollback_steps SET course = coalesce(
    CASE WHEN json_valid(detail) THEN json_extract(detail, '$.course') END, 'forward') WHERE layer = 'settle';
UPDATE rollback_steps SET error_code = substr(error, 1, instr(error, ':') - 1)
    WHERE instr(error, ':') > 1 AND substr(error, 1, instr(error, ':') - 1) NOT GLOB '*[^a-z_]*';
