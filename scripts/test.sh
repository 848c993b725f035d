#!/usr/bin/env bash
# All tests:
#
#     scripts/test.sh [--long] [ARG...]
#
# --long lengthens the campaigns (crashes, concurrency, properties) to many times their usual size.
# ARG... go to the test runner: cargo-nextest if it is installed, otherwise cargo test.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

missing=
for program in cargo "${CC:-cc}" git jq; do
    command -v "$program" >/dev/null || missing+=" $program"
done
if [[ -n $missing ]]; then
    printf 'scripts/test.sh: please install:%s\n' "$missing" >&2
    exit 3
fi

if [[ ${1:-} == --long ]]; then
    export IC_TEST_LONG=1
    shift
fi

if command -v cargo-nextest >/dev/null; then
    # nextest knows no doctests. They come first, so that its summary is the last thing to be read.
    cargo test --workspace --doc --locked
    exec cargo nextest run --workspace --locked "$@"
fi
exec cargo test --workspace --locked "$@"
