//! The thread of a prompt: the later prompts of its session. An undo takes their work out, and what a person and other agents did stays.

use serde_json::{Value, json};

use crate::agents::{Said, say};
use crate::attribution::{git, has, lines, set, shell, with_lines};
use crate::blame::{after, before, read, stop};
use crate::support::Project;

/// A prompt whose one call runs `deed`, and its end.
fn turn(project: &Project, session: &str, text: &str, deed: impl Fn()) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
    shell(project, session, text, deed);
    stop(project, session);
}

/// The id of the prompt with this text, by the log.
fn id_of(project: &Project, text: &str) -> String {
    let log = project.json("log --all");
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == text).cloned();
    let reference = found.unwrap_or_else(|| panic!("{text} is in {log}"))["reference"].clone();
    reference.as_str().and_then(|text| text.split_once(':')).expect("a reference").1.to_owned()
}

/// The ends of the ids of the prompts that an undo chose.
fn taken(report: &Value) -> Vec<String> {
    let all = report["dispatch_ids"].as_array().expect("a list");
    all.iter().map(|id| id.as_str().expect("an id")[28..].to_owned()).collect()
}

fn is_undone(project: &Project, id: &str) -> bool {
    !project.json(&format!("dispatch show {id}"))["rolled_back_by"].is_null()
}

/// Three prompts of a session, with a person and another session among them.
fn story() -> (Project, [String; 4]) {
    let project = with_lines();
    turn(&project, "A", "one", || set(&project, 3, "one"));
    set(&project, 10, "person");
    project.write("mine", "mine\n");
    turn(&project, "A", "two", || {
        set(&project, 20, "two");
        project.write("new/two", "two\n");
    });
    turn(&project, "B", "other", || {
        set(&project, 30, "other");
        project.write("new/other", "other\n");
    });
    set(&project, 40, "person");
    turn(&project, "A", "three", || {
        set(&project, 50, "three");
        project.write("three", "three\n");
        git(&project, &["add", "three"]);
    });
    let ids = ["one", "two", "three", "other"].map(|text| id_of(&project, text));
    (project, ids)
}

/// What is left when "two" and "three" are undone.
const LEFT: [(usize, &str); 4] = [(3, "one"), (10, "person"), (30, "other"), (40, "person")];

#[test]
fn an_undo_of_a_prompt_takes_the_later_ones_of_its_session_and_nothing_else() {
    let (project, [one, two, three, other]) = story();
    let whole = ic_testkit::tree(project.root());
    let plan = project.ok(&format!("undo {two} --dry-run --format text"));
    assert!(plan.contains(" two\n") && plan.contains(" three\n") && !plan.contains(" one\n"), "{plan}");
    assert!(!plan.contains("mine") && !plan.contains("--force") && !plan.contains("phase"), "{plan}");
    let report = project.json(&format!("undo {two} --yes"));
    assert_eq!(
        (&report["status"], taken(&report)),
        (&json!("rolled_back"), vec![two.clone(), three.clone()]),
        "{report}"
    );
    assert_eq!(read(&project, "f"), lines(&LEFT));
    assert_eq!(["mine", "new/two", "new/other"].map(|file| has(&project, file)), [true, false, true]);
    assert_eq!([&one, &two, &three, &other].map(|id| is_undone(&project, id)), [false, true, true, false]);
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), whole);
    assert_eq!([&one, &two, &three, &other].map(|id| is_undone(&project, id)), [false; 4]);
}

#[test]
fn undos_in_a_row_take_one_prompt_after_the_other_and_redos_bring_them_back() {
    let (project, _) = story();
    let mut trees = vec![ic_testkit::tree(project.root())];
    for left in [
        &[(3, "one"), (10, "person"), (20, "two"), (30, "other"), (40, "person")][..],
        &[(3, "one"), (10, "person"), (20, "two"), (40, "person")],
        &[(3, "one"), (10, "person"), (40, "person")],
        &[(10, "person"), (40, "person")],
    ] {
        project.json("undo --yes");
        assert_eq!(read(&project, "f"), lines(left));
        trees.push(ic_testkit::tree(project.root()));
    }
    assert_eq!(["mine", "new"].map(|file| has(&project, file)), [true, false]);
    assert_eq!(project.run("undo --yes").error(), "nothing_to_undo");
    for tree in trees.iter().rev().skip(1) {
        project.json("redo --yes");
        assert_eq!(&ic_testkit::tree(project.root()), tree);
    }
    project.cli.assert_sound("after all of it");
}

