//! Entries of `ic log` that no work made: restores, and what a person changed between the works.

use serde_json::{Value, json};

use super::{begins, short, writes};
use crate::agents::{Said, in_git, say_with};
use crate::blame::{after, before, call, read, stop};
use crate::support::{Project, assert_shape};

fn entries(project: &Project, words: &str) -> Vec<Value> {
    project.run(&format!("log --json {words}")).json().as_array().expect("a list").clone()
}

/// The kinds of the entries, with the titles of those that no work made.
fn told(project: &Project, words: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let one = |entry: &Value| match text(&entry["kind"]).as_str() {
        kind @ ("own" | "restore") => format!("{kind}: {}", text(&entry["title"])),
        kind => kind.to_owned(),
    };
    entries(project, words).iter().map(one).collect()
}

fn reference(project: &Project, kind: &str) -> String {
    let all = entries(project, "");
    let found = all.iter().find(|one| one["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {all:?}"));
    found["reference"].as_str().expect("a reference").to_owned()
}

/// A person changes two files between two prompts.
fn edited_between() -> (Project, [String; 2]) {
    let project = in_git();
    project.write("f.txt", "first\n");
    let one = writes(&project, "A", "one", &[("f.txt", "of A\n")]);
    project.write("f.txt", "by hand\n");
    project.write("mine.txt", "by hand\n");
    let two = writes(&project, "B", "two", &[("f.txt", "of B\n")]);
    (project, [one, two])
}

#[test]
fn change_between_two_prompts_is_yours() {
    let (project, works) = edited_between();
    let listed = project.json("log");
    assert_shape("log", &listed);
    assert_eq!(told(&project, ""), ["prompt", "own: changed f.txt, mine.txt", "prompt"]);
    let own = &listed[1];
    assert_eq!((&own["file_counts"]["created"], &own["file_counts"]["modified"]), (&json!(1), &json!(1)));
    assert_eq!((&own["client"], &own["run_id"], &own["reachable"]), (&json!(null), &json!(null), &json!(false)));
    let text = project.ok("log --format text");
    let line = text.lines().find(|line| line.starts_with("own:")).expect("a line");
    assert!(line.contains("  you  ") && line.ends_with("+1 ~1"), "{text}");
    let (of_two, rest) =
        project.ok("log -p").split_once("own:").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("both");
    let (of_own, of_one) = rest.split_once(short(&works[0])).expect("the older one");
    assert!(of_two.contains("-by hand\n+of B") && of_own.contains("-of A\n+by hand"), "{of_two} {rest}");
    assert!(of_own.contains("b/mine.txt") && of_one.contains("+of A") && !of_one.contains("by hand"), "{rest}");
    assert_eq!(project.ok("log --stat").matches("path changed").count(), 2);
    assert!(project.ok("log --stat").contains("2 paths changed"));
}

#[test]
fn paths_sessions_and_numbers_choose_own_changes() {
    let (project, _) = edited_between();
    assert_eq!(told(&project, "-- mine.txt"), ["own: changed f.txt, mine.txt"]);
    assert_eq!(told(&project, "-- f.txt").len(), 3);
    assert_eq!(told(&project, "-- other.txt"), [""; 0]);
    assert_eq!(told(&project, "--session A"), ["prompt"]);
    assert_eq!(told(&project, "-n 1"), ["prompt"]);
    assert_eq!(told(&project, "-n 2"), ["prompt", "own: changed f.txt, mine.txt"]);
    let patch = project.ok("log -p -- mine.txt");
    assert!(patch.contains("+by hand") && !patch.contains("f.txt\n"), "{patch}");
}

#[test]
fn own_change_is_shown_and_restored_and_is_no_work_to_undo() {
    let (project, _) = edited_between();
    let own = reference(&project, "own");
    let shown = project.json(&format!("show {own} --patch-bytes 1000"));
    assert_shape("show", &shown);
    let paths: Vec<&Value> = shown["files"].as_array().expect("files").iter().map(|file| &file["path"]).collect();
    assert_eq!((&shown["kind"], paths), (&json!("own"), vec![&json!("f.txt"), &json!("mine.txt")]));
    assert!(shown["patch"].to_string().contains("+by hand"), "{shown}");
    let patch = project.ok(&format!("show {own} -p -- mine.txt"));
    assert!(patch.starts_with(&own) && patch.contains("+by hand") && !patch.contains("of A"), "{patch}");
    let tree = ic_testkit::tree(project.root());
    for target in ["undo", "undo --only"] {
        let refused = project.run(&format!("{target} {own} --yes"));
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), "point_not_found"), "{refused:?}");
    }
    assert!(project.run(&format!("undo {own} --yes")).stderr.contains(&format!("ic restore --before {own} PATH")));
    assert_eq!(ic_testkit::tree(project.root()), tree);
    project.json(&format!("restore --before {own} f.txt mine.txt --yes"));
    assert_eq!((read(&project, "f.txt").as_str(), project.root().join("mine.txt").exists()), ("of A\n", false));
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), tree);
}

