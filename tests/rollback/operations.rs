//! What work began in git and did not end, the flags that it set, and the tags that it removed.

use serde_json::json;

use ic_testkit::git_in;

use ic_testkit::TestWorld;

fn say(world: &TestWorld, event: &str) {
    let said = json!({ "session_id": "A", "cwd": world.root(), "hook_event_name": event, "prompt": "p",
        "transcript_path": "/none", "tool_name": "Bash", "tool_use_id": "1", "tool_input": {} });
    let answer = world.cli.run_with_input(["hook", "claude-code", event], said.to_string().as_bytes());
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

fn prompt(world: &TestWorld, does: impl FnOnce()) {
    for event in ["UserPromptSubmit", "PreToolUse"] {
        say(world, event);
    }
    does();
    for event in ["PostToolUse", "Stop"] {
        say(world, event);
    }
}

/// Runs git where it may fail.
fn try_git(world: &TestWorld, arguments: &[&str]) -> bool {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments).current_dir(world.root());
    git.output().expect("run git").status.success()
}

#[test]
fn a_conflict_that_the_work_began_ends_with_its_undo() {
    for (operation, note) in [("merge", "MERGE_HEAD"), ("cherry-pick", "CHERRY_PICK_HEAD"), ("revert", "REVERT_HEAD")] {
        let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
        world.git(&["checkout", "-q", "-b", "other"]);
        world.write("a", "other\n");
        world.git(&["commit", "-qam", "other"]);
        world.git(&["checkout", "-q", "-"]);
        world.write("a", "mine\n");
        world.git(&["commit", "-qam", "mine"]);
        world.write("a", "newest\n");
        world.git(&["commit", "-qam", "newest"]);
        let of = if operation == "revert" { "HEAD~1" } else { "other" };
        let before = (world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"]));
        prompt(&world, || {
            world.write("new", "n\n");
            assert!(!try_git(&world, &[operation, of]), "{operation}: a conflict");
        });
        assert!(world.root().join(".git").join(note).exists(), "{operation}");
        let left = world.text("a");
        let planned = world.cli.run(["undo", "--dry-run", "--format", "text"]);
        assert!(planned.stdout.contains("ended: it began since"), "{operation}: {planned:?}");
        world.ic(&["undo", "--yes"]);
        assert!(!world.root().join(".git").join(note).exists(), "{operation}");
        assert_eq!((world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])), before);
        assert_eq!(world.text("a"), "newest\n", "{operation}");
        // A redo would need git's notes of the merge. The hint says what to do, and that works.
        let refused = world.cli.run(["redo", "--yes"]);
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "git_in_progress"), "{operation}");
        assert!(refused.stderr.contains(&format!("begin the {operation} again")), "{operation}: {refused:?}");
        let way = refused.stderr.split("ic checkpoint restore ").nth(1).expect("a command");
        let id = way.split(' ').next().expect("an id");
        world.ic(&["checkpoint", "restore", id, "--strategy", "files-only", "--yes"]);
        assert_eq!((world.text("a"), world.text("new")), (left, "n\n".to_owned()), "{operation}");
        world.ic(&["redo", "--yes"]);
        // Git agrees that nothing is in progress.
        world.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
    }
}

#[test]
fn a_rebase_is_named_with_the_command_that_ends_it() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    world.git(&["checkout", "-q", "-b", "other"]);
    world.write("a", "other\n");
    world.git(&["commit", "-qam", "other"]);
    world.git(&["checkout", "-q", "-"]);
    world.write("a", "mine\n");
    world.git(&["commit", "-qam", "mine"]);
    prompt(&world, || assert!(!try_git(&world, &["rebase", "other"]), "a conflict"));
    let refused = world.cli.run(["undo", "--yes"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("git rebase --abort"), "{refused:?}");
}

#[test]
fn flags_of_the_index_are_restored_with_its_entries() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    for name in ["conf", "conf2"] {
        world.write(name, "shared\n");
        world.git(&["add", name]);
    }
    world.git(&["commit", "-qm", "conf"]);
    for name in ["conf", "conf2"] {
        world.write(name, "of a person\n");
    }
    world.git(&["update-index", "--skip-worktree", "conf"]);
    world.git(&["update-index", "--assume-unchanged", "conf2"]);
    let flags = world.git(&["ls-files", "-v"]);
    prompt(&world, || {
        world.git(&["update-index", "--no-skip-worktree", "conf"]);
        world.git(&["update-index", "--no-assume-unchanged", "conf2"]);
        world.git(&["checkout", "-q", "--", "conf", "conf2"]);
        world.write("x", "x\n");
        world.git(&["add", "x"]);
    });
    world.ic(&["undo", "--yes"]);
    assert_eq!(world.git(&["ls-files", "-v"]), flags);
    assert_eq!((world.text("conf"), world.text("conf2")), ("of a person\n".into(), "of a person\n".into()));
}

#[test]
fn a_tag_that_the_work_removed_or_moved_comes_back() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    git_in(world.root(), &["tag", "light"]);
    git_in(world.root(), &["tag", "-a", "-m", "a release", "heavy"]);
    git_in(world.root(), &["tag", "moved"]);
    let tags = || world.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/tags"]);
    let before = tags();
    prompt(&world, || {
        world.write("b", "changed\n");
        world.git(&["tag", "-d", "light", "heavy"]);
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "changed"]);
        world.git(&["tag", "-f", "moved"]);
    });
    let left = tags();
    let planned = world.cli.run(["undo", "--dry-run", "--format", "text"]);
    assert!(planned.stdout.contains("tag light") && planned.stdout.contains("tag heavy"), "{planned:?}");
    world.ic(&["undo", "--yes"]);
    assert_eq!(tags(), before);
    world.ic(&["redo", "--yes"]);
    assert_eq!(tags(), left, "a redo is exact");
}

#[test]
fn a_tag_whose_object_is_gone_is_named_and_the_exit_says_that_it_stays_away() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    git_in(world.root(), &["tag", "-a", "-m", "a release", "heavy"]);
    prompt(&world, || {
        world.write("b", "changed\n");
        world.git(&["tag", "-d", "heavy"]);
        world.git(&["gc", "-q", "--prune=now"]);
    });
    for flag in ["--dry-run", "--yes"] {
        let outcome = world.cli.run(["undo", flag, "--format", "text"]);
        assert_eq!(outcome.code, Some(4), "{flag}: {outcome:?}");
        assert!(outcome.stdout.contains("the tag heavy is gone"), "{flag}: {outcome:?}");
    }
    assert_ne!(world.text("b"), "changed\n");
}

#[test]
fn a_tag_that_a_person_removed_stays_away() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    git_in(world.root(), &["tag", "v1"]);
    prompt(&world, || world.write("b", "changed\n"));
    git_in(world.root(), &["tag", "-d", "v1"]);
    prompt(&world, || world.write("b", "changed again\n"));
    world.ic(&["undo", "--yes"]);
    world.ic(&["undo", "--yes"]);
    assert_eq!(world.git(&["tag"]), "");
}