#[test]
fn one_prompt_of_three_is_undone_alone_and_the_thread_after_it() {
    let (project, [one, two, three, _]) = story();
    project.json(&format!("undo {two} --only --yes"));
    assert_eq!(read(&project, "f"), lines(&[&LEFT[..], &[(50, "three")]].concat()));
    // The rest of the thread goes without what is undone already.
    let report = project.json(&format!("undo {one} --yes"));
    assert_eq!(taken(&report), [one, three], "{report}");
    assert_eq!(read(&project, "f"), lines(&LEFT[1..]));
    project.json("redo --yes");
    // The undo is also named by the work that it undid.
    project.json(&format!("redo {two} --yes"));
    assert!(has(&project, "new/two"));
}

#[test]
fn where_no_other_worked_the_branch_goes_back_too() {
    let project = with_lines();
    let head = git(&project, &["rev-parse", "HEAD"]);
    turn(&project, "A", "commit it", || {
        set(&project, 3, "agent");
        git(&project, &["commit", "-qam", "of the agent"]);
    });
    let report = project.json("undo --yes");
    assert_eq!(
        (git(&project, &["rev-parse", "HEAD"]), report["dispatch_ids"].as_array().map(Vec::len)),
        (head, Some(1))
    );
    project.json("redo --yes");
    // With a file of a person beside it nothing of theirs moves: the commit stays, and its content goes.
    project.write("mine", "mine\n");
    git(&project, &["add", "mine"]);
    git(&project, &["commit", "-qm", "by hand"]);
    let tip = git(&project, &["rev-parse", "HEAD"]);
    let report = project.json("undo --yes");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), tip, "{report}");
    assert_eq!((read(&project, "f"), has(&project, "mine")), (lines(&[]), true));
    assert_eq!(report["own_commits"][0]["subject"], "of the agent", "{report}");
}

/// An agent that makes files, empty directories and a commit.
fn made(project: &Project) {
    turn(project, "A", "make", || {
        set(project, 3, "agent");
        git(project, &["commit", "-qam", "of the agent"]);
        project.write("new/made", "made\n");
        std::fs::create_dir_all(project.root().join("empty/deep")).expect("a directory");
        set(project, 5, "agent");
    });
}

/// The branch, the index and the tree.
fn whole(project: &Project) -> (String, String, String) {
    let all = (git(project, &["rev-parse", "HEAD"]), status(project));
    (all.0, all.1, format!("{:?}", ic_testkit::tree(project.root())))
}

#[test]
fn an_undo_where_no_other_worked_and_its_redo_restore_all_exactly() {
    let project = with_lines();
    let before = whole(&project);
    made(&project);
    let after = whole(&project);
    for _ in 0..2 {
        project.json("undo --yes");
        assert_eq!(whole(&project), before);
        project.json("redo --yes");
        assert_eq!(whole(&project), after);
    }
}

#[test]
fn a_redo_after_a_later_prompt_brings_the_work_back_beside_it() {
    let project = with_lines();
    made(&project);
    let tip = git(&project, &["rev-parse", "HEAD"]);
    project.json("undo --yes");
    turn(&project, "A", "next", || {
        set(&project, 20, "next");
        project.write("next", "next\n");
    });
    set(&project, 40, "person");
    let redone = project.json("redo --yes");
    let all = lines(&[(3, "agent"), (5, "agent"), (20, "next"), (40, "person")]);
    assert_eq!((read(&project, "f"), git(&project, &["rev-parse", "HEAD"])), (all, tip), "{redone}");
    assert_eq!(["new/made", "next"].map(|file| has(&project, file)), [true, true]);
    // And each goes again without the other.
    let [made, next] = ["make", "next"].map(|text| id_of(&project, text));
    assert_eq!([&made, &next].map(|id| is_undone(&project, id)), [false, false]);
    project.json(&format!("undo {next} --only --yes"));
    assert_eq!(read(&project, "f"), lines(&[(3, "agent"), (5, "agent"), (40, "person")]));
    project.json(&format!("undo {made} --only --yes"));
    assert_eq!((read(&project, "f"), has(&project, "new/made")), (lines(&[(40, "person")]), false));
}

