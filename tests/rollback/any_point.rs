//! Whatever a run did, an undo to any point that stands gives the tree, git's state, the rows and the phase of that point; a redo gives
//! back what was, and the undo again ends where it ended.

use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use ic_testkit::{ProjectState, Random, TestWorld, long, rounds, tell};

use crate::project::{Work as _, in_git};
use crate::rows::Rows as _;

const PHASES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const FILES: [&str; 6] = ["one", "two", "dir/three", "dir/four", "dir/deep/five", "six"];

/// A point that stands, and what was there.
struct Point {
    reference: String,
    state: ProjectState,
    phase: usize,
}

/// A run with what chance made of it so far.
struct History {
    world: TestWorld,
    /// Another run in the same tree, which only records.
    other: Option<String>,
    points: Vec<Point>,
    open: Vec<String>,
    phase: usize,
    number: usize,
    /// What was done so far, to be read when the test fails.
    said: String,
}

/// What there is beside the run. Nothing says whose rows are whose where two runs work with one database, so it is one or the other.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    Rows,
    AnotherRun,
}

impl History {
    fn new(beside: Beside) -> Self {
        let world = in_git();
        let world = if beside == Beside::Rows { world.with_rows().begun() } else { world.begun() };
        let other = (beside == Beside::AnotherRun)
            .then(|| world.ic(&["run", "create", "--goal", "beside", "--phases", "x,y,z"]));
        let created = Point { reference: "created".to_owned(), state: world.state(), phase: 0 };
        Self { world, other, points: vec![created], open: Vec::new(), phase: 0, number: 0, said: String::new() }
    }

    fn path(&self, random: &mut Random) -> PathBuf {
        self.world.cli.root().join(FILES[random.place_in(FILES.len())])
    }

    /// Changes a path in some way: its content, its bits, its kind, its name, or that it is there.
    fn change(&mut self, random: &mut Random) {
        let path = self.path(random);
        let remove = |path: &PathBuf| {
            let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
        };
        let parent = path.parent().expect("a parent").to_owned();
        if !parent.is_dir() {
            remove(&parent);
            std::fs::create_dir_all(&parent).expect("a directory");
        }
        self.number += 1;
        match random.below(8) {
            0 => remove(&path),
            1 => {
                remove(&path);
                symlink(format!("to-{}", self.number), &path).expect("a link");
            }
            2 if path.is_file() && !path.is_symlink() => {
                let mode = if random.below(2) == 0 { 0o755 } else { 0o644 };
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
            }
            3 => {
                let to = self.path(random);
                if path.exists() && !to.exists() && to.parent().is_some_and(std::path::Path::is_dir) {
                    std::fs::rename(&path, &to).expect("a new name");
                }
            }
            4 => {
                remove(&path);
                std::fs::create_dir_all(&path).expect("a directory");
                std::fs::write(path.join("within"), format!("{}\n", self.number)).expect("a file");
            }
            _ => {
                if path.is_dir() {
                    remove(&path);
                }
                std::fs::write(&path, format!("content {}\n", self.number)).expect("a file");
            }
        }
    }

    fn point(&mut self, reference: String, state: ProjectState) {
        self.points.retain(|point| point.reference != reference);
        self.points.push(Point { reference, state, phase: self.phase });
    }

