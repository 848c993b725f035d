//! Conflicts of an undo of prompts at a terminal: each path is asked about before anything is done, and the answers are kept.

use ic_testkit::Terminal;
use serde_json::{Value, json};

use crate::agents::{Said, in_git, say};
use crate::attribution::{has, lines, set, shell, with_lines};
use crate::blame::{read, stop};
use crate::own_edits::stopped;
use crate::support::Project;

/// A prompt, and a person on its lines in two files and on other lines of them.
fn story() -> Project {
    let project = with_lines();
    project.write("g", &lines(&[]));
    say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("edit", "edit"));
    shell(&project, "A", "edit", || {
        set(&project, 10, "agent");
        set(&project, 50, "agent");
        project.write("g", &lines(&[(20, "agent"), (50, "agent")]));
        project.write("own", "own\n");
    });
    stop(&project, "A");
    set(&project, 10, "person");
    set(&project, 30, "person");
    project.write("g", &lines(&[(20, "person"), (40, "person"), (50, "agent")]));
    project
}

/// The words that undo the prompt with this text.
fn words(project: &Project, text: &str) -> [String; 2] {
    let log = project.json("log --all");
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == text).cloned();
    let reference = found.unwrap_or_else(|| panic!("{log}"))["reference"].clone();
    ["undo".to_owned(), reference.as_str().expect("a reference").to_owned()]
}

/// Both files, where the lines in conflict are taken, or left to the person.
fn both(takes_f: bool, takes_g: bool) -> [String; 2] {
    let with = |takes: bool, at: usize, other: usize| {
        let all = [(other, "person"), (at, "person")];
        lines(if takes { &all[..1] } else { &all[..] })
    };
    [with(takes_f, 10, 30), with(takes_g, 20, 40)]
}

fn files(project: &Project) -> [String; 2] {
    [read(project, "f"), read(project, "g")]
}

#[test]
fn each_path_in_conflict_is_asked_about_before_anything_is_done() {
    for (keys, code, taken) in [
        ("l\nt\n", 4, Some((false, true))),
        ("t\nl\n", 4, Some((true, false))),
        ("d\nt\nd\nt\n", 0, Some((true, true))),
        ("T\n", 0, Some((true, true))),
        ("L\n", 4, Some((false, false))),
        ("s\n", 1, None),
        ("t\ns\n", 1, None),
        ("what\n\ns\n", 1, None),
    ] {
        let project = story();
        let before = ic_testkit::tree(project.root());
        let words = words(&project, "edit");
        let call = project.command(words.iter().map(String::as_str));
        let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
        terminal.sees("the same for all 2 [L] or [T]");
        assert_eq!(ic_testkit::tree(project.root()), before, "nothing is done yet");
        terminal.types(keys);
        if taken.is_some() {
            terminal.sees("Roll back?");
            assert_eq!(ic_testkit::tree(project.root()), before, "nothing is done yet");
            terminal.types("y\n");
        }
        let (ended, shown) = terminal.ends();
        assert_eq!(ended, Some(code), "{keys:?}: {shown}");
        assert!(shown.contains("leave what others changed [l], take this work out anyway [t]"), "{keys:?}: {shown}");
        let Some((takes_f, takes_g)) = taken else {
            assert_eq!(ic_testkit::tree(project.root()), before, "{keys:?}: {shown}");
            continue;
        };
        assert_eq!(files(&project), both(takes_f, takes_g), "{keys:?}: {shown}");
        assert!(!has(&project, "own"), "{keys:?}");
        assert_eq!(shown.contains("+person") && shown.contains("-10\n"), keys.contains('d'), "{keys:?}: {shown}");
        project.json("redo --yes");
        assert_eq!(ic_testkit::tree(project.root()), before, "{keys:?}");
    }
}

