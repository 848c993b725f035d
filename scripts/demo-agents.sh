#!/usr/bin/env bash
# Several agents, one project: best of three in forks, compared, one adopted, undone, another adopted; then two agents in one tree, and one
# of them is undone alone:
#
#     bash scripts/demo-agents.sh                    builds ic first
#     IC_BIN=path/to/ic bash scripts/demo-agents.sh
#     CLIENTS=target/clients bash scripts/demo-agents.sh     with the coding agents there, as scripts/test-clients.sh installs them
#
# With CLIENTS the three are Claude Code, OpenCode and Copilot with a scripted model and without a network; otherwise shell scripts play them.
# Every command that is shown is run, and its outcome is checked; the script exits with another status than 0 if one is not as expected. All
# of it happens in a temporary directory, without the user's settings.
set -euo pipefail

# shellcheck source=scripts/demo-lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/demo-lib.sh"

# run COMMAND...: shows it and runs it.
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

needs jq
find_ic
clients=${CLIENTS:+$(realpath -- "$CLIENTS")}
enter_room
git init -q -b main
printf 'hello\n' >greeting.txt
git add -A
git commit -qm 'A shop'
printf 'a note of mine\n' >notes.txt

# agent NUMBER: the command of an agent that writes its own greeting, in `agent`.
if [[ -n $clients ]]; then
    python3 "$source_dir/tests/clients/agents.py" "$clients" "$room" >"$room/model.log" 2>&1 &
    model=$!
    trap 'kill "$model" 2>/dev/null || :; finish' EXIT
    for _ in {1..100}; do
        [[ ! -s $room/agents.sh ]] || break
        sleep 0.1
    done
    # shellcheck disable=SC1091
    source "$room/agents.sh" || fail "the model does not answer: $(cat -- "$room/model.log")"
else
    agent() {
        agent=(sh -c "sleep 0.2; echo 'greeting $1' > greeting.txt; echo 'by $1' > by-$1.txt")
    }
fi

chapter 'Three agents try the same change, each in a fork'
run ic init
for number in 1 2 3; do
    agent "$number"
    run ic exec --isolate="$number" --name "agent $number" --detach -- "${agent[@]}"
done
run ic wait
run ic compare
has greeting.txt hello
for number in 1 2 3; do
    has "../shop.forks/$number/greeting.txt" "greeting $number"
    has "../shop.forks/$number/notes.txt" 'a note of mine'
done

chapter 'One is adopted, undone, and another one is adopted'
run ic adopt 2
has greeting.txt 'greeting 2'
run ic undo --yes
has greeting.txt hello
[[ ! -e by-2.txt ]] || fail 'by-2.txt is still here'
run ic adopt 3
has greeting.txt 'greeting 3'
has by-3.txt 'by 3'
has notes.txt 'a note of mine'
for number in 1 2 3; do
    run ic drop "$number" --force
done
[[ ! -e ../shop.forks ]] || fail 'the forks are still there'

chapter 'Two agents in one tree; one of them is undone alone'
run ic exec --name first --detach -- sh -c 'sleep 0.3; echo one > first.txt; sleep 0.3'
run ic exec --name second --detach -- sh -c 'sleep 0.3; echo two > second.txt; sleep 0.3'
run ic wait
has first.txt one
has second.txt two
first=$(ic dispatch list --json | jq -r '.[] | select(.name == "first") | .short_id')
run ic undo "$first" --only --yes
[[ ! -e first.txt ]] || fail 'first.txt is still here'
has second.txt two
has greeting.txt 'greeting 3'

chapter 'What happened here'
run ic log
run ic events verify
printf '\ndone\n'
