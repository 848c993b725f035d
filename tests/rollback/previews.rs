//! A dry run ends as the real call with the same flags would be refused or accepted: for every verb that has one, both are called
//! on copies of one world.

mod checkpoints;
mod layers;
mod others_work;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use ic_testkit::{TestWorld, copy_over};
use serde_json::Value;

use crate::project::{WHOLE, without_git};

/// One call in one world.
pub(crate) struct Row {
    /// The verb and its flags, without `--dry-run` and `--yes`; `RUN`, `CHECKPOINT`, `ROLLBACK` and the like stand for ids.
    call: &'static str,
    /// What makes the scene's world what it is like, one after another.
    world: &'static [fn(&TestWorld)],
    /// The exit of both, and the code of the refusal.
    ends: End,
    /// Locks that another process holds while it is called.
    held: fn(&TestWorld) -> Vec<File>,
}

/// How both calls end.
pub(crate) type End = (i32, &'static str);

/// Both are accepted.
pub(crate) const FINE: End = (0, "");

pub(crate) fn row(call: &'static str, world: &'static [fn(&TestWorld)], ends: End) -> Row {
    Row { call, world, ends, held: |_| Vec::new() }
}

/// A row whose call meets another process that holds these locks.
pub(crate) fn held(row: &Row, held: fn(&TestWorld) -> Vec<File>) -> Row {
    Row { held, ..*row }
}

pub(crate) fn locked(path: &Path) -> File {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("make it");
    let file = File::options().create(true).append(true).open(path).expect("a lock");
    file.lock().expect("lock it");
    file
}

/// A world from which each row sets out.
struct Scene<'w> {
    world: &'w TestWorld,
}

impl<'w> Scene<'w> {
    fn of(world: &'w TestWorld) -> Self {
        world.cli.keep_ledger("scene");
        for name in WHOLE {
            copy_over(&world.cli.home().join(name), &Self::place(world, name));
        }
        Self { world }
    }

    fn begin(&self) {
        self.world.cli.put_back_ledger("scene");
        for name in WHOLE {
            copy_over(&Self::place(self.world, name), &self.world.cli.home().join(name));
        }
    }

    fn place(world: &TestWorld, name: &str) -> PathBuf {
        world.cli.home().join(format!("scene-{name}"))
    }
}

