//! Content that a person removed and returned still belongs to the work that made it. A stash, a switch and a merge do that.

use ic_testkit::TestWorld;

use super::{did, stays, undone, undone_in_part};
use crate::project::{Work as _, in_git};

const LINES: usize = 40;

fn text(lines: &[(usize, &str)]) -> String {
    let line =
        |at: usize| lines.iter().find(|(of, _)| *of == at).map_or_else(|| format!("line {at}"), |one| one.1.to_owned());
    (1..=LINES).map(|at| line(at) + "\n").collect()
}

/// A repository whose file has a line of a piece of work, which is not committed.
fn with_work() -> (TestWorld, String) {
    let world = in_git().begun();
    world.write("f", &text(&[]));
    world.commit("base");
    let id = did(&world, "agent", || world.write("f", &text(&[(20, "AGENT")])));
    (world, id)
}

fn look(world: &TestWorld) {
    world.ic(&["checkpoint", "create"]);
}

#[test]
fn what_git_took_away_and_brought_back_is_undone_and_redone() {
    type Way = fn(&TestWorld);
    let ways: [(&str, Way); 4] = [
        ("stash", |world| {
            world.git(&["stash", "-q"]);
            look(world);
            world.git(&["stash", "pop", "-q"]);
        }),
        ("switch", |world| {
            world.git(&["commit", "-qam", "agent"]);
            world.git(&["switch", "-qc", "other", "HEAD~1"]);
            look(world);
            world.git(&["switch", "-q", "main"]);
        }),
        ("merge", |world| {
            world.git(&["switch", "-qc", "feat"]);
            world.git(&["commit", "-qam", "agent"]);
            world.git(&["switch", "-q", "main"]);
            look(world);
            world.git(&["merge", "-q", "feat"]);
        }),
        ("over another change", |world| {
            world.write("f", &text(&[(20, "AGENT"), (2, "PERSON")]));
            look(world);
            world.git(&["stash", "-q"]);
            look(world);
            world.git(&["stash", "pop", "-q"]);
            look(world);
            world.write("f", &text(&[(20, "AGENT")]));
        }),
    ];
    for (name, way) in ways {
        let (world, id) = with_work();
        way(&world);
        look(&world);
        let (before, history) = (world.text("f"), world.git(&["log", "--all", "--format=%H"]));
        let report = undone(&world, &id, &[]);
        assert_eq!((world.text("f"), stays(&report)), (text(&[]), vec![]), "{name}: {report}");
        world.cli.ok(["redo", "--yes"]);
        assert_eq!(world.text("f"), before, "{name}");
        assert_eq!(world.git(&["log", "--all", "--format=%H"]), history, "{name}");
    }
}

#[test]
fn what_came_back_with_a_change_of_a_person_is_asked_about() {
    let (world, id) = with_work();
    world.git(&["stash", "-q"]);
    world.write("f", &text(&[(2, "PERSON")]));
    look(&world);
    world.git(&["commit", "-qam", "person"]);
    world.git(&["stash", "pop", "-q"]);
    look(&world);
    let before = world.text("f");
    assert_eq!(before, text(&[(2, "PERSON"), (20, "AGENT")]));
    let words = ["undo", "--only", &id, "--yes", "--json"];
    let refused = world.cli.run(words);
    assert_eq!((refused.error().as_str(), world.text("f")), ("file_conflict", before.clone()));
    let why = "others made it so again since, or brought it back";
    assert!(refused.stderr.contains(why), "{refused:?}");
    let report = undone_in_part(&world, &id, &["--keep-theirs"]);
    assert_eq!((world.text("f"), stays(&report)), (before.clone(), vec![("f".to_owned(), format!("kept: {why}"))]));
    undone(&world, &id, &["--force-files"]);
    assert_eq!(world.text("f"), text(&[(2, "PERSON")]), "nothing of the person is lost");
    world.cli.ok(["redo", "--yes"]);
    assert_eq!(world.text("f"), before);
}
