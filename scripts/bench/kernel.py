"""Each verb of the kernel against the sqlite3 shell doing the same on a copy of the same file, and how both grow."""

import os
import statistics
import subprocess

from common import in_turn, once, scratch


def shell(db, sql, write=True):
    """The sqlite3 shell doing the same, as durably."""
    head = ".bail on\n.timeout 5000\nPRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; PRAGMA synchronous=FULL;\n"
    body = f"BEGIN IMMEDIATE;\n{sql}\nCOMMIT;\n" if write else sql
    return once(["sqlite3", db], stdin=head + body)


EVENT = """INSERT INTO events (seq, run_id, source, type, subject_id, from_state, to_state, epoch, gate_result, gate_tier,
 reason, payload, created_at, prev_hash, hash)
 SELECT seq + 1, '{run}', '{source}', '{type}', {subject}, {from_}, {to}, 0, 'none', 'none', NULL, '{payload}',
 1700000000000, hash, randomblob(32) FROM event_head;
UPDATE event_head SET seq = seq + 1, hash = (SELECT hash FROM events WHERE seq = event_head.seq + 1) WHERE one = 1;
"""


def event(run, source, kind, subject="NULL", from_="NULL", to="NULL", payload="{}"):
    return EVENT.format(run=run, source=source, type=kind, subject=subject, from_=from_, to=to, payload=payload)


def grow(db, runs, events, run=None):
    """Fills a ledger with runs and events by SQL; the chain of hashes is not meant to verify."""
    project = os.path.dirname(db)
    owner = f"'{run}'" if run else f"printf('00000000-0000-7000-8000-%012x', 1 + i % {runs})"
    sql = f"""
PRAGMA synchronous=OFF;
DROP TRIGGER events_follow_the_head;
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {runs})
INSERT INTO runs (id, reversed_id, seq, goal, status, phase, phases, project_dir, auto_advance, gates, metadata, epoch,
 created_at, updated_at)
 SELECT printf('00000000-0000-7000-8000-%012x', i), lower(hex(randomblob(16))), 1000000000 + i, 'a goal', 'active', 'a',
 '["a","b","c"]', CAST('{project}' || i AS BLOB), 1, '{{}}', '{{}}', 0, 1, 1 FROM n;
WITH RECURSIVE n(i) AS (SELECT (SELECT seq + 1 FROM event_head) UNION ALL SELECT i + 1 FROM n WHERE i < {events})
INSERT INTO events (seq, run_id, source, type, from_state, to_state, epoch, gate_result, gate_tier, payload, created_at,
 prev_hash, hash)
 SELECT i, {owner}, 'phase', 'block', 'a', 'b', 0, 'fail', 'hard',
 '{{"conditions":[]}}', 1, zeroblob(32), zeroblob(32) FROM n;
UPDATE event_head SET seq = (SELECT max(seq) FROM events);
COMMIT;
CREATE TRIGGER events_follow_the_head BEFORE INSERT ON events WHEN NEW.seq <> (SELECT seq + 1 FROM event_head)
BEGIN SELECT RAISE(ABORT, 'events are append-only: seq must follow the head'); END;
PRAGMA wal_checkpoint(TRUNCATE);
"""
    subprocess.run(["sqlite3", db], input=sql, text=True, check=True, stdout=subprocess.DEVNULL)


class Ledger:
    """A ledger with some runs and events, a copy of it for the shell, and two runs to move."""

    def __init__(self, report, directory, runs, events):
        self.ic_path, self.rounds = report.ic, 15 if report.quick else 50
        # An empty project without automatic checkpoints, which have their own benchmark.
        self.project = os.path.join(directory, f"{runs}-{events}")
        os.mkdir(self.project)
        with open(os.path.join(self.project, ".ic.yaml"), "w") as out:
            out.write("rollback: {checkpointing: {auto: false}}\n")
        # In another directory: `ic backup` refuses a copy beside its ledger, because it would be lost together with it.
        os.mkdir(os.path.join(self.project, "ledger"))
        self.db = os.path.join(self.project, "ledger", "ic.db")
        self.other = os.path.join(directory, f"{runs}-{events}-shell.db")
        self.ic("init")
        grow(self.db, runs, events)
        # The chain has a phase for every advance, and no gates.
        chain = ",".join(f"p{i}" for i in range(4 * self.rounds))
        self.run = self.ic("run", "create", "--goal", "advance", "--phases", chain).out
        self.back = self.ic("run", "create", "--goal", "rollback", "--phases", "a,b,c").out
        self.ic("run", "advance", self.back)
        # The file alone lacks the changes that are in its log.
        self.ic("backup", self.other)
        self.at = 0

    def ic(self, *arguments):
        return once([self.ic_path, "--db", self.db, *arguments], cwd=self.project)

    def advance(self, _):
        return self.ic("run", "advance", self.run, "--no-checkpoint")

    def shell_advance(self, _):
        here, there = f"'p{self.at}'", f"'p{self.at + 1}'"
        self.at += 1
        return shell(self.other, event(self.run, "phase", "advance", from_=here, to=there, payload='{"conditions":[]}')
                     + f"UPDATE runs SET phase = {there}, updated_at = 1 "
                       f"WHERE id = '{self.run}' AND phase = {here} AND epoch = 0;")

    def roll_back(self, _):
        sample = self.ic("run", "rollback", self.back, "--to-phase", "a")
        self.ic("run", "advance", self.back)
        return sample

    def shell_roll_back(self, i):
        number = f"{i + 2:012x}"
        sample = shell(self.other, event(self.back, "phase", "rollback", subject=f"'r{number}'", from_="'b'", to="'a'",
                                         payload='{"rollback_id":"' + "x" * 400 + '"}')
                       + f"INSERT INTO rollbacks SELECT 'r{number}', '{number}r', seq, '{self.back}', 'done', '[]', 'b', 'a', 0, "
                         f"1, 1, NULL, '{'0' * 64}', '{'x' * 500}', 1, 1 FROM event_head;"
                         f"UPDATE runs SET phase = 'a', status = 'active', epoch = epoch + 1 WHERE id = '{self.back}';")
        shell(self.other, event(self.back, "phase", "advance", from_="'a'", to="'b'")
              + f"UPDATE runs SET phase = 'b' WHERE id = '{self.back}';")
        return sample

    def create(self, _):
        return self.ic("run", "create", "--goal", "another")

    def shell_create(self, i):
        return shell(self.other, event(f"n{i}", "run", "run_created", payload="x" * 200)
                     + f"INSERT INTO runs SELECT 'n{i}', '{i}n', seq, 'another', 'active', 'a', '[]', CAST('/x' AS BLOB), NULL, 1, "
                       f"'{'g' * 600}', NULL, '{{}}', 0, 1, 1, NULL FROM event_head;")

    def status(self, _):
        return self.ic("run", "status", self.run)

    def shell_status(self, _):
        return shell(self.other, f".mode json\nSELECT * FROM runs WHERE id = '{self.run}';\n", write=False)

    def glance(self, _):
        return self.ic("status", self.run)

    def log(self, _):
        return self.ic("log", self.run, "-n", "20")

    def tail(self, _):
        return self.ic("events", "tail", "-n", "20")


