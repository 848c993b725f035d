"""Runs the benchmarks: main.py IC [PART...] [--quick] [--write]. See scripts/bench.sh."""

import sys

import checkpoint
import kernel
import rewind
import rollback
import workflow
from common import Report
from page import write

PARTS = {"kernel": kernel, "checkpoint": checkpoint, "workflow": workflow, "rewind": rewind, "rollback": rollback}


def main():
    ic, *words = sys.argv[1:]
    flags, parts = [w for w in words if w.startswith("--")], [w for w in words if not w.startswith("--")]
    unknown = [w for w in flags if w not in ("--quick", "--write")] + [w for w in parts if w not in PARTS]
    if unknown:
        sys.exit(f"bench.sh knows the parts {', '.join(PARTS)} and the flags --quick, --write, not {' '.join(unknown)}")
    report = Report(ic, "--quick" in flags)
    for part in parts or PARTS:
        PARTS[part].bench(report)
    if "--write" in flags:
        write(report)
    if report.missed():
        sys.exit("over the bound:\n  " + "\n  ".join(report.missed()))


main()
