//! Forks: work trees beside one another, compared, adopted, undone and dropped.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use ic_testkit::{CliOutcome, git_in};
use serde_json::Value;

use crate::agents::in_git;
use crate::support::Project;

fn run(project: &Project, line: &str) -> CliOutcome {
    let words: Vec<String> = crate::support::args(line);
    let mut command: Command = project.command(words);
    // A call in a fork makes ids of its own.
    command.env_remove("IC_TEST_IDS");
    CliOutcome::of(&mut command)
}

fn ok(project: &Project, line: &str) -> String {
    let outcome = run(project, line);
    assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    outcome.stdout.trim().to_owned()
}

fn json(project: &Project, line: &str) -> Value {
    serde_json::from_str(&ok(project, &format!("{line} --json"))).expect("JSON")
}

/// A project with a file of numbered lines, committed; an untracked and an ignored file.
fn project() -> Project {
    let project = in_git();
    let lines: Vec<String> = (1..=20).map(|line| line.to_string()).collect();
    project.write("f", &(lines.join("\n") + "\n"));
    project.write(".gitignore", "ignored\n");
    git_in(project.root(), &["add", "-A"]);
    git_in(project.root(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "lines"]);
    project.write("untracked", "mine\n");
    project.write("ignored", "not captured\n");
    project
}

fn fork_of(project: &Project, name: &str) -> PathBuf {
    project.root().with_file_name("project.forks").join(name)
}

fn text(path: PathBuf) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Replaces a line of `f` in a fork, or here.
fn replace(root: &std::path::Path, from: &str, to: &str) {
    let all = std::fs::read_to_string(root.join("f")).expect("f");
    let lines: Vec<&str> = all.lines().map(|line| if line == from { to } else { line }).collect();
    std::fs::write(root.join("f"), lines.join("\n") + "\n").expect("f");
}

fn has_line(project: &Project, line: &str) -> bool {
    text(project.root().join("f")).expect("f").lines().any(|one| one == line)
}

#[test]
fn fork_has_the_files_as_they_are_here_and_changes_nothing_here() {
    let project = project();
    replace(project.root(), "3", "three");
    let before = ic_testkit::tree(project.root());
    let place = ok(&project, "fork --name try");
    assert_eq!(PathBuf::from(&place), fork_of(&project, "try"));
    assert_eq!(text(fork_of(&project, "try").join("f")), text(project.root().join("f")));
    assert_eq!(text(fork_of(&project, "try").join("untracked")).as_deref(), Some("mine\n"));
    assert_eq!(text(fork_of(&project, "try").join("ignored")), None);
    assert_eq!(
        git_in(&fork_of(&project, "try"), &["status", "--short"]),
        git_in(project.root(), &["status", "--short"])
    );
    assert_eq!(ic_testkit::tree(project.root()), before);
    // Of the same name a second time nothing is made.
    let again = run(&project, "fork --name try");
    assert_eq!((again.code, again.error().as_str()), (Some(1), "file_conflict"));
    for name in ["a/b", "..", "-x"] {
        assert_eq!(run(&project, &format!("fork --name={name}")).code, Some(3), "{name}");
    }
}

#[test]
fn fork_of_a_point_has_the_files_from_before_it() {
    let project = project();
    ok(&project, "exec -- sh -c 'echo later > later'");
    let work = json(&project, "dispatch list")[0]["short_id"].as_str().expect("an id").to_owned();
    ok(&project, &format!("fork {work} --name before"));
    assert_eq!(text(fork_of(&project, "before").join("later")), None);
    assert_eq!(text(fork_of(&project, "before").join("untracked")).as_deref(), Some("mine\n"));
    assert_eq!(text(project.root().join("later")).as_deref(), Some("later\n"));
}

#[test]
fn without_a_commit_there_is_nothing_to_fork_from() {
    let project = Project::without_ledger();
    std::fs::remove_file(project.root().join(".ic.yaml")).expect("the configuration");
    git_in(project.root(), &["init", "-q"]);
    ok(&project, "init");
    let outcome = run(&project, "fork");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "git_failed"), "{outcome:?}");
    assert!(!fork_of(&project, "1").exists());
}

