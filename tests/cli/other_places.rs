//! Agents in work trees inside of the project: each has a place of its own, and is told of the others.

use std::fs;
use std::path::{Path, PathBuf};

use ic_testkit::{CliOutcome, git_in};
use serde_json::{Value, json};

use crate::agents::{Said, captured, say};
use crate::support::Project;

/// What a client says of a session whose working directory this is.
fn said(session: &str, event: &str, place: &Path) -> Said {
    Said::new("claude-code", session, event)
        .prompt(&format!("p-{session}"), session)
        .with("cwd", place.to_str().expect("text"))
}

fn prompt(project: &Project, session: &str, place: &Path) {
    say(project, &said(session, "UserPromptSubmit", place));
}

/// A tool call of a session.
fn call(project: &Project, session: &str, place: &Path, id: &str, deed: impl FnOnce()) {
    let told = |event: &str| {
        let mut said = said(session, event, place).with("tool_name", "Bash").with("tool_use_id", id);
        said.payload["tool_input"] = json!({ "command": "make" });
        say(project, &said)
    };
    told("PreToolUse");
    deed();
    told("PostToolUse");
}

fn stop(project: &Project, session: &str, place: &Path) {
    say(project, &said(session, "Stop", place));
}

fn at(project: &Project, place: &Path, words: &[&str]) -> CliOutcome {
    let all = [&["-C", place.to_str().expect("text")], words].concat();
    project.run_words(all)
}

fn done(project: &Project, place: &Path, words: &[&str]) -> CliOutcome {
    let outcome = at(project, place, words);
    assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
    outcome
}

fn write(place: &Path, name: &str, text: &str) {
    fs::write(place.join(name), text).expect("a file");
}

fn commit(place: &Path, message: &str) {
    git_in(place, &["add", "-A"]);
    git_in(place, &["commit", "-q", "-m", message]);
}

fn with_inner(is_ignored: bool) -> (Project, PathBuf) {
    let project = captured();
    git_in(project.root(), &["init", "-q", "-b", "main"]);
    write(project.root(), ".gitignore", if is_ignored { ".claude/\n.ic/\n" } else { ".ic/\n" });
    write(project.root(), "base", "base\n");
    commit(project.root(), "base");
    let inner = project.root().join(".claude/worktrees/feat");
    git_in(project.root(), &["worktree", "add", "-q", "-b", "feat", inner.to_str().expect("text")]);
    (project, inner)
}

/// The agent main works before and after feat does, which works in the inner tree and leaves some of its work uncommitted.
fn both_at_work(project: &Project, inner: &Path) {
    let root = project.root().to_owned();
    prompt(project, "main", &root);
    call(project, "main", &root, "m1", || write(&root, "mine", "mine\n"));
    prompt(project, "feat", inner);
    call(project, "feat", inner, "f1", || {
        write(inner, "theirs", "theirs\n");
        commit(inner, "theirs");
        write(inner, "base", "changed\n");
    });
    call(project, "main", &root, "m2", || write(&root, "mine", "mine, changed\n"));
    call(project, "feat", inner, "f2", || write(inner, "loose", "loose\n"));
    stop(project, "feat", inner);
    stop(project, "main", &root);
}

fn entries(project: &Project, place: &Path) -> Value {
    done(project, place, &["log", "--json"]).json()
}

#[test]
fn an_undo_in_the_outer_tree_leaves_the_work_of_the_inner_one() {
    for (is_ignored, is_alone) in [(true, false), (false, false), (true, true), (false, true)] {
        let (project, inner) = with_inner(is_ignored);
        both_at_work(&project, &inner);
        let log = entries(&project, project.root());
        assert_eq!(log.as_array().map(Vec::len), Some(1), "{log}");
        assert_eq!(log[0]["file_counts"]["created"], 1, "{log}");
        let theirs = || (ic_testkit::tree(&inner), git_in(&inner, &["log", "--format=%s"]));
        let before = theirs();
        let mut words = vec!["undo", "--yes", "--json"];
        if is_alone {
            words.extend(["--only", log[0]["reference"].as_str().expect("a reference")]);
        }
        let plan = done(&project, project.root(), &[&words[..], &["--dry-run"]].concat());
        assert!(!plan.stdout.contains("theirs"), "{plan:?}");
        done(&project, project.root(), &words);
        assert!(!project.root().join("mine").exists());
        assert_eq!(theirs(), before);
        done(&project, project.root(), &["redo", "--yes"]);
        assert_eq!(fs::read_to_string(project.root().join("mine")).expect("a file"), "mine, changed\n");
        assert_eq!(theirs(), before);
    }
}

