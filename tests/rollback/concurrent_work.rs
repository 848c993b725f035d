//! Other runs beside the one that is rolled back: in the same tree, and in another work tree of the same repository.

use std::path::Path;

use ic_testkit::{Cli, TestWorld, git_in, git_state, ledger, tree, wait_for};
use serde_json::{Value, json};

use crate::interrupted::start;
use crate::project::{Work as _, assert_said_alike, in_git};
use crate::rows::Rows as _;
use crate::story::{story, story_with_rows};

fn rows_of(cli: &Cli, run: &str) -> Vec<String> {
    let dump = cli.dump();
    let tables = ["runs|", "dispatches|", "run_artifacts|", "run_agents|", "run_skips|", "compensations|"];
    let is_meant = |line: &&str| line.contains(run) && tables.iter().any(|table| line.starts_with(table));
    dump.lines().filter(is_meant).map(str::to_owned).collect()
}

/// A second run in the tree of a story, with work of its own in it.
fn with_another() -> (TestWorld, String, String) {
    let world = story();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y,z"]);
    world.ic(&["run", "advance", &other]);
    world.write("other/file", "theirs\n");
    let dispatch = world.cli.ok(["dispatch", "create", &other, "--name", "theirs"]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "other/file"]);
    world.ic(&["run", "artifact", "add", &other, "--path", "other/file"]);
    world.ic(&["run", "agent", "add", &other, "--type", "codex"]);
    world.ic(&["compensation", "add", &other, "--step", "theirs", "--shell", "exit 3"]);
    (world, other, dispatch)
}

#[test]
fn files_and_rows_of_another_run_in_the_tree_stay() {
    let (world, other, _) = with_another();
    let rows = rows_of(&world.cli, &other);
    assert!(rows.len() >= 5, "{rows:?}");
    let report = world.roll_back("a", &[]);
    // A file that only the other run changed is in no plan and in no report.
    assert!(!report.to_string().contains("other/file"), "{report}");
    assert_eq!(world.read("other/file").as_deref(), Some("theirs\n"));
    assert_eq!((world.read("src/a.rs"), world.read("notes/todo")), (None, None));
    assert_eq!(rows_of(&world.cli, &other), rows);
}

#[test]
fn commits_of_another_run_are_not_taken_off_the_branch() {
    let (world, other, dispatch) = with_another();
    let sha = world.commit("theirs");
    world.ic(&["dispatch", "record", &dispatch, "--commit", &sha]);
    let (rows, before) = (rows_of(&world.cli, &other), world.state());
    for more in [&["--yes"][..], &["--dry-run"], &["--yes", "--keep-theirs"]] {
        let refused = world.cli.run(world.all("a", more));
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "foreign_commits"), "{refused:?}");
        let (rest, forced) = if more.contains(&"--keep-theirs") {
            ("--layer=workflow,effects,files --keep-theirs;", "anyway: --force-commits")
        } else {
            ("--layer=workflow,effects,files;", "anyway: --force-commits\"")
        };
        let said = format!("{}{}", refused.stderr, refused.stdout);
        assert!(said.contains(rest) && said.contains(forced), "{refused:?}");
    }
    // Forced, it is said whose they are, and not that it would be refused.
    let dry = world.cli.json(world.all("a", &["--force", "--dry-run"]));
    assert_eq!(dry["commits"][0]["other_run_id"], other.as_str(), "{dry}");
    assert!(dry["commits"][1]["other_run_id"].is_null(), "{dry}");
    let mut text = world.all("a", &["--force", "--dry-run", "--format", "text"]);
    text.retain(|word| *word != "--json");
    let text = world.ic(&text);
    assert!(text.contains(&format!("recorded by the run {}", &other[other.len() - 8..])), "{text}");
    assert!(!text.contains("CONFLICT") && !text.contains("be refused"), "{text}");
    assert!(world.state() == before, "a refusal changed something");
    let words = ["run", "rollback", &world.run, "--to-phase", "a", "--layer=workflow,effects,files", "--yes"];
    world.ic(&words);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), sha);
    assert_eq!(world.read("other/file").as_deref(), Some("theirs\n"));
    assert_eq!(rows_of(&world.cli, &other), rows);
}