    /// One thing that a run does.
    fn deed(&mut self, random: &mut Random) {
        let run = self.world.run.clone();
        self.number += 1;
        let name = format!("n{}", self.number);
        let what = random.below(14);
        write!(self.said, " {what}").expect("a text");
        match what {
            0 | 1 => {
                let state = self.world.state();
                let id = self.world.ic(&["dispatch", "create", &run, "--name", &name]);
                self.world.ic(&["dispatch", "start", &id]);
                self.point(format!("dispatch:{}", &id[id.len() - 8..]), state);
                self.open.push(id);
            }
            2 | 3 => self.end_one(random),
            4 if self.phase + 2 < PHASES.len() => {
                while !self.open.is_empty() {
                    self.end_one(random);
                }
                let state = self.world.state();
                self.world.advance();
                self.point(format!("phase:{}", PHASES[self.phase]), state);
                self.phase += 1;
            }
            5 => {
                let state = self.world.state();
                self.world.ic(&["checkpoint", "create", "--run", &run, "--name", &name]);
                self.point(format!("checkpoint:{name}"), state);
            }
            6 => {
                self.world.commit(&name);
            }
            7 => {
                self.world.git(&["checkout", "-q", "-b", &name]);
            }
            8 => {
                // Of a file whose directory is a link by now git stashes nothing, unless the index knows, and HEAD knows it, too.
                self.world.git(&["add", "--all"]);
                let files = self.world.git(&["ls-tree", "-r", "--name-only", "-z", "HEAD"]);
                let is_link = |directory: &Path| self.world.root().join(directory).is_symlink();
                let is_beyond = |file: &str| Path::new(file).ancestors().skip(1).any(is_link);
                if !files.split('\0').any(is_beyond) {
                    self.world.git(&["stash", "push", "-q", "--include-untracked"]);
                }
            }
            9 => self.world.effect(&name, &[]),
            10 => self.world.task(&name),
            11 => match &self.other {
                Some(other) => drop(self.world.ic(&["dispatch", "create", other, "--name", &name])),
                None => self.undo(random),
            },
            _ => self.change(random),
        }
    }

    fn end_one(&mut self, random: &mut Random) {
        if self.open.is_empty() {
            return;
        }
        let id = self.open.remove(random.place_in(self.open.len()));
        match random.below(3) {
            0 => self.world.ic(&["dispatch", "fail", &id, "--error", "no"]),
            _ => self.world.ic(&["dispatch", "complete", &id]),
        };
    }

    /// Undoes to a point that stands, redoes and undoes again; the run goes on from one of both.
    fn undo(&mut self, random: &mut Random) {
        // A phase is left by going to one before it.
        let is_target = |point: &&Point| !point.reference.starts_with("phase:") || point.phase < self.phase;
        let targets: Vec<&Point> = self.points.iter().filter(is_target).collect();
        let target = targets[random.place_in(targets.len())];
        let (reference, wanted, phase) = (target.reference.clone(), target.state.clone(), target.phase);
        write!(self.said, " [{reference}").expect("a text");
        let before = self.world.state();
        let status = self.world.status();
        // Where the run is back there already, the tree is, too.
        if self.is_back_at(&reference) {
            before.assert_outside_is(&wanted, &format!("{}: back at {reference}", self.said));
            self.said.push_str(" nothing]");
            return;
        }
        self.undo_to(&reference, &wanted, phase, random);
        let now = self.world.state();
        self.redo();
        self.world.state().assert_outside_is(&before, &format!("{}: redone", self.said));
        assert_eq!(self.world.status(), status, "{}", self.said);
        if random.below(2) == 0 {
            self.said.push_str(" redone]");
            // What was cancelled stays so.
            self.open.clear();
            return;
        }
        // An effect that was undone is all that lay after the undo before this one: it does not come back.
        if self.is_back_at(&reference) {
            self.world.state().assert_outside_is(&now, &format!("{}: nothing came back", self.said));
            self.said.push_str(" nothing again]");
            return;
        }
        self.undo_to(&reference, &wanted, phase, random);
        self.world.state().assert_outside_is(&now, &format!("{}: again", self.said));
        self.leave(&reference, phase);
    }

    /// Whether an undo to this point is refused, because the run is there already.
    fn is_back_at(&self, reference: &str) -> bool {
        let look = self.world.cli.run(["undo", reference, "--run", &self.world.run, "--dry-run"]);
        look.code == Some(1) && look.error() == "nothing_to_undo"
    }