#[test]
fn a_path_that_may_be_a_persons_is_taken_alone() {
    let project = in_git();
    stopped(&project, "Bash", &json!({ "command": "echo its > named.txt; make" }));
    say(&project, &Said::new("claude-code", "A", "SessionEnd"));
    let before = ic_testkit::tree(project.root());
    let [_, reference] = words(&project, "do it");
    let call = project.command(["undo", reference.trim_start_matches("prompt:"), "--only"]);
    let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
    terminal.sees("the same for all 3 [L] or [T]");
    terminal.types("t\nl\nd\nt\n");
    terminal.sees("Roll back?");
    terminal.types("y\n");
    let (code, shown) = terminal.ends();
    assert!(shown.contains("it is mine, leave it [l], it is the agent's, take it out [t]"), "{shown}");
    // What a person says is theirs is nothing of the work that stays.
    assert!(code == Some(0) && shown.contains("+its or mine"), "{code:?}: {shown}");
    let there = || ["notes.txt", "unnamed.txt", "named.txt"].map(|file| has(&project, file));
    assert_eq!((there(), read(&project, "notes.txt")), ([true, false, false], "mine\n".to_owned()), "{shown}");
    let id = reference.trim_start_matches("prompt:");
    let is_undone = || {
        let log = project.json("log --all");
        log.as_array().expect("a list").iter().any(|one| one["kind"] == "prompt" && one["undone"] == true)
    };
    assert!(is_undone());
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    // The same without a terminal, by names.
    let mistyped = project.run(&format!("undo {id} --only --force-files --keep-theirs=note.txt --yes"));
    assert_eq!((mistyped.code, mistyped.error()), (Some(3), "usage".to_owned()), "{mistyped:?}");
    let both = project.run(&format!("undo {id} --only --force-files --keep-theirs --yes"));
    assert_eq!((both.code, both.error()), (Some(3), "usage".to_owned()), "{both:?}");
    let some = project.run(&format!("undo {id} --only --keep-theirs=notes.txt --yes"));
    assert_eq!(some.error(), "file_conflict", "{some:?}");
    assert_eq!(ic_testkit::tree(project.root()), before, "nothing was changed");
    project.json(&format!("undo {id} --only --force-files --keep-theirs=notes.txt --yes"));
    assert_eq!((there(), read(&project, "notes.txt")), ([true, false, false], "mine\n".to_owned()));
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    // All of it is a person's: then nothing of the work is there.
    let refused = project.run(&format!("undo {id} --only --yes"));
    let keep = "--keep-theirs=named.txt --keep-theirs=notes.txt --keep-theirs=unnamed.txt --yes";
    assert!(refused.stderr.contains(keep), "{refused:?}");
    project.json(&format!("undo {id} --only {keep}"));
    assert_eq!(ic_testkit::tree(project.root()), before);
    assert!(is_undone());
}

#[test]
fn later_undos_and_redos_know_the_answers() {
    let project = story();
    let words = words(&project, "edit");
    let before = files(&project);
    let call = project.command(words.iter().map(String::as_str));
    let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
    terminal.sees("the same for all 2 [L] or [T]");
    terminal.types("l\nt\ny\n");
    terminal.ends();
    say(&project, &Said::new("claude-code", "B", "UserPromptSubmit").prompt("next", "next"));
    let with = |at: usize| files(&project).map(|text| text.replace(&format!("\n{at}\n"), &format!("\nline {at}\n")));
    shell(&project, "B", "next", || {
        let [f, g] = with(55);
        project.write("f", &f);
        project.write("g", &g);
    });
    stop(&project, "B");
    let [f, g] = with(58);
    project.write("f", &f);
    project.write("g", &g);
    project.json("undo --yes");
    assert_eq!(files(&project), both(false, true).map(|text| text.replace("\n58\n", "\nline 58\n")));
    project.json("redo --yes");
    project.json("redo --yes");
    let wanted = before.map(|text| text.replace("\n55\n", "\nline 55\n").replace("\n58\n", "\nline 58\n"));
    assert_eq!(files(&project), wanted);
}

