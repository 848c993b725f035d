//! Crashes in each stage: before every statement on the ledger and on the application's database, and kill -9 at random
//! moments. Status then names the stage, resume converges, and what was there before can be had back.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::{Random, TestWorld, long, rounds, tell};
use serde_json::{Value, json};

use crate::project::{audits, configure_vectors, devs_in_git, status};

const TO: [&str; 4] = ["rewind", "to", "T1", "--yes"];

/// A world in git with vectors, and how it is before and after a rewind.
struct Ground {
    world: TestWorld,
    commits: [String; 3],
    before: String,
    after: String,
}

impl Ground {
    fn new() -> Self {
        let (world, commits) = devs_in_git();
        configure_vectors(&world, "echo $IC_TASK > pruned");
        // The configuration is not the tree's business here.
        world.git(&["update-index", "--assume-unchanged", ".ic.yaml"]);
        world.write("untracked.txt", "untracked");
        let before = world.rows();
        let ground = Self { world, commits, before, after: String::new() };
        ground.world.save(&["project"]);
        let done = ground.world.cli.json(TO);
        assert_eq!(done["status"], "done");
        let after = ground.world.rows();
        Self { after, ..ground }
    }

    fn reset(&self) {
        self.world.reset(&["project"]);
    }

    /// What must be so after a crash; returns whether the rewind had been done to its end.
    fn recovers(&self, when: &str) {
        let world = &self.world;
        let rows = world.rows();
        assert!(rows == self.before || rows == self.after, "{when}: the rows are neither: {rows}");
        let list = world.cli.json(["rewind", "list"]);
        let Some(entry) = list.as_array().and_then(|all| all.first()) else {
            assert_eq!((world.rows(), world.head()), (self.before.clone(), self.commits[2].clone()), "{when}");
            assert_eq!(world.cli.json(TO)["status"], "done", "{when}");
            return;
        };
        self.stage_is_true(entry, when);
        let id = entry["id"].as_str().expect("an id");
        if entry["status"] != "done" {
            let (exit, code) = world.cli.refused(TO);
            assert_eq!((exit, code.as_str()), (Some(1), "not_finished"), "{when}: it must be resumed first");
        }
        let resumed = world.cli.json(["rewind", "resume", id, "--yes"]);
        assert_eq!((&resumed["status"], &resumed["stages_left"]), (&json!("done"), &json!([])), "{when}");
        assert_eq!((world.rows(), world.head()), (self.after.clone(), self.commits[0].clone()), "{when}");
        assert_eq!(audits(world), ["ROLLBACK_COMPLETED"], "{when}: it was done once");
        assert_eq!((world.text("pruned"), world.text("a.txt")), ("T1\n".to_owned(), "T1".to_owned()), "{when}");
        let kept = resumed["git"]["kept_ref"].as_str().unwrap_or_else(|| panic!("{when}: {resumed}"));
        assert_eq!(world.git(&["rev-parse", kept]), self.commits[2], "{when}");
        let undone = world.cli.json(["undo", id, "--yes"]);
        assert_eq!(world.rows(), self.before, "{when}");
        let command = undone["git"]["restore"].as_str().expect("a command").to_owned();
        world.cli.ok(command.split(' ').skip(1));
        assert_eq!((world.head(), world.text("a.txt")), (self.commits[2].clone(), "T3".to_owned()), "{when}");
        world.cli.ok(["events", "verify"]);
    }

    /// What a stage claims to be done is done.
    fn stage_is_true(&self, entry: &Value, when: &str) {
        let stage = entry["stage"].as_str().expect("a stage");
        let left: &[&str] = match stage {
            "planned" => &["git", "sqlite", "vectors"],
            "git_done" => &["sqlite", "vectors"],
            "db_done" => &["vectors"],
            _ => &[],
        };
        assert_eq!(entry["stages_left"], json!(left), "{when}");
        if stage != "planned" {
            assert_eq!(self.world.head(), self.commits[0], "{when}: {stage}");
        }
        if stage == "planned" {
            assert_eq!(self.world.rows(), self.before, "{when}: no row goes before git");
        }
        if matches!(stage, "db_done" | "vector_done") {
            assert_eq!(self.world.rows(), self.after, "{when}: {stage}");
        }
        if stage == "vector_done" {
            assert_eq!(self.world.text("pruned"), "T1\n", "{when}");
        }
    }
}

/// Aborts before the first, second, ... statement of a kind until there is none left. Not at length, every few.
fn abort_everywhere(variable: &str, step: usize, least: usize) {
    const SIGABRT: i32 = 6;
    let ground = Ground::new();
    let step = if long() { 1 } else { step };
    let mut n = 1;
    loop {
        ground.reset();
        let output = ground.world.cli.command(TO).env(variable, n.to_string()).output().expect("start ic");
        if output.status.signal() != Some(SIGABRT) {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            break;
        }
        ground.recovers(&format!("{variable}={n}"));
        n += step;
    }
    tell(&format!("{n} statements"));
    assert!(n > least, "only {n} statements");
}

#[test]
fn an_abort_before_any_statement_on_the_ledger() {
    abort_everywhere("IC_TEST_ABORT_BEFORE", 3, 60);
}

#[test]
fn an_abort_before_any_statement_on_the_database() {
    abort_everywhere("IC_TEST_REWIND_ABORT_BEFORE", 4, 60);
}

#[test]
fn an_abort_in_an_undo_is_finished_by_the_next() {
    let ground = Ground::new();
    let world = &ground.world;
    for variable in ["IC_TEST_ABORT_BEFORE", "IC_TEST_REWIND_ABORT_BEFORE"] {
        ground.reset();
        let id = world.cli.json(TO)["id"].as_str().expect("an id").to_owned();
        let call = ["undo", &id, "--yes"];
        for n in (1..).step_by(if long() { 1 } else { 5 }) {
            let output = world.cli.command(call).env(variable, n.to_string()).output().expect("start ic");
            let rows = world.rows();
            assert!(rows == ground.before || rows == ground.after, "{variable}={n}: {rows}");
            if output.status.code().is_some() || status(world)["status"] == "undone" {
                break;
            }
        }
        if status(world)["status"] != "undone" {
            world.cli.json(call);
        }
        assert_eq!((world.rows(), &status(world)["status"]), (ground.before.clone(), &json!("undone")));
        assert_eq!(audits(world), ["ROLLBACK_COMPLETED", "ROLLBACK_UNDONE"]);
    }
}

#[test]
fn kill_nine_at_random_moments() {
    let ground = Ground::new();
    let mut random = Random::seeded();
    ground.reset();
    let started = Instant::now();
    ground.world.cli.json(TO);
    let usual = u64::try_from(started.elapsed().as_micros()).expect("microseconds");
    for round in rounds(12) {
        ground.reset();
        let mut command = ground.world.cli.command(TO);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
        std::thread::sleep(Duration::from_micros(random.below(usual)));
        let _ = child.kill();
        child.wait().expect("its end");
        // Git, which it may have started, goes on to its end by itself.
        settle(&ground.world);
        ground.recovers(&format!("round {round}"));
    }
}

/// Waits until no git of a dead rewind works on the tree any more.
fn settle(world: &TestWorld) {
    let lock = world.root().join(".git/index.lock");
    let started = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    while lock.exists() {
        assert!(started.elapsed() < Duration::from_secs(10), "git never ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}
