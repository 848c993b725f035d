#!/usr/bin/env bash
# Benchmarks of whole processes, as ratios in one run: against the sqlite3 shell doing the same on the same file, against
# a shadow git doing the same on the same tree, and against plain commands.
# Usage: scripts/bench.sh [kernel|checkpoint|workflow|rewind] [--quick]     prints tables. Needs cargo, git, the sqlite3 shell and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in cargo cc git sqlite3 python3; do
    command -v "$tool" >/dev/null || { echo "bench.sh needs $tool" >&2; exit 3; }
done
if [ -z "${IC_BIN:-}" ]; then
    cargo build --release --locked -p ic --quiet
    IC_BIN=$PWD/target/release/ic
fi
case "${1:-}" in
kernel | checkpoint | workflow | rewind)
    part=$1
    shift
    exec python3 "scripts/bench/$part.py" "$IC_BIN" "$@"
    ;;
esac
python3 scripts/bench/kernel.py "$IC_BIN" "$@"
python3 scripts/bench/checkpoint.py "$IC_BIN" "$@"
python3 scripts/bench/workflow.py "$IC_BIN" "$@"
python3 scripts/bench/rewind.py "$IC_BIN" "$@"
