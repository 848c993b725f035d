#!/usr/bin/env bash
# Three stories in a real git repository. A sprint goes wrong, is rolled back, and then reaches its end. A workflow
# fails after it started a server, committed, and made something outside. A run is undone with its files, its
# commits, its rows in a database and its effects, and redone:
#
#     bash scripts/demo-sprint.sh                  builds ic first
#     IC_BIN=path/to/ic bash scripts/demo-sprint.sh
#
# NOTEBOOK_BIN names the built example `notebook` of ic-rewind, if it is built already.
#
# The script runs every command that it shows and checks its outcome; it exits with another status than 0 if an outcome is
# not as expected. All of it happens in a temporary directory, without the user's settings.

# The lines of shell to be shown, and the toy project's programs, are in single quotes.
# shellcheck disable=SC2016
set -euo pipefail

# shellcheck source=scripts/demo-lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/demo-lib.sh"

# say LINE...
say() {
    printf '\n'
    printf '%s\n' "$@"
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

# perform STATUS SHOWN COMMAND...: show it, run it, and insist on its exit status. `out` is its stdout.
perform() {
    local expected=$1 shown=$2 status=0
    shift 2
    printf '%s$ %s%s\n' "$bold" "$shown" "$plain"
    "$@" >"$room/out" 2>"$room/err" || status=$?
    out=$(<"$room/out")
    printf '%s' "$dim"
    sed 's/^./  &/; s/ *$//' "$room/out" "$room/err"
    [[ $status -eq 0 ]] || printf '  (exit %d)\n' "$status"
    printf '%s' "$plain"
    [[ $status -eq $expected ]] || fail "expected exit $expected, not $status, from: $shown"
}

expect() {
    perform "$1" "$(quoted "${@:2}")" "${@:2}"
}

run() {
    expect 0 "$@"
}

# line TEXT: shows and runs a line of shell.
line() {
    perform 0 "$1" eval "$1"
}

# json COMMAND...: prints its answer as JSON; neither is shown.
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
    line "git add -A && git commit -q -m '$1'"
}

# here: the short id of the commit that is checked out.
here() {
    git rev-parse --short HEAD
}

# What it needs -----------------------------------------------------------------------------------

needs jq
find_ic
# The application whose rows are rolled back: an example of this workspace.
if [[ -n ${NOTEBOOK_BIN:-} ]]; then
    [[ -x $NOTEBOOK_BIN && ! -d $NOTEBOOK_BIN ]] || fail "NOTEBOOK_BIN names no program: $NOTEBOOK_BIN"
    notebook=$(realpath -- "$NOTEBOOK_BIN")
else
    notebook=$(build -p ic-rewind --example notebook)/examples/notebook
fi

enter_room
ln -s "$notebook" "$room/bin/notebook"

# shellcheck source=scripts/lib-intercore.sh
source "$source_dir/scripts/lib-intercore.sh"

# The trackers of the sprint's owner, which sprint_rollback calls.
phase_set() {
    printf '%s is at %s: %s\n' "$@" >"$room/tracker"
}
checkpoint_clear() {
    rm -f -- "$room/resume-here"
}

# -------------------------------------------------------------------------------------------------
chapter 'A shop, and a sprint'

cat >total.sh <<'TOY'
# total.sh CENTS...: what these items cost together.
total=0
for cents in "$@"; do total=$((total + cents)); done
. ./discount.sh
echo "$total"
TOY
cat >check.sh <<'TOY'
# check.sh: is every line of prices.txt true? A total, and the items.
while read -r total items; do
    found=$(bash total.sh $items)
    [ "$found" = "$total" ] || { echo "FAIL: $items cost $total, not $found"; exit 1; }
done <prices.txt
echo 'all prices are right'
TOY
printf '# no discount yet\n' >discount.sh
printf '350 100 250\n' >prices.txt
mkdir docs
git init -q -b main
git add -A
git commit -q -m 'A shop'

say 'A git repository with a price calculator and a test that passes.'
run ls
run bash check.sh

say 'The ledger is beside git, and a run in it goes through nine phases.' \
    'The functions intercore_* are the shell library, which hooks would call.'
