"""Checkpoint benchmarks: each step against a shadow git doing the same on the same tree, in the same run.

A shadow git is a repository whose directory lies elsewhere and whose work tree is the project: what other tools use for
their checkpoints. Both sides run in turn. Reported: medians of whole processes in seconds, the ratio of the medians, and
the largest peak memory of ic.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

IC = sys.argv[1]
QUICK = "--quick" in sys.argv
SIZES = [2_000] if QUICK else [10_000, 100_000]
GROWTH = [] if QUICK else [1_000, 10_000, 50_000, 100_000, 200_000]
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
WHO = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
missed = []


def once(command):
    """Seconds, peak memory (MiB) and output of one process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} failed: {errors.decode()}")
    return seconds, usage.ru_maxrss / 1024, out.decode().strip()


def text(rng, words, size):
    out, length = [], 0
    while length < size:
        line = "    " * rng.randint(0, 3) + " ".join(rng.choices(words, k=rng.randint(3, 11))) + "\n"
        out.append(line)
        length += len(line)
    return "".join(out)


class Tree:
    """A generated project with an ic ledger and a shadow git, both outside of it."""

    def __init__(self, home, files):
        self.rng = random.Random(files)
        self.home, self.root = home, os.path.join(home, "project")
        syllables = [a + b for a in "bcdfglmnprst" for b in "aeiou"]
        self.words = ["".join(self.rng.choices(syllables, k=self.rng.randint(1, 4))) for _ in range(3_000)]
        self.paths = []
        for i in range(files):
            directory = f"{self.root}/part{i // 5000:03}/group{i // 500 % 10}/unit{i // 50 % 10}"
            if i % 50 == 0:
                os.makedirs(directory)
            self.paths.append(f"{directory}/file{i % 50:02}.txt")
            with open(self.paths[-1], "w") as out:
                out.write(text(self.rng, self.words, self.rng.randint(500, 6_500)))
        self.git_dir = os.path.join(home, "shadow.git")
        self.store = os.path.join(home, "store")
        self.fresh()

    def fresh(self):
        for path in [self.git_dir, self.store]:
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(self.store)
        subprocess.run(["git", "init", "-q", "--bare", self.git_dir], env=ENV, check=True)
        self.ic("init")

    def ic(self, *arguments):
        return once([IC, "--db", f"{self.store}/ic.db", "-C", self.root, *arguments])

    def git(self, *arguments):
        return once(["git", *WHO, f"--git-dir={self.git_dir}", f"--work-tree={self.root}", "-C", self.root, *arguments])

    def edit(self, count):
        for path in self.rng.sample(self.paths, count):
            with open(path, "a") as out:
                out.write(text(self.rng, self.words, 200))

    def stored(self):
        names = [f for f in os.listdir(self.store) if f.startswith("objects.db")]
        return sum(os.path.getsize(os.path.join(self.store, name)) for name in names)


def report(name, mine, theirs, limit):
    ratio = statistics.median(mine) / statistics.median(theirs)
    verdict = "" if QUICK else ("ok" if ratio <= limit else "OVER")
    if verdict == "OVER":
        missed.append(name)
    print(f"{name:<40} {statistics.median(mine):8.3f} s {statistics.median(theirs):8.3f} s {ratio:6.2f}   <= {limit} {verdict}",
          flush=True)


def compare(files):
    with tempfile.TemporaryDirectory() as home:
        tree = Tree(home, files)
        peak = []

        def create():
            seconds, memory, out = tree.ic("checkpoint", "create")
            peak.append(memory)
            return seconds, out

        mine, theirs = [], []
        for _ in range(1 if QUICK else 3):
            tree.fresh()
            mine.append(create()[0])
            theirs.append(tree.git("add", ".")[0] + tree.git("commit", "-qm", "first")[0])
        report(f"{files:,} files: first", mine, theirs, 0.3)
        # What was touched lately is read again by both: let them see it settled, as it is between an agent's steps.
        time.sleep(2.2)
        create(), tree.git("add", ".")
        rounds = 3 if QUICK else 5
        mine, theirs = zip(*[(create()[0], tree.git("add", ".")[0]) for _ in range(rounds)])
        report(f"{files:,} files: nothing changed", mine, theirs, 0.6)
        mine, theirs = [], []
        for _ in range(rounds):
            tree.edit(10)
            mine.append(create()[0])
            theirs.append(tree.git("add", ".")[0])
        report(f"{files:,} files: 10 changed", mine, theirs, 0.6)
        tree.git("commit", "-qm", "base")
        base = create()[1]
        time.sleep(2.2)
        create(), tree.git("status", "--porcelain")
        mine, theirs = [], []
        for _ in range(rounds):
            tree.edit(10)
            seconds, memory, _ = tree.ic("checkpoint", "restore", base, "--yes")
            mine.append(seconds)
            peak.append(memory)
            tree.edit(10)
            theirs.append(tree.git("checkout", "-q", "-f", "HEAD", "--", ".")[0])
        report(f"{files:,} files: restoring 10", mine, theirs, 0.6)
        create()
        before = tree.stored()
        for _ in range(50):
            tree.edit(10)
            create()
        grown = (tree.stored() - before) / 1e6
        verdict = "" if QUICK else ("ok" if grown <= 2 else "OVER")
        print(f"{files:,} files: 50 checkpoints of 10 edits add {grown:.2f} MB   <= 2 MB {verdict}")
        memory = max(peak)
        verdict = "ok" if memory <= 200 else "OVER"
        print(f"{files:,} files: peak memory {memory:.0f} MiB   <= 200 MB {verdict}")
        missed.extend(name for name, bad in [("growth", not QUICK and grown > 2), ("memory", memory > 200)] if bad)


def growth():
    print(f"\n{'how it grows':<16} {'first':>9} {'nothing':>9} {'10 changed':>11} {'restoring 10':>13}")
    for files in GROWTH:
        with tempfile.TemporaryDirectory() as home:
            tree = Tree(home, files)
            first = tree.ic("checkpoint", "create")[0]
            time.sleep(2.2)
            tree.ic("checkpoint", "create")
            nothing = statistics.median(tree.ic("checkpoint", "create")[0] for _ in range(3))
            tree.edit(10)
            changed, _, base = tree.ic("checkpoint", "create")
            tree.edit(10)
            restored = tree.ic("checkpoint", "restore", base, "--yes")[0]
            print(f"{files:>9,} files {first:8.3f} s {nothing:8.3f} s {changed:10.3f} s {restored:12.3f} s", flush=True)


print(f"\n{'checkpoints':<40} {'ic':>10} {'shadow git':>10} {'ratio':>6}")
for size in SIZES:
    compare(size)
growth()
sys.exit(f"over: {', '.join(missed)}" if missed else 0)
