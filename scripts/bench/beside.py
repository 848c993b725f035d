"""How other programs slow a capture: processes with many maps, and git commands that refresh the index."""

import contextlib
import os
import subprocess
import time

from checkpoint import HERE, Tree, settle
from common import once, scratch
from hooks import Session

PROCESSES, MAPS = 150, 800

# A capture beside other programs may take this multiple of one without them.
BOUND = 1.1


@contextlib.contextmanager
def crowd(program, mapped):
    """PROCESSES processes with MAPS maps each, while the context is open."""
    with subprocess.Popen([program, str(PROCESSES), str(MAPS), mapped], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as processes:
        assert processes.stdout.readline() == b"ready\n"
        yield
        processes.stdin.close()


def maps(report, files):
    """Files whose edits are older than two seconds: a capture must find out whether a process has them mapped."""
    with scratch() as home:
        tree = Tree(report.ic, home, files)
        program = os.path.join(home, "maps")
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "maps.c")], check=True)
        tree.ic("checkpoint", "create")
        settle(tree)

        def ten_changed():
            tree.edit(10)
            time.sleep(2.2)
            return tree.ic("checkpoint", "create").seconds

        def beside():
            with crowd(program, program):
                return ten_changed()

        # The crowd must be gone before the sample without it: processes that end would slow that one.
        pairs = [(beside(), ten_changed()) for _ in range(3 if report.quick else 15)]
        report.begin(f"a checkpoint of {files:,} files, 10 changed two seconds ago, beside {PROCESSES} processes with {MAPS} maps each",
                     "without them")
        report.ratio("10 changed", *zip(*pairs), limit=BOUND)


def refreshed(report, files):
    """A tracked file is written anew with the same content, so that `git status` writes its new stat into the index."""
    with scratch() as home:
        session = Session(report.ic, home, files)
        project = session.project
        index, paths = os.path.join(project.root, ".git", "index"), iter(project.paths[1:])
        # As in most sessions, the tree is not clean: then a capture need not ask git whether the touched files differ.
        with open(project.paths[0], "a") as out:
            out.write("changed long ago\n")

        def begin(is_asked):
            os.utime(next(paths))
            if is_asked:
                before = os.stat(index).st_ino
                once(["git", "status", "--porcelain"], cwd=project.root)
                assert os.stat(index).st_ino != before, "the index was refreshed"

        def prompt(is_asked):
            begin(is_asked)
            session.number += 1
            seconds = session.hook("UserPromptSubmit", prompt=f"prompt {session.number}", prompt_id=f"p-{session.number}")
            session.hook("Stop")
            return seconds

        def create(is_asked):
            begin(is_asked)
            return project.ic("checkpoint", "create").seconds

        report.begin(f"{files:,} files right after git status", "without it")
        for name, act in (("a prompt", prompt), ("a checkpoint", create)):
            for _ in range(3):
                act(True)
            time.sleep(2.2)
            act(False)
            pairs = [(act(True), act(False)) for _ in range(5 if report.quick else 31)]
            report.ratio(name, *zip(*pairs), limit=BOUND)


def bench(report):
    maps(report, 1_000)
    refreshed(report, 1_000 if report.quick else 10_000)
