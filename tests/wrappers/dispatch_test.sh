# shellcheck shell=bash
# Dispatches, from handing out to the end.
# shellcheck disable=SC2154,SC2164,SC2016  # names from support.sh; set -e holds; text for other shells

# dispatch_of FILTER: what `ic dispatch show` says of the dispatch in $dispatch.
dispatch_of() {
    ic dispatch show "$dispatch" --json | jq -c "$1"
}

begin() {
    new_repository
    new_run
}

test_dispatch_create() {
    begin
    call intercore_dispatch_create "$run"
    done_well
    dispatch=$out
    equal 'record' '["pending","a",null,null]' "$(dispatch_of '[.status, .phase, .agent_kind, .name]')"
    call intercore_dispatch_create "$run" claude "it's \"one\"" --phase b --model m1
    done_well
    dispatch=$out
    equal 'record' '["b","claude","it'"'"'s \"one\"","m1"]' "$(dispatch_of '[.phase, .agent_kind, .name, .model]')"
    call intercore_dispatch_create "$run" '' named
    done_well
    dispatch=$out
    equal 'record' '[null,"named"]' "$(dispatch_of '[.agent_kind, .name]')"
    call intercore_dispatch_create "$run" claude '' --phase nowhere
    refused 3 unknown_phase
}

test_dispatch_start() {
    begin
    dispatch=$(ic dispatch create "$run")
    call intercore_dispatch_start "$dispatch" 4194304 --json
    done_well
    expect_json '[.status, .alive]' '["running",false]'
    dispatch=$(ic dispatch create "$run")
    call intercore_dispatch_start "$dispatch" $$ --json
    done_well
    expect_json '[.status, .pid, .alive]' "[\"running\",$$,true]"
    call intercore_dispatch_start "$dispatch"
    refused 1 dispatch_running
    call intercore_dispatch_start 99999999
    refused 3 dispatch_not_found
}

test_dispatch_ends() {
    begin
    new_dispatch
    call intercore_dispatch_complete "$dispatch" '' good
    refused 3 invalid_value
    call intercore_dispatch_complete "$dispatch" 'form and tests' pass
    done_well
    equal 'record' '["completed","form and tests","pass"]' "$(dispatch_of '[.status, .summary, .verdict]')"
    call intercore_dispatch_complete "$dispatch"
    refused 1 dispatch_finished
    new_dispatch
    call intercore_dispatch_complete "$dispatch"
    done_well
    equal 'record' '["completed",null,null]' "$(dispatch_of '[.status, .summary, .verdict]')"
    new_dispatch
    call intercore_dispatch_fail "$dispatch" 'exit 1' --timed-out
    done_well
    equal 'record' '["timed_out","exit 1"]' "$(dispatch_of '[.status, .error]')"
}

test_dispatch_show_and_list() {
    local first
    begin
    new_dispatch
    first=$dispatch
    call intercore_dispatch_show "$dispatch" --json
    done_well
    expect_json .id "\"$dispatch\""
    new_run
    new_dispatch
    call intercore_dispatch_list
    done_well
    expect_json 'map(.id)' "[\"$first\",\"$dispatch\"]"
    call intercore_dispatch_list "$run" --status running
    done_well
    expect_json 'map(.id)' "[\"$dispatch\"]"
    call intercore_dispatch_list '' --status pending
    done_well
    expect_json . '[]'
}

test_dispatch_wait() {
    local worker
    begin
    new_dispatch
    call intercore_dispatch_wait "$dispatch" 0s --json
    expect_status 1
    expect_json '.[0] | [.status, .code]' '["running","timed_out"]'
    (sleep 0.3; ic dispatch complete "$dispatch" >/dev/null) &
    worker=$!
    call intercore_dispatch_wait "$dispatch" '' --json
    done_well
    expect_json '.[0] | [.status, .code]' '["completed",null]'
    wait "$worker"
    new_dispatch
    ic dispatch fail "$dispatch" --error e >/dev/null
    call intercore_dispatch_wait "$dispatch" 1h --json
    expect_status 1
    expect_json '.[0] | [.status, .code]' '["failed",null]'
    call intercore_dispatch_wait 99999999 1s
    refused 3 dispatch_not_found
}

# The message names what belongs there, and nothing is written.
test_a_wrong_argument_of_a_dispatch_is_named() {
    begin
    new_dispatch
    local name expected arguments
    while IFS=$'\t' read -r name expected arguments; do
        # shellcheck disable=SC2086  # words
        call "intercore_dispatch_$name" $arguments --json
        expect_status 3
        expect_line "intercore_dispatch_$name: --json stands where $expected belongs*"
    done <<WORDS
create	RUN	
create	TYPE	$run
create	NAME	$run claude
start	DISPATCH	
start	PID	$dispatch
complete	DISPATCH	
complete	SUMMARY	$dispatch
complete	VERDICT	$dispatch done
fail	ERROR	$dispatch
show	DISPATCH	
wait	DISPATCH	
wait	TIMEOUT	$dispatch
list	RUN	
WORDS
    call intercore_dispatch_fail "$dispatch"
    expect_status 3
    expect_line 'usage: intercore_dispatch_fail DISPATCH ERROR *'
    equal 'state' '"running"' "$(dispatch_of .status)"
    equal 'dispatches' 1 "$(ic dispatch list --json | jq length)"
}
