#!/usr/bin/env bash
# Tests the page of `ic ui` in Chromium: views, undo and redo, with the keys alone, without a script, in both themes, narrow and wide.
# axe must find nothing.
#
#     scripts/test-ui.sh [--long]
#     scripts/test-ui.sh --install        installs what it needs, and tests nothing
#
# Chromium comes from the system's packages, playwright-core and axe-core from npm into target/ui, where pictures of all pages are left.
# Without one of them the test is skipped, and names it. --long: a browser follows for 30 minutes. IC=PROGRAM tests that program; otherwise ic
# is built.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
seconds=20
[[ ${1:-} != --long ]] || seconds=1800

skip() {
    printf 'scripts/test-ui.sh: skipped: %s\n' "$1"
    exit 0
}

for program in jq git cargo; do
    command -v "$program" >/dev/null || { printf 'scripts/test-ui.sh: please install %s\n' "$program" >&2; exit 3; }
done
# shellcheck source=scripts/ui/tools.sh
source scripts/ui/tools.sh
tools_for_the_page || skip "$missing"
[[ ${1:-} != --install ]] || exit 0

page_of_the_story
# Work that an undo of the newest point removes.
export HOME=$home GIT_CONFIG_GLOBAL=/dev/null
last=$(cd -- "$project" && "$program" dispatch create "$run" --name 'The last thing')
(cd -- "$project" && "$program" dispatch start "$last" && printf 'late\n' >late.txt && "$program" dispatch complete "$last") >/dev/null
serve_the_page
IC=$program CHROMIUM=$chromium SECONDS_TO_FOLLOW=$seconds \
    node scripts/ui/browser.mjs "$room" "$address" "$project" "$run" "$room/pictures"
