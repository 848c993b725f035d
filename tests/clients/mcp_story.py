#!/usr/bin/env python3
"""Our server, called by a real coding agent: it is installed, its tools are called in two steps, and it is uninstalled.

    mcp_story.py CLIENT ROOM IC        CLIENT and ROOM as for story.py, which puts the packages there
"""

import json
import pathlib
import re

from story import NAMES, Story, check, told


class Calls(Story):
    def scenes(self):
        def name(tool):
            return NAMES[self.client].format(tool)

        def approved():
            found = re.search(r'expect_plan[\\": ]+([0-9a-f]{64})', self.model.asked[-1])
            return found and (name("undo"), {"expect_plan": found[1]})

        # Claude Code loads the tools of servers when they are looked for.
        search = [("ToolSearch", {"query": "select:" + ",".join(map(name, ("status", "undo"))), "max_results": 5})]
        calls = [(name("status"), {}), (name("undo"), {}), approved]
        return {"take": (search if self.client == "claude-code" else []) + calls}

    def command(self, prompt, is_first):
        more = ["--allowedTools", "mcp__ic"] if self.client == "claude-code" else []
        return [*super().command(prompt, is_first), *more]

    def tell(self):
        self.set_up()
        if self.client == "opencode":
            # It adds its schema to a file that has none.
            (self.project / "opencode.json").write_text('{"$schema": "https://opencode.ai/config.json"}\n')
        self.ic("init")
        run = self.ic("run", "create", "--goal", "a shop")
        work = self.ic("dispatch", "create", run.strip(), "--name", "spoil")
        self.ic("dispatch", "start", work.strip())
        (self.project / "bad.txt").write_text("bad\n")
        self.ic("dispatch", "complete", work.strip())
        planned = self.ic("install", self.client, "--dry-run")
        settings, hooks = (pathlib.Path(planned[part]["config_file"]) for part in ("mcp", "hooks"))
        before, without_hooks = (file.read_bytes() if file.exists() else None for file in (settings, hooks))
        self.ic("install", self.client)
        # By its hooks, the session would be what status and undo mean. Here its model works on another run.
        with_hooks = hooks.read_bytes()
        if hooks == settings:
            told = json.loads(with_hooks)
            del told["hooks"]
            without_hooks = json.dumps(told).encode()
        if without_hooks is None:
            hooks.unlink()
        else:
            hooks.write_bytes(without_hooks)

        self.prompt("@@take it back", is_first=True)
        told = [text for text in self.model.asked if "a shop" in text]
        check("the real client called status, and its model read the answer", told, self.model.asked[-1][-1500:])
        check("undo answered a plan with its hash, and changed nothing", any("To carry out exactly this plan" in text for text in self.model.asked), self.model.asked[-1][-1500:])
        check("called with the hash, it was carried out", not (self.project / "bad.txt").exists(), self.model.asked[-1][-1500:])
        kinds = [one["kind"] for one in self.ic("log")]
        check("and is recorded", "rollback" in kinds, kinds)

        hooks.write_bytes(with_hooks)
        self.ic("uninstall", self.client)
        left = settings.read_bytes() if settings.exists() else None
        check("uninstalled, the settings are byte for byte as before", left == before, left)


if __name__ == "__main__":
    told(Calls, __file__)