run ic init
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
line "echo 'Discounts make people buy more.' >docs/ideas.md"
run intercore_run_artifact_add @ docs/ideas.md
run intercore_run_advance @
phase_is brainstorm-reviewed
line "echo 'Yes, but only on large purchases.' >docs/review.md"
run intercore_run_artifact_add @ docs/review.md
run intercore_run_advance @
line "echo 'One rule, in discount.sh, with a test.' >docs/strategy.md"
run intercore_run_artifact_add @ docs/strategy.md
run intercore_run_advance @
line "echo 'Take 10 off every total.' >docs/plan.md"
run intercore_run_artifact_add @ docs/plan.md
phase_is planned
commit 'The plan'
planned=$(here)
run intercore_run_advance @
phase_is executing

# -------------------------------------------------------------------------------------------------
chapter 'Work is handed out'

say 'A dispatch is one piece of work; an agent does it and commits to git.'
run ic dispatch create @ --name discount --agent-type claude
discount=$out
run ic dispatch start "${discount: -8}"
run intercore_run_agent_add @ claude discounter --dispatch "${discount: -8}"
line "echo 'total=\$((total - 10))' >discount.sh"
commit 'Take 10 off'
line "echo 'Every purchase: 10 off' >'docs/für alle.md'"
commit 'Publish the discount'

say 'What it did is read from git: commits and files, whatever their names.'
run intercore_dispatch_record_git "${discount: -8}" "$planned"
check 'the files' '["discount.sh","docs/für alle.md"]' "$(json ic run rollback @ --layer=code |
    jq -c '[.entries[].file_paths[]] | sort')"
say 'It says of itself that all is well.'
run ic dispatch complete "${discount: -8}" --summary 'as planned' --verdict pass

say 'A second agent still works.'
run ic dispatch create @ --name receipts --agent-type codex
receipts=$out
run ic dispatch start "${receipts: -8}"
run intercore_run_agent_add @ codex printer --dispatch "${receipts: -8}"
receipts_base=$(here)

# -------------------------------------------------------------------------------------------------
chapter 'It is broken'

expect 1 bash check.sh
say 'The plan was wrong, not the work. First look at what going back would mean.'
run ic run rollback @ --to-phase planned --dry-run
phase_is executing
preview=$(json intercore_run_rollback_dry @ planned)

say 'Then go back. The sprint is named by its scope, and its own tracker is told.'
run sprint_rollback shop-7 planned 'the plan was wrong'
phase_is planned
run cat ../tracker
check 'the tracker' 'shop-7 is at planned: Rolled back: the plan was wrong' "$out"
[[ ! -e $room/resume-here ]] || fail 'checkpoint_clear was not called'

say 'The preview was the plan: the same hash, and exactly the dispatches it named.'
line "ic run events @ --json | jq -r '.[] | select(.kind == \"rollback\") | .payload.plan_hash'"
check 'the plan' "$(jq -r .plan_hash <<<"$preview")" "$out"
check 'the dispatches' "$(jq -r '.cancelled_dispatches[].id, .marked_dispatches[].id' <<<"$preview" | sort)" \
    "$(ic dispatch list @ --json | jq -r '.[] | select(.rolled_back_by) | .id' | sort)"
check 'the cancelled dispatch' cancelled "$(ic dispatch show "$receipts" --json | jq -r .status)"
check 'the finished dispatch' completed "$(ic dispatch show "$discount" --json | jq -r .status)"

# -------------------------------------------------------------------------------------------------
chapter 'Late work is refused, and remembered'

say 'The second agent did not notice, and continues.'
line "echo 'You saved 10.' >receipt.txt"
commit 'Print the saving'
say 'Its report counts for nothing any more ...'
expect 1 ic dispatch complete "${receipts: -8}" --summary printed --verdict pass
check 'the error' stale_dispatch \
    "$(json ic dispatch complete "$receipts" --verdict pass 2>&1 >/dev/null | jq -r .error.code || :)"
say '... but its commit is recorded, as late: a revert must include it.'
run intercore_dispatch_record_git "${receipts: -8}" "$receipts_base"

# -------------------------------------------------------------------------------------------------
chapter 'The code goes back, too'

