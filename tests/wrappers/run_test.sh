# shellcheck shell=bash
# Runs, agents, artifacts, gates, events.
# shellcheck disable=SC2154,SC2164,SC2016  # names from support.sh; set -e holds; text for other shells

# spy TEXT: an ic that runs these lines of shell after each `run status`, and notes its arguments.
spy() {
    cat >"$room/spy" <<SPY
#!$BASH
printf '%s\n' "\$@" >>'$room/arguments'
"\$IC_BIN" "\$@"
status=\$?
if [[ "\$1 \$2" == 'run status' ]]; then
    ${1:-:}
fi
exit "\$status"
SPY
    chmod +x "$room/spy"
    export INTERCORE_BIN=$room/spy
    export IC_BIN run
}

test_create_prints_the_id() {
    new_repository
    call intercore_run_create 'Add a discount'
    done_well
    run=$out
    [[ $run =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ ]] || fail 'expected an id'
    equal 'phase' '"brainstorm"' "$(status_of .phase)"
}

test_create_keeps_the_goal_as_it_is() {
    local goal
    new_repository
    for goal in $'two\nlines' "it's \"quoted\" \$HOME \`date\` \\n" '- a list' '--force was wrong' '-1' 'Maß & Ziel'; do
        call intercore_run_create "$goal"
        done_well
        run=$out
        equal 'goal' "$goal" "$(ic run status "$run" --json | jq -r .goal)"
    done
}

test_create_passes_arguments_on() {
    new_repository
    call intercore_run_create goal --phases x,y,z --scope-id 'iv-0k8s' --complexity 2
    done_well
    run=$out
    equal 'record' '[["x","y","z"],"iv-0k8s",2]' "$(status_of '[.phases, .scope_id, .complexity]')"
    call intercore_run_create goal --complexity 9
    refused 3 invalid_value
    call intercore_run_create goal surplus
    refused 3 usage
}

test_current() {
    new_repository
    call intercore_run_current
    refused 1 no_active_run
    new_run
    call intercore_run_current
    done_well
    expect_out "$run"
    call intercore_run_current "$PWD"
    done_well
    expect_out "$run"
    call intercore_run_current '' --project "$PWD"
    done_well
    expect_out "$run"
    call intercore_run_current "$room"
    refused 1 no_active_run
}

test_phase() {
    new_repository
    new_run
    call intercore_run_phase "$run"
    done_well
    expect_out a
    call intercore_run_phase "${run: -8}"
    done_well
    call intercore_run_phase @
    done_well
    expect_out a
    call intercore_run_phase 00000000-0000-7000-8000-000000000000
    refused 3 run_not_found
    call intercore_run_phase -x
    refused 3 invalid_reference
    call intercore_run_phase ''
    refused 3 invalid_reference
}

test_advance_expects_phase_and_epoch() {
    new_repository
    new_run
    spy ''
    call intercore_run_advance @
    done_well
    expect_json '[.advanced, .from_phase, .to_phase, .event_kind]' '[true,"a","b","advance"]'
    grep -qx -- '--expect-phase=a@0' "$room/arguments" || fail "$(<"$room/arguments")"
    grep -qx -- "$run" "$room/arguments" || fail "$(<"$room/arguments")"
    ic run rollback "$run" --to-phase a >"$room/rolled-back"
    call intercore_run_advance "$run"
    done_well
    grep -qx -- '--expect-phase=a@1' "$room/arguments" || fail "$(<"$room/arguments")"
}

test_advance_loses_to_who_was_faster() {
    new_repository
    new_run
    spy '"$IC_BIN" run advance "$run" >&2'
    call intercore_run_advance "$run"
    expect_status 1
    expect_out ''
    [[ $err == *'"code":"stale_phase"'* ]] || fail 'expected stale_phase'
    equal 'phase' '"b"' "$(status_of .phase)"
}

test_advance_loses_to_a_rollback_back_to_the_same_phase() {
    new_repository
    new_run
    ic run advance "$run" >"$room/advanced"
    # The phase reads the same before and after; only the epoch tells.
    spy '"$IC_BIN" run rollback "$run" --to-phase a >&2; "$IC_BIN" run advance "$run" >&2'
    call intercore_run_advance "$run"
    expect_status 1
    [[ $err == *'"code":"stale_phase"'* ]] || fail 'expected stale_phase'
    equal 'phase' '"b"' "$(status_of .phase)"
}

