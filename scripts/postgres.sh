#!/usr/bin/env bash
# A private PostgreSQL server in a directory of its own, for tests, benchmarks and the demo. It listens on a socket alone.
#
#     scripts/postgres.sh start DIR [SETTING=VALUE...]     # prints the URL of its database, without a ledger's name
#     scripts/postgres.sh pool DIR [HOST PORT]             # PgBouncer in front of it, or of HOST; prints the URL through it
#     scripts/postgres.sh stop DIR [fast|immediate]
#     scripts/postgres.sh has                              # whether PostgreSQL and PgBouncer are here
#
# Needs the programs of PostgreSQL 15 or newer: in PATH, or where Debian puts them. PostgreSQL refuses to run as root. So root starts it
# as the user postgres, or without one as the user without rights.
set -euo pipefail

bin() {
    local found
    found=$(command -v "$1" || find /usr/lib/postgresql/*/bin /usr/sbin -name "$1" 2>/dev/null | sort -V | tail -1)
    [ -n "$found" ] || { echo "postgres.sh needs $1: apt-get install ${2:-postgresql}" >&2; exit 3; }
    echo "$found"
}

# Runs a command as another user than root.
as_user() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    elif id postgres >/dev/null 2>&1; then
        setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
    else
        setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
    fi
}

if [ "${1:-}" = has ]; then
    bin initdb >/dev/null && bin psql >/dev/null && bin pgbouncer pgbouncer >/dev/null
    exit
fi
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 3; }
verb=$1 dir=$2
shift 2
case $verb in
    start)
        mkdir -p "$dir"
        dir=$(cd "$dir" && pwd)
        initdb=$(bin initdb) ctl=$(bin pg_ctl)
        if [ ! -d "$dir/data" ]; then
            mkdir -p "$dir/data" "$dir/socket"
            # The server's user must be able to enter the directory, whatever the umask is.
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
    pool)
        bouncer=$(bin pgbouncer pgbouncer)
        dir=$(cd "$dir" && pwd)
        mkdir -p "$dir/pooler"
        printf '"ic" ""\n' >"$dir/pooler/users"
        cat >"$dir/pooler/ini" <<END
[databases]
postgres = host=${1:-$dir/socket} port=${2:-5432}
[pgbouncer]
pool_mode = transaction
default_pool_size = 50
max_client_conn = 400
listen_addr =
listen_port = 6432
unix_socket_dir = $dir/pooler
auth_type = trust
auth_file = $dir/pooler/users
pidfile = $dir/pooler/pid
logfile = $dir/pooler/log
END
        if [ "$(id -u)" -eq 0 ]; then
            chown -R "$(as_user id -u):$(as_user id -g)" "$dir/pooler"
        fi
        (cd / && as_user "$bouncer" -q -d "$dir/pooler/ini" >/dev/null 2>&1)
        for _ in $(seq 100); do
            if [ -S "$dir/pooler/.s.PGSQL.6432" ]; then
                echo "postgres://ic@/postgres?host=$dir/pooler&port=6432"
                exit 0
            fi
            sleep 0.05
        done
        cat "$dir/pooler/log" >&2
        exit 2
        ;;
    stop)
        ctl=$(bin pg_ctl)
        dir=$(cd "$dir" && pwd)
        if [ -f "$dir/pooler/pid" ]; then
            kill "$(cat "$dir/pooler/pid")" 2>/dev/null || true
        fi
        (cd / && as_user "$ctl" -D "$dir/data" -w -m "${1:-fast}" stop >/dev/null)
        ;;
    *)
        echo "postgres.sh knows start, pool, stop and has" >&2
        exit 3
        ;;
esac