#[test]
fn change_while_a_session_works_is_not_yours() {
    let project = in_git();
    writes(&project, "A", "one", &[("a.txt", "1\n")]);
    begins(&project, "B", "two");
    project.write("before.txt", "by hand, perhaps\n");
    before(&project, "B", "b", "Bash", json!({ "command": "make" }));
    project.write("during.txt", "by hand, perhaps\n");
    after(&project, "B", "b", "Bash");
    project.write("after.txt", "by hand, perhaps\n");
    writes(&project, "A", "three", &[("a.txt", "3\n")]);
    stop(&project, "B");
    assert_eq!(told(&project, ""), ["prompt", "prompt", "prompt"]);
    project.write("alone.txt", "by hand\n");
    writes(&project, "A", "four", &[("a.txt", "4\n")]);
    assert_eq!(told(&project, "")[..2], ["prompt", "own: changed alone.txt"]);
}

#[test]
fn change_after_a_look_that_is_missing_is_not_yours() {
    let project = in_git();
    begins(&project, "A", "one");
    before(&project, "A", "a", "Bash", json!({ "command": "make" }));
    project.write("a.txt", "1\n");
    // The captures after it are cut off: it is not known what the call left.
    for said in [call("A", "PostToolUse", "a", "Bash", json!({})), Said::new("claude-code", "A", "Stop")] {
        say_with(&project, &said, &[("IC_HOOK_LIMIT", "0")]);
    }
    project.write("late.txt", "by hand, perhaps\n");
    writes(&project, "A", "two", &[("a.txt", "2\n")]);
    assert_eq!(told(&project, ""), ["prompt", "prompt"]);
}

#[test]
fn change_while_a_run_is_open_belongs_to_its_points() {
    let project = in_git();
    writes(&project, "A", "one", &[("a.txt", "1\n")]);
    let run = project.ok("run create --goal Ship --phases plan,build");
    project.write("made.txt", "by a script\n");
    // A call that takes more ids: those of the calls before it are their own.
    project.ok("checkpoint list");
    project.json(&format!("run advance {run}"));
    project.ok("checkpoint list");
    writes(&project, "A", "two", &[("a.txt", "2\n")]);
    assert!(!told(&project, "").iter().any(|one| one.starts_with("own")), "{:?}", told(&project, ""));
    // The run has reached its end.
    project.write("mine.txt", "by hand\n");
    writes(&project, "A", "three", &[("a.txt", "3\n")]);
    assert_eq!(told(&project, "-n 2"), ["prompt", "own: changed mine.txt"]);
}

#[test]
fn restore_and_its_undo_are_entries() {
    let (project, works) = edited_between();
    let before = ic_testkit::tree(project.root());
    let done = project.json("restore f.txt --yes");
    let safety = done["safety_checkpoint_id"].as_str().expect("an id").to_owned();
    let listed = project.json("log");
    assert_shape("log", &listed);
    let said = format!("restored f.txt as before {}: two", short(&works[1]));
    assert_eq!((&listed[0]["title"], &listed[0]["undone"]), (&json!(said), &json!(false)));
    assert_eq!((&listed[0]["checkpoint_id"], &listed[0]["file_counts"]["modified"]), (&json!(safety), &json!(1)));
    let undone = project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    assert_eq!(told(&project, "-n 2"), ["restore: undid the restore of f.txt".to_owned(), format!("restore: {said}")]);
    let listed = entries(&project, "");
    assert_eq!((&listed[0]["undone"], &listed[1]["undone"]), (&json!(false), &json!(true)));
    let text = project.ok("log --format text");
    let line = text.lines().find(|line| line.starts_with(short(&safety))).expect("a line");
    assert!(line.contains("  you  ") && line.contains("restored f.txt") && line.ends_with("~1, undone"), "{text}");
    project.json(&format!("undo {} --yes", undone["safety_checkpoint_id"].as_str().expect("an id")));
    assert_eq!(read(&project, "f.txt"), "by hand\n");
    assert_eq!(told(&project, "-n 1"), ["restore: redid the restore of f.txt"]);
    assert_eq!(entries(&project, "")[2]["undone"], false);
}

#[test]
fn restore_is_shown_and_found_by_its_paths() {
    let (project, _) = edited_between();
    let done = project.json("restore f.txt --yes");
    let safety = short(done["safety_checkpoint_id"].as_str().expect("an id")).to_owned();
    let shown = project.json(&format!("show {safety}"));
    assert_shape("show", &shown);
    assert_eq!((&shown["kind"], &shown["files"][0]["path"]), (&json!("restore"), &json!("f.txt")));
    assert_eq!(shown["files"].as_array().map(Vec::len), Some(1));
    for words in ["show", "log -n 1 -p --"] {
        let words = if words == "show" { format!("show {safety} -p") } else { format!("{words} f.txt") };
        let patch = project.ok(&words);
        assert!(patch.starts_with(&safety) && patch.contains("-of B\n+by hand"), "{patch}");
    }
    assert!(project.ok(&format!("show {safety} --stat -- other")).lines().all(|line| !line.contains("f.txt |")));
    assert!(told(&project, "-- f.txt")[0].starts_with("restore"));
    assert!(!told(&project, "-- mine.txt").iter().any(|one| one.starts_with("restore")));
    project.json(&format!("restore --before {safety} f.txt --yes"));
    assert_eq!(read(&project, "f.txt"), "of B\n", "the tree before the restore");
}

