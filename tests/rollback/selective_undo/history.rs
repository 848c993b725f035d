//! Three dispatches by chance, one after another, and three agents at the same time: without any one of them the tree is as the other two
//! alone make it, or a conflict is named and nothing is changed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use ic_testkit::{Random, TestWorld, rounds, tell};
use serde_json::{Value, json};

use super::{begin, end};
use crate::project::{Work as _, in_git};

/// A file: its lines, each met once, and whether it may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    lines: Vec<String>,
    is_tool: bool,
}

type Tree = BTreeMap<String, File>;

/// A change of one dispatch, which names what it changes: it can be made in a tree without the work of another, or cannot.
#[derive(Debug, Clone)]
enum Deed {
    Replace(String, String, String),
    Insert(String, String, String),
    Delete(String, String),
    Create(String, Vec<String>),
    Remove(String),
    Rename(String, String),
    Tool(String, bool),
}

/// Makes a change; `None`: what it changes is not there.
fn make(tree: &mut Tree, deed: &Deed) -> Option<()> {
    let at = |file: &File, line: &String| file.lines.iter().position(|one| one == line);
    match deed {
        Deed::Replace(path, old, new) => {
            let file = tree.get_mut(path)?;
            let at = at(file, old)?;
            file.lines[at].clone_from(new);
        }
        Deed::Insert(path, after, new) => {
            let file = tree.get_mut(path)?;
            let at = at(file, after)?;
            file.lines.insert(at + 1, new.clone());
        }
        Deed::Delete(path, line) => {
            let file = tree.get_mut(path)?;
            let at = at(file, line)?;
            file.lines.remove(at);
        }
        Deed::Create(path, lines) => {
            let file = File { lines: lines.clone(), is_tool: false };
            if tree.contains_key(path) {
                return None;
            }
            tree.insert(path.clone(), file);
        }
        Deed::Remove(path) => drop(tree.remove(path)?),
        Deed::Rename(from, to) => {
            if tree.contains_key(to) {
                return None;
            }
            let file = tree.remove(from)?;
            tree.insert(to.clone(), file);
        }
        Deed::Tool(path, is_tool) => tree.get_mut(path)?.is_tool = *is_tool,
    }
    Some(())
}

/// A change by chance that can be made in the tree. What one work changes and changes back, no look at the tree shows: it never does.
fn deed(random: &mut Random, tree: &Tree, n: usize, before: &[Deed]) -> Deed {
    let paths: Vec<&String> = tree.keys().collect();
    let fresh = |random: &mut Random| format!("dir{}/file{}-{n}.txt", random.below(3), random.below(3));
    let Some(path) = paths.get(random.place_in(paths.len().max(1))).map(|path| (*path).clone()) else {
        return Deed::Create(fresh(random), vec![format!("only line {n}")]);
    };
    let file = &tree[&path];
    let line = file.lines.get(random.place_in(file.lines.len().max(1))).cloned();
    match (random.below(12), line) {
        (0..=3, Some(line)) => Deed::Replace(path, line, format!("other line {n}")),
        (4 | 5, Some(line)) => Deed::Insert(path, line, format!("new line {n}")),
        (6, Some(line)) if file.lines.len() > 1 => Deed::Delete(path, line),
        (7, _) => Deed::Remove(path),
        (8, _) => Deed::Rename(path, fresh(random)),
        (9, _) if !before.iter().any(|deed| matches!(deed, Deed::Tool(..))) => Deed::Tool(path, !file.is_tool),
        _ => Deed::Create(fresh(random), (0..4).map(|at| format!("line {n}.{at}")).collect()),
    }
}

fn write(world: &TestWorld, tree: &Tree) {
    let root = world.cli.root();
    for name in read(world).into_keys().filter(|name| !tree.contains_key(name)) {
        world.remove(&name);
    }
    for (path, file) in tree {
        world.write(path, &(file.lines.join("\n") + "\n"));
        let mode = if file.is_tool { 0o755 } else { 0o644 };
        std::fs::set_permissions(root.join(path), PermissionsExt::from_mode(mode)).expect("a mode");
    }
}

/// The files of the tree, those of the test itself aside.
fn read(world: &TestWorld) -> Tree {
    let all = ic_testkit::tree(world.cli.root());
    let files = all.keys().filter_map(|path| path.to_str()).filter(|path| path.contains('/'));
    let file = |path: &str| {
        let full = world.cli.root().join(path);
        let mode = std::fs::metadata(&full).expect("a file").permissions().mode();
        let text = std::fs::read_to_string(&full).expect("text");
        File { lines: text.lines().map(str::to_owned).collect(), is_tool: mode & 0o100 != 0 }
    };
    let is_file = |path: &&str| world.cli.root().join(path).is_file();
    files.filter(is_file).map(|path| (path.to_owned(), file(path))).collect()
}

