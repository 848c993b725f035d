-- The ledger's total order. Owner: crates/ledger.
-- actor: who wrote it, a JSON object: user, seat, and where there is one client, session and dispatch.
-- reason_hash, payload_hash: what the chain covers in place of a text that was redacted.

CREATE TABLE events (
    seq         BIGINT PRIMARY KEY,
    run_id      TEXT COLLATE "C",
    source      TEXT COLLATE "C" NOT NULL,
    type        TEXT COLLATE "C" NOT NULL,
    subject_id  TEXT COLLATE "C",
    from_state  TEXT COLLATE "C",
    to_state    TEXT COLLATE "C",
    epoch       BIGINT,
    gate_result TEXT COLLATE "C",
    gate_tier   TEXT COLLATE "C",
    reason      TEXT COLLATE "C",
    payload     TEXT COLLATE "C",
    actor       TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    prev_hash   BYTEA NOT NULL,
    hash        BYTEA NOT NULL,
    reason_hash  BYTEA,
    payload_hash BYTEA
);

CREATE INDEX events_of_run ON events (run_id, seq);
-- What a rollback's cut is found with.
CREATE INDEX events_crossings ON events (run_id, seq) WHERE type IN ('advance', 'override');
-- What verification finds the evidence of a redaction with.
CREATE INDEX events_redactions ON events (subject_id) WHERE type = 'redacted';

-- The last seq and hash; every append updates it in its own transaction, so that seq has no gaps.
CREATE TABLE event_head (
    one  BIGINT PRIMARY KEY CHECK (one = 1),
    seq  BIGINT NOT NULL,
    hash BYTEA NOT NULL
);
INSERT INTO event_head (one, seq, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

-- scope: a run's id, or '' for all runs. seat: the clone that reads; '' in a ledger that one clone has for itself.
CREATE TABLE event_cursors (
    name       TEXT COLLATE "C" NOT NULL,
    scope      TEXT COLLATE "C" NOT NULL,
    seat       TEXT COLLATE "C" NOT NULL DEFAULT '',
    seq        BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (name, scope, seat)
);

-- What a trigger refuses, in the words that it is given. Triggers of rows alone: TRUNCATE is a matter of rights (docs/FLEET.md).
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0];
END $$;

-- Names lead to the schema that a transaction names: a schema can be renamed. In SQL, because the server would load plpgsql for this question
-- alone, in the session of every call.
CREATE FUNCTION seq_of_the_head() RETURNS BIGINT LANGUAGE sql AS 'SELECT seq FROM event_head';
CREATE TRIGGER events_follow_the_head BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.seq <> seq_of_the_head() + 1)
    EXECUTE FUNCTION refuse('events are append-only: seq must follow the head');

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION refuse('events are append-only: they cannot be deleted');

-- The one change let through is redaction: reason or payload become NULL and leave their hash.
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    FOR EACH ROW WHEN (NEW.seq IS DISTINCT FROM OLD.seq
        OR NEW.run_id IS DISTINCT FROM OLD.run_id
        OR NEW.source IS DISTINCT FROM OLD.source
        OR NEW.type IS DISTINCT FROM OLD.type
        OR NEW.subject_id IS DISTINCT FROM OLD.subject_id
        OR NEW.from_state IS DISTINCT FROM OLD.from_state
        OR NEW.to_state IS DISTINCT FROM OLD.to_state
        OR NEW.epoch IS DISTINCT FROM OLD.epoch
        OR NEW.gate_result IS DISTINCT FROM OLD.gate_result
        OR NEW.gate_tier IS DISTINCT FROM OLD.gate_tier
        OR NEW.actor IS DISTINCT FROM OLD.actor
        OR NEW.created_at IS DISTINCT FROM OLD.created_at
        OR NEW.prev_hash IS DISTINCT FROM OLD.prev_hash
        OR NEW.hash IS DISTINCT FROM OLD.hash
        OR NOT (
            (NEW.reason IS NOT DISTINCT FROM OLD.reason AND NEW.reason_hash IS NOT DISTINCT FROM OLD.reason_hash)
            OR (OLD.reason IS NOT NULL AND NEW.reason IS NULL AND length(NEW.reason_hash) IS NOT DISTINCT FROM 32)
        )
        OR NOT (
            (NEW.payload IS NOT DISTINCT FROM OLD.payload AND NEW.payload_hash IS NOT DISTINCT FROM OLD.payload_hash)
            OR (OLD.payload IS NOT NULL AND NEW.payload IS NULL AND length(NEW.payload_hash) IS NOT DISTINCT FROM 32)
        ))
    EXECUTE FUNCTION refuse('events are append-only: only a redaction may change one');

CREATE TRIGGER event_head_is_not_deleted BEFORE DELETE ON event_head
    FOR EACH ROW EXECUTE FUNCTION refuse('the head of the events cannot be deleted');

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
