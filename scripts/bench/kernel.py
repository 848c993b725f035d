"""Kernel benchmarks: each verb against the sqlite3 shell doing the same on a copy of the same file.

Both sides run in turn (A B A B ...), so that a machine whose speed drifts slows both. Reported: medians of whole
processes in milliseconds, their quartiles, and the median of the pairwise ratios.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

IC = sys.argv[1]
QUICK = "--quick" in sys.argv
RUNS = 15 if QUICK else 50
EVENTS = 100_000 if QUICK else 1_000_000
MANY_RUNS = 10_000 if QUICK else 100_000
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def once(command, stdin=None):
    """Seconds and peak memory (KiB) of one process; its output is thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=ENV, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if stdin:
        process.stdin.write(stdin.encode())
        process.stdin.close()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} failed: {errors.decode()}")
    return seconds, usage.ru_maxrss


def ic(db, *arguments):
    out = subprocess.run([IC, "--db", db, *arguments], env=ENV, check=True, capture_output=True, text=True)
    return out.stdout.strip()


def shell(db, sql, write=True):
    """The sqlite3 shell doing the same, as durably."""
    head = ".bail on\n.timeout 5000\nPRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON; PRAGMA synchronous=FULL;\n"
    body = f"BEGIN IMMEDIATE;\n{sql}\nCOMMIT;\n" if write else sql
    return once(["sqlite3", db], head + body)


def quartiles(values):
    low, middle, high = statistics.quantiles([v * 1000 for v in values], n=4)
    return f"{middle:7.2f} ({low:.2f}-{high:.2f})"


def pair(name, limit, a, b, prepare=lambda: None):
    """Times a against b; each call gets the number of the round."""
    prepare()
    a(-1), b(-1)
    first, second = [], []
    for i in range(RUNS):
        first.append(a(i)[0])
        second.append(b(i)[0])
    ratio = statistics.median(x / y for x, y in zip(first, second))
    verdict = "" if limit is None else ("ok" if ratio <= limit else "OVER")
    bound = "" if limit is None else f"<= {limit}"
    print(f"{name:<44} {quartiles(first):>22} {quartiles(second):>22} {ratio:6.2f} {bound:>7} {verdict}", flush=True)


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


def kernel(label, directory, runs, events):
    db = os.path.join(directory, f"{label}.db")
    ic(db, "init")
    grow(db, runs, events)
    other = os.path.join(directory, f"{label}-shell.db")
    # A chain that is long enough for every advance, without gates.
    chain = ",".join(f"p{i}" for i in range(RUNS + 10))
    run = ic(db, "run", "create", "--goal", "advance", "--phases", chain)
    back = ic(db, "run", "create", "--goal", "rollback", "--phases", "a,b,c")
    ic(db, "run", "advance", back)
    shutil.copy(db, other)

    print(f"\n{label}: {runs:,} runs, {events:,} events")
    pair("run advance --no-checkpoint", 1.5,
         lambda i: once([IC, "--db", db, "run", "advance", run, "--no-checkpoint"]),
         lambda i: shell(other, event(run, "phase", "advance", from_=f"'p{i + 1}'", to=f"'p{i + 2}'",
                                      payload='{"conditions":[]}')
                         + f"UPDATE runs SET phase = 'p{i + 2}', updated_at = 1 "
                           f"WHERE id = '{run}' AND phase = 'p{i + 1}' AND epoch = 0;"))

    def roll_back(i):
        result = once([IC, "--db", db, "run", "rollback", back, "--to-phase", "a"])
        ic(db, "run", "advance", back)
        return result

    def shell_roll_back(i):
        number = f"{i + 2:012x}"
        result = shell(other, event(back, "phase", "rollback", subject=f"'r{number}'", from_="'b'", to="'a'",
                                    payload='{"rollback_id":"' + "x" * 400 + '"}')
                       + f"INSERT INTO rollbacks SELECT 'r{number}', '{number}r', seq, '{back}', 'done', '[]', 'b', 'a', 0, "
                         f"1, 1, NULL, '{'0' * 64}', '{'x' * 500}', 1, 1 FROM event_head;"
                         f"UPDATE runs SET phase = 'a', status = 'active', epoch = epoch + 1 WHERE id = '{back}';")
        shell(other, event(back, "phase", "advance", from_="'a'", to="'b'")
              + f"UPDATE runs SET phase = 'b' WHERE id = '{back}';")
        return result

    pair("run rollback", 1.5, roll_back, shell_roll_back)
    pair("run create", 1.5,
         lambda i: once([IC, "--db", db, "run", "create", "--goal", "another"]),
         lambda i: shell(other, event(f"n{i}", "run", "run_created", payload="x" * 200)
                         + "INSERT INTO runs SELECT 'n" + str(i) + "', '" + str(i) + "n', seq, 'another', 'active', 'a', "
                           "'[]', CAST('/x' AS BLOB), NULL, 1, '" + "g" * 600 + "', NULL, '{}', 0, 1, 1, NULL FROM event_head;"))
    pair("run status", 1.5,
         lambda i: once([IC, "--db", db, "run", "status", run]),
         lambda i: shell(other, f".mode json\nSELECT * FROM runs WHERE id = '{run}';\n", write=False))
    return db, run


