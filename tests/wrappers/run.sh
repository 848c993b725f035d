#!/usr/bin/env bash
# Tests of scripts/lib-intercore.sh, on real repositories with the real program:
#
#     IC_BIN=target/debug/ic bash tests/wrappers/run.sh [PATTERN]
#
# Every function test_* of every *_test.sh runs twice, in a directory of its own: called by a shell
# under `set -euo pipefail` (strict) and by one without (plain). PATTERN selects names by a glob.
set -u

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit
pattern=${1:-*}

for program in git jq; do
    if ! command -v "$program" >/dev/null; then
        printf 'tests/wrappers/run.sh needs %s\n' "$program" >&2
        exit 3
    fi
done
if [[ -z ${IC_BIN:-} || ! -x $IC_BIN ]]; then
    printf 'IC_BIN must name the ic program: IC_BIN=target/debug/ic bash %s\n' "$0" >&2
    exit 3
fi
IC_BIN=$(cd -- "$(dirname -- "$IC_BIN")" && pwd)/$(basename -- "$IC_BIN") || exit

scratch=$(mktemp -d) || exit
trap 'rm -rf -- "$scratch"' EXIT

passed=0
failed=0

# attempt FILE TEST MODE: run one test in a directory of its own; its output goes to MODE.log.
attempt() {
    local file=$1 test=$2 mode=$3
    mkdir -- "$scratch/$mode" || exit
    (
        set -eu
        # shellcheck source=tests/wrappers/support.sh
        source "$here/support.sh"
        # shellcheck disable=SC1090
        source "$file"
        enter "$scratch/$mode" "$mode"
        "$test"
    ) >"$scratch/$mode.log" 2>&1
}

# report STATUS FILE TEST MODE: print the test's line, with its output if it failed.
report() {
    local status=$1 title
    title="$(basename -- "$2" _test.sh): ${3#test_} ($4)"
    if [[ $status -eq 0 ]]; then
        passed=$((passed + 1))
        printf 'ok      %s\n' "$title"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s\n' "$title"
        sed 's/^/        /' "$scratch/$4.log"
    fi
    rm -rf -- "${scratch:?}/$4" "$scratch/$4.log"
}

for file in "$here"/*_test.sh; do
    # In the order in which they are written.
    while IFS= read -r test; do
        # shellcheck disable=SC2053
        [[ $test == $pattern ]] || continue
        # Both at once. Not within `if` or `||`: that would switch off the test's own `set -e`.
        attempt "$file" "$test" strict &
        strict=$!
        attempt "$file" "$test" plain &
        plain=$!
        wait "$strict"
        report "$?" "$file" "$test" strict
        wait "$plain"
        report "$?" "$file" "$test" plain
    done < <(sed -n 's/^\(test_[a-z0-9_]*\)() {$/\1/p' "$file")
done

printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
