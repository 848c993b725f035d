#!/usr/bin/env bash
# Measures how easy the code is to find and to read: today's values, limits and goals.
#
#     scripts/house.sh                  # the table; exit 1 if a value is beyond its limit
#     scripts/house.sh walks            # functions, files and crates that three commands enter
#     scripts/house.sh show MEASURE     # where modules, types, docs, words or clients are counted
#     scripts/house.sh lower [walks]    # set each limit to today's value where that is better
#
# A limit only moves towards its goal: a change that reaches a better value lowers the limit.
#
# walks runs target/debug/ic, or IC, in valgrind's callgrind, which records each function that is entered. A debug build
# inlines only ic-base. An instance of a generic function counts for the crate that defines it; a closure counts as a function.

# Programs of awk are in single quotes.
# shellcheck disable=SC2016
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8

# MEASURE|LIMIT|GOAL|MEANING. A value may not be above its limit; the value of comments may not be below its limit.
measures='
crates|19|21|crates, without those for tests
floors|9|9|crates on the longest path of dependencies
lines|93915|72000|lines of product code
modules|0|0|modules named by a function word or a participle
types|0|20|names that two public types or more share
comments|0.0517|0.05|plain comments a line of code
docs|2|50|doc comments of three words or fewer
circles|0|0|circles of imports over more than two files
words|0|0|phrases of scripts/words.txt
clients|2|6|files that name one client (OpenCode)
status.functions|254|250|run status
status.files|53|40|
status.crates|7|7|
advance.functions|1101|900|run advance
advance.files|151|90|
advance.crates|9|8|
undo.functions|2276|1400|undo --yes of one dispatch
undo.files|298|130|
undo.crates|15|10|
'

# Product code: no crate for tests, no file of tests.
sources() {
    find crates -path '*/src/*' -name '*.rs' ! -path 'crates/testkit/*' ! -path 'crates/fuzzing/*' \
        ! -name tests.rs ! -path '*/tests/*' | sort
}

