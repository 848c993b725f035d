"""Calls on a disk with slow flushes, as in a laptop: slow_flush.c makes the kernel delay each one. The times include the program's own work."""

import os
import random
import subprocess
import sys
import time

from checkpoint import WHO, text
from common import ENV, once, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
# The delay of each flush, in seconds.
DELAY = 0.003
FILES = 100
# At 3 ms.
BOUNDS = {"run status": 0.004, "run advance --no-checkpoint": 0.009, "run advance, nothing changed": 0.014,
          "run advance, 10 files changed": 0.020}


def parse(words):
    """`3ms` or `0.5ms` in seconds."""
    word = words[0] if words else ""
    try:
        return float(word.removesuffix("ms")) / 1000 if word.endswith("ms") else sys.exit("--flush wants a time, as in 3ms")
    except ValueError:
        sys.exit(f"--flush wants a time, as in 3ms, not {word}")


class Project:
    """A git repository of a hundred files, and a run with a long chain."""

    def __init__(self, report, home, slow):
        self.ic_path, self.slow, self.delay, self.rng = report.ic, slow, report.flush, random.Random(3)
        self.root, self.words = os.path.join(home, "project"), ["word", "other", "third", "longer-one", "x"]
        os.mkdir(self.root)
        self.paths = [os.path.join(self.root, f"file{i:02}.txt") for i in range(FILES)]
        for path in self.paths:
            with open(path, "w") as out:
                out.write(text(self.rng, self.words, self.rng.randint(500, 6_500)))
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "base"]):
            once(["git", *WHO, *words], cwd=self.root)
        once([report.ic, "init"], cwd=self.root)
        chain = ",".join(f"p{i}" for i in range(400))
        self.run = once([report.ic, "run", "create", "--goal", "flush", "--phases", chain], cwd=self.root).out

    def call(self, *arguments):
        """The seconds of a call, as slow_flush measures them."""
        command = [self.slow, str(round(self.delay * 1e6)), self.ic_path, "run", *arguments]
        done = subprocess.run(command, cwd=self.root, env=ENV, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{command} failed: {done.stderr}")
        return float(done.stderr.split()[-1])

    def edit(self):
        for path in self.rng.sample(self.paths, 10):
            with open(path, "a") as out:
                out.write(text(self.rng, self.words, 200))

    def edited(self):
        self.edit()
        return self.call("advance", self.run)


def bench(report):
    with scratch() as home:
        slow = os.path.join(home, "slow_flush")
        subprocess.run(["cc", "-O2", "-o", slow, os.path.join(HERE, "slow_flush.c")], check=True)
        project = Project(report, home, slow)
        verbs = {"run status": lambda: project.call("status", project.run),
                 "run advance --no-checkpoint": lambda: project.call("advance", project.run, "--no-checkpoint"),
                 "run advance, nothing changed": lambda: project.call("advance", project.run),
                 "run advance, 10 files changed": project.edited}
        report.begin(f"flushes that take {1000 * report.flush:g} ms longer, a git repository of {FILES} files", "")
        for name, verb in verbs.items():
            verb()
            # Recently touched files are read again; between an agent's steps they are settled.
            time.sleep(2.2)
            verb()
            limit = BOUNDS[name] if report.flush == 0.003 else None
            report.time(name, [verb() for _ in range(7 if report.quick else 41)], limit)
