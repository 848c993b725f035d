#!/usr/bin/env bash
# Makes the pictures of docs/UI.md again, from a small project with a story, in headless Chromium.
#
#     scripts/screenshots.sh
#
# IC=PROGRAM uses that program; otherwise ic is built.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/ui/tools.sh
source scripts/ui/tools.sh
tools_for_the_page || { printf 'scripts/screenshots.sh: %s\n' "$missing" >&2; exit 3; }
page_of_the_story
export HOME=$home
serve_the_page
mkdir -p docs/images
CHROMIUM=$chromium node scripts/ui/pictures.mjs "$room" "$address" "$run" docs/images
