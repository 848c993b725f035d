//! `ic undo` again and again, over sessions and their resumes: each undoes one more prompt, and `ic redo` restores them in turn.

use crate::agents::{Said, in_call, in_git, say};
use crate::attribution::{lines, set, with_lines};
use crate::blame::read;
use crate::support::Project;

/// A prompt of one session, whose client is called for it alone.
fn prompt(project: &Project, session: &str, text: &str, deed: impl Fn()) {
    say(project, &Said::new("claude-code", session, "SessionStart"));
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(text, text));
    in_call(project, "claude-code", session, deed);
    say(project, &Said::new("claude-code", session, "Stop"));
    say(project, &Said::new("claude-code", session, "SessionEnd"));
}

#[test]
fn what_an_undo_restored_is_in_the_way_of_no_further_undo() {
    for resumed in [true, false] {
        for last in ["rename", "delete", "edit", "replace"] {
            let project = in_git();
            let session = |n: usize| if resumed { "s".to_owned() } else { format!("s{n}") };
            let at = |file: &str| project.root().join(file);
            let tree = || ic_testkit::tree(project.root());
            let mut trees = vec![tree()];
            prompt(&project, &session(1), "one", || project.write("login.html", "form\n"));
            trees.push(tree());
            prompt(&project, &session(2), "two", || project.write("other.txt", "o\n"));
            trees.push(tree());
            prompt(&project, &session(3), "three", || match last {
                "rename" => std::fs::rename(at("login.html"), at("signin.html")).expect("a rename"),
                "delete" => std::fs::remove_file(at("login.html")).expect("a file"),
                "edit" => project.write("login.html", "form\nand more\n"),
                _ => {
                    std::fs::remove_file(at("login.html")).expect("a file");
                    project.write("login.html/index", "form\n");
                }
            });
            trees.push(tree());
            for n in (0..3).rev() {
                project.json("undo --yes");
                assert_eq!(tree(), trees[n], "{last}, resumed: {resumed}: to before prompt {}", n + 1);
            }
            for (n, there) in trees.iter().enumerate().skip(1) {
                project.json("redo --yes");
                assert_eq!(&tree(), there, "{last}, resumed: {resumed}: prompt {n} is back");
            }
            // And once more, for what was redone is no undo.
            for n in (0..3).rev() {
                project.json("undo --yes");
                assert_eq!(tree(), trees[n], "{last}, resumed: {resumed}: again to before prompt {}", n + 1);
            }
        }
    }
}

#[test]
fn undo_redo_and_the_undo_of_one_dispatch_follow_each_other_in_any_order() {
    let project = in_git();
    let place = project.root().to_str().expect("text").to_owned();
    for n in 1..=2 {
        prompt(&project, "s", &n.to_string(), || project.write(format!("f{n}"), "x\n"));
    }
    let log = project.json("log");
    let first = log.as_array().and_then(|all| all.last()).map(|one| one["reference"].clone()).expect("an entry");
    let alone = format!("undo --only {} --yes", first.as_str().expect("text"));
    let there = || ["f1", "f2"].map(|name| project.root().join(name).exists());
    for (line, left) in [
        ("undo --yes", [true, false]),
        ("redo --yes", [true, true]),
        (&alone, [false, true]),
        ("redo --yes", [true, true]),
        ("undo --yes", [true, false]),
        (&alone, [false, false]),
        ("redo --yes", [true, false]),
        ("redo --yes", [true, true]),
        (&alone, [false, true]),
        // What was undone stays so, and each redo brings back what the undo before it took.
        ("undo --yes", [false, false]),
        ("redo --yes", [false, true]),
        ("redo --yes", [true, true]),
    ] {
        project.ok(&format!("-C {place} {line}"));
        assert_eq!(there(), left, "after {line}");
    }
    project.cli.assert_sound("after all of it");
}

