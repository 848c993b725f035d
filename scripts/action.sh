#!/usr/bin/env bash
# The steps of action.yml, which GitHub runs:
#
#     scripts/action.sh install     installs ACTION_PACKAGE with pip, and puts `ic` into the PATH of later steps
#     scripts/action.sh run         runs the command in ACTION_RUN as a piece of work with the name ACTION_NAME
#     scripts/action.sh timeline    writes what was done to RUNNER_TEMP/ic-timeline, and to the summary of the job
#
# Exits as the command does.
set -euo pipefail

case ${1:-} in
install)
    python3 -m venv "$RUNNER_TEMP/ic"
    "$RUNNER_TEMP/ic/bin/pip" install --quiet --disable-pip-version-check -- "$ACTION_PACKAGE"
    printf '%s\n' "$RUNNER_TEMP/ic/bin" >>"$GITHUB_PATH"
    ;;
run)
    ic where >/dev/null 2>&1 || ic init
    exec ic exec ${ACTION_NAME:+--name "$ACTION_NAME"} -- bash -euo pipefail -c "$ACTION_RUN"
    ;;
timeline)
    mkdir -p -- "$RUNNER_TEMP/ic-timeline"
    # Without a ledger the first step failed, and there is nothing to keep.
    ic where >/dev/null 2>&1 || exit 0
    ic log -n 1000 --json >"$RUNNER_TEMP/ic-timeline/log.json"
    ic events tail --all --format jsonl >"$RUNNER_TEMP/ic-timeline/events.jsonl"
    {
        printf '```\n'
        ic log --stat --format text
        printf '```\n'
    } >>"$GITHUB_STEP_SUMMARY"
    ;;
*)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
    exit 3
    ;;
esac
