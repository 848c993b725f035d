//! The rollback of a workflow is one like any other: with its rows, undone and made again, aborted, and refused by the same rules.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use ic_testkit::{ProjectState, Terminal, TestWorld, long, tell, wait_for};
use serde_json::{Value, json};

use crate::interrupted::start;
use crate::project::{WHOLE, in_git};
use crate::rows::Rows as _;

/// Two steps that change files, commit and have an effect outside; the second waits for `../go`, and fails if there is `../bad`.
const FLOW: &str = "name: flow
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt; git add one.txt; git commit -qm one', compensate: {shell: 'echo one >> ../undone'}}
  - id: two
    phase: second
    run: 'echo 2 > two.txt; rm kept; touch ../held; until test -e ../go; do sleep 0.02; done; test ! -e ../bad'
    compensate: {shell: 'echo two >> ../undone; test ! -e ../stuck'}
";

fn outside(world: &TestWorld, name: &str) -> std::path::PathBuf {
    world.cli.root().join("..").join(name)
}

fn put(world: &TestWorld, name: &str) {
    std::fs::write(outside(world, name), "").expect("a file outside");
}

fn undone(world: &TestWorld) -> Vec<String> {
    let text = std::fs::read_to_string(outside(world, "undone")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A project with the workflow; `go`: nothing holds it.
fn project(world: TestWorld, go: bool) -> TestWorld {
    world.write("flow.yaml", FLOW);
    world.write("kept", "as it was\n");
    world.commit("base");
    for (key, value) in [("user.name", "n"), ("user.email", "e@x")] {
        world.git(&["config", key, value]);
    }
    if go {
        put(&world, "go");
    }
    world
}

fn run_of(world: TestWorld) -> TestWorld {
    let run = world.cli.json(["run", "list", "--json"])[0]["id"].as_str().expect("a run").to_owned();
    world.with_run(run)
}

/// The workflow, run to its end.
fn ran() -> TestWorld {
    let world = project(in_git(), true);
    world.ic(&["workflow", "run", "flow.yaml"]);
    run_of(world)
}

fn shown(world: &TestWorld) -> (String, Vec<String>) {
    let shown = world.cli.json(["workflow", "show", &world.run, "--json"]);
    let steps = shown["steps"].as_array().expect("steps").iter();
    let states = steps.map(|step| step["status"].as_str().expect("a state").to_owned());
    (shown["status"].as_str().expect("a status").to_owned(), states.collect())
}

fn states(status: &str, steps: [&str; 2]) -> (String, Vec<String>) {
    (status.to_owned(), steps.map(str::to_owned).to_vec())
}

fn newest(world: &TestWorld) -> Value {
    world.cli.json(["rollback", "list", &world.run, "--json"])[0].clone()
}

#[test]
fn it_is_undone_and_made_again_with_files_commits_and_steps() {
    let world = ran();
    let after = world.state();
    world.ic(&["workflow", "rollback", &world.run, "--yes"]);
    let before = world.state();
    assert_eq!((world.read("kept").as_deref(), world.read("one.txt")), (Some("as it was\n"), None));
    assert_eq!(shown(&world), states("rolled_back", ["rolled_back"; 2]));
    let layers = json!(["workflow", "effects", "files", "git"]);
    assert_eq!((&newest(&world)["layers"], &newest(&world)["point"]), (&layers, &json!("step:one")));

    // Effects were undone, which no undo makes again: that is a decision.
    assert_eq!(world.cli.refused(["redo", "--run", &world.run, "--yes"]), (Some(1), "effects_undone".to_owned()));
    world.ic(&["redo", "--run", &world.run, "--without-effects", "--yes"]);
    world.state().assert_outside_is(&after, "undone");
    assert_eq!(shown(&world).0, "completed");
    assert_eq!(world.status(), "completed@done");
    assert_eq!(undone(&world), ["two", "one"]);

    // Made again, it ends where it ended, and no effect is undone a second time.
    world.ic(&["workflow", "rollback", &world.run, "--yes"]);
    world.state().assert_outside_is(&before, "made again");
    assert_eq!(undone(&world), ["two", "one"]);
    world.ic(&["workflow", "resume", &world.run]);
    assert_eq!(shown(&world), states("completed", ["succeeded"; 2]));
    world.cli.ok(["events", "verify"]);
}

#[test]
fn one_that_stopped_is_aborted_and_the_workflow_is_where_it_was() {
    let world = ran();
    let after = world.state();
    put(&world, "stuck");
    let words = ["workflow", "rollback", &world.run, "--yes", "--json"];
    let stopped = world.cli.run(words);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let report = stopped.json();
    let hint = report["rollback"]["hint"].as_str().expect("a hint");
    assert_eq!(shown(&world).0, "rolling_back");
    assert_eq!(world.cli.refused(["run", "advance", &world.run]).1, "rolling_back");
    let abort = hint.rsplit("ic ").next().expect("a command");
    world.ic(&abort.split_whitespace().collect::<Vec<_>>());
    world.state().assert_outside_is(&after, "aborted");
    assert_eq!(shown(&world).0, "completed");
    std::fs::remove_file(outside(&world, "stuck")).expect("mend it");
    world.ic(&words);
    assert_eq!(shown(&world).0, "rolled_back");
    assert_eq!(world.read("kept").as_deref(), Some("as it was\n"));
}

fn killed_before(world: &TestWorld, words: &[&str], n: usize) -> bool {
    let mut command = world.cli.command(words);
    let output = command.env("IC_TEST_ABORT_BEFORE", n.to_string()).output().expect("start ic");
    assert!(output.status.success() || output.status.signal().is_some(), "before {n}: {output:?}");
    output.status.signal().is_some()
}

/// Killed before any statement, or before one in 23 in the short form, it is shown as not finished, aborted, and begun anew.
#[test]
fn killed_before_any_statement_it_is_shown_aborted_and_made_again() {
    let world = ran();
    world.save(&WHOLE);
    let (after, stride) = (world.state(), if long() { 1 } else { 23 });
    let words = ["workflow", "rollback", &world.run, "--yes"];
    let mut ended: Option<ProjectState> = None;
    let mut aborted = 0;
    for n in (1..2_000).step_by(stride) {
        let is_killed = killed_before(&world, &words, n);
        let when = format!("killed before statement {n}");
        let (status, _) = shown(&world);
        match (is_killed, status.as_str()) {
            (true, "rolling_back") => {
                world.ic(&["rollback", "abort", &world.run, "--yes"]);
                world.state().assert_outside_is(&after, &when);
                assert_eq!(shown(&world).0, "completed", "{when}");
                world.ic(&words);
                aborted += 1;
            }
            (true, "completed") => {
                world.state().assert_is(&after, &when);
                world.ic(&words);
            }
            (_, "rolled_back") => {}
            other => panic!("{when}: {other:?}"),
        }
        assert_eq!(shown(&world).0, "rolled_back", "{when}");
        let now = world.state();
        now.assert_outside_is(ended.get_or_insert_with(|| now.clone()), &when);
        world.cli.ok(["events", "verify"]);
        if !is_killed {
            tell(&format!("{n} statements, {aborted} aborted"));
            assert!(aborted > 3, "only {aborted} were aborted");
            return;
        }
        let _ = std::fs::remove_file(outside(&world, "undone"));
        world.reset(&WHOLE);
    }
    panic!("it never ended");
}

/// A workflow that is held in its second step.
fn held(world: TestWorld) -> (TestWorld, Child) {
    let child = start(&world, &["workflow", "run", "flow.yaml", "--on-failure", "rollback", "--json"]);
    wait_for("the second step", || outside(&world, "held").exists());
    (run_of(world), child)
}

#[test]
fn rows_that_its_steps_wrote_go_too() {
    let world = project(in_git().with_rows(), false);
    world.task("from before");
    let before = world.rows();
    let (world, child) = held(world);
    world.task("of the step");
    assert_ne!(world.rows(), before);
    put(&world, "bad");
    put(&world, "go");
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report: Value = serde_json::from_str(&said).expect("a report");
    assert_eq!(report["status"], "rolled_back", "{report}");
    assert_eq!(report["rollback"]["data"]["affected_row_counts"]["tasks"], 1, "{report}");
    assert_eq!(world.rows(), before);
    let with_rows = json!(["workflow", "effects", "files", "git", "data"]);
    assert_eq!(newest(&world)["layers"], with_rows);
    // With all it took they come back; the effect of the first step stays undone, and is shown so.
    world.ic(&["redo", "--run", &world.run, "--without-effects", "--yes"]);
    assert_ne!(world.rows(), before);
    assert_eq!(shown(&world), states("stopped", ["rolled_back", "failed"]));
}

#[test]
fn it_is_refused_by_the_same_rules_and_each_has_its_flag() {
    let world = ran();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    let sha = world.git(&["rev-parse", "HEAD"]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "two.txt", "--commit", &sha]);
    let (dump, after) = (world.cli.dump(), world.state());
    let preview = |flags: &[&str]| {
        let words = ["workflow", "rollback", &world.run, "--dry-run", "--json"];
        let outcome = world.cli.run([&words[..], flags].concat());
        let plan = outcome.json();
        assert_eq!(outcome.code, Some(i32::from(plan["plan_hash"].is_null())), "{outcome:?}");
        let all = plan["refusals"].as_array().cloned().unwrap_or_default();
        let flags: Vec<String> = all.iter().map(|one| one["flag"].as_str().expect("a flag").to_owned()).collect();
        (flags, plan)
    };
    let (flags, plan) = preview(&[]);
    assert_eq!(flags, ["--force-commits", "--force-files"], "{plan}");
    assert!(plan["files"]["changes"].as_array().is_some_and(|all| !all.is_empty()), "{plan}");
    for (flag, left) in [("--force-files", "foreign_commits"), ("--force-commits", "file_conflict")] {
        assert_eq!(preview(&[flag]).1["refusal"]["code"], left);
        let refused = world.cli.refused(["workflow", "rollback", &world.run, flag, "--yes"]);
        assert_eq!(refused, (Some(1), left.to_owned()));
    }
    // Not asked for a yes that would not help.
    let unsure = world.cli.run(["workflow", "rollback", &world.run, "--json"]);
    assert_eq!((unsure.code, &unsure.json()["refusal"]["code"]), (Some(1), &json!("foreign_commits")));
    assert_eq!(world.cli.dump(), dump);
    world.state().assert_is(&after, "refused");
    let both = ["--force-files", "--force-commits"];
    let hash = preview(&both).1["plan_hash"].as_str().expect("a hash").to_owned();
    let words = ["workflow", "rollback", &world.run, "--expect-plan", &hash, "--yes"];
    world.ic(&[&words[..], &both].concat());
    assert_eq!((world.read("two.txt"), shown(&world).0), (None, "rolled_back".to_owned()));
}

#[test]
fn partial_is_refused_where_later_steps_began() {
    let world = in_git();
    world.write("flow.yaml", "name: flow\nsteps:\n  - {id: bad, phase: p, run: 'echo 1 > bad.txt; exit 1'}\n  - {id: free, run: 'echo 2 > free.txt'}\n");
    world.commit("base");
    assert_eq!(world.cli.run(["workflow", "run", "flow.yaml", "--on-failure", "continue"]).code, Some(1));
    let world = run_of(world);
    let words = ["workflow", "rollback", &world.run, "--strategy", "partial", "--yes"];
    let refused = world.cli.run(words);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "steps_overlap"), "{refused:?}");
    assert_eq!(world.read("free.txt").as_deref(), Some("2\n"));
    // What the hint names works as typed.
    let hint = refused.stderr.split("with them: ic ").nth(1).expect("a command");
    let hint = hint.split(';').next().expect("a command");
    world.ic(&hint.split_whitespace().collect::<Vec<_>>());
    assert_eq!((world.read("bad.txt"), world.read("free.txt")), (None, None));
}

