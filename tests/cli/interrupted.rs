//! A restore that is killed, what a person writes before it is finished, and the undos and redos after that: what the person wrote stays.

use std::os::unix::process::ExitStatusExt;

use ic_testkit::copy_over;
use serde_json::Value;

use crate::agents::{Said, in_call, in_git, say};
use crate::blame::work_of;
use crate::support::{Project, args};

const BASE: &str = "1\n2\n3\n4\n5\n6\n7\n";
const OF_AGENT: &str = "1\n2\n3\n4\n5\n6\n7\nof the agent\n";

/// A prompt that makes two files and changes a third one.
fn worked(is_ended: bool) -> Project {
    let project = in_git();
    project.write("base.txt", BASE);
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("one", "one"));
    in_call(&project, "claude-code", "A", || {
        project.write("a.txt", "a\n");
        project.write("b.txt", "b\n");
        project.write("base.txt", OF_AGENT);
    });
    if is_ended {
        say(&project, &Said::new("claude-code", "A", "Stop"));
    }
    project
}

/// Lets a call die when the files of its last restore are written, and the record of that is not.
fn dies_in_its_restore(project: &Project, line: &str) {
    let (saved, log) = (project.cli.home().join("saved"), project.cli.home().join("statements"));
    project.cli.keep_ledger("saved");
    copy_over(project.root(), &saved);
    let words = args(line);
    // Not through the project: a call that is made again has the same ids and the same moment.
    let call = |name: &str, value: &std::ffi::OsStr| {
        let mut command = project.cli.command(&words);
        command.env(name, value).output().expect("start ic")
    };
    let output = call("IC_TEST_SQL_LOG", log.as_os_str());
    assert!(matches!(output.status.code(), Some(0 | 4)), "{line}: {output:?}");
    let statements = std::fs::read_to_string(&log).expect("the log");
    let ends = "UPDATE restores SET restored_id";
    let at = statements.lines().collect::<Vec<_>>().iter().rposition(|one| one.starts_with(ends)).expect("a restore");
    copy_over(&saved, project.root());
    project.cli.put_back_ledger("saved");
    let output = call("IC_TEST_ABORT_BEFORE", (at + 1).to_string().as_ref());
    assert!(output.status.signal().is_some(), "{line}: {output:?}");
    assert_eq!(project.cli.sql("SELECT count(*) FROM restores WHERE state <> 'applied'").trim(), "1", "{line}");
}

fn read(project: &Project, name: &str) -> Option<String> {
    std::fs::read_to_string(project.root().join(name)).ok()
}

fn edit(project: &Project) {
    let now = read(project, "base.txt").expect("a file");
    project.write("base.txt", &format!("mine\n{now}"));
}

fn last_rollback(project: &Project) -> Value {
    let all = project.json("rollback list");
    all.as_array().and_then(|all| all.last()).expect("a rollback").clone()
}

/// The exit of a call, and what it says.
fn ends(project: &Project, line: &str) -> (Option<i32>, Value) {
    // Fixed ids count on by one for a rollback, which makes several: a call for a checkpoint counts on by more.
    project.ok("checkpoint list");
    let outcome = project.run(&format!("{line} --json"));
    let said = if outcome.stdout.is_empty() { &outcome.stderr } else { &outcome.stdout };
    (outcome.code, serde_json::from_str(said).expect("JSON"))
}

fn status(project: &Project) -> String {
    last_rollback(project)["status"].as_str().expect("a status").to_owned()
}

#[test]
fn an_undo_that_is_resumed_asks_about_what_a_person_wrote_meanwhile() {
    for is_ended in [true, false] {
        let project = worked(is_ended);
        dies_in_its_restore(&project, "undo --yes");
        project.write("notes.txt", "mine\n");
        edit(&project);
        let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
        let (code, report) = ends(&project, &format!("rollback resume {id} --yes"));
        let why = report["steps"][1]["error"].as_str().expect("an error");
        assert!(code == Some(4) && why.starts_with("file_conflict") && why.contains("was interrupted"), "{report}");
        assert_eq!(read(&project, "notes.txt").as_deref(), Some("mine\n"), "ended: {is_ended}");
        assert_eq!(read(&project, "base.txt"), Some(format!("mine\n{BASE}")), "ended: {is_ended}");
        assert_eq!((read(&project, "a.txt"), status(&project)), (None, "stopped".to_owned()));
    }
}

