//! Attribution when others work in the same files. The tree is captured around each tool call, so an undo leaves what a person did between
//! two calls, and what others committed, and undoes all that the agent did.

use serde_json::{Value, json};

use crate::agents::in_git;
use crate::agents::say;
use crate::blame::{after, before, call, prompt, read, stop, work_of};
use crate::support::Project;

/// A file with this number of numbered lines, in a commit.
pub(crate) fn with_lines() -> Project {
    let project = in_git();
    project.write("f", &lines(&[]));
    git(&project, &["add", "f"]);
    git(&project, &["commit", "-qm", "f"]);
    project
}

/// The lines, with some of them changed.
pub(crate) fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n: usize| {
        let found = changed.iter().find(|(at, _)| *at == n);
        found.map_or_else(|| format!("{n}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=60).map(line).collect()
}

pub(crate) fn git(project: &Project, words: &[&str]) -> String {
    ic_testkit::git_in(project.root(), words).trim().to_owned()
}

/// Sets a line of the file, whatever the others are.
pub(crate) fn set(project: &Project, at: usize, to: &str) {
    let text = read(project, "f");
    let mut all: Vec<&str> = text.lines().collect();
    all[at - 1] = to;
    project.write("f", &(all.join("\n") + "\n"));
}

/// A call that names the file.
fn edit(project: &Project, session: &str, id: &str, deed: impl Fn()) {
    let input = json!({ "file_path": project.root().join("f") });
    before(project, session, id, "Edit", input);
    deed();
    after(project, session, id, "Edit");
}

/// A call that names none.
pub(crate) fn shell(project: &Project, session: &str, id: &str, deed: impl Fn()) {
    before(project, session, id, "Bash", json!({ "command": "make x" }));
    deed();
    after(project, session, id, "Bash");
}

fn undo(project: &Project, session: &str) -> Value {
    project.json(&format!("undo --only {} --yes", work_of(project, session)))
}

fn is_undone(project: &Project, session: &str) -> bool {
    let shown = project.json(&format!("dispatch show {}", work_of(project, session)));
    !shown["rolled_back_by"].is_null()
}

pub(crate) fn has(project: &Project, file: &str) -> bool {
    project.root().join(file).exists()
}

#[test]
fn what_a_person_edits_before_between_and_after_calls_stays_and_the_agents_lines_go() {
    for tool in ["Edit", "Bash"] {
        for idle in [false, true] {
            let project = with_lines();
            prompt(&project, "A", "A works");
            if idle {
                // Another agent that waits for its person is no reason for anything.
                prompt(&project, "B", "B waits");
            }
            let calls = |id: &str, deed: &dyn Fn()| match tool {
                "Edit" => edit(&project, "A", id, deed),
                _ => shell(&project, "A", id, deed),
            };
            set(&project, 3, "person, before the first call");
            calls("a1", &|| set(&project, 10, "agent"));
            before(&project, "A", "w", "Write", json!({ "file_path": project.root().join("own") }));
            project.write("own", "own\n");
            after(&project, "A", "w", "Write");
            set(&project, 20, "person, between two calls");
            calls("a2", &|| set(&project, 30, "agent"));
            set(&project, 40, "person, after the last call");
            stop(&project, "A");
            set(&project, 50, "person, after the end");
            let whole = read(&project, "f");
            let report = undo(&project, "A");
            let persons = [
                (3, "person, before the first call"),
                (20, "person, between two calls"),
                (40, "person, after the last call"),
                (50, "person, after the end"),
            ];
            let when = format!("{tool}, idle: {idle}");
            assert_eq!(read(&project, "f"), lines(&persons), "{when}: {report}");
            assert_eq!((has(&project, "own"), &report["status"]), (false, &json!("rolled_back")), "{when}");
            assert_eq!((&report["files"]["skipped"], is_undone(&project, "A")), (&json!([]), true), "{when}");
            project.json("redo --yes");
            assert_eq!((read(&project, "f"), has(&project, "own")), (whole, true), "{when}");
        }
    }
}

#[test]
fn a_person_on_the_lines_of_the_agent_is_named_and_nothing_is_done_or_said_to_be_done() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    edit(&project, "A", "a1", || set(&project, 10, "agent"));
    set(&project, 10, "the person knows better");
    shell(&project, "A", "a2", || project.write("own", "own\n"));
    stop(&project, "A");
    let id = work_of(&project, "A");
    let before = ic_testkit::tree(project.root());
    let refused = project.run(&format!("undo --only {id} --yes"));
    assert_eq!((refused.code, refused.error()), (Some(1), "file_conflict".to_owned()), "{refused:?}");
    assert_eq!((ic_testkit::tree(project.root()), is_undone(&project, "A")), (before, false));
    // The rest goes, and the work is undone in part: the exit says so, and so does the record.
    let kept = project.run(&format!("undo --only {id} --keep-theirs --yes --json"));
    let report = kept.json();
    assert_eq!((kept.code, &report["status"]), (Some(4), &json!("rolled_back_in_part")), "{report}");
    assert_eq!(report["files"]["skipped"][0]["path"], "f", "{report}");
    assert_eq!((has(&project, "own"), is_undone(&project, "A")), (false, false));
    assert!(project.ok(&format!("show {id} --format text")).contains(", undone in part by "));
    assert_eq!(read(&project, "f"), lines(&[(10, "the person knows better")]));
    // The person decides, and a second try takes the rest.
    let report = project.json(&format!("undo --only {id} --force-files --yes"));
    assert_eq!((&report["status"], read(&project, "f")), (&json!("rolled_back"), lines(&[])), "{report}");
    assert!(is_undone(&project, "A"));
    // The whole file was replaced. What the person had there is kept, and the report says where.
    let safety = report["files"]["safety_checkpoint_id"].as_str().expect("a checkpoint");
    let held = project.ok(&format!("checkpoint cat {safety} f"));
    assert!(held.contains("the person knows better"), "{held}");
    project.json("redo --yes");
    let person = lines(&[(10, "the person knows better")]);
    assert_eq!((read(&project, "f"), has(&project, "own")), (person, false), "what the second took out");
    assert!(!is_undone(&project, "A"));
    project.json("redo --yes");
    assert!(has(&project, "own"), "what the first took out");
}

#[test]
fn two_agents_whose_calls_do_not_overlap_are_undone_apart_in_one_file() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    for round in 0..3 {
        shell(&project, "A", &format!("a{round}"), || set(&project, 5 + 20 * round, "A"));
        shell(&project, "B", &format!("b{round}"), || set(&project, 15 + 20 * round, "B"));
    }
    stop(&project, "A");
    stop(&project, "B");
    undo(&project, "A");
    assert_eq!(read(&project, "f"), lines(&[(15, "B"), (35, "B"), (55, "B")]));
    undo(&project, "B");
    assert_eq!(read(&project, "f"), lines(&[]));
}