#[test]
fn another_work_tree_of_the_repository_stays() {
    let world = in_git();
    let side = world.cli.home().join("side");
    let side_text = side.to_str().expect("text").to_owned();
    world.git(&["worktree", "add", "-q", "-b", "side", &side_text]);
    let world = world.begun();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y,z", "--project", &side_text]);
    world.write("mine", "mine\n");
    world.commit("mine");
    world.advance();
    world.write("mine", "changed\n");
    world.commit("changed");
    world.write("loose", "loose\n");
    std::fs::write(side.join("theirs"), "theirs\n").expect("a file");
    git_in(&side, &["add", "-A"]);
    git_in(&side, &["commit", "-q", "-m", "theirs"]);
    world.ic(&["run", "advance", &other]);
    std::fs::write(side.join("theirs"), "changed\n").expect("a file");
    git_in(&side, &["add", "-A"]);
    git_in(&side, &["commit", "-q", "-m", "theirs, changed"]);
    std::fs::write(side.join("loose"), "loose\n").expect("a file");
    let sha = git_in(&side, &["rev-parse", "HEAD"]);
    let (files, rows) = (tree(&side), rows_of(&world.cli, &other));
    world.roll_back("a", &[]);
    assert_eq!(world.read("mine").as_deref(), Some("mine\n"));
    assert_eq!(world.read("loose"), None);
    assert_eq!(tree(&side), files);
    assert_eq!(git_in(&side, &["rev-parse", "side"]), sha);
    assert_eq!(git_in(&side, &["status", "--porcelain"]), "?? loose");
    assert_eq!(rows_of(&world.cli, &other), rows);
    // And the other way round.
    let (files, git) = (tree(world.cli.root()), git_state(world.cli.root()));
    let mine = rows_of(&world.cli, &world.run);
    world.ic(&["run", "rollback", &other, "--to-phase", "x", "--layer=all", "--yes"]);
    assert_eq!(std::fs::read_to_string(side.join("theirs")).expect("theirs"), "theirs\n");
    assert_eq!(tree(world.cli.root()), files);
    let without_side =
        |text: &str| text.lines().filter(|line| !line.contains("heads/side")).collect::<Vec<_>>().join("\n");
    assert_eq!(without_side(&git_state(world.cli.root())), without_side(&git));
    assert_eq!(rows_of(&world.cli, &world.run), mine);
    assert!(ledger(&world.cli.db()).contains("runs|other|active|x"));
}

#[test]
fn of_two_that_go_on_with_it_at_once_one_acts() {
    let world = story();
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("test -e {home}/repaired || exit 3"), "sleep 0.3"]);
    let mut words = world.all("a", &[]);
    words.push("--yes");
    assert_eq!(world.cli.run(words).code, Some(4));
    std::fs::write(world.cli.home().join("repaired"), "").expect("a file");
    let resume = ["rollback", "resume", &world.run, "--yes", "--json"];
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| world.cli.run(resume))).collect();
        calls.into_iter().map(|call| call.join().expect("a call")).collect()
    });
    let acted = outcomes.iter().filter(|outcome| outcome.code == Some(0)).count();
    assert_eq!(acted, 1, "{outcomes:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome.code != Some(0)) {
        assert!(["work_running", "nothing_to_resume"].contains(&outcome.error().as_str()), "{outcome:?}");
    }
    let calls = std::fs::read_to_string(world.cli.home().join("calls")).expect("the calls");
    assert_eq!(calls, "last\nmail\npay\nbook\n");
    assert_eq!(world.status(), "active@a");
}

/// Everything is rolled back under the plan that was shown, while another process acts during the undo of an effect; returns the report.
fn disturbed(world: &TestWorld, act: impl Fn()) -> Value {
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("touch {home}/begun; while test -e {home}/begun; do sleep 0.02; done")]);
    let dry = world.cli.json(world.all("a", &["--dry-run"]));
    let hash = dry["plan_hash"].as_str().expect("a hash");
    let child = start(world, &world.all("a", &["--expect-plan", hash, "--yes"]));
    let begun = world.cli.home().join("begun");
    wait_for("an effect is being undone", || begun.exists());
    act();
    std::fs::remove_file(begun).expect("let it go on");
    let output = child.wait_with_output().expect("its end");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let has_stopped = report["status"] == "rolling_back";
    assert_eq!(output.status.code(), Some(if has_stopped { 4 } else { 0 }), "{report}");
    report
}