/// The tree that the others alone make; `None` where one of their changes has nothing to change then.
fn replayed(begin: &Tree, deeds: &[(usize, Deed)], without: usize) -> Option<Tree> {
    let mut tree = begin.clone();
    let mut others = deeds.iter().filter(|(work, _)| *work != without);
    others.try_for_each(|(_, deed)| make(&mut tree, deed))?;
    Some(tree)
}

/// How the undo of one of them ended.
enum End {
    /// As the others make it.
    Same,
    /// A conflict, and nothing was changed.
    Conflict,
    /// What the others alone make is not known.
    Open,
}

fn undone_and_redone(world: &TestWorld, id: &str, wanted: Option<&Tree>, when: &str) -> End {
    let before = world.state();
    let outcome = world.cli.run(["undo", "--only", id, "--yes", "--json"]);
    if outcome.code == Some(1) {
        assert_eq!(outcome.error(), "file_conflict", "{when}: {outcome:?}");
        world.state().assert_is(&before, when);
        return End::Conflict;
    }
    // What others gave another name stays there, and the work is undone in part.
    let (code, status) = if outcome.code == Some(4) {
        assert!(wanted.is_none(), "{when}: {outcome:?}");
        (4, "rolled_back_in_part")
    } else {
        (0, "rolled_back")
    };
    assert_eq!((outcome.code, &outcome.json()["status"]), (Some(code), &json!(status)), "{when}: {outcome:?}");
    if let Some(wanted) = wanted {
        assert_eq!(&read(world), wanted, "{when}");
    }
    let undone = world.state();
    let place = |state: &ic_testkit::ProjectState| state.git.lines().next().map(str::to_owned);
    assert_eq!(place(&undone), place(&before), "{when}: HEAD");
    let run = outcome.json()["run_id"].as_str().expect("its run").to_owned();
    let redo = ["redo", "--run", &run, "--yes"];
    world.cli.ok(redo);
    world.state().assert_outside_is(&before, when);
    let again = world.cli.run(["undo", "--only", id, "--yes", "--json"]);
    assert_eq!((again.code, &again.json()["status"]), (Some(code), &json!(status)), "{when}");
    world.state().assert_outside_is(&undone, when);
    world.cli.ok(redo);
    if wanted.is_some() { End::Same } else { End::Open }
}

/// How often the undo of one of several ended in which way.
#[derive(Default)]
struct Ends {
    same: usize,
    conflicts: usize,
    open: usize,
}

impl Ends {
    fn add(&mut self, end: &End) {
        match end {
            End::Same => self.same += 1,
            End::Conflict => self.conflicts += 1,
            End::Open => self.open += 1,
        }
    }

    fn tell(&self) {
        let Self { same, conflicts, open } = self;
        tell(&format!("{same} as the others make it, {conflicts} conflicts, {open} that are not known"));
        // By chance there may be more conflicts than merges, but never hardly a merge.
        assert!(4 * same > *conflicts, "{same} and {conflicts}");
    }
}

/// A tree with three files of twelve lines, committed.
fn three_files(world: &TestWorld) -> Tree {
    let mut tree = Tree::new();
    for name in ["dir0/a.txt", "dir0/b.txt", "dir1/c.txt"] {
        let lines = (0..12).map(|at| format!("{name} line {at}")).collect();
        tree.insert(name.to_owned(), File { lines, is_tool: false });
    }
    write(world, &tree);
    world.commit("base");
    tree
}

#[test]
fn without_any_one_of_three_it_is_as_the_other_two_make_it() {
    let mut random = Random::seeded();
    let mut ends = Ends::default();
    for round in rounds(14) {
        let world = in_git().begun();
        let mut tree = three_files(&world);
        let first = tree.clone();
        let (mut made, mut ids) = (Vec::new(), Vec::new());
        for work in 0..3 {
            let id = begin(&world, &format!("work {work}"));
            let mut deeds = Vec::new();
            for n in 0..=random.place_in(5) {
                let deed = deed(&mut random, &tree, round * 100 + work * 10 + n, &deeds);
                make(&mut tree, &deed).expect("it can be made");
                deeds.push(deed);
            }
            write(&world, &tree);
            if random.below(2) == 0 {
                world.commit(&format!("work {work}"));
            }
            end(&world, &id);
            made.extend(deeds.into_iter().map(|deed| (work, deed)));
            ids.push(id);
        }
        for (at, id) in ids.iter().enumerate() {
            let when = format!("round {round}, without {at} of {made:#?}");
            ends.add(&undone_and_redone(&world, id, replayed(&first, &made, at).as_ref(), &when));
        }
    }
    ends.tell();
}

