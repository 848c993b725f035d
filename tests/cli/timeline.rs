//! What a person looks at: the work of a place, by the references that `ic log` prints.

mod changes;
mod diff;
mod log;
mod references;
mod restore;
mod show;

use serde_json::{Value, json};

use crate::agents::{Said, say};
use crate::blame::{after, before, stop, work_of};
use crate::support::Project;

/// A prompt that writes files by a tool call, and its end. Returns the id of its work.
pub(crate) fn writes(project: &Project, session: &str, text: &str, files: &[(&str, &str)]) -> String {
    begins(project, session, text);
    before(project, session, text, "Bash", json!({ "command": "make" }));
    for (file, content) in files {
        project.write(file, content);
    }
    after(project, session, text, "Bash");
    stop(project, session);
    work_of(project, session)
}

/// A prompt, as it begins.
fn begins(project: &Project, session: &str, text: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
}

/// The end of an id, as lists show it.
fn short(id: &str) -> &str {
    &id[id.len() - 8..]
}

/// The changes that a call lists, as `added a.txt`.
fn changes(report: &Value) -> Vec<String> {
    let all = report["changes"].as_array().unwrap_or_else(|| panic!("no changes: {report}"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    all.iter().map(|one| format!("{} {}", text(&one["change"]), text(&one["path"]))).collect()
}