/// The step that a report says has failed because more would be done than was seen; returns what more.
fn more_than_seen(report: &Value, ord: usize) -> &str {
    let step = &report["steps"][ord];
    assert_eq!((&report["status"], &step["status"]), (&json!("rolling_back"), &json!("failed")), "{report}");
    let error = step["error"].as_str().expect("an error");
    error.strip_prefix("plan_changed: the plan that was approved does not name ").expect(error)
}

#[test]
fn what_somebody_does_meanwhile_is_not_taken_back_under_a_plan_that_does_not_name_it() {
    let world = story_with_rows();
    let report = disturbed(&world, || {
        world.write("notes/precious", "hours of work\n");
        world.commit("from beside");
    });
    assert!(more_than_seen(&report, 1).starts_with("notes/precious, and 1 more"), "{report}");
    assert_eq!(world.read("notes/precious").as_deref(), Some("hours of work\n"));
    assert!(world.git(&["log", "--format=%s"]).starts_with("from beside"));
    // The person who resumes it has been told.
    assert!(!report["resume"].as_str().expect("a command").contains("--force"), "{report}");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert_eq!((world.status().as_str(), world.read("notes/precious")), ("active@a", None));
}

#[test]
fn while_a_process_is_at_work_on_it_nobody_is_told_to_go_on() {
    let world = story();
    let report = disturbed(&world, || {
        let id = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
        assert!(world.cli.json(["rollback", "show", &id, "--json"])["resume"].is_null());
        let text = world.ic(&["rollback", "show", &id, "--format", "text"]);
        assert!(text.contains("another process is executing it") && !text.contains("ic rollback"), "{text}");
        let refused = world.cli.run(["run", "advance", &world.run, "--json"]);
        assert_eq!(refused.error(), "rolling_back");
        assert!(!refused.stderr.contains("ic rollback resume"), "{refused:?}");
    });
    assert_eq!(report["status"], "rolled_back", "{report}");
}

#[test]
fn rows_of_meanwhile_are_not_taken_under_a_plan_that_does_not_name_them() {
    let world = story_with_rows();
    let report = disturbed(&world, || world.task("from beside"));
    let more = more_than_seen(&report, 2);
    assert!(more.starts_with("6 rows of requirements instead of 4; "), "{more}");
    assert!(world.rows().contains("from beside") && world.rows().contains("paid"), "nothing is taken");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    assert!(!world.rows().contains("from beside"));
}

#[test]
fn less_than_the_plan_may_be_done_and_the_report_names_the_commits_that_left() {
    let world = story();
    let report = disturbed(&world, || world.remove("notes/todo"));
    assert_eq!(report["status"], "rolled_back", "{report}");
    let world = story();
    let home = world.cli.home().display().to_string();
    world.effect(
        "commits",
        &[&format!(
            "cd {}; git -c user.name=n -c user.email=e@x commit -q --allow-empty -m beside 2>{home}/said",
            world.cli.root().display()
        )],
    );
    let report = world.roll_back("a", &[]);
    assert_eq!(report["commits"].as_array().expect("commits").len(), 3, "{report}");
}

#[test]
fn other_runs_that_write_to_the_same_database_are_counted() {
    let world = story_with_rows();
    for more in ["", ", and 1 more"] {
        let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
        let refused = world.cli.run(world.all("a", &["--dry-run"]));
        assert_eq!(refused.error(), "row_conflict", "{refused:?}");
        let runs = refused.stdout.split("The run ").nth(1).and_then(|rest| rest.split(" uses the same").next());
        let said = runs.expect("the runs");
        assert!(said.ends_with(more) && said.len() == 8 + more.len(), "{said} of {other}");
    }
}

