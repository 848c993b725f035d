//! Completion of command lines: the candidates, that the ledger is only read, and real shells.

mod kinds;
mod shells;
mod timing;

use std::ffi::OsStr;
use std::process::Command;

use ic_testkit::CliOutcome;

use crate::support::{BINARY, Project};

/// A call that asks as the scripts do, with the words before the cursor.
fn asking<S: AsRef<OsStr>>(project: &Project, words: impl IntoIterator<Item = S>) -> Command {
    let mut command = project.command(words);
    command.env("IC_COMPLETE", "zsh");
    command
}

/// What is offered after these words, with what it is; the last word is the one that is being typed.
fn offered(project: &Project, words: &[&str]) -> Vec<(String, String)> {
    let outcome = CliOutcome::of(&mut asking(project, words));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{words:?}");
    let lines = outcome.stdout.lines().map(|line| line.split_once('\t').unwrap_or((line, "")));
    lines.map(|(value, about)| (value.to_owned(), about.to_owned())).collect()
}

/// The words that are offered.
fn values(project: &Project, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    offered(project, &words).into_iter().map(|(value, _)| value).collect()
}

/// The last eight digits of an id.
fn short(id: &str) -> &str {
    &id[id.len() - 8..]
}

#[test]
fn a_call_that_does_not_ask_is_none_of_its_business() {
    let project = Project::new();
    for value in ["", "1", "powershell", "BASH"] {
        let outcome = project.run_with("IC_COMPLETE", value, "where");
        assert_eq!(outcome.code, Some(0), "{value}");
        assert_eq!(outcome.stdout.trim_end(), project.cli.name_of_ledger(), "{value}");
    }
}

#[test]
fn the_scripts_are_printed_as_they_are_in_every_form() {
    let project = Project::without_ledger();
    for shell in ["bash", "zsh", "fish"] {
        let script = project.ok(&format!("completions {shell}"));
        assert!(script.contains(&format!("IC_COMPLETE={shell} command ic")), "{script}");
        for form in ["--json", "--format text", "--pretty"] {
            assert_eq!(project.ok(&format!("completions {shell} {form}")), script, "{form}");
        }
    }
    assert_eq!(project.refused("completions powershell"), (3, "invalid_value".to_owned()));
    assert_eq!(project.refused("completions"), (3, "usage".to_owned()));
    assert!(std::fs::metadata(BINARY).is_ok() && !project.root().join(".ic").exists());
}
