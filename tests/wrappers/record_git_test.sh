# shellcheck shell=bash
# intercore_dispatch_record_git, on histories as git really makes them.
# shellcheck disable=SC2154,SC2164,SC2016  # names from support.sh; set -e holds; text for other shells

# A repository with one commit, and a dispatch that begins there.
begin() {
    new_repository
    new_run
    printf 'one\n' >first
    commit 'before the dispatch'
    base=$(git rev-parse HEAD)
    new_dispatch
}

# recorded FILTER JSON: of the one entry of the revert plan.
recorded() {
    capture ic run rollback "$run" --layer=code --format=json
    done_well
    expect_json ".entries[0] | $1" "$2"
}

# commits_are SHA...: these, oldest first, and the same to be reverted newest first.
commits_are() {
    local json
    json=$(jq -cn '$ARGS.positional' --args -- "$@")
    recorded .commit_shas "$json"
    expect_json .revert_order "$(jq -c reverse <<<"$json")"
}

head_sha() {
    git rev-parse HEAD
}

test_commits_and_files() {
    local one two
    begin
    printf 'two\n' >second
    commit 'add second'
    one=$(head_sha)
    printf 'more\n' >>first
    commit 'change first'
    two=$(head_sha)
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$one" "$two"
    recorded '.file_paths | sort' '["first","second"]'
}

test_recording_twice_adds_nothing() {
    begin
    printf 'two\n' >second
    commit 'add second'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(head_sha)"
    recorded .file_paths '["second"]'
}

test_file_names_of_every_kind() {
    local expected name
    local -a names=('with space' ' leading' 'trailing ' 'ümläut 日本語' '-dash' 'quote"d' $'tab\there' $'new\nline'
        'back\slash' "it's" 'a/b c/d' '#hash' 'star*?[x]' '$HOME' '→' 'deadbeef')
    begin
    for name in "${names[@]}"; do
        mkdir -p -- "$(dirname -- "./$name")"
        printf 'x\n' >"./$name"
    done
    # A file whose name is a commit hash must not be read as a commit.
    name=$(printf 'f%.0s' {1..40})
    names+=("$name")
    printf 'x\n' >"$name"
    commit 'awkward names'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(head_sha)"
    expected=$(jq -cn '$ARGS.positional | sort' --args -- "${names[@]}")
    recorded '.file_paths | sort' "$expected"
}

test_deletions_and_renames_name_both_files() {
    begin
    printf '%s\n' a b c d e f >long
    commit 'a file to be moved'
    git mv long moved
    git rm -q first
    git commit -q -m 'move and remove'
    git config diff.renames copies
    call intercore_dispatch_record_git "$dispatch" HEAD~1
    done_well
    commits_are "$(head_sha)"
    recorded '.file_paths | sort' '["first","long","moved"]'
}

test_mode_changes_and_links_are_files() {
    begin
    chmod +x first
    ln -s first link
    commit 'mode and link'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    recorded '.file_paths | sort' '["first","link"]'
}

test_empty_range() {
    begin
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    capture ic run rollback "$run" --layer=code --format=json
    expect_json '[.revert_order, [.entries[].commit_shas[]]]' '[[],[]]'
}

test_commit_without_files() {
    begin
    commit 'nothing changed'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(head_sha)"
    recorded .file_paths '[]'
}

test_head_of_its_own() {
    local first second
    begin
    printf 'x\n' >x
    commit x
    first=$(head_sha)
    printf 'y\n' >y
    commit y
    second=$(head_sha)
    printf 'z\n' >z
    commit z
    call intercore_dispatch_record_git "$dispatch" "$base" "$first"
    done_well
    commits_are "$first"
    recorded .file_paths '["x"]'
    call intercore_dispatch_record_git "$dispatch" "$first" "$second"
    done_well
    commits_are "$first" "$second"
    call intercore_dispatch_record_git "$dispatch" "$base" ''
    done_well
    commits_are "$first" "$second" "$(head_sha)"
}

