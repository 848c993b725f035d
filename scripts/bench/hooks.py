"""What a coding agent waits for: the hooks of a prompt, of a tool call and of a stop."""

import json
import os
import subprocess

from checkpoint import text
from common import once, scratch
from kernel import grow
from rollback import Project


class Session:
    """A git repository with `files` files, in which an agent works."""

    def __init__(self, ic, home, files):
        self.project = Project(ic, home, files, 0)
        # `ic log` lists prompts only if no run of a person is open.
        self.project.ic("run", "cancel", self.project.run)
        self.number = 0

    def hook(self, event, **more):
        said = {"session_id": "s-1", "cwd": self.project.root, **more}
        command = [self.project.ic_path, "hook", "claude-code", event]
        return once(command, cwd=self.project.root, stdin=json.dumps(said)).seconds

    def prompt(self):
        """One prompt that changes a file: the seconds of its hook, of a tool that reads, of one that writes, and of the stop."""
        self.number += 1
        begun = self.hook("UserPromptSubmit", prompt=f"prompt {self.number}", prompt_id=f"p-{self.number}")
        read = self.hook("PreToolUse", tool_name="Read")
        called = {"tool_name": "Bash", "tool_use_id": f"c-{self.number}", "tool_input": {"command": "make"}}
        before = self.hook("PreToolUse", **called)
        with open(self.project.rng.choice(self.project.paths), "a") as out:
            out.write(text(self.project.rng, self.project.words, 200))
        after = self.hook("PostToolUse", **called)
        return begun, read, before, after, self.hook("Stop")


    def calls(self, count, after=lambda: None):
        """One prompt with `count` calls, each of which changes a file."""
        self.number += 1
        self.hook("UserPromptSubmit", prompt=f"prompt {self.number}", prompt_id=f"p-{self.number}")
        for i in range(count):
            called = {"tool_name": "Bash", "tool_use_id": f"c-{self.number}-{i}", "tool_input": {"command": "make"}}
            self.hook("PreToolUse", **called)
            with open(self.project.rng.choice(self.project.paths), "a") as out:
                out.write(text(self.project.rng, self.project.words, 200))
            self.hook("PostToolUse", **called)
            after()
        self.hook("Stop")


def stored(path):
    """MiB in a file or directory."""
    said = subprocess.run(["du", "-sk", path], check=True, capture_output=True, text=True).stdout
    return int(said.split()[0]) / 1024


def price(report):
    """The space of a session in the store, compared with a shadow git that keeps a tree after each call."""
    prompts, calls, files = (5, 5, 200) if report.quick else (100, 10, 1_000)
    with scratch() as home:
        session = Session(report.ic, home, files)
        root, shadow = session.project.root, os.path.join(home, "shadow.git")
        env = {"GIT_DIR": shadow, "GIT_WORK_TREE": root}
        subprocess.run(["git", "init", "-q", "--bare", shadow], check=True)

        def keep():
            once(["git", "add", "-A"], cwd=root, env=env)
            once(["git", "write-tree"], cwd=root, env=env)

        keep()
        store = os.path.join(root, ".git", "ic")
        session.calls(1)
        ledger = os.path.join(store, "ic.db")
        before = [stored(path) for path in (store, ledger, shadow)]
        for _ in range(prompts):
            session.calls(calls, keep)
        report.begin(f"hooks: the price of {prompts} prompts with {calls} calls each, {files:,} files", "")
        grown = [stored(path) - was for path, was in zip((store, ledger, shadow), before)]
        for name, size in zip(("the store", "of it the ledger", "a shadow git, without gc"), grown):
            report.figure(name, size, "MiB")


def long_log(report):
    """`ic log` over many prompts. Of the 20 calls of each, 19 are copies that only the ledger has."""
    prompts = 50 if report.quick else 1_000
    with scratch() as home:
        session = Session(report.ic, home, 100)
        for _ in range(prompts):
            session.calls(1)
        columns = "dispatch_id, session_id, agent_id, agent_type, tool, line, paths, began_seq, ended_seq, created_at, finished_at"
        sql = f"""WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 19)
INSERT INTO calls (id, call_id, {columns}) SELECT id || '-' || i, call_id || '-' || i, {columns} FROM calls, n;"""
        subprocess.run(["sqlite3", session.project.ledger], input=sql, text=True, check=True)
        log = [once([report.ic, "log", "--json"], cwd=session.project.root) for _ in range(9)]
        shown = len(json.loads(log[0].out))
        report.begin(f"hooks: {prompts:,} prompts, {20 * prompts:,} calls", "")
        report.time(f"ic log, which shows {shown}", [one.seconds for one in log], 0.020)
        shows = [once([report.ic, "show", "@", "-p"], cwd=session.project.root).seconds for _ in range(9)]
        report.time("ic show @ -p", shows, 0.030)
        both = [[once([report.ic, verb, "--yes"], cwd=session.project.root).seconds for verb in ("undo", "redo")] for _ in range(5)]
        for name, seconds in zip(("ic undo of the last prompt", "its redo"), zip(*both)):
            report.time(name, list(seconds))


def bench(report):
    price(report)
    long_log(report)
    prompts, runs = (10, 1_000) if report.quick else (100, 100_000)
    for files, limit in ((1_000, None),) if report.quick else ((10_000, 0.040), (100_000, 0.130)):
        with scratch() as home:
            session = Session(report.ic, home, files)
            grow(session.project.ledger, runs, runs)
            begun, reads, before, after, ended = zip(*[session.prompt() for _ in range(prompts)])
            report.begin(f"hooks: {files:,} files, {runs:,} runs, {prompts} prompts that change a file each", "")
            report.time("a prompt", list(begun), limit)
            report.time("a stop", list(ended), limit)
            report.time("a tool that reads", list(reads), 0.012)
            report.time("before a tool that writes", list(before), limit)
            report.time("after it, with a changed file", list(after), limit)
            log = [once([report.ic, "log", "--json"], cwd=session.project.root).seconds for _ in range(9)]
            report.time(f"ic log, {prompts} prompts", log, 0.020)