#[test]
fn a_redo_beside_what_others_staged_stages_its_own_again() {
    let project = with_lines();
    turn(&project, "A", "stage", || {
        project.write("new", "new\n");
        git(&project, &["add", "new"]);
    });
    project.json("undo --yes");
    project.write("mine", "mine\n");
    git(&project, &["add", "mine"]);
    project.json("redo --yes");
    assert_eq!(status(&project), "A  mine\nA  new");
}

#[test]
fn a_redo_after_the_session_was_ended_and_resumed_brings_the_work_back() {
    let project = with_lines();
    let ends = || drop(say(&project, &Said::new("claude-code", "A", "SessionEnd")));
    made(&project);
    ends();
    let report = project.json("undo --yes");
    assert_eq!(report["dispatch_ids"].as_array().map(Vec::len), Some(1), "{report}");
    turn(&project, "A", "next", || set(&project, 20, "next"));
    ends();
    project.json("redo --yes");
    assert_eq!(read(&project, "f"), lines(&[(3, "agent"), (5, "agent"), (20, "next")]));
}

/// A client of another session was killed in a call: whatever changed since may be of it, or of a person.
#[test]
fn an_undo_beside_a_call_without_an_end_takes_what_its_own_calls_did() {
    for is_cancelled in [false, true] {
        let project = with_lines();
        project.write("mine", "before\n");
        say(&project, &Said::new("claude-code", "K", "UserPromptSubmit").prompt("killed", "killed"));
        before(&project, "K", "k", "Bash", json!({ "command": "sleep 20" }));
        let killed = id_of(&project, "killed");
        let write = json!({ "file_path": project.root().join("own") });
        say(&project, &Said::new("claude-code", "B", "UserPromptSubmit").prompt("own", "own"));
        before(&project, "B", "b", "Write", write);
        project.write("own", "own\n");
        after(&project, "B", "b", "Write");
        stop(&project, "B");
        project.write("mine", "by hand\n");
        project.write("new", "by hand\n");
        if is_cancelled {
            project.json(&format!("dispatch cancel {killed}"));
        }
        let undone = project.run(&format!("undo {} --yes --json", id_of(&project, "own")));
        assert_eq!(["own", "new"].map(|file| has(&project, file)), [false, true], "{is_cancelled}: {undone:?}");
        assert_eq!(
            (read(&project, "mine").as_str(), undone.code),
            ("by hand\n", Some(0)),
            "{is_cancelled}: {undone:?}"
        );
    }
}

#[test]
fn a_redo_after_a_commit_of_others_leaves_the_branch_and_names_the_commits() {
    let project = with_lines();
    made(&project);
    let commit = git(&project, &["rev-parse", "--short=8", "HEAD"]);
    project.json("undo --yes");
    turn(&project, "A", "next", || {
        set(&project, 20, "next");
        git(&project, &["commit", "-qam", "next"]);
    });
    let tip = git(&project, &["rev-parse", "HEAD"]);
    let redone = project.run("redo --yes --json");
    let all = lines(&[(3, "agent"), (5, "agent"), (20, "next")]);
    assert_eq!((read(&project, "f"), git(&project, &["rev-parse", "HEAD"])), (all, tip), "{redone:?}");
    assert!(redone.stdout.contains(&commit) && redone.code == Some(4), "{redone:?}");
}

/// A person on the agent's own lines.
fn with_a_conflict() -> Project {
    let project = with_lines();
    turn(&project, "A", "edit", || {
        set(&project, 10, "agent");
        project.write("own", "own\n");
    });
    set(&project, 10, "person");
    set(&project, 30, "person");
    project
}