test_names_for_base() {
    begin
    git tag v1
    git branch 'feature/begin'
    printf 'x\n' >x
    commit x
    call intercore_dispatch_record_git "$dispatch" v1
    done_well
    call intercore_dispatch_record_git "$dispatch" feature/begin main
    done_well
    call intercore_dispatch_record_git "$dispatch" HEAD~1
    done_well
    commits_are "$(head_sha)"
}

test_unborn_base() {
    local base first
    for base in '' 0000000000000000000000000000000000000000 4b825dc642cb6eb9a060e54bf8d69288fbee4904; do
        mkdir "$room/r-$base"
        cd "$room/r-$base"
        new_repository
        new_run
        new_dispatch
        # As yet there is no commit at all.
        if [[ $base == '' ]]; then
            call intercore_dispatch_record_git "$dispatch" "$base"
            done_well
            capture ic run rollback "$run" --layer=code --format=json
            expect_json .revert_order '[]'
        fi
        printf 'x\n' >'the first'
        commit first
        first=$(head_sha)
        printf 'y\n' >second
        commit second
        git config log.showRoot false
        call intercore_dispatch_record_git "$dispatch" "$base"
        done_well
        commits_are "$first" "$(head_sha)"
        recorded '.file_paths | sort' '["second","the first"]'
    done
}

# A side branch with a commit of its own, merged with a change made in the merge itself.
merge_side_branch() {
    git checkout -q -b side "$base"
    printf 'side\n' >'on the side'
    commit 'side work'
    git checkout -q main
    printf 'main\n' >'on main'
    commit 'main work'
    git merge -q --no-ff --no-commit side >"$room/merge"
    printf 'evil\n' >'in the merge'
    commit 'merge side'
}

test_merge_is_one_commit_with_all_it_brought() {
    begin
    merge_side_branch
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(git rev-parse HEAD^)" "$(head_sha)"
    recorded '.file_paths | sort' '["in the merge","on main","on the side"]'
}

test_what_was_merged_in_from_others_is_not_claimed() {
    local merged
    begin
    git checkout -q -b work
    printf 'w\n' >work
    commit 'the dispatch works'
    git checkout -q main
    printf 'o\n' >others
    commit 'others work'
    git checkout -q work
    git merge -q --no-edit main
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    merged=$(git rev-parse main)
    recorded "[.commit_shas[] | select(. == \"$merged\")]" '[]'
    commits_are "$(git rev-parse HEAD^)" "$(head_sha)"
}

test_the_plan_can_be_reverted_merges_included() {
    begin
    merge_side_branch
    printf 'again\n' >>'on the side'
    commit 'after the merge'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    call intercore_run_code_rollback "$run"
    done_well
    # shellcheck disable=SC2046
    git revert --no-edit -m 1 $(jq -r '.revert_order[]' <<<"$out") >"$room/revert"
    git diff --quiet "$base" HEAD || fail "$(git diff --stat "$base" HEAD)"
}

test_commits_of_one_second_stay_in_order() {
    local n
    local -a shas=()
    begin
    export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
    for n in 1 2 3 4 5 6 7 8; do
        printf '%s\n' "$n" >"$n"
        # Clocks step back, too.
        [[ $n -ne 5 ]] || export GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
        commit "$n"
        shas+=("$(head_sha)")
    done
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "${shas[@]}"
}

test_the_users_settings_of_git_change_nothing() {
    begin
    merge_side_branch
    git config core.quotePath false
    git config color.ui always
    git config diff.relative true
    git config diff.renames copies
    git config log.diffMerges combined
    git config log.showRoot false
    git config log.showSignature true
    git config log.follow true
    git config log.decorate full
    git config log.abbrevCommit true
    git config format.pretty fuller
    git config notes.displayRef '*'
    git config diff.ignoreSubmodules all
    git notes add -m 'a note' HEAD
    mkdir deep
    printf 'x\n' >'deep/ünder'
    commit 'in a directory'
    cd deep
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(git rev-parse HEAD~2)" "$(git rev-parse HEAD~1)" "$(head_sha)"
    recorded '.file_paths | sort' '["deep/ünder","in the merge","on main","on the side"]'
}