#[test]
fn an_undo_in_the_inner_tree_leaves_the_work_of_the_outer_one() {
    let (project, inner) = with_inner(false);
    both_at_work(&project, &inner);
    let log = entries(&project, &inner);
    assert_eq!(
        log[0]["file_counts"],
        json!({ "created": 2, "modified": 1, "deleted": 0, "shared": 0, "directories": 0 }),
        "{log}"
    );
    done(&project, &inner, &["undo", "--yes"]);
    assert_eq!(git_in(&inner, &["log", "--format=%s"]), "base");
    assert_eq!((inner.join("theirs").exists(), inner.join("loose").exists()), (false, false));
    assert_eq!(fs::read_to_string(project.root().join("mine")).expect("a file"), "mine, changed\n");
}

#[test]
fn a_log_names_the_other_places_that_have_entries() {
    let (project, inner) = with_inner(false);
    let nowhere = at(&project, project.root(), &["log"]);
    assert!(!format!("{nowhere:?}").contains("-C"), "{nowhere:?}");
    prompt(&project, "feat", &inner);
    call(&project, "feat", &inner, "f1", || write(&inner, "theirs", "theirs\n"));
    stop(&project, "feat", &inner);
    let command = format!("ic -C {} log", inner.display());
    for words in [&["log"][..], &["undo", "--yes"], &["undo", "--dry-run"]] {
        let refused = at(&project, project.root(), words);
        assert!(refused.code != Some(0) && refused.stderr.contains(&command), "{words:?}: {refused:?}");
    }
    prompt(&project, "main", project.root());
    call(&project, "main", project.root(), "m1", || write(project.root(), "mine", "mine\n"));
    stop(&project, "main", project.root());
    let here = done(&project, project.root(), &["log", "--format", "text"]);
    assert!(here.stdout.contains(&command), "{here:?}");
    let there = done(&project, &inner, &["log", "--format", "text"]);
    assert!(there.stdout.contains(&format!("ic -C {} log", project.root().display())), "{there:?}");
    fs::remove_dir_all(&inner).expect("a directory");
    let gone = done(&project, project.root(), &["log", "--format", "text"]);
    assert!(!gone.stdout.contains("-C"), "{gone:?}");
}

#[test]
fn a_work_tree_of_another_repository_is_a_place_of_its_own_in_the_ledger_above_it() {
    let project = captured();
    let (repository, inner) = (project.root().join("repository"), project.root().join("wt"));
    fs::create_dir(&repository).expect("a directory");
    git_in(&repository, &["init", "-q", "-b", "main"]);
    write(&repository, "base", "base\n");
    commit(&repository, "base");
    git_in(&repository, &["worktree", "add", "-q", "-b", "wt", inner.to_str().expect("text")]);
    both_at_work(&project, &inner);
    let theirs = ic_testkit::tree(&inner);
    done(&project, project.root(), &["undo", "--yes"]);
    assert!(!project.root().join("mine").exists());
    assert_eq!(ic_testkit::tree(&inner), theirs);
    done(&project, &inner, &["undo", "--yes"]);
    assert!(!inner.join("theirs").exists() && inner.join("base").exists());
}

#[test]
fn commits_of_a_repository_inside_of_the_project_stay_and_are_named_with_the_way_back() {
    let project = captured();
    let (back, front) = (project.root().join("back"), project.root().join("front"));
    for repository in [&back, &front] {
        fs::create_dir(repository).expect("a directory");
        git_in(repository, &["init", "-q", "-b", "main"]);
        write(repository, "base", "base\n");
        commit(repository, "base");
    }
    let heads =
        || [&back, &front].map(|one| (git_in(one, &["rev-parse", "HEAD"]), git_in(one, &["branch", "--show-current"])));
    let before = heads();
    prompt(&project, "main", project.root());
    call(&project, "main", project.root(), "m1", || {
        write(&back, "new", "new\n");
        commit(&back, "of the agent");
        git_in(&front, &["checkout", "-q", "-b", "topic"]);
        write(&front, "base", "changed\n");
    });
    stop(&project, "main", project.root());
    for words in [&["undo", "--dry-run", "--json"][..], &["undo", "--yes", "--json"]] {
        let told = at(&project, project.root(), words);
        assert_eq!(told.code, Some(4), "{told:?}");
        let stay = told.json()["files"]["repositories"].clone();
        assert_eq!((&stay[0]["path"], &stay[1]["path"]), (&json!("back"), &json!("front")), "{stay}");
        for (named, head) in stay.as_array().expect("a list").iter().zip(&before) {
            assert!(named["reason"].as_str().is_some_and(|why| why.contains(&head.0)), "{stay}");
        }
        if words.contains(&"--yes") {
            assert!(!back.join("new").exists());
            assert_eq!(fs::read_to_string(front.join("base")).expect("a file"), "base\n");
            for named in stay.as_array().expect("a list") {
                let why = named["reason"].as_str().expect("a reason");
                let (_, command) = why.split_once("to move it back: ").expect("a command");
                assert!(std::process::Command::new("sh").args(["-c", command]).status().expect("sh").success());
            }
        }
    }
    assert_eq!(heads(), before, "the commands lead back");
    assert_eq!(git_in(&back, &["status", "--porcelain"]), "");
}