#[test]
fn a_commit_that_another_run_made_since_on_a_branch_beside_stands_against_an_undo() {
    let world = in_git().begun();
    world.write("mine", "mine\n");
    world.commit("mine");
    world.git(&["branch", "side"]);
    world.advance();
    world.git(&["switch", "-q", "side"]);
    world.write("beside", "mine\n");
    let sha = world.commit("beside");
    world.git(&["switch", "-q", "main"]);
    let before = world.state();
    let report = world.roll_back("a", &[]);
    let id = report["rollback_id"].as_str().expect("an id");
    // What another run commits there now would leave the branch.
    let tree = world.git(&["rev-parse", "side^{tree}"]);
    let theirs = world.git(&["commit-tree", "-p", "side", "-m", "theirs", &tree]);
    world.git(&["branch", "-f", "side", &theirs]);
    let other = world.ic(&["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.ic(&["dispatch", "create", &other]);
    world.ic(&["dispatch", "record", &dispatch, "--commit", &theirs]);
    let call = |last: &str| world.cli.run(["redo", id, "--without-effects", last, "--json"]);
    let (preview, refused) = (call("--dry-run"), call("--yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "foreign_commits"), "{refused:?}");
    assert_said_alike(&preview, &refused);
    assert_eq!(world.git(&["rev-parse", "side"]), theirs);
    // The hint leads on, and the commit is kept.
    let restore = refused.stderr.split("ic checkpoint restore ").nth(1).expect("a command");
    let safety = restore.split(' ').next().expect("an id");
    world.ic(&["checkpoint", "restore", safety, "--force", "--yes"]);
    world.ic(&["redo", id, "--without-effects", "--yes"]);
    assert_eq!(world.git(&["rev-parse", "side"]), sha);
    world.state().assert_outside_is(&before, "undone");
    assert!(world.git(&["for-each-ref", "--contains", &theirs, "refs/ic"]).contains("refs/ic/"));
}

#[test]
fn files_that_another_run_changed_and_did_not_record_stay() {
    let world = in_git().begun();
    let work = |run: &str, name: &str| {
        let id = world.ic(&["dispatch", "create", run]);
        world.ic(&["dispatch", "start", &id]);
        world.write(name, name);
        world.ic(&["dispatch", "complete", &id]);
    };
    work(&world.run, "mine");
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    work(&other, "theirs");
    work(&world.run, "later");
    let words = ["undo", "created", "--run", &world.run, "--yes"];
    world.ic(&words);
    assert_eq!((world.read("mine"), world.read("later")), (None, None));
    assert_eq!(world.text("theirs"), "theirs");
}

/// The work trees of a repository have its branches and its stash in common.
#[test]
fn what_was_done_meanwhile_in_another_work_tree_stays() {
    let world = TestWorld::of_a_repository(env!("CARGO_BIN_EXE_ic"));
    let two = world.cli.home().join("two");
    world.git(&["worktree", "add", "-q", "-b", "two", two.to_str().expect("a name")]);
    let say = |session: &str, root: &Path, event: &str| {
        let said = json!({ "session_id": session, "cwd": root, "hook_event_name": event, "prompt": session,
            "transcript_path": "/none", "tool_name": "Bash", "tool_use_id": "1", "tool_input": {} });
        let answer = world.cli.run_with_input(["hook", "claude-code", event], said.to_string().as_bytes());
        assert_eq!(answer.code, Some(0), "{answer:?}");
    };
    say("A", world.root(), "UserPromptSubmit");
    say("A", world.root(), "PreToolUse");
    world.write("b", "of A\n");
    say("A", world.root(), "PostToolUse");
    say("B", &two, "UserPromptSubmit");
    say("B", &two, "PreToolUse");
    std::fs::write(two.join("a"), "hours of work\n").expect("write it");
    git_in(&two, &["stash", "push", "-q", "-m", "of two"]);
    git_in(&two, &["branch", "of-two"]);
    say("B", &two, "PostToolUse");
    say("B", &two, "Stop");
    // A person changes a file there, and no hook tells of it.
    std::fs::write(two.join("a"), "more of it\n").expect("write it");
    git_in(&two, &["stash", "push", "-q", "-m", "of a person"]);
    say("A", world.root(), "Stop");
    let of_git = || [world.git(&["stash", "list"]), world.git(&["branch", "--format=%(refname:short)"])];
    let theirs = of_git();
    assert_eq!((theirs[0].lines().count(), theirs[1].lines().count()), (2, 3), "{theirs:?}");
    world.ic(&["undo", "--yes"]);
    assert!(!world.root().join("b").exists());
    assert_eq!(of_git(), theirs);
    world.ic(&["redo", "--yes"]);
    assert_eq!((of_git(), world.text("b")), (theirs, "of A\n".to_owned()));
    // From there, the plan of this tree's work says where its paths are.
    let run = world.cli.json(["session", "show", "A"])["run_id"].as_str().expect("a run").to_owned();
    let said = |at: &Path| {
        let mut look = world.cli.command(["undo", "--run", &run, "--dry-run", "--format=text"]);
        String::from_utf8_lossy(&look.current_dir(at).output().expect("start ic").stderr).into_owned()
    };
    let here = format!("works in {}: the paths below are there", world.root().display());
    assert!(said(&two).contains(&here), "{}", said(&two));
    assert_eq!(said(world.root()), "");
}
