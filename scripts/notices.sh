#!/usr/bin/env bash
# Prints the notices of third parties that a release must carry: every crate that is linked into `ic`, its licence, and the texts.
#
#     scripts/notices.sh [TARGET]        TARGET is a platform as rustc names it; without one, this machine
#
# It reads Cargo.lock and the sources that cargo has downloaded. Crates that only run during the build are not listed. A text that
# several crates share is printed once. Needs cargo and jq.

# Markdown and programs of jq are in single quotes.
# shellcheck disable=SC2016
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
platform=${1:-$(rustc -vV | sed -n 's/^host: //p')}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# NAME VERSION LICENCE DIRECTORY of every crate that is linked: reached from `ic` without macros, build scripts and tests.
cargo metadata --format-version 1 --locked --filter-platform "$platform" | jq -r '
    (.packages | map({key: .id, value: .}) | from_entries) as $packages
    | (.resolve.nodes | map({key: .id, value: .}) | from_entries) as $nodes
    | def linked: $packages[.].targets | any(.kind | any(. == "lib" or . == "rlib" or . == "staticlib"));
      def used: [$nodes[.].deps[] | select(any(.dep_kinds[]; .kind == null)) | .pkg | select(linked)];
      {open: [.packages[] | select(.name == "ic") | .id], seen: {}}
    | until(.open == [];
        .open[0] as $id
        | if .seen[$id] then .open |= .[1:] else .seen[$id] = true | .open = .open[1:] + ($id | used) end)
    | .seen | keys | map($packages[.]) | map(select(.source))
    | sort_by(.name, .version)[] | [.name, .version, .license // "see its text", (.manifest_path | rtrimstr("/Cargo.toml"))] | @tsv' >"$work/crates"
[[ -s $work/crates ]]

printf '# Notices of third parties\n\n`ic` is licensed under MIT OR Apache-2.0. Its program contains these crates:\n\n'
printf '| crate | version | licence |\n|---|---|---|\n'
awk -F'\t' '{ printf "| %s | %s | %s |\n", $1, $2, $3 }' "$work/crates"
printf '\nand beside them:\n\n'
printf -- '- SQLite (in libsqlite3-sys), which is in the public domain: https://sqlite.org/copyright.html\n'
printf -- '- the standard library of Rust: MIT OR Apache-2.0, https://github.com/rust-lang/rust\n'
printf -- '- the GNU C library, where the program is linked statically: LGPL-2.1-or-later, https://sourceware.org/glibc. With the sources\n'
printf '  of `ic` it can be linked with another version of it (docs/INSTALL.md).\n'

# CRATE and TEXT, where a text is the path of a file; then each text once, below all crates that carry it.
while IFS=$'\t' read -r name version _ directory; do
    find "$directory" -maxdepth 2 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'copyright*' -o -iname 'notice*' \) \
        -printf "$name $version\t%p\n" | sort
done <"$work/crates" >"$work/files"
cut -f 2 "$work/files" | xargs -d '\n' sha256sum | cut -c 1-64 | paste - "$work/files" >"$work/texts"
awk -F'\t' '
    NR == FNR { carries[$2]; next }
    !(($1 " " $2) in carries) { silent = silent (silent ? ", " : "") $1 " " $2 }
    END { if (silent) print "\nThese crates carry no text; they are used under the MIT License (LICENSE-MIT), with the copyright of their authors: " silent "." }' "$work/texts" "$work/crates"
printf '\n# Texts\n'
awk -F'\t' '
    !($1 in path) { order[++count] = $1; path[$1] = $3 }
    !seen[$1, $2]++ { crates[$1] = crates[$1] (crates[$1] ? ", " : "") $2 }
    END { for (i = 1; i <= count; i++) print crates[order[i]] "\t" path[order[i]] }' "$work/texts" |
    while IFS=$'\t' read -r crates text; do
        printf '\n## %s\n\n' "$crates"
        sed 's/^/    /; s/[[:space:]]*$//' "$text"
    done
