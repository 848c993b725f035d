"""Everyday commands: undoing the last work and the work of one dispatch, and the cost of the captures that this needs."""

import os
import time

from checkpoint import text
from common import in_turn, scratch
from rollback import Project

LINES = 40


class Team:
    """A git repository in which one dispatch changed some of the files, and then another one other lines of the same files."""

    def __init__(self, ic, home, files, changed):
        self.project = Project(ic, home, files, 0)
        self.ic = self.project.ic
        self.paths = self.project.rng.sample(self.project.paths, changed)
        for path in self.paths:
            with open(path, "w") as out:
                out.write("".join(f"line {n} of {path}\n" for n in range(LINES)))
        self.project.git("commit", "-qam", "lines")
        time.sleep(2.2)  # Recently touched files are read again.
        self.first, self.second = self.work("first", 5), self.work("second", 30)

    def work(self, name, line):
        number = self.ic("dispatch", "create", self.project.run, "--name", name).out
        self.ic("dispatch", "start", number)
        for path in self.paths:
            with open(path) as lines:
                all_lines = lines.readlines()
            all_lines[line] = f"{name}\n"
            with open(path, "w") as out:
                out.writelines(all_lines)
        self.ic("dispatch", "complete", number)
        return number

    def dispatch(self, *flags):
        """One dispatch that changes a file: the seconds of its start and its end."""
        number = self.ic("dispatch", "create", self.project.run, "--name", "one").out
        start = self.ic("dispatch", "start", number, *flags)
        with open(self.project.rng.choice(self.project.paths), "a") as out:
            out.write(text(self.project.rng, self.project.words, 200))
        end = self.ic("dispatch", "complete", number, *flags)
        start.seconds += end.seconds
        return start

    def stored(self):
        directory = os.path.dirname(self.project.ledger)
        return sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory)
                   if name.startswith(("objects.db", "ic.db")))


def commands(report, rounds):
    """A command as a piece of work: it is two transactions and two captures, and starts a guard and the command itself."""
    with scratch() as home:
        project = Project(report.ic, home, 1_000, 0)
        chain = ",".join(f"p{number}" for number in range(4 * rounds))
        run = project.ic("run", "create", "--goal", "advance", "--phases", chain).out
        time.sleep(2.2)  # Recently touched files are read again.
        execs, advances = in_turn(
            rounds, lambda _: project.ic("exec", "--run", run, "--", "true"), lambda _: project.ic("run", "advance", run)
        )
        report.begin("a command as a piece of work, 1,000 files", "run advance")
        report.ratio("exec --run RUN -- true", execs, advances, 3)


def bench(report):
    commands(report, 5 if report.quick else 31)
    files, dispatches = (1_000, 20) if report.quick else (10_000, 1_000)
    rounds = 3 if report.quick else 9
    with scratch() as home:
        team = Team(report.ic, home, files, 100)
        plans, alone_plans, alone, back = [], [], [], []
        for _ in range(rounds):
            plans.append(team.ic("undo", "--run", team.project.run, "--dry-run").seconds)
            alone_plans.append(team.ic("undo", "--only", team.first, "--dry-run").seconds)
            alone.append(team.ic("undo", "--only", team.first, "--yes").seconds)
            back.append(team.ic("redo", "--run", team.project.run, "--yes").seconds)
        report.begin(f"undo: {files:,} files, 100 of them changed by two dispatches", "")
        report.time("undo --dry-run", plans, 0.1)
        report.time("undo --only --dry-run", alone_plans, 0.3)
        report.time("undo --only", alone, 0.3)
        report.time("redo", back)
        report.begin(f"dispatch start and complete, {files:,} files", "--no-checkpoint")
        before, looks, blind = team.stored(), [], []
        for n in range(dispatches):
            looks.append(team.dispatch().seconds)
            if n % (dispatches // 20) == 0:
                blind.append(team.dispatch("--no-checkpoint").seconds)
        report.ratio("both calls", looks[:: dispatches // 20], blind)
        report.figure(f"what ledger and store grow by, {dispatches:,} dispatches", (team.stored() - before) / 2**20, "MiB")
    with scratch() as home:
        team, both = Team(report.ic, home, files, 500), []
        for _ in range(rounds):
            undo = team.ic("undo", "--only", team.first, "--yes").seconds
            both.append((undo, team.ic("redo", "--run", team.project.run, "--yes").seconds))
        report.begin(f"undo: {files:,} files, 500 of them changed by two dispatches", "")
        report.time("undo --only", [undo for undo, _ in both], 2)
        report.time("redo", [redo for _, redo in both], 2)
