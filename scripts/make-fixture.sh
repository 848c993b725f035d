#!/usr/bin/env bash
# The stores of one version of ic, for the tests of compatibility:
#
#     scripts/make-fixture.sh IC DIRECTORY
#     scripts/make-fixture.sh target/debug/ic tests/compat/fixtures/schema-11
#
# IC is a debug build of the version, of the tests (cargo test -p ic --no-run): it aborts where it is told to. In a git repository
# of its own it leads a small life that touches every verb, and begins every operation that can be interrupted once for each
# moment at which its ledger commits, to be aborted just after it. DIRECTORY/stores.tar.zst then holds
#
#     life/                  a project whose ledger has something of everything
#     life/trees/ID/         the trees that its checkpoints must restore
#     life/answers/N         what the reading verbs said of it: words, exit code, output
#     OPERATION/before/      the world that an operation begins in
#     OPERATION/after/       the world after it, when nothing interrupts it
#     OPERATION/NN/          the world that it left when it was aborted
#     about.json             the schema, the version, and the directory in which all this was made
#
# A world is a directory with project/ and outside/, where effects leave their marks. Needs git, jq, sqlite3, tar and zstd.
set -euo pipefail

if [[ $# -ne 2 ]]; then
    printf 'usage: scripts/make-fixture.sh IC DIRECTORY\n' >&2
    exit 3
fi
binary=$(realpath -- "$1")
mkdir -p -- "$2"
out=$(realpath -- "$2")
source_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# No word of a ledger is like this name by accident: whoever moves the stores replaces it.
room=$(mktemp -d /tmp/ic-made-in-XXXXXXXX)
trap 'rm -rf -- "$room"' EXIT
home=$room/home
made=$room/made
mkdir -p -- "$made"

# Nothing of the caller's settings gets in.
export HOME=$room GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@x GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@x
unset IC_DB IC_CONFIG IC_FORMAT IC_DISPATCH

# shellcheck source=scripts/fixture/world.sh
. "$source_dir/fixture/world.sh"
# shellcheck source=scripts/fixture/life.sh
. "$source_dir/fixture/life.sh"
# shellcheck source=scripts/fixture/halves.sh
. "$source_dir/fixture/halves.sh"

make_life
make_halves

ic -C "$made/life/project" version --json |
    jq --arg root "$home" '{root: $root, schema: .schema_version, version: .version}' >"$made/about.json"
# A window as wide as the archive: the worlds differ by a few pages.
tar --create --sort=name --format=posix --pax-option=delete=atime,delete=ctime --owner=0 --group=0 --numeric-owner \
    --directory="$made" . | zstd --quiet -19 --long=27 --force -o "$out/stores.tar.zst"
printf '%s: %s, %s worlds\n' "$out/stores.tar.zst" "$(du -h --apparent-size "$out/stores.tar.zst" | cut -f1)" \
    "$(find "$made" -mindepth 2 -maxdepth 3 -type d -name project | wc -l)"