#[test]
fn of_calls_that_overlap_the_one_that_names_the_path_made_it() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    before(&project, "B", "b1", "Bash", json!({ "command": "make" }));
    edit(&project, "A", "a1", || set(&project, 10, "A"));
    project.write("new/b", "b\n");
    after(&project, "B", "b1", "Bash");
    stop(&project, "A");
    stop(&project, "B");
    undo(&project, "A");
    assert_eq!((read(&project, "f"), has(&project, "new/b")), (lines(&[]), true));
    undo(&project, "B");
    assert!(!has(&project, "new"), "what was made while B alone was in a call is B's");
}

#[test]
fn what_several_calls_may_have_changed_refuses_the_whole_until_a_person_decides() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    prompt(&project, "B", "B works");
    shell(&project, "A", "a0", || project.write("own", "own\n"));
    before(&project, "B", "b1", "Bash", json!({ "command": "make" }));
    shell(&project, "A", "a1", || set(&project, 10, "of one of them"));
    after(&project, "B", "b1", "Bash");
    stop(&project, "A");
    stop(&project, "B");
    let id = work_of(&project, "A");
    let refused = project.run(&format!("undo --only {id} --yes"));
    assert_eq!((refused.code, refused.error()), (Some(1), "file_conflict".to_owned()));
    assert!(refused.stderr.contains("B works") && has(&project, "own"), "{refused:?}");
    let whole = read(&project, "f");
    for (flag, code, status, left) in
        [("--keep-theirs", 4, "rolled_back_in_part", whole.clone()), ("--force-files", 0, "rolled_back", lines(&[]))]
    {
        assert!(refused.stderr.contains(&format!("{flag} --yes")), "{refused:?}");
        let undone = project.run(&format!("undo --only {id} {flag} --yes"));
        assert_eq!((undone.code, &undone.json()["status"]), (Some(code), &json!(status)), "{undone:?}");
        assert_eq!((has(&project, "own"), is_undone(&project, "A")), (false, code == 0), "{flag}");
        assert_eq!(read(&project, "f"), left, "{flag}");
        project.run("redo --yes");
        assert_eq!((has(&project, "own"), read(&project, "f")), (true, whole.clone()), "{flag}");
    }
}

