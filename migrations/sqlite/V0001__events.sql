-- The ledger's total order. Owner: crates/ledger.
-- actor: who wrote it, a JSON object: user, seat, and where there is one client, session and dispatch.
-- reason_hash, payload_hash: what the chain covers in place of a text that was redacted.

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY,
    run_id      TEXT,
    source      TEXT NOT NULL,
    type        TEXT NOT NULL,
    subject_id  TEXT,
    from_state  TEXT,
    to_state    TEXT,
    epoch       INTEGER,
    gate_result TEXT,
    gate_tier   TEXT,
    reason      TEXT,
    payload     TEXT,
    actor       TEXT,
    created_at  INTEGER NOT NULL,
    prev_hash   BLOB NOT NULL,
    hash        BLOB NOT NULL,
    reason_hash  BLOB,
    payload_hash BLOB
) STRICT;

CREATE INDEX events_of_run ON events (run_id, seq);
-- What a rollback's cut is found with.
CREATE INDEX events_crossings ON events (run_id, seq) WHERE type IN ('advance', 'override');
-- What verification finds the evidence of a redaction with.
CREATE INDEX events_redactions ON events (subject_id) WHERE type = 'redacted';

-- The last seq and hash; every append updates it in its own transaction, so that seq has no gaps.
CREATE TABLE event_head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO event_head (one, seq, hash) VALUES (1, 0, zeroblob(32));

-- scope: a run's id, or '' for all runs. seat: the clone that reads; '' in a ledger that one clone has for itself.
CREATE TABLE event_cursors (
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    seat       TEXT NOT NULL DEFAULT '',
    seq        INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (name, scope, seat)
) STRICT;

CREATE TRIGGER events_follow_the_head BEFORE INSERT ON events
WHEN NEW.seq <> (SELECT seq + 1 FROM event_head)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: seq must follow the head');
END;

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: they cannot be deleted');
END;

-- The one change let through is redaction: reason or payload become NULL and leave their hash.
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
WHEN NEW.seq IS NOT OLD.seq
    OR NEW.run_id IS NOT OLD.run_id
    OR NEW.source IS NOT OLD.source
    OR NEW.type IS NOT OLD.type
    OR NEW.subject_id IS NOT OLD.subject_id
    OR NEW.from_state IS NOT OLD.from_state
    OR NEW.to_state IS NOT OLD.to_state
    OR NEW.epoch IS NOT OLD.epoch
    OR NEW.gate_result IS NOT OLD.gate_result
    OR NEW.gate_tier IS NOT OLD.gate_tier
    OR NEW.actor IS NOT OLD.actor
    OR NEW.created_at IS NOT OLD.created_at
    OR NEW.prev_hash IS NOT OLD.prev_hash
    OR NEW.hash IS NOT OLD.hash
    OR NOT (
        (NEW.reason IS OLD.reason AND NEW.reason_hash IS OLD.reason_hash)
        OR (OLD.reason IS NOT NULL AND NEW.reason IS NULL AND length(NEW.reason_hash) IS 32)
    )
    OR NOT (
        (NEW.payload IS OLD.payload AND NEW.payload_hash IS OLD.payload_hash)
        OR (OLD.payload IS NOT NULL AND NEW.payload IS NULL AND length(NEW.payload_hash) IS 32)
    )
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: only a redaction may change one');
END;

CREATE TRIGGER event_head_is_not_deleted BEFORE DELETE ON event_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the events cannot be deleted');
END;

-- The same events under the names that readers of one kind know.
CREATE VIEW phase_events AS
SELECT seq AS id, run_id, from_state AS from_phase, to_state AS to_phase, type AS event_type, gate_result, gate_tier,
    epoch, reason, payload, created_at
FROM events
WHERE source = 'phase';

CREATE VIEW dispatch_events AS
SELECT seq AS id, subject_id AS dispatch_id, run_id, from_state AS from_status, to_state AS to_status,
    type AS event_type, epoch, reason, payload, created_at
FROM events
WHERE source = 'dispatch';
