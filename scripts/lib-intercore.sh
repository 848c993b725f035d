# shellcheck shell=bash
#
# Shell library over `ic`, for hooks and orchestration scripts. Bash 4 or later.
#
#     source scripts/lib-intercore.sh
#     if intercore_available; then run=$(intercore_run_create 'Add a discount'); fi
#
# Sourcing only defines functions; it is safe with and without `set -euo pipefail`.
# The program is `ic` on PATH, or the one that INTERCORE_BIN names.
#
# Arguments: those that a usage line names come first, in that order, with '' for an optional one that is left out.
# All further ones go to `ic` unchanged. A value that looks like an option (--dry-run, -v) is refused where the usage
# line names a value: a misplaced flag must never become a reason.
#
# Output is that of `ic`: text on a terminal, otherwise JSON or the bare id. Nothing is discarded.
# The ledger is that of the working directory, or IC_DB. Some functions call `ic` twice, so use IC_DB
# rather than a `--db` among the arguments.
#
# Exit codes are those of `ic`: 0 done, 1 an expected no, 2 failure, 3 usage or no such thing,
# 4 partly done; and 127, with one line on stderr, when `ic` is missing.

# _intercore ARG...: run ic.
_intercore() {
    "${INTERCORE_BIN:-ic}" "$@"
}

# _intercore_need COUNT USAGE [ARG...]: 127 without ic, 3 with fewer than COUNT arguments.
_intercore_need() {
    local count=$1 usage=$2 bin=${INTERCORE_BIN:-ic}
    shift 2
    if ! command -v -- "$bin" >/dev/null; then
        printf '%s: no program %s; put ic on PATH or set INTERCORE_BIN\n' "${FUNCNAME[1]}" "$bin" >&2
        return 127
    fi
    if [[ $# -lt $count ]]; then
        printf 'usage: %s %s\n' "${FUNCNAME[1]}" "$usage" >&2
        return 3
    fi
}

# _intercore_is_option TEXT: yes for --name, --name=value and -x.
_intercore_is_option() {
    local name=${1%%=*}
    case $name in
    -[A-Za-z]* | --[A-Za-z]*) ;;
    *) return 1 ;;
    esac
    case $name in
    *[!A-Za-z0-9_-]*) return 1 ;;
    esac
}

# _intercore_value NAME TEXT: 3 if TEXT is given for NAME but looks like an option.
_intercore_value() {
    if _intercore_is_option "$2"; then
        printf "%s: %s stands where %s belongs; give %s (or '') first, then options\n" \
            "${FUNCNAME[1]}" "$2" "$1" "$1" >&2
        return 3
    fi
}

# intercore_available: 0 if there is an ic and, for this directory, a ledger that it can use.
intercore_available() {
    local report status=0
    _intercore_need 0 '' || return
    report=$(_intercore health) || status=$?
    # The report is printed only for a damaged ledger: callers test the status, and their output must stay clean.
    [[ $status -eq 0 || -z $report ]] || printf '%s\n' "$report" >&2
    return "$status"
}

# intercore_run_create GOAL [ARG...]: print the id of a new run.
intercore_run_create() {
    _intercore_need 1 'GOAL [ARG...]' "$@" || return
    _intercore_value GOAL "$1" || return
    local goal=$1
    shift
    _intercore run create --goal="$goal" "$@"
}