# Each line of product code as KIND FILE:LINE TEXT, where KIND is code, plain or doc. Tests at the end of a file are left out.
lines() {
    sources | xargs awk '
        FNR == 1 { in_tests = is_test = 0 }
        /^ *#\[cfg\(test\)\]/ { is_test = 1; next }
        is_test && /^ *mod [a-z_]+ \{/ { in_tests = 1 }
        is_test && !/^ *#\[/ { is_test = 0; next }
        in_tests || /^ *$/ { next }
        { kind = "code" }
        /^ *\/\// { kind = "plain" }
        /^ *\/\/[\/!]/ { kind = "doc" }
        { sub(/^ */, ""); print kind, FILENAME ":" FNR, $0 }'
}

show_modules() {
    local words='above|around|as_if|back|before|begun|beside|differs|found|held|hold|idle|kept|known|left|look|lost|made|meant|may|named'
    words+='|needs|news|other|others|outside|own|past|place|said|seen|shot|since|told|together|until|without|mark|marks'
    words+='|where|elsewhere|to|passed_over|undone|unseen|unsent|[a-z_]*ed|[a-z_]*ing'
    # Nouns, and the name of a format.
    sources | grep -E "/($words)\.rs$" | grep -vE '/(seed|feed|speed|string|setting|heading|ending|beginning|unified)\.rs$' || true
}

show_types() {
    sources | xargs grep -oHnE '^ *pub(\([a-z]+\))? (struct|enum|trait|union|type) [A-Za-z0-9]+' | sed -E 's/^([^:]*:[0-9]+):.* ([A-Za-z0-9]+)$/\2 \1/' |
        sort | awk '{ count[$1]++; places[$1] = places[$1] " " $2 } END { for (name in count) if (count[name] > 1) print name ":" places[name] }' | sort
}

# Comments of one line alone: the end of a longer one may be short, and so may the title of a module.
show_docs() {
    lines | awk '
        function end() { if (length_of == 1 && words <= 3 && last !~ /\/\/!/) print last; length_of = 0 }
        { split($2, place, ":"); follows = place[1] == file && place[2] == line + 1; file = place[1]; line = place[2] }
        $1 != "doc" { end(); next }
        !follows { end() }
        { length_of++; words = NF - 3; last = substr($0, 5) }
        END { end() }'
}

# The phrases, their counts and the files with most of them.
show_words() {
    local phrase
    while IFS='|' read -r phrase _; do
        { prose | xargs -0 grep -ioHwF -e "${phrase% }" || true; } | cut -d: -f1 | sort | uniq -c | sort -rn | awk -v phrase="${phrase% }" '
            { sum += $1; if (NR <= 3) most = most " " $2 " (" $1 ")" } END { if (sum) print sum, phrase ":" most }'
    done < <(grep -v '^#' scripts/words.txt) | sort -rn
}

# All English text that is written by hand, except decisions, which are history.
prose() {
    git ls-files -z -- '*.rs' '*.md' '*.sh' '*.py' '*.toml' '.ci/*' ':!docs/adr' ':!*.zh-*' ':!crates/ic/src/tests/banned_phrases*' ':!fuzz'
}

show_clients() {
    sources | xargs grep -liE 'open_?code'
}

# The crates of the product, each with one that it uses, a pair a line.
uses() {
    cargo metadata --no-deps --format-version 1 --locked |
        jq -r '.packages[] | select(.name | IN("ic-testkit", "ic-fuzzing") | not) | .name as $name
            | "\($name) \($name)", (.dependencies[] | select(.path and .kind == null) | "\($name) \(.name)")'
}

# The circles that the test of circles permits. Without that test the number is not known, so it is beyond every limit.
standing_circles() {
    grep -rhoE '^const STANDING: \[&str; [0-9]+' crates | grep -oE '[0-9]+$' || echo 999
}

# Prints MEASURE VALUE for each of the source.
measure() {
    uses | awk '$1 == $2 { crates++; next } { uses[$1] = uses[$1] " " $2 }
        function floor(name,    i, n, below, most, used) {
            if (name in floors) return floors[name]
            n = split(uses[name], used, " ")
            for (i = 1; i <= n; i++) { below = floor(used[i]); if (below > most) most = below }
            return floors[name] = most + 1
        }
        END { for (name in uses) if (floor(name) > top) top = floor(name); print "crates", crates; print "floors", top }'
    lines | awk '{ count[$1]++ } END { print "lines", count["code"]; printf "comments %.4f\n", count["plain"] / count["code"] }'
    printf '%s %d\n' modules "$(show_modules | wc -l)" types "$(show_types | wc -l)" docs "$(show_docs | wc -l)" \
        circles "$(standing_circles)" \
        words "$(show_words | awk '{ sum += $1 } END { print sum + 0 }')" clients "$(show_clients | wc -l)"
}

# Prints MEASURE VALUE for each walk: in a project with one commit, a run and a dispatch that committed and wrote a file.
walk() {
    local room
    IC=$(realpath -- "${IC:-target/debug/ic}")
    room=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf -- '$room'" EXIT
    sources >"$room/sources"
    (
        for variable in $(compgen -e); do
            case $variable in
            IC_* | GIT_* | CLAUDE* | XDG_*) unset "$variable" ;;
            esac
        done
        export HOME=$room GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 IC_FORMAT=text
        export GIT_AUTHOR_NAME=house GIT_AUTHOR_EMAIL=house@example.org GIT_COMMITTER_NAME=house GIT_COMMITTER_EMAIL=house@example.org
        mkdir -- "$room/project"
        cd -- "$room/project"
        entered() {
            valgrind -q --tool=callgrind --callgrind-out-file="$room/$1" "$IC" "${@:2}" >>"$room/log" 2>&1 || { cat -- "$room/log" >&2; exit 1; }
        }
        git init -q .
        printf 'one\n' >kept
        git add kept
        git commit -qm 'The first'
        "$IC" init >"$room/log"
        "$IC" run create --goal 'a shop' --phases a,b,c >>"$room/log"
        # A capture reads recent edits again, so the functions entered would depend on the machine's speed. Here edits are
        # older than two seconds, as most are in practice.
        sleep 2.1
        entered status run status @
        entered advance run advance @
        dispatch=$("$IC" dispatch create @ --name work --json | jq -r .id)
        "$IC" dispatch start "$dispatch" >>"$room/log"
        printf 'two\n' >kept
        printf 'new\n' >new
        git commit -qam 'The second'
        sleep 2.1
        "$IC" dispatch complete "$dispatch" >>"$room/log"
        sleep 2.1
        entered undo undo --yes
        [[ $(cat kept) == one && ! -e new ]]
    ) || return 1
    local name
    for name in status advance undo; do
        awk -v walk="$name" '
            NR == FNR { is_source[$0] = 1; next }
            # fn=(ID) NAME is a function that spends time, cfn=(ID) NAME one that is called; only the first mention has the name.
            /^c?fn=\([0-9]+\)/ {
                id = $0; sub(/^c?fn=\(/, "", id); sub(/\).*/, "", id); entered[id] = 1
                if (/\) /) { sub(/^[^ ]* /, ""); sub(/\x27[0-9]+$/, ""); names[id] = $0 }
            }
            function file_of(path,    parts, n, i, at, file) {
                sub(/::<.*/, "", path)
                n = split(path, parts, "::")
                at = parts[1] == "ic" ? "ic" : substr(parts[1], 4)
                at = "crates/" at "/src"; file = at "/lib.rs"
                for (i = 2; i <= n; i++) { at = at "/" parts[i]; if (!((at ".rs") in is_source)) break; file = at ".rs" }
                return file
            }
            END {
                for (id in entered) {
                    path = name = names[id]
                    # A method of a trait is in the file of its type, or else in that of the trait.
                    if (name ~ /^<.* as ic(_[a-z0-9]+)?::/ && name !~ /^<&*(mut )?ic(_[a-z0-9]+)?::/) sub(/^<.* as /, "", path)
                    sub(/^<&*(mut )?/, "", path)
                    if (path !~ /^ic(_[a-z0-9]+)?::/ || functions[name]++) continue
                    # Which of these are entered depends on the file system below the project, and on how fast a capture is.
                    if (path ~ /::memory_maps::|^ic_sys::lease::|::partial_captures::/) continue
                    # Only a build for tests has these.
                    if (path ~ /::faults::hooks::|::arm_test_hooks|::environment::number$|::fixed_actor$/) continue
                    sub(/( as |>|<).*/, "", path)
                    count++; files[file_of(path)]; split(path, parts, "::"); crates[parts[1]]
                }
                print walk ".functions", count; print walk ".files", length(files); print walk ".crates", length(crates)
            }' "$room/sources" "$room/$name"
    done
}

