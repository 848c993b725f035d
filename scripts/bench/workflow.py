"""The cost of the executor beyond the commands of its steps, and the cost of planning."""

import os
import statistics

from common import in_turn, once, scratch


def definition(steps, needed=1):
    """A workflow in which every step needs the `needed` before it."""
    lines = ["name: bench", "steps:"]
    for i in range(steps):
        before = ", ".join(f"s{k}" for k in range(max(0, i - needed), i))
        needs = f"\n    needs: [{before}]" if before else ""
        lines.append(f"  - id: s{i}\n    phase: work\n    run: ['true']\n    compensate: skip{needs}")
    return "\n".join(lines) + "\n"


def bench(report):
    with scratch() as home:
        project = os.path.join(home, "project")
        os.mkdir(project)
        for name, content in [(f"{project}/.ic.yaml", "rollback: {checkpointing: {auto: false}}\n"),
                              (f"{home}/flow.yaml", definition(100)), (f"{home}/big.yaml", definition(1000)),
                              (f"{home}/dense.yaml", definition(1000, 120))]:
            with open(name, "w") as out:
                out.write(content)
        rounds = 2 if report.quick else 9

        def ic(*arguments):
            return once([report.ic, "--db", f"{home}/ic.db", *arguments], cwd=project)

        ic("init")
        report.begin("workflows", "the commands alone")
        plain = "i=0; while [ $i -lt 100 ]; do env true; i=$((i+1)); done"
        mine, theirs = in_turn(rounds, lambda _: ic("workflow", "run", f"{home}/flow.yaml", "--json"),
                               lambda _: once(["sh", "-c", plain], cwd=project))
        report.ratio("100 steps of `true`, without checkpoints", mine, theirs)
        added = statistics.median(a - b for a, b in zip(mine, theirs)) * 1000 / 100
        report.figure("added to a step", added, "ms", 15)
        # A forked process copies all page tables first, which costs 500 faults; a spawned one does not.
        report.figure("a step and its shell", ic("workflow", "run", f"{home}/flow.yaml", "--json").faults / 100, "faults", 300)
        # For the dense workflow most of the time is reading its 740 KB. A search for each need among all steps would take many times as long.
        for name, what, bound in [("big", "plan of 1,000 steps", 50), ("dense", "the same with 112,740 needs", 150)]:
            planned, empty = in_turn(rounds, lambda _: ic("workflow", "validate", f"{home}/{name}.yaml", "--json"),
                                     lambda _: once([report.ic, "version"]))
            taken = statistics.median(a - b for a, b in zip(planned, empty)) * 1000
            report.figure(f"{what}, over an empty call", taken, "ms", bound)
