//! `ic log`: the work of a place, over all its sessions and runs.

use serde_json::{Value, json};

use super::{begins, short, writes};
use crate::agents::in_git;
use crate::blame::{after, before, stop, work_of};
use crate::support::{Project, assert_shape};

fn entries(project: &Project, words: &str) -> Vec<Value> {
    project.json(words).as_array().expect("a list").clone()
}

/// The titles of the work that is listed.
fn titles(project: &Project, words: &str) -> Vec<String> {
    let all = entries(project, words);
    all.iter().filter_map(|entry| Some(entry["title"].as_str()?.to_owned())).collect()
}

/// Two sessions take turns, a run that a person opened has a dispatch, and a step runs.
fn of_several() -> (Project, [String; 3]) {
    let project = in_git();
    let one = writes(&project, "A", "one", &[("a.txt", "1\n")]);
    let two = writes(&project, "B", "two", &[("b.txt", "2\n")]);
    let run = project.ok("run create --goal Ship --phases plan,build");
    let work = project.ok(&format!("dispatch create {run} --name pack"));
    project.ok(&format!("dispatch start {work}"));
    project.write("c.txt", "3\n");
    project.ok(&format!("dispatch complete {work}"));
    writes(&project, "A", "four", &[("a.txt", "4\n")]);
    (project, [one, two, work])
}

#[test]
fn without_a_run_it_has_the_work_of_all_sessions_and_runs() {
    let (project, works) = of_several();
    let listed = project.json("log");
    assert_shape("log", &listed);
    assert_eq!(titles(&project, "log"), ["four", "pack", "Ship", "two", "one"]);
    let clients: Vec<Value> = entries(&project, "log").iter().map(|entry| entry["client"].clone()).collect();
    assert_eq!(clients, [json!("claude-code"), json!(null), json!(null), json!("claude-code"), json!("claude-code")]);
    let text = project.ok("log --format text");
    let lines: Vec<&str> = text.lines().collect();
    for (line, work) in [(1, &works[2]), (3, &works[1]), (4, &works[0])] {
        assert!(lines[line].starts_with(short(work)), "each line begins with what names it: {text}");
    }
    assert!(lines[0].contains("claude-code") && lines[0].contains("four") && lines[0].ends_with("~1"), "{text}");
    assert!(lines[1].contains("dispatch") && lines[1].ends_with("+1"), "{text}");
    // Every verb takes what the log prints.
    for line in lines.iter().take(5).filter(|line| !line.starts_with("created")) {
        let name = line.split_whitespace().next().expect("a name");
        assert_eq!(project.run(&format!("show {name} --json")).code, Some(0), "{name}");
    }
    assert_eq!(titles(&project, &format!("log {}", short(&run_of(&project, &works[2])))), ["pack", "Ship"]);
}

fn run_of(project: &Project, work: &str) -> String {
    project.json(&format!("dispatch show {work}"))["run_id"].as_str().expect("a run").to_owned()
}

#[test]
fn page_of_n_is_the_newest_and_the_next_page_follows() {
    let (project, _) = of_several();
    assert_eq!(titles(&project, "log -n 2"), ["four", "pack"]);
    let seq = entries(&project, "log -n 2")[1]["seq"].clone();
    assert_eq!(titles(&project, &format!("log -n 2 --before {seq}")), ["Ship", "two"]);
    assert!(project.ok("log -n 2 --format text").contains("older ones: -n N"));
    assert!(!project.ok("log -n 5 --format text").contains("older ones"));
    assert_eq!(project.refused("log --limit 2").1, "usage");
}

#[test]
fn session_and_paths_choose_entries() {
    let (project, _) = of_several();
    assert_eq!(titles(&project, "log --session A"), ["four", "one"]);
    assert_eq!(titles(&project, "log --session B -n 1"), ["two"]);
    assert_eq!(titles(&project, "log --json -- a.txt").len(), 2);
    let listed = project.run("log --json -- a.txt").json();
    let named: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|one| one["title"].as_str()).collect();
    assert_eq!(named, ["four", "one"]);
    let text = project.ok("log -n 1 -p -- a.txt");
    assert!(text.contains("four") && text.contains("-1\n+4") && !text.contains("one  "), "{text}");
    let stat = project.ok("log --stat");
    assert_eq!(stat.matches("1 path changed").count(), 4, "{stat}");
}

#[test]
fn checkpoint_without_a_run_is_an_entry() {
    let (project, _) = of_several();
    let id = project.json("checkpoint create --name good")["id"].as_str().expect("an id").to_owned();
    let listed = project.json("log");
    assert_shape("log", &listed);
    assert_eq!((&listed[0]["checkpoint_id"], &listed[0]["run_id"]), (&json!(id), &json!(null)));
    let text = project.ok("log --format text");
    assert!(text.starts_with(short(&id)) && text.lines().next().is_some_and(|line| line.contains("you  ")), "{text}");
    assert!(!titles(&project, "log --session A").contains(&"good".to_owned()));
}

#[test]
fn undone_work_stays_in_the_list_and_is_dimmed() {
    let (project, works) = of_several();
    project.json(&format!("undo {} --only --yes", works[1]));
    let listed = entries(&project, "log");
    let of = |id: &str| listed.iter().find(|one| one["reference"].as_str().is_some_and(|it| it.ends_with(id)));
    assert_eq!(of(short(&works[1])).expect("an entry")["undone"], true);
    assert_eq!(of(short(&works[0])).expect("an entry")["undone"], false);
    let out = project.command(["log", "--format", "text"]).env("CLICOLOR_FORCE", "1").output().expect("a log");
    let text = String::from_utf8(out.stdout).expect("a text");
    for (work, style) in [(&works[1], "\u{1b}[2m"), (&works[0], "\u{1b}[1m")] {
        let start = format!("{style}{}", short(work));
        assert!(text.lines().any(|line| line.starts_with(&start)), "{start:?}: {text:?}");
    }
}

#[test]
fn patches_below_entries_have_the_lines_of_each_work_alone() {
    let project = in_git();
    project.write("f.txt", "1\n2\n3\n4\n5\n6\n7\n");
    begins(&project, "A", "first line");
    begins(&project, "B", "last line");
    before(&project, "A", "a", "Edit", json!({ "file_path": project.root().join("f.txt") }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\n7\n");
    after(&project, "A", "a", "Edit");
    before(&project, "B", "b", "Edit", json!({ "file_path": project.root().join("f.txt") }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\nSEVEN\n");
    after(&project, "B", "b", "Edit");
    stop(&project, "A");
    stop(&project, "B");
    let text = project.ok("log -p");
    let (of_b, of_a) = text.split_once(short(&work_of(&project, "A"))).expect("both");
    assert!(of_b.contains("+SEVEN") && !of_b.contains("+ONE"), "{text}");
    assert!(of_a.contains("+ONE") && !of_a.contains("+SEVEN"), "{text}");
}

#[test]
fn a_page_of_a_run_is_full_of_what_changed_the_paths() {
    let project = in_git();
    let first = writes(&project, "A", "first", &[("f1", "1\n")]);
    for name in ["two", "three", "four", "five"] {
        writes(&project, "A", name, &[(name, "text\n")]);
    }
    let run = run_of(&project, &first);
    assert_eq!(titles(&project, &format!("log {run} -n 2 -- f1")), ["first"]);
    let text = project.ok(&format!("log {run} -n 2 --format text -- f1"));
    assert!(!text.contains("older ones"), "{text}");
}