/// Calls every row twice, and tells what does not agree.
pub(crate) fn compare(world: &TestWorld, rows: &[Row]) {
    let scene = Scene::of(world);
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            scene.begin();
            row.world.iter().for_each(|prepare| prepare(world));
            disagreement(world, row)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn disagreement(world: &TestWorld, row: &Row) -> Option<String> {
    let words = words(world, row.call);
    let call = |flags: [&str; 2]| {
        // A lock belongs to a file, and a copy of the world has files of its own.
        let _held = (row.held)(world);
        world.cli.run(words.iter().map(String::as_str).chain(flags).filter(|word| !word.is_empty()))
    };
    world.save(&WHOLE);
    let before = world.state();
    let dry = call(["--dry-run", "--json"]);
    let shown = call(["--dry-run", "--format=text"]);
    let is_unchanged = world.state() == before;
    world.reset(&WHOLE);
    let real = call([if asks(row.call) { "--yes" } else { "" }, "--json"]);
    let dry_code = code_of(&dry.stdout).or_else(|| code_of(&dry.stderr)).unwrap_or_default();
    let real_code = code_of(&real.stderr).unwrap_or_default();
    let (exit, code) = row.ends;
    // What the real call begins and cannot finish was accepted, unless the plan knew it.
    let real_end = if real.code == Some(4) && exit != 4 { Some(0) } else { real.code };
    let is_one = dry.code == Some(exit) && real_end == Some(exit) && dry_code == code && real_code == code;
    // A plan that is shown says itself whether it can be done.
    let is_refused_plan = !dry.stdout.is_empty() && ![0, 4].contains(&exit);
    let is_said = shown.stdout.contains(&format!("the real call would be refused ({code}, exit {exit})"));
    let is_said_so = shown.code == dry.code && is_said == is_refused_plan;
    (!is_one || !is_said_so || !is_unchanged).then(|| {
        let call = words.join(" ");
        format!(
            "{call}: wanted {exit} {code}; changed nothing: {is_unchanged}; said so: {is_said_so}\n  \
             dry run: {dry:?}\n  real call: {real:?}\n{}",
            shown.stdout
        )
    })
}

/// The code of the refusal in a report, or in an error line.
fn code_of(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let body = value.get("refusal").or(value.get("error"))?;
    body["code"].as_str().map(str::to_owned)
}

/// Whether the verb has `--yes`.
fn asks(call: &str) -> bool {
    !["checkpoint prune", "workflow run", "hooks ", "mcp ", "install ", "uninstall "]
        .iter()
        .any(|verb| call.starts_with(verb))
}

fn words(world: &TestWorld, call: &str) -> Vec<String> {
    let newest = |words: &[&str], first: bool| {
        let listed = world.cli.json(words);
        let all = listed.as_array().expect("a list").clone();
        let one = if first { all.first() } else { all.last() };
        one.and_then(|one| one["id"].as_str()).unwrap_or("none").to_owned()
    };
    let id = |word: &str| match word {
        "RUN" => world.run.clone(),
        "CHECKPOINT" => newest(&["checkpoint", "list", "--run", &world.run, "--json"], true),
        "ROLLBACK" => newest(&["rollback", "list", "--json"], false),
        "WORK" => newest(&["dispatch", "list", "--json"], false),
        "RESTORE" => world.cli.last_restore(),
        "FIRST" => world.cli.sql("SELECT safety_id FROM restores ORDER BY seq LIMIT 1"),
        "REWIND" => newest(&["rewind", "list", "--json"], false),
        other => other.to_owned(),
    };
    call.split(' ').map(id).collect()
}

/// The verbs whose help names `--dry-run`, as they are typed.
fn verbs_with_dry_run(world: &TestWorld) -> BTreeSet<String> {
    fn walk(world: &TestWorld, path: &[&str], found: &mut BTreeSet<String>) {
        let help = world.cli.ok(path.iter().chain(&["--help"]));
        if help.lines().any(|line| line.trim_start().starts_with("-n, --dry-run ")) {
            found.insert(path.join(" "));
        }
        // A verb has examples, and no commands.
        if help.lines().any(|line| line == "Examples:") {
            return;
        }
        // A command's line has two spaces before its name; what it is explained with has more, and a flag a dash.
        let commands =
            help.lines().take_while(|line| !line.ends_with("ptions:")).filter_map(|line| line.strip_prefix("  "));
        let names = commands.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let names = names.filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| *name != "help") {
            walk(world, &[path, &[name]].concat(), found);
        }
    }
    let mut found = BTreeSet::new();
    walk(world, &[], &mut found);
    found
}

#[test]
fn every_verb_with_a_dry_run_has_rows_and_one_of_them_is_refused() {
    let world = without_git();
    let verbs = verbs_with_dry_run(&world);
    assert!(verbs.len() >= 12, "{verbs:?}");
    let rows: Vec<Row> = [layers::rows(), checkpoints::rows(), others_work::rows(), others_work::workflow_rows()]
        .into_iter()
        .flatten()
        .collect();
    let of =
        |verb: &str| rows.iter().filter(|row| row.call.starts_with(verb)).map(|row| row.ends.0).collect::<Vec<_>>();
    // The previews of an adoption, accepted and refused, need a fork: tests/cli/forks.rs has them.
    for verb in verbs.iter().filter(|verb| *verb != "adopt") {
        let ends = of(verb);
        assert!(ends.contains(&0), "{verb} has no row in which it is accepted");
        assert!(ends.iter().any(|end| *end != 0), "{verb} has no row in which it is refused");
    }
}
