"""Rewind benchmarks: half of a million rows in four tables, against plain DELETE statements and COUNT queries in the sqlite3 shell
on a copy of the same file, in the same run. Reported: medians of whole processes in seconds, and the ratio.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

IC = os.path.abspath(sys.argv[1])
QUICK = "--quick" in sys.argv
ROWS = 40_000 if QUICK else 1_000_000
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
TABLES = ["agent_logs", "langgraph_checkpoints", "requirements", "tasks"]
missed = []


def seconds(command, directory):
    started = time.perf_counter()
    done = subprocess.run(command, env=ENV, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed: {done.stderr.decode()}")
    return time.perf_counter() - started


def report(name, mine, theirs, limit):
    ratio = statistics.median(mine) / statistics.median(theirs)
    verdict = "" if QUICK else ("ok" if ratio <= limit else "OVER")
    if verdict == "OVER":
        missed.append(name)
    print(f"{name:<40} {statistics.median(mine):8.3f} s {statistics.median(theirs):8.3f} s {ratio:6.2f}   <= {limit} {verdict}",
          flush=True)


FILL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {quarter})
INSERT INTO {table} SELECT {values} FROM n;
"""
VALUES = {
    "tasks": "'t' || i, 'title ' || i, 'done', NULL, i",
    "requirements": "'r' || i, 't' || i, 'body of ' || i, i",
    "agent_logs": "i, 't' || i, 'STEP', 'payload of ' || i, i",
    "langgraph_checkpoints": "'c' || i, 't' || i, x'00112233445566778899aabbccddeeff', i",
}

with tempfile.TemporaryDirectory() as home:
    project = os.path.join(home, "project")
    os.mkdir(project)
    seconds([IC, "init"], project)
    seconds([IC, "rewind", "init", "--profile", "devs"], project)
    database = os.path.join(project, ".ic", "state.db")
    quarter = ROWS // 4
    for table in reversed(TABLES):
        subprocess.run(["sqlite3", database, FILL.format(quarter=quarter, table=table, values=VALUES[table])], check=True)
    pristine = os.path.join(home, "pristine.db")
    shutil.copy(database, pristine)
    half = quarter // 2
    deletes = "BEGIN IMMEDIATE;" + "".join(f"DELETE FROM {t} WHERE created_at > {half};" for t in TABLES) + "COMMIT;"
    counts = "".join(f"SELECT count(*) FROM {t} WHERE created_at > {half};" for t in TABLES)
    mine, theirs, previews, queries = [], [], [], []
    for _ in range(1 if QUICK else 3):
        other = os.path.join(home, "other.db")
        shutil.copy(pristine, other)
        shutil.copy(pristine, database)
        previews.append(seconds([IC, "rewind", "to", f"t{half}", "--dry-run"], project))
        queries.append(seconds(["sqlite3", other, counts], project))
        mine.append(seconds([IC, "rewind", "to", f"t{half}", "--no-git", "--yes"], project))
        theirs.append(seconds(["sqlite3", other, deletes], project))
    print(f"\n{'rewinds of ' + format(ROWS, ',') + ' rows':<40} {'ic':>10} {'sqlite3':>10} {'ratio':>6}")
    report("half of the rows, with the archive", mine, theirs, 3)
    report("preview", previews, queries, 1.5)
sys.exit(f"over: {', '.join(missed)}" if missed else 0)
