# shellcheck shell=bash
# What the page is driven with: to be sourced. Sets target, room and chromium; if something is not there, missing says what.

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
    # Who sources this reads them.
    export target room chromium missing
    [[ -z $missing ]]
}