say 'Which commits came after the plan, newest first? ic answers; it never runs git.'
run ic run rollback @ --layer=code --to-phase planned
report=$(json ic run rollback @ --layer=code --to-phase planned)
check 'the late dispatch' "$receipts" "$(jq -r '.entries[] | select(.late) | .dispatch_id' <<<"$report")"
check 'the commits' "$(git rev-list "$planned..HEAD")" "$(jq -r '.revert_order[]' <<<"$report")"
line "ic run rollback @ --layer=code --to-phase planned --json |
    jq -r '.revert_order[]' | xargs git revert --no-edit >/dev/null"
run git log --oneline -4
say 'Nothing differs from the plan now.'
run git diff --stat "$planned" HEAD
check 'the difference' '' "$out"
run bash check.sh

# -------------------------------------------------------------------------------------------------
chapter 'Once more, with a better plan'

line "echo 'From 1000 cents on, a tenth off. Test it.' >docs/plan.md"
run intercore_run_artifact_add @ docs/plan.md
commit 'A better plan'
better=$(here)
run intercore_run_advance @
phase_is executing

run ic dispatch create @ --name discount-2 --agent-type claude
second=$out
run ic dispatch start "${second: -8}"
run intercore_run_agent_add @ claude discounter-2 --dispatch "${second: -8}"
agent=$out
line "echo '1800 1000 1000' >>prices.txt"
line "echo '[ \$total -lt 1000 ] || total=\$((total - total / 10))' >discount.sh"
commit 'A tenth off from 1000 on'
run bash check.sh
run intercore_dispatch_record_git "${second: -8}" "$better"
run ic dispatch complete "${second: -8}" --summary 'with a test'

say 'Its agent is still active, so the gate to review does not hold.'
expect 1 intercore_gate_check @
run ic run agent update "${agent: -8}" --status completed
run intercore_run_advance @
phase_is review

say 'The pass from before the rollback satisfies no gate: a new verdict is needed.'
expect 1 intercore_run_advance @
run ic dispatch create @ --name reviewer --agent-type gemini
reviewer=$out
run ic dispatch start "${reviewer: -8}"
run ic dispatch complete "${reviewer: -8}" --summary 'read and tried' --verdict pass
run intercore_run_advance @
phase_is polish
run intercore_run_advance @
line "echo 'Write the test into the plan.' >docs/reflection.md"
run intercore_run_artifact_add @ docs/reflection.md
run intercore_run_advance @
phase_is 'done'
check 'the status' completed "$(ic run status "$sprint" --json | jq -r .status)"

# -------------------------------------------------------------------------------------------------
chapter 'Nothing was erased'

say 'Every step is still there, also the one that was rolled back. @ is the active run;' \
    'this one is over, so it is named by its last digits.'
line "ic run events ${sprint: -8} | grep -E ' (advance|block|rollback) ' | cut -c4-8,35-"
check 'what was rolled back' '["planned->executing"]' "$(ic run events "$sprint" --json |
    jq -c '[.[] | select(.rolled_back_by) | "\(.from)->\(.to)"]')"
say 'And the chain of events is whole.'
run ic events verify

# -------------------------------------------------------------------------------------------------
chapter 'A workflow that fails half way'

say 'A workflow declares what undoes each step. This one starts a server, commits a change, rents' \
    'a machine (a line in a database outside of the repository), and then its last step fails.'
cat >"$room/cloud.sh" <<'CLOUD'
#!/bin/sh
# cloud.sh rent KEY | return KEY | count: machines, in a database of their own.
set -eu
db=$(dirname -- "$0")/cloud.db
case $1 in
rent) sql="INSERT INTO machines VALUES ('$2');" ;;
return) sql="DELETE FROM machines WHERE key = '$2';" ;;
count) sql='SELECT count(*) FROM machines;' ;;
esac
sql="CREATE TABLE IF NOT EXISTS machines (key TEXT); $sql"
if command -v sqlite3 >/dev/null; then
    exec sqlite3 "$db" "$sql"
fi
exec python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for statement in sys.argv[2].split(";")[:-1]:
    for row in db.execute(statement): print(*row)
