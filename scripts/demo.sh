#!/usr/bin/env bash
# A sprint in a real git repository that goes wrong, is taken back and then reaches its end:
#
#     bash scripts/demo.sh                  builds ic first
#     IC_BIN=path/to/ic bash scripts/demo.sh
#
# Every command shown is really run and its outcome checked; the exit status is not 0 if one is not
# as expected. All of it happens in a temporary directory, with nothing of the user's settings.

# The toy project's programs, and the command for git revert, stand in single quotes.
# shellcheck disable=SC2016
set -euo pipefail

step='getting ready'
source_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
room=

finish() {
    local status=$?
    [[ -z $room ]] || rm -rf -- "$room"
    if [[ $status -ne 0 ]]; then
        printf '\ndemo: failed at "%s"\n' "$step" >&2
    fi
}
trap finish EXIT

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

# What the demonstration is made of ---------------------------------------------------------------

fail() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

chapter() {
    step=$1
    printf '\n%s%s%s\n' "$bold" "$1" "$plain"
}

say() {
    printf '\n%s\n' "$*"
}

# quoted WORD...: the words as one would type them.
quoted() {
    local word line=
    for word in "$@"; do
        case $word in
        '' | *[!A-Za-z0-9_./:=@%+,-]*) word="'${word//\'/\'\\\'\'}'" ;;
        esac
        line+=" $word"
    done
    printf '%s' "${line# }"
}

# expect STATUS COMMAND...: show it, run it, and insist on its exit status. `out` is its stdout.
expect() {
    local expected=$1 status=0
    shift
    printf '%s$ %s%s\n' "$bold" "$(quoted "$@")" "$plain"
    "$@" >"$room/out" 2>"$room/err" || status=$?
    out=$(<"$room/out")
    printf '%s' "$dim"
    sed 's/^/  /' "$room/out" "$room/err"
    [[ $status -eq 0 ]] || printf '  (exit %d)\n' "$status"
    printf '%s' "$plain"
    [[ $status -eq $expected ]] || fail "expected exit $expected, not $status, from: $(quoted "$@")"
}

run() {
    expect 0 "$@"
}

# json COMMAND...: its answer as JSON, not shown.
json() {
    IC_FORMAT=json "$@"
}

# check WHAT EXPECTED FOUND
check() {
    [[ $2 == "$3" ]] || fail "$1: expected $2, found $3"
}

phase_is() {
    check 'the phase' "$1" "$(ic run phase "$sprint")"
}

commit() {
    git add -A
    git commit -q -m "$1"
}

# document FILE TEXT: a document of the toy project, committed.
document() {
    printf '%s\n' "$2" >"$1"
    commit "Write $1"
}

# write_price_sh RULE: the toy project's one program, with a line that changes the total.
write_price_sh() {
    cat >price.sh <<TOY
# price.sh CENTS...: what these items cost together.
total=0
for cents in "\$@"; do total=\$((total + cents)); done
$1
echo "\$total"
TOY
}

# What it needs -----------------------------------------------------------------------------------

needs() {
    local program missing=
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=" $program"
    done
    [[ -z $missing ]] || fail "please install:$missing"
}

needs git jq
if [[ -n ${IC_BIN:-} ]]; then
    [[ -x $IC_BIN && ! -d $IC_BIN ]] || fail "IC_BIN names no program: $IC_BIN"
    ic_program=$(cd -- "$(dirname -- "$IC_BIN")" && pwd)/$(basename -- "$IC_BIN")
else
    needs cargo "${CC:-cc}"
    printf 'Building ic; the first time takes a minute or two.\n'
    cd -- "$source_dir"
    log=$(mktemp)
    if ! cargo build --profile release-dev -p ic --locked >"$log" 2>&1; then
        cat -- "$log" >&2
        rm -f -- "$log"
        fail 'cargo build failed'
    fi
    rm -f -- "$log"
    ic_program=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)/release-dev/ic
fi

for variable in $(compgen -e); do
    case $variable in
    IC_* | INTERCORE_* | GIT_*) unset "$variable" ;;
    esac
done
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Demo GIT_AUTHOR_EMAIL=demo@example.org
export GIT_COMMITTER_NAME=Demo GIT_COMMITTER_EMAIL=demo@example.org
# For people to read. What the demonstration itself reads, it asks for as JSON.
export IC_FORMAT=text

room=$(mktemp -d)
mkdir "$room/bin" "$room/shop"
ln -s "$ic_program" "$room/bin/ic"
export PATH="$room/bin:$PATH"
cd "$room/shop"

# shellcheck source=scripts/lib-intercore.sh
source "$source_dir/scripts/lib-intercore.sh"

