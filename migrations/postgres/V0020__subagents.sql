-- Owner: crates/dispatch. The work that began this one, and takes it along when it is undone: a prompt, for what a subagent did for it.
-- NULL: a person or a script began it.
ALTER TABLE dispatches ADD COLUMN parent_id TEXT COLLATE "C" REFERENCES dispatches (id);

CREATE INDEX dispatches_of_parents ON dispatches (parent_id, seq) WHERE parent_id IS NOT NULL;

-- Owner: crates/session. Which subagent made a call.
CREATE INDEX calls_of_agents ON calls (session_id, agent_id, began_seq) WHERE agent_id IS NOT NULL;

-- The commit that was checked out as the call began: what is checked out as it ends, and was on no branch before, it made.
ALTER TABLE calls ADD COLUMN head TEXT COLLATE "C";

-- How often the gate of the run held the agent's stop back, when it did so last, and what it asked for then.
ALTER TABLE prompts ADD COLUMN held_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE prompts ADD COLUMN held_at BIGINT;
ALTER TABLE prompts ADD COLUMN held_for TEXT COLLATE "C";

-- The newest event when a person last typed a command of ic to the agent: what was undone before is no news to either.
ALTER TABLE sessions ADD COLUMN spoken_seq BIGINT;

-- What a person typed while the agent still worked, its title: the client gives it a name when its turn comes.
ALTER TABLE sessions ADD COLUMN queued TEXT COLLATE "C";

-- How long the client's own record of the session was, in bytes, when the prompt was given: its tokens are counted from there on.
-- NULL: there was none that could be read.
ALTER TABLE prompts ADD COLUMN transcript_start BIGINT;
