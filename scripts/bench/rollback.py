"""One rollback over every layer, step by step, against undoing the same by hand: git, the sqlite3 shell and the commands."""

import json
import os
import random
import subprocess

from checkpoint import WHO, text
from common import once, scratch
from rewind import FILL, TABLES, VALUES

EFFECTS = 10


class Project:
    """A git repository of many files with a run that changed 100 of them, wrote rows and did something outside, all after
    it had left its first phase."""

    def __init__(self, ic, home, files, rows):
        self.ic_path, self.root, self.rng = ic, os.path.join(home, "project"), random.Random(7)
        self.rows, self.words, self.paths = rows, ["word", "other", "third", "longer-one", "x"], []
        for i in range(files):
            directory = f"{self.root}/part{i // 500:03}/unit{i // 50 % 10}"
            if i % 50 == 0:
                os.makedirs(directory)
            self.paths.append(f"{directory}/file{i % 50:02}.txt")
            with open(self.paths[-1], "w") as out:
                out.write(text(self.rng, self.words, self.rng.randint(500, 6_500)))
        self.git("init", "-q")
        with open(f"{self.root}/.gitignore", "w") as out:
            out.write(".ic.yaml\n")
        self.ic("init")
        self.ic("rewind", "init", "--profile", "devs")
        self.ledger = os.path.join(self.root, ".git", "ic", "ic.db")
        self.database = os.path.join(self.root, ".git", "ic", "state.db")
        self.fill(1, 100)
        self.git("add", ".")
        self.git("commit", "-qm", "base")
        self.base = self.git("rev-parse", "HEAD").out
        self.run = self.ic("run", "create", "--goal", "bench", "--phases", "a,b,c").out

    def ic(self, *arguments):
        return once([self.ic_path, *arguments], cwd=self.root)

    def git(self, *arguments):
        return once(["git", *WHO, *arguments], cwd=self.root)

    def fill(self, first, last):
        for table in reversed(TABLES):
            sql = FILL.format(first=first, last=last, table=table, values=VALUES[table])
            subprocess.run(["sqlite3", self.database, sql], check=True)

    def work(self):
        """Makes what the rollback will undo: 100 files, half of them committed, the effects and the rows."""
        self.ic("run", "advance", self.run)
        changed = self.rng.sample(self.paths, 100)
        for i, path in enumerate(changed):
            with open(path, "a") as out:
                out.write(text(self.rng, self.words, 200))
            if i == 50:
                self.git("commit", "-qam", "work")
        self.fill(101, 100 + self.rows // len(TABLES))
        for i in range(EFFECTS):
            self.ic("compensation", "add", self.run, "--step", f"s{i}", "--exec", "--", "true")

    def journal(self, rollback):
        """The steps of a rollback, each with the seconds that it took by the journal: until it ended, from the end of the one
        before it, the first from the fence."""
        query = (f"SELECT 'fence', created_at FROM rollbacks WHERE id = '{rollback}' UNION ALL SELECT * FROM "
                 f"(SELECT layer, updated_at FROM rollback_steps WHERE rollback_id = '{rollback}' ORDER BY ord);")
        lines = [line.split("|") for line in once(["sqlite3", self.ledger, query]).out.splitlines()]
        return [(kind, (int(at) - int(before)) / 1000) for (_, before), (kind, at) in zip(lines, lines[1:])]

    def by_hand(self):
        """The same with the tools that are there: it knows what to undo, keeps nothing, and cannot resume after a crash."""
        deletes = "".join(f"DELETE FROM {table} WHERE created_at > 100;" for table in TABLES)
        script = ('i=0; while [ $i -lt 10 ]; do env true; i=$((i+1)); done; git reset -q --hard "$1"; '
                  'sqlite3 "$2" "PRAGMA synchronous=FULL; BEGIN IMMEDIATE; $3 COMMIT;"')
        return once(["sh", "-c", script, "sh", self.base, self.database, deletes], cwd=self.root)

    def back(self, *flags):
        return self.ic("run", "rollback", self.run, "--to-phase", "a", "--layer=all", "--json", *flags)


def bench(report):
    files, rows = (1_000, 1_000) if report.quick else (10_000, 10_000)
    with scratch() as home:
        project = Project(report.ic, home, files, rows)
        plans, wholes, hands, steps = [], [], [], {}
        for _ in range(2 if report.quick else 9):
            project.work()
            plans.append(project.back("--dry-run").seconds)
            whole = project.back("--yes")
            wholes.append(whole.seconds)
            for kind, seconds in project.journal(json.loads(whole.out)["rollback_id"]):
                steps.setdefault(kind, []).append(seconds)
            project.work()
            hands.append(project.by_hand().seconds)
            # The run is rolled back, too; its layers find nothing to change.
            project.back("--yes", "--force")
        report.begin(f"rollback over every layer: {files:,} files, 100 changed, {EFFECTS} effects, {rows:,} rows", "doing it by hand")
        report.time("plan", plans, 0.3)
        report.time("the whole", wholes, 0.3)
        for kind, seconds in steps.items():
            report.time(f"of it: {kind}", seconds)
        report.ratio("the whole", wholes, hands)
