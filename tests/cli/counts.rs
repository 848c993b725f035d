//! What is counted of a prompt's files: files are counted as files, and what is known of a prompt that was interrupted is told.

use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::blame::{after, before, prompt, stop};
use crate::support::Project;

/// What `ic log` counts of the prompt with this title.
fn counts(project: &Project, title: &str) -> Value {
    let log = project.json("log --all");
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title);
    found.unwrap_or_else(|| panic!("{title}: {log}"))["file_counts"].clone()
}

fn created(files: usize) -> Value {
    json!({ "created": files, "modified": 0, "deleted": 0, "shared": 0, "directories": 0 })
}

#[test]
fn a_directory_is_counted_as_no_file() {
    let project = in_git();
    prompt(&project, "A", "make room");
    in_call(&project, "claude-code", "A", || {
        project.write("room/table.txt", "oak\n");
        std::fs::create_dir_all(project.root().join("empty")).expect("an empty directory");
    });
    stop(&project, "A");
    assert_eq!(
        counts(&project, "make room"),
        json!({ "created": 1, "modified": 0, "deleted": 0, "shared": 0, "directories": 1 })
    );
    let log = project.ok("log --format text");
    assert!(log.contains("make room  +1, 1 directory"), "{log}");
    let plan = project.ok("undo --dry-run --format text");
    assert!(plan.contains("has them: 1 deleted, 2 directories deleted"), "{plan}");
    project.json("undo --yes");
    let next = Said::new("claude-code", "A", "UserPromptSubmit").prompt("p-2", "next");
    let told = say(&project, &next).to_string();
    assert!(told.contains("1 file and 2 directories changed (which: ic checkpoint diff"), "{told}");
}