#[test]
fn what_a_person_wrote_while_a_redo_was_interrupted_is_no_work_of_the_prompt() {
    let project = worked(true);
    project.json("undo --yes");
    dies_in_its_restore(&project, "redo --yes");
    project.write("notes.txt", "mine\n");
    let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
    let (code, report) = ends(&project, &format!("rollback resume {id} --yes"));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((read(&project, "a.txt").is_some(), status(&project)), (true, "undone".to_owned()));
    // The return of the whole run leaves it, and so does the undo of the prompt.
    let plan = project.json("undo created --dry-run");
    let changes = plan["files"]["changes"].as_array().expect("a list");
    assert!(!changes.is_empty() && changes.iter().all(|one| one["path"] != "notes.txt"), "{plan}");
    let undone = project.json("undo --yes");
    let changes = undone["files"]["changes"].as_array().expect("a list");
    assert!(changes.iter().all(|one| one["path"] != "notes.txt"), "{undone}");
    assert_eq!((read(&project, "notes.txt").as_deref(), read(&project, "a.txt")), (Some("mine\n"), None));
    assert_eq!(read(&project, "base.txt").as_deref(), Some(BASE));
    project.json("redo --yes");
    assert_eq!((read(&project, "notes.txt").as_deref(), read(&project, "a.txt").is_some()), (Some("mine\n"), true));
    assert_eq!(read(&project, "base.txt").as_deref(), Some(OF_AGENT));
}

#[test]
fn what_a_person_wrote_while_a_restore_was_interrupted_is_not_undone_with_it() {
    let project = worked(true);
    let first = project.json("checkpoint list")[0]["id"].as_str().expect("an id").to_owned();
    for next in ["redo RESTORE --yes".to_owned(), format!("checkpoint restore {first} --yes"), "redo --yes".to_owned()]
    {
        let project = worked(true);
        dies_in_its_restore(&project, &format!("checkpoint restore {first} --force --yes"));
        project.write("notes.txt", "mine\n");
        project.write("b.txt", "mine\n");
        edit(&project);
        let next = next.replace("RESTORE", &project.cli.last_restore());
        let mine = || ["notes.txt", "b.txt", "base.txt"].map(|name| read(&project, name));
        let before = mine();
        let (code, said) = ends(&project, &next);
        assert_eq!((code, &said["error"]["code"]), (Some(1), &"file_conflict".into()), "{next}: {said}");
        assert_eq!((mine(), read(&project, "a.txt")), (before.clone(), None), "{next}");
        assert_eq!(ends(&project, "redo --keep-theirs --yes").0, Some(0), "{next}");
        assert_eq!((mine(), read(&project, "a.txt").is_some()), (before.clone(), true), "{next}");
        assert_eq!(ends(&project, &format!("undo {} --yes", project.cli.last_restore())).0, Some(0), "{next}");
        assert_eq!((mine(), read(&project, "a.txt")), (before, None), "{next}");
    }
}

/// A killed undo is finished by the call that names it, and first by a call that names another restore.
#[test]
fn named_undo_finishes_a_killed_one_first() {
    for is_newer in [true, false] {
        let project = in_git();
        let mut restores = Vec::new();
        for n in 0..3 {
            project.write("f.txt", &format!("{n}\n"));
            project.ok("checkpoint create");
        }
        let first = project.json("checkpoint list")[0]["id"].as_str().expect("an id").to_owned();
        for n in 0..2 {
            project.json(&format!("checkpoint restore {first} --yes"));
            restores.push(project.cli.last_restore());
            project.write("f.txt", &format!("later {n}\n"));
        }
        project.write("f.txt", "0\n");
        dies_in_its_restore(&project, "redo --yes");
        let named = &restores[usize::from(is_newer)];
        let (code, plan) = ends(&project, &format!("redo {named} --dry-run"));
        assert_eq!((code, &plan["undoes"]), (Some(0), &"restore".into()), "newer: {is_newer}: {plan}");
        let (code, report) = ends(&project, &format!("redo {named} --yes"));
        let paths = |report: &Value| report["changes"][0]["path"].clone();
        assert_eq!((code, paths(&report)), (Some(0), paths(&plan)), "newer: {is_newer}: {report}");
        let wanted = if is_newer { "later 0\n" } else { "2\n" };
        assert_eq!(read(&project, "f.txt").as_deref(), Some(wanted), "newer: {is_newer}");
        // Nothing goes further when the call is made again.
        let (code, refused) = ends(&project, &format!("redo {named} --yes"));
        assert_eq!((code, &refused["error"]["code"]), (Some(1), &"nothing_to_undo".into()), "{refused}");
        assert_eq!(read(&project, "f.txt").as_deref(), Some(wanted), "newer: {is_newer}");
        assert_eq!(project.cli.sql("SELECT count(*) FROM restores WHERE state <> 'applied'").trim(), "0");
    }
}

