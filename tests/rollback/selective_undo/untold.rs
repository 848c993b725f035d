//! Work whose client tells no calls: what git brought during it, and what no record says is its own.

use super::*;

/// A clone, and a commit of a colleague in its origin that the clone does not have yet.
fn behind_a_colleague() -> TestWorld {
    let world = with_base("b.txt", "b\n");
    let origin = world.cli.home().join("origin");
    let path = origin.to_str().expect("a name").to_owned();
    world.git(&["clone", "-q", ".", &path]);
    git_in(&origin, &["switch", "-q", "-c", "shared"]);
    std::fs::write(origin.join("a.txt"), SEVEN.replace("two", "two of a colleague")).expect("a file");
    std::fs::write(origin.join("theirs.txt"), "theirs\n").expect("a file");
    git_in(&origin, &["add", "-A"]);
    git_in(&origin, &["commit", "-qm", "a colleague's"]);
    world.git(&["remote", "add", "origin", &path]);
    world
}

#[test]
fn a_pull_during_a_dispatch_is_no_work_of_it() {
    for commits in [false, true] {
        let world = behind_a_colleague();
        let both = SEVEN.replace("two", "two of a colleague").replace("six", "SIX");
        let agent = did(&world, "agent", || {
            world.git(&["pull", "-q", "origin", "shared"]);
            world.write("a.txt", &both);
            world.write("mine.txt", "mine\n");
            if commits {
                world.commit("the agent's");
            }
        });
        let shown = world.cli.json(["show", &agent, "--json"]);
        let files: Vec<&str> =
            shown["files"].as_array().expect("files").iter().filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(files, ["a.txt", "mine.txt"], "{shown}");
        let patch = world.ic(&["show", &agent, "-p", "--format", "text"]);
        assert!(patch.contains("+SIX") && !patch.contains("+two of a colleague"), "{patch}");
        let report = undone(&world, &agent, &[]);
        let own: Vec<&str> =
            report["own_commits"].as_array().into_iter().flatten().filter_map(|one| one["subject"].as_str()).collect();
        assert_eq!(own, if commits { vec!["the agent's"] } else { vec![] }, "{report}");
        let text = SEVEN.replace("two", "two of a colleague");
        assert_eq!((world.text("a.txt"), world.read("mine.txt")), (text, None));
        assert_eq!(world.text("theirs.txt"), "theirs\n");
        world.ic(&["redo", "--yes"]);
        assert_eq!((world.text("a.txt"), world.text("mine.txt").as_str()), (both, "mine\n"));
    }
}

#[test]
fn work_that_was_not_completed_owns_what_it_recorded_and_the_rest_is_asked() {
    let world = with_base("b.txt", "b\n");
    let agent = begin(&world, "agent");
    world.write("agent.txt", "agent\n");
    world.ic(&["dispatch", "record", &agent, "--file", "agent.txt"]);
    world.write("thesis.txt", "a person's\n");
    world.ic(&["checkpoint", "create"]);
    world.ic(&["dispatch", "cancel", &agent]);
    let before = world.state();
    let refused = world.cli.run(undo(&agent, &["--yes"]));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "file_conflict"), "{refused:?}");
    assert!(refused.stderr.contains("thesis.txt") && !refused.stderr.contains("agent.txt"), "{refused:?}");
    world.state().assert_is(&before, "refused");
    let report = undone_in_part(&world, &agent, &["--keep-theirs"]);
    assert_eq!(stays(&report).len(), 1, "{report}");
    assert_eq!((world.read("agent.txt"), world.text("thesis.txt").as_str()), (None, "a person's\n"));
    // A person who says so takes the rest out, too.
    undone(&world, &agent, &["--force-files"]);
    assert_eq!(world.read("thesis.txt"), None);
}

#[test]
fn what_a_merge_of_an_older_branch_brought_is_no_work_of_the_dispatch() {
    for merge in [&["merge", "-q", "-m", "merged", "side"][..], &["rebase", "-q", "side"]] {
        let world = with_base("b.txt", "b\n");
        world.git(&["switch", "-q", "-c", "side"]);
        world.write("a.txt", &SEVEN.replace("two", "two of the side"));
        world.write("side.txt", "side\n");
        world.commit("of the side");
        world.git(&["switch", "-q", "-"]);
        let agent = did(&world, "agent", || {
            world.write("a.txt", &SEVEN.replace("six", "SIX"));
            world.write("mine.txt", "mine\n");
            world.commit("the agent's");
            world.git(merge);
        });
        let both = world.text("a.txt");
        undone(&world, &agent, &[]);
        assert_eq!(world.text("a.txt"), SEVEN.replace("two", "two of the side"), "{merge:?}");
        assert_eq!((world.read("mine.txt"), world.text("side.txt").as_str()), (None, "side\n"), "{merge:?}");
        world.ic(&["redo", "--yes"]);
        assert_eq!((world.text("a.txt"), world.text("mine.txt").as_str()), (both, "mine\n"), "{merge:?}");
    }
}
