//! Every verb of a rollback is aborted before each of its statements, on the ledger and on the state database: what is left can be
//! gone on with, and ends as if undisturbed.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, ProjectState, Random, TestWorld, long, rounds, tell};

use crate::project::{WHOLE, Work as _, asked, in_git};
use crate::story::story_with_rows;

/// Where faults are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    Ledger,
    StateDatabase,
}

impl Counted {
    fn variable(self) -> &'static str {
        match self {
            Self::Ledger => "IC_TEST_ABORT_BEFORE",
            Self::StateDatabase => "IC_TEST_REWIND_ABORT_BEFORE",
        }
    }
}

/// A world that stands before a call, and how it is when the call was not disturbed.
struct Campaign {
    world: TestWorld,
    words: Vec<String>,
    wanted: ProjectState,
    status: String,
    effects: Vec<String>,
    usual: Duration,
}

impl Campaign {
    /// Saves the world in its state of now, and makes the call once.
    fn of(world: TestWorld, words: &[&str]) -> Self {
        world.save(&WHOLE);
        let started = Instant::now();
        let outcome = world.cli.run(words);
        let usual = started.elapsed();
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
        Self {
            wanted: world.state(),
            status: world.status(),
            effects: world.effects(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            usual,
            world,
        }
    }

    /// Aborts the call before its `n`-th statement of a fresh world. False if it had fewer statements.
    fn abort(&self, counted: Counted, n: usize) -> bool {
        self.world.reset(&WHOLE);
        let mut command = self.world.cli.command(&self.words);
        let outcome = command.env(counted.variable(), n.to_string()).output().expect("start ic");
        let ended = outcome.status.code() == Some(0) || outcome.status.signal().is_some();
        assert!(ended, "before {n}: {outcome:?}");
        outcome.status.signal().is_some()
    }

    /// Aborts the call before every statement, in the short form before one in `stride`; `go_on` then leads to the end.
    fn everywhere(&self, stride: u64, go_on: impl Fn(&TestWorld, usize, &str)) {
        let mut random = Random::seeded();
        for counted in [Counted::Ledger, Counted::StateDatabase] {
            let (mut n, mut points) = (1, 0);
            while self.abort(counted, n) {
                let when = format!("{:?} aborted before statement {n} of {counted:?}", &self.words[..2]);
                go_on(&self.world, n, &when);
                self.assert_ended(&when);
                points += 1;
                assert!(n < 3_000, "it never ends");
                n += if long() { 1 } else { 1 + usize::try_from(random.below(2 * stride)).expect("a stride") };
            }
            tell(&format!("{:?}: {points} of {n} statements of {counted:?}", &self.words[..2]));
            assert!(points > 0, "{counted:?}");
        }
    }

    fn assert_ended(&self, when: &str) {
        let world = &self.world;
        assert_eq!(world.status(), self.status, "{when}");
        world.state().assert_is(&self.wanted, when);
        assert_eq!(world.effects(), self.effects, "{when}: effects");
        assert_eq!(world.cli.json(["health"])["ok"], true, "{when}");
        world.cli.ok(["events", "verify"]);
    }
}

/// Where the newest rollback of the run stands: its status and its course.
fn stands(world: &TestWorld) -> (String, String) {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    let id = list.as_array().and_then(|all| all.last()).expect("a rollback")["id"].clone();
    let shown = world.cli.json(["rollback", "show", id.as_str().expect("an id"), "--json"]);
    let text = |key: &str| shown[key].as_str().expect("text").to_owned();
    (text("status"), text("course"))
}

fn call(world: &TestWorld, words: &[&str], when: &str) {
    let outcome = world.cli.run(words);
    assert_eq!(outcome.code, Some(0), "{when}: {words:?}: {outcome:?}");
}

fn id_of_last(world: &TestWorld) -> String {
    let list = world.cli.json(["rollback", "list", &world.run, "--json"]);
    list.as_array().and_then(|all| all.last()).expect("a rollback")["id"].as_str().expect("an id").to_owned()
}

/// A rollback that stopped at its first effect, which is repaired since: everything is still to be done.
fn stopped_at_the_beginning() -> TestWorld {
    let world = story_with_rows();
    let home = world.cli.home().display().to_string();
    world.effect("last", &[&format!("test -e {home}/keys/repaired || exit 3")]);
    let mut words = world.all("a", &[]);
    words.push("--yes");
    assert_eq!(world.cli.run(words).code, Some(4));
    std::fs::create_dir(world.cli.home().join("keys/repaired")).expect("a mark");
    world
}

/// A rollback that died just before its end: everything outside of the ledger is done.
pub(crate) fn dead_before_the_end() -> TestWorld {
    let world = story_with_rows();
    dead_before(&world, &world.all("a", &["--yes"]), 1);
    assert_eq!(stands(&world), ("in_progress".to_owned(), "forward".to_owned()));
    world
}

/// Lets a call die before one of its transactions is ended, counted from the last.
pub(crate) fn dead_before(world: &TestWorld, words: &[&str], from_the_last: usize) {
    world.save(&WHOLE);
    let log = world.cli.home().join("log");
    let outcome = CliOutcome::of(world.cli.command(words).env("IC_TEST_SQL_LOG", &log));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let statements = std::fs::read_to_string(&log).expect("the log");
    std::fs::remove_file(log).expect("remove the log");
    let ends: Vec<usize> =
        statements.lines().enumerate().filter(|(_, line)| *line == "COMMIT").map(|(at, _)| at).collect();
    let at = ends[ends.len() - from_the_last];
    world.reset(&WHOLE);
    let mut command = world.cli.command(words);
    let output = command.env("IC_TEST_ABORT_BEFORE", (at + 1).to_string()).output().expect("start ic");
    assert!(output.status.signal().is_some(), "{output:?}");
}

#[test]
fn an_aborted_resume_is_resumed() {
    let world = stopped_at_the_beginning();
    let run = world.run.clone();
    let campaign = Campaign::of(world, &["rollback", "resume", &run, "--yes", "--json"]);
    assert_eq!(campaign.status, "active@a");
    campaign.everywhere(18, |world, _, when| {
        if stands(world).0 != "done" {
            call(world, &["rollback", "resume", &run, "--yes", "--json"], when);
        }
    });
}

#[test]
fn a_rollback_aborted_in_the_state_database_is_resumed() {
    let world = story_with_rows();
    let run = world.run.clone();
    let words: Vec<String> = world.all("a", &["--yes"]).iter().map(|word| (*word).to_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let campaign = Campaign::of(world, &words);
    let mut n = 1;
    while campaign.abort(Counted::StateDatabase, n) {
        let when = format!("aborted before statement {n} of the state database");
        if campaign.world.status() == "active@d" {
            call(&campaign.world, &words, &when);
        } else if stands(&campaign.world).0 != "done" {
            call(&campaign.world, &["rollback", "resume", &run, "--yes"], &when);
        }
        campaign.assert_ended(&when);
        n += if long() { 1 } else { 6 };
    }
    tell(&format!("{n} statements of the state database"));
    assert!(n > 40, "{n}");
}

#[test]
fn an_aborted_abandonment_is_finished_by_itself_or_by_resume() {
    let world = dead_before_the_end();
    let run = world.run.clone();
    let campaign = Campaign::of(world, &["rollback", "abort", &run, "--yes", "--json"]);
    assert_eq!(campaign.status, "active@d");
    campaign.everywhere(18, |world, n, when| {
        let (status, course) = stands(world);
        match (status.as_str(), course.as_str()) {
            ("aborted", _) => {}
            (_, "abort") if n % 2 == 0 => call(world, &["rollback", "resume", &run, "--yes"], when),
            _ => call(world, &["rollback", "abort", &run, "--yes"], when),
        }
    });
}

/// A rollback that is done.
fn done() -> (TestWorld, String) {
    let world = story_with_rows();
    world.roll_back("a", &[]);
    let id = id_of_last(&world);
    (world, id)
}

#[test]
fn an_aborted_undo_is_finished_by_itself_or_by_resume() {
    let (world, id) = done();
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let campaign = Campaign::of(world, &undo);
    assert_eq!(campaign.status, "active@d");
    campaign.everywhere(18, |world, n, when| {
        let (status, course) = stands(world);
        match (status.as_str(), course.as_str()) {
            ("undone", _) => {}
            ("in_progress", "undo") => {
                assert_eq!(world.status(), "rolling_back@a", "{when}");
                let refused = world.cli.refused(["run", "advance", &world.run]);
                assert_eq!(refused, (Some(1), "rolling_back".to_owned()), "{when}");
                let dump = world.cli.dump();
                let preview = world.cli.run(["redo", &id, "--without-effects", "--dry-run", "--json"]);
                // During a restore it is not known what is left of it.
                assert!(preview.code == Some(0) || preview.error() == "file_conflict", "{when}: {preview:?}");
                assert_eq!(world.cli.dump(), dump, "{when}: previewed");
                let resume = ["rollback", "resume", &id, "--yes", "--json"];
                call(world, if n % 2 == 0 { &resume } else { &undo }, when);
            }
            other => {
                assert_eq!(other, ("done", "forward"), "{when}");
                assert_eq!(world.status(), "active@a", "{when}");
                call(world, &undo, when);
            }
        }
    });
}

#[test]
fn an_aborted_undo_can_be_given_up() {
    let (world, id) = done();
    let rolled_back = world.state();
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let campaign = Campaign::of(world, &undo);
    let (mut n, mut given_up) = (1, 0);
    while campaign.abort(Counted::Ledger, n) {
        let world = &campaign.world;
        let when = format!("undo aborted before statement {n}");
        let (status, course) = stands(world);
        if status == "in_progress" && course == "undo" {
            // Giving it up is looked at; then it is aborted, too, and gone on with.
            let dump = world.cli.dump();
            call(world, &["rollback", "abort", &id, "--dry-run"], &when);
            assert_eq!(world.cli.dump(), dump, "{when}: previewed");
            let mut abandon = world.cli.command(["rollback", "abort", &id, "--yes"]);
            let abort = (n * 7 % 300).to_string();
            let _ = abandon.env("IC_TEST_ABORT_BEFORE", abort).output().expect("start ic");
            match stands(world).0.as_str() {
                "done" => {}
                _ => call(world, &["rollback", "abort", &id, "--yes", "--json"], &when),
            }
            assert_eq!(stands(world).0, "done", "{when}");
            assert_eq!(world.status(), "active@a", "{when}");
            world.state().assert_is(&rolled_back, &when);
            given_up += 1;
            // It is as good as before: it can be undone, and the run goes on.
            call(world, &undo, &when);
            campaign.assert_ended(&when);
        }
        n += if long() { 1 } else { 23 };
    }
    tell(&format!("{given_up} aborted"));
    assert!(given_up > 3, "{given_up} of {n}");
}

#[test]
fn an_undo_killed_at_any_moment_is_finished() {
    let (world, id) = done();
    let undo = ["redo", &id, "--without-effects", "--yes", "--json"];
    let campaign = Campaign::of(world, &undo);
    let mut random = Random::seeded();
    let micros = u64::try_from(campaign.usual.as_micros()).expect("microseconds");
    for round in rounds(8) {
        campaign.world.reset(&WHOLE);
        let mut command = campaign.world.cli.command(undo);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
        let wait = Duration::from_micros(micros / 4 + random.below(micros));
        std::thread::sleep(wait);
        // It fails if the call has ended by itself.
        let _ = child.kill();
        child.wait().expect("wait for ic");
        let when = format!("round {round}, killed after {wait:?}");
        if stands(&campaign.world).0 != "undone" {
            call(&campaign.world, &undo, &when);
        }
        campaign.assert_ended(&when);
    }
    assert_eq!(asked(&campaign.world.cli, "SELECT count(*) FROM rollbacks"), 1);
}

/// Both attempts at the effects changed one file of the tree. An undo that was killed between them meets its own changes.
#[test]
fn an_aborted_undo_of_effects_that_ran_in_two_goes_is_resumed() {
    let world = in_git().begun();
    world.write("log", "as it was\n");
    world.advance();
    let home = world.cli.home().display().to_string();
    world.effect("first", &[&format!("test -e {home}/repaired || exit 3"), "echo first >> log"]);
    world.effect("second", &["echo second >> log"]);
    world.write("log", "hours of work\n");
    assert_eq!(world.cli.run(world.all("a", &["--yes"])).code, Some(4));
    std::fs::write(world.cli.home().join("repaired"), "").expect("repair it");
    world.ic(&["rollback", "resume", &world.run, "--yes"]);
    let id = id_of_last(&world);
    let campaign = Campaign::of(world, &["redo", &id, "--without-effects", "--yes", "--json"]);
    assert_eq!(campaign.world.read("log").as_deref(), Some("hours of work\n"));
    let (mut n, mut between) = (1, 0);
    while campaign.abort(Counted::Ledger, n) {
        let (world, when) = (&campaign.world, format!("aborted before statement {n}"));
        // The second go is undone, and the first one is not.
        between += usize::from(world.read("log").as_deref() == Some("hours of work\nsecond\n"));
        match stands(world) {
            (status, _) if status == "undone" => {}
            (_, course) if course == "undo" => call(world, &["rollback", "resume", &id, "--yes"], &when),
            _ => call(world, &["redo", &id, "--without-effects", "--yes"], &when),
        }
        campaign.assert_ended(&when);
        n += if long() { 1 } else { 13 };
    }
    tell(&format!("{between} deaths between two goes, in {n} statements"));
    assert!(between > 0, "it never died between two goes, in {n} statements");
}
