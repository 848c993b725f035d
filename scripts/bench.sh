#!/usr/bin/env bash
# Benchmarks of whole processes, as ratios against the sqlite3 shell doing the same on the same file, in one run.
# Usage: scripts/bench.sh [--quick]     prints one table. Needs cargo, the sqlite3 shell and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in cargo cc sqlite3 python3; do
    command -v "$tool" >/dev/null || { echo "bench.sh needs $tool" >&2; exit 3; }
done
if [ -z "${IC_BIN:-}" ]; then
    cargo build --release --locked -p ic --quiet
    IC_BIN=$PWD/target/release/ic
fi
exec python3 scripts/bench/kernel.py "$IC_BIN" "$@"