test_advance_blocked_is_1_with_the_record() {
    new_repository
    new_run --phases a,b --gates '{"a→b": [{"check": "artifact_exists", "phase": "a", "tier": "hard"}]}'
    call intercore_run_advance "$run"
    expect_status 1
    [[ -z $err ]] || fail 'expected nothing on stderr'
    expect_json '[.advanced, .event_kind, .gate_result]' '[false,"block","fail"]'
    # As a caller that handles it would write it.
    script 'if record=$(intercore_run_advance "$1"); then echo on; else echo "held: $?"; fi' "$run"
    done_well
    expect_out 'held: 1'
}

test_advance_passes_arguments_on() {
    new_repository
    new_run --phases a,b,c --gates '{"a→b": [{"check": "artifact_exists", "phase": "a"}]}'
    call intercore_run_advance "$run" --priority 4
    done_well
    expect_json '[.advanced, .gate_tier]' '[true,"none"]'
    call intercore_run_advance "$run" --priority many
    refused 3 invalid_value
}

test_advance_of_no_run() {
    new_repository
    call intercore_run_advance 00000000-0000-7000-8000-000000000000
    refused 3 run_not_found
    call intercore_run_advance --db
    refused 3 invalid_reference
}

test_skip() {
    new_repository
    new_run
    call intercore_run_skip "$run" b $'not "needed"\n- really'
    done_well
    call intercore_run_advance "$run"
    done_well
    expect_json .to_phase '"c"'
    call intercore_run_skip "$run" nowhere 'a reason'
    refused 3 unknown_phase
}

test_agent_add() {
    new_repository
    new_run
    call intercore_run_agent_add "$run" claude
    done_well
    call intercore_run_agent_add "$run" codex 'Größe; the "second"'
    done_well
    call intercore_run_agent_add "$run" codex '' --name third
    done_well
    capture ic run agent list "$run" --json
    expect_json '[.[].name] | sort' '[null,"Größe; the \"second\"","third"]'
    call intercore_run_agent_add "$run" claude '' --dispatch 00000000-0000-7000-8000-000000000000
    refused 3 dispatch_not_found
}

test_artifact_add() {
    local file
    new_repository
    new_run
    for file in plan.md 'a plan.md' '-dash.md' '日本語 ü.md' 'it'\''s "q".md'; do
        printf 'text\n' >"./$file"
        call intercore_run_artifact_add "$run" "$file"
        done_well
    done
    call intercore_run_artifact_add "$run" plan.md c --type plan
    done_well
    capture ic run artifact list "$run" --json
    expect_json '[.[].path] | unique | length' 5
    expect_json '[.[] | select(.phase == "c") | [.path, .kind]]' '[["plan.md","plan"]]'
    call intercore_run_artifact_add "$run" plan.md nowhere
    refused 3 unknown_phase
}

test_gate_check_and_override() {
    local reason=$'the "plan" is\nin the wiki; it'\''s fine'
    new_repository
    new_run --phases a,b,c --gates '{"a→b": [{"check": "artifact_exists", "phase": "a", "tier": "hard"}]}'
    call intercore_gate_check "$run"
    expect_status 1
    call intercore_gate_override "$run" "$reason"
    done_well
    equal 'phase' '"b"' "$(status_of .phase)"
    call intercore_events_tail "$run"
    done_well
    expect_json '[.[] | select(.kind == "override") | .reason] | length' 1
    equal 'reason' "$reason" "$(jq -r '.[] | select(.kind == "override") | .reason' <<<"$out")"
    call intercore_gate_check "$run"
    done_well
    call intercore_gate_check scope:nowhere
    refused 3 run_not_found
}

test_events_tail() {
    new_repository
    new_run
    ic run advance "$run" >"$room/advanced"
    call intercore_events_tail "$run"
    done_well
    expect_json '[.[].kind] | contains(["advance"])' true
    call intercore_events_tail --all --limit 1
    done_well
    expect_json '[.[].kind]' '["advance"]'
    call intercore_events_tail
    done_well
    call intercore_events_tail "$run" --since nonsense
    refused 3 invalid_value
}

test_text_form_is_the_callers_choice() {
    new_repository
    new_run
    export IC_FORMAT=text
    call intercore_run_advance "$run"
    done_well
    [[ $out != '{'* ]] || fail 'expected text'
    call intercore_run_phase "$run"
    expect_out b
    # Its answer is for jq, always.
    call intercore_run_code_rollback "$run"
    done_well
    expect_json .layer '"code"'
    call sprint_rollback "$run" a
    done_well
    call sprint_rollback nowhere a
    expect_status 3
    [[ $err == 'error: '* ]] || fail 'expected the error as text'
}