#[test]
fn prompts_of_before_a_git_init_are_undone_and_the_repository_stays() {
    let project = captured();
    let root = project.root().to_owned();
    write(&root, "text", "one\n");
    prompt(&project, "main", &root);
    call(&project, "main", &root, "m1", || write(&root, "text", "two\n"));
    call(&project, "main", &root, "m2", || {
        git_in(&root, &["init", "-q", "-b", "main"]);
        git_in(&root, &["add", "text"]);
        git_in(&root, &["commit", "-q", "-m", "first"]);
    });
    stop(&project, "main", &root);
    let told = at(&project, &root, &["undo", "--yes", "--json"]);
    assert_eq!(told.code, Some(4), "{told:?}");
    assert_eq!(told.json()["files"]["repositories"][0]["path"], ".git", "{told:?}");
    assert_eq!(fs::read_to_string(root.join("text")).expect("a file"), "one\n");
    assert_eq!(git_in(&root, &["log", "--format=%s"]), "first");
}

#[test]
fn a_restore_after_the_repository_was_lost_says_that_its_history_is_gone() {
    let project = captured();
    let root = project.root().to_owned();
    git_in(&root, &["init", "-q", "-b", "main"]);
    write(&root, "text", "one\n");
    git_in(&root, &["add", "text"]);
    git_in(&root, &["commit", "-q", "-m", "first"]);
    prompt(&project, "main", &root);
    call(&project, "main", &root, "m1", || {
        fs::remove_dir_all(root.join(".git")).expect("a repository");
        fs::remove_file(root.join("text")).expect("a file");
    });
    stop(&project, "main", &root);
    let told = at(&project, &root, &["undo", "--yes", "--json"]);
    assert_eq!(told.code, Some(4), "{told:?}");
    assert_eq!(fs::read_to_string(root.join("text")).expect("a file"), "one\n");
    let lost = told.json()["files"]["not_kept"].clone();
    assert!(lost[0]["path"] == ".git" && lost.to_string().contains("its commits and branches are not"), "{lost}");
}

/// What a client of one session says of a call, wherever the client is.
fn tool((session, place): (&str, &Path), (name, id): (&str, &str), input: &Value) -> [Said; 2] {
    ["PreToolUse", "PostToolUse"].map(|event| {
        let mut said = said(session, event, place).with("tool_name", name).with("tool_use_id", id);
        said.payload["tool_input"] = input.clone();
        said
    })
}

fn use_tool(project: &Project, at: (&str, &Path), named: (&str, &str), input: &Value, deed: impl FnOnce()) {
    let [before, after] = tool(at, named, input);
    assert_eq!(say(project, &before), Value::Null);
    deed();
    say(project, &after);
}

