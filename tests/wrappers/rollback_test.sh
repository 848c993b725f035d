# shellcheck shell=bash
# Rollbacks: the plain one, its preview, the revert plan, and a sprint's.
# shellcheck disable=SC2154,SC2164,SC2016  # names from support.sh; set -e holds; text for other shells

awkward=$'it'\''s "broken"\n- $HOME `date` \\n ü; rm -rf x'

# begin [ARG...]: a run of a, b, c that stands at c; a dispatch with a commit was made in b.
begin() {
    new_repository
    new_run --phases a,b,c "$@"
    printf 'one\n' >first
    commit first
    ic run advance "$run" >"$room/advanced"
    new_dispatch
    printf 'two\n' >second
    commit second
    ic dispatch record "$dispatch" --commit "$(git rev-parse HEAD)" --file second >"$room/recorded"
    ic run advance "$run" >"$room/advanced"
}

phase_is() {
    equal 'phase' "\"$1\"" "$(status_of .phase)"
}

# A caller's trackers: they note what they are told, each word on a line of its own.
trackers='
    phase_set() { printf "phase_set %s|%s|%s\n" "$@" >>told; }
    checkpoint_clear() { printf "checkpoint_clear %d\n" "$#" >>told; }
'

told() {
    local found=
    [[ ! -e told ]] || found=$(<told)
    equal 'what the trackers were told' "$1" "$found"
}

test_rollback() {
    begin
    call intercore_run_rollback "$run" a
    done_well
    expect_json '[.dry_run, .from_phase, .to_phase, .rolled_back_phases, .status]' \
        '[false,"c","a",["b","c"],"rolled_back"]'
    expect_json '[.cancelled_dispatches[].id]' "[\"$dispatch\"]"
    expect_json '.reason // ""' '""'
    phase_is a
}

test_rollback_keeps_the_reason_as_it_is() {
    local reason
    begin
    for reason in "$awkward" '- a list' '--force was wrong' '-1'; do
        call intercore_run_rollback "$run" a "$reason"
        done_well
        equal 'reason' "$reason" "$(jq -r .reason <<<"$out")"
        ic run advance "$run" >"$room/advanced"
    done
    call intercore_run_rollback "$run" a ' '
    refused 3 invalid_value
}

test_rollback_passes_arguments_on() {
    begin
    call intercore_run_rollback "$run" b '' --include-target --dry-run
    done_well
    expect_json '[.dry_run, .rolled_back_phases]' '[true,["b","c"]]'
    call intercore_run_rollback "$run" b 'a reason' --expect-plan 0000
    [[ $status -ne 0 ]] || fail 'expected the plan to be refused'
    phase_is c
}

test_rollback_errors_pass_through() {
    begin
    call intercore_run_rollback "$run" nowhere
    refused 3 unknown_phase
    call intercore_run_rollback "$run" c
    refused 1 already_at_phase
    call intercore_run_rollback "$run" ''
    [[ $status -ne 0 ]] || fail 'expected an error'
    call intercore_run_rollback scope:nowhere a
    refused 3 run_not_found
    phase_is c
    ic run rollback "$run" --to-phase a >"$room/rolled-back"
    call intercore_run_rollback "$run" b
    refused 1 phase_ahead
    cd "$room"
    call intercore_run_rollback @ a
    refused 3 no_ledger
}

test_dry_run_changes_nothing_and_tells_the_truth() {
    local before dry same='del(.dry_run, .rollback_id, .seq, .status, .epoch)'
    begin
    before=$(status_of .)
    call intercore_run_rollback_dry "$run" a
    done_well
    expect_json '[.dry_run, .status]' '[true,"planned"]'
    dry=$(jq -cS "$same" <<<"$out")
    equal 'status' "$before" "$(status_of .)"
    call intercore_run_rollback "$run" a
    done_well
    equal 'the plan' "$dry" "$(jq -cS "$same" <<<"$out")"
    call intercore_run_rollback_dry "$run" a
    refused 1 already_at_phase
}

