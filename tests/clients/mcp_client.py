#!/usr/bin/env python3
"""Our server, and the client of the Python package `mcp`: in both eras, with a person who can be asked.

    mcp_client.py IC        in a Python that has the package; nothing but loopback is needed
"""

import asyncio
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import mcp
from mcp import types

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "MCP.md"
# The rows of the guide's table of tools: a client is offered what people read of.
TOOLS = re.findall(r"^\| `(\w+)` \| `ic ", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def check(name, holds, found=""):
    if not holds:
        sys.exit(f"  {name}: NOT SO: {found}")
    print(f"  {name}")


class Project:
    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.room = tempfile.TemporaryDirectory(prefix="ic-mcp-")
        self.root = pathlib.Path(self.room.name) / "shop"
        self.root.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.room.name}
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.ic("init")
        self.run = self.ic("run", "create", "--goal", "g")

    def ic(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.root, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"  ic {' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def spoil(self):
        work = self.ic("dispatch", "create", self.run, "--name", "spoil")
        self.ic("dispatch", "start", work)
        (self.root / "bad.txt").write_text("bad\n")
        self.ic("dispatch", "complete", work)

    def server(self):
        return mcp.StdioServerParameters(command=self.program, args=["mcp"], env=self.environment, cwd=self.root)


def structured(result):
    return getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)


def is_error(result):
    found = getattr(result, "is_error", None)
    return getattr(result, "isError", None) if found is None else found


async def story(project, call, listed):
    """`call`: a tool by its name."""
    check("its tools are those of docs/MCP.md", listed == TOOLS, listed)
    status = structured(await call("status", {}))
    check("status answers what the command line answers", status["run"]["goal"] == "g", status)
    answer = await call("undo", {"dry_run": True})
    plan = structured(answer)
    check("undo answers a plan", plan, answer)
    check("a plan changes nothing", plan["dry_run"] and (project.root / "bad.txt").exists(), plan)
    wrong = await call("undo", {"expect_plan": "0" * 64})
    check("another plan is refused", is_error(wrong) and "plan_changed" in wrong.content[0].text, wrong)
    done = structured(await call("undo", {"expect_plan": plan["plan_hash"]}))
    check("that plan is carried out", done["status"] == "rolled_back" and not (project.root / "bad.txt").exists(), done)
    back = structured(await call("redo", {"dry_run": True}))
    structured(await call("redo", {"expect_plan": back["undo_plan_hash"]}))
    check("and redone", (project.root / "bad.txt").exists())


async def in_a_session(program):
    from mcp.client.stdio import stdio_client

    project = Project(program)
    project.spoil()
    asked = []

    async def person(_context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": True})

    async with stdio_client(project.server()) as (read, write):
        async with mcp.ClientSession(read, write, elicitation_callback=person) as session:
            await session.initialize()
            listed = [tool.name for tool in (await session.list_tools()).tools]
            await story(project, session.call_tool, listed)
            done = structured(await session.call_tool("undo", {}))
            check("a person who is asked says yes, and it is done", done["status"] == "rolled_back" and len(asked) == 1, (done, asked))
            check("they were shown the plan", "bad.txt" in asked[0], asked)
            resources = [str(one.uri) for one in (await session.list_resources()).resources]
            check("its resources are listed", resources == ["ic://run/@", "ic://run/@/history"], resources)
            read_back = await session.read_resource(resources[1])
            check("and read", '"stays"' in read_back.contents[0].text, read_back)
            prompt = await session.get_prompt("what-changed", {})
            check("its prompts are got", "rolled_back" in prompt.messages[0].content.text or "diff" in prompt.messages[0].content.text, prompt)


async def without_a_session(program):
    """The newer era, if this version of the package speaks it."""
    client = getattr(mcp, "Client", None)
    if client is None:
        return print("  (this version of the package has no client of the newer era)")
    from mcp.client.stdio import stdio_client

    project = Project(program)
    project.spoil()
    async with client(stdio_client(project.server())) as session:
        listed = [tool.name for tool in (await session.list_tools()).tools]
        await story(project, session.call_tool, listed)
        print(f"  (spoken: {getattr(session, 'protocol_version', 'unknown')})")


asyncio.run(in_a_session(sys.argv[1]))
asyncio.run(without_a_session(sys.argv[1]))