# Reads MEASURE VALUE and prints the table; fails where a value is beyond its limit.
judge() {
    awk -F'|' -v todays="$1" '
        BEGIN {
            n = split(todays, lines, "\n"); for (i = 1; i <= n; i++) { split(lines[i], pair, " "); value[pair[1]] = pair[2] }
            printf "%-18s %8s %8s %8s\n", "measure", "today", "limit", "goal"
        }
        !($1 in value) || $1 == "" { next }
        {
            beyond = $1 == "comments" ? value[$1] < $2 : value[$1] > $2 + 0
            printf "%-18s %8s %8s %8s  %s%s\n", $1, value[$1], $2, $3, $4, beyond ? "  BEYOND ITS LIMIT" : ""
            failed += beyond
        }
        END { exit failed > 0 }' <<<"$measures" ||
        { printf 'scripts/house.sh: a measure is beyond its limit; see CONTRIBUTING.md\n' >&2; return 1; }
}

# Writes today's values into this script where they are better than the limits.
lower() {
    local name value
    while read -r name value; do
        awk -F'|' -v OFS='|' -v name="$name" -v value="$value" '
            $1 == name && NF == 4 && (name == "comments" ? value > $2 : value < $2) { $2 = value } { print }' scripts/house.sh >scripts/house.sh.new
        cat scripts/house.sh.new >scripts/house.sh
        rm -- scripts/house.sh.new
    done
}

case ${1:-} in
'')
    judge "$(measure)"
    ;;
walks)
    command -v valgrind >/dev/null || { printf 'scripts/house.sh: skipped: there is no valgrind\n'; exit 0; }
    # On a slow machine a capture also notes how far it is, and its threads meet in other places. That only adds functions, so of up
    # to three counts the least is meant.
    found=$(walk)
    for _ in 2 3; do
        judge "$found" >/dev/null 2>&1 && break
        found=$(printf '%s\n' "$found" "$(walk)" | awk '!($1 in least) { order[++n] = $1; least[$1] = $2 }
            $2 < least[$1] { least[$1] = $2 } END { for (i = 1; i <= n; i++) print order[i], least[order[i]] }')
    done
    judge "$found"
    ;;
show)
    "show_${2:-modules}"
    ;;
lower)
    if [[ ${2:-} == walks ]]; then walk; else measure; fi | lower
    # Bash reads a script while it runs, and this file has changed: end here.
    exit
    ;;
*)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