test_code_rollback() {
    local sha
    begin
    sha=$(git rev-parse HEAD)
    call intercore_run_code_rollback "$run"
    done_well
    expect_json '[.layer, .revert_order]' "[\"code\",[\"$sha\"]]"
    expect_json '.entries[0] | [.dispatch_id, .phase, .file_paths]' "[\"$dispatch\",\"b\",[\"second\"]]"
    call intercore_run_code_rollback "$run" b
    done_well
    expect_json .revert_order "[\"$sha\"]"
    call intercore_run_code_rollback "$run" c
    done_well
    expect_json .revert_order '[]'
    call intercore_run_code_rollback "$run" '' --to-phase=a
    done_well
    expect_json .revert_order "[\"$sha\"]"
    call intercore_run_code_rollback "$run" nowhere
    refused 3 unknown_phase
    phase_is c
}

test_sprint_by_every_reference() {
    local sprint
    begin --scope-id iv-0k8s
    for sprint in "$run" "${run: -8}" @ scope:iv-0k8s iv-0k8s; do
        rm -f told
        script "$trackers"'sprint_rollback "$@"' "$sprint" a 'wrong plan'
        done_well
        expect_json '[.run_id, .to_phase, .reason]' "[\"$run\",\"a\",\"wrong plan\"]"
        told "phase_set $sprint|a|Rolled back: wrong plan"$'\n''checkpoint_clear 0'
        phase_is a
        ic run advance "$run" >"$room/advanced"
    done
}

test_sprint_with_an_awkward_scope_id() {
    local scope
    new_repository
    # The third could be the digits of an id, but of none that exists.
    for scope in 'my sprint' 'größe/1' deadbeef "it's #7"; do
        new_run --phases a,b --scope-id "$scope"
        ic run advance "$run" >"$room/advanced"
        call sprint_rollback "$scope" a
        done_well
        expect_json .run_id "\"$run\""
    done
}

test_sprint_reason_is_told_as_it_is() {
    begin
    script "$trackers"'sprint_rollback "$@"' "$run" a "$awkward"
    done_well
    equal 'reason' "$awkward" "$(jq -r .reason <<<"$out")"
    told "phase_set $run|a|Rolled back: $awkward"$'\n''checkpoint_clear 0'
}

test_sprint_without_a_reason() {
    begin
    script "$trackers"'sprint_rollback "$@"' "$run" a
    done_well
    told "phase_set $run|a|Rolled back: "$'\n''checkpoint_clear 0'
}

test_sprint_without_trackers() {
    begin
    call sprint_rollback "$run" b
    done_well
    phase_is b
    script 'checkpoint_clear() { echo cleared >told; }; sprint_rollback "$@"' "$run" a
    done_well
    told cleared
}

test_sprint_refused_tells_nobody() {
    begin --scope-id iv-0k8s
    script "$trackers"'sprint_rollback "$@"' iv-0k8s nowhere
    refused 3 unknown_phase
    script "$trackers"'sprint_rollback "$@"' "$run" c
    refused 1 already_at_phase
    script "$trackers"'sprint_rollback "$@"' nosuchsprint a
    refused 3 run_not_found
    [[ $err == *nosuchsprint* ]] || fail 'expected the name that was asked for'
    script "$trackers"'sprint_rollback "$@"' scope:nosuchsprint a
    refused 3 run_not_found
    told ''
    phase_is c
}

test_sprint_hides_no_other_error() {
    begin
    cd "$room"
    script "$trackers"'sprint_rollback "$@"' iv-0k8s a
    refused 3 no_ledger
    told ''
}

test_sprint_with_an_ambiguous_scope() {
    new_repository
    mkdir -p sub
    new_run --phases a,b --scope-id twice
    new_run --phases a,b --scope-id twice --project sub
    script "$trackers"'sprint_rollback "$@"' twice a
    refused 3 ambiguous_run
    told ''
}

test_sprint_when_a_tracker_fails() {
    begin
    script '
        phase_set() { echo "no tracker" >&2; return 7; }
        checkpoint_clear() { echo cleared >told; }
        sprint_rollback "$@"
    ' "$run" a
    expect_status 7
    equal 'stderr' 'no tracker' "$err"
    phase_is a
    # `set -e` ends the caller where it fails; without, the second still hears of the rollback.
    if [[ $mode == strict ]]; then
        told ''
    else
        told cleared
    fi
    ic run advance "$run" >"$room/advanced"
    script 'checkpoint_clear() { return 5; }; sprint_rollback "$@"' "$run" a
    expect_status 5
}
