#!/usr/bin/env bash
# Makes packages of a release, and tries each:
#
#     scripts/packages.sh ARCHIVE [--out DIR] [KIND...]
#
# ARCHIVE is what scripts/release.sh made. The kinds, all of them by default:
#
#     wheel    for pip, pipx and uv: needs Python with venv, and PyPI for the package `wheel`
#     npm      two packages: one for the system, and one that depends on it and starts it: needs npm
#     deb      for Debian and Ubuntu: needs dpkg-deb
#     image    an image with the program alone, as an OCI archive: needs buildah and a static program
#
# Prints the path of each. The same archive gives the same bytes. To try a package is to install it in a directory of its own, without a
# network, and to run scripts/demo.sh with the program from there. Of an image only its program is started: there is no git in it.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
name=agent-undo
summary='The durable record, and the undo, of agent-driven development.'

fail() {
    printf 'scripts/packages.sh: %s\n' "$1" >&2
    exit "${2:-3}"
}

archive='' out='' kinds=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --out)
        [[ -n ${2:-} ]] || fail "$1 needs a value"
        out=$2
        shift
        ;;
    wheel | npm | deb | image) [[ " ${kinds[*]} " == *" $1 "* ]] || kinds+=("$1") ;;
    *.tar.gz)
        [[ -z $archive ]] || fail 'name one archive'
        archive=$1
        ;;
    *) fail "unknown argument $1; usage: scripts/packages.sh ARCHIVE [--out DIR] [wheel] [npm] [deb] [image]" ;;
    esac
    shift
