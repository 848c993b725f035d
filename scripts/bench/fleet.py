"""A ledger on a server, against one in a file: near, at a distance, and with many writers. Skipped if PostgreSQL is missing."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

from common import ENV, in_turn, once, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
WRITERS = 8
# In seconds, of a round trip.
DISTANCE = 0.001


class Server:
    """A private PostgreSQL in `directory`."""

    def __init__(self, directory):
        self.directory, self.script = directory, os.path.join(HERE, "..", "postgres.sh")
        started = self.call("start")
        self.missing = started.stderr if started.returncode == 3 else ""
        if started.returncode not in (0, 3):
            sys.exit(f"the server does not start: {started.stderr}")
        self.socket = os.path.join(directory, "socket")

    def call(self, *words):
        # Output goes into files: the server inherits the descriptors, and a pipe would stay open as long as it runs.
        command = ["bash", self.script, words[0], self.directory, *words[1:]]
        with open(f"{self.directory}.out", "w+") as out, open(f"{self.directory}.err", "w+") as err:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            out.seek(0), err.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return done

    def pool(self, port):
        """The URL of a ledger `far` by PgBouncer on this machine, which finds the server at this port; None without it."""
        pooled = self.call("pool", "127.0.0.1", str(port))
        if pooled.returncode not in (0, 3):
            sys.exit(f"the pooler does not start: {pooled.stderr}")
        return pooled.stdout.strip() + "&ledger=far" if pooled.returncode == 0 else None

    def url(self, ledger):
        return f"postgres://ic@/postgres?host={self.socket}&ledger={ledger}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.missing:
            self.call("stop", "immediate")


class Distance:
    """A proxy to a server's socket whose round trip takes DISTANCE; `port` is its end here."""

    def __init__(self, path):
        self.path, self.listener = path, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            here, _ = self.listener.accept()
            here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.path)
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=carry, args=(a, b), daemon=True).start()


def carry(a, b):
    try:
        while data := a.recv(1 << 16):
            time.sleep(DISTANCE / 2)
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Ledger:
    """A ledger, and a run with a long chain in it."""

    def __init__(self, report, directory, name, db):
        self.ic_path, self.db, self.project = report.ic, db, os.path.join(directory, name)
        os.mkdir(self.project)
        with open(os.path.join(self.project, ".ic.yaml"), "w") as out:
            out.write("rollback: {checkpointing: {auto: false}}\n")
        self.ic("init")
        self.run = self.another()

    def ic(self, *arguments, db=None):
        return once([self.ic_path, "--db", db or self.db, *arguments], cwd=self.project)

    def another(self):
        return self.ic("run", "create", "--goal", "fleet", "--phases", ",".join(f"p{i}" for i in range(1000))).out

    def advance(self, _=0, db=None):
        return self.ic("run", "advance", self.run, "--no-checkpoint", db=db)

    def status(self, _=0, db=None):
        return self.ic("run", "status", self.run, db=db)


class Served:
    """A process of `ic mcp` in the ledger's project, as an agent has one."""

    def __init__(self, ledger, run):
        self.run = run
        self.process = subprocess.Popen([ledger.ic_path, "--db", ledger.db, "mcp"], cwd=ledger.project, env=ENV, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.say({"method": "notifications/initialized"})

    def say(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def ask(self, method, params):
        self.say({"id": 1, "method": method, "params": params})
        while "result" not in (answer := json.loads(self.process.stdout.readline())):
            if "error" in answer:
                sys.exit(f"ic mcp: {answer}")
        return answer["result"]

    def advance(self):
        answer = self.ask("tools/call", {"name": "advance", "arguments": {"run": self.run}})
        if answer.get("isError"):
            sys.exit(f"ic mcp: {answer}")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Called:
    """One process for each call."""

    def __init__(self, ledger, run):
        self.words, self.project = [ledger.ic_path, "--db", ledger.db, "run", "advance", run, "--no-checkpoint"], ledger.project

    def advance(self):
        subprocess.run(self.words, cwd=self.project, env=ENV, check=True, stdout=subprocess.DEVNULL)

    def end(self):
        pass


def crowd(ledger, kind, seconds):
    """Advances a second of WRITERS at a time, each on a run of its own."""
    writers = [kind(ledger, ledger.another()) for _ in range(WRITERS)]
    done, end = [0] * WRITERS, time.perf_counter() + seconds

    def write(at):
        # A run has a thousand phases.
        while time.perf_counter() < end and done[at] < 990:
            writers[at].advance()
            done[at] += 1

    begun = time.perf_counter()
    threads = [threading.Thread(target=write, args=(at,)) for at in range(WRITERS)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    rate = sum(done) / (time.perf_counter() - begun)
    [writer.end() for writer in writers]
    return rate


def bench(report):
    rounds = 15 if report.quick else 50
    with scratch() as directory:
        os.chmod(directory, 0o711)
        with Server(os.path.join(directory, "server")) as server:
            if server.missing:
                print(f"\nfleet: skipped: {server.missing}", flush=True)
                return
            near(report, directory, server, rounds)
            far(report, directory, server, rounds)


def near(report, directory, server, rounds):
    file = Ledger(report, directory, "file", os.path.join(directory, "file", "ic.db"))
    ledger = Ledger(report, directory, "near", server.url("near"))
    report.begin("a ledger on a server, by a socket,", "the same in a file")
    for name, verb, limit in [("run advance --no-checkpoint", "advance", 2.0), ("run status", "status", None)]:
        getattr(ledger, verb)(), getattr(file, verb)()
        report.ratio(name, *in_turn(rounds, getattr(ledger, verb), getattr(file, verb)), limit=limit)
    seconds = 2 if report.quick else 8
    for name, of in [("on the server", ledger), ("in the file", file)]:
        report.figure(f"{WRITERS} writers, each a process a call, {name}", crowd(of, Called, seconds), "a second")
    report.figure(f"{WRITERS} writers, each an ic mcp, on the server", crowd(ledger, Served, seconds), "a second", at_least=500)


def far(report, directory, server, rounds):
    distance = Distance(os.path.join(server.socket, ".s.PGSQL.5432"))
    ledger = Ledger(report, directory, "far", server.url("far"))
    direct = f"postgres://ic@127.0.0.1:{distance.port}/postgres?ledger=far"
    report.begin("a server 1 ms away", "")
    for name, verb in [("run status", "status"), ("run advance --no-checkpoint", "advance")]:
        report.time(name, [getattr(ledger, verb)(db=direct).seconds for _ in range(rounds)])
    pooled = server.pool(distance.port)
    if not pooled:
        print("through a pooler: skipped, pgbouncer is missing", flush=True)
        return
    ledger.advance(db=pooled)
    for name, verb, limit in [("run status", "status", None), ("run advance --no-checkpoint", "advance", 0.012)]:
        samples = [getattr(ledger, verb)(db=pooled).seconds for _ in range(rounds)]
        report.time(f"{name}, through a pooler", samples, limit)