#[test]
fn an_undo_that_is_killed_after_the_answers_ends_by_them() {
    let (mut resumed, mut aborted) = (0, 0);
    for n in (40..).step_by(47) {
        let project = story();
        let before = ic_testkit::tree(project.root());
        let words = words(&project, "edit");
        let mut call = project.command(words.iter().map(String::as_str));
        call.env("IC_TEST_ABORT_BEFORE", n.to_string());
        let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
        terminal.types("l\nt\ny\n");
        let (_, shown) = terminal.ends();
        let open = project.json("rollback list");
        let newest = open.as_array().expect("a list").first().cloned().unwrap_or(Value::Null);
        match (newest["status"].as_str(), newest["id"].as_str()) {
            (Some("in_progress"), Some(id)) if (resumed + aborted) % 2 == 0 => {
                let ended = project.run(&format!("rollback resume {id} --yes"));
                assert_eq!(files(&project), both(false, true), "{n}: {ended:?}");
                project.json("redo --yes");
                assert_eq!(ic_testkit::tree(project.root()), before, "{n}");
                resumed += 1;
            }
            (Some("in_progress"), Some(id)) => {
                project.json(&format!("rollback abort {id} --yes"));
                assert_eq!(ic_testkit::tree(project.root()), before, "{n}");
                aborted += 1;
            }
            (Some(_), _) if shown.contains("to bring it back") => break,
            _ => {}
        }
    }
    assert!(resumed > 0 && aborted > 0, "{resumed} resumed, {aborted} aborted");
}

/// What a person renamed or changed under a new name stays, and is named. It is theirs once they say so; until then a second undo has nothing
/// to do, and records nothing.
#[test]
fn what_stays_for_good_is_a_persons_once_they_say_so() {
    type Deed = fn(&Project);
    let cases: [(Deed, Deed, &str, &str); 2] = [
        (
            |project| project.write("new", "agent\n"),
            |project| std::fs::rename(project.root().join("new"), project.root().join("mine")).expect("a rename"),
            "new",
            "mine",
        ),
        (
            |project| drop(ic_testkit::git_in(project.root(), &["mv", "d", "e"])),
            |project| project.write("e/one", "one\nmine\n"),
            "e/one",
            "e/one",
        ),
    ];
    for (agents, persons, left, file) in cases {
        let project = with_lines();
        project.write("d/one", "one\n");
        project.write("d/two", "two\n");
        ic_testkit::git_in(project.root(), &["add", "-A"]);
        ic_testkit::git_in(project.root(), &["commit", "-qm", "d"]);
        say(&project, &Said::new("claude-code", "A", "UserPromptSubmit").prompt("edit", "edit"));
        shell(&project, "A", "edit", || {
            set(&project, 10, "agent");
            agents(&project);
        });
        stop(&project, "A");
        persons(&project);
        let [_, id] = words(&project, "edit");
        let undo = format!("undo --only {id} --yes");
        assert_eq!(project.run(&undo).code, Some(4), "{left}");
        let (kept, before) = (read(&project, file), ic_testkit::tree(project.root()));
        let entries = || project.json("log --all").as_array().map(Vec::len);
        let known = entries();
        let refused = project.run(&undo);
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_undo"), "{refused:?}");
        assert_eq!((entries(), ic_testkit::tree(project.root())), (known, before), "{left}: nothing happened");
        // The way on that it names.
        let way = format!("{undo} --keep-theirs={left}");
        assert!(refused.stderr.contains(&format!("--keep-theirs={left} --yes")), "{refused:?}");
        project.json(&way);
        assert_eq!(read(&project, file), kept, "{left}");
        let log = project.json("log --all");
        let one = log.as_array().expect("a list").iter().find(|one| one["title"] == "edit").expect("the prompt");
        assert_eq!((&one["undone"], &one["undone_in_part"]), (&json!(true), &Value::Null), "{one}");
    }
}

/// A command of a hint has what was decided with the call, so that it can be typed as it stands.
#[test]
fn the_hint_about_a_path_keeps_what_was_decided_about_another() {
    let project = story();
    let [_, id] = words(&project, "edit");
    let refused = project.run(&format!("undo --only {id} --keep-theirs=f --yes"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let way = format!("ic undo --only {} --keep-theirs=f --force-files --yes", id.trim_start_matches("prompt:"));
    assert!(refused.stderr.contains(&way), "{refused:?}");
    project.run(way.trim_start_matches("ic "));
    assert_eq!(files(&project), both(false, true));
}