def growth(directory):
    few = kernel("few", directory, 10, 10)
    many = kernel("many", directory, MANY_RUNS, EVENTS)
    print("\ngrowth: the many against the few")
    for name, verb in [("run status", ["status"]), ("run phase", ["phase"])]:
        pair(name, None,
             lambda i, v=verb: once([IC, "--db", many[0], "run", *v, many[1]]),
             lambda i, v=verb: once([IC, "--db", few[0], "run", *v, few[1]]))
    runs = [ic(db, "run", "create", "--goal", "grow", "--phases", ",".join(f"p{i}" for i in range(RUNS + 10)))
            for db in (many[0], few[0])]
    pair("run advance --no-checkpoint", None,
         lambda i: once([IC, "--db", many[0], "run", "advance", runs[0], "--no-checkpoint"]),
         lambda i: once([IC, "--db", few[0], "run", "advance", runs[1], "--no-checkpoint"]))
    pair("run create", None,
         lambda i: once([IC, "--db", many[0], "run", "create", "--goal", "another"]),
         lambda i: once([IC, "--db", few[0], "run", "create", "--goal", "another"]))
    pair("events tail --limit 20", None,
         lambda i: once([IC, "--db", many[0], "events", "tail", "--limit", "20"]),
         lambda i: once([IC, "--db", few[0], "events", "tail", "--limit", "20"]))


def streaming(directory):
    db = os.path.join(directory, "stream.db")
    ic(db, "init")
    run = ic(db, "run", "create", "--goal", "stream")
    grow(db, 1, 100_000, run)
    results = [once([IC, "--db", db, "run", "events", run, "--format", "jsonl"]) for _ in range(5)]
    seconds = statistics.median(r[0] for r in results)
    memory = max(r[1] for r in results) / 1024
    print(f"\nrun events --format jsonl, 100,000 events: {seconds:.3f} s (<= 0.25), peak {memory:.1f} MiB (<= 30)")


def main():
    version = json.loads(subprocess.run([IC, "version", "--json"], capture_output=True, text=True, env=ENV).stdout)
    other = subprocess.run(["sqlite3", "--version"], capture_output=True, text=True).stdout.split()[0]
    print(f"ic {version['version']} (SQLite {version['sqlite']}) against sqlite3 {other}; medians of {RUNS}, milliseconds")
    print(f"{'':<44} {'ic (quartiles)':>22} {'other (quartiles)':>22} {'ratio':>6}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as directory:
        growth(directory)
        streaming(directory)


main()
