//! `ic show`: what one piece of work did, and nothing of what others did at the same time.

use serde_json::{Value, json};

use super::{begins, short, writes};
use crate::agents::{Said, in_git, say_with};
use crate::blame::{after, before, stop, work_of};
use crate::support::{Project, assert_shape};

/// The files that are listed, as `added a.txt +1 -0`.
fn files(shown: &Value) -> Vec<String> {
    let all = shown["files"].as_array().unwrap_or_else(|| panic!("no files: {shown}"));
    let one = |file: &Value| {
        let text = |key: &str| file[key].as_str().expect("a text").to_owned();
        format!("{} {} +{} -{}", text("change"), text("path"), file["added"], file["removed"])
    };
    all.iter().map(one).collect()
}

/// Two agents that edit one file at the same time.
fn beside_each_other() -> Project {
    let project = in_git();
    project.write("f.txt", "one\n2\n3\n4\n5\n6\nseven\n");
    begins(&project, "A", "change the first line");
    begins(&project, "B", "change the last line");
    before(&project, "A", "a1", "Edit", json!({ "file_path": project.root().join("f.txt") }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\nseven\n");
    after(&project, "A", "a1", "Edit");
    before(&project, "B", "b1", "Bash", json!({ "command": "sed -i s/seven/SEVEN/ f.txt; echo b >b.txt" }));
    project.write("f.txt", "ONE\n2\n3\n4\n5\n6\nSEVEN\n");
    project.write("b.txt", "b\n");
    after(&project, "B", "b1", "Bash");
    project.write("mine.txt", "by hand\n");
    stop(&project, "A");
    stop(&project, "B");
    project
}

#[test]
fn patch_has_the_lines_of_its_work_alone() {
    let project = beside_each_other();
    let (a, b) = (work_of(&project, "A"), work_of(&project, "B"));
    assert_eq!(files(&project.json(&format!("show {a}"))), ["modified f.txt +1 -1"]);
    assert_eq!(files(&project.json(&format!("show {b}"))), ["added b.txt +1 -0", "modified f.txt +1 -1"]);
    let patch = project.ok(&format!("show {} -p", short(&a)));
    assert!(patch.contains("change the first line") && patch.contains("-one\n+ONE\n"), "{patch}");
    assert!(!patch.contains("+SEVEN") && !patch.contains("mine.txt"), "{patch}");
    let only = project.ok(&format!("show {} --stat -- b.txt", short(&b)));
    assert!(only.contains("b.txt") && !only.contains("f.txt"), "{only}");
}

#[test]
fn patch_can_be_taken_out_by_git() {
    let project = in_git();
    project.write("f.txt", "1\n2\n3\n");
    let id = writes(&project, "A", "change", &[("f.txt", "1\ntwo\n3\n"), ("new.txt", "new\n")]);
    let patch = project.ok(&format!("show {} -p", short(&id)));
    std::fs::write(project.cli.home().join("patch"), patch + "\n").expect("a patch");
    let file = project.cli.home().join("patch");
    ic_testkit::git_in(project.root(), &["apply", "-R", file.to_str().expect("a path")]);
    assert_eq!(crate::blame::read(&project, "f.txt"), "1\n2\n3\n");
    assert!(!project.root().join("new.txt").exists());
}

#[test]
fn entry_tells_who_when_and_by_which_calls() {
    let project = in_git();
    let id = writes(&project, "A", "write it\nwith care", &[("a.txt", "1\n2\n")]);
    let shown = project.json("show");
    assert_shape("show", &shown);
    assert_eq!((&shown["id"], &shown["kind"], &shown["status"]), (&json!(id), &json!("prompt"), &json!("completed")));
    assert_eq!(shown["session"]["client"], "claude-code");
    assert_eq!(shown["text"], "write it", "the ledger keeps the first line alone");
    assert_eq!((&shown["calls"][0]["tool"], &shown["calls"][0]["line"]), (&json!("Bash"), &json!("make")));
    assert_eq!(shown["commits"], json!([]));
    let text = project.ok("show --format text");
    for part in [short(&id), "claude-code", "    write it", "Bash  make", "+  a.txt  +2 -0", "ic show", "-p"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    project.json("undo --yes");
    assert!(project.ok(&format!("show {id} --format text")).contains("undone by"));
    assert_eq!(files(&project.json(&format!("show {id}"))), ["added a.txt +2 -0"], "it is shown when undone, too");
}

#[test]
fn whole_text_comes_masked_from_the_record_of_the_client() {
    let project = in_git();
    let directory = project.cli.home().join(".claude/projects/shop");
    std::fs::create_dir_all(&directory).expect("a directory");
    let record = directory.join("A.jsonl");
    let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } }).to_string();
    std::fs::write(&record, line("an earlier prompt") + "\n").expect("a record");
    let path = record.to_str().expect("a path");
    let text = "Add a login\n\nuse AKIAIOSFODNN7EXAMPLE\nand test it";
    let home = project.cli.home().to_str().expect("a path");
    let said = Said::new("claude-code", "A", "UserPromptSubmit").prompt("p", text).with("transcript_path", path);
    say_with(&project, &said, &[("HOME", home)]);
    let all = [line("an earlier prompt"), line(text)].map(|line| line + "\n").concat();
    std::fs::write(&record, all).expect("a record");
    stop(&project, "A");
    let shown = project.run_with("HOME", home, "show --json").json()["text"].as_str().expect("a text").to_owned();
    assert!(shown.starts_with("Add a login\n\nuse ") && shown.ends_with("\nand test it"), "{shown}");
    assert!(!shown.contains("AKIAIOSFODNN7EXAMPLE"), "{shown}");
    std::fs::remove_file(&record).expect("no record any more");
    assert_eq!(project.run_with("HOME", home, "show --json").json()["text"], "Add a login");
}

#[test]
fn running_work_is_shown_as_far_as_it_was_seen() {
    let project = in_git();
    begins(&project, "A", "work");
    before(&project, "A", "a1", "Bash", json!({ "command": "make" }));
    project.write("a.txt", "1\n");
    after(&project, "A", "a1", "Bash");
    let shown = project.json("show @");
    assert_eq!((&shown["status"], files(&shown)), (&json!("running"), vec!["added a.txt +1 -0".to_owned()]));
}

#[test]
fn step_checkpoint_and_rollback_are_shown_by_their_references() {
    let project = in_git();
    let steps = "[{id: build, run: 'echo b > b.txt'}, {id: ship, run: 'echo s > s.txt', needs: [build]}]";
    project.write("flow.yaml", &format!("name: flow\nsteps: {steps}\n"));
    project.json("workflow run flow.yaml");
    assert_eq!(files(&project.json("show build")), ["added b.txt +1 -0"]);
    let id = project.json("checkpoint create --name good")["id"].clone();
    assert_eq!(project.json("show good")["id"], id);
    let undone = project.json("undo ship --yes");
    let rollback = undone["rollback_id"].as_str().expect("an id").to_owned();
    assert_eq!(project.json(&format!("show {}", short(&rollback)))["id"], rollback.as_str());
    assert_eq!(project.refused("show nothing"), (3, "point_not_found".to_owned()));
    assert_eq!(project.refused("show created").1, "point_not_found");
}