def compare(report, ledger, runs, events):
    """Each verb against the shell; the first call of each side warms the caches."""
    report.begin(f"kernel, {runs:,} runs and {events:,} events", "sqlite3")
    for name, mine, theirs, limit in [
            ("run advance --no-checkpoint", ledger.advance, ledger.shell_advance, 0.9),
            ("run rollback", ledger.roll_back, ledger.shell_roll_back, 1.0),
            ("run create", ledger.create, ledger.shell_create, 1.0),
            ("run status", ledger.status, ledger.shell_status, 0.95)]:
        mine(-1), theirs(-1)
        report.ratio(name, *in_turn(ledger.rounds, mine, theirs), limit=limit)


def daily(report, ledger, runs):
    """Everyday commands, against the simplest query of a run."""
    report.begin(f"kernel, {runs:,} runs: at a glance", "run status")
    for name, verb in [("status", ledger.glance), ("log -n 20", ledger.log)]:
        verb(-1), ledger.status(-1)
        report.ratio(name, *in_turn(ledger.rounds, verb, ledger.status), limit=1.3)


def growth(report, few, many):
    report.begin("kernel, the many", "the few")
    for name, verb in [("run status", "status"), ("run advance --no-checkpoint", "advance"), ("run create", "create"),
                       ("events tail --limit 20", "tail")]:
        report.ratio(name, *in_turn(few.rounds, getattr(many, verb), getattr(few, verb)))


def curves(report, directory, slug, across, sizes):
    """The medians of the verbs at each size, which is (runs, events)."""
    found = {"run create": {}, "run advance": {}, "run status": {}, "events tail": {}}
    for x, (runs, events) in sizes.items():
        ledger = Ledger(report, directory, runs, events)
        for name in found:
            verb = getattr(ledger, name.split()[1])
            verb(0)
            found[name][x] = statistics.median(verb(i).seconds for i in range(15))
    report.plot(slug, f"Calls by {across} in the ledger", across, found)


def streaming(report, directory):
    db = os.path.join(directory, "stream.db")
    once([report.ic, "--db", db, "init"])
    run = once([report.ic, "--db", db, "run", "create", "--goal", "stream"]).out
    grow(db, 1, 100_000, run)
    # Into a file: with a pipe, the time would include its reader.
    command = f'exec "$0" --db "$1" run events "$2" --format jsonl > "{directory}/out"'
    samples = [once(["sh", "-c", command, report.ic, db, run]) for _ in range(7)]
    report.begin("100,000 events", "")
    report.time("run events --format jsonl", [s.seconds for s in samples], 0.13)
    report.figure("its peak memory", max(s.peak for s in samples), "MiB", 30)


def program(report):
    report.begin("the program", "")
    # 11.5 without the server for agents and the page, which may take 6.
    report.figure("its size", os.path.getsize(report.ic) / 1e6, "MB", 17.5)


def bench(report):
    program(report)
    few, many = (10, 10), (10_000, 100_000) if report.quick else (100_000, 1_000_000)
    with scratch() as directory:
        ledgers = [Ledger(report, directory, *size) for size in (few, many)]
        for ledger, size in zip(ledgers, (few, many)):
            compare(report, ledger, *size)
        growth(report, *ledgers)
        daily(report, ledgers[-1], many[0])
        streaming(report, directory)
    if not report.quick:
        for slug, sizes in [("runs", {n: (n, 10) for n in (10, 1_000, 10_000, 100_000)}),
                            ("events", {n: (10, n) for n in (10, 1_000, 10_000, 100_000, 1_000_000)})]:
            with scratch() as directory:
                curves(report, directory, slug, slug, sizes)
