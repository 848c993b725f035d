//! `ic diff`: what an undo would take out, and what changed since.

use serde_json::json;

use super::{begins, changes, short, writes};
use crate::agents::in_git;
use crate::blame::{after, before, read, stop};
use crate::support::assert_shape;

#[test]
fn without_a_reference_it_is_what_an_undo_takes_out() {
    let project = in_git();
    project.write("f.txt", "1\n2\n3\n");
    writes(&project, "A", "one", &[("f.txt", "1\ntwo\n3\n"), ("new/deep.txt", "new\n")]);
    let diff = project.json("diff");
    assert_shape("checkpoint-diff", &diff);
    assert_eq!(changes(&diff), ["modified f.txt", "added new/deep.txt"]);
    let patch = project.ok("diff");
    assert!(patch.contains("-2\n+two\n") && patch.contains("+new"), "{patch}");
    let plan = project.json("undo --dry-run");
    assert_eq!(plan["files"]["changes"].as_array().map(Vec::len), Some(3), "the directory too: {plan}");
    project.json("undo --yes");
    assert_eq!((read(&project, "f.txt").as_str(), project.root().join("new").exists()), ("1\n2\n3\n", false));
    assert_eq!(project.refused("diff").1, "nothing_to_undo");
}

#[test]
fn since_a_reference_it_has_what_anybody_changed() {
    let project = in_git();
    let one = writes(&project, "A", "one", &[("a.txt", "1\n")]);
    writes(&project, "B", "two", &[("b.txt", "2\n")]);
    project.write("mine.txt", "mine\n");
    assert_eq!(changes(&project.json("diff @")), ["added b.txt", "added mine.txt"]);
    let all = ["added a.txt", "added b.txt", "added mine.txt"];
    assert_eq!(changes(&project.json(&format!("diff {}", short(&one)))), all);
    assert_eq!(changes(&project.json("diff @~1 @")), ["added a.txt"]);
    let stat = project.ok("diff @~1 --stat -- b.txt");
    assert!(stat.contains(" b.txt | +1 -0") && !stat.contains("a.txt"), "{stat}");
    assert_eq!(project.ok("diff @ --name-status"), "A\tb.txt\nA\tmine.txt");
    // The older verb shares the forms, and in a pipe prints JSON unless one is named.
    for words in ["@ -p", "@~1 @ -p", "@ --stat"] {
        assert_eq!(project.ok(&format!("diff {words}")), project.ok(&format!("checkpoint diff {words}")));
    }
}

#[test]
fn refusal_of_the_undo_is_told_beside_the_diff() {
    let project = in_git();
    project.write("f.txt", "1\n2\n3\n");
    begins(&project, "A", "one");
    before(&project, "A", "a", "Edit", json!({ "file_path": "f.txt" }));
    project.write("f.txt", "1\ntwo\n3\n");
    after(&project, "A", "a", "Edit");
    stop(&project, "A");
    project.write("f.txt", "1\nTWO\n3\n");
    let outcome = project.run("diff");
    let preview = project.run("undo --dry-run --json");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(
        outcome.stderr.contains("the undo would be refused"),
        preview.code != Some(0),
        "{outcome:?} {preview:?}"
    );
}

#[test]
fn a_text_that_is_too_long_to_be_compared_has_no_numbers() {
    let project = in_git();
    project.write(".ic.yaml", "rollback: {checkpointing: {max-file-size: 50MB}}\n");
    let line = "a line of thirty-two characters\n";
    project.write("long.txt", &line.repeat(540_000));
    project.ok("checkpoint create --name long");
    project.write("long.txt", &(line.repeat(540_000) + "one more\n"));
    let stat = project.ok("checkpoint diff checkpoint:long --stat");
    assert!(stat.contains("long.txt | too large to be compared") && stat.contains("0 lines removed"), "{stat}");
}