/// The lines of others in a file of the work stay through the undo of that work alone, and the work's own lines come and go.
#[test]
fn a_line_that_a_person_added_meanwhile_stays_in_a_file_of_the_prompt() {
    for is_redo in [false, true] {
        let project = worked(true);
        let undo = format!("undo --only {} --yes", work_of(&project, "A"));
        if is_redo {
            project.json(&undo);
        }
        dies_in_its_restore(&project, if is_redo { "redo --yes" } else { &undo });
        edit(&project);
        let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
        assert_eq!(ends(&project, &format!("rollback resume {id} --yes")).0, Some(0), "redo: {is_redo}");
        for n in 0..2 {
            let is_there = is_redo == (n == 0);
            let wanted = if is_there { OF_AGENT } else { BASE };
            assert_eq!(read(&project, "base.txt"), Some(format!("mine\n{wanted}")), "redo: {is_redo}, {n}");
            assert_eq!(read(&project, "a.txt").is_some(), is_there, "redo: {is_redo}, {n}");
            project.json(if is_there { &undo } else { "redo --yes" });
        }
    }
}

/// The command that the refusal names makes way for the abort.
#[test]
fn an_abort_names_a_command_that_restores_what_a_person_changed_meanwhile() {
    let project = worked(true);
    dies_in_its_restore(&project, "undo --layer=workflow,effects,files,git --yes");
    edit(&project);
    let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
    let abort = format!("rollback abort {id} --yes");
    let (code, said) = ends(&project, &abort);
    assert_eq!((code, &said["error"]["code"]), (Some(1), &"file_conflict".into()), "{said}");
    assert_eq!(read(&project, "base.txt"), Some(format!("mine\n{BASE}")), "{said}");
    let hint = said["error"]["hint"].as_str().expect("a hint");
    let command = hint.split_once("ic ").and_then(|(_, rest)| rest.split_once(';')).expect("a command").0;
    let report = project.json(command);
    assert_eq!((&report["status"], read(&project, "base.txt").as_deref()), (&"restored".into(), Some(OF_AGENT)));
    project.json(&abort);
    assert_eq!(status(&project), "aborted");
    assert_eq!((read(&project, "a.txt").is_some(), read(&project, "base.txt").as_deref()), (true, Some(OF_AGENT)));
}

#[test]
fn an_abort_of_an_undo_of_prompts_keeps_what_a_person_changed_since() {
    let project = worked(true);
    dies_in_its_restore(&project, "undo --yes");
    edit(&project);
    let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
    project.json(&format!("rollback abort {id} --yes"));
    assert_eq!(status(&project), "aborted");
    let both = format!("mine\n{OF_AGENT}");
    assert_eq!((read(&project, "a.txt").is_some(), read(&project, "base.txt")), (true, Some(both)));
}

/// What was restored before the step was skipped belongs to the rollback: files and record come back together.
#[test]
fn a_redo_after_a_skipped_step_restores_files_and_record() {
    for is_stopped in [true, false] {
        let project = worked(true);
        dies_in_its_restore(&project, "undo --yes");
        project.write("notes.txt", "mine\n");
        let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
        if is_stopped {
            // What a person wrote in between needs no decision, so no step is left to skip.
            assert_eq!(ends(&project, &format!("rollback resume {id} --yes")).0, Some(0));
        } else {
            assert_eq!(ends(&project, &format!("rollback resume {id} --skip-step --yes")).0, Some(0));
        }
        assert_eq!((read(&project, "a.txt"), status(&project)), (None, "done".to_owned()), "stopped: {is_stopped}");
        let (code, report) = ends(&project, "redo --yes");
        assert_eq!((code, status(&project)), (Some(0), "undone".to_owned()), "stopped: {is_stopped}: {report}");
        assert_eq!((read(&project, "a.txt").is_some(), read(&project, "base.txt").as_deref()), (true, Some(OF_AGENT)));
        assert_eq!(read(&project, "notes.txt").as_deref(), Some("mine\n"), "stopped: {is_stopped}");
        let work = project.json(&format!("dispatch show {}", work_of(&project, "A")));
        assert_eq!(work["rolled_back_by"], Value::Null, "{work}");
    }
}

/// Whichever call makes the last step: what stays of git is named, and the exit says so.
#[test]
fn a_resumed_undo_names_what_stays_of_git() {
    for is_alone in [true, false] {
        let project = in_git();
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("one", "one"));
        in_call(&project, "claude-code", "A", || {
            project.write("a.txt", "a\n");
            ic_testkit::git_in(project.root(), &["tag", "t"]);
        });
        say(&project, &Said::new("claude-code", "A", "Stop"));
        let alone = if is_alone { format!(" --only {}", work_of(&project, "A")) } else { String::new() };
        dies_in_its_restore(&project, &format!("undo{alone} --yes"));
        let id = last_rollback(&project)["id"].as_str().expect("an id").to_owned();
        let (code, report) = ends(&project, &format!("rollback resume {id} --yes"));
        assert_eq!((code, status(&project)), (Some(4), "done".to_owned()), "{alone}: {report}");
        let warning = &report["warnings"][0];
        assert_eq!(warning["code"], "git_remains", "{alone}: {report}");
        assert!(warning["message"].as_str().expect("a text").contains("git tag -d t"), "{alone}: {report}");
        assert_eq!(read(&project, "a.txt"), None, "{alone}");
    }
}