db.commit()' "$db" "$sql"
CLOUD
chmod +x "$room/cloud.sh"
cloud=$room/cloud.sh
export cloud
cat >release.yaml <<'YAML'
name: release
steps:
  - id: serve
    phase: staging
    run: "sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 & echo $! >server.pid"
    compensate: {kill-process: server.pid}
  - id: price-list
    needs: [serve]
    run: "echo '500 500' >>prices.txt && git add prices.txt && git commit -q -m 'A new price'"
    compensate: skip
  - id: rent
    needs: [price-list]
    phase: release
    run: '"$cloud" rent "$IC_IDEMPOTENCY_KEY"'
    compensate: {shell: '"$cloud" return "$IC_IDEMPOTENCY_KEY"'}
  - id: announce
    needs: [rent]
    run: "echo 'the mail server does not answer' >&2; exit 69"
    compensate: {skip: nothing was sent}
YAML
commit 'How we release'
line 'cat release.yaml'
run ic workflow validate release.yaml
before=$(here)
prices=$(cksum <prices.txt)

say 'On a terminal it shows its progress and asks: Step failed. Rollback? [Y/n]. Here there is no terminal.'
expect 1 ic workflow run release.yaml --on-failure rollback
check 'the status' rolled_back "$(json ic workflow show @ | jq -r .status)"

say 'The server is stopped, the machine is returned, the commit is gone from the branch, the tree is as it was.'
line '"$cloud" count'
check 'machines' 0 "$out"
check 'the commit' "$before" "$(here)"
check 'the prices' "$prices" "$(cksum <prices.txt)"
check 'the working tree' '' "$(git status --porcelain)"
release=$(json ic run current)
run ic compensation list "${release: -8}"
line "ic events tail --limit 14 | cut -c4-8,35-"

# -------------------------------------------------------------------------------------------------
chapter 'Everything back at once'

say 'Another run, whose agents keep their tasks in a database. After its plan it rents a machine, changes files' \
    'by shell, commits, and notes more tasks.'
run ic run cancel "${release: -8}"
run ic rewind init --profile devs
state=$(git rev-parse --absolute-git-dir)/ic/state.db
export state
commit 'What the agents remember'
before=$(here)
run ic run create --goal 'Free delivery' --phases planned,executing,review,done
everything=$out
line 'notebook "$state" add T-1 "Plan the delivery"'
run ic run advance "${everything: -8}"
run ic compensation add "${everything: -8}" --step machine --shell '"$cloud" return delivery'
line '"$cloud" rent delivery'
run ic dispatch create "${everything: -8}" --name delivery
worker=$out
run ic dispatch start "${worker: -8}"
line "printf 'free above 5000\n' >delivery.txt && mkdir -p zones && touch zones/north"
line 'notebook "$state" add T-2 "Draw the zones" "a map" "prices"'
line 'notebook "$state" list'
remembered=$out
commit 'Free delivery'
run intercore_dispatch_record_git "${worker: -8}" "$before"
run ic dispatch complete "${worker: -8}"
line "echo 'scribbled by a shell' >>prices.txt && rm -r zones"
run ic run advance "${everything: -8}"
after=$(here)

say 'One plan over state, effects, git, files and rows; then exactly that.'
run ic run rollback "${everything: -8}" --to-phase planned --layer=all --dry-run
plan=$(json ic run rollback "${everything: -8}" --to-phase planned --layer=all --dry-run | jq -r .plan_hash)
run ic run rollback "${everything: -8}" --to-phase planned --layer=all --reason 'too dear' --expect-plan "$plan" --yes
check 'the phase' planned "$(ic run phase "$everything")"
check 'the commit' "$before" "$(here)"
check 'the working tree' '' "$(git status --porcelain)"
line '"$cloud" count'
check 'machines' 0 "$out"
line 'notebook "$state" list'
check 'the tasks' 'T-1  Plan the delivery (0 needs)' "$out"

say 'And that can be undone, too: all but the machine, which is named.'
undo=$(json ic rollback list "$everything" | jq -r '.[0].id')
expect 1 ic redo "${undo: -8}" --yes
run ic redo "${undo: -8}" --without-effects --yes
check 'the phase' review "$(ic run phase "$everything")"
check 'the commit' "$after" "$(here)"
check 'the scribble' 'scribbled by a shell' "$(tail -n 1 prices.txt)"
line 'notebook "$state" list'
check 'the tasks' "$remembered" "$out"
run ic rollback list "${everything: -8}"
run ic run history "${everything: -8}"

step=end
printf '\n%sThe sprint went wrong, went back, and is done; the release and the delivery were undone completely.%s\n' "$bold" "$plain"
