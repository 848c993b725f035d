//! Histories of all layers, made by chance: the dry run is the real run, what was there at the cut is what there is then, and done,
//! undone and done again is done once.

use ic_testkit::{Random, TestWorld, rounds};
use serde_json::Value;

use crate::project::{Work as _, in_git};
use crate::rows::Rows as _;

const PHASES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The rows of the state database when the run went from one place in its chain to another.
struct Crossing {
    from: usize,
    to: usize,
    rows: String,
}

/// A run with a history of `length` steps in its layers, and its advances.
fn history(random: &mut Random, length: usize) -> (TestWorld, Vec<Crossing>) {
    let world = in_git().with_rows();
    if random.below(2) == 0 {
        world.task("before the run");
    }
    let mut crossings = vec![Crossing { from: 0, to: 0, rows: world.rows() }];
    let world = world.begun();
    let mut at = 0;
    for n in 0..length {
        let name = format!("dir{}/file{}", random.below(3), random.below(4));
        match random.below(15) {
            0..=2 => world.write(&name, &format!("{n} ").repeat(1 + random.place_in(200))),
            3 => {
                let _ = std::fs::remove_file(world.cli.root().join(&name));
            }
            4 => {
                world.commit(&format!("commit {n}"));
            }
            5 => {
                world.ic(&["run", "artifact", "add", &world.run, "--path", &name]);
            }
            6 => {
                let id = world.cli.ok(["dispatch", "create", &world.run, "--name", &format!("work {n}")]);
                if random.below(2) == 0 {
                    world.ic(&["dispatch", "start", &id]);
                    world.ic(&["dispatch", "record", &id, "--file", &name]);
                    world.ic(&["dispatch", "complete", &id]);
                }
            }
            7 => {
                world.ic(&["run", "agent", "add", &world.run, "--type", "codex"]);
            }
            8 => world.effect(&format!("effect{n}"), &[]),
            9 if at < 3 => {
                world.ic(&["run", "skip", &world.run, PHASES[at + 1], "--reason", "by chance"]);
            }
            10 => {
                let tracked = ["stash", "push", "-q", "--include-untracked"];
                world.git(&tracked);
            }
            11 | 12 => world.task(&format!("task{n}")),
            13 => world.log(&format!("log {n}")),
            _ if at < 4 => at = crossed(&world, at, &mut crossings),
            _ => {}
        }
    }
    while at == 0 {
        at = crossed(&world, at, &mut crossings);
    }
    (world, crossings)
}

/// Advances the run from a place in its chain; returns the new one.
fn crossed(world: &TestWorld, from: usize, crossings: &mut Vec<Crossing>) -> usize {
    let rows = world.rows();
    world.advance();
    let status = world.status();
    let phase = status.rsplit('@').next().expect("a phase");
    let to = PHASES.iter().position(|name| *name == phase).expect("a phase of the chain");
    crossings.push(Crossing { from, to, rows });
    to
}

/// The rows as they were at the cut of a rollback.
fn rows_at_the_cut<'c>(crossings: &'c [Crossing], to: &str, include_target: bool) -> &'c str {
    let to = PHASES.iter().position(|name| *name == to).expect("a phase of the chain");
    let crosses = |crossing: &&Crossing| {
        if include_target { crossing.from < to && to <= crossing.to } else { crossing.from <= to && to < crossing.to }
    };
    let found = crossings[1..].iter().rev().find(crosses);
    &found.unwrap_or(&crossings[0]).rows
}

/// What a dry run and the real one must agree about.
fn plan(report: &Value) -> Value {
    let mut plan = report.clone();
    let record = plan.as_object_mut().expect("an object");
    for volatile in ["rollback_id", "dry_run", "status", "seq", "steps"] {
        record.remove(volatile);
    }
    if let Some(files) = record.get_mut("files").and_then(Value::as_object_mut) {
        for volatile in ["safety_checkpoint_id", "restored_checkpoint_id", "dry_run", "status"] {
            files.remove(volatile);
        }
        if let Some(git) = files.get_mut("git").and_then(Value::as_object_mut) {
            git.remove("kept_below");
        }
    }
    for effect in record["effects"]["results"].as_array_mut().into_iter().flatten() {
        let effect = effect.as_object_mut().expect("an effect");
        for volatile in ["status", "attempts", "error"] {
            effect.remove(volatile);
        }
    }
    plan
}

#[test]
fn the_dry_run_is_the_real_run_and_undone_and_done_again_is_done_once() {
    let mut random = Random::seeded();
    for round in rounds(4) {
        let (world, crossings) = history(&mut random, 30);
        let before = world.state();
        let status = world.status();
        let to = if random.below(2) == 0 { "a" } else { PHASES[random.place_in(4)] };
        let mut more = Vec::new();
        if random.below(3) == 0 {
            more.push("--include-target");
        }
        let when = format!("round {round}: {status} to {to} {more:?}");
        let dump = world.cli.dump();
        let mut dry = world.all(to, &more);
        dry.push("--dry-run");
        let dry = world.cli.run(dry);
        assert_eq!(world.cli.dump(), dump, "{when}: a dry run wrote something");
        world.state().assert_is(&before, &when);
        if dry.code != Some(0) {
            let mut real = world.all(to, &more);
            real.push("--yes");
            let real = world.cli.run(real);
            assert_eq!((real.code, real.error()), (dry.code, dry.error()), "{when}");
            assert_eq!(world.cli.dump(), dump, "{when}: a refusal wrote something");
            continue;
        }
        let dry = dry.json();
        let hash = dry["plan_hash"].as_str().expect("a hash").to_owned();
        more.extend(["--expect-plan", &hash]);
        let real = world.roll_back(to, &more);
        assert_eq!(plan(&real), plan(&dry), "{when}");
        let include_target = more.contains(&"--include-target");
        assert_eq!(world.rows(), rows_at_the_cut(&crossings, to, include_target), "{when}: rows at the cut");
        let once = world.state();
        let id = real["rollback_id"].as_str().expect("an id");
        let undo = ["redo", id, "--without-effects", "--json"];
        let dump = world.cli.dump();
        let preview = world.cli.json(undo.iter().chain(&["--dry-run"]));
        assert_eq!(world.cli.dump(), dump, "{when}: the preview of the undo wrote something");
        world.state().assert_is(&once, &format!("{when}: previewed"));
        let undone = world.cli.json(undo.iter().chain(&["--yes"]));
        for part in ["data", "effects_left", "dispatches_left", "agents_left"] {
            assert_eq!(preview[part], undone[part], "{when}: {part}");
        }
        world.state().assert_outside_is(&before, &format!("{when}: undone"));
        assert_eq!(world.status(), status, "{when}: undone");
        world.roll_back(to, &more[..more.len() - 2]);
        world.state().assert_is(&once, &format!("{when}: again"));
    }
}