# The trackers that the sprint's owner keeps; sprint_rollback tells them.
phase_set() {
    printf '%s is at %s: %s\n' "$@" >"$room/tracker"
}
checkpoint_clear() {
    rm -f -- "$room/resume-here"
}

# -------------------------------------------------------------------------------------------------
chapter 'A shop, and a sprint'

git init -q -b main
write_price_sh ''
cat >check.sh <<'TOY'
found=$(bash price.sh 100 250)
[ "$found" = 350 ] || { echo "FAIL: 100 and 250 cost 350, not $found"; exit 1; }
echo 'all prices are right'
TOY
mkdir docs
commit 'A shop'

say 'A git repository with a price calculator and a test that passes.'
run bash check.sh
run ic init
say 'The run goes through nine phases. The shell library is what hooks would call.'
run intercore_run_create 'Ten percent off from ten euros' --scope-id shop-7
sprint=$out
touch "$room/resume-here"
run intercore_run_phase @

# -------------------------------------------------------------------------------------------------
chapter 'Gates hold until there is something to show'

say 'Nothing was written yet, so the gate does not open. Exit 1 is an expected no.'
expect 1 intercore_run_advance @
phase_is brainstorm

say 'Each phase up to the plan must leave a document.'
document docs/ideas.md 'Discounts make people buy more.'
run intercore_run_artifact_add @ docs/ideas.md
run intercore_run_advance @
phase_is brainstorm-reviewed

document docs/ideas-review.md 'Yes, but only on large purchases.'
run intercore_run_artifact_add @ docs/ideas-review.md
run intercore_run_advance @
document docs/strategy.md 'One rule, in price.sh, with a test.'
run intercore_run_artifact_add @ docs/strategy.md
run intercore_run_advance @
document docs/plan.md 'Take 10 off every total.'
run intercore_run_artifact_add @ docs/plan.md
phase_is planned
planned=$(git rev-parse HEAD)
run intercore_run_advance @
phase_is executing

# -------------------------------------------------------------------------------------------------
chapter 'Work is handed out'

say 'A dispatch is one piece of work; an agent does it and commits to git.'
run ic dispatch create @ --name discount --agent-type claude
discount=$out
run ic dispatch start "${discount: -8}"
run intercore_run_agent_add @ claude discounter --dispatch "${discount: -8}"
base=$(git rev-parse HEAD)

write_price_sh 'total=$((total - 10))'
commit 'Take 10 off'
printf '| from | off |\n|---|---|\n| 0 | 10 |\n' >'docs/price list für alle.md'
commit 'Publish the discount'

say 'What it did is read from git: commits and files, whatever their names.'
run intercore_dispatch_record_git "${discount: -8}" "$base"
say 'It says of itself that all is well.'
run ic dispatch complete "${discount: -8}" --summary 'as planned' --verdict pass

say 'A second one is still at work.'
run ic dispatch create @ --name receipts --agent-type codex
receipts=$out
run ic dispatch start "${receipts: -8}"
run intercore_run_agent_add @ codex printer --dispatch "${receipts: -8}"
receipts_base=$(git rev-parse HEAD)

# -------------------------------------------------------------------------------------------------
chapter 'It is broken'

expect 1 bash check.sh
say 'The plan was wrong, not the work. First look at what going back would mean; nothing changes.'
run ic run rollback @ --to-phase planned --dry-run
phase_is executing
dry=$(json intercore_run_rollback_dry @ planned)

say 'Then go back. Two trackers of the sprint are told; the run is named by its scope.'
printf '%s$ %s%s\n' "$bold" "$(quoted sprint_rollback shop-7 planned 'the plan was wrong')" "$plain"
real=$(json sprint_rollback shop-7 planned 'the plan was wrong')
jq -r '"  \(.from_phase) -> \(.to_phase), plan \(.plan_hash)",
    (.cancelled_dispatches[] | "  cancelled: dispatch \(.name), was \(.status)"),
    (.marked_dispatches[] | "  marked: dispatch \(.name), \(.status)"),
    (.failed_agents[] | "  failed: agent \(.name)")' <<<"$real"
phase_is planned
run cat "$room/tracker"
check 'the tracker' 'shop-7 is at planned: Rolled back: the plan was wrong' "$(<"$room/tracker")"
[[ ! -e $room/resume-here ]] || fail 'checkpoint_clear was not called'

say 'The preview was the plan: same hash, same ids, same counts.'
what='{from_phase, to_phase, cut_seq, plan_hash, rolled_back_phases, cancelled_dispatches,
    marked_dispatches, marked_artifacts, failed_agents, cleared_skips, counts}'
