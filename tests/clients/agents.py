"""Three coding agents for scripts/demo-agents.sh, with scripted models: writes ROOM/agents.sh, and serves the models until it is ended.

    agents.py CLIENTS ROOM

CLIENTS is where scripts/test-clients.sh has installed them. Agent N writes its own greeting when it gets the prompt "@@N".
"""

import os
import pathlib
import shlex
import shutil
import sys
import threading

from story import Story

WHO = ["claude-code", "opencode", "copilot"]


class Agent(Story):
    def __init__(self, number, client, clients, room):
        self.number = number
        super().__init__(client, sys.executable, clients)
        shutil.rmtree(self.home)
        # The person has one home directory, and the project is that of the demonstration.
        self.home = room / "home"
        self.project = room / "shop"

    def scenes(self):
        n = self.number
        return {f"a{n}": [f"echo 'greeting {n}' > greeting.txt", f"echo 'by {n}' > by-{n}.txt"]}

    def words(self):
        own = {key: value for key, value in self.environment().items() if key not in ("PATH", "HOME")}
        settings = [f"{key}={value}" for key, value in own.items()]
        command = [str(word) for word in self.command(f"@@a{self.number} greet", True)]
        # A fork is no directory that the person has said to be trusted.
        command += ["--allowedTools", "Bash"] if self.client == "claude-code" else []
        return ["env", *settings, *command]


def main():
    clients, room = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    agents = [Agent(number, client, clients, room) for number, client in enumerate(WHO, 1)]
    for agent in agents:
        agent.client_settings()
    lines = ["agent() {", "    case $1 in"]
    lines += [f"    {agent.number}) agent=({' '.join(map(shlex.quote, agent.words()))}) ;;" for agent in agents]
    lines += ["    esac", "}"]
    (room / "agents.new").write_text("\n".join(lines) + "\n")
    os.replace(room / "agents.new", room / "agents.sh")
    threading.Event().wait()


main()
