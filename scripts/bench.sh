#!/usr/bin/env bash
# Benchmarks of whole processes, as ratios in one run: against the sqlite3 shell doing the same on the same file, against
# git doing the same on the same tree, and against plain commands. Prints one table; exits 1 if a bound is missed.
#
#     scripts/bench.sh [PART...] [--quick] [--write]
#
# PART is kernel, checkpoint, workflow, rewind, rollback, undo or hooks; without one, all of them (ten minutes to half an
# hour). --quick takes small sizes and holds nothing to its bound. --write renews what was measured of docs/BENCHMARKS.md and its plots.
# IC_BIN names a binary to measure instead of a release build. Needs cargo, git, the sqlite3 shell and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in cargo cc git sqlite3 python3; do
    command -v "$tool" >/dev/null || { echo "bench.sh needs $tool" >&2; exit 3; }
done
if [ -z "${IC_BIN:-}" ]; then
    cargo build --release --locked -p ic --quiet
    IC_BIN=${CARGO_TARGET_DIR:-$PWD/target}/release/ic
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 scripts/bench/main.py "$IC_BIN" "$@"
