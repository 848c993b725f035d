#!/usr/bin/env bash
# Benchmarks of whole processes, as ratios in one run: against the sqlite3 shell doing the same on the same file, against
# git doing the same on the same tree, and against plain commands. Prints one table; exits 1 if a bound is missed.
#
#     scripts/bench.sh [PART...] [--flush TIME] [--quick] [--write]
#
# PART is kernel, flush, checkpoint, workflow, rewind, rollback, undo, hooks, beside (the cost of other programs for a capture) or fleet
# (which needs PostgreSQL); without one, all of them (ten minutes to half an hour). --quick uses small sizes and checks no bound.
# --write updates the measured parts of docs/BENCHMARKS.md and its plots.
# --flush makes every flush of the part `flush` take this much longer (3ms), as on a laptop's disk; a server's disk answers at once.
# IC_BIN names a binary to measure instead of a release build. Needs cargo, git, the sqlite3 shell and python3.
set -euo pipefail
for word; do
    case $word in
    -h | --help)
        sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    esac
done
cd "$(dirname "$0")/.."
for tool in cargo cc git sqlite3 python3; do
    command -v "$tool" >/dev/null || { echo "bench.sh needs $tool" >&2; exit 3; }
done
if [ -z "${IC_BIN:-}" ]; then
    IC_BIN=$(bash scripts/release.sh --program)
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 scripts/bench/main.py "$IC_BIN" "$@"
