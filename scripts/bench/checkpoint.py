"""Each step of checkpoints against a shadow git doing the same on the same tree, and how they grow.

A shadow git is a repository whose directory is elsewhere and whose work tree is the project. Other tools use one for
their checkpoints.
"""

import dataclasses
import os
import random
import shutil
import statistics
import subprocess
import time

from common import ENV, in_turn, once, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
WHO = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]


# A call of retention prunes at most this many checkpoints.
PRUNED = 32


def text(rng, words, size):
    out, length = [], 0
    while length < size:
        line = "    " * rng.randint(0, 3) + " ".join(rng.choices(words, k=rng.randint(3, 11))) + "\n"
        out.append(line)
        length += len(line)
    return "".join(out)


class Tree:
    """A generated project with an ic ledger and a shadow git, both outside of it."""

    def __init__(self, ic, home, files):
        self.ic_path, self.rng = ic, random.Random(files)
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
        return once([self.ic_path, "--db", f"{self.store}/ic.db", "-C", self.root, *arguments])

    def git(self, *arguments):
        return once(["git", *WHO, f"--git-dir={self.git_dir}", f"--work-tree={self.root}", "-C", self.root, *arguments])

    def edit(self, count):
        for path in self.rng.sample(self.paths, count):
            with open(path, "a") as out:
                out.write(text(self.rng, self.words, 200))

    def kept(self):
        return len(self.ic("checkpoint", "list", "--format", "jsonl").out.splitlines())

    def stored(self):
        names = [f for f in os.listdir(self.store) if f.startswith("objects.db")]
        return sum(os.path.getsize(os.path.join(self.store, name)) for name in names)


def bare_looks(tree):
    """A program that only calls lstat on each file, with two threads: a lower bound for the seconds of a capture that does so."""
    program = os.path.join(tree.home, "lstats")
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, os.path.join(HERE, "lstats.c")], check=True)
    paths = "\0".join(tree.paths) + "\0"

    def look():
        sample = once([program], stdin=paths)
        return dataclasses.replace(sample, seconds=float(sample.out))

    return look


def settle(tree):
    """Lets both sides see the files as settled, as between an agent's steps: both read recently touched files again."""
    time.sleep(2.2)
    tree.ic("checkpoint", "create"), tree.git("add", ".")


# By the number of files, the highest ratios to a shadow git: with nothing changed, with ten files changed, and restoring ten.
BOUNDS = {2_000: (0.6, 0.6, 0.6), 10_000: (0.45, 0.55, 0.6), 100_000: (0.4, 0.4, 0.35)}


def compare(report, files):
    unchanged, ten, restored = BOUNDS[files]
    with scratch() as home:
        tree = Tree(report.ic, home, files)
        peaks = []

        def mine(*arguments):
            sample = tree.ic("checkpoint", *arguments)
            peaks.append(sample.peak)
            return sample

        def git_first():
            added, committed = tree.git("add", "."), tree.git("commit", "-qm", "first")
            return added.seconds + committed.seconds

        def edited(act):
            tree.edit(10)
            return act()

        report.begin(f"checkpoints of {files:,} files", "a shadow git")
        first = []
        for _ in range(1 if report.quick else 3):
            tree.fresh()
            first.append((mine("create").seconds, git_first()))
        report.ratio("first", *zip(*first), limit=0.3)
        settle(tree)
        rounds = 3 if report.quick else 11
        report.ratio("nothing changed", *in_turn(rounds, lambda _: mine("create"), lambda _: tree.git("add", ".")), limit=unchanged)
        look = bare_looks(tree)
        report.ratio("of it: one lstat a file", *in_turn(rounds, lambda _: look(), lambda _: tree.git("add", ".")))
        changed = []
        for _ in range(rounds):
            tree.edit(10)
            changed.append((mine("create").seconds, tree.git("add", ".").seconds))
        report.ratio("10 changed", *zip(*changed), limit=ten)
        tree.git("commit", "-qm", "base")
        base = mine("create").out
        settle(tree)
        tree.git("status", "--porcelain")
        report.ratio("restoring 10", *in_turn(
            rounds, lambda _: edited(lambda: mine("restore", base, "--yes")),
            lambda _: edited(lambda: tree.git("checkout", "-q", "-f", "HEAD", "--", "."))), limit=restored)
        mine("create")
        before = tree.stored()
        for _ in range(50):
            edited(lambda: mine("create"))
        report.figure("50 checkpoints of 10 edits add", (tree.stored() - before) / 1e6, "MB", 2)
        report.figure("peak memory", max(peaks), "MiB", 200)


def retention(report, files):
    """The cost of retention: a capture that prunes as many checkpoints as one call may, against one with nothing to prune.

    A sweep in the background removes the content, once an hour. The first call makes it, before anything is timed.
    """
    with scratch() as home:
        tree = Tree(report.ic, home, files)
        settings = os.path.join(tree.root, ".ic.yaml")
        create = ["checkpoint", "create", "--auto"]

        def keeping(age):
            with open(settings, "w") as out:
                # Both lines have the same length, so that the walk of both sides costs the same.
                out.write(f"rollback: {{retention: {{max-age: {age}, keep-last: 1}}}}\n")

        def with_work(_):
            keeping("99d")
            for _ in range(PRUNED):
                tree.ic(*create)
            keeping("1ms")
            before = tree.kept()
            sample = tree.ic(*create)
            # The timed call must have done its work: one checkpoint was added, and PRUNED were removed.
            assert tree.kept() == before + 1 - PRUNED, (before, tree.kept())
            return sample

        def without(_):
            keeping("99d")
            return tree.ic(*create)

        keeping("1ms")
        for _ in range(2):
            tree.ic(*create)
        time.sleep(2.2)
        report.begin(f"retention beside a capture of {files:,} files", "a capture that prunes nothing")
        mine, theirs = in_turn(5 if report.quick else 15, with_work, without)
        report.ratio(f"a capture that prunes {PRUNED}", mine, theirs)
        added = statistics.median(a - b for a, b in zip(mine, theirs))
        report.figure("added by retention", added * 1000, "ms", 5)


def small(report):
    with scratch() as home:
        tree = Tree(report.ic, home, 1_000)
        tree.ic("checkpoint", "create")
        settle(tree)
        report.begin("a checkpoint of 1,000 files", "")
        report.time("nothing changed", [tree.ic("checkpoint", "create").seconds for _ in range(21)], 0.006)


def growth(report):
    found = {"first": {}, "nothing changed": {}, "10 changed": {}, "restoring 10": {}}
    for files in [1_000, 10_000, 50_000, 100_000, 200_000]:
        with scratch() as home:
            tree = Tree(report.ic, home, files)
            found["first"][files] = tree.ic("checkpoint", "create").seconds
            time.sleep(2.2)
            base = tree.ic("checkpoint", "create").out

            def edited(*arguments, tree=tree):
                tree.edit(10)
                return tree.ic("checkpoint", *arguments).seconds

            found["nothing changed"][files] = statistics.median(tree.ic("checkpoint", "create").seconds for _ in range(5))
            found["10 changed"][files] = statistics.median(edited("create") for _ in range(5))
            found["restoring 10"][files] = statistics.median(edited("restore", base, "--yes") for _ in range(5))
    report.plot("files", "Checkpoints by files in the tree", "files", found)


def bench(report):
    for files in [2_000] if report.quick else [10_000, 100_000]:
        compare(report, files)
    small(report)
    retention(report, 1_000 if report.quick else 10_000)
    if not report.quick:
        growth(report)