#[test]
fn ctrl_c_at_the_question_of_a_rollback_ends_it() {
    let world = ran();
    let before = world.state();
    let call = world.cli.command(["workflow", "rollback", &world.run, "--format", "text"]);
    let Some(mut terminal) = Terminal::open(&call, world.cli.root()) else { return };
    terminal.sees("Roll back to before which checkpoint? [number]");
    terminal.types("2\n");
    terminal.sees("Roll it back? [y/N]");
    terminal.types("\u{3}y\n");
    let (code, said) = terminal.ends();
    assert_eq!(code, Some(130), "{said}");
    world.state().assert_is(&before, "no answer");
}

#[test]
fn on_a_terminal_nothing_else_is_done_than_what_was_shown() {
    let world = ran();
    let call = world.cli.command(["workflow", "rollback", &world.run, "--format", "text"]);
    let Some(mut terminal) = Terminal::open(&call, world.cli.root()) else { return };
    terminal.sees("Roll back to before which checkpoint? [number]");
    terminal.types("2\n");
    terminal.sees("Roll it back? [y/N]");
    world.remove("two.txt");
    let now = world.state();
    terminal.types("y\n");
    let (code, said) = terminal.ends();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("The plan is not the expected one"), "{said}");
    world.state().assert_is(&now, "another plan");
}