#[test]
fn a_conflict_names_a_command_for_each_answer_and_each_does_what_it_says() {
    for (flag, code, left) in
        [("--keep-theirs", 4, lines(&[(10, "person"), (30, "person")])), ("--force-files", 0, lines(&[(30, "person")]))]
    {
        let project = with_a_conflict();
        let before = ic_testkit::tree(project.root());
        let refused = project.run("undo --yes --json");
        let error: Value = serde_json::from_str(&refused.stderr).expect("an error");
        assert_eq!((refused.code, &error["error"]["code"]), (Some(1), &json!("file_conflict")), "{refused:?}");
        assert!(error["error"]["hint"].as_str().is_some_and(|hint| hint.contains(flag)), "{error}");
        assert_eq!(ic_testkit::tree(project.root()), before, "a refusal changes nothing");
        let undone = project.run(&format!("undo {flag} --yes --json"));
        assert_eq!((undone.code, read(&project, "f"), has(&project, "own")), (Some(code), left, false), "{undone:?}");
        assert_eq!(is_undone(&project, &id_of(&project, "edit")), code == 0, "{flag}");
    }
}

#[test]
fn an_agent_that_waits_for_its_model_is_undone_without_what_a_person_did_and_works_no_further() {
    let project = with_lines();
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("long", "long"));
    shell(&project, "A", "c1", || set(&project, 3, "agent"));
    project.write("mine", "mine\n");
    let report = project.json("undo --yes");
    assert_eq!((read(&project, "f"), has(&project, "mine")), (lines(&[]), true), "{report}");
    let mut next = Said::new("claude-code", "A", "PreToolUse").with("tool_name", "Bash");
    next.payload["tool_input"] = json!({ "command": "make x" });
    assert_ne!(say(&project, &next), Value::Null, "its next call is refused");
}

#[test]
fn a_prompt_that_is_undone_is_not_undone_again_over_what_a_person_did_since() {
    let project = with_lines();
    turn(&project, "A", "one", || set(&project, 3, "agent"));
    let id = id_of(&project, "one");
    project.json(&format!("undo {id} --yes"));
    set(&project, 20, "hand");
    project.write("hand", "mine\n");
    git(&project, &["add", "hand"]);
    git(&project, &["commit", "-qm", "by hand"]);
    let before = ic_testkit::tree(project.root());
    let refused = project.run(&format!("undo {id} --yes --json"));
    assert_eq!(refused.error(), "point_taken_back", "{refused:?}");
    assert!(refused.stderr.contains("ic redo ") && !refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn after_work_that_was_undone_in_part_the_next_undo_means_the_work_before_it() {
    let project = with_lines();
    turn(&project, "A", "one", || set(&project, 3, "one"));
    turn(&project, "A", "two", || {
        project.write("b", "b\n");
        project.write("c", "c\n");
    });
    std::fs::rename(project.root().join("b"), project.root().join("moved")).expect("rename it");
    let undone = project.run("undo --yes --json");
    assert_eq!((undone.code, has(&project, "c"), has(&project, "moved")), (Some(4), false, true), "{undone:?}");
    let rest = format!("ic undo --only {} --dry-run", id_of(&project, "two"));
    let undone = project.run("undo --yes --json");
    assert_eq!((undone.code, taken(&undone.json())), (Some(4), vec![id_of(&project, "one")]), "{undone:?}");
    assert!(undone.json()["warnings"].to_string().contains(&rest), "{undone:?}");
    assert_eq!(read(&project, "f"), lines(&[]));
}

#[test]
fn the_rest_of_a_later_prompt_stays_with_a_word() {
    let project = with_lines();
    turn(&project, "A", "one", || set(&project, 3, "one"));
    turn(&project, "A", "two", || {
        set(&project, 20, "two");
        set(&project, 50, "two");
    });
    let [one, two] = ["one", "two"].map(|text| id_of(&project, text));
    set(&project, 20, "hand");
    assert_eq!(project.run(&format!("undo {two} --keep-theirs --yes --json")).code, Some(4));
    // A person takes the line of the prompt after all, so what the prompt wrote stands there.
    set(&project, 20, "two");
    let whole = ic_testkit::tree(project.root());
    let rest = format!("ic undo --only {two} --dry-run");
    for call in ["--dry-run", "--yes"] {
        let undone = project.run(&format!("undo {one} {call} --json"));
        assert_eq!((undone.code, taken(&undone.json())), (Some(4), vec![one.clone()]), "{undone:?}");
        let warnings = undone.json()["warnings"].clone();
        assert!(warnings[0]["code"] == "rest_stays" && warnings.to_string().contains(&rest), "{warnings}");
    }
    assert_eq!(read(&project, "f"), lines(&[(20, "two")]));
    assert_eq!([&one, &two].map(|id| is_undone(&project, id)), [true, false]);
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), whole);
    // Alone means alone: later work is not meant.
    project.json(&format!("undo {one} --only --yes"));
}