#[test]
fn best_of_three_is_adopted_undone_and_another_one_adopted() {
    let project = project();
    for name in ["a", "b", "c"] {
        let line = format!("sed -i 's/^2$/two {name}/' f; echo {name} > new-{name}; test {name} != b");
        let mut command = project.command(["exec", &format!("--isolate={name}"), "--", "sh", "-c", &line]);
        command.env_remove("IC_TEST_IDS");
        assert_eq!(CliOutcome::of(&mut command).code, Some(i32::from(name == "b")));
    }
    assert!(has_line(&project, "2"));
    let compared = json(&project, "compare");
    let of =
        |key: &str| -> Vec<Value> { compared.as_array().expect("a list").iter().map(|one| one[key].clone()).collect() };
    assert_eq!(of("name"), ["a", "b", "c"]);
    assert_eq!(of("status"), ["completed", "failed", "completed"]);
    ok(&project, "adopt a");
    assert!(has_line(&project, "two a") && project.root().join("new-a").exists());
    ok(&project, "undo --yes");
    assert!(has_line(&project, "2") && !project.root().join("new-a").exists());
    ok(&project, "adopt c");
    assert!(has_line(&project, "two c") && project.root().join("new-c").exists());
    // The same again has nothing to do.
    assert!(json(&project, "adopt c")["dispatch_id"].is_null());
    assert_eq!(text(project.root().join("untracked")).as_deref(), Some("mine\n"));
}