#[test]
fn a_session_that_moves_into_another_work_tree_is_undone_in_each() {
    for how in ["directory", "edit", "cd"] {
        for begins_inside in [false, true] {
            let (project, inner) = with_inner(true);
            let root = project.root().to_owned();
            let (home, away) =
                if begins_inside { (inner.clone(), root.clone()) } else { (root.clone(), inner.clone()) };
            prompt(&project, "s", &home);
            use_tool(&project, ("s", &home), ("Bash", "1"), &json!({ "command": "make" }), || {
                write(&home, "at-home", "h\n");
            });
            let file = away.join("away").to_string_lossy().into_owned();
            let (place, input) = match how {
                "directory" => (&away, ("Bash", json!({ "command": "make" }))),
                "edit" => (&home, ("Write", json!({ "file_path": file, "content": "a\n" }))),
                _ => (&home, ("Bash", json!({ "command": format!("cd '{}' && make", away.display()) }))),
            };
            use_tool(&project, ("s", place), (input.0, "2"), &input.1, || {
                write(&away, "away", "a\n");
                if how != "edit" {
                    write(&away, "base", "changed\n");
                }
            });
            stop(&project, "s", place);
            say(&project, &said("s", "SessionEnd", place));
            let when = format!("{how}, begun inside: {begins_inside}");

            let plan = at(&project, &home, &["undo", "--dry-run", "--json"]);
            let there = plan.json()["warnings"].to_string();
            assert!(there.contains("other_place") && there.contains(&*away.to_string_lossy()), "{when}: {plan:?}");
            let undone = at(&project, &home, &["undo", "--yes", "--json"]);
            assert_eq!(undone.code, Some(4), "{when}: something stays, and is named: {undone:?}");
            assert_eq!((home.join("at-home").exists(), away.join("away").exists()), (false, true), "{when}");

            let undone = at(&project, &away, &["undo", "--yes", "--json"]);
            assert_eq!(undone.code, Some(0), "{when}: nothing is left elsewhere: {undone:?}");
            assert!(!away.join("away").exists(), "{when}");
            assert_eq!(fs::read_to_string(away.join("base")).expect("a file"), "base\n", "{when}");
            done(&project, &away, &["redo", "--yes"]);
            done(&project, &home, &["redo", "--yes"]);
            for place in [&home, &away] {
                let log = done(&project, place, &["log", "--session", "s", "--json"]).json();
                assert!(log.as_array().is_some_and(|all| !all.is_empty()), "{when}: {}", place.display());
            }
            // By the client's name it is the session as it works there, and by an id the one of that id.
            let shown = |place: &Path, name: &str| done(&project, place, &["session", "show", name, "--json"]).json();
            let ids = [&home, &away].map(|place| shown(place, "s")["id"].as_str().expect("an id").to_owned());
            assert_ne!(ids[0], ids[1], "{when}");
            assert_eq!(shown(&home, &ids[1])["id"], json!(ids[1]), "{when}");
            // Without the ids of tests: those of this many calls are used up.
            let mut create = project.command(["run", "create", "--goal", "g", "--phases", "a,b"]);
            let run = CliOutcome::of(create.env_remove("IC_TEST_IDS").current_dir(&away)).stdout;
            let attached = done(&project, &away, &["session", "attach", run.trim(), "--session", "s", "--json"]).json();
            assert_eq!((&attached["id"], &attached["run_id"]), (&json!(ids[1]), &json!(run.trim())), "{when}");
            assert!(home.join("at-home").exists() && away.join("away").exists(), "{when}");
            project.cli.assert_sound(&when);
        }
    }
}

#[test]
fn a_subagent_in_a_work_tree_of_its_own_is_undone_there() {
    let (project, inner) = with_inner(false);
    let root = project.root().to_owned();
    prompt(&project, "s", &root);
    let [before, after] = tool(("s", &inner), ("Bash", "1"), &json!({ "command": "make" }));
    let of_agent = |said: Said| said.with("agent_id", "a1").with("agent_type", "builder");
    assert_eq!(say(&project, &of_agent(before)), Value::Null);
    write(&inner, "away", "a\n");
    say(&project, &of_agent(after));
    say(&project, &of_agent(said("s", "SubagentStop", &inner)));
    stop(&project, "s", &root);
    done(&project, &inner, &["undo", "--yes"]);
    assert!(!inner.join("away").exists());
    // What was undone there goes no further there, and the next prompt does.
    let [before, _] = tool(("s", &inner), ("Bash", "2"), &json!({ "command": "make" }));
    assert!(say(&project, &before).to_string().contains("undone"));
    let next = |said: Said| said.with("prompt_id", "p-2");
    say(&project, &next(said("s", "UserPromptSubmit", &root)));
    let [before, after] = tool(("s", &inner), ("Bash", "3"), &json!({ "command": "make" }));
    assert_eq!(say(&project, &next(before)), Value::Null);
    write(&inner, "again", "a\n");
    say(&project, &next(after));
    say(&project, &next(said("s", "Stop", &root)));
    done(&project, &inner, &["undo", "--yes"]);
    assert!(!inner.join("again").exists());
}

