#!/usr/bin/env bash
# Makes the pictures of docs/UI.md anew: of a small project with a story, in headless Chromium.
#
#     scripts/screenshots.sh
#
# IC=PROGRAM shows that one, else it is built.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/ui/tools.sh
source scripts/ui/tools.sh
tools_for_the_page || { printf 'scripts/screenshots.sh: %s\n' "$missing" >&2; exit 3; }
program=${IC:-}
if [[ -z $program ]]; then
    cargo build --package ic --locked --quiet
    program=$target/debug/ic
fi
program=$(realpath -- "$program")
served=
work=$(mktemp -d)
finish() {
    [[ -z $served ]] || kill "$served" 2>/dev/null || :
    rm -rf -- "$work"
}
trap finish EXIT

run=$(scripts/ui/story.sh "$program" "$work/story")
export HOME=$work/story
(cd -- "$work/story/shop" && exec "$program" ui --json) >"$work/address" &
served=$!
for _ in $(seq 100); do
    [[ -s $work/address ]] && break
    sleep 0.1
done
mkdir -p docs/images
CHROMIUM=$chromium node scripts/ui/pictures.mjs "$room" "$(jq -r .url "$work/address")" "$run" docs/images
