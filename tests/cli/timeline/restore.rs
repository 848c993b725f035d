//! `ic restore`: paths as they were before a piece of work, no matter who changed them.

use super::{short, writes};
use crate::agents::in_git;
use crate::blame::read;
use crate::support::{Project, assert_shape};

/// Two prompts of two sessions change one file, and a person changes it after them.
fn changed_by_three() -> (Project, [String; 2]) {
    let project = in_git();
    project.write("f.txt", "first\n");
    project.write("g.txt", "first\n");
    let one = writes(&project, "A", "one", &[("f.txt", "of A\n"), ("a.txt", "of A\n")]);
    let two = writes(&project, "B", "two", &[("f.txt", "of B\n"), ("b.txt", "of B\n")]);
    project.write("f.txt", "by hand\n");
    project.write("g.txt", "by hand\n");
    (project, [one, two])
}

#[test]
fn file_comes_back_from_before_the_newest_work_that_changed_it() {
    let (project, _) = changed_by_three();
    let before = ic_testkit::tree(project.root());
    let plan = project.json("restore f.txt --dry-run");
    assert_shape("restore", &plan);
    assert_eq!(ic_testkit::tree(project.root()), before, "a dry run changes nothing");
    let done = project.json("restore f.txt --yes");
    assert_eq!((done["changes"].clone(), read(&project, "f.txt")), (plan["changes"].clone(), "of A\n".to_owned()));
    assert_eq!((read(&project, "g.txt").as_str(), read(&project, "b.txt").as_str()), ("by hand\n", "of B\n"));
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before, "what stood there was saved");
}

#[test]
fn paths_come_back_from_before_the_work_that_is_named() {
    let (project, works) = changed_by_three();
    let before = ic_testkit::tree(project.root());
    project.json(&format!("restore --before {} f.txt a.txt --yes", short(&works[0])));
    assert_eq!((read(&project, "f.txt").as_str(), project.root().join("a.txt").exists()), ("first\n", false));
    assert_eq!((read(&project, "g.txt").as_str(), read(&project, "b.txt").as_str()), ("by hand\n", "of B\n"));
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
    project.json("restore --before @~1 . --yes");
    assert_eq!((read(&project, "f.txt").as_str(), read(&project, "g.txt").as_str()), ("first\n", "first\n"));
    assert!(!project.root().join("a.txt").exists() && !project.root().join("b.txt").exists());
    project.json("redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), before);
}

#[test]
fn path_that_no_work_changed_is_refused() {
    let (project, works) = changed_by_three();
    assert_eq!(project.refused("restore g.txt --yes"), (3, "point_not_found".to_owned()));
    let outcome = project.run("restore a.txt b.txt --yes");
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(3), "usage"));
    for work in &works {
        assert!(outcome.stderr.contains(short(work)), "{outcome:?}");
    }
    assert_eq!(project.run("restore").code, Some(3));
    assert_eq!(project.refused("restore f.txt"), (3, "confirmation_required".to_owned()));
}

#[test]
fn undone_work_is_no_work_to_go_back_before() {
    let (project, works) = changed_by_three();
    project.write("f.txt", "of B\n");
    project.json(&format!("undo --only {} --yes", works[1]));
    assert_eq!(read(&project, "f.txt"), "of A\n");
    project.json("restore f.txt --yes");
    assert_eq!(read(&project, "f.txt"), "first\n");
}

#[test]
fn work_that_left_a_file_as_it_met_it_is_no_change_of_it() {
    let project = in_git();
    project.write("f.txt", "first\n");
    let one = writes(&project, "A", "one", &[("f.txt", "of A\n")]);
    for n in 0..20 {
        writes(&project, "A", &format!("other {n}"), &[("g.txt", &format!("{n}\n"))]);
    }
    let listed = project.run("log --json -- f.txt").json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["reference"], format!("prompt:{}", short(&one)));
    assert_eq!(project.run("log --json -- .").json().as_array().map(Vec::len), Some(20), "a page of all work");
    project.json("restore f.txt --yes");
    assert_eq!(read(&project, "f.txt"), "first\n");
}
