"""Workflow benchmarks: what the executor adds to the commands of its steps, and what planning costs.

Both sides run in turn. Reported: medians of whole processes in seconds.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

IC = os.path.abspath(sys.argv[1])
QUICK = "--quick" in sys.argv
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
missed = []


def seconds(command, directory):
    started = time.perf_counter()
    done = subprocess.run(command, env=ENV, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed: {done.stderr.decode()}")
    return time.perf_counter() - started


def report(name, figure, unit, limit):
    verdict = "" if QUICK else ("ok" if figure <= limit else "OVER")
    if verdict == "OVER":
        missed.append(name)
    print(f"{name:<52} {figure:8.2f} {unit}   <= {limit} {unit} {verdict}", flush=True)


def workflow(steps):
    lines = ["name: bench", "steps:"]
    for i in range(steps):
        needs = f"\n    needs: [s{i - 1}]" if i else ""
        lines.append(f"  - id: s{i}\n    phase: work\n    run: ['true']\n    compensate: skip{needs}")
    return "\n".join(lines) + "\n"


with tempfile.TemporaryDirectory() as home:
    project = os.path.join(home, "project")
    os.mkdir(project)
    with open(os.path.join(project, ".ic.yaml"), "w") as out:
        out.write("rollback: {checkpointing: {auto: false}}\n")
    with open(os.path.join(home, "flow.yaml"), "w") as out:
        out.write(workflow(100))
    with open(os.path.join(home, "big.yaml"), "w") as out:
        out.write(workflow(1000))
    ic = [IC, "--db", os.path.join(home, "ic.db")]
    seconds([*ic, "init"], project)
    plain = "i=0; while [ $i -lt 100 ]; do env true; i=$((i+1)); done"
    rounds = 1 if QUICK else 7
    mine, theirs = zip(*[
        (seconds([*ic, "workflow", "run", f"{home}/flow.yaml", "--json"], project), seconds(["sh", "-c", plain], project))
        for _ in range(rounds)
    ])
    print("\nworkflows")
    added = (statistics.median(mine) - statistics.median(theirs)) * 1000 / 100
    report("executor, per step over the command alone, 100 steps", added, "ms", 15)
    empty = statistics.median(seconds([IC, "version"], project) for _ in range(rounds))
    planned = statistics.median(seconds([IC, "workflow", "validate", f"{home}/big.yaml", "--json"], project) for _ in range(rounds))
    report("validate and plan, 1,000 steps, over an empty call", (planned - empty) * 1000, "ms", 50)
sys.exit(f"over: {', '.join(missed)}" if missed else 0)