    /// What lies after the point is none any more.
    fn leave(&mut self, reference: &str, phase: usize) {
        let at = self.points.iter().position(|point| point.reference == *reference).expect("the point");
        if let Some(gone) = self.points.iter().skip(at + 1).find(|point| point.reference.starts_with("dispatch")) {
            let refused = self.world.cli.refused(["undo", &gone.reference, "--run", &self.world.run, "--yes"]);
            assert_eq!(refused, (Some(1), "point_taken_back".to_owned()), "{}: {}", self.said, gone.reference);
        }
        self.points.truncate(at + 1);
        self.phase = phase;
        self.open.clear();
        self.said.push(']');
    }

    fn undo_to(&mut self, reference: &str, wanted: &ProjectState, phase: usize, random: &mut Random) {
        let run = self.world.run.clone();
        let words = ["undo", reference, "--run", &run, "--json"];
        let plan = self.world.cli.run([&words[..], &["--dry-run"]].concat());
        assert_eq!(plan.code, Some(0), "{}: {plan:?}", self.said);
        let hash = plan.json()["plan_hash"].as_str().expect("a hash").to_owned();
        let deed = [&words[..], &["--expect-plan", &hash, "--yes"]].concat();
        let mut command = self.world.cli.command(&deed);
        // Sometimes it dies in the middle, and is resumed.
        if random.below(3) == 0 {
            command.env("IC_TEST_ABORT_BEFORE", (1 + random.below(300)).to_string());
        }
        let output = command.output().expect("start ic");
        if output.status.signal().is_some() {
            self.said.push_str(" killed");
            if self.world.status().starts_with("rolling_back") {
                self.world.ic(&["rollback", "resume", &run, "--yes"]);
            } else if !self.is_rolled_back(&hash) {
                self.world.ic(&[&words[..], &["--yes"]].concat());
            }
        } else {
            assert_eq!(output.status.code(), Some(0), "{}: {output:?}", self.said);
        }
        self.world.state().assert_outside_is(wanted, &format!("{}: undone to {reference}", self.said));
        assert_eq!(self.world.status(), format!("active@{}", PHASES[phase]), "{}", self.said);
    }

    /// Whether the rollback of this plan was done before its process could say so.
    fn is_rolled_back(&self, hash: &str) -> bool {
        let list = self.world.cli.json(["rollback", "list", &self.world.run, "--json"]);
        let mut all = list.as_array().expect("a list").iter();
        // One that was redone has this plan, too, and is undone.
        all.any(|one| one["plan_hash"] == hash && one["status"] == "done")
    }

    fn redo(&self) {
        let words = ["redo", "--run", &self.world.run, "--without-effects", "--yes", "--json"];
        let outcome = self.world.cli.run(words);
        assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", self.said);
    }
}

fn histories(beside: Beside) {
    let mut random = Random::seeded();
    let (mut histories, mut undone, mut killed) = (0, 0, 0);
    // Of three kinds: a hundred together, and at length two thousand.
    for _ in rounds(if long() { 700 } else { 34 }) {
        let mut history = History::new(beside);
        for _ in 0..(6 + random.place_in(14)) {
            history.deed(&mut random);
        }
        history.undo(&mut random);
        history.undo(&mut random);
        history.world.cli.ok(["events", "verify"]);
        assert_eq!(history.world.cli.json(["health"])["ok"], true, "{}", history.said);
        histories += 1;
        undone += history.said.matches('[').count();
        killed += history.said.matches(" killed").count();
    }
    tell(&format!("{beside:?}: {histories} histories, {undone} undone, redone and undone again, {killed} killed"));
}

#[test]
fn an_undo_to_any_point_gives_what_was_there_and_a_redo_what_was_here() {
    histories(Beside::Nothing);
}

#[test]
fn an_undo_to_any_point_gives_the_rows_that_were_there() {
    histories(Beside::Rows);
}

#[test]
fn an_undo_to_any_point_beside_another_run_gives_what_was_there() {
    histories(Beside::AnotherRun);
}