done
[[ -f $archive ]] || fail 'name the archive that scripts/release.sh made'
[[ ${#kinds[@]} -gt 0 ]] || kinds=(wheel npm deb image)
out=$(realpath -m -- "${out:-$(dirname -- "$archive")}")

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
umask 022
export LC_ALL=C TZ=UTC
tar -xzf "$archive" -C "$work"
tree=$(cd -- "$work" && echo "$PWD"/ic-*)
[[ -x $tree/bin/ic ]] || fail "$archive is no archive of ic" 2
(cd -- "$tree" && sha256sum --check --quiet SHA256SUMS) || fail "$archive is damaged" 2
mkdir -p -- "$out"
[[ -w $out ]] || fail "$out cannot be written"
SOURCE_DATE_EPOCH=$(stat -c %Y -- "$tree/bin/ic")
export SOURCE_DATE_EPOCH
target=$(sed -E 's/^ic-[^-]+-//' <<<"${tree##*/}")
version=${tree##*/ic-}
version=${version%"-$target"}

# The names that the kinds have for this system. A static program runs on every Linux with its processor.
is_static=
headers=$(readelf --program-headers -- "$tree/bin/ic") || fail 'please install: readelf, of binutils'
[[ $headers == *INTERP* ]] || is_static=1
case $target in
x86_64-*-linux-*) npm_system=linux-x64 deb_system=amd64 wheel_system=x86_64 image_system=amd64 ;;
aarch64-*-linux-*) npm_system=linux-arm64 deb_system=arm64 wheel_system=aarch64 image_system=arm64 ;;
*) fail "no kind of package is made for $target" ;;
esac
if [[ -n $is_static ]]; then
    wheel_system=manylinux_2_17_$wheel_system.manylinux2014_$wheel_system.musllinux_1_1_$wheel_system
else
    wheel_system=linux_$wheel_system
fi

# try PROGRAM: an agent's three prompts, and an undo.
try() {
    [[ $("$1" version --json) == *"\"$version\""* ]] || fail "$1 is not ic $version" 2
    IC_BIN=$1 bash "$root/scripts/demo.sh" >"$work/demo.log" || { cat -- "$work/demo.log" >&2; fail "$1 does not work" 2; }
}

# Licences and notices, which every package has to carry.
notices=(LICENSE-MIT LICENSE-APACHE THIRD-PARTY.md)

make_wheel() {
    local tag=py3-none-$wheel_system one
    local info=$work/wheel/agent_undo-$version.dist-info
    install -Dm 755 -- "$tree/bin/ic" "$work/wheel/agent_undo-$version.data/scripts/ic"
    mkdir -p -- "$info/licenses"
    for one in "${notices[@]}"; do
        install -m 644 -- "$tree/$one" "$info/licenses/"
    done
    {
        printf 'Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\n' "$name" "$version" "$summary"
        printf 'License-Expression: MIT OR Apache-2.0\nDescription-Content-Type: text/markdown\n'
        printf 'License-File: %s\n' "${notices[@]}"
        printf '\n'
        cat -- "$tree/README.md"
    } >"$info/METADATA"
    {
        printf 'Wheel-Version: 1.0\nGenerator: scripts/packages.sh\nRoot-Is-Purelib: false\n'
        sed -E 's/^/Tag: py3-none-/' <<<"${wheel_system//./$'\n'}"
    } >"$info/WHEEL"
    python3 -m venv "$work/tools"
    "$work/tools/bin/pip" install --quiet --disable-pip-version-check wheel==0.47.0
    "$work/tools/bin/wheel" pack "$work/wheel" --dest-dir "$work/made" >"$work/wheel.log"

    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$work/made/agent_undo-$version-$tag.whl"
    try "$work/venv/bin/ic"
}

# package_json NAME REST: what each npm package says, and the fields in which it differs.
package_json() {
    printf '{"name":"%s","version":"%s","description":"%s","license":"MIT OR Apache-2.0",%s}\n' "$1" "$version" "$summary" "$2"
}

make_npm() {
    local one system=$work/npm/$npm_system start=$work/npm/start
    install -Dm 755 -- "$tree/bin/ic" "$system/bin/ic"
    mkdir -p -- "$start"
    for one in "${notices[@]}"; do
        install -m 644 -- "$tree/$one" "$system/"
        [[ $one == THIRD-PARTY.md ]] || install -m 644 -- "$tree/$one" "$start/"
    done
    printf '# %s-%s\n\nThe program of the package %s for %s.\n' "$name" "$npm_system" "$name" "$npm_system" >"$system/README.md"
    package_json "$name-$npm_system" "\"os\":[\"${npm_system%-*}\"],\"cpu\":[\"${npm_system#*-}\"],\"files\":[\"bin/ic\",\"LICENSE-*\",\"THIRD-PARTY.md\"]" \
        >"$system/package.json"
    install -m 755 -- "$root/scripts/npm-start.js" "$start/ic.js"
    install -m 644 -- "$tree/README.md" "$start/"
    package_json "$name" "\"bin\":{\"ic\":\"ic.js\"},\"files\":[\"ic.js\",\"LICENSE-*\"],\"optionalDependencies\":{$(
        for one in linux-x64 linux-arm64 darwin-x64 darwin-arm64; do
            printf '"%s-%s":"%s",' "$name" "$one" "$version"
        done | sed 's/,$//'
    )}" >"$start/package.json"
    (cd -- "$work/made" && npm pack --silent "$system" "$start" >/dev/null)

    for one in "$name-$npm_system" "$name"; do
        [[ $(tar -tzf "$work/made/$one-$version.tgz") == *package/LICENSE-MIT* ]] || fail "$one lacks its licence" 2
    done
    mkdir -- "$work/node"
    # Without --prefix npm would install into a project above the temporary directory.
    npm install --silent --offline --no-audit --no-fund --omit=optional --prefix "$work/node" \
        "$work/made/$name-$npm_system-$version.tgz" "$work/made/$name-$version.tgz"
    try "$work/node/node_modules/.bin/ic"
}

