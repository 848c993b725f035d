#!/usr/bin/env bash
# All tests:
#
#     scripts/test.sh [--long] [ARG...]
#
# --long lengthens the campaigns (crashes, kills, damage, crowds, properties) to many times their usual size and goes on
# after a failure. It chooses one seed for all of them and says it; IC_TEST_SEED=N repeats what chance decided.
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

go_on=()
if [[ ${1:-} == --long ]]; then
    shift
    go_on=(--no-fail-fast)
    IC_TEST_SEED=${IC_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    export IC_TEST_LONG=1 IC_TEST_SEED PROPTEST_CASES="${PROPTEST_CASES:-5000}"
    trap 'printf "\nscripts/test.sh: these campaigns are repeated by IC_TEST_SEED=%s\n" "$IC_TEST_SEED" >&2' EXIT
fi
if [[ -n ${IC_TEST_SEED:-} ]]; then
    # What proptest makes is of the same seed.
    export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-$IC_TEST_SEED}"
fi

if command -v cargo-nextest >/dev/null; then
    # nextest knows no doctests. They come first, so that its summary is the last thing to be read.
    cargo test --workspace --doc --locked
    cargo nextest run --workspace --locked "${go_on[@]}" "$@"
else
    cargo test --workspace --locked "${go_on[@]}" "$@"
fi