#[test]
fn a_formatter_between_calls_stays_where_it_touched_other_lines_and_is_named_where_it_did_not() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    edit(&project, "A", "a1", || set(&project, 10, "agent"));
    set(&project, 50, "formatted");
    edit(&project, "A", "a2", || set(&project, 30, "agent"));
    stop(&project, "A");
    undo(&project, "A");
    assert_eq!(read(&project, "f"), lines(&[(50, "formatted")]));
    project.json("redo --yes");
    prompt(&project, "A", "A again");
    edit(&project, "A", "a3", || set(&project, 20, "agent;"));
    set(&project, 20, "agent ;");
    stop(&project, "A");
    let refused = project.run(&format!("undo --only {} --yes", work_of(&project, "A")));
    assert_eq!((refused.code, refused.error()), (Some(1), "file_conflict".to_owned()));
    assert!(refused.stderr.contains("others changed the same lines since"), "{refused:?}");
}

/// Who commits what an agent wrote takes none of it: in the same second, by a hook after each call, between calls, in the call of another.
#[test]
fn a_commit_that_others_made_of_the_same_content_changes_nothing_about_whose_a_line_is() {
    for how in ["a person between two calls", "a hook after each call", "another agent with all files"] {
        let project = with_lines();
        prompt(&project, "A", "A works");
        prompt(&project, "B", "B works");
        set(&project, 3, "person");
        edit(&project, "A", "a1", || set(&project, 10, "agent"));
        let commit = |what: &str| drop(git(&project, &["commit", "-qam", what]));
        match how {
            "another agent with all files" => shell(&project, "B", "b1", || {
                project.write("g", "B\n");
                git(&project, &["add", "-A"]);
                commit("all of it");
            }),
            _ => commit("wip"),
        }
        edit(&project, "A", "a2", || set(&project, 20, "agent"));
        if how == "a hook after each call" {
            commit("wip 2");
        }
        shell(&project, "A", "a3", || project.write("own", "own\n"));
        stop(&project, "A");
        stop(&project, "B");
        let head = git(&project, &["rev-parse", "HEAD"]);
        let whole = read(&project, "f");
        let report = undo(&project, "A");
        assert_eq!(read(&project, "f"), lines(&[(3, "person")]), "{how}: {report}");
        assert_eq!((has(&project, "own"), git(&project, &["rev-parse", "HEAD"])), (false, head.clone()), "{how}");
        let commits = report["own_commits"].as_array().expect("the commits that have it");
        assert!(commits.iter().any(|one| one["sha"] == head.as_str()), "{how}: {report}");
        if how == "a hook after each call" {
            let subjects: Vec<&Value> = commits.iter().map(|one| &one["subject"]).collect();
            assert_eq!(subjects, ["wip 2", "wip"], "git can revert the newest first: {report}");
        }
        assert_eq!(has(&project, "g"), how == "another agent with all files", "{how}");
        project.json("redo --yes");
        assert_eq!(read(&project, "f"), whole, "{how}");
    }
}

#[test]
fn a_commit_before_the_first_call_says_nothing_of_what_the_calls_did() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    set(&project, 3, "person");
    git(&project, &["commit", "-qam", "person"]);
    set(&project, 20, "person, after the commit");
    edit(&project, "A", "a1", || set(&project, 30, "agent"));
    stop(&project, "A");
    let whole = read(&project, "f");
    let report = undo(&project, "A");
    assert_eq!(read(&project, "f"), lines(&[(3, "person"), (20, "person, after the commit")]), "{report}");
    project.json("redo --yes");
    assert_eq!(read(&project, "f"), whole);
}

