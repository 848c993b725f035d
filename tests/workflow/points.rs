//! `workflow rollback --id` and `--latest`: what began after a checkpoint is undone, what began before stands; and the list of
//! those checkpoints.

use ic_testkit::{Terminal, TestWorld};
use serde_json::Value;

use crate::calls::Calls as _;
use crate::flow::Flow as _;
use crate::project::with_checkpoints;

/// A step that commits a file, and has an effect outside.
fn step(id: &str, rest: &str) -> String {
    format!(
        "{{id: {id}, {rest}, compensate: {{shell: 'ACT undo'}}, run: 'ACT do; echo {id} > {id}.txt; git add {id}.txt; \
         git -c user.name=a -c user.email=a@e commit -qm {id}'}}"
    )
}

/// A repository whose workflow a -> b -> c -> d came to its end; b and c are of one phase.
fn finished() -> TestWorld {
    let world = with_checkpoints();
    world.git(&["init", "-q", "-b", "main"]);
    world.write(".gitignore", "flow.yaml\n.ic.yaml\n.ic/\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "init"]);
    let steps = [step("a", "phase: one"), step("b", "phase: two"), step("c", "needs: [b]"), step("d", "phase: three")];
    world.steps(&steps.each_ref().map(String::as_str));
    world.report("workflow run flow.yaml", 0);
    world
}

/// The checkpoint from before a step.
fn before(world: &TestWorld, run: &str, step: &str) -> String {
    let list = world.report(&format!("workflow checkpoints {run}"), 0);
    let list = list.as_array().expect("a list");
    let found = list.iter().find(|one| one["step"] == step).unwrap_or_else(|| panic!("{step}: {list:?}"));
    found["id"].as_str().expect("an id").to_owned()
}

fn subjects(world: &TestWorld) -> Vec<String> {
    world.git(&["log", "--reverse", "--format=%s"]).lines().map(str::to_owned).collect()
}

fn files(world: &TestWorld) -> Vec<&'static str> {
    ["a.txt", "b.txt", "c.txt", "d.txt"].into_iter().filter(|name| !world.text(name).is_empty()).collect()
}

