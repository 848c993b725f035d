#!/usr/bin/env bash
# Makes a project with a story for the page of `ic ui`: a run that went wrong and was undone, dispatches at the same time, and
# two sessions of an agent.
#
#     scripts/ui/story.sh IC DIRECTORY
#
# The directory must not exist. The last line printed is the id of that run.
set -euo pipefail

ic=$(realpath -- "$1")
root=$2
mkdir -p -- "$root/shop"
cd -- "$root/shop"
export HOME=$root GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com
unset IC_DB IC_RUN IC_DISPATCH IC_SESSION IC_CONFIG

quietly() {
    "$@" >/dev/null
}

commit() {
    git add -A
    git commit -q -m "$1"
}

# work NAME AGENT COMMAND: a dispatch that runs the command and is completed.
work() {
    local id
    id=$("$ic" dispatch create "$run" --name "$1" --agent-type "$2")
    quietly "$ic" dispatch start "$id"
    eval "$3"
    quietly "$ic" dispatch tokens "$id" --in 18400 --out 5200 --cache 61000
    quietly "$ic" dispatch complete "$id" --summary "$1: done"
    printf '%s' "$id"
}

git init -q -b main .
printf '# A shop\n\nGreen tea, black tea.\n' >README.md
mkdir -p src
printf 'fn main() {\n    let items = ["green tea", "black tea"];\n    for item in items {\n        println!("{item}");\n    }\n}\n' >src/main.rs
printf 'green tea,4\nblack tea,3\n' >prices.csv
commit 'A shop'
quietly "$ic" init

# A session with prompts and tool calls, as an agent's hooks report it.
tell() {
    printf '%s' "$2" | jq -c --arg cwd "$PWD" '. + {session_id: "5d1f0c1e-aaaa-4bbb-8ccc-0123456789ab", cwd: $cwd, transcript_path: "/nowhere/t.jsonl", permission_mode: "default"}' \
        | quietly "$ic" hook claude-code "$1"
}
prompt() {
    tell UserPromptSubmit "$(jq -n --arg id "$1" --arg text "$2" '{hook_event_name: "UserPromptSubmit", prompt_id: $id, prompt: $text}')"
}
# writes PATH TEXT
writes() {
    local call
    call=$(jq -n --arg path "$PWD/$1" --arg text "$2" --arg id "call-$RANDOM$RANDOM" \
        '{tool_name: "Write", tool_use_id: $id, tool_input: {file_path: $path, content: $text}}')
    tell PreToolUse "$call"
    printf '%b' "$2" >"$1"
    tell PostToolUse "$call"
}
tell SessionStart '{"hook_event_name": "SessionStart", "source": "startup"}'
prompt p-1 'Add a page that lists all teas with their prices'
writes src/list.rs 'pub fn list() -> Vec<(&'"'"'static str, f64)> {\n    vec![("green tea", 4.76), ("black tea", 3.57)]\n}\n'
tell Stop '{"hook_event_name": "Stop"}'
prompt p-2 'Make the prices red when they went up'
writes src/colour.rs 'pub const RED: &str = "#c00";\n'
writes src/list.rs 'pub fn list() -> Vec<(&'"'"'static str, f64, bool)> {\n    vec![("green tea", 4.76, true), ("black tea", 3.57, true)]\n}\n'
tell Stop '{"hook_event_name": "Stop"}'

# A completed run.
second=$("$ic" run create --goal 'Translate the shop into Chinese' --phases draft,done)
run=$second
quietly work 'Words of the menu' claude-code 'printf "綠茶\n紅茶\n" >menu.zh'
quietly "$ic" run artifact add "$second" --path menu.zh
quietly "$ic" run advance "$second"

# A run in three phases, with an attempt that went wrong.
run=$("$ic" run create --goal 'Let customers pay by card' --phases plan,build,review,done)
quietly work 'Write the plan' claude-code 'printf "1. A form for the card\n2. A receipt\n3. A test with a stolen card\n" >PLAN.md; commit "A plan"'
quietly "$ic" run artifact add "$run" --path PLAN.md
quietly "$ic" run advance "$run"
quietly work 'Card form' codex 'printf "pub fn pay(card: &str, cents: u64) -> bool {\n    !card.is_empty() && cents > 0\n}\n" >src/card.rs; sed -i "1i mod card;\n" src/main.rs; commit "A form for cards"'
quietly work 'Keep the card numbers' codex 'printf "4111 1111 1111 1111\n5500 0000 0000 0004\n" >cards.txt; sed -i "s/black tea,3/black tea,30/" prices.csv; rm README.md; commit "Remember cards"'
quietly "$ic" run advance "$run" --skip-gate 2>/dev/null || quietly "$ic" gate override "$run" --reason 'shown in a demo' || true
quietly "$ic" undo phase:plan --run "$run" --reason 'card numbers in the repository' --yes
quietly work 'Card form, by a provider' claude-code 'printf "pub fn pay(token: &str, cents: u64) -> Result<Receipt, Refused> {\n    let charge = provider::charge(token, cents)?;\n    Ok(Receipt::of(charge))\n}\n" >src/card.rs; sed -i "1i mod card;\n" src/main.rs; commit "Cards by a provider"'
left=$("$ic" dispatch create "$run" --name 'Receipts' --agent-type codex)
quietly "$ic" dispatch start "$left"
printf 'pub struct Receipt {\n    pub cents: u64,\n}\n' >src/receipt.rs
quietly work 'Prices with tax' gemini 'printf "green tea,4.76\nblack tea,3.57\n" >prices.csv'
quietly "$ic" checkpoint create --run "$run" --message 'before the review'
printf '%s\n' "$run"
