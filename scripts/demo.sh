#!/usr/bin/env bash
# Three prompts of a coding agent, of which the last goes too far, and its undo:
#
#     bash scripts/demo.sh                  builds ic first
#     IC_BIN=path/to/ic bash scripts/demo.sh
#
# The agent is played here: `prompt` and `call` start what the hooks of Claude Code start, with the input that it gives them. Each outcome
# is checked, and another one ends the script with an error. All of it happens in a temporary directory.
set -euo pipefail

# shellcheck source=scripts/demo-lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/demo-lib.sh"

# show COMMAND...: shows a command and runs it.
show() {
    printf '%s$ %s%s\n' "$bold" "$*" "$plain"
    "$@"
}

# hook EVENT [FIELDS]: what the client does at an event, with more fields of its input.
hook() {
    printf '{"session_id":"7c1e4f52-demo","transcript_path":"/dev/null","cwd":"%s","hook_event_name":"%s"%s}' \
        "$PWD" "$1" "${2:+,$2}" | ic hook claude-code "$1" >/dev/null
}

# prompt TEXT COMMAND: a prompt, and the shell command that the agent answers it with.
calls=0
prompt() {
    local call
    printf '%s> %s%s\n  ran: %s\n' "$bold" "$1" "$plain" "$2"
    call="\"tool_name\":\"Bash\",\"tool_use_id\":\"call-$((calls += 1))\",\"tool_input\":{\"command\":\"${2//\"/\\\"}\"}"
    hook UserPromptSubmit "\"prompt\":\"$1\""
    hook PreToolUse "$call"
    eval "$2"
    hook PostToolUse "$call,\"tool_response\":{\"stdout\":\"\",\"stderr\":\"\",\"interrupted\":false}"
    hook Stop '"stop_hook_active":false'
}

find_ic
enter_room
git init -q -b main
printf 'green tea 4\nblack tea 3\n' >prices
printf 'cat prices\n' >menu.sh
git add .
git commit -qm 'A shop'

chapter 'A shop in git, and the hooks of your coding agent'
show ic install claude-code

chapter 'Three prompts'
hook SessionStart '"source":"startup"'
prompt 'sell coffee, too' "echo 'coffee 5' >> prices"
prompt 'say when we are open' "echo 'opens at 9' > hours && git add . && git commit -qm 'Hours and coffee'"
prompt 'tidy up' "rm menu.sh && grep green prices > new && mv new prices && git commit -qam 'Tidy up'"

chapter 'Then you write something yourself, in a file that the agent changed'
mine="echo 'cake 6' | cat - prices > new && mv new prices"
printf '%s$ %s%s\n' "$bold" "$mine" "$plain"
eval "$mine"

chapter 'What happened, and what the last prompt did'
show ic log
show ic show @

chapter 'Take it out. Your cake stays'
show ic undo --yes
show cat prices
has prices $'cake 6\ngreen tea 4\nblack tea 3\ncoffee 5'
has menu.sh 'cat prices'
has hours 'opens at 9'

printf '\nThe same in the browser: ic ui. More of it: scripts/demo-sprint.sh, scripts/demo-agents.sh\n'
