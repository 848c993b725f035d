#!/usr/bin/env bash
# Fuzzes the parsers of bytes that this program did not write:
#
#     scripts/fuzz.sh [SECONDS] [TARGET...]
#
# Runs every target in fuzz/ for SECONDS (60), or the named ones. Findings are kept in fuzz/artifacts/, inputs with new
# coverage in fuzz/corpus/; both stay out of git. The first run begins with fuzz/seeds/.
# Needs cargo-fuzz (cargo install cargo-fuzz) and a C++ compiler. Exit 1 if anything was found.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if ! command -v cargo-fuzz >/dev/null; then
    printf 'scripts/fuzz.sh: please install it: cargo install cargo-fuzz\n' >&2
    exit 3
fi

seconds=${1:-60}
shift || true
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    mapfile -t targets < <(cargo fuzz list)
fi

# Coverage is an unstable flag, which this makes the stable compiler accept. No sanitizer: the parsers have no unsafe code.
export RUSTC_BOOTSTRAP=1
cargo fuzz build --sanitizer none

found=()
for target in "${targets[@]}"; do
    printf '\n== %s, %s s\n' "$target" "$seconds"
    inputs=("fuzz/corpus/$target")
    mkdir -p "${inputs[0]}"
    [[ ! -d fuzz/seeds/$target ]] || inputs+=("fuzz/seeds/$target")
    # An input that takes 10 s or 512 MB is a finding too.
    cargo fuzz run --sanitizer none "$target" "${inputs[@]}" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -verbosity=0 \
        -print_final_stats=1 || found+=("$target")
done

if [[ ${#found[@]} -gt 0 ]]; then
    printf '\nscripts/fuzz.sh: found something: %s\n' "${found[*]}" >&2
    exit 1
fi
