#!/usr/bin/env bash
# All tests:
#
#     scripts/test.sh [--server | --portable | --no-doc] [--long] [ARG...]
#
# --server runs tests of whole projects with their ledgers on a private PostgreSQL server instead of in a file, through PgBouncer if that
# is installed: a part of the tests, or with --long all except those of tests/sqlite_only.txt, in four ways.
# --portable runs tests of files, crashes and processes without what only Linux has, as on other systems; with --long all tests.
# --no-doc leaves out the examples in documentation.
# --long runs the campaigns (crashes, kills, damage, crowds, properties) at length and continues after a failure: before every
# statement instead of every few, and random tests for 40 seconds each (IC_TEST_SECONDS=N: for N seconds). That takes about half an
# hour on 2 cores after the build. At the end it prints the figures of each campaign, and the seed that it chose for all of them;
# IC_TEST_SEED=N repeats the random choices.
# ARG... go to the test runner: cargo-nextest if it is installed, otherwise cargo test. NEXTEST_TEST_THREADS says how many tests run at once.
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

# Two tests for each core: they wait half of their time for flushes, locks and child processes.
export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) * 2))}"
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$NEXTEST_TEST_THREADS}"

# Stops the server, and shows the figures.
at_end() {
    if [[ -n ${server_directory:-} ]]; then
        bash scripts/postgres.sh stop "$server_directory/server" immediate || true
        rm -rf -- "$server_directory"
    fi
    if [[ -n ${IC_TEST_FIGURES:-} && -e ${IC_TEST_FIGURES:-} ]]; then
        end_of_campaigns
    fi
}
trap at_end EXIT

# The figures of each campaign, and how to repeat them.
end_of_campaigns() {
    printf '\nscripts/test.sh: what the campaigns came to:\n\n' >&2
    LC_ALL=C sort -- "$IC_TEST_FIGURES" | expand -t 110 >&2
    rm -f -- "$IC_TEST_FIGURES"
    printf '\nscripts/test.sh: they are repeated by IC_TEST_SEED=%s\n' "$IC_TEST_SEED" >&2
}

server=
if [[ ${1:-} == --server ]]; then
    shift
    server=1
fi

portable=
if [[ ${1:-} == --portable ]]; then
    shift
    portable=1
fi

with_doc=1
if [[ ${1:-} == --no-doc ]]; then
    shift
    with_doc=
fi

go_on=()
if [[ ${1:-} == --long ]]; then
    shift
    go_on=(--no-fail-fast)
    IC_TEST_SEED=${IC_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    export IC_TEST_LONG=1 IC_TEST_SEED PROPTEST_CASES="${PROPTEST_CASES:-5000}"
    IC_TEST_FIGURES=$(mktemp)
    export IC_TEST_FIGURES
fi
if [[ -n ${IC_TEST_SEED:-} ]]; then
    # proptest uses the same seed.
    export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-$IC_TEST_SEED}"
fi

# The tests whose ledgers can be on a server, in the words of the test runner.
of_server() {
    local binary path all
    # Every verb and its output, the promises for consumers, and crowds.
    all='(package(ic) & (binary(=cli) & test(/^(verbs|consumers|cursors|gates|late|redaction)::/)'
    all+=' | binary(=concurrency)))'
    if [[ -n ${IC_TEST_LONG:-} ]]; then
        all='(package(ic) & kind(test) - binary(=server))'
    fi
    while read -r binary path; do
        case $path in
            '*') all+=" - binary(=$binary)" ;;
            *'*') all+=" - (binary(=$binary) & test(/^${path%\*}/))" ;;
            *) all+=" - (binary(=$binary) & test(=$path))" ;;
        esac
    done < <(grep -vE '^(#|\[|$)' tests/sqlite_only.txt)
    printf '%s' "$all"
}

# Runs them with their ledgers on a private server, through the pooler. Each write transaction is made twice; the first is discarded, as after a
# conflict with another one. With --long also directly; as a role that can neither delete nor change tables; and serializable, with
# conflicting transactions.
on_a_server() {
    local direct pooled failed=0
    server_directory=$(mktemp -d)
    # If root runs this script, the server runs as another user, who must be able to enter the directory.
    chmod 711 "$server_directory"
    direct=$(bash scripts/postgres.sh start "$server_directory/server")
    if ! pooled=$(bash scripts/postgres.sh pool "$server_directory/server"); then
        printf 'scripts/test.sh: directly, without a pooler\n' >&2
        pooled=$direct
    fi
    if [[ -n ${IC_TEST_LONG:-} ]]; then
        psql "$direct" -qXc 'CREATE ROLE daily LOGIN; ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO daily;
            ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE ON TABLES TO daily'
        leg 'directly' IC_TEST_SERVER="$direct" IC_TEST_RERUN=1 -- "$@"
        leg 'as the daily role' IC_TEST_SERVER="$direct" IC_TEST_DAILY=daily -- "$@"
        leg 'serializable' IC_TEST_SERVER="$direct" IC_TEST_SERIALIZABLE=1 -- "$@"
    fi
    leg 'through a pooler' IC_TEST_SERVER="$pooled" IC_TEST_RERUN=1 -- "$@"
    return "$failed"
}

# leg NAME VARIABLE=VALUE... -- ARG...
leg() {
    local -a settings=()
    printf '\nscripts/test.sh: %s\n' "$1" >&2
    shift
    while [[ $1 != -- ]]; do
        settings+=("$1")
        shift
    done
    shift
    # With --long the other ways are tested even after a failure.
    env "${settings[@]}" cargo nextest run --locked "${go_on[@]}" -E "$(of_server)" "$@" || failed=1
}

if [[ -n $server ]]; then
    command -v cargo-nextest >/dev/null || { echo 'scripts/test.sh: --server needs cargo-nextest' >&2; exit 3; }
    on_a_server "$@"
    exit
fi

if [[ -n $portable ]]; then
    command -v cargo-nextest >/dev/null || { echo 'scripts/test.sh: --portable needs cargo-nextest' >&2; exit 3; }
    packages=(-p ic-sys -p ic-dispatch -p ic-effects -p ic-checkpoint)
    [[ -z ${IC_TEST_LONG:-} ]] || packages=(--workspace)
    # Without /proc, each start asks ps, which takes longer than this test allows.
    cargo nextest run "${packages[@]}" --features ic-sys/portable --locked "${go_on[@]}" \
        -E 'not test(=child::tests::start::starting_costs_a_few_milliseconds)' "$@"
    exit
fi

if command -v cargo-nextest >/dev/null; then
    # nextest does not run doctests. They run first, so that the summary of nextest is at the end of the output.
    [[ -z $with_doc ]] || cargo test --workspace --doc --locked
    cargo nextest run --workspace --locked "${go_on[@]}" "$@"
else
    # cargo test runs the examples in documentation, too.
    cargo test --workspace --locked "${go_on[@]}" "$@"
fi