/// What was done and undone outside, in order.
fn outside(world: &TestWorld) -> Vec<String> {
    let log = world.outside.text("log");
    let words = log.lines().filter(|line| !line.starts_with("undoing"));
    words.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn states(report: &Value) -> Vec<String> {
    let steps = report["steps"].as_array().expect("steps");
    steps.iter().map(|step| step["status"].as_str().expect("a state").to_owned()).collect()
}

const DONE: [&str; 4] = ["done a", "done b", "done c", "done d"];

#[test]
fn a_point_inside_a_phase_keeps_what_came_before() {
    let world = finished();
    let run = world.newest_run();
    let id = before(&world, &run, "c");
    let plan = world.report(&format!("workflow rollback {run} --id {id} --dry-run"), 0);
    assert_eq!(plan["before_steps"], serde_json::json!(["c"]), "{plan}");
    assert_eq!(plan["effects"]["results"].as_array().map(Vec::len), Some(2), "{plan}");
    let report = world.report(&format!("workflow rollback {run} --id {id} --yes"), 0);
    assert_eq!((&report["status"], &report["rollback"]["to_phase"]), (&"rolled_back".into(), &"two".into()));
    assert_eq!(
        report["rollback"]["compensations"].as_array().map(Vec::len),
        plan["effects"]["results"].as_array().map(Vec::len)
    );
    assert_eq!(report["rollback"]["before_steps"], plan["before_steps"]);
    assert_eq!(files(&world), ["a.txt", "b.txt"]);
    assert_eq!(subjects(&world), ["init", "a", "b"]);
    assert_eq!(outside(&world)[4..], ["undone d", "undone c"]);
    let status = world.report(&format!("run status {run}"), 0);
    assert_eq!((&status["phase"], &status["status"]), (&"two".into(), &"active".into()), "{status}");
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(states(&shown), ["succeeded", "succeeded", "rolled_back", "rolled_back"], "{shown}");
    let marked: Vec<bool> = world
        .report(&format!("dispatch list {run}"), 0)
        .as_array()
        .expect("a list")
        .iter()
        .map(|dispatch| dispatch["rolled_back_by"].is_string())
        .collect();
    assert_eq!(marked.iter().filter(|marked| **marked).count(), 2, "{marked:?}");
    let text = world.call(&format!("workflow show {run} --format text")).stdout;
    assert!(text.contains("is at two again, before the step c."), "{text}");
    // A resume begins there.
    let again = world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(again["status"], "completed");
    assert_eq!(outside(&world)[6..], ["done c", "done d"]);
    assert_eq!(subjects(&world), ["init", "a", "b", "c", "d"]);
    assert_eq!(world.report("events verify", 0)["ok"], true);
}

#[test]
fn after_a_rollback_to_a_point_the_whole_can_be_rolled_back() {
    let world = finished();
    let run = world.newest_run();
    let id = before(&world, &run, "b");
    world.report(&format!("workflow rollback {run} --id {id} --yes"), 0);
    assert_eq!((files(&world), subjects(&world)), (vec!["a.txt"], vec!["init".to_owned(), "a".to_owned()]));
    // What was rolled back is no point any more.
    let refused = world.call(&format!("workflow rollback {run} --id {id} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"));
    let report = world.report(&format!("workflow rollback {run} --yes"), 0);
    assert_eq!((&report["rollback"]["to_phase"], files(&world).len()), (&"one".into(), 0), "{report}");
    assert_eq!(outside(&world)[4..], ["undone d", "undone c", "undone b", "undone a"]);
    assert_eq!(subjects(&world), ["init"]);
}

#[test]
fn the_first_point_is_the_whole_and_the_latest_is_the_last_step() {
    let world = finished();
    let run = world.newest_run();
    world.report(&format!("workflow rollback {run} --latest --yes"), 0);
    assert_eq!(outside(&world)[4..], ["undone d"]);
    assert_eq!(files(&world), ["a.txt", "b.txt", "c.txt"]);
    world.report(&format!("workflow rollback {run} --latest --yes"), 0);
    assert_eq!(outside(&world)[5..], ["undone c"]);
    let id = before(&world, &run, "a");
    let report = world.report(&format!("workflow rollback {run} --id {id} --yes"), 0);
    assert_eq!((&report["rollback"]["to_phase"], files(&world).len()), (&"one".into(), 0), "{report}");
    assert_eq!(outside(&world)[6..], ["undone b", "undone a"]);
}

#[test]
fn a_checkpoint_of_no_step_is_refused() {
    let world = finished();
    let run = world.newest_run();
    let mine = world.call("checkpoint create --name mine").stdout.trim().to_owned();
    let list = world.report(&format!("workflow checkpoints {run}"), 0);
    let of_run = list.as_array().expect("a list").iter().find(|one| one["step"].is_null());
    let of_run = of_run.expect("one from around the steps")["id"].as_str().expect("an id").to_owned();
    for (id, code) in
        [(of_run.as_str(), "invalid_value"), (&mine, "invalid_value"), ("7f3a9c21", "checkpoint_not_found")]
    {
        let refused = world.call(&format!("workflow rollback {run} --id {id} --yes"));
        assert_eq!((refused.code, refused.error().as_str()), (Some(3), code), "{refused:?}");
    }
    for wrong in ["--latest --id 7f3a9c21", "--latest --strategy partial"] {
        assert_eq!(world.call(&format!("workflow rollback {run} {wrong} --yes")).code, Some(3), "{wrong}");
    }
    assert_eq!((outside(&world), files(&world).len()), (DONE.map(str::to_owned).to_vec(), 4));
}

/// Nothing was done since the last rollback: no flag is to blame, and no checkpoint is the wrong one. The hint works as printed.
#[test]
fn after_a_whole_rollback_there_is_no_point_and_the_hint_runs_the_workflow_again() {
    let world = finished();
    let run = world.newest_run();
    let id = before(&world, &run, "b");
    world.report(&format!("workflow rollback {run} --yes"), 0);
    for flag in ["", "--latest", &format!("--id {id}"), "--latest --dry-run", &format!("--id {id} --dry-run")] {
        let refused = world.call(&format!("workflow rollback {run} {flag} --yes"));
        assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_roll_back"), "{flag}: {refused:?}");
        assert!(refused.stderr.contains("has done nothing since it was last rolled back"), "{refused:?}");
    }
    let refused = world.call(&format!("workflow rollback {run} --latest --yes"));
    world.report(&hinted(&refused.stderr, "run it again: ic "), 0);
    assert_eq!(files(&world).len(), 4);
}

/// The command that a hint names after these words.
fn hinted(stderr: &str, before: &str) -> String {
    let hint = stderr.split_once(before).unwrap_or_else(|| panic!("{before}: {stderr}")).1;
    hint.split([';', '"']).next().expect("a command").trim().to_owned()
}

#[test]
fn a_checkpoint_of_no_step_is_answered_with_one_that_can_be_named() {
    let world = finished();
    let run = world.newest_run();
    let mine = world.call("checkpoint create --name mine").stdout.trim().to_owned();
    let refused = world.call(&format!("workflow rollback {run} --id {mine} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"), "{refused:?}");
    world.report(&hinted(&refused.stderr, "to before d: ic "), 0);
    assert_eq!(files(&world), ["a.txt", "b.txt", "c.txt"]);
    // The other one as well, in a pipe.
    world.report(&hinted(&refused.stderr, "to restore the tree alone: ic "), 0);
    assert_eq!(files(&world).len(), 4);
}

#[test]
fn an_undo_that_fails_is_resumed_to_the_same_point() {
    let world = finished();
    let run = world.newest_run();
    let (b, c) = (before(&world, &run, "b"), before(&world, &run, "c"));
    world.outside.put("fail-undo-c", "");
    world.report(&format!("workflow rollback {run} --id {c} --yes"), 4);
    world.outside.remove("fail-undo-c");
    let refused = world.call(&format!("workflow rollback {run} --id {b} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "not_finished"), "{refused:?}");
    let report = world.report(&format!("workflow resume {run} --yes"), 0);
    assert_eq!(report["rollback"]["before_steps"], serde_json::json!(["c"]), "{report}");
    assert_eq!((files(&world), subjects(&world).len()), (vec!["a.txt", "b.txt"], 3));
    assert_eq!(outside(&world)[4..], ["undone d", "undone c"]);
}

#[test]
fn a_step_that_ran_again_after_the_point_is_not_kept() {
    let world = with_checkpoints();
    world.steps(&[
        "{id: a, compensate: {shell: 'ACT undo'}, run: 'test -e OUT/mended; ACT do; echo a > a.txt'}",
        "{id: b, compensate: {shell: 'ACT undo'}, run: 'ACT do; echo b > b.txt'}",
    ]);
    world.report("workflow run flow.yaml --on-failure continue", 1);
    world.outside.put("mended", "");
    let run = world.newest_run();
    world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(outside(&world), ["done b", "done a"]);
    let id = before(&world, &run, "b");
    let refused = world.call(&format!("workflow rollback {run} --id {id} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "steps_overlap"), "{refused:?}");
    assert!(refused.stderr.contains("ic workflow rollback"), "{refused:?}");
    assert_eq!((files(&world), outside(&world).len()), (vec!["a.txt", "b.txt"], 2));
}

#[test]
fn the_checkpoints_of_a_workflow_are_those_that_checkpoint_list_has() {
    let world = finished();
    let run = world.newest_run();
    let list = world.report(&format!("workflow checkpoints {run}"), 0);
    assert_eq!(list, world.report(&format!("checkpoint list --run {run}"), 0));
    assert_eq!(list, world.report("workflow checkpoints", 0), "the workflow that was started last");
    let named = world.report("workflow checkpoints --workflow flow", 0);
    assert_eq!(named, world.report("checkpoint list --workflow flow", 0));
    let steps: Vec<&str> = named.as_array().expect("a list").iter().filter_map(|one| one["step"].as_str()).collect();
    assert_eq!(steps, ["a", "b", "c", "d"]);
    let text = world.call(&format!("workflow checkpoints {run} --format text")).stdout;
    assert!(steps.iter().all(|step| text.contains(&format!("before the step {step}"))), "{text}");
    let plain = world.call("run create --goal x").stdout.trim().to_owned();
    assert_eq!(world.call(&format!("workflow checkpoints {plain}")).error(), "no_workflow", "a run of no workflow");
}

#[test]
fn at_a_terminal_one_is_chosen() {
    let world = finished();
    let run = world.newest_run();
    for (keys, code, left) in [("\n", 1, 4), ("9\n", 1, 4), ("2\n", 0, 2)] {
        let call = world.command(&format!("workflow rollback {run}"));
        let Some(mut terminal) = Terminal::open(&call, world.cli.root()) else { return };
        terminal.sees("Roll back to before which checkpoint? [number]");
        assert!(terminal.shown().contains("a (all of it)"), "{}", terminal.shown());
        terminal.types(keys);
        if code == 0 {
            terminal.sees("Roll it back? [y/N]");
            terminal.types("y\n");
        }
        let (ended, shown) = terminal.ends();
        assert_eq!((ended, files(&world).len()), (Some(code), left), "{keys:?}: {shown}");
    }
    // Without a terminal no one can choose: all of it is meant, and nothing is asked.
    assert_eq!(world.call(&format!("workflow rollback {run}")).error(), "confirmation_required");
}

#[test]
fn steps_are_shown_as_they_are_after_every_way_back() {
    let world = finished();
    let run = world.newest_run();
    let shown = |world: &TestWorld| world.report(&format!("workflow show {run}"), 0);
    let back = world.report(&format!("workflow rollback {run} --latest --yes"), 0);
    let one = ["succeeded", "succeeded", "succeeded", "rolled_back"];
    assert_eq!(
        (states(&back), states(&shown(&world))),
        (one.map(str::to_owned).to_vec(), one.map(str::to_owned).to_vec())
    );
    world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(states(&shown(&world)), ["succeeded"; 4]);
    // Some of its steps were made in another epoch than the last.
    let back = world.report(&format!("workflow rollback {run} --yes"), 0);
    assert_eq!((states(&back), files(&world)), (vec!["rolled_back".to_owned(); 4], Vec::new()));
    assert_eq!(states(&shown(&world)), ["rolled_back"; 4]);
    // And again from the start: what is run is not rolled back any more.
    world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(states(&shown(&world)), ["succeeded"; 4]);
}

#[test]
fn a_rollback_over_layers_leaves_steps_to_do_and_the_workflow_says_so() {
    let world = finished();
    let run = world.newest_run();
    world.report(&format!("run rollback {run} --to-phase one --layer=all --force --yes"), 0);
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!(shown["status"], "rolled_back", "{shown}");
    assert!(states(&shown).contains(&"rolled_back".to_owned()), "{shown}");
    assert!(!states(&shown).contains(&"pending".to_owned()), "{shown}");
    let resume = shown["resume"].as_str().expect("the command that runs them again");
    world.report(resume.strip_prefix("ic ").expect("a call"), 0);
    let shown = world.report(&format!("workflow show {run}"), 0);
    assert_eq!((&shown["status"], states(&shown)), (&"completed".into(), vec!["succeeded".to_owned(); 4]));
    assert_eq!(files(&world).len(), 4);
    // What is completed has nothing to resume.
    let refused = world.call(&format!("workflow resume {run}"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "nothing_to_resume"));
}

#[test]
fn a_rollback_of_a_workflow_is_the_expected_plan_or_none() {
    let world = finished();
    let run = world.newest_run();
    let hash = |what: &str| {
        let plan = world.report(&format!("workflow rollback {run} {what} --dry-run"), 0);
        plan["plan_hash"].as_str().expect("a hash").to_owned()
    };
    let (whole, last) = (hash(""), hash("--latest"));
    assert_ne!(whole, last);
    assert_eq!(hash(""), whole, "the same plan has the same hash");
    let text = world.call(&format!("workflow rollback {run} --dry-run --format text")).stdout;
    assert!(text.contains(&format!("--expect-plan {whole}")), "{text}");
    let before = (files(&world), subjects(&world), outside(&world));
    let refused = world.call(&format!("workflow rollback {run} --expect-plan {last} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "plan_changed"), "{refused:?}");
    assert_eq!((files(&world), subjects(&world), outside(&world)), before, "nothing is changed");
    world.report(&format!("workflow rollback {run} --latest --expect-plan {last} --yes"), 0);
    // What was seen before is another plan now.
    let refused = world.call(&format!("workflow rollback {run} --expect-plan {whole} --yes"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "plan_changed"), "{refused:?}");
    let now = hash("");
    world.report(&format!("workflow rollback {run} --expect-plan {now} --yes"), 0);
    assert_eq!(files(&world), Vec::<String>::new());
}

#[test]
fn a_step_is_a_point_of_its_run() {
    let world = finished();
    let run = world.newest_run();
    let words = format!("run rollback {run} --to step:c --layer=all --yes");
    let report = world.report(&words, 0);
    assert_eq!((&report["status"], &report["point"]), (&"rolled_back".into(), &"step:c".into()), "{report}");
    assert_eq!(subjects(&world), ["init", "a", "b"]);
    assert_eq!(files(&world), ["a.txt", "b.txt"]);
    assert_eq!(outside(&world)[4..], ["undone d", "undone c"]);
    assert_eq!(world.report(&format!("run status {run}"), 0)["phase"], "two");
    // What stands is not done again, and the same point is one again once its step has begun anew.
    let resumed = world.report(&format!("workflow resume {run}"), 0);
    assert_eq!(resumed["status"], "completed", "{resumed}");
    assert_eq!(outside(&world)[6..], ["done c", "done d"]);
    assert_eq!(subjects(&world), ["init", "a", "b", "c", "d"]);
    world.report(&words.replace("step:c", "step:b"), 0);
    assert_eq!((subjects(&world), files(&world)), (vec!["init".to_owned(), "a".to_owned()], vec!["a.txt"]));
    assert!(world.refused(&words).contains("point_taken_back"), "c lies after b");
}

#[test]
fn a_later_attempt_is_a_point_of_its_own_and_steps_that_began_together_go_back_together() {
    let world = with_checkpoints();
    world.write("flow.yaml", "");
    world.steps(&[
        "{id: a, run: 'echo a > a.txt; test -e go'}",
        "{id: b, needs: [a], run: 'echo b > b.txt'}",
        "{id: c, needs: [a], run: 'echo c > c.txt'}",
    ]);
    world.report("workflow run flow.yaml --jobs 2", 1);
    let run = world.newest_run();
    world.write("go", "");
    world.report(&format!("workflow resume {run} --jobs 2"), 0);
    let back = |point: &str| world.report(&format!("run rollback {run} --to {point} --layer=all --dry-run"), 0);
    let cut = |point: &str| back(point)["cut_seq"].clone();
    assert_eq!(cut("step:b"), cut("step:c"));
    assert_ne!(cut("step:a"), cut("step:a#2"));
    let whole: Vec<String> = back("step:a")["files"]["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| change["path"].as_str().expect("a path").to_owned())
        .collect();
    assert_eq!(whole, ["a.txt", "b.txt", "c.txt", "go"]);
    assert!(world.refused(&format!("run rollback {run} --to step:a#9 --yes")).contains("point_not_found"));
}
