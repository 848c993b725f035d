-- Owner: crates/session. How long git's log of HEAD was as the call began, in bytes: what it says from there on the call did. NULL: git kept
-- none, or an older version recorded the call.
ALTER TABLE calls ADD COLUMN head_log_start BIGINT;

-- The newest prompts, whichever session they were given in.
CREATE INDEX prompts_by_seq ON prompts (seq);

-- Owner: crates/checkpoint. The SHA-256 of git's state as the checkpoint has it: whether two have the same is known without their content.
-- NULL: an older version took it.
ALTER TABLE checkpoints ADD COLUMN git_hash BYTEA;
