#!/usr/bin/env bash
# All tests:
#
#     scripts/test.sh [--long] [ARG...]
#
# --long runs the campaigns (crashes, kills, damage, crowds, properties) at length and goes on after a failure: before every
# statement instead of every few, and by chance for 40 seconds each (IC_TEST_SECONDS=N: for N seconds). About half an hour on 2
# cores after the build. At the end it prints what each came to, and the one seed that it chose for all of them;
# IC_TEST_SEED=N repeats what chance decided.
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

# What each campaign came to, and how to have them again.
end_of_campaigns() {
    printf '\nscripts/test.sh: what the campaigns came to:\n\n' >&2
    LC_ALL=C sort -- "$IC_TEST_FIGURES" | expand -t 110 >&2
    rm -f -- "$IC_TEST_FIGURES"
    printf '\nscripts/test.sh: they are repeated by IC_TEST_SEED=%s\n' "$IC_TEST_SEED" >&2
}

go_on=()
if [[ ${1:-} == --long ]]; then
    shift
    go_on=(--no-fail-fast)
    IC_TEST_SEED=${IC_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    export IC_TEST_LONG=1 IC_TEST_SEED PROPTEST_CASES="${PROPTEST_CASES:-5000}"
    IC_TEST_FIGURES=$(mktemp)
    export IC_TEST_FIGURES
    trap end_of_campaigns EXIT
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