#[test]
fn a_branch_that_was_checked_out_and_removed_is_named_with_a_command_that_makes_it_again() {
    let project = with_lines();
    let main = git(&project, &["branch", "--show-current"]);
    git(&project, &["checkout", "-qb", "feature"]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "of the feature"]);
    let tip = git(&project, &["rev-parse", "HEAD"]);
    project.write("mine", "mine\n");
    turn(&project, "A", "merge it", || {
        git(&project, &["checkout", "-q", &main]);
        git(&project, &["merge", "-q", "--ff-only", "feature"]);
        git(&project, &["branch", "-q", "-D", "feature"]);
    });
    project.write("other", "mine\n");
    let undone = project.run("undo --yes --json");
    let warnings = undone.json()["warnings"].to_string();
    let way = format!("switch -c feature {tip}");
    assert!(undone.code == Some(4) && warnings.contains(&format!("git {way}")), "{undone:?}");
    git(&project, &way.split(' ').collect::<Vec<_>>());
    assert_eq!(git(&project, &["rev-parse", "feature"]), tip);
}

/// The status of the index and the tree, as `git status` prints it.
fn status(project: &Project) -> String {
    git(project, &["status", "--porcelain", "--untracked-files=no"])
}

#[test]
fn what_a_prompt_staged_goes_off_the_index_with_its_undo_and_comes_back() {
    let project = with_lines();
    project.write("mine", "staged before\n");
    project.write("gone", "gone\n");
    git(&project, &["add", "gone"]);
    git(&project, &["commit", "-q", "-m", "gone"]);
    git(&project, &["add", "mine"]);
    let before = status(&project);
    turn(&project, "A", "stage", || {
        set(&project, 3, "agent");
        project.write("new", "new\n");
        git(&project, &["add", "f", "new"]);
        git(&project, &["mv", "gone", "moved"]);
        project.write("mine", "staged before\n, and the agent\n");
        git(&project, &["add", "mine"]);
    });
    let staged = status(&project);
    project.write("after", "mine\n");
    let planned = project.json("undo --dry-run");
    assert_eq!(planned["files"]["index"], serde_json::json!(["f", "gone", "mine", "moved", "new"]), "{planned}");
    assert_eq!(status(&project), staged);
    let undone = project.json("undo --yes");
    assert_eq!(undone["files"]["index"], planned["files"]["index"]);
    assert_eq!((read(&project, "f"), has(&project, "new"), status(&project)), (lines(&[]), false, before.clone()));
    // What a person stages since is theirs, in both directions.
    project.write("f", "mine\n");
    git(&project, &["add", "f"]);
    project.write("f", &lines(&[]));
    let again = serde_json::json!(["gone", "mine", "moved", "new"]);
    let planned = project.json("redo --dry-run");
    assert_eq!(planned["files"][0]["index"], again, "{planned}");
    let shown = project.ok("redo --dry-run --format text");
    assert!(shown.contains("index     new  staged as this work left it") && !shown.contains("index     f"), "{shown}");
    let redone = project.json("redo --yes");
    assert_eq!(redone["files"][0]["index"], again, "{redone}");
    assert!(status(&project).contains("A  new") && status(&project).contains("R  gone -> moved"), "{staged}");
    assert_eq!(git(&project, &["show", ":f"]), "mine");
    git(&project, &["add", "f"]);
    assert_eq!(status(&project), staged);
}

