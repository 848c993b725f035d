//! kill -9 at every step of the journal, and at random moments: going on ends as if nothing had happened.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ic_testkit::{CliOutcome, ProjectState, Random, TestWorld, long, rounds, tell};

use crate::project::{WHOLE, Work as _, asked};
use crate::story::story_with_rows;

/// A story to be rolled back again and again, and how that ends when nothing disturbs it.
struct Campaign {
    world: TestWorld,
    wanted: ProjectState,
    effects: Vec<String>,
    usual: Duration,
}

impl Campaign {
    fn new() -> Self {
        let world = story_with_rows();
        world.save(&WHOLE);
        let started = Instant::now();
        world.roll_back("a", &[]);
        let usual = started.elapsed();
        let wanted = world.state();
        let effects = world.effects();
        assert_eq!(effects, ["mail", "pay", "book"]);
        assert_eq!(world.status(), "active@a");
        assert_eq!(world.read("README").as_deref(), Some("base\n"));
        assert!(wanted.rows.contains("planned") && wanted.rows.contains("a note after the task"));
        assert!(!wanted.rows.contains("built") && !wanted.rows.contains("mailed"), "{}", wanted.rows);
        Self { world, wanted, effects, usual }
    }

    /// Goes on from wherever the kill left it, and looks at what there is.
    fn converge(&self, when: &str) -> &'static str {
        let world = &self.world;
        let left = "SELECT count(*) FROM rollbacks WHERE status IN ('in_progress', 'stopped')";
        let begun = asked(&world.cli, "SELECT count(*) FROM rollbacks") > 0;
        let how = if asked(&world.cli, left) > 0 {
            assert_eq!(world.status(), "rolling_back@d", "{when}");
            let outcome = world.cli.run(["rollback", "resume", &world.run, "--yes", "--json"]);
            assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
            "resumed"
        } else if begun {
            "done"
        } else {
            assert_eq!(world.status(), "active@d", "{when}");
            world.roll_back("a", &[]);
            "not begun"
        };
        world.state().assert_is(&self.wanted, when);
        assert_eq!(world.effects(), self.effects, "{when}: effects");
        assert_eq!(world.cli.json(["health"])["ok"], true, "{when}");
        world.cli.ok(["events", "verify"]);
        how
    }
}

/// The statements of a rollback, as they were begun.
fn statements(world: &TestWorld) -> Vec<String> {
    let log = world.cli.home().join("log");
    let _ = std::fs::remove_file(&log);
    let words = world.all("a", &["--yes"]);
    let outcome = CliOutcome::of(world.cli.command(words).env("IC_TEST_SQL_LOG", &log));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    std::fs::read_to_string(log).expect("the log").lines().map(str::to_owned).collect()
}

#[test]
fn killed_at_every_step_of_the_journal_it_ends_as_if_undisturbed() {
    let campaign = Campaign::new();
    campaign.world.reset(&WHOLE);
    let all = statements(&campaign.world);
    let is_commit = |n: &usize| all[n - 1] == "COMMIT" || (*n > 1 && all[n - 2] == "COMMIT");
    let points: Vec<usize> = (1..=all.len()).filter(|n| long() || is_commit(n)).collect();
    // In the short form, both sides of every commit of the ledger that a step makes, thinned to what takes seconds.
    let stride = if long() { 1 } else { points.len().div_ceil(16) };
    let mut resumed = 0;
    for n in points.iter().step_by(stride) {
        campaign.world.reset(&WHOLE);
        let words = campaign.world.all("a", &["--yes"]);
        let mut command = campaign.world.cli.command(words);
        let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        assert!(output.status.signal().is_some(), "before {n}: {output:?}");
        let when = format!("aborted before statement {n} of {}: {}", all.len(), all[n - 1]);
        resumed += usize::from(campaign.converge(&when) == "resumed");
    }
    tell(&format!("{} statements, {} points, {resumed} resumed", all.len(), points.len().div_ceil(stride)));
    assert!(resumed > 5, "only {resumed} were aborted in the midst");
}

#[test]
fn killed_at_any_moment_it_ends_as_if_undisturbed() {
    let campaign = Campaign::new();
    let mut random = Random::seeded();
    let micros = u64::try_from(campaign.usual.as_micros()).expect("microseconds");
    let mut resumed = 0;
    for round in rounds(15) {
        campaign.world.reset(&WHOLE);
        let words = campaign.world.all("a", &["--yes"]);
        let mut command = campaign.world.cli.command(words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
        let wait = Duration::from_micros(micros / 4 + random.below(micros));
        std::thread::sleep(wait);
        // It fails if the call has ended by itself.
        let _ = child.kill();
        child.wait().expect("wait for ic");
        // Every third resume is killed too.
        if round % 3 == 0 {
            let resume = ["rollback", "resume", &campaign.world.run, "--yes"];
            let mut child = campaign
                .world
                .cli
                .command(resume)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("start ic");
            std::thread::sleep(Duration::from_micros(random.below(micros)));
            let _ = child.kill();
            child.wait().expect("wait for ic");
        }
        let how = campaign.converge(&format!("round {round}, killed after {wait:?}"));
        resumed += usize::from(how == "resumed");
    }
    tell(&format!("{resumed} resumed"));
}

#[test]
fn a_killed_rollback_can_be_given_up() {
    let campaign = Campaign::new();
    campaign.world.reset(&WHOLE);
    let before = campaign.world.state();
    let all = statements(&campaign.world);
    let commits: Vec<usize> = (2..=all.len()).filter(|n| all[n - 2] == "COMMIT").collect();
    let stride = if long() { 1 } else { commits.len().div_ceil(9) };
    let mut given_up = 0;
    for n in commits.iter().step_by(stride) {
        campaign.world.reset(&WHOLE);
        let words = campaign.world.all("a", &["--yes"]);
        let mut command = campaign.world.cli.command(words);
        let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
        assert!(output.status.signal().is_some(), "before {n}: {output:?}");
        if campaign.world.status() != "rolling_back@d" {
            continue;
        }
        let when = format!("aborted before statement {n} of {}: {}", all.len(), all[n - 1]);
        let outcome = campaign.world.cli.run(["rollback", "abort", &campaign.world.run, "--yes", "--json"]);
        assert_eq!(outcome.code, Some(0), "{when}: {outcome:?}");
        campaign.world.state().assert_outside_is(&before, &when);
        assert_eq!(campaign.world.status(), "active@d", "{when}");
        given_up += 1;
        // What is left of it is rolled back like anything else.
        campaign.world.roll_back("a", &[]);
        campaign.world.state().assert_outside_is(&campaign.wanted, &when);
        assert_eq!(campaign.world.effects(), campaign.effects, "{when}: effects");
    }
    tell(&format!("{given_up} aborted"));
    assert!(given_up > 3, "only {given_up} were aborted");
}
