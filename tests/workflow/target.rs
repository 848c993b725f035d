//! Where a rollback of a workflow leads: to the tree, the branch and the index from before its first step, whatever became of it in
//! between: stopped, mended, resumed, killed, its steps listed in any order.

use std::collections::BTreeMap;
use std::path::Path;

use ic_testkit::{Random, TestWorld, rounds};

use crate::calls::Calls as _;
use crate::flow::Flow as _;
use crate::project::with_checkpoints;

/// Rolls back by itself when a step fails.
const AUTO: &str = "rollback:\n  on-failure: {prompt: false, auto-rollback: true}\n";

/// Everything that a rollback of a workflow must restore.
#[derive(Debug, PartialEq, Eq)]
struct State {
    files: BTreeMap<String, String>,
    git: String,
}

fn files(directory: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).expect("a directory").filter_map(Result::ok) {
        let name = entry.file_name().into_string().expect("a name");
        let path = format!("{below}{name}");
        if [".git", ".ic", ".ic.yaml", "flow.yaml"].contains(&path.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path, std::fs::read_to_string(entry.path()).expect("a file"));
        }
    }
}

fn state(world: &TestWorld) -> State {
    let mut found = BTreeMap::new();
    files(world.cli.root(), "", &mut found);
    let git = [
        world.git(&["symbolic-ref", "HEAD"]),
        world.git(&["for-each-ref", "refs/heads"]),
        world.git(&["ls-files", "-s"]),
        world.git(&["status", "--porcelain", "--", "."]),
    ];
    State { files: found, git: git.concat() }
}

