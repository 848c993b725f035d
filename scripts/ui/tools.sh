# shellcheck shell=bash
# Tools that drive the page. Source this file.

# Sets target, room and chromium; if a tool is missing, sets missing to a message.

tools_for_the_page() {
    target=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)
    room=$target/ui
    chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)
    missing=
    if [[ -z $chromium ]] && command -v apt-get >/dev/null; then
        apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 || :
        chromium=$(command -v chromium || :)
    fi
    if [[ -z $chromium ]]; then
        missing='there is no chromium'
    elif ! command -v npm >/dev/null; then
        missing='there is no npm'
    elif ! [[ -d $room/node_modules/axe-core && -d $room/node_modules/playwright-core ]]; then
        mkdir -p -- "$room"
        timeout 180 npm install --silent --no-audit --no-fund --prefix "$room" playwright-core@1.65.1 axe-core@4.14.1 >/dev/null 2>&1 \
            || missing='npm gave no playwright-core and axe-core'
    fi
    # The sourcing script reads them.
    export target room chromium missing
    [[ -z $missing ]]
}

# Makes the project with a story below a temporary directory. Sets program (IC, or else a build), home, project and run. When the script ends,
# the directory is removed and a served page is stopped.
page_of_the_story() {
    program=${IC:-}
    if [[ -z $program ]]; then
        cargo build --package ic --locked --quiet
        program=$target/debug/ic
    fi
    program=$(realpath -- "$program")
    served=
    work=$(mktemp -d)
    trap 'end_the_page' EXIT
    home=$work/story
    project=$home/shop
    run=$(scripts/ui/story.sh "$program" "$home")
    export program home project run
}

# Serves the page of that project. Sets address.
serve_the_page() {
    (cd -- "$project" && exec "$program" ui --json) >"$work/address" &
    served=$!
    for _ in $(seq 100); do
        [[ -s $work/address ]] && break
        sleep 0.1
    done
    address=$(jq -r .url "$work/address")
    export address
}

end_the_page() {
    [[ -z $served ]] || kill "$served" 2>/dev/null || :
    rm -rf -- "$work"
}