/// What a client says of one of its sessions.
pub(super) fn say(world: &TestWorld, session: usize, event: &str, more: &[(&str, Value)]) {
    let mut payload = json!({ "session_id": format!("s{session}"), "cwd": world.cli.root() });
    payload["prompt_id"] = json!(format!("p{session}"));
    for (key, value) in more {
        payload[*key] = value.clone();
    }
    let answer = world.cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
    assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (Some(0), "", ""), "{event}");
}

/// A tool call of a session that makes a change, between the looks that its hooks take.
fn call(world: &TestWorld, session: usize, deed: &Deed, n: usize, tree: &Tree) {
    let path = match deed {
        Deed::Replace(path, ..) | Deed::Insert(path, ..) | Deed::Create(path, _) => Some(path),
        Deed::Delete(..) | Deed::Remove(_) | Deed::Rename(..) | Deed::Tool(..) => None,
    };
    let (tool, input) = match path {
        Some(path) => ("Edit", json!({ "file_path": world.cli.root().join(path) })),
        None => ("Bash", json!({ "command": "work" })),
    };
    let said = [("tool_name", json!(tool)), ("tool_input", input), ("tool_use_id", json!(format!("c{n}")))];
    say(world, session, "PreToolUse", &said);
    write(world, tree);
    say(world, session, "PostToolUse", &said);
}

#[test]
fn without_any_one_of_three_agents_that_work_at_the_same_time_it_is_as_the_other_two_make_it() {
    let mut random = Random::seeded();
    let mut ends = Ends::default();
    for round in rounds(10) {
        let world = in_git();
        let mut tree = three_files(&world);
        let first = tree.clone();
        for session in 0..3 {
            say(&world, session, "UserPromptSubmit", &[("prompt", json!(format!("work {session}")))]);
        }
        let mut made: Vec<(usize, Deed)> = Vec::new();
        for n in 0..6 + random.place_in(6) {
            let session = random.place_in(3);
            let own: Vec<Deed> = made.iter().filter(|(by, _)| *by == session).map(|(_, deed)| deed.clone()).collect();
            let deed = deed(&mut random, &tree, round * 100 + n, &own);
            make(&mut tree, &deed).expect("it can be made");
            call(&world, session, &deed, n, &tree);
            made.push((session, deed));
        }
        (0..3).for_each(|session| say(&world, session, "Stop", &[]));
        for session in 0..3 {
            let prompts = world.cli.json(["session", "show", &format!("s{session}"), "--json"])["prompts"].clone();
            let id = prompts[0]["id"].as_str().expect("the work of its prompt");
            let when = format!("round {round}, without {session} of {made:#?}");
            ends.add(&undone_and_redone(&world, id, replayed(&first, &made, session).as_ref(), &when));
        }
    }
    ends.tell();
}

#[test]
fn a_file_that_others_rename_between_its_changes_is_one_file() {
    let world = in_git();
    let mut tree = three_files(&world);
    let first = tree.clone();
    (0..2)
        .for_each(|session| say(&world, session, "UserPromptSubmit", &[("prompt", json!(format!("work {session}")))]));
    let (old, new, newest) = ("dir1/c.txt", "dir1/d.txt", "dir0/e.txt");
    let made = [
        (0, Deed::Replace(old.to_owned(), format!("{old} line 2"), "other line".to_owned())),
        (1, Deed::Rename(old.to_owned(), new.to_owned())),
        (0, Deed::Delete(new.to_owned(), format!("{old} line 8"))),
        (1, Deed::Rename(new.to_owned(), newest.to_owned())),
    ];
    for (n, (session, deed)) in made.iter().enumerate() {
        make(&mut tree, deed).expect("it can be made");
        call(&world, *session, deed, n, &tree);
    }
    (0..2).for_each(|session| say(&world, session, "Stop", &[]));
    let prompts = world.cli.json(["session", "show", "s0", "--json"])["prompts"].clone();
    let id = prompts[0]["id"].as_str().expect("the work of its prompt");
    let end = undone_and_redone(&world, id, replayed(&first, &made, 0).as_ref(), "renamed twice");
    assert!(matches!(end, End::Same));
}