make_deb() {
    local tree_deb=$work/deb one
    local docs=$tree_deb/usr/share/doc/$name
    mkdir -p -- "$docs" "$tree_deb/DEBIAN" "$tree_deb/usr/share"
    cp -R -- "$tree/bin" "$tree_deb/usr/"
    cp -R -- "$tree"/share/* "$tree_deb/usr/share/"
    mkdir -- "$tree_deb/usr/share/zsh/vendor-completions"
    mv -- "$tree_deb"/usr/share/zsh/site-functions/* "$tree_deb/usr/share/zsh/vendor-completions/"
    rmdir -- "$tree_deb/usr/share/zsh/site-functions"
    gzip -9n -- "$tree_deb"/usr/share/man/man1/*
    for one in README.md CHANGELOG.md "${notices[@]}"; do
        install -m 644 -- "$tree/$one" "$docs/"
    done
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n'
        printf 'Files: *\nCopyright: the authors of ic\nLicense: Expat or Apache-2.0\nComment: the texts are in LICENSE-MIT,'
        printf ' LICENSE-APACHE and, of the crates in it, THIRD-PARTY.md, beside this file\n'
    } >"$docs/copyright"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\nSection: vcs\nPriority: optional\n' "$name" "$version" "$deb_system"
        printf 'Maintainer: the authors of ic\n'
        printf 'Installed-Size: %s\nRecommends: git\n' "$(du -k -s -- "$tree_deb/usr" | cut -f1)"
        [[ -n $is_static ]] || printf 'Depends: libc6\n'
        printf 'Description: %s\n' "${summary%.}"
        printf ' It records what each prompt of a coding agent changed, and takes out one of them,\n'
        printf ' with its files, what it committed, database rows and outside effects.\n'
    } >"$tree_deb/DEBIAN/control"
    (cd -- "$tree_deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree_deb/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Zxz -z1 --build "$tree_deb" "$work/made/${name}_${version}_$deb_system.deb" >/dev/null

    # With a list of packages of its own, so that nothing changes on this machine.
    mkdir -p -- "$work/system/var/lib/dpkg"/{updates,info,triggers}
    touch -- "$work/system/var/lib/dpkg/status"
    dpkg --root="$work/system" --force-not-root --force-depends --log=/dev/null --install "$work/made/${name}_${version}_$deb_system.deb" \
        >"$work/dpkg.log" 2>&1 || { cat -- "$work/dpkg.log" >&2; fail 'the package cannot be installed' 2; }
    try "$work/system/usr/bin/ic"
    for one in man/man1/ic.1.gz bash-completion/completions/ic zsh/vendor-completions/_ic fish/vendor_completions.d/ic.fish; do
        [[ -s $work/system/usr/share/$one ]] || fail "the package lacks $one" 2
    done
}

make_image() {
    local container image=$work/made/$name-$version-$target.oci.tar
    [[ -n $is_static ]] || fail 'an image needs a static program'
    ours() {
        buildah --storage-driver vfs --root "$work/images" --runroot "$work/images.run" "$@"
    }
    container=$(ours from --arch "$image_system" scratch)
    ours copy --quiet --chmod 755 "$container" "$tree/bin/ic" /ic >/dev/null
    ours copy --quiet "$container" "${notices[@]/#/$tree/}" /licenses/ >/dev/null
    ours config --entrypoint '["/ic"]' --label "org.opencontainers.image.version=$version" \
        --label 'org.opencontainers.image.licenses=MIT OR Apache-2.0' "$container"
    ours commit --quiet --timestamp "$SOURCE_DATE_EPOCH" "$container" "oci-archive:$image" >/dev/null

    container=$(ours from "oci-archive:$image")
    [[ $(ours run --isolation chroot "$container" /ic version --json) == *"\"$version\""* ]] || fail 'the image does not work' 2
}

mkdir -- "$work/made"
for kind in "${kinds[@]}"; do
    "make_$kind"
done
# Each gets its name once it is whole. The sums of files that were there before stay.
part=$(mktemp -d -- "$out/.packages.XXXXXX")
trap 'rm -rf -- "$work" "$part"' EXIT
cp -- "$work"/made/* "$part/"
(cd -- "$part" && sha256sum -- *) >"$work/sums"
awk 'NR == FNR { made[$2]; print; next } !($2 in made)' "$work/sums" <(cat -- "$out/SHA256SUMS" 2>/dev/null) |
    sort -k 2 >"$part/SHA256SUMS"
for made in "$work"/made/*; do
    mv -- "$part/${made##*/}" "$out/"
done
mv -- "$part/SHA256SUMS" "$out/"
printf '%s\n' "$work"/made/* | sed "s|^.*/|$out/|"
