#!/usr/bin/env bash
# A private PostgreSQL server in a directory of its own, for tests, benchmarks and the demo. It listens on a socket alone.
#
#     scripts/postgres.sh start DIR [SETTING=VALUE...]     # prints the URL of its database, without a ledger's name
#     scripts/postgres.sh stop DIR [fast|immediate]
#
# Needs the programs of PostgreSQL 15 or newer: in PATH, or where Debian puts them. PostgreSQL refuses to run as root; then it runs as the
# user postgres, or as nobody.
set -euo pipefail

bin() {
    local found
    found=$(command -v "$1" || find /usr/lib/postgresql/*/bin -name "$1" 2>/dev/null | sort -V | tail -1)
    [ -n "$found" ] || { echo "postgres.sh needs $1: apt-get install postgresql" >&2; exit 3; }
    echo "$found"
}

# As somebody who is not root.
as_user() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    elif id postgres >/dev/null 2>&1; then
        setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
    else
        setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"
    fi
}

[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 3; }
verb=$1 dir=$2
shift 2
case $verb in
    start)
        mkdir -p "$dir"
        dir=$(cd "$dir" && pwd)
        initdb=$(bin initdb) ctl=$(bin pg_ctl)
        if [ ! -d "$dir/data" ]; then
            mkdir -p "$dir/data" "$dir/socket"
            chmod 755 "$dir"
            if [ "$(id -u)" -eq 0 ]; then
                chown "$(as_user id -u):$(as_user id -g)" "$dir" "$dir/data" "$dir/socket"
            fi
            (cd / && as_user "$initdb" -D "$dir/data" -A trust -U ic -E UTF8 --locale=C.UTF-8 >"$dir/initdb.log" 2>&1) \
                || { cat "$dir/initdb.log" >&2; exit 2; }
            {
                echo "listen_addresses = ''"
                echo "unix_socket_directories = '$dir/socket'"
                echo "max_connections = 200"
                for setting in "$@"; do
                    echo "${setting%%=*} = '${setting#*=}'"
                done
            } >>"$dir/data/postgresql.conf"
        fi
        (cd / && as_user "$ctl" -D "$dir/data" -w -t 60 -l "$dir/data/server.log" start >/dev/null) \
            || { cat "$dir/data/server.log" >&2; exit 2; }
        echo "postgres://ic@/postgres?host=$dir/socket"
        ;;
    stop)
        ctl=$(bin pg_ctl)
        dir=$(cd "$dir" && pwd)
        (cd / && as_user "$ctl" -D "$dir/data" -w -m "${1:-fast}" stop >/dev/null)
        ;;
    *)
        echo "postgres.sh knows start and stop" >&2
        exit 3
        ;;
esac
