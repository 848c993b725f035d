# shellcheck shell=bash
# Checkpoints before an agent answers.
# shellcheck disable=SC2154,SC2164  # names from support.sh; set -e holds

test_a_message_captures_the_tree() {
    local first second
    new_repository
    printf 'one\n' >notes.md
    call intercore_checkpoint_message chat-7 'make it "faster"'
    done_well
    first=$out
    printf 'two\n' >notes.md
    call intercore_checkpoint_message chat-7 $'two\nlines'
    done_well
    second=$out
    equal 'kind' '"auto"' "$(ic checkpoint show "$first" --json | jq .kind)"
    equal 'message' 'make it "faster"' "$(ic checkpoint show "$first" --json | jq -r .message)"
    equal 'parent' "$first" "$(ic checkpoint show "$second" --json | jq -r .parent_id)"
    equal 'content' 'one' "$(ic checkpoint cat "$first" notes.md)"
    equal 'first of the conversation' 'null' "$(ic checkpoint show "$first" --json | jq -r .parent_id)"
}

test_an_empty_message_is_no_hindrance() {
    new_repository
    call intercore_checkpoint_message chat-7 ''
    done_well
    equal 'message' 'null' "$(ic checkpoint show "$out" --json | jq .message)"
}

test_a_conversation_without_a_name_is_no_hindrance() {
    new_repository
    call intercore_checkpoint_message '' 'hello'
    done_well
    equal 'conversation' 'null' "$(ic checkpoint show "$out" --json | jq .conversation)"
    equal 'message' '"hello"' "$(ic checkpoint show "$out" --json | jq .message)"
}
