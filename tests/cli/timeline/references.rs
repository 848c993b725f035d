//! References without a prefix, and `@`.

use super::{changes, short, writes};
use crate::agents::in_git;
use crate::blame::read;
use crate::support::Project;

/// Two sessions that take turns in one tree.
fn in_turn() -> (Project, [String; 3]) {
    let project = in_git();
    let one = writes(&project, "A", "one", &[("a.txt", "1\n")]);
    let two = writes(&project, "B", "two", &[("b.txt", "2\n")]);
    let three = writes(&project, "A", "three", &[("a.txt", "3\n"), ("c.txt", "3\n")]);
    (project, [one, two, three])
}

/// What differs from a point to the tree.
fn since(project: &Project, reference: &str) -> Vec<String> {
    changes(&project.json(&format!("checkpoint diff {reference}")))
}

#[test]
fn at_names_the_newest_work_of_all_sessions() {
    let (project, works) = in_turn();
    let expected = [
        ("@", 2, vec!["modified a.txt", "added c.txt"]),
        ("@~1", 1, vec!["modified a.txt", "added b.txt", "added c.txt"]),
        ("@~2", 0, vec!["added a.txt", "added b.txt", "added c.txt"]),
    ];
    for (at, work, paths) in expected {
        let id = short(&works[work]);
        for reference in [at, id, works[work].as_str(), &format!("prompt:{id}")] {
            assert_eq!(since(&project, reference), paths, "{reference}");
        }
    }
    assert_eq!(since(&project, "@~"), since(&project, "@~1"));
    assert_eq!(changes(&project.json("checkpoint diff @~2 @~1")), ["added a.txt"]);
    assert_eq!(project.refused("checkpoint diff @~3"), (3, "point_not_found".to_owned()));
    assert_eq!(project.refused("checkpoint diff @x"), (3, "invalid_reference".to_owned()));
}

#[test]
fn at_passes_over_undone_work() {
    let (project, works) = in_turn();
    project.json("undo @ --yes");
    assert_eq!(read(&project, "a.txt"), "1\n");
    assert!(!project.root().join("c.txt").exists());
    assert_eq!(since(&project, "@"), since(&project, short(&works[1])), "the newest that stands is the second");
    project.json("undo @ --yes");
    assert!(!project.root().join("b.txt").exists() && project.root().join("a.txt").exists());
    project.json("redo --yes");
    project.json("redo --yes");
    assert_eq!((read(&project, "a.txt").as_str(), read(&project, "b.txt").as_str()), ("3\n", "2\n"));
}

#[test]
fn checkpoint_is_named_without_a_prefix() {
    let (project, _) = in_turn();
    project.ok("checkpoint create --name good");
    project.write("c.txt", "4\n");
    for reference in ["good", "checkpoint:good"] {
        assert_eq!(since(&project, reference), ["modified c.txt"], "{reference}");
        let plan = project.json(&format!("checkpoint restore {reference} --dry-run"));
        assert_eq!(plan["changes"].as_array().map(Vec::len), Some(1), "{reference}: {plan}");
    }
    project.json("undo good --yes");
    assert_eq!(read(&project, "c.txt"), "3\n");
    assert_eq!(project.refused("checkpoint restore bad --dry-run").1, "invalid_reference");
}

#[test]
fn restore_takes_the_tree_before_a_work() {
    let (project, works) = in_turn();
    for reference in ["@~1", short(&works[1])] {
        project.json(&format!("checkpoint restore {reference} --yes"));
        assert_eq!(read(&project, "a.txt"), "1\n", "{reference}");
        assert!(!project.root().join("b.txt").exists() && !project.root().join("c.txt").exists(), "{reference}");
        project.json("redo --yes");
        assert_eq!(read(&project, "a.txt"), "3\n");
    }
}

#[test]
fn step_is_named_without_a_prefix() {
    let project = in_git();
    project.write(
        "flow.yaml",
        "name: flow\nsteps: [{id: build, run: 'echo b > b.txt'}, {id: ship, run: 'echo s > s.txt', needs: [build]}]\n",
    );
    project.json("workflow run flow.yaml");
    for (bare, whole) in [("ship", "step:ship"), ("build", "step:build"), ("@", "step:ship"), ("@~1", "step:build")] {
        let plan = |reference: &str| {
            let plan = project.json(&format!("undo {reference} --dry-run"));
            (plan["point"].clone(), plan["plan_hash"].clone(), plan["files"]["changes"].clone())
        };
        assert_eq!(plan(bare), plan(whole), "{bare}");
    }
    project.json("undo ship --yes");
    assert!(project.root().join("b.txt").exists() && !project.root().join("s.txt").exists());
    project.ok("checkpoint create --name build");
    assert_eq!(project.refused("undo build --dry-run"), (3, "ambiguous_id".to_owned()));
    project.json("undo step:build --yes");
    assert!(!project.root().join("b.txt").exists());
}

#[test]
fn name_of_git_is_told_from_what_the_log_prints() {
    let (project, _) = in_turn();
    let head = ic_testkit::git_in(project.root(), &["rev-parse", "HEAD"]).trim().to_owned();
    ic_testkit::git_in(project.root(), &["branch", "topic"]);
    for name in ["HEAD", "HEAD~0", "topic", &head, &head[..10]] {
        for verb in ["show", "diff", "undo", "undo --only", "checkpoint restore", "restore a.txt --before"] {
            let outcome = project.run(&format!("{verb} {name}"));
            assert_eq!(outcome.code, Some(3), "{verb} {name}: {outcome:?}");
            let hint =
                format!("{name} is a name of git: ic takes the ids that ic log prints, and names of checkpoints");
            assert!(outcome.stderr.contains(&hint), "{verb} {name}: {outcome:?}");
        }
    }
    let outcome = project.run("show nothing");
    assert!(!outcome.stderr.contains("name of git"), "{outcome:?}");
}