#[test]
fn named_restore_is_undone_if_it_is_the_last() {
    let (project, works) = edited_between();
    let restore = |of: &str| {
        let done = project.json(&format!("restore --before {of} f.txt --yes"));
        short(done["safety_checkpoint_id"].as_str().expect("an id")).to_owned()
    };
    let (first, second) = (restore(short(&works[1])), restore(short(&works[0])));
    let tree = ic_testkit::tree(project.root());
    assert_eq!(project.refused(&format!("redo {first} --yes")), (1, "not_undoable".to_owned()));
    assert_eq!(ic_testkit::tree(project.root()), tree);
    project.json(&format!("redo {second} --yes"));
    assert_eq!(read(&project, "f.txt"), "by hand\n");
    project.json(&format!("redo restore:{first} --yes"));
    assert_eq!(read(&project, "f.txt"), "of B\n");
    assert_eq!(project.refused(&format!("redo {first} --yes")).1, "nothing_to_undo");
}

#[test]
fn restore_in_the_shell_of_an_agent_is_of_its_session() {
    let (project, works) = edited_between();
    begins(&project, "A", "put it back");
    before(&project, "A", "a", "Bash", json!({ "command": "ic restore f.txt" }));
    project.json(&format!("restore --before {} f.txt --force --yes", short(&works[1])));
    after(&project, "A", "a", "Bash");
    stop(&project, "A");
    let restore = entries(&project, "").into_iter().find(|one| one["kind"] == "restore").expect("a restore");
    assert_eq!(restore["client"], "claude-code", "{restore}");
    assert!(project.ok("log --format text").lines().next().is_some_and(|line| line.contains("  claude-code  ")));
}

#[test]
fn restored_checkpoint_is_named() {
    let (project, _) = edited_between();
    project.ok("checkpoint create --name good");
    project.write("f.txt", "later\n");
    project.json("checkpoint restore good --yes");
    assert_eq!(told(&project, "-n 3"), ["restore: restored checkpoint good", "own: changed f.txt", "checkpoint"]);
    project.write("f.txt", "later\n");
    project.write("g.txt", "later\n");
    project.json("restore --before good f.txt --yes");
    assert_eq!(told(&project, "-n 1"), ["restore: restored f.txt as in checkpoint good"]);
}

#[test]
fn undo_of_work_and_its_redo_are_no_restores() {
    let (project, works) = edited_between();
    project.json(&format!("undo {} --only --yes", works[1]));
    project.json("redo --yes");
    project.json("undo --yes");
    assert_eq!(told(&project, ""), ["rollback", "prompt", "own: changed f.txt, mine.txt", "prompt"]);
    project.write("f.txt", "again\n");
    project.json("restore f.txt --yes");
    assert!(told(&project, "")[0].starts_with("restore: restored f.txt"), "{:?}", told(&project, ""));
    assert_eq!(told(&project, "")[1..3], ["own: changed f.txt", "rollback"]);
}

#[test]
fn effects_of_an_undo_are_not_yours() {
    let project = in_git();
    writes(&project, "A", "one", &[("a.txt", "1\n")]);
    begins(&project, "A", "two");
    let run = entries(&project, "")[0]["run_id"].as_str().expect("a run").to_owned();
    before(&project, "A", "a", "Bash", json!({ "command": "make" }));
    project.write("a.txt", "2\n");
    project.ok(&format!("compensation add {run} --step queue --exec -- touch undone.txt"));
    after(&project, "A", "a", "Bash");
    stop(&project, "A");
    let undone = project.run("undo --yes --json").json();
    assert_eq!(undone["steps"][0]["made"]["undone_count"], 1, "{undone}");
    assert!(undone["files"]["changes"].to_string().contains("undone.txt"), "the effect changed the tree: {undone}");
    assert!(!told(&project, "").iter().any(|one| one.starts_with("own")), "{:?}", told(&project, ""));
}

#[test]
fn pages_have_each_entry_once() {
    let (project, _) = edited_between();
    project.ok("checkpoint create --name good");
    project.write("f.txt", "later\n");
    writes(&project, "A", "three", &[("f.txt", "of A\n")]);
    project.json("restore f.txt --yes");
    project.json("redo --yes");
    project.write("g.txt", "later\n");
    writes(&project, "A", "four", &[("f.txt", "4\n")]);
    let all = entries(&project, "");
    assert_eq!(all.len(), 10, "{all:?}");
    for number in [1, 2, 3, 4, 5, 10] {
        let (mut paged, mut next) = (Vec::new(), String::new());
        loop {
            let page = entries(&project, &format!("-n {number}{next}"));
            let Some(last) = page.last() else { break };
            next = format!(" --before {}", last["seq"]);
            // What a person changed after a checkpoint has its event, and no page ends between the two.
            assert!(page.iter().filter(|one| one["seq"] != last["seq"]).count() < number);
            paged.extend(page);
        }
        assert_eq!(paged, all, "-n {number}");
    }
}
