"""Rewinds of half of the rows of four tables, against plain DELETE statements and COUNT queries in the sqlite3 shell on a copy of
the same file, and how they grow."""

import os
import shutil
import statistics
import subprocess

from common import once, scratch

TABLES = ["agent_logs", "langgraph_checkpoints", "requirements", "tasks"]
FILL = """
WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO {table} SELECT {values} FROM n;
"""
VALUES = {
    "tasks": "'t' || i, 'title ' || i, 'done', NULL, i",
    "requirements": "'r' || i, 't' || i, 'body of ' || i, i",
    "agent_logs": "i, 't' || i, 'STEP', 'payload of ' || i, i",
    "langgraph_checkpoints": "'c' || i, 't' || i, x'00112233445566778899aabbccddeeff', i",
}


class Application:
    """A project with a state database of the profile `devs`, and a pristine copy of it."""

    def __init__(self, ic, home, rows):
        self.ic_path, self.project, self.half = ic, os.path.join(home, "project"), rows // 8
        os.mkdir(self.project)
        self.ic("init")
        self.ic("rewind", "init", "--profile", "devs")
        self.database = os.path.join(self.project, ".ic", "state.db")
        for table in reversed(TABLES):
            sql = FILL.format(first=1, last=rows // 4, table=table, values=VALUES[table])
            subprocess.run(["sqlite3", self.database, sql], check=True)
        self.pristine, self.other = os.path.join(home, "pristine.db"), os.path.join(home, "other.db")
        shutil.copy(self.database, self.pristine)

    def ic(self, *arguments):
        return once([self.ic_path, *arguments], cwd=self.project)

    def fresh(self):
        """Restores both databases and syncs them: the writes of the copy must not be part of the measurement."""
        for path in (self.database, self.other):
            shutil.copy(self.pristine, path)
        os.sync()

    def preview(self):
        return self.ic("rewind", "to", f"t{self.half}", "--dry-run")

    def rewind(self):
        return self.ic("rewind", "to", f"t{self.half}", "--no-git", "--yes")

    def counts(self):
        return once(["sqlite3", self.other, "".join(f"SELECT count(*) FROM {t} WHERE created_at > {self.half};" for t in TABLES)])

    def deletes(self):
        deletes = "".join(f"DELETE FROM {t} WHERE created_at > {self.half};" for t in TABLES)
        return once(["sqlite3", self.other, f"BEGIN IMMEDIATE;{deletes}COMMIT;"])


def compare(report, rows):
    with scratch() as home:
        application = Application(report.ic, home, rows)
        previews, rewinds, peaks = [], [], []
        for _ in range(1 if report.quick else 5):
            application.fresh()
            previews.append((application.preview().seconds, application.counts().seconds))
            mine = application.rewind()
            peaks.append(mine.peak)
            rewinds.append((mine.seconds, application.deletes().seconds))
        report.begin(f"rewinds of {rows:,} rows", "sqlite3")
        report.ratio("half of the rows, with the archive", *zip(*rewinds), limit=2.5)
        report.ratio("preview", *zip(*previews), limit=1.5)
        report.figure("peak memory", max(peaks), "MiB")


def growth(report):
    found = {"rewind": {}, "preview": {}}
    for rows in [1_000, 10_000, 100_000, 1_000_000]:
        with scratch() as home:
            application = Application(report.ic, home, rows)
            samples = []
            for _ in range(3):
                application.fresh()
                samples.append((application.preview().seconds, application.rewind().seconds))
            found["preview"][rows], found["rewind"][rows] = (statistics.median(values) for values in zip(*samples))
    report.plot("rows", "Rewinding half of the rows of a state database", "rows", found)


def bench(report):
    compare(report, 40_000 if report.quick else 1_000_000)
    if not report.quick:
        growth(report)