#[test]
fn undos_of_staged_prompts_in_a_row_leave_what_was_staged_before_each() {
    let project = with_lines();
    let stage = |name: &str, line: usize| {
        turn(&project, "A", name, || {
            set(&project, line, name);
            git(&project, &["add", "f"]);
        });
        project.write(format!("mine-{name}"), "mine\n");
        git(&project, &["show", ":f"])
    };
    let staged = ["one", "two", "three"].iter().zip([2, 5, 8]).map(|(name, line)| stage(name, line));
    let staged: Vec<String> = staged.collect();
    let index = || git(&project, &["show", ":f"]);
    project.json("undo --yes");
    assert_eq!(index(), staged[1]);
    project.json("undo --yes");
    assert_eq!(index(), staged[0]);
    project.json("undo --yes");
    assert_eq!(status(&project), "");
    for staged in &staged {
        project.json("redo --yes");
        assert_eq!((index(), read(&project, "f").trim()), (staged.clone(), staged.trim()));
    }
    project.json("undo @~2 --yes");
    assert_eq!((status(&project), read(&project, "f")), (String::new(), lines(&[])));
}

/// What the index has of undone work is named where it does not go off it, for the next commit would have it.
#[test]
fn what_the_index_keeps_of_an_undone_prompt_is_named() {
    let project = with_lines();
    project.write("tracked", "tracked\n");
    git(&project, &["add", "tracked"]);
    git(&project, &["commit", "-qm", "tracked"]);
    turn(&project, "A", "edit", || {
        set(&project, 3, "agent");
        git(&project, &["add", "f"]);
        git(&project, &["rm", "-q", "--cached", "tracked"]);
    });
    set(&project, 30, "person");
    git(&project, &["add", "f"]);
    let preview = project.run("undo --dry-run --json");
    let undone = project.run("undo --yes --json");
    assert_eq!((preview.code, undone.code, read(&project, "f")), (Some(4), Some(4), lines(&[(30, "person")])));
    for outcome in [&preview, &undone] {
        let said = outcome.json()["warnings"].to_string();
        assert!(said.contains("git diff --cached -- f"), "{said}");
        assert!(said.contains("git restore --staged -- tracked"), "{said}");
    }
    git(&project, &["restore", "--staged", "--", "tracked"]);
    assert_eq!(git(&project, &["diff", "--cached", "--name-only"]), "f");
}

#[test]
fn what_a_person_staged_of_others_during_a_prompt_stays_staged() {
    let project = with_lines();
    project.write("mine", "mine\n");
    turn(&project, "A", "edit", || {
        set(&project, 3, "agent");
        git(&project, &["add", "mine"]);
    });
    project.write("after", "mine\n");
    let undone = project.run("undo --yes --json");
    assert_eq!((undone.code, status(&project)), (Some(4), "A  mine".to_owned()), "it may be the prompt's: {undone:?}");
    assert!(undone.json()["warnings"].to_string().contains("git restore --staged -- mine"), "{undone:?}");
}

#[test]
fn what_was_restored_since_stays_with_the_undo_of_a_later_prompt() {
    let project = with_lines();
    project.write("old", "old\n");
    turn(&project, "B", "other", || {
        set(&project, 10, "other");
        project.write("old", "new\n");
    });
    project.json("undo --yes");
    turn(&project, "A", "mine", || set(&project, 30, "mine"));
    // The redo of older work, and a file that a person restores.
    project.json("redo --yes");
    assert_eq!(read(&project, "f"), lines(&[(10, "other"), (30, "mine")]));
    project.json(&format!("restore --before {} old --yes", id_of(&project, "other")));
    project.json(&format!("undo {} --yes", id_of(&project, "mine")));
    assert_eq!((read(&project, "f"), read(&project, "old")), (lines(&[(10, "other")]), "old\n".to_owned()));
    // The undo of later work is no such restore: it goes back exactly.
    turn(&project, "A", "deep", || std::fs::create_dir_all(project.root().join("empty/deep")).expect("a directory"));
    turn(&project, "A", "last", || set(&project, 40, "last"));
    project.json("undo --yes");
    project.json("undo --yes");
    assert!(!project.root().join("empty").exists());
}