test_a_linked_worktree() {
    begin
    git worktree add -q -b elsewhere "$room/other tree"
    cd "$room/other tree"
    printf 'x\n' >x
    commit 'in the worktree'
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(head_sha)"
}

test_a_repository_of_sha256() {
    git init -q -b main --object-format=sha256
    ic init >"$room/init"
    new_run
    printf 'x\n' >x
    commit x
    base=$(head_sha)
    new_dispatch
    printf 'y\n' >y
    commit y
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    commits_are "$(head_sha)"
}

test_errors_of_git_pass_through_and_record_nothing() {
    begin
    printf 'x\n' >x
    commit x
    call intercore_dispatch_record_git "$dispatch" nowhere
    expect_status 128
    [[ $err == fatal:* ]] || fail "expected git's own error"
    call intercore_dispatch_record_git "$dispatch" "$base" nowhere
    expect_status 128
    call intercore_dispatch_record_git "$dispatch" '' nowhere
    expect_status 128
    call intercore_dispatch_record_git "$dispatch" '-x y'
    expect_status 128
    call intercore_dispatch_record_git "$dispatch" --all
    expect_status 3
    capture ic run rollback "$run" --layer=code --format=json
    expect_json '[.revert_order, [.entries[].file_paths[]]]' '[[],[]]'
}

test_a_damaged_repository_records_nothing() {
    local lost
    begin
    printf 'x\n' >x
    commit x
    lost=$(head_sha)
    printf 'y\n' >y
    commit y
    rm -f ".git/objects/${lost:0:2}/${lost:2}"
    call intercore_dispatch_record_git "$dispatch" "$base"
    [[ $status -ne 0 ]] || fail 'expected a failure'
    capture ic run rollback "$run" --layer=code --format=json
    expect_json .revert_order '[]'
}

test_outside_a_repository() {
    begin
    IC_DB=$(ic where)
    export IC_DB
    cd "$room"
    call intercore_dispatch_record_git "$dispatch" ''
    expect_status 128
    call intercore_dispatch_record_git "$dispatch" HEAD~1
    expect_status 128
}

test_errors_of_ic_pass_through() {
    local n
    begin
    call intercore_dispatch_record_git 00000000-0000-7000-8000-000000000000 "$base"
    refused 3 dispatch_not_found
    # More than a pipe holds, for a dispatch that ic will not read it for.
    mkdir many
    for n in {1..3000}; do
        : >"many/a file with quite a long name, so that they are many bytes $n"
    done
    commit 'many files'
    call intercore_dispatch_record_git 00000000-0000-7000-8000-000000000000 "$base"
    refused 3 dispatch_not_found
    call intercore_dispatch_record_git "$dispatch" "$base"
    done_well
    recorded '.file_paths | length' 3000
    call intercore_dispatch_record_git "$dispatch" "$base" '' --stdn
    refused 3 usage
}

test_work_of_a_rolled_back_dispatch_is_recorded_as_late() {
    begin
    ic run advance "$run" >"$room/advanced"
    new_dispatch
    ic run rollback "$run" --to-phase a >"$room/rolled-back"
    printf 'late\n' >late
    commit 'too late'
    call intercore_dispatch_record_git "$dispatch" "$base"
    expect_status 0
    capture ic run rollback "$run" --layer=code --to-phase=a --format=json
    done_well
    expect_json .revert_order "[\"$(head_sha)\"]"
    expect_json '[.entries[] | select(.late) | .dispatch_id]' "[\"$dispatch\"]"
}
