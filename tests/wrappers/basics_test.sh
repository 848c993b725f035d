# shellcheck shell=bash
# Sourcing, a missing program, wrong arguments: what holds for every function.
# shellcheck disable=SC2154,SC2164,SC2016  # names from support.sh; set -e holds; text for other shells

# Each function with arguments that would do, one to a line, separated by tabs.
each_function() {
    printf '%s\n' \
        intercore_available \
        $'intercore_run_create\tgoal' \
        intercore_run_current \
        $'intercore_run_phase\t@' \
        $'intercore_run_advance\t@' \
        $'intercore_run_skip\t@\tb\treason' \
        $'intercore_run_agent_add\t@\tclaude' \
        $'intercore_run_artifact_add\t@\tfile' \
        $'intercore_run_rollback\t@\ta' \
        $'intercore_run_rollback_dry\t@\ta' \
        $'intercore_run_code_rollback\t@' \
        $'intercore_dispatch_create\t@' \
        $'intercore_dispatch_start\tabcdef12' \
        $'intercore_dispatch_complete\tabcdef12' \
        $'intercore_dispatch_fail\tabcdef12\terror' \
        $'intercore_dispatch_show\tabcdef12' \
        $'intercore_dispatch_wait\tabcdef12' \
        intercore_dispatch_list \
        $'intercore_dispatch_record_git\tabcdef12\tHEAD' \
        $'intercore_gate_check\t@' \
        $'intercore_checkpoint_message\tchat\tmessage' \
        $'intercore_gate_override\t@\treason' \
        $'intercore_events_tail\t--all' \
        $'sprint_rollback\t@\ta'
}

# path_without PROGRAM: a PATH with git and jq, but not that program.
path_without() {
    local program
    mkdir "$room/tools"
    for program in ic git jq; do
        [[ $program == "$1" ]] || ln -s "$(type -P "$program")" "$room/tools/$program"
    done
    export PATH=$room/tools
}

test_every_function_is_covered_here() {
    local defined listed
    defined=$(caller -c 'source "$0"; compgen -A function' "$lib" | grep -v '^_' | sort)
    listed=$(each_function | cut -f 1 | sort)
    equal 'public functions' "$defined" "$listed"
}

test_sourcing_says_nothing_and_sets_nothing() {
    new_repository
    new_run
    script '
        before=; after=; before=$(compgen -v; shopt -p; set -o)
        source "$0"
        for command in "intercore_available" "intercore_run_phase @" "intercore_run_advance @" \
            "intercore_run_rollback @ a" "intercore_run_code_rollback @" "sprint_rollback @ c" \
            "sprint_rollback nowhere a" "intercore_events_tail @" "intercore_run_create"; do
            $command >"$1" 2>&1 || :
        done
        unset command
        after=$(compgen -v; shopt -p; set -o)
        diff <(printf "%s\n" "$before") <(printf "%s\n" "$after")
    ' "$room/output"
    # PIPESTATUS and _ may come and go; bash itself sets them.
    equal 'changes to the shell' '' "$(grep -E '^[<>]' <<<"$out" | grep -Ev '^[<>] (_|PIPESTATUS|command)$' || :)"
}

test_the_callers_shell_may_be_set_otherwise() {
    new_repository
    new_run
    script 'IFS=-=/; set -f; intercore_run_rollback_dry "$1" a' "$run"
    refused 1 already_at_phase
    script 'IFS=-=/; intercore_run_advance "$1"' "$run"
    done_well
    expect_json .to_phase '"b"'
    script 'IFS=-=/; intercore_run_rollback "$1" a "a-b=c/d"' "$run"
    done_well
    expect_json .reason '"a-b=c/d"'
}

test_missing_ic_is_127_and_one_line() {
    local line words
    path_without ic
    while IFS= read -r line; do
        IFS=$'\t' read -ra words <<<"$line"
        call "${words[@]}"
        expect_status 127
        expect_out ''
        expect_line "${words[0]}: no program ic;*"
    done < <(each_function)
}

test_missing_ic_ends_no_caller_that_asks() {
    path_without ic
    script 'if intercore_available; then echo yes; else echo "no: $?"; fi'
    expect_status 0
    expect_out 'no: 127'
    script 'run=$(intercore_run_current) || echo "no: $?"'
    expect_status 0
    expect_out 'no: 127'
}

test_intercore_bin_overrides_path() {
    new_repository
    new_run
    mkdir "$room/an other place"
    cp "$(type -P ic)" "$room/an other place/ic-next"
    path_without ic
    export INTERCORE_BIN="$room/an other place/ic-next"
    call intercore_run_current
    done_well
    expect_out "$run"
}

test_intercore_bin_that_is_not_there() {
    export INTERCORE_BIN=$room/nowhere/ic
    call intercore_run_current
    expect_status 127
    expect_line "intercore_run_current: no program $INTERCORE_BIN;*"
}

test_missing_jq_stops_only_the_advance() {
    new_repository
    new_run
    path_without jq
    call intercore_run_advance "$run"
    expect_status 127
    expect_out ''
    expect_line 'intercore_run_advance: no program jq;*'
    call intercore_run_phase "$run"
    done_well
    expect_out a
}

test_too_few_arguments_are_a_usage_error() {
    local line words
    new_repository
    while IFS= read -r line; do
        IFS=$'\t' read -ra words <<<"$line"
        case ${words[0]} in
        intercore_available | intercore_run_current | intercore_dispatch_list | intercore_events_tail) continue ;;
        esac
        unset 'words[-1]'
        call "${words[@]}"
        expect_status 3
        expect_out ''
        expect_line "usage: ${words[0]} *"
    done < <(each_function)
}

test_an_option_is_never_taken_for_a_value() {
    new_repository
    new_run
    ic run advance "$run" >"$room/advanced"
    local option
    for option in --dry-run --dry_run --dryrun --force=yes -n; do
        call intercore_run_rollback "$run" a "$option"
        expect_status 3
        expect_line "intercore_run_rollback: $option stands where REASON belongs*"
        call sprint_rollback "$run" a "$option"
        expect_status 3
        expect_line "sprint_rollback: $option stands where REASON belongs*"
        call intercore_run_skip "$run" c "$option"
        expect_status 3
        call intercore_gate_override "$run" "$option"
        expect_status 3
        call intercore_run_code_rollback "$run" "$option"
        expect_status 3
        call intercore_run_agent_add "$run" claude "$option"
        expect_status 3
        call intercore_run_artifact_add "$run" file "$option"
        expect_status 3
        call intercore_run_create "$option"
        expect_status 3
    done
    call sprint_rollback "$run" a reason --dry-run
    expect_status 3
    expect_line 'usage: sprint_rollback *'
    equal 'phase' '"b"' "$(status_of .phase)"
}

test_unknown_options_are_errors_of_ic() {
    new_repository
    new_run
    call intercore_run_rollback "$run" a '' --dryrun
    refused 3 usage
    call intercore_run_advance "$run" --expct-phase=a
    refused 3 usage
    equal 'phase' '"a"' "$(status_of .phase)"
}

test_available() {
    call intercore_available
    refused 3 no_ledger
    expect_out ''
    new_repository
    call intercore_available
    done_well
    expect_out ''
    mkdir sub
    cd sub
    call intercore_available
    done_well
}

test_available_on_a_damaged_ledger() {
    new_repository
    printf 'no database at all, but long enough to have a header %0200d' 0 >"$(ic where)"
    call intercore_available
    [[ $status -ne 0 && $status -ne 127 ]] || fail 'expected a failure'
    [[ -n $err ]] || fail 'expected a word on stderr'
}