#[test]
fn what_both_changed_is_merged_and_the_same_lines_are_asked_about() {
    let project = project();
    ok(&project, "fork --name f");
    let fork = fork_of(&project, "f");
    replace(&fork, "2", "two there");
    replace(&fork, "18", "eighteen there");
    std::fs::write(fork.join("untracked"), "theirs\n").expect("a file");
    replace(project.root(), "2", "two here");
    replace(project.root(), "10", "ten here");
    let before = ic_testkit::tree(project.root());
    for line in ["adopt f", "adopt f --dry-run"] {
        let refused = run(&project, line);
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    }
    assert_eq!(ic_testkit::tree(project.root()), before);
    let kept = run(&project, "adopt f --ours --json");
    assert_eq!((kept.code, &kept.json()["skipped"][0]["path"]), (Some(4), &Value::from("f")));
    assert!(["two here", "ten here", "eighteen there"].iter().all(|line| has_line(&project, line)));
    assert_eq!(text(project.root().join("untracked")).as_deref(), Some("theirs\n"));
    ok(&project, "undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    ok(&project, "adopt f --theirs");
    assert!(["two there", "ten here", "eighteen there"].iter().all(|line| has_line(&project, line)));
    ok(&project, "undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn dropped_fork_is_kept_in_a_checkpoint_and_its_commits_by_a_ref() {
    let project = project();
    ok(&project, "fork --name f");
    let fork = fork_of(&project, "f");
    std::fs::write(fork.join("made"), "made\n").expect("a file");
    git_in(&fork, &["add", "-A"]);
    git_in(&fork, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "made"]);
    let head = git_in(&fork, &["rev-parse", "HEAD"]);
    std::fs::write(fork.join("made"), "changed\n").expect("a file");
    std::fs::write(fork.join("ignored"), "x\n").expect("a file");
    let refused = run(&project, "drop f");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert!(fork.join("ignored").exists());
    let dropped = json(&project, "drop f --force");
    assert!(!fork.exists() && !fork_of(&project, "").exists());
    let kept = dropped["kept_ref"].as_str().expect("a ref");
    assert_eq!(git_in(project.root(), &["rev-parse", kept]), head);
    let id = dropped["checkpoint_id"].as_str().expect("a checkpoint");
    assert_eq!(run(&project, &format!("checkpoint cat {id} made")).stdout, "changed\n");
    assert_eq!(run(&project, "drop f").code, Some(3));
    assert_eq!(git_in(project.root(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn fork_in_which_work_goes_on_is_not_dropped() {
    let project = project();
    let mut command = project.command(["exec", "--detach", "--isolate=w", "--", "sleep", "1000"]);
    command.env_remove("IC_TEST_IDS");
    let begun = CliOutcome::of(&mut command);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let refused = run(&project, "drop w --force");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "work_running"), "{refused:?}");
    assert!(fork_of(&project, "w").exists());
    let pid =
        json(&project, "dispatch list")[0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    ic_testkit::signals::send_to("TERM", pid);
    let id = begun.stdout.trim();
    assert_eq!(run(&project, &format!("wait {id}")).code, Some(1));
    ok(&project, "drop w");
}

#[test]
fn of_commands_at_once_in_forks_each_has_its_own() {
    let project = project();
    let start = |at: usize| {
        let line = format!("echo {at} > own; sleep 0.1; echo {at} >> own");
        let mut command = project.command(["exec", &format!("--isolate=n{at}"), "--", "sh", "-c", &line]);
        command.env_remove("IC_TEST_IDS").stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().expect("start ic")
    };
    let all: Vec<_> = (0..8).map(start).collect();
    for one in all {
        let output = one.wait_with_output().expect("its end");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for at in 0..8 {
        let fork = fork_of(&project, &format!("n{at}"));
        assert_eq!(text(fork.join("own")), Some(format!("{at}\n{at}\n")));
    }
    let compared = json(&project, "compare");
    for one in compared.as_array().expect("a list") {
        assert_eq!(
            (&one["status"], one["files"].as_array().map(Vec::len)),
            (&Value::from("completed"), Some(1)),
            "{one}"
        );
    }
    assert_eq!(text(project.root().join("own")), None);
}

/// Makes a fork, and returns its directory.
fn forked(project: &Project) -> PathBuf {
    PathBuf::from(ok(project, "fork --name x"))
}

/// A call in another work tree. The ledger lies in the work tree of the project, and is not found from there.
fn in_place(project: &Project, place: &std::path::Path, line: &str) -> CliOutcome {
    let mut command = project.command(crate::support::args(line));
    command.current_dir(place).env_remove("IC_TEST_IDS").env("IC_DB", project.root().join(".ic/ic.db"));
    CliOutcome::of(&mut command)
}

fn write(root: &std::path::Path, name: &str, content: &str) {
    ic_testkit::write_in(root, name, content);
}

#[test]
fn what_is_here_is_captured_before_an_adoption_writes_even_where_nothing_is_captured_along_the_way() {
    let project = project();
    project.write(".ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
    let fork = forked(&project);
    replace(&fork, "2", "two there");
    replace(project.root(), "18", "in no checkpoint yet");
    let before = ic_testkit::tree(project.root());
    ok(&project, "adopt x");
    ok(&project, "undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn work_tree_of_a_person_is_no_fork_whatever_its_checkpoints_are_called() {
    let project = project();
    let place = project.root().with_file_name("own");
    let name = place.to_str().expect("text");
    git_in(project.root(), &["worktree", "add", "-q", "--detach", name]);
    write(&place, "precious", "x");
    assert_eq!(in_place(&project, &place, "checkpoint create --name fork").code, Some(0));
    assert_eq!(json(&project, "compare"), serde_json::json!([]));
    for line in [format!("drop {name} --force"), format!("adopt {name}"), "drop own --force".to_owned()] {
        let refused = run(&project, &line);
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), "fork_not_found"), "{line}");
    }
    assert!(place.join("precious").exists());
}

#[test]
fn later_checkpoint_of_any_name_in_a_fork_takes_nothing_from_its_adoption() {
    let project = project();
    let fork = forked(&project);
    replace(&fork, "2", "two there");
    assert_eq!(in_place(&project, &fork, "checkpoint create --name fork").code, Some(0));
    write(&fork, "later", "x");
    ok(&project, "adopt x");
    assert!(has_line(&project, "two there") && project.root().join("later").exists());
}

#[test]
fn redo_in_a_new_fork_has_nothing_to_take_back() {
    let project = project();
    let fork = forked(&project);
    let before = ic_testkit::tree(&fork);
    let refused = in_place(&project, &fork, "redo --yes");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_undo"), "{refused:?}");
    assert_eq!(ic_testkit::tree(&fork), before);
}

#[test]
fn repository_and_work_tree_in_a_fork_are_not_dropped_with_it() {
    let project = project();
    let fork = forked(&project);
    std::fs::create_dir(fork.join("nested")).expect("a directory");
    git_in(&fork.join("nested"), &["init", "-q"]);
    let refused = run(&project, "drop x");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert!(refused.stderr.contains("nested/.git"), "{refused:?}");
    let inside = fork.join("inside");
    git_in(project.root(), &["worktree", "add", "-q", "--detach", inside.to_str().expect("text")]);
    write(&inside, "precious", "x");
    for line in ["drop x", "drop x --force"] {
        assert_eq!(run(&project, line).code, Some(1), "{line}");
    }
    assert!(inside.join("precious").exists());
    git_in(project.root(), &["worktree", "remove", "--force", inside.to_str().expect("text")]);
    ok(&project, "drop x --force");
}

#[test]
fn fork_of_a_sparse_checkout_leaves_out_the_same() {
    let project = project();
    write(project.root(), "in/a", "a");
    write(project.root(), "out/b", "b");
    git_in(project.root(), &["add", "-A"]);
    git_in(project.root(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "two"]);
    git_in(project.root(), &["sparse-checkout", "set", "in"]);
    let fork = forked(&project);
    assert!(fork.join("in/a").exists() && !fork.join("out").exists());
    assert_eq!(git_in(&fork, &["status", "--short"]), git_in(project.root(), &["status", "--short"]));
}

#[test]
fn large_tracked_file_comes_along_and_a_secret_is_named() {
    let project = project();
    project.write(".ic.yaml", "rollback: {checkpointing: {max-file-size: 1KiB}}\n");
    project.write("big", &"x".repeat(5_000));
    git_in(project.root(), &["add", "big"]);
    git_in(project.root(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "big"]);
    project.write(".env", "TOKEN=abc\n");
    let made = json(&project, "fork --name x");
    let fork = fork_of(&project, "x");
    assert_eq!(text(fork.join("big")).map(|text| text.len()), Some(5_000));
    assert!(
        made["warnings"][0]["message"].as_str().expect("a warning").starts_with(".env is not in the fork"),
        "{made}"
    );
    // And the other way round.
    write(&fork, "keys.pem", "-----BEGIN PRIVATE KEY-----\n");
    write(&fork, "good", "x");
    let adopted = run(&project, "adopt x --json");
    assert_eq!(
        (adopted.code, &adopted.json()["skipped"][0]["path"]),
        (Some(4), &Value::from("keys.pem")),
        "{adopted:?}"
    );
    assert!(project.root().join("good").exists() && !project.root().join("keys.pem").exists());
}

#[test]
fn looks_of_compare_and_of_a_dry_run_write_nothing() {
    let project = project();
    let fork = forked(&project);
    write(&fork, "made", "x");
    let before = project.dump();
    assert_eq!(json(&project, "compare")[0]["files"][0]["path"], "made");
    assert_eq!(json(&project, "adopt x --dry-run")["changes"][0]["path"], "made");
    assert_eq!(project.dump(), before);
    assert!(!project.root().join("made").exists());
}

#[test]
fn removal_and_change_of_one_file_are_asked_about_in_words_of_both() {
    let project = project();
    for name in ["gone", "kept", "moved"] {
        write(project.root(), name, &format!("{name}\nb\nc\nd\n"));
    }
    let fork = forked(&project);
    std::fs::remove_file(fork.join("gone")).expect("remove");
    write(&fork, "kept", "there\n");
    write(&fork, "both", "there\n");
    std::fs::rename(fork.join("moved"), fork.join("name")).expect("rename");
    write(project.root(), "gone", "here\n");
    std::fs::remove_file(project.root().join("kept")).expect("remove");
    write(project.root(), "both", "here\n");
    write(project.root(), "moved", "moved\nb\nhere\nd\n");
    let before = ic_testkit::tree(project.root());
    let refused = run(&project, "adopt x");
    for said in [
        "both (both made it)",
        "gone (the fork removed it, and it was changed here)",
        "kept (the fork changed it, and it was removed here)",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(ic_testkit::tree(project.root()), before);
    let taken = run(&project, "adopt x --theirs --json");
    assert_eq!(taken.code, Some(4), "{taken:?}");
    let left = &taken.json()["skipped"][0];
    assert_eq!(left["path"], "moved");
    assert_eq!(left["reason"], "the fork renamed it to name, and it was changed here: both stay");
    assert_eq!(text(project.root().join("kept")).as_deref(), Some("there\n"));
    assert_eq!(text(project.root().join("both")).as_deref(), Some("there\n"));
    assert!(!project.root().join("gone").exists() && project.root().join("name").exists());
    ok(&project, "undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn database_that_a_program_uses_here_stays() {
    let project = project();
    let open = |root: &std::path::Path| rusqlite::Connection::open(root.join("app.db")).expect("a database");
    let (here, there);
    {
        let made = open(project.root());
        made.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").expect("a table");
    }
    let fork = forked(&project);
    there = open(&fork);
    there.execute_batch("INSERT INTO t VALUES (2)").expect("a row");
    drop(there);
    here = open(project.root());
    let count = || here.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).expect("a count");
    assert_eq!(count(), 1);
    let adopted = run(&project, "adopt x --json");
    assert_eq!((adopted.code, &adopted.json()["skipped"][0]["path"]), (Some(4), &Value::from("app.db")), "{adopted:?}");
    assert_eq!(count(), 1);
}

#[test]
fn a_fork_is_adopted_again_with_what_changed_since() {
    let project = project();
    let fork = PathBuf::from(ok(&project, "fork --name a"));
    replace(&fork, "5", "five");
    std::fs::write(fork.join("new"), "one\n").expect("a file");
    ok(&project, "adopt a");
    replace(&fork, "five", "cinq");
    std::fs::write(fork.join("new"), "one\ntwo\n").expect("a file");
    replace(project.root(), "15", "fifteen");
    ok(&project, "adopt a");
    assert!(has_line(&project, "cinq") && has_line(&project, "fifteen"));
    assert_eq!(text(project.root().join("new")).as_deref(), Some("one\ntwo\n"));
    // An undone adoption does not count: what it brought is adopted again.
    ok(&project, "undo --yes");
    assert!(has_line(&project, "five"));
    ok(&project, "undo --yes");
    assert!(has_line(&project, "5") && has_line(&project, "fifteen"));
    ok(&project, "adopt a");
    assert!(has_line(&project, "cinq") && has_line(&project, "fifteen"));
}

#[test]
fn a_decision_that_cannot_be_carried_out_is_named() {
    let project = project();
    project.write("d/x", "x\n");
    let fork = PathBuf::from(ok(&project, "fork --name u"));
    std::fs::write(fork.join("d/e"), "new\n").expect("a file");
    std::fs::rename(project.root().join("d"), project.root().join("dd")).expect("rename");
    std::os::unix::fs::symlink("dd", project.root().join("d")).expect("a link");
    assert_eq!(run(&project, "adopt u").code, Some(1));
    let forced = run(&project, "adopt u --theirs --json");
    assert_eq!(forced.code, Some(4), "{forced:?}");
    assert_eq!(forced.json()["skipped"][0]["path"], "d/e");
    assert_eq!(text(project.root().join("dd/e")), None, "nothing is written through a link");
}

#[test]
fn a_fork_that_was_moved_by_hand_keeps_its_commits() {
    let project = project();
    let fork = PathBuf::from(ok(&project, "fork"));
    std::fs::write(fork.join("c"), "c\n").expect("a file");
    git_in(&fork, &["add", "c"]);
    git_in(&fork, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "w"]);
    let commit = git_in(&fork, &["rev-parse", "HEAD"]);
    let moved = fork.with_file_name("moved");
    std::fs::rename(&fork, &moved).expect("move it");
    let refused = run(&project, "fork --name 1 --json");
    assert_eq!((refused.code, refused.error()), (Some(1), "file_conflict".to_owned()));
    // Without a name the next free one is taken.
    assert!(ok(&project, "fork").ends_with("/2"));
    git_in(project.root(), &["worktree", "repair", moved.to_str().expect("a path")]);
    assert_eq!(git_in(&moved, &["rev-parse", "HEAD"]), commit);
}

#[test]
fn a_new_fork_has_no_work_of_an_earlier_one_of_its_name() {
    let project = project();
    ok(&project, "exec --isolate=k -- true");
    assert_eq!(json(&project, "compare")[0]["status"], "completed");
    ok(&project, "drop k");
    ok(&project, "fork --name k");
    assert_eq!(json(&project, "compare")[0]["status"], Value::Null);
}

#[test]
fn an_adoption_says_what_work_there_did_not_end_well() {
    let project = project();
    assert_eq!(run(&project, "exec --isolate=bad -- sh -c 'echo half > half; exit 7'").code, Some(7));
    let adopted = json(&project, "adopt bad");
    assert_eq!(adopted["warnings"][0]["code"], "not_completed", "{adopted}");
    assert_eq!(text(project.root().join("half")).as_deref(), Some("half\n"));
}

#[test]
fn a_command_in_a_fork_is_told_where_it_is() {
    let project = project();
    let mut call = project.command(["exec", "--isolate=w", "--", "env"]);
    let outcome = CliOutcome::of(call.env_remove("IC_TEST_IDS").env("PWD", project.root()));
    let said = outcome.stdout.lines().find_map(|line| line.strip_prefix("PWD="));
    assert_eq!(said.map(PathBuf::from), Some(fork_of(&project, "w")), "{outcome:?}");
}

#[test]
fn a_removal_that_was_killed_with_its_git_is_finished_by_the_same_call() {
    let project = project();
    let fork = PathBuf::from(ok(&project, "fork --name m"));
    std::fs::write(fork.join("made"), "made\n").expect("a file");
    // This git dies in the middle of the removal, and kills ic, too.
    let tools = project.cli.beside("tools");
    std::fs::create_dir_all(&tools).expect("a directory");
    let path = std::env::var("PATH").expect("PATH");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'worktree remove'*) rm -f {0}/.git {0}/f; kill -9 $PPID; exit 1 ;; esac\nPATH='{path}' exec git \"$@\"\n",
        fork.display()
    );
    std::fs::write(tools.join("git"), script).expect("a script");
    Command::new("chmod").arg("+x").arg(tools.join("git")).status().expect("chmod");
    let mut call = project.command(["drop", "m"]);
    let killed = CliOutcome::of(call.env_remove("IC_TEST_IDS").env("PATH", format!("{}:{path}", tools.display())));
    assert_eq!((killed.code, fork.join("made").exists()), (None, true), "{killed:?}");
    let dropped = json(&project, "drop m");
    assert!(!fork.exists() && !fork.parent().expect("its directory").exists());
    let kept = dropped["checkpoint_id"].as_str().expect("a checkpoint");
    ok(&project, &format!("checkpoint restore {kept} --into --strategy files-only --yes"));
    assert_eq!(text(project.root().join("made")).as_deref(), Some("made\n"));
    ok(&project, "fork --name m");
}

#[test]
fn work_in_a_dropped_fork_is_still_shown() {
    let project = project();
    ok(&project, "exec --isolate=k -- sh -c 'echo made > made'");
    let work = json(&project, "compare")[0]["dispatch_id"].as_str().expect("its work").to_owned();
    ok(&project, "drop k");
    let shown = json(&project, &format!("show {work}"));
    assert_eq!((&shown["files"][0]["path"], &shown["files"][0]["added"]), (&Value::from("made"), &Value::from(1)));
    assert!(ok(&project, &format!("show {work} -p --format text")).contains("+made"));
}

#[test]
fn an_undo_names_a_newer_fork_as_one() {
    let project = project();
    ok(&project, "exec -- sh -c 'echo made > made'");
    let work = json(&project, "log")[0]["reference"].as_str().expect("a reference").to_owned();
    ok(&project, "fork --name k");
    let plan = run(&project, &format!("run rollback @ --to {work} --layer=all --dry-run --format text"));
    let undo = run(&project, "undo --dry-run --format text");
    for said in [&plan.stdout, &undo.stdout] {
        assert!(!said.contains("git worktree remove"), "{said}");
    }
}

#[test]
fn an_unfinished_fork_takes_no_work() {
    let project = project();
    let fork = PathBuf::from(ok(&project, "fork --name k"));
    // A call that was killed before the fork had all files leaves such a mark.
    let mark = project.root().join(".git/worktrees/k/ic-fork");
    std::fs::write(&mark, "").expect("unmark it");
    let directory = fork.to_str().expect("a path").to_owned();
    let db = project.cli.db();
    let line = format!("-C {directory} --db {} exec --no-checkpoint --json -- touch x", db.display());
    let refused = run(&project, &line);
    assert_eq!((refused.code, refused.error()), (Some(1), "file_conflict".to_owned()));
    assert!(!fork.join("x").exists());
    assert!(ok(&project, "compare --format text").contains("unfinished"));
    ok(&project, "drop k");
}

#[test]
fn what_stays_behind_is_named_also_by_a_command_in_the_background() {
    let project = project();
    project.write("sub/.env", "KEY=one-two-three-four-five\n");
    let mut call = project.command(["exec", "--isolate=k", "--detach", "--format", "text", "--", "true"]);
    let begun = CliOutcome::of(call.env_remove("IC_TEST_IDS"));
    assert_eq!(begun.code, Some(0), "{begun:?}");
    assert!(begun.stderr.contains("sub/.env is not in the fork"), "{begun:?}");
    assert_eq!(begun.stdout.trim().lines().count(), 1, "{begun:?}");
    ok(&project, "wait");
    let said = serde_json::from_str::<Value>(&ok(&project, "exec --isolate=l --json -- true")).expect("JSON");
    assert_eq!(said["warnings"][0]["code"], "not_in_fork", "{said}");
    // More of them than a pipe holds.
    for at in 0..1500 {
        project.write(format!("many/directory-number-{at}/.env"), "KEY=one-two-three-four-five\n");
    }
    let begun = run(&project, "exec --isolate=m --detach --json -- true");
    let warnings = begun.json()["warnings"].as_array().expect("a list").clone();
    assert!(
        warnings.len() > 1 && warnings.iter().all(|one| one["code"] == "not_in_fork"),
        "{} warnings",
        warnings.len()
    );
    ok(&project, "wait");
}

#[test]
fn what_could_not_come_comes_with_the_next_adoption() {
    let project = project();
    project.write("d/x", "x\n");
    let fork = PathBuf::from(ok(&project, "fork --name u"));
    std::fs::write(fork.join("d/e"), "new\n").expect("a file");
    std::fs::write(fork.join("other"), "other\n").expect("a file");
    std::fs::rename(project.root().join("d"), project.root().join("dd")).expect("rename");
    std::os::unix::fs::symlink("dd", project.root().join("d")).expect("a link");
    assert_eq!(run(&project, "adopt u --theirs").code, Some(4));
    assert_eq!(text(project.root().join("other")).as_deref(), Some("other\n"));
    std::fs::remove_file(project.root().join("d")).expect("the link");
    std::fs::rename(project.root().join("dd"), project.root().join("d")).expect("rename");
    ok(&project, "adopt u");
    assert_eq!(text(project.root().join("d/e")).as_deref(), Some("new\n"));
}

#[test]
fn an_adoption_replaces_the_mark_of_a_fork_as_a_whole() {
    let project = project();
    let fork = forked(&project);
    write(&fork, "made", "x");
    let (mark, other) = (project.root().join(".git/worktrees/x/ic-fork"), project.root().with_file_name("other-name"));
    std::fs::hard_link(&mark, &other).expect("another name");
    let before = text(mark.clone()).expect("the mark");
    ok(&project, "adopt x");
    // A call that is killed while it writes leaves the old mark, and not an empty one.
    assert_eq!(text(other), Some(before.clone()));
    assert!(text(mark).is_some_and(|now| now.starts_with(&before) && now.lines().count() == 2));
}

#[test]
fn a_fork_of_another_ledger_leaves_the_others_usable() {
    let project = project();
    let fork = forked(&project);
    write(&fork, "made", "x");
    let other = PathBuf::from(ok(&project, "fork --name other"));
    let mark = project.root().join(".git/worktrees/other/ic-fork");
    std::fs::write(mark, "00000000-0000-7000-8000-000000000000").expect("as another ledger marks it");
    let table = ok(&project, "compare --format text");
    assert!(table.contains("of another ledger") && !table.contains("unfinished"), "{table}");
    ok(&project, "adopt x");
    let refused = run(&project, "adopt other");
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert!(!refused.stderr.contains("unfinished"), "{refused:?}");
    ok(&project, "drop other");
    assert!(!other.exists());
}

#[test]
fn a_fork_with_forks_of_its_own_is_not_dropped() {
    let project = project();
    let fork = forked(&project);
    let inner = in_place(&project, &fork, "fork --name inner").stdout.trim().to_owned();
    for line in ["drop x", "drop x --force"] {
        let refused = run(&project, line);
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{line}: {refused:?}");
        assert!(refused.stderr.contains(&inner), "{line}: {refused:?}");
    }
    ok(&project, &format!("drop {inner}"));
    ok(&project, "drop x");
    assert!(!fork.exists());
}

#[test]
fn a_command_in_a_fork_whose_caller_was_undone_ends_as_it_does() {
    let project = project();
    let of_caller = ok(&project, "run create --goal g --phases a,b");
    let caller = ok(&project, &format!("dispatch create {of_caller}"));
    ok(&project, &format!("dispatch start {caller}"));
    let (begun, go) = (project.root().with_file_name("begun"), project.root().with_file_name("go"));
    let line = format!("touch {}; while ! test -e {}; do sleep 0.01; done; exit 7", begun.display(), go.display());
    let mut call = project.command(["exec", "--isolate=k", "--", "sh", "-c", &line]);
    call.env_remove("IC_TEST_IDS").env("IC_DISPATCH", &caller);
    call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = call.spawn().expect("start ic");
    ic_testkit::wait_for("the command runs", || begun.exists());
    ok(&project, &format!("dispatch cancel {caller}"));
    ok(&project, &format!("run rollback {of_caller} --to-phase a --include-target"));
    write(project.root().parent().expect("a directory"), "go", "");
    let ended = CliOutcome::at_end_of(child);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let of_fork = json(&project, &format!("run list --project {}", fork_of(&project, "k").display()));
    assert_eq!(of_fork[0]["status"], "completed", "{of_fork}");
}

#[test]
fn of_adoptions_at_once_a_refused_one_leaves_no_work() {
    let project = project();
    let names = ["a", "b"];
    for name in names {
        ok(&project, &format!("fork --name {name}"));
        replace(&fork_of(&project, name), "2", name);
    }
    let calls = names.map(|name| {
        let mut call = project.command(["adopt", name]);
        call.env_remove("IC_TEST_IDS").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic")
    });
    let mut codes = calls.map(|call| CliOutcome::at_end_of(call).code);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(1)]);
    let works = json(&project, "dispatch list");
    assert_eq!(works.as_array().map(Vec::len), Some(1), "{works}");
}