check 'the dry run' "$(jq -S "$what" <<<"$real")" "$(jq -S "$what" <<<"$dry")"
check 'cancelled dispatches' "$receipts" "$(jq -r '.cancelled_dispatches[].id' <<<"$real")"
check 'finished dispatches' "$discount" "$(jq -r '.marked_dispatches[].id' <<<"$real")"

# -------------------------------------------------------------------------------------------------
chapter 'Late work is refused, and remembered'

say 'The second agent did not notice. Its report counts for nothing any more ...'
printf 'Thank you. You saved 10.\n' >receipt.txt
commit 'Print the saving'
expect 1 ic dispatch complete "${receipts: -8}" --summary 'done' --verdict pass
check 'the error' stale_dispatch \
    "$(json ic dispatch complete "$receipts" --verdict pass 2>&1 >/dev/null | jq -r .error.code || :)"
say '... but its commit is recorded, as late: whoever reverts must know it.'
run intercore_dispatch_record_git "${receipts: -8}" "$receipts_base"

# -------------------------------------------------------------------------------------------------
chapter 'The code goes back, too'

say 'Which commits came after the plan, newest first? ic answers; it never runs git.'
run ic run rollback @ --layer=code --to-phase=planned --format=text
plan=$(json ic run rollback @ --layer=code --to-phase=planned --format=json)
check 'the late dispatch' "$receipts" "$(jq -r '.entries[] | select(.late) | .dispatch_id' <<<"$plan")"
check 'the plan' "$(git rev-list "$planned..HEAD")" "$(jq -r '.revert_order[]' <<<"$plan")"
revert="git revert --no-edit \$(ic run rollback @ --layer=code --to-phase=planned --format=json | jq -r '.revert_order[]')"
printf '%s$ %s%s\n' "$bold" "$revert" "$plain"
eval "$revert" >"$room/out"
run git log --oneline -4
run git diff --stat "$planned" HEAD
check 'the tree' '' "$out"
run bash check.sh

# -------------------------------------------------------------------------------------------------
chapter 'Once more, with a better plan'

document docs/plan.md 'From 1000 cents on, take a tenth off. Test it.'
run intercore_run_artifact_add @ docs/plan.md
run intercore_run_advance @
phase_is executing

run ic dispatch create @ --name discount-2 --agent-type claude
second=$out
run ic dispatch start "${second: -8}"
run intercore_run_agent_add @ claude discounter-2 --dispatch "${second: -8}"
agent=$out
base=$(git rev-parse HEAD)
cat >>check.sh <<'TOY'
found=$(bash price.sh 1000 1000)
[ "$found" = 1800 ] || { echo "FAIL: 1000 and 1000 cost 1800, not $found"; exit 1; }
TOY
write_price_sh '[ "$total" -lt 1000 ] || total=$((total - total / 10))'
commit 'A tenth off from 1000 on'
run bash check.sh
run intercore_dispatch_record_git "${second: -8}" "$base"
run ic dispatch complete "${second: -8}" --summary 'with a test'

say 'Its agent is still active, and the gate to review asks for that.'
expect 1 intercore_gate_check @
run ic run agent update "${agent: -8}" --status completed
run intercore_run_advance @
phase_is review

say 'The pass from before the rollback satisfies no gate now: a new verdict is needed.'
expect 1 intercore_run_advance @
run ic dispatch create @ --name reviewer --agent-type gemini
reviewer=$out
run ic dispatch start "${reviewer: -8}"
run ic dispatch complete "${reviewer: -8}" --summary 'read and tried' --verdict pass
run intercore_run_advance @
phase_is polish
run intercore_run_advance @
document docs/reflection.md 'Write the test into the plan.'
run intercore_run_artifact_add @ docs/reflection.md
run intercore_run_advance @
phase_is 'done'
check 'the status' completed "$(ic run status "$sprint" --json | jq -r .status)"

# -------------------------------------------------------------------------------------------------
chapter 'Nothing was erased'

say 'Every step is still there, also those that were taken back.'
timeline=$(ic run events "$sprint" --json | jq -r '.[]
    | select(.source == "phase" or .source == "rollback") | select(.to != null)
    | "  \(.seq)\t\(.type)\t\(.from // "") -> \(.to)\(if .rolled_back then "  (rolled back)" else "" end)"')
printf '%s\n' "$timeline"
[[ $timeline == *'planned -> executing  (rolled back)'* ]] || fail 'the first attempt is not marked as rolled back'
say 'And the chain of events is whole.'
run ic events verify

step=end
printf '\n%sThe sprint went wrong, went back, and is done.%s\n' "$bold" "$plain"