#[test]
fn each_undo_in_a_row_is_in_the_log() {
    let project = in_git();
    for n in 1..=4 {
        prompt(&project, "s", &n.to_string(), || project.write(format!("f{n}"), "x\n"));
    }
    let logged = || {
        let log = project.json("log");
        let all = log.as_array().expect("a list").clone();
        let rollbacks: Vec<String> =
            all.iter().filter(|one| one["kind"] == "rollback").map(|one| one["id"].to_string()).collect();
        rollbacks
    };
    for n in 1..=3 {
        project.json("undo --yes");
        assert_eq!(logged().len(), n, "after {n} undos: {}", project.json("log"));
    }
    let text = project.ok("log --format text");
    // The newest first, each with the work that it took out.
    let undos: Vec<&str> = text.lines().filter(|line| line.contains("  undo  ")).collect();
    assert!(undos.len() == 3 && undos.iter().zip(["2", "3", "4"]).all(|(undo, of)| undo.ends_with(of)), "{text}");
    project.json("redo --yes");
    assert_eq!(logged().len(), 2, "one that was redone stands no more");
}

/// Two prompts edit the same file, far apart; the first one is undone alone, then the last work.
#[test]
fn what_was_undone_alone_stays_undone_when_the_last_work_is_undone() {
    const LINES: &str = "a1\na2\na3\na4\na5\na6\na7\na8\na9\n";
    for sessions in [["s1", "s2"], ["s", "s"]] {
        let project = in_git();
        project.write("a.txt", LINES);
        ic_testkit::git_in(project.root(), &["add", "a.txt"]);
        ic_testkit::git_in(project.root(), &["commit", "-qm", "a"]);
        let text = || std::fs::read_to_string(project.root().join("a.txt")).expect("the file");
        let change = |from: &str, to: &str| project.write("a.txt", &text().replace(from, to));
        prompt(&project, sessions[0], "one", || change("a1", "A1"));
        prompt(&project, sessions[1], "two", || change("a9", "A9"));
        let both = LINES.replace("a1", "A1").replace("a9", "A9");
        let second = LINES.replace("a9", "A9");
        let entry = |title: &str| {
            let log = project.json("log");
            let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title).cloned();
            found.unwrap_or_else(|| {
                let log = project.json("log --all");
                let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title);
                found.unwrap_or_else(|| panic!("{title} is in {log}")).clone()
            })
        };
        let id = |title: &str| {
            let before = entry(title)["reference"].as_str().expect("text").to_owned();
            before.split_once(':').expect("a kind").1.to_owned()
        };
        let (one, two) = (id("one"), id("two"));
        let is_undone = |id: &str| !project.json(&format!("dispatch show {id}"))["rolled_back_by"].is_null();
        project.json(&format!("undo --only {one} --yes"));
        assert_eq!(text(), second, "{sessions:?}");
        project.json("undo --yes");
        assert_eq!((text().as_str(), is_undone(&one), is_undone(&two)), (LINES, true, true), "{sessions:?}");
        project.json("redo --yes");
        assert_eq!((text(), is_undone(&one), is_undone(&two)), (second, true, false), "{sessions:?}");
        project.json("redo --yes");
        assert_eq!((text(), is_undone(&one), is_undone(&two)), (both, false, false), "{sessions:?}");
        project.cli.assert_sound("after all of it");
    }
}

#[test]
fn work_that_came_back_after_others_is_asked_about_where_later_work_met_its_lines() {
    let project = with_lines();
    let change = |text: &str, at: usize| prompt(&project, "s", text, || set(&project, at, text));
    prompt(&project, "s", "one", || {
        set(&project, 10, "one");
        set(&project, 50, "one");
    });
    project.json("undo --yes");
    change("two", 30);
    project.json("redo --yes");
    change("three", 10);
    let one = work_named(&project, "one");
    let outcome = project.run(&format!("undo {one} --only --yes"));
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "file_conflict"), "{outcome:?}");
    assert_eq!(read(&project, "f"), lines(&[(10, "three"), (30, "two"), (50, "one")]));
    let left = project.run(&format!("undo {one} --only --keep-theirs --yes"));
    assert_eq!((left.code, read(&project, "f")), (Some(4), lines(&[(10, "three"), (30, "two")])), "{left:?}");
    project.json("redo --yes");
    project.json(&format!("undo {one} --only --force-files --yes"));
    assert_eq!(read(&project, "f"), lines(&[(30, "two")]));
}

fn work_named(project: &Project, title: &str) -> String {
    let log = project.json("log --all");
    let found = log.as_array().expect("a list").iter().find(|one| one["title"] == title).cloned();
    let reference = found.unwrap_or_else(|| panic!("{log}"))["reference"].clone();
    reference.as_str().and_then(|text| text.split(':').nth(1)).expect("a reference").to_owned()
}
