#!/usr/bin/env python3
"""One story, told to a real coding agent: prompts are recorded, undone and refused.

    story.py CLIENT ROOM --install      puts the client's packages into the directory ROOM, where they are kept
    story.py CLIENT ROOM --validate     lets the client look at our plugin for it, if it can
    story.py CLIENT ROOM IC             tells the story with the program IC

CLIENT: one of PACKAGES; `story.py --clients` lists them. The story runs in a network of its own, if the machine allows it: nothing but loopback is there.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from model import Model  # noqa: E402

PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "copilot": "@github/copilot@1.0.102",
    "opencode": "opencode-ai@1.18.33",
}
TOOLS = {
    "claude-code": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    "copilot": ("bash", "command"),
    "opencode": ("bash", "command"),
}
# What each calls the tool of our MCP server that we call NAME. What stands before a slash is a namespace.
NAMES = {
    "claude-code": "mcp__ic__{}",
    "codex": "mcp__ic/{}",
    "gemini": "mcp_ic_{}",
    "copilot": "ic-{}",
    "opencode": "ic_{}",
}
SETTINGS = {
    "claude-code": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "copilot": ".github/hooks/ic.json",
    "opencode": ".opencode/plugins/ic.js",
}
# How each begins a subagent that plays the scene "sub"; Gemini reports none.
SUBAGENTS = {
    "claude-code": ("Agent", {"description": "sub", "prompt": "@@sub please", "subagent_type": "general-purpose"}),
    "codex": ("multi_agent_v1/spawn_agent", {"message": "@@sub please"}),
    "copilot": ("task", {"agent_type": "general-purpose", "description": "sub", "name": "sub", "prompt": "@@sub please"}),
    "opencode": ("task", {"description": "sub", "prompt": "@@sub please", "subagent_type": "general"}),
}
# Its hooks cannot keep an agent from stopping.
UNSTOPPABLE = ("opencode",)
# Those whose models read nothing with a prompt: the first call after an undo is refused once.
DEAF = ("copilot", "opencode")
# What a person has in the settings before ic comes, on lines that no program would write so.
BEFORE = {
    "claude-code": '{ "permissions": {"allow": ["Bash"]},\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]} }\n',
    "codex": None,
    "copilot": None,
    "opencode": None,
    "gemini": '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false},\n'
    ' "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}\n',
}
CODEX = """model = "m"
model_provider = "story"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.story]
name = "story"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "STORY_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[projects."{project}"]
trust_level = "trusted"
"""
OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": "story/m",
    "small_model": "story/m",
    "permission": {"edit": "allow", "bash": "allow"},
}


def check(name, holds, found=""):
    if not holds:
        sys.exit(f"  {name}: NOT SO: {found}")
    print(f"  {name}")


class Story:
    def __init__(self, client, program, room):
        self.client, self.program = client, str(pathlib.Path(program).resolve())
        self.room = pathlib.Path(room)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="ic-client-"))
        self.project = self.home / "shop"
        self.project.mkdir()
        self.turns = {"one": threading.Event(), "two": threading.Event()}
        self.model = Model(self.scenes(), *TOOLS[client])

    def scenes(self):
        def undone():
            # A person, in another terminal, while the agent waits for its model.
            self.ic("undo", "--reason", "the wrong file", "--yes")
            return "echo worse > worse.txt"

        return {
            "build": ["echo 1 > login.txt", "rm README.md", "git commit -qam login"],
            "spoil": ["echo bad > bad.txt", undone],
            "reach": ["rm secrets/.env"],
            "ask": ["echo own > own.txt", SUBAGENTS.get(self.client), self.after("sub.txt")],
            "sub": ["echo sub > sub.txt"],
            **{name: [f"echo {name} > {name}.txt"] for name in ("first", "second", "third", "other")},
            "gated": ["echo work > work.txt", self.what_the_gate_names],
            "more": ["echo more > more.txt"] * (2 if self.client in DEAF else 1),
            # They take turns: each goes on when the client of the other one has told of its call's end.
            "one": ["sed -i s/first/FIRST/ both.txt", self.turn("one", "two", "touch of-one.txt")],
            "two": [self.turn(None, "one", "sed -i s/last/LAST/ both.txt; touch of-two.txt"), self.turn("two", None, None)],
        }

    def turn(self, done, awaited, line):
        def step():
            if done:
                self.turns[done].set()
            if awaited:
                self.turns[awaited].wait(60)
            return line

        return step

    def after(self, name):
        """The agent goes on when a file is there: a subagent may work in the background."""

        def step():
            deadline = time.monotonic() + 30
            while not (self.project / name).exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            return "sleep 1"

        return step

    def what_the_gate_names(self):
        """The agent stops; when it is kept from that, it does what it was told."""
        told = re.search(r"ic (run artifact add \w+ --path) FILE ([\w -]+)", self.model.asked[-1])
        return told and f"{self.program} {told[1]} work.txt {told[2]}"

    def text(self, name):
        return (self.project / name).read_text()

    def ic(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.project, capture_output=True, text=True, env=self.environment())
        if done.returncode != 0:
            sys.exit(f"  ic {' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout

    def git(self, *words):
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        return subprocess.run(["git", *who, *words], cwd=self.project, check=True, capture_output=True, text=True).stdout

    def environment(self):
        port = self.model.port
        # ic calls OpenCode itself, to copy a conversation.
        own = pathlib.Path(programs(self.client, self.room)[-1]).parent
        plain = {"PATH": f"{os.environ['PATH']}:{own}", "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm"}
        plain |= {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))}
        return plain | {
            "claude-code": {
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            },
            "codex": {"STORY_KEY": "none"},
            "gemini": {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}"},
            "copilot": {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{port}/v1",
                "COPILOT_PROVIDER_API_KEY": "none",
                "COPILOT_MODEL": "gpt-5.1",
                "COPILOT_AUTO_UPDATE": "false",
            },
            "opencode": {
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                # Without one it waits for the real registry.
                "npm_config_registry": f"http://127.0.0.1:{port}/",
            },
        }[self.client]

    def command(self, prompt, is_first):
        again = [] if is_first else ["--continue"]
        words = {
            "claude-code": [*again, "-p", prompt],
            "codex": ["exec", *([] if is_first else ["resume", "--last"]), "--dangerously-bypass-hook-trust", prompt],
            "gemini": [*([] if is_first or not self.is_resumed else ["--resume", "latest"]), "--yolo", "-m", "gemini-2.5-pro", "-p", prompt],
            "copilot": [*again, "--allow-all-tools", "--allow-all-paths", "-p", prompt],
            "opencode": ["run", *again, prompt],
        }[self.client]
        return [*programs(self.client, self.room), *words]

    # Whether later prompts of Gemini are of the session before; elsewhere in the story each is one of its own.
    is_resumed = False

    def prompt(self, text, is_first=False, **more):
        command = [str(word) for word in self.command(text, is_first)]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment() | more, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90
        )
        if done.returncode != 0:
            sys.exit(f"  {text}: the client ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")

    def client_settings(self):
        """What the client needs in the home directory to start without a question, with the scripted model."""
        (self.home / ".claude.json").write_text(
            json.dumps({"projects": {str(self.project): {"hasTrustDialogAccepted": True}}, "hasCompletedOnboarding": True})
        )
        for directory in (".codex", ".gemini", ".copilot"):
            (self.home / directory).mkdir(exist_ok=True)
        (self.home / ".copilot/config.json").write_text(json.dumps({"trustedFolders": [str(self.project)]}))
        (self.home / ".codex/config.toml").write_text(CODEX.format(port=self.model.port, project=self.project))
        (self.home / ".gemini/trustedFolders.json").write_text(json.dumps({str(self.project): "TRUST_FOLDER"}))
        if self.client == "opencode":
            options = {"baseURL": f"http://127.0.0.1:{self.model.port}/v1", "apiKey": "none"}
            models = {"m": {"name": "m", "tool_call": True, "limit": {"context": 100000, "output": 4000}}}
            provider = {"npm": "@ai-sdk/openai-compatible", "name": "story", "options": options, "models": models}
            (self.home / ".config/opencode").mkdir(parents=True)
            (self.home / ".config/opencode/opencode.json").write_text(json.dumps(OPENCODE | {"provider": {"story": provider}}))

    def set_up(self):
        self.client_settings()
        (self.home / ".config/ic").mkdir(parents=True)
        (self.home / ".config/ic/config.yaml").write_text("hooks: {guard: deny, gate: true}\n")
        self.git("init", "-q")
        (self.project / ".gitignore").write_text(".env\n.claude/\n.codex/\n.gemini/\n.github/\n.opencode/\n")
        (self.project / "README.md").write_text("read me\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")
        settings = self.project / SETTINGS[self.client]
        if BEFORE[self.client] is not None:
            settings.parent.mkdir()
            settings.write_text(BEFORE[self.client])
        return settings

    def files(self):
        here = [path for path in self.project.iterdir() if path.is_file()]
        return {path.name: path.read_bytes() for path in here}

    def together(self):
        """Two agents at the same time in one tree, which change the same file; one of them is undone."""
        (self.project / "both.txt").write_text("first\n" + "between\n" * 8 + "last\n")
        ended = []

        def work(name):
            # What ends a thread would end in silence: neither would be missed until its change is.
            try:
                self.prompt(f"@@{name}", True)
            except (SystemExit, subprocess.TimeoutExpired) as end:
                ended.append(str(end))

        agents = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
        for agent in agents:
            agent.start()
        for agent in agents:
            agent.join()
        check("two of them worked at the same time", not ended, ended)
        blamed = self.ic("blame", "both.txt")["changes"]
        who = [[work["name"] for work in change["dispatches"]] for change in blamed[:2]]
        check("each change is told by the prompt whose call made it", who == [["@@two"], ["@@one"]], blamed)
        check("and by what was called", ["sed" in change["calls"][0]["line"] for change in blamed[:2]] == [True, True], blamed)
        one = blamed[1]["dispatches"][0]
        undone = self.ic("undo", "--only", one["id"], "--yes")
        check("the undo of one shares nothing with the other", not undone["files"]["skipped"], undone["files"])
        kept = "first\n" + "between\n" * 8 + "LAST\n"
        files = (self.text("both.txt"), (self.project / "of-one.txt").exists(), (self.project / "of-two.txt").exists())
        check("what the other one changed in the same file stays", files == (kept, False, True), files)

    def guarded(self):
        """What no checkpoint holds is not destroyed."""
        secret = self.project / "secrets/.env"
        secret.parent.mkdir()
        secret.write_text("KEY=kept-nowhere\n")
        self.prompt("@@reach", is_first=True)
        check("a command that destroys what no checkpoint holds is refused", secret.exists())
        reasons = [asked for asked in self.model.asked if "cannot restore" in asked and "secrets/.env" in asked]
        check("and the model reads why", reasons, self.model.asked[-1][-1500:])

    def with_subagent(self):
        """The work of a subagent is its own, below its prompt's."""
        if self.client not in SUBAGENTS:
            return
        self.prompt("@@ask another agent", is_first=True)
        check("a subagent worked", (self.project / "sub.txt").exists(), self.model.asked[-1][-1500:])
        blamed = self.ic("blame", "sub.txt")["changes"][0]["dispatches"]
        own = self.ic("blame", "own.txt")["changes"][0]["dispatches"]
        parent = self.ic("dispatch", "show", blamed[0]["id"], "--json")["parent_id"]
        check("its file is its own, and its work is below the prompt's", parent == own[0]["id"], (blamed, own))
        self.ic("undo", "--only", blamed[0]["id"], "--yes")
        files = ((self.project / "sub.txt").exists(), (self.project / "own.txt").exists())
        check("undone alone, what the prompt did stays", files == (False, True), files)
        self.ic("undo", "--only", own[0]["id"], "--yes")
        check("and the prompt is undone after it", not (self.project / "own.txt").exists())

    def gated(self):
        """An agent that stops before the gate of its run passes goes on, and does what is missing."""
        if self.client in UNSTOPPABLE:
            return
        gates = json.dumps({"a→b": [{"check": "artifact_exists", "phase": "a"}]})
        run = self.ic("run", "create", "--goal", "sprint", "--phases", "a,b", "--gates", gates, "--json")["id"]
        self.prompt("@@gated", is_first=True, IC_RUN=run)
        passes = self.ic("gate", "check", run, "--json")
        check("kept from stopping, the agent satisfied the gate of its run", passes["gate_result"] == "pass", (passes, self.model.asked[-1][-1500:]))

    def continued(self):
        """The conversation goes on from before a prompt that was undone, here and in a fork, and does not know of it."""
        if self.client == "gemini":
            # Its cleanup removes sessions that were resumed in a later minute. Settings of the project are ignored files: no fork has them.
            settings = {"general": {"sessionRetention": {"enabled": False}}, "security": {"auth": {"selectedType": "gemini-api-key"}}}
            (self.home / ".gemini/settings.json").write_text(json.dumps(settings))
        self.is_resumed = True
        for number, name in enumerate(("first", "second", "third")):
            self.prompt(f"@@{name} of three", is_first=number == 0)
        second = next(one for one in self.ic("log") if "second of three" in one.get("title", ""))
        id = second["reference"].split(":")[1]
        undone = self.ic("undo", id, "--yes")
        files = [(self.project / f"{name}.txt").exists() for name in ("first", "second", "third")]
        check("the second prompt and what came after it are undone", files == [True, False, False], files)
        named = [one["command"] for one in undone["conversations"]]
        check("the report names the command that continues before it", named == [f"ic session continue {id}"], undone)
        here = self.ic("session", "continue", id, "--print", "--json")
        fork = self.ic("fork", id, "--json")
        for where, place, argv in (
            ("here", self.project, here["argv"]),
            ("in a fork", pathlib.Path(fork["path"]), fork["continuation"]["argv"]),
        ):
            asked = len(self.model.asked)
            self.goes_on(argv, place)
            said = self.model.asked[-1] if len(self.model.asked) > asked else ""
            known = [name for name in ("first", "second", "third", "other") if f"@@{name} " in said]
            check(f"continued {where}, the model knows the first prompt and the new one alone", known == ["first", "other"], (argv, known, said[-1500:]))
            check(f"and works {where}", (place / "other.txt").exists(), sorted(place.iterdir()))

    def goes_on(self, argv, place):
        """Gives one more prompt to the client, as its own command continues it, without a terminal."""
        prompt = "@@other way"
        words = {
            "claude-code": [*argv[1:], "-p", prompt],
            "codex": ["exec", *argv[1:], "--dangerously-bypass-hook-trust", prompt],
            "gemini": [*argv[1:], "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", prompt],
            "copilot": [*argv[1:], "--allow-all-tools", "--allow-all-paths", "-p", prompt],
            "opencode": ["run", *argv[1:], prompt],
        }[self.client]
        command = [str(word) for word in [*programs(self.client, self.room), *words]]
        done = subprocess.run(command, cwd=place, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        check("its own command is accepted", done.returncode == 0, (command, done.stdout[-500:], done.stderr[-1500:]))

    def tell(self):
        settings = self.set_up()
        before, base = self.files(), self.git("rev-parse", "HEAD")
        self.ic("hooks", "install", self.client)

        self.prompt("@@build a login", is_first=True)
        entry = next(one for one in self.ic("log") if one["kind"] == "prompt")
        check("a prompt is recorded with its files and its commit", "build a login" in entry["title"], entry)
        check("its commit is recorded", entry["commit_count"] == 1, entry)
        built = self.files()

        self.prompt("@@spoil it")
        check("a call after the undo was refused", not (self.project / "worse.txt").exists(), sorted(self.files()))
        check("what the prompt did is undone, and the one before stands", self.files() == built, sorted(self.files()))
        reasons = [text for text in self.model.asked if "was undone" in text and "the wrong file" in text]
        check("the model read why", reasons, self.model.asked[-1][-1500:])

        self.prompt("@@more")
        check("the next prompt works again", (self.project / "more.txt").exists(), sorted(self.files()))
        if self.client != "gemini":  # where a prompt of the same session can be given without a terminal
            told = [text for text in self.model.asked if "Since your last answer" in text]
            check("the next prompt heard of it", told, self.model.asked[-1][-1500:])

        self.ic("undo", f"prompt:{entry['reference'].split(':')[1]}", "--run", entry["run_id"], "--force", "--yes")
        # Without a terminal each prompt of Gemini is a session of its own, and what another session made stays.
        of_others = {"more.txt"} if self.client == "gemini" else set()
        left = {path: content for path, content in self.files().items() if path not in of_others}
        check("undone to before the first prompt, the tree is as it was", left == before, sorted(self.files()))
        check("but for what another session made", of_others <= set(self.files()), sorted(self.files()))
        check("and so is the branch", self.git("rev-parse", "HEAD") == base)

        self.together()
        self.guarded()
        self.with_subagent()
        self.gated()
        self.continued()

        failures = [one for one in self.ic("hooks", "doctor", self.client)[0]["failures"]]
        check("no hook failed", not failures, failures)
        self.ic("uninstall", self.client)
        left = settings.read_text() if settings.exists() else None
        check("uninstalled, the settings are byte for byte as before", left == BEFORE[self.client], left)


def install(client, room):
    room.mkdir(parents=True, exist_ok=True)
    mark = room / f".{client}"
    if not mark.exists():
        words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(room), PACKAGES[client]]
        subprocess.run(words, check=True, timeout=240)
        mark.touch()


