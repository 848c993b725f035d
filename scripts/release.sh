#!/usr/bin/env bash
# Packs a release: the program, its manual and completions, the shell library and the documents.
#
#     scripts/release.sh [--out DIR] [--binary PATH]
#     scripts/release.sh --program
#
# Makes ic-VERSION-TARGET.tar.gz and SHA256SUMS in DIR (target/dist), and prints the path of the first.
# --binary packs a program that is built already; otherwise the script builds it, with the profile `release`.
# The program needs no library of the system that it runs on: the C library is linked in.
# --program only builds the program, and prints its path.
# The archive is unpacked and tested before it gets its name. Nothing else is left behind.
#
# The same commit, compiler and system give the same bytes: names are sorted, owners are 0, and times
# are SOURCE_DATE_EPOCH or that of the last commit.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
    printf 'scripts/release.sh: %s\n' "$1" >&2
    exit "${2:-3}"
}

out=
binary=
alone=
while [[ $# -gt 0 ]]; do
    case $1 in
    --out | --binary)
        [[ -n ${2:-} ]] || fail "$1 needs a value"
        if [[ $1 == --out ]]; then out=$2; else binary=$2; fi
        shift 2
        ;;
    --program)
        alone=1
        shift
        ;;
    *) fail "unknown argument $1; usage: scripts/release.sh [--out DIR] [--binary PATH] | --program" ;;
    esac
done

missing=
for program in cargo rustc jq readelf strip tar gzip sha256sum; do
    command -v "$program" >/dev/null || missing+=" $program"
done
[[ -z $missing ]] || fail "please install:$missing"

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
umask 022
export LC_ALL=C TZ=UTC

in_git() {
    git -C "$root" "$@" 2>/dev/null
}

epoch=${SOURCE_DATE_EPOCH:-$(in_git log -1 --format=%ct || true)}
[[ $epoch =~ ^[0-9]+$ ]] || fail 'no commit says when this is; set SOURCE_DATE_EPOCH'

target=$(rustc -vV | sed -n 's/^host: //p')

# Builds the program and prints its path.
build() {
    local commit
    if commit=$(in_git rev-parse --short=12 HEAD); then
        [[ -z $(in_git status --porcelain) ]] || commit+=-dirty
        export IC_BUILD_COMMIT=$commit
    fi
    IC_BUILD_DATE=$(date -d "@$epoch" +%F)
    export IC_BUILD_DATE
    # Paths of the build machine would make the bytes differ from those of another machine.
    RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$root=/ic --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    # No unwind tables: the profile aborts on a panic.
    RUSTFLAGS+=' -C force-unwind-tables=no -C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs'
    # To start a program in another directory, Rust uses this function if it is linked in; otherwise it forks, which copies every page
    # table. Nothing else in a static program refers to the function, so the linker must be told to include it.
    RUSTFLAGS+=' -C link-arg=-Wl,-u,posix_spawn_file_actions_addchdir_np'
    # Only the linker that Rust uses for this target knows this flag: it merges identical functions.
    [[ $target != x86_64-unknown-linux-gnu ]] || RUSTFLAGS+=' -C link-arg=-Wl,--icf=all'
    export RUSTFLAGS
    # With a target, cargo does not apply the flags to build scripts and macros, which run during the build.
    (cd -- "$root" && cargo build --release --locked --target "$target" -p ic --bin ic --features server \
        --message-format=json-render-diagnostics) |
        jq -r 'select(.reason == "compiler-artifact" and .target.name == "ic" and .executable) | .executable'
}

# Puts the files of the release into the directory $1.
fill() {
    local name=$1 page
    install -Dm 755 -- "$binary" "$name/bin/ic"
    strip --strip-all -- "$name/bin/ic"
    mkdir -p "$name"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,ic}
    "$name/bin/ic" man "$name/share/man/man1" >/dev/null
    "$name/bin/ic" completions bash >"$name/share/bash-completion/completions/ic"
    "$name/bin/ic" completions zsh >"$name/share/zsh/site-functions/_ic"
    "$name/bin/ic" completions fish >"$name/share/fish/vendor_completions.d/ic.fish"
    install -m 644 -- "$root/scripts/lib-intercore.sh" "$name/share/ic/"
    for page in "$root"/{README,CHANGELOG,CONTRIBUTING,SECURITY}*.md "$root"/LICENSE-*; do
        install -m 644 -- "$page" "$name/"
    done
    bash "$root/scripts/notices.sh" "$target" >"$name/THIRD-PARTY.md"
    cp -R -- "$root/docs" "$name/docs"
    find "$name" -type f -printf '%P\0' | sort -z | (cd -- "$name" && xargs -0 sha256sum) >"$work/sums"
    install -m 644 -- "$work/sums" "$name/SHA256SUMS"
    find "$name" -type d -exec chmod 755 {} +
    find "$name" -type f ! -path '*/bin/ic' -exec chmod 644 {} +
}

# Unpacks the archive $1 elsewhere and tests its content.
try() {
    local place=$work/try pages
    mkdir -p "$place/home"
    tar -xzf "$1" -C "$place"
    cd -- "$place/$name"
    sha256sum --check --quiet SHA256SUMS
    export HOME=$place/home PATH=$place/$name/bin:$PATH
    unset IC_DB IC_CONFIG IC_DISPATCH IC_FORMAT
    [[ $(ic version --json | jq -r .version) == "$version" ]]
    # The packed manual and completions must be those of this program.
    pages=$(ic man share/man/man1 --json | jq -r '.written | length')
    [[ $pages -eq 0 ]]
    ic completions bash | cmp - share/bash-completion/completions/ic
    # shellcheck source=scripts/lib-intercore.sh
    source share/ic/lib-intercore.sh
    mkdir -- "$place/project"
    cd -- "$place/project"
    ic init >/dev/null
    [[ $(intercore_run_phase "$(intercore_run_create 'Try the release' --phases a,b)") == a ]]
    ic health >/dev/null
}

if [[ -z $binary ]]; then
    binary=$(build)
    [[ -x $binary ]] || fail 'no program at the place that cargo names' 2
    # Not in a pipe: a reader that has seen enough would end readelf, and the pipe would count as failed.
    [[ $(readelf --program-headers -- "$binary") != *INTERP* ]] || fail "$binary needs a loader: it is not static" 2
fi
[[ -x $binary ]] || fail "no program at $binary" 2
if [[ -n $alone ]]; then
    printf '%s\n' "$binary"
    exit
fi
version=$("$binary" version --json | jq -r .version) || version=
[[ -n $version ]] || fail "$binary does not say which version of ic it is" 2
name=ic-$version-$target

(cd -- "$work" && fill "$name")
tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$epoch" \
    -C "$work" -cf - "$name" | gzip -9n >"$work/$name.tar.gz"
# Bash ignores `set -e` in a condition, so this is not in one.
(try "$work/$name.tar.gz")

out=${out:-${CARGO_TARGET_DIR:-$root/target}/dist}
mkdir -p -- "$out"
(cd -- "$work" && sha256sum "$name.tar.gz") >"$work/SHA256SUMS"
mv -- "$work/$name.tar.gz" "$work/SHA256SUMS" "$out/"
printf '%s\n' "$out/$name.tar.gz"