#[test]
fn an_empty_log_that_waits_for_hooks_names_the_place_that_has_entries() {
    let (project, inner) = with_inner(true);
    project.ok("hooks install claude-code");
    prompt(&project, "feat", &inner);
    call(&project, "feat", &inner, "f1", || write(&inner, "theirs", "theirs\n"));
    stop(&project, "feat", &inner);
    let text = done(&project, project.root(), &["log", "--format", "text"]).stdout;
    assert!(text.contains("waits for the first prompt"), "{text}");
    let inner = inner.canonicalize().expect("a place");
    assert!(text.contains(&format!("ic -C {} log", inner.display())), "{text}");
}

#[test]
fn a_record_in_git_says_so_and_moves_out_to_outlive_the_repository() {
    let project = captured();
    let root = project.root().to_owned();
    fs::remove_dir_all(root.join(".ic")).expect("the ledger of a directory");
    git_in(&root, &["init", "-q", "-b", "main"]);
    write(&root, "text", "one\n");
    git_in(&root, &["add", "text"]);
    git_in(&root, &["commit", "-q", "-m", "first"]);
    let said = "The record is in .git and is lost with it";
    let installed = project.ok("hooks install claude-code --format text");
    assert!(installed.contains(said) && installed.contains("ic init --help"), "{installed}");
    assert!(project.ok("hooks doctor --format text").contains(said));
    let (help, store) = (project.ok("init --help"), project.cli.home().join("shop"));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("mv .git/ic ~/ledgers/shop && ic init --store ~/ledgers/shop"), "{help}");

    prompt(&project, "main", &root);
    fs::rename(root.join(".git/ic"), &store).expect("the store moves");
    done(&project, &root, &["init", "--store", store.to_str().expect("text")]);
    assert!(!project.ok("hooks doctor --format text").contains(said));
    call(&project, "main", &root, "m1", || {
        fs::remove_dir_all(root.join(".git")).expect("a repository");
        fs::remove_file(root.join("text")).expect("a file");
    });
    let db = store.join("ic.db");
    // Without a repository the store is not found from here, so no end of the call is told.
    let undo = ["--db", db.to_str().expect("text"), "undo", "--yes", "--force-files", "--json"];
    let told = at(&project, &root, &undo);
    assert_eq!(told.code, Some(4), "{told:?}");
    assert_eq!(fs::read_to_string(root.join("text")).expect("a file"), "one\n");
}

#[test]
fn the_first_commit_of_a_repository_inside_is_named_with_the_way_back() {
    let project = captured();
    let inner = project.root().join("inner");
    fs::create_dir(&inner).expect("a directory");
    git_in(&inner, &["init", "-q", "-b", "main"]);
    prompt(&project, "main", project.root());
    call(&project, "main", project.root(), "m1", || {
        write(&inner, "new", "new\n");
        commit(&inner, "of the agent");
    });
    stop(&project, "main", project.root());
    let told = at(&project, project.root(), &["undo", "--yes", "--json"]);
    assert_eq!(told.code, Some(4), "{told:?}");
    let why = told.json()["files"]["repositories"][0]["reason"].as_str().expect("a reason").to_owned();
    let (_, command) = why.split_once("to move it back: ").expect("a command");
    assert!(!command.trim().is_empty(), "{why}");
    assert!(std::process::Command::new("sh").args(["-c", command]).status().expect("sh").success(), "{why}");
    assert_eq!(git_in(&inner, &["log", "--all", "--format=%s"]), "", "{why}");
    assert_eq!(git_in(&inner, &["status", "--porcelain"]), "", "{why}");
}

#[test]
fn what_was_done_in_a_work_tree_that_its_client_removed_is_ended_with_the_prompt() {
    let (project, inner) = with_inner(false);
    let root = project.root().to_owned();
    prompt(&project, "s", &root);
    use_tool(&project, ("s", &inner), ("Bash", "1"), &json!({ "command": "make" }), || {
        write(&inner, "away", "a\n");
    });
    git_in(&root, &["worktree", "remove", "--force", inner.to_str().expect("text")]);
    stop(&project, "s", &root);
    say(&project, &said("s", "SessionEnd", &root));
    let open = done(&project, &root, &["run", "list", "--active", "--json"]).json();
    assert_eq!(open, json!([]), "no run stays open for it");
    let undone = at(&project, &root, &["undo", "--dry-run", "--json"]);
    assert!(!undone.stdout.contains("other_place"), "a place that is gone cannot be undone in: {undone:?}");
}