/// A repository with a commit, a change that is not committed, and a ledger.
fn repository() -> TestWorld {
    let world = with_checkpoints();
    world.git(&["init", "-q", "-b", "main"]);
    world.write(".gitignore", "flow.yaml\n.ic.yaml\n.ic/\n");
    world.write("app", "one\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "one"]);
    world.write("app", "one, and a change of mine\n");
    world
}

/// A step that commits a file, moves a branch, and leaves another file.
fn commits(id: &str, needs: &str) -> String {
    format!(
        "{{id: {id}, needs: [{needs}], compensate: skip, run: 'echo {id} > {id}.txt; git add {id}.txt; \
         git -c user.name=a -c user.email=a@e commit -qm {id}; git branch {id}; echo left > {id}.left'}}"
    )
}

const FAILS: &str = "compensate: skip, run: 'echo tried >> tries; test -e OUT/mended'}";

fn is_back(world: &TestWorld, before: &State, report: &serde_json::Value) {
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(state(world), *before, "{report}");
}

#[test]
fn stopped_resumed_failed_again_and_rolled_back_by_the_same_process() {
    let world = repository();
    let before = state(&world);
    world.steps(&[&commits("a", ""), &commits("b", "a"), &format!("{{id: c, needs: [b], {FAILS}")]);
    world.report("workflow run flow.yaml --on-failure stop", 1);
    world.write(".ic.yaml", AUTO);
    let report = world.report(&format!("workflow resume {}", world.newest_run()), 1);
    is_back(&world, &before, &report);
}

#[test]
fn stopped_mended_resumed_and_failed_at_a_later_step() {
    for ends in ["workflow resume RUN --on-failure rollback --yes", "workflow rollback RUN --yes"] {
        let world = repository();
        let before = state(&world);
        world.steps(&[
            &commits("a", ""),
            &format!("{{id: b, needs: [a], {FAILS}"),
            &commits("c", "b"),
            "{id: d, needs: [c], compensate: skip, run: 'test -e OUT/never'}",
        ]);
        world.report("workflow run flow.yaml --on-failure stop", 1);
        world.outside.put("mended", "");
        let run = world.newest_run();
        world.report(&format!("workflow resume {run} --on-failure stop"), 1);
        let (call, code) = (ends.replace("RUN", &run), i32::from(ends.contains("resume")));
        is_back(&world, &before, &world.report(&call, code));
    }
}

#[test]
fn killed_in_a_step_resumed_and_rolled_back_by_the_same_process() {
    let world = repository();
    let before = state(&world);
    world.write(".ic.yaml", AUTO);
    world.steps(&[
        &commits("a", ""),
        "{id: b, needs: [a], compensate: {shell: 'ACT undo'}, run: 'ACT do; echo b > b.txt'}",
        "{id: c, needs: [b], compensate: skip, run: 'exit 1'}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-b-before");
    world.outside.remove("held-do-b-before");
    let report = world.report(&format!("workflow resume {} --yes", world.newest_run()), 1);
    is_back(&world, &before, &report);
    // Killed before the first step was done at all.
    let world = repository();
    let before = state(&world);
    world.write(".ic.yaml", AUTO);
    world.steps(&[
        "{id: a, compensate: {shell: 'ACT undo'}, run: 'echo a > a.txt; ACT do'}",
        &commits("b", "a"),
        "{id: c, needs: [b], compensate: skip, run: 'exit 1'}",
    ]);
    world.kill_at("workflow run flow.yaml", "do-a-before");
    world.outside.remove("held-do-a-before");
    let report = world.report(&format!("workflow resume {} --yes", world.newest_run()), 1);
    is_back(&world, &before, &report);
}

#[test]
fn steps_that_are_not_listed_in_the_order_of_their_execution() {
    for call in ["workflow run flow.yaml --on-failure rollback", "workflow run flow.yaml --on-failure stop"] {
        let world = repository();
        let before = state(&world);
        world.steps(&[&commits("b", "a"), "{id: c, needs: [b], compensate: skip, run: 'exit 1'}", &commits("a", "")]);
        let report = world.report(call, 1);
        let report = match report["status"].as_str() {
            Some("stopped") => world.report(&format!("workflow rollback {} --yes", world.newest_run()), 0),
            _ => report,
        };
        is_back(&world, &before, &report);
    }
}

#[test]
fn steps_that_run_at_the_same_time() {
    let world = repository();
    let before = state(&world);
    world.steps(&[
        "{id: d, needs: [b, c], compensate: skip, run: 'exit 1'}",
        "{id: c, needs: [a], compensate: skip, run: 'echo c > c.txt'}",
        "{id: b, needs: [a], compensate: skip, run: 'echo b > b.txt'}",
        &commits("a", ""),
    ]);
    let report = world.report("workflow run flow.yaml --on-failure rollback --jobs 3", 1);
    is_back(&world, &before, &report);
}

#[test]
fn of_the_failed_step_alone() {
    let world = repository();
    world.steps(&[
        "{id: c, needs: [b], compensate: skip, run: 'echo x > c.txt; exit 1'}",
        &commits("b", "a"),
        &commits("a", ""),
    ]);
    world.report("workflow run flow.yaml --on-failure stop", 1);
    assert_eq!(world.text("c.txt"), "x\n");
    world.report(&format!("workflow rollback {} --strategy partial --yes", world.newest_run()), 0);
    assert_eq!((world.text("c.txt"), world.text("b.txt")), (String::new(), "b\n".to_owned()));
    assert_eq!(world.git(&["log", "--format=%s"]), "b\na\none");
}

/// A chain of commits whose steps stand in the file as chance has it; which step fails, how often it is stopped and resumed, and
/// what ends it, too.
#[test]
fn whatever_order_and_however_often_it_is_resumed() {
    let mut random = Random::seeded();
    for _ in rounds(4) {
        let world = repository();
        let before = state(&world);
        let length = 2 + random.place_in(3);
        let mut lines: Vec<String> = (0..length)
            .map(|at| {
                let needs = if at == 0 { String::new() } else { format!("s{}", at - 1) };
                let id = format!("s{at}");
                let gate = format!("echo tried >> tries; test -e OUT/open-{at} || exit 1; echo {id} > {id}.txt");
                commits(&id, &needs).replace(&format!("echo {id} > {id}.txt"), &gate)
            })
            .collect();
        for at in (1..lines.len()).rev() {
            lines.swap(at, random.place_in(at + 1));
        }
        world.steps(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let fails = random.place_in(length);
        let mut call = "workflow run flow.yaml --on-failure stop".to_owned();
        for at in 0..fails {
            // Each of them stops it once, or lets it pass at once.
            if random.below(2) == 0 {
                world.report(&call, 1);
                call = format!("workflow resume {} --on-failure stop", world.newest_run());
            }
            world.outside.put(&format!("open-{at}"), "");
        }
        let report = if random.below(2) == 0 {
            let asks_nobody = if call.starts_with("workflow resume") { " --yes" } else { "" };
            world.report(&(call.replace("stop", "rollback") + asks_nobody), 1)
        } else {
            world.report(&call, 1);
            world.report(&format!("workflow rollback {} --yes", world.newest_run()), 0)
        };
        is_back(&world, &before, &report);
    }
}

#[test]
fn what_a_rollback_leaves_as_it_is_is_said_beside_that_it_rolled_back() {
    let world = repository();
    world.steps(&["{id: a, compensate: skip, run: 'echo made >> .gitignore; echo 1 > made; echo A > .env; \
        git -c user.name=a -c user.email=a@e commit -qam a; exit 1'}"]);
    let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
    let restored = &report["rollback"]["restored"];
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(restored["skipped"][0]["path"], ".env", "{report}");
    assert_eq!(restored["skipped"][0]["reason"], "secret", "{report}");
    assert_eq!(restored["differs"][0]["path"], "made", "{report}");
    assert_eq!(world.text("made"), "1\n");
    let world = repository();
    world.steps(&["{id: a, compensate: skip, run: 'echo A > .env; echo b > b; exit 1'}"]);
    let said = world.call("workflow run flow.yaml --on-failure rollback --format text").stdout;
    assert!(said.contains("left alone: .env: secret"), "{said}");
    assert_eq!(world.text("b"), "");
    let world = repository();
    world.steps(&["{id: a, compensate: skip, run: 'echo made >> .gitignore; echo 1 > made; exit 1'}"]);
    let said = world.call("workflow run flow.yaml --on-failure rollback --format text").stdout;
    assert!(said.contains("differs: made"), "{said}");
    assert!(said.contains("Rolled back, but for what is named above."), "{said}");
    // Where all is as it was, that it rolled back says everything.
    let world = repository();
    world.steps(&["{id: a, compensate: skip, run: 'echo b > b; exit 1'}"]);
    let said = world.call("workflow run flow.yaml --on-failure rollback --format text").stdout;
    assert!(said.contains("Rolled back. The run"), "{said}");
}

/// A step that makes the same commit whenever it runs, and fails.
const SAME_COMMIT: &str = "{id: a, compensate: skip, run: 'GIT_AUTHOR_DATE=2026-01-02T03:04:05Z \
    GIT_COMMITTER_DATE=2026-01-02T03:04:05Z git -c user.name=a -c user.email=a@e commit -q --allow-empty -m a; exit 1'}";

#[test]
fn the_same_commit_made_again_after_a_rollback_is_rolled_back_again() {
    let world = repository();
    let before = state(&world);
    world.steps(&[SAME_COMMIT]);
    for _ in 0..2 {
        let report = world.report("workflow run flow.yaml --on-failure rollback", 1);
        is_back(&world, &before, &report);
    }
}

#[test]
fn a_rollback_that_is_refused_names_the_way_out() {
    let world = repository();
    world.steps(&[SAME_COMMIT]);
    world.report("workflow run flow.yaml --on-failure stop", 1);
    world.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let outcome = world.call("workflow run flow.yaml --on-failure rollback --format text");
    assert!(outcome.stdout.contains("stopped: The commit"), "{outcome:?}");
    assert!(outcome.stdout.contains("hint: to leave git unchanged: ic workflow rollback"), "{outcome:?}");
    let way = outcome.stdout.lines().find_map(|line| line.split_once("ic workflow rollback ")).expect("a way").1;
    let way = way.split(';').next().expect("a command");
    let done = world.call(&format!("workflow rollback {way}"));
    assert_eq!(done.code, Some(0), "{done:?}");
}
