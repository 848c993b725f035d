-- Owner: crates/session. What the client calls the turn that no prompt of a person began, and that may go on: the news of a task's end, or a
-- command of ic. Empty where the client has no name for it. NULL: the newest turn is a prompt's.
ALTER TABLE sessions ADD COLUMN unprompted TEXT COLLATE "C";