#[test]
fn what_a_pull_brought_in_a_call_is_of_no_agent_and_its_own_edit_of_the_file_is() {
    let project = with_lines();
    git(&project, &["checkout", "-qb", "colleague"]);
    set(&project, 50, "colleague");
    project.write("c", "colleague\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "of a colleague"]);
    git(&project, &["checkout", "-q", "-"]);
    prompt(&project, "A", "A works");
    shell(&project, "A", "a1", || drop(git(&project, &["merge", "-q", "--ff-only", "colleague"])));
    edit(&project, "A", "a2", || set(&project, 10, "agent"));
    stop(&project, "A");
    let report = undo(&project, "A");
    assert_eq!(read(&project, "f"), lines(&[(50, "colleague")]), "{report}");
    assert!(has(&project, "c"), "{report}");
}

#[test]
fn a_name_decides_where_several_work_that_tell_of_no_calls() {
    let project = in_git();
    let run = project.ok("run create --goal g --phases a,b").trim().to_owned();
    let begun = |name: &str| {
        let id = project.ok(&format!("dispatch create {run} --name {name}")).trim().to_owned();
        project.ok(&format!("dispatch start {id}"));
        id
    };
    let names = ["form", "parser", "api"];
    let ids = names.map(begun);
    for (name, id) in names.iter().zip(&ids) {
        project.write(format!("{name}.c"), name);
        git(&project, &["add", &format!("{name}.c")]);
        git(&project, &["commit", "-qm", name]);
        let commit = git(&project, &["rev-parse", "HEAD"]);
        project.ok(&format!("dispatch record {id} --commit {commit} --file {name}.c"));
    }
    for id in &ids {
        project.ok(&format!("dispatch complete {id}"));
    }
    let plan = project.json(&format!("undo --only {} --dry-run", ids[1]));
    let reverts: Vec<&Value> = plan["own_commits"].as_array().expect("commits").iter().collect();
    assert_eq!((reverts.len(), &reverts[0]["subject"]), (1, &json!("parser")), "{plan}");
    project.json(&format!("undo --only {} --yes", ids[1]));
    assert_eq!(names.map(|name| has(&project, &format!("{name}.c"))), [true, false, true]);
}

#[test]
fn a_plain_undo_takes_its_prompt_out_and_leaves_what_others_did() {
    for how in ["a file", "a commit", "another agent"] {
        let project = with_lines();
        prompt(&project, "A", "A works");
        if how == "another agent" {
            prompt(&project, "B", "B works");
        }
        edit(&project, "A", "a1", || set(&project, 10, "agent"));
        if how == "another agent" {
            shell(&project, "B", "b1", || set(&project, 40, "B"));
        }
        stop(&project, "A");
        match how {
            "a file" => project.write("mynote.txt", "mine\n"),
            "a commit" => {
                project.write("mynote.txt", "mine\n");
                git(&project, &["add", "-A"]);
                git(&project, &["commit", "-qm", "by hand"]);
            }
            _ => stop(&project, "B"),
        }
        let head = git(&project, &["rev-parse", "HEAD"]);
        let text = project.ok(&format!("undo prompt:{} --dry-run --format text", work_of(&project, "A")));
        assert!(!text.contains("--force") && !text.contains("mynote.txt"), "{how}: {text}");
        project.json(&format!("undo prompt:{} --yes", work_of(&project, "A")));
        assert_eq!(git(&project, &["rev-parse", "HEAD"]), head, "{how}: commits of others stay");
        let left: &[(usize, &str)] = if how == "another agent" { &[(40, "B")] } else { &[] };
        assert_eq!((read(&project, "f"), has(&project, "mynote.txt")), (lines(left), how != "another agent"));
    }
}

#[test]
fn the_log_counts_for_a_subagent_what_its_own_calls_wrote() {
    let project = in_git();
    prompt(&project, "A", "A works");
    let by = |event: &str, id: &str, command: &str| {
        let mut said = call("A", event, id, "Bash", json!({ "command": command }));
        said.payload["agent_id"] = json!("s1");
        said.payload["agent_type"] = json!("helper");
        say(&project, &said)
    };
    by("PreToolUse", "s0", "ls");
    by("PostToolUse", "s0", "ls");
    shell(&project, "A", "a1", || project.write("main.txt", "main\n"));
    before(&project, "A", "a2", "Bash", json!({ "command": "sleep 3" }));
    by("PreToolUse", "s1", "echo sub > sub.txt");
    project.write("sub.txt", "sub\n");
    by("PostToolUse", "s1", "echo sub > sub.txt");
    after(&project, "A", "a2", "Bash");
    stop(&project, "A");
    let log = project.json("log");
    let all = log.as_array().expect("a list");
    let created = |kind: &str| {
        let one = all.iter().find(|one| one["kind"] == kind).expect("an entry");
        one["file_counts"]["created"].clone()
    };
    assert_eq!((created("dispatch"), created("prompt")), (json!(1), json!(2)), "{log}");
}

#[test]
fn what_a_decision_replaces_of_others_is_named_with_the_commands_that_bring_it_back() {
    for alone in [true, false] {
        let project = with_lines();
        prompt(&project, "A", "A works");
        edit(&project, "A", "a1", || set(&project, 10, "agent"));
        stop(&project, "A");
        set(&project, 10, "person");
        set(&project, 30, "person");
        let persons = read(&project, "f");
        let point = if alone { format!("--only {}", work_of(&project, "A")) } else { String::new() };
        let undone = project.run(&format!("undo {point} --force-files --yes --format text"));
        assert_eq!((undone.code, read(&project, "f")), (Some(0), lines(&[(30, "person")])), "{undone:?}");
        assert!(undone.stdout.contains("ic redo brings it back"), "{undone:?}");
        let command = undone.stdout.split("ic checkpoint restore ").nth(1).expect("a command");
        let command = command.lines().next().expect("a line");
        project.ok(&format!("checkpoint restore {command}"));
        assert_eq!(read(&project, "f"), persons, "{command}");
    }
}

#[test]
fn a_directory_that_undone_work_made_goes_with_the_last_file_in_it() {
    for by_person in [false, true] {
        let project = with_lines();
        if by_person {
            std::fs::create_dir_all(project.root().join("d/e")).expect("a directory");
        }
        for (session, file) in [("A", "d/e/x"), ("B", "d/e/y")] {
            prompt(&project, session, session);
            shell(&project, session, session, || project.write(file, "1\n"));
            stop(&project, session);
        }
        let tree = || ic_testkit::tree(project.root());
        let whole = tree();
        for session in ["A", "B"] {
            project.json(&format!("undo --only {} --yes", work_of(&project, session)));
        }
        let left = (has(&project, "d/e"), has(&project, "d"));
        assert_eq!(left, (by_person, by_person), "an empty directory is the person's alone");
        project.json("redo --yes");
        project.json("redo --yes");
        assert_eq!(tree(), whole, "both ways");
    }
}

#[test]
fn a_plain_undo_leaves_and_names_what_changed_between_calls() {
    let project = with_lines();
    prompt(&project, "A", "A works");
    edit(&project, "A", "a1", || set(&project, 10, "agent"));
    set(&project, 20, "person");
    project.write("note", "person\n");
    shell(&project, "A", "a2", || project.write("own", "own\n"));
    stop(&project, "A");
    let whole = read(&project, "f");
    let plan = project.json("undo --dry-run");
    let report = project.json("undo --yes");
    for said in [&plan, &report] {
        let skipped = said["files"]["skipped"].to_string();
        assert!(skipped.contains("note") && skipped.contains("between the tool calls"), "{said}");
    }
    assert_eq!((read(&project, "f"), has(&project, "note")), (lines(&[(20, "person")]), true));
    assert!(!has(&project, "own"));
    project.json("redo --yes");
    assert_eq!((read(&project, "f"), read(&project, "note")), (whole, "person\n".to_owned()));

    let alone = with_lines();
    prompt(&alone, "A", "A works");
    edit(&alone, "A", "a1", || set(&alone, 10, "agent"));
    stop(&alone, "A");
    assert_eq!(alone.json("undo --yes")["files"]["warnings"], Value::Null, "nothing is to be named");
}
