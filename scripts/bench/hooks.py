"""What a coding agent waits for: the hooks of a prompt, of a tool call and of a stop."""

import json

from checkpoint import text
from common import once, scratch
from kernel import grow
from rollback import Project


class Session:
    """A git repository of so many files in which an agent works."""

    def __init__(self, ic, home, files):
        self.project = Project(ic, home, files, 0)
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


def bench(report):
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