# intercore_run_current [PROJECT] [ARG...]: print the id of the active run of a project directory.
intercore_run_current() {
    _intercore_need 0 '' || return
    local project=${1:-}
    [[ $# -eq 0 ]] || shift
    _intercore_value PROJECT "$project" || return
    _intercore run current ${project:+"--project=$project"} "$@"
}

# intercore_run_phase RUN [ARG...]: print the phase that a run is in.
intercore_run_phase() {
    _intercore_need 1 'RUN [ARG...]' "$@" || return
    local run=$1
    shift
    _intercore run phase "$@" -- "$run"
}

# intercore_run_advance RUN [ARG...]: one phase forward, unless another caller moves the run first.
intercore_run_advance() {
    _intercore_need 1 'RUN [ARG...]' "$@" || return
    if ! command -v jq >/dev/null; then
        printf '%s: no program jq; it reads the phase and epoch to expect\n' "${FUNCNAME[0]}" >&2
        return 127
    fi
    local run=$1 state
    shift
    state=$(_intercore run status --json -- "$run") || return
    # The id too: by the time of the advance, `@` may be another run.
    state=$(jq -r '"\(.id) \(.phase)@\(.epoch)"' <<<"$state") || return 2
    _intercore run advance --expect-phase="${state#* }" "$@" -- "${state%% *}"
}

# intercore_run_skip RUN PHASE REASON [ARG...]: mark a later phase as skipped.
intercore_run_skip() {
    _intercore_need 3 'RUN PHASE REASON [ARG...]' "$@" || return
    _intercore_value REASON "$3" || return
    local run=$1 phase=$2 reason=$3
    shift 3
    _intercore run skip --reason="$reason" "$@" -- "$run" "$phase"
}

# intercore_run_agent_add RUN TYPE [NAME] [ARG...]: print the id of a new agent of the run.
intercore_run_agent_add() {
    _intercore_need 2 'RUN TYPE [NAME] [ARG...]' "$@" || return
    local run=$1 type=$2 name=${3:-}
    shift 2
    [[ $# -eq 0 ]] || shift
    _intercore_value TYPE "$type" || return
    _intercore_value NAME "$name" || return
    _intercore run agent add --type="$type" ${name:+"--name=$name"} "$@" -- "$run"
}

# intercore_run_artifact_add RUN FILE [PHASE] [ARG...]: print the id of a new artifact of the run.
intercore_run_artifact_add() {
    _intercore_need 2 'RUN FILE [PHASE] [ARG...]' "$@" || return
    local run=$1 file=$2 phase=${3:-}
    shift 2
    [[ $# -eq 0 ]] || shift
    _intercore_value FILE "$file" || return
    _intercore_value PHASE "$phase" || return
    _intercore run artifact add --path="$file" ${phase:+"--phase=$phase"} "$@" -- "$run"
}

# intercore_run_rollback RUN PHASE [REASON] [ARG...]: take a run back to a phase.
intercore_run_rollback() {
    _intercore_need 2 'RUN PHASE [REASON] [ARG...]' "$@" || return
    local run=$1 phase=$2 reason=${3:-}
    shift 2
    [[ $# -eq 0 ]] || shift
    _intercore_value REASON "$reason" || return
    _intercore run rollback --to-phase="$phase" ${reason:+"--reason=$reason"} "$@" -- "$run"
}

# intercore_run_rollback_dry RUN PHASE [ARG...]: what that rollback would do; nothing is changed.
intercore_run_rollback_dry() {
    _intercore_need 2 'RUN PHASE [ARG...]' "$@" || return
    local run=$1 phase=$2
    shift 2
    _intercore run rollback --to-phase="$phase" --dry-run "$@" -- "$run"
}

# intercore_run_code_rollback RUN [PHASE] [ARG...]: the commits and files of each dispatch, as JSON
# (with PHASE: of that phase, since the run came to it; with '' --to-phase=PHASE: after it). Git is not run. To revert
# them all, newest first, merges included: git revert --no-edit -m 1 SHA..., with the SHAs of
#     intercore_run_code_rollback RUN '' --to-phase=PHASE | jq -r '.revert_order[]'
intercore_run_code_rollback() {
    _intercore_need 1 'RUN [PHASE] [ARG...]' "$@" || return
    local run=$1 phase=${2:-}
    shift
    [[ $# -eq 0 ]] || shift
    _intercore_value PHASE "$phase" || return
    _intercore run rollback --layer=code ${phase:+"--phase=$phase"} --format=json "$@" -- "$run"
}

# intercore_dispatch_create RUN [TYPE] [NAME] [ARG...]: create a dispatch for an agent; print its id.
intercore_dispatch_create() {
    _intercore_need 1 'RUN [TYPE] [NAME] [ARG...]' "$@" || return
    _intercore_value RUN "$1" || return
    local run=$1 type=${2:-} name=${3:-}
    shift
    [[ $# -eq 0 ]] || shift
    [[ $# -eq 0 ]] || shift
    _intercore_value TYPE "$type" || return
    _intercore_value NAME "$name" || return
    _intercore dispatch create ${type:+"--agent-type=$type"} ${name:+"--name=$name"} "$@" -- "$run"
}

# intercore_dispatch_start DISPATCH [PID] [ARG...]: the work begins. Call it before the agent starts, and once more with
# PID: the agent's process ($!), not the script's. While it lives, restores of the tree are refused.
intercore_dispatch_start() {
    _intercore_need 1 'DISPATCH [PID] [ARG...]' "$@" || return
    _intercore_value DISPATCH "$1" || return
    local dispatch=$1 pid=${2:-}
    shift
    [[ $# -eq 0 ]] || shift
    _intercore_value PID "$pid" || return
    _intercore dispatch start ${pid:+"--pid=$pid"} "$@" -- "$dispatch"
}

# intercore_dispatch_complete DISPATCH [SUMMARY] [VERDICT] [ARG...]: the work ended well; VERDICT is pass or fail.
intercore_dispatch_complete() {
    _intercore_need 1 'DISPATCH [SUMMARY] [VERDICT] [ARG...]' "$@" || return
    _intercore_value DISPATCH "$1" || return
    local dispatch=$1 summary=${2:-} verdict=${3:-}
    shift
    [[ $# -eq 0 ]] || shift
    [[ $# -eq 0 ]] || shift
    _intercore_value SUMMARY "$summary" || return
    _intercore_value VERDICT "$verdict" || return
    _intercore dispatch complete ${summary:+"--summary=$summary"} ${verdict:+"--verdict=$verdict"} "$@" \
        -- "$dispatch"
}

# intercore_dispatch_fail DISPATCH ERROR [ARG...]: the work failed; ERROR says why.
intercore_dispatch_fail() {
    _intercore_need 2 'DISPATCH ERROR [ARG...]' "$@" || return
    _intercore_value DISPATCH "$1" || return
    _intercore_value ERROR "$2" || return
    local dispatch=$1 error=$2
    shift 2
    _intercore dispatch fail --error="$error" "$@" -- "$dispatch"
}

# intercore_dispatch_show DISPATCH [ARG...]: a dispatch with its commits and files, and whether its process lives.
intercore_dispatch_show() {
    _intercore_need 1 'DISPATCH [ARG...]' "$@" || return
    _intercore_value DISPATCH "$1" || return
    local dispatch=$1
    shift
    _intercore dispatch show "$@" -- "$dispatch"
}

# intercore_dispatch_wait DISPATCH [TIMEOUT] [ARG...]: wait until the work ends, at most TIMEOUT (90s, 2h); 0 if it was completed.
intercore_dispatch_wait() {
    _intercore_need 1 'DISPATCH [TIMEOUT] [ARG...]' "$@" || return
    _intercore_value DISPATCH "$1" || return
    local dispatch=$1 timeout=${2:-}
    shift
    [[ $# -eq 0 ]] || shift
    _intercore_value TIMEOUT "$timeout" || return
    _intercore wait ${timeout:+"--timeout=$timeout"} "$@" -- "$dispatch"
}

# intercore_dispatch_list [RUN] [ARG...]: the dispatches of a run, or with '' of all runs, oldest first.
intercore_dispatch_list() {
    _intercore_need 0 '' || return
    local run=${1:-}
    [[ $# -eq 0 ]] || shift
    _intercore_value RUN "$run" || return
    _intercore dispatch list "$@" ${run:+-- "$run"}
}

# intercore_dispatch_record_git DISPATCH BASE [HEAD] [ARG...]: record the commits of BASE..HEAD, and
# the files they touch, as a dispatch's work. BASE is where the dispatch began; '' (or all zeros, or
# the empty tree) if the branch had no commit then, and all of HEAD is recorded.
#
# Merges are followed along their first parent: a merge is one commit, whose files are all that it
# brought in. So each commit is one step of the branch and can be reverted by itself, and merged
# commits of other branches do not count as the dispatch's own.
intercore_dispatch_record_git() {
    _intercore_need 2 'DISPATCH BASE [HEAD] [ARG...]' "$@" || return
    local dispatch=$1 base=$2 head=${3:-HEAD} range log
    shift 2
    [[ $# -eq 0 ]] || shift
    _intercore_value BASE "$base" || return
    _intercore_value HEAD "$head" || return
    range=$(_intercore_git_range "$base" "$head") || return
    # Read all of git's answer first: if git fails in the middle, nothing is recorded.
    log=
    if [[ -n $range ]]; then
        log=$(_intercore_git_log "$range") || return
    fi
    printf '%s\n' "$log" | _intercore dispatch record --stdin "$@" -- "$dispatch"
}

# _intercore_git_range BASE HEAD: print the range for git log; nothing if there is no commit at all.
_intercore_git_range() {
    local base=$1 head=$2 status=0
    if [[ $base == *[!0]* || (-n $base && ${#base} -lt 40) ]]; then
        printf '%s..%s\n' "$base" "$head"
        return
    fi
    # Without a base git would read `..HEAD` as HEAD..HEAD. A branch without a commit has nothing to list.
    # Any other fault of HEAD is reported by git log.
    if [[ $head == HEAD ]]; then
        git rev-parse --verify --quiet HEAD >/dev/null || status=$?
        if [[ $status -eq 1 ]] && git symbolic-ref --quiet HEAD >/dev/null; then
            return 0
        fi
    fi
    printf '%s\n' "$head"
}

# _intercore_git_log RANGE: commits and their files in git's quoted form, whatever the user's settings.
# A commit's line ends in a tab, and no quoted name does: a file may be named like a commit.
_intercore_git_log() {
    git --no-pager \
        -c core.quotePath=true -c diff.relative=false -c log.diffMerges=first-parent \
        -c log.showRoot=true -c log.showSignature=false \
        log --first-parent -m --name-only --format=%H%x09 \
        --no-renames --no-color --no-notes --ignore-submodules=none --end-of-options "$1" --
}

# intercore_checkpoint_message CONVERSATION MESSAGE [ARG...]: capture the working tree before an agent answers; print the id.
#
# For a hook that runs when a person has sent a message: a restore of the id undoes what the answer
# changes.
intercore_checkpoint_message() {
    _intercore_need 2 'CONVERSATION MESSAGE [ARG...]' "$@" || return
    _intercore_value CONVERSATION "$1" || return
    local conversation=$1 message=$2
    shift 2
    # A message may be empty or long; its beginning is enough to recognise it.
    message=${message:0:2000}
    if [[ $message == *[![:space:]]* ]]; then
        set -- --message="$message" "$@"
    fi
    _intercore checkpoint create --auto --conversation="$conversation" "$@"
}

# intercore_gate_check RUN [ARG...]: may the run leave its phase? 0 yes, 1 no.
intercore_gate_check() {
    _intercore_need 1 'RUN [ARG...]' "$@" || return
    local run=$1
    shift
    _intercore gate check "$@" -- "$run"
}

# intercore_gate_override RUN REASON [ARG...]: advance past a gate that blocks, once.
intercore_gate_override() {
    _intercore_need 2 'RUN REASON [ARG...]' "$@" || return
    _intercore_value REASON "$2" || return
    local run=$1 reason=$2
    shift 2
    _intercore gate override --reason="$reason" "$@" -- "$run"
}

# intercore_events_tail [RUN|--all] [ARG...]: print events, oldest first.
intercore_events_tail() {
    _intercore_need 0 '' || return
    _intercore events tail "$@"
}

# sprint_rollback SPRINT PHASE [REASON]: roll a sprint back, then call the caller's own trackers, if they are defined:
# `phase_set SPRINT PHASE "Rolled back: REASON"` and `checkpoint_clear`.
# SPRINT is a run (`@`, an id, its last digits, scope:ID), or else a scope id.
sprint_rollback() {
    _intercore_need 2 'SPRINT PHASE [REASON]' "$@" || return
    local sprint=$1 phase=$2 reason=${3:-} run=$1 answer status=0
    _intercore_value REASON "$reason" || return
    if [[ $# -gt 3 ]]; then
        printf 'usage: %s SPRINT PHASE [REASON]\n' "${FUNCNAME[0]}" >&2
        return 3
    fi
    case $sprint in
    @ | scope:*) ;;
    *)
        # Only these two answers mean "not a run". The rollback itself reports every other one again.
        if ! answer=$(_intercore run phase --json -- "$sprint" 2>&1 >/dev/null); then
            case $answer in
            *'"code":"run_not_found"'* | *'"code":"invalid_reference"'*) run=scope:$sprint ;;
            esac
        fi
        ;;
    esac
    _intercore run rollback --to-phase="$phase" ${reason:+"--reason=$reason"} -- "$run" || return
    # The trackers are not called in a condition, so that `set -e` applies inside them if the caller uses it.
    # Without `set -e` the second is called even if the first failed: the run is rolled back already.
    if declare -F phase_set >/dev/null; then
        phase_set "$sprint" "$phase" "Rolled back: $reason"
        status=$?
    fi
    if declare -F checkpoint_clear >/dev/null; then
        checkpoint_clear
        status=$((status != 0 ? status : $?))
    fi
    return "$status"
}