/// A client that was killed in a call, and counts its calls from one again where the session is resumed.
#[test]
fn a_name_of_a_call_that_a_resumed_session_uses_again_is_of_another_call() {
    let project = with_lines();
    let asks = |text: &str| {
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt(text, text));
        before(&project, "A", "call-1", "Bash", json!({ "command": "make" }));
    };
    asks("one");
    set(&project, 3, "one");
    // The client is killed here.
    set(&project, 20, "person");
    asks("two");
    set(&project, 30, "two");
    after(&project, "A", "call-1", "Bash");
    stop(&project, "A");
    set(&project, 40, "person");
    project.json(&format!("undo {} --only --yes", id_of(&project, "two")));
    assert_eq!(read(&project, "f"), lines(&[(3, "one"), (20, "person"), (40, "person")]));
    let undone = project.run(&format!("undo {} --only --yes --json", id_of(&project, "one")));
    assert_eq!(undone.error(), "file_conflict", "line 20 changed after a call whose end was not told: {undone:?}");
}

#[test]
fn only_means_a_prompt_or_a_dispatch() {
    let project = with_lines();
    turn(&project, "A", "one", || set(&project, 3, "one"));
    turn(&project, "A", "two", || set(&project, 5, "two"));
    project.json("undo --only --yes");
    assert_eq!(read(&project, "f"), lines(&[(3, "one")]));
    project.json("redo --yes");
    project.json("undo @~1 --only --yes");
    assert_eq!(read(&project, "f"), lines(&[(5, "two")]));
    project.json("redo --yes");
    project.write("mine", "mine\n");
    project.json("undo @~1 --yes");
    assert_eq!((read(&project, "f"), has(&project, "mine")), (lines(&[]), true));
    project.json("redo --yes");
    project.json("undo @ --yes");
    assert_eq!(read(&project, "f"), lines(&[(3, "one")]));
    assert_eq!(project.refused("undo phase:work --only --yes").0, 3);
    assert_eq!(read(&project, "f"), lines(&[(3, "one")]));
}

#[test]
fn an_undo_of_several_prompts_that_is_killed_is_finished_or_taken_back() {
    let (mut n, mut resumed, mut aborted) = (1, 0, 0);
    loop {
        let (project, [_, two, three, _]) = story();
        let whole = ic_testkit::tree(project.root());
        let staged = status(&project);
        assert!(staged.contains("A  three"), "{staged}");
        let mut command = project.command(["undo", two.as_str(), "--yes", "--json"]);
        let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        if output.status.code().is_some() {
            break;
        }
        let when = format!("killed before statement {n}");
        let open = project.json("rollback list");
        let open = open.as_array().expect("a list").iter().find(|one| one["status"] == "in_progress").cloned();
        // Fixed ids count on by one for a rollback, which makes several: a call for a checkpoint counts on by more.
        project.ok("checkpoint list");
        if let Some(id) = open.as_ref().and_then(|one| one["id"].as_str()) {
            if (resumed + aborted) % 2 == 1 {
                project.json(&format!("rollback abort {id} --yes"));
                assert_eq!((ic_testkit::tree(project.root()), status(&project)), (whole, staged), "{when}");
                assert_eq!([&two, &three].map(|id| is_undone(&project, id)), [false, false], "{when}");
                aborted += 1;
            } else {
                project.json(&format!("rollback resume {id} --yes"));
                assert_eq!(read(&project, "f"), lines(&LEFT), "{when}");
                assert!(!status(&project).contains("three"), "{when}");
                assert_eq!([&two, &three].map(|id| is_undone(&project, id)), [true, true], "{when}");
                project.json("redo --yes");
                assert_eq!((ic_testkit::tree(project.root()), status(&project)), (whole, staged), "{when}");
                resumed += 1;
            }
        }
        n += if ic_testkit::long() { 7 } else { 61 };
    }
    assert!(resumed > 0 && aborted > 0, "{resumed} resumed, {aborted} aborted of {n}");
}
