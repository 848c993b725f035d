#!/usr/bin/env bash
# A ledger on a server, end to end: starts a private PostgreSQL, and runs a sprint from two clones of a project on it.
#
#     scripts/demo-fleet.sh
#
# IC names a program to use instead of a build of this checkout. Needs cargo, git, jq, and the programs of PostgreSQL 15 or newer.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -z ${IC:-} ]]; then
    cargo build --quiet --locked --profile release-dev --manifest-path "$here/Cargo.toml" -p ic --features server
    IC=${CARGO_TARGET_DIR:-$here/target}/release-dev/ic
fi
ic() { "$IC" "$@"; }
say() { printf '\n# %s\n' "$*"; }

work=$(mktemp -d)
# If root runs this script, the server runs as another user, who must be able to enter the directory.
chmod 711 "$work"
end() {
    bash "$here/scripts/postgres.sh" stop "$work/server" immediate 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT

say "a private server"
url="$(bash "$here/scripts/postgres.sh" start "$work/server")&ledger=shop"
unset IC_DB IC_DISPATCH IC_RUN
for who in ann bob; do
    git init -q "$work/$who"
    cd "$work/$who"
    ic init --db "$url" --format text
done

say "ann begins a sprint"
cd "$work/ann"
run=$(ic run create --goal 'Add a login' --phases plan,build,review,done)
ic run artifact add "$run" --path plan.md >/dev/null
ic run advance "$run" --format text

say "bob works in it, and ann sees it"
cd "$work/bob"
dispatch=$(ic dispatch create "$run" --name 'login form')
ic dispatch start "$dispatch" >/dev/null
ic dispatch record "$dispatch" --commit abcdef1 --file src/login.rs >/dev/null
ic dispatch complete "$dispatch" --verdict pass --format text
cd "$work/ann"
ic run status "$run" --format text

say "both advance at the same time: one succeeds"
phase=$(ic run status "$run" --json | jq -r '"\(.phase)@\(.epoch)"')
(cd "$work/ann" && ic run advance "$run" --expect-phase "$phase" >"$work/1" 2>&1) &
(cd "$work/bob" && ic run advance "$run" --expect-phase "$phase" >"$work/2" 2>&1) &
wait -n || true
wait || true
[[ $(ic events tail --all --json | jq '[.[] | select(.kind == "advance")] | length') == 2 ]]
ic run status "$run" --format text

say "the record goes back, with a preview"
ic run rollback "$run" --to-phase plan --dry-run --format text
ic run rollback "$run" --to-phase plan --reason 'the plan was wrong' --format text
ic redo @ --yes --format text

say "everything beyond the record is refused"
if ic checkpoint create --format text; then exit 1; fi

say "the chain of events, and the server"
ic events verify --format text
ic health --format text
