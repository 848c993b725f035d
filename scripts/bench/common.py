"""Shared by the benchmarks: whole processes that are timed in turn, and one report for the table, the page and the plots."""

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@dataclasses.dataclass
class Sample:
    """One process: its wall-clock seconds, its peak memory in MiB, its output, and its page faults with those of its children."""
    seconds: float
    peak: float
    out: str
    faults: int


def once(command, cwd=None, stdin=None, env=None):
    """Runs one process to its end. If it fails, the benchmark ends."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env={**ENV, **(env or {})}, cwd=cwd, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if stdin:
        process.stdin.write(stdin.encode())
        process.stdin.close()
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} failed: {errors.decode()}")
    return Sample(seconds, usage.ru_maxrss / 1024, out.decode().strip(), usage.ru_minflt)


def scratch():
    """A temporary directory on a disk, not in memory: the measured times must include fsync."""
    return tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp"))


def in_turn(rounds, mine, theirs):
    """The seconds of both sides, run A B A B ..., so that a machine whose speed drifts slows both."""
    pairs = [(mine(i).seconds, theirs(i).seconds) for i in range(rounds)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def spread(values):
    """The median and the quartiles; with fewer than four samples the least and the greatest value."""
    middle = statistics.median(values)
    if len(values) < 4:
        return middle, min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4)
    return middle, low, high


def milliseconds(values):
    middle, low, high = (1000 * v for v in spread(values))
    digits = 2 if middle < 100 else 0
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


@dataclasses.dataclass
class Row:
    """A line of the table. `limit` is the bound that the design sets, if it sets one."""
    section: str
    name: str
    mine: str
    theirs: str
    figure: str
    limit: str
    verdict: str


@dataclasses.dataclass
class Plot:
    """How cost grows: for each name, seconds at each size."""
    slug: str
    title: str
    across: str
    curves: dict


class Report:
    """Collects the rows and prints each at once."""

    def __init__(self, ic, quick):
        self.ic, self.quick = os.path.abspath(ic), quick
        self.rows, self.plots, self.section = [], [], ""

    def begin(self, section, against):
        """Begins a part of the table: what is measured, and the heading of the column of the other side."""
        self.section = f"{section} against {against}" if against else section
        print(f"\n{self.section}\n{'':<54} {'ic, ms':>26} {against + ', ms' if against else '':>30} {'':>9}", flush=True)

    def ratio(self, name, mine, theirs, limit=None):
        """Seconds of both sides, run in turn: the median of the ratios of the pairs."""
        ratio = statistics.median(a / b for a, b in zip(mine, theirs))
        self._row(name, milliseconds(mine), milliseconds(theirs), ratio, f"{ratio:.2f}", limit, "")

    def time(self, name, values, limit=None):
        """Seconds of one side, against a bound in seconds."""
        middle = statistics.median(values)
        self._row(name, milliseconds(values), "", middle, f"{middle:.3f} s", limit, " s")

    def figure(self, name, value, unit, limit=None, at_least=None):
        """Anything else that is measured."""
        if at_least is not None:
            return self._row(name, "", "", -value, f"{value:.2f} {unit}", -at_least, f" {unit}")
        self._row(name, "", "", value, f"{value:.2f} {unit}", limit, f" {unit}")

    def plot(self, slug, title, across, curves):
        self.plots.append(Plot(slug, title, across, curves))

    def _row(self, name, mine, theirs, value, figure, limit, unit):
        bound = "" if limit is None else f"<= {limit}{unit}" if limit >= 0 else f">= {-limit}{unit}"
        # The bounds are set for the full sizes, so a quick run is not checked against them.
        verdict = "" if limit is None or self.quick else ("ok" if value <= limit else "OVER")
        self.rows.append(Row(self.section, name, mine, theirs, figure, bound, verdict))
        print(f"{name:<54} {mine:>26} {theirs:>30} {figure:>11}  {bound:>10} {verdict}", flush=True)

    def missed(self):
        return [f"{row.section}: {row.name}" for row in self.rows if row.verdict == "OVER"]
