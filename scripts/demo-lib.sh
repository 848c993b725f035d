# What the demonstrations share: a script sources it, and calls `find_ic` and then `enter_room`.
# shellcheck shell=bash
set -euo pipefail

step='getting ready'
demo=$(basename -- "$0" .sh)
source_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
room=

finish() {
    local status=$?
    [[ -z $room ]] || rm -rf -- "$room"
    [[ $status -eq 0 ]] || printf '\n%s: failed at "%s"\n' "$demo" "$step" >&2
}
trap finish EXIT

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    # shellcheck disable=SC2034
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

fail() {
    printf '%s: %s\n' "$demo" "$*" >&2
    exit 1
}

# chapter TITLE: begins a part, which a failure names.
chapter() {
    step=$1
    printf '\n%s%s%s\n' "$bold" "$1" "$plain"
}

# has FILE TEXT: fails unless the file has that text alone.
has() {
    [[ $(cat -- "$1" 2>/dev/null) == "$2" ]] || fail "$1 is $(cat -- "$1" 2>&1), not $2"
}

# needs PROGRAM...
needs() {
    local program missing=
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=" $program"
    done
    [[ -z $missing ]] || fail "please install:$missing"
}

# build ARGUMENT...: with cargo, which shows how far it is. Prints the directory of what was built.
build() {
    (cd -- "$source_dir" && cargo build --profile demo --locked "$@") >&2 || fail 'cargo build failed'
    printf '%s/demo\n' "${CARGO_TARGET_DIR:-$source_dir/target}"
}

# Sets `ic_program`: IC_BIN, or a program that is built here.
find_ic() {
    needs git
    if [[ -n ${IC_BIN:-} ]]; then
        [[ -x $IC_BIN && ! -d $IC_BIN ]] || fail "IC_BIN names no program: $IC_BIN"
        ic_program=$(realpath -- "$IC_BIN")
        return
    fi
    needs cargo "${CC:-cc}"
    printf 'Building ic. On two cores the first time takes a minute and a half.\n'
    ic_program=$(build -p ic)/ic
}

# Goes into a new directory, with `ic` as the first program of that name, and without the user's settings.
enter_room() {
    local variable
    for variable in $(compgen -e); do
        case $variable in
        IC_* | INTERCORE_* | GIT_* | XDG_* | CLAUDE*) unset "$variable" ;;
        esac
    done
    room=$(mktemp -d)
    mkdir -- "$room/bin" "$room/home" "$room/shop"
    ln -s -- "$ic_program" "$room/bin/ic"
    export HOME=$room/home PATH=$room/bin:$PATH
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org
    export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
    # For people to read. What a demonstration itself reads, it asks for as JSON.
    export IC_FORMAT=text
    cd -- "$room/shop"
}
