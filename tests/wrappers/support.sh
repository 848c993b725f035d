# shellcheck shell=bash
# What the wrapper tests share: a room of their own, ways to call the library, expectations.
# `out`, `err` and `status` are those of the last call; `run` is the run that `new_run` made.

# shellcheck disable=SC2154  # `here` is run.sh's
lib=$here/../../scripts/lib-intercore.sh

# enter ROOM MODE: nothing of the user's settings; `ic` on PATH; a directory with an awkward name.
enter() {
    local variable
    room=$1
    mode=$2
    for variable in $(compgen -e); do
        case $variable in
        IC_BIN) ;;
        IC_* | INTERCORE_* | GIT_* | BASH_ENV | ENV) unset "$variable" ;;
        esac
    done
    export HOME=$room LC_ALL=C.UTF-8
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=Tester GIT_AUTHOR_EMAIL=tester@example.org
    export GIT_COMMITTER_NAME=Tester GIT_COMMITTER_EMAIL=tester@example.org
    mkdir "$room/bin" "$room/wörk & räume"
    ln -s "$IC_BIN" "$room/bin/ic"
    export PATH="$room/bin:$PATH"
    cd "$room/wörk & räume" || exit
}

fail() {
    printf '%s\n' "$@"
    printf -- '-- status %s, stdout:\n%s\n-- stderr:\n%s\n' "${status-}" "${out-}" "${err-}"
    exit 1
}

# capture COMMAND...: its stdout, stderr and exit status.
capture() {
    status=0
    out=$("$@" 2>"$room/stderr") || status=$?
    err=$(<"$room/stderr")
}

# caller BASH-ARG...: a bash in the mode under test.
caller() {
    if [[ $mode == strict ]]; then
        "$BASH" -euo pipefail "$@"
    else
        "$BASH" "$@"
    fi
}

# call FUNCTION [ARG...]: one function of the library, in a shell of its own.
call() {
    # shellcheck disable=SC2016
    capture caller -c 'source "$0"; "$@"' "$lib" "$@"
}

# script TEXT [ARG...]: lines of a caller that has sourced the library.
script() {
    local text=$1
    shift
    # shellcheck disable=SC2016
    capture caller -c 'source "$0"; '"$text" "$lib" "$@"
}

expect_status() {
    [[ $status -eq $1 ]] || fail "expected exit status $1"
}

# done_well: exit status 0 and nothing on stderr.
done_well() {
    expect_status 0
    [[ -z $err ]] || fail 'expected nothing on stderr'
}

# refused STATUS CODE: that exit status, and that error code in the one line of stderr.
refused() {
    expect_status "$1"
    [[ $(jq -r .error.code <<<"$err") == "$2" ]] || fail "expected the error $2"
}

expect_out() {
    [[ $out == "$1" ]] || fail "expected on stdout: $1"
}

# expect_line PATTERN: stderr is one line that fits the glob.
expect_line() {
    # shellcheck disable=SC2053
    [[ $err == $1 && $err != *$'\n'* ]] || fail "expected one line on stderr like: $1"
}

# expect_json FILTER JSON: what jq finds in stdout.
expect_json() {
    local found
    found=$(jq -c "$1" <<<"$out") || fail "stdout is not JSON that $1 fits"
    [[ $found == "$2" ]] || fail "expected $1 to be $2" "found $found"
}

# equal WHAT EXPECTED FOUND
equal() {
    [[ $2 == "$3" ]] || fail "$1: expected $2" "found $3"
}

new_repository() {
    git init -q -b main
    ic init >"$room/init"
}

# new_run [ARG...]: a run of three phases without gates, or as the arguments say.
new_run() {
    if [[ $# -eq 0 ]]; then
        set -- --phases a,b,c
    fi
    run=$(ic run create --goal 'Test the library' "$@")
}

new_dispatch() {
    dispatch=$(ic dispatch create "$run" --name worker)
    ic dispatch start "$dispatch" >"$room/started"
}

# commit MESSAGE: all that is in the tree.
commit() {
    git add -A
    git commit -q --allow-empty -m "$1"
}

status_of() {
    ic run status "$run" --json | jq -c "$1"
}
