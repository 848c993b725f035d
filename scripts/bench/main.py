"""Runs the benchmarks: main.py IC [PART...] [--quick] [--write]. See scripts/bench.sh."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import beside
import checkpoint
import fleet
import flush
import hooks
import kernel
import rewind
import rollback
import undo
import workflow
from common import Report
from page import write

PARTS = {"kernel": kernel, "flush": flush, "checkpoint": checkpoint, "workflow": workflow, "rewind": rewind, "rollback": rollback,
         "undo": undo, "hooks": hooks, "beside": beside, "fleet": fleet}


def bench(part, report):
    PARTS[part].bench(report)
    return report


def main():
    ic, *words = sys.argv[1:]
    if "--flush" in words:
        at = words.index("--flush")
        flush.DELAY = flush.parse(words[at + 1:at + 2])
        words[at:at + 2] = []
    flags, parts = [w for w in words if w.startswith("--")], [w for w in words if not w.startswith("--")]
    unknown = [w for w in flags if w not in ("--quick", "--write")] + [w for w in parts if w not in PARTS]
    if unknown:
        sys.exit(f"bench.sh knows the parts {', '.join(PARTS)} and the flags --flush TIME, --quick, --write, not {' '.join(unknown)}")
    report = Report(ic, "--quick" in flags)
    report.flush = flush.DELAY
    for part in parts or PARTS:
        # Each part has its own process: the peak memory of a child includes that of its parent at the fork.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            report = pool.submit(bench, part, report).result()
    if "--write" in flags:
        write(report)
    if report.missed():
        sys.exit("over the bound:\n  " + "\n  ".join(report.missed()))


if __name__ == "__main__":
    main()