def programs(client, room):
    """The words that begin a call of the client."""
    modules = room.resolve() / "node_modules"
    return {
        "claude-code": [modules / "@anthropic-ai/claude-code-linux-x64/claude"],
        "codex": [modules / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"],
        "gemini": ["node", modules / "@google/gemini-cli/bundle/gemini.js"],
        "copilot": [modules / "@github/copilot-linux-x64/copilot"],
        "opencode": [modules / "opencode-linux-x64/bin/opencode"],
    }[client]


def validate(client, room):
    top = pathlib.Path(__file__).resolve().parents[2]
    calls = {
        "claude-code": [["plugin", "validate", "--strict", top], ["plugin", "validate", "--strict", top / "plugins/ic"]],
        "gemini": [["extensions", "validate", top / "plugins/gemini"]],
    }.get(client, [])
    for words in calls:
        with tempfile.TemporaryDirectory() as home:
            environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
            command = [str(word) for word in [*programs(client, room), *words]]
            done = subprocess.run(command, cwd=home, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        check(f"{words[-1].relative_to(top.parent)} is valid", done.returncode == 0, done.stdout + done.stderr)


def told(story, file):
    """Tells a story of the client, room and program that the command line names, without a network where that is possible."""
    client, room, program = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    if "--inside" not in sys.argv:
        inside = [sys.executable, file, *sys.argv[1:4], "--inside"]
        lonely = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            print("  (no network of its own is possible here: registries and updates are switched off)")
            lonely = []
        sys.exit(subprocess.run([*lonely, *inside]).returncode)
    one = story(client, program, room)
    try:
        one.tell()
    finally:
        shutil.rmtree(one.home, ignore_errors=True)


def main():
    if sys.argv[1:] == ["--clients"]:
        return print(*PACKAGES, sep="\n")
    client, room, program = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    if program == "--install":
        return install(client, room)
    if program == "--validate":
        return validate(client, room)
    told(Story, __file__)


if __name__ == "__main__":
    main()
