//! Work that sets back what other work did, undone and brought back in any order: the tree is as the work that stands makes it alone, or a conflict is
//! named and nothing is changed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use ic_testkit::{Random, World, rounds, tell};
use serde_json::Value;

use super::did;
use crate::world::{Work as _, in_git};

const NAMES: [&str; 3] = ["x/a", "x/b", "y/c"];

/// The content of a file. That of no other is the same: what one removes where it creates another is a rename.
fn text(name: &str, version: &str) -> String {
    format!("{version} of {name}\n")
}

/// The version of each, and whether it may be run.
type Tree = BTreeMap<&'static str, (&'static str, bool)>;

/// What work makes of a file. There is nothing to change or to remove in one that is not there.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// What was not there, as it is made.
    Create(&'static str),
    /// Which version.
    Write(&'static str, &'static str),
    Remove(&'static str),
    Mode(&'static str, bool),
}

fn make(tree: &mut Tree, deed: Deed) {
    match deed {
        Deed::Create(name) => drop(tree.insert(name, ("one", false))),
        Deed::Write(name, version) => {
            if let Some(file) = tree.get_mut(name) {
                file.0 = version;
            }
        }
        Deed::Remove(name) => drop(tree.remove(name)),
        Deed::Mode(name, is_tool) => {
            if let Some(file) = tree.get_mut(name) {
                file.1 = is_tool;
            }
        }
    }
}

/// Something that changes a file.
fn deed(random: &mut Random, tree: &Tree, name: &'static str) -> Deed {
    match tree.get(name) {
        None => Deed::Create(name),
        Some((version, is_tool)) => match random.below(4) {
            0 => Deed::Mode(name, !is_tool),
            1 => Deed::Write(name, if *version == "one" { "two" } else { "one" }),
            _ => Deed::Remove(name),
        },
    }
}

fn write(world: &World, tree: &Tree) {
    for name in NAMES {
        let path = world.cli.root().join(name);
        match tree.get(name) {
            None if path.exists() => std::fs::remove_file(path).expect("removed"),
            None => {}
            Some((version, is_tool)) => {
                world.write(name, &text(name, version));
                let mode = if *is_tool { 0o755 } else { 0o644 };
                std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
            }
        }
    }
}

fn read(world: &World) -> Tree {
    let file = |name: &&'static str| {
        let path = world.cli.root().join(name);
        let text = std::fs::read_to_string(&path).ok()?;
        let version = ["one", "two"].into_iter().find(|version| text == self::text(name, version))?;
        Some((*name, (version, path.metadata().ok()?.permissions().mode() & 0o100 != 0)))
    };
    NAMES.iter().filter_map(file).collect()
}

/// A piece of work, and the undo of it that stands.
#[derive(Debug)]
struct Work {
    id: String,
    deeds: Vec<Deed>,
    undo: Option<String>,
}

/// What stands, alone.
fn alone(begin: &Tree, all: &[Work]) -> Tree {
    let mut tree = begin.clone();
    let stands = all.iter().filter(|work| work.undo.is_none());
    stands.flat_map(|work| &work.deeds).for_each(|deed| make(&mut tree, *deed));
    tree
}

/// Work that changes the tree as it is.
fn work(world: &World, random: &mut Random, n: usize) -> Work {
    let mut tree = read(world);
    let mut deeds = Vec::new();
    // What one work changes and changes back, no look at the tree shows: it changes each once.
    let (first, n_names) = (random.place_in(NAMES.len()), 1 + random.place_in(2));
    for name in NAMES.iter().cycle().skip(first).take(n_names) {
        let deed = deed(random, &tree, name);
        make(&mut tree, deed);
        deeds.push(deed);
    }
    let id = did(world, &format!("work {n}"), || write(world, &tree));
    Work { id, deeds, undo: None }
}

/// Undoes a piece of work, or brings it back; `false`: a conflict, and nothing was changed.
fn turn(world: &World, work: &mut Work, when: &str) -> bool {
    let before = world.state();
    let words = match &work.undo {
        None => ["undo", "--dispatch", &work.id, "--yes", "--json"],
        Some(undo) => ["rollback", "undo", undo, "--yes", "--json"],
    };
    let outcome = world.cli.run(words);
    if outcome.code == Some(1) {
        assert_eq!(outcome.error(), "file_conflict", "{when}: {outcome:?}");
        world.state().assert_is(&before, when);
        return false;
    }
    assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
    let report: Value = outcome.json();
    work.undo = match work.undo {
        None => Some(report["rollback_id"].as_str().expect("its id").to_owned()),
        Some(_) => None,
    };
    true
}

#[test]
fn what_stands_is_as_it_makes_the_tree_alone_in_whichever_order_others_were_undone_and_came_back() {
    let mut random = Random::seeded();
    let (mut done, mut conflicts) = (0, 0);
    for round in rounds(5) {
        let world = in_git().begun();
        let begin: Tree = [("x/a", ("one", false)), ("y/c", ("two", false))].into();
        write(&world, &begin);
        world.commit("base");
        let mut all: Vec<Work> = (0..2).map(|n| work(&world, &mut random, n)).collect();
        for n in 0..10 {
            if random.below(3) == 0 && all.len() < 5 {
                let made = work(&world, &mut random, n + 2);
                all.push(made);
            } else {
                let at = random.place_in(all.len());
                let when = format!("round {round}, turn {n}, {at} of {all:#?}");
                let is_done = turn(&world, &mut all[at], &when);
                *(if is_done { &mut done } else { &mut conflicts }) += 1;
            }
            assert_eq!(read(&world), alone(&begin, &all), "round {round}, turn {n}: {all:#?}");
        }
        // What can be undone: at the end nothing is left of it.
        while all
            .iter_mut()
            .any(|one| one.undo.is_none() && turn(&world, one, &format!("the end of {round}")))
        {}
        assert_eq!(read(&world), alone(&begin, &all), "round {round}, at the end: {all:#?}");
    }
    tell(&format!("{done} done, {conflicts} conflicts"));
    assert!(done > conflicts, "{done} and {conflicts}");
}
