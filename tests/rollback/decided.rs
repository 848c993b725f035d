//! Each refusal has a flag of its own, a preview names all of them, and a decision about one is none about another.

use ic_testkit::{TestWorld, end_living_processes, living_process};
use serde_json::{Value, json};

use crate::project::Work as _;
use crate::story::story;

/// A story in which everything refuses the rollback: a file, a commit and a worker of others, and an effect that cannot be undone.
fn against_all() -> TestWorld {
    let world = story();
    let other = world.cli.ok(["run", "create", "--goal", "other", "--phases", "x,y"]);
    let dispatch = world.cli.ok(["dispatch", "create", &other]);
    let sha = world.git(&["rev-parse", "HEAD"]);
    world.ic(&["dispatch", "record", &dispatch, "--file", "src/a.rs", "--commit", &sha]);
    world.ic(&["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
    world.ic(&["compensation", "add", &world.run, "--step", "sent", "--pivot", "--reason", "sent"]);
    world
}

fn previewed(world: &TestWorld, flags: &[&str]) -> Value {
    let outcome = world.cli.run(world.all("a", &[flags, &["--dry-run"]].concat()));
    let plan = outcome.json();
    assert_eq!(outcome.code, Some(i32::from(plan["plan_hash"].is_null())), "{outcome:?}");
    plan
}

fn flags_of(preview: &Value) -> Vec<String> {
    let all = preview["refusals"].as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one["flag"].as_str().expect("a flag").to_owned()).collect()
}

#[test]
fn a_preview_names_every_refusal_with_the_flag_that_decides_it() {
    const EACH: [&str; 4] = ["--force-workers", "--force-commits", "--past-pivot", "--force-files"];
    let world = against_all();
    let (dump, before) = (world.cli.dump(), world.state());
    let preview = previewed(&world, &[]);
    assert_eq!(flags_of(&preview), EACH, "{preview}");
    let codes: Vec<&Value> = preview["refusals"].as_array().expect("a list").iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["work_running", "foreign_commits", "pivot", "file_conflict"]);
    assert_eq!((&preview["plan_hash"], &preview["refusal"]["code"]), (&Value::Null, codes[0]));
    // What would be restored is shown anyway.
    assert!(preview["files"]["changes"].as_array().is_some_and(|all| !all.is_empty()), "{preview}");

    // A decision about one of them decides none of the others, in the preview and in the deed.
    for flag in EACH {
        let left: Vec<&str> = EACH.into_iter().filter(|one| *one != flag).collect();
        assert_eq!(flags_of(&previewed(&world, &[flag])), left, "{flag}");
        let refused = world.cli.run(world.all("a", &[flag, "--yes"]));
        assert_eq!(
            (refused.code, refused.error()),
            (Some(1), previewed(&world, &[flag])["refusal"]["code"].as_str().expect("a code").to_owned())
        );
    }
    assert_eq!(world.cli.dump(), dump, "something was recorded");
    world.state().assert_is(&before, "refused");

    // All of them together are --force, with the same plan.
    let (each, all) = (previewed(&world, &EACH), previewed(&world, &["--force"]));
    assert_eq!(each["plan_hash"], all["plan_hash"]);
    assert!(all["plan_hash"].is_string(), "{all}");
    let mut words = EACH.to_vec();
    words.extend(["--expect-plan", each["plan_hash"].as_str().expect("a hash")]);
    world.roll_back("a", &words);
    assert_eq!((world.status().as_str(), world.read("src/a.rs")), ("active@a", None));
    end_living_processes();
}

#[test]
fn commits_that_leave_are_named_with_who_made_them_and_pushed_ones_need_a_decision() {
    let world = story();
    let remote = world.cli.home().join("remote.git").display().to_string();
    world.git(&["init", "-q", "--bare", &remote]);
    world.git(&["remote", "add", "origin", &remote]);
    let preview = previewed(&world, &[]);
    let said: Vec<_> = preview["commits"]
        .as_array()
        .expect("commits")
        .iter()
        .map(|one| (&one["subject"], &one["author"], &one["pushed"]))
        .collect();
    let local = json!(false);
    assert_eq!(said, [(&json!("more"), &json!("n"), &local), (&json!("work"), &json!("n"), &local)], "{preview}");

    world.git(&["push", "-q", "origin", "HEAD~1:refs/heads/main"]);
    let preview = previewed(&world, &[]);
    assert_eq!((&preview["commits"][0]["pushed"], &preview["commits"][1]["pushed"]), (&json!(false), &json!(true)));
    assert_eq!(
        (flags_of(&preview), &preview["refusal"]["code"]),
        (vec!["--force-commits".to_owned()], &json!("foreign_commits"))
    );
    let refused = world.cli.run(world.all("a", &["--yes"]));
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "foreign_commits"), "{refused:?}");
    world.roll_back("a", &["--force-commits"]);
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "plan");
}

/// The effects that a rollback leaves as they are, each with its state.
fn declared(world: &TestWorld) -> Vec<(String, String)> {
    let all = world.cli.json(["compensation", "list", &world.run, "--json"]);
    let text = |one: &Value, name: &str| one[name].as_str().expect("a word").to_owned();
    let all = all.as_array().expect("a list").iter().map(|one| (text(one, "step"), text(one, "status")));
    all.filter(|(step, _)| ["build", "letter"].contains(&step.as_str())).collect()
}

/// What was sent is still sent when the rollback that passed it is over: it stands in the way of the next one as of the first.
#[test]
fn a_pivot_that_was_passed_stands_in_the_way_again_once_that_rollback_is_aborted_or_undone() {
    for (command, is_aborted) in [("false", true), ("true", false)] {
        let world = story();
        world.ic(&["compensation", "add", &world.run, "--step", "queue", "--exec", "--", command]);
        world.ic(&["compensation", "add", &world.run, "--step", "build", "--skip", "--reason", "ignored files"]);
        world.ic(&["compensation", "add", &world.run, "--step", "letter", "--pivot", "--reason", "sent"]);
        let (before, begun) = (world.status(), declared(&world));
        for turn in 0..2 {
            assert_eq!(flags_of(&previewed(&world, &[])), ["--past-pivot"], "{command}, {turn}");
            let outcome = world.cli.run(world.all("a", &["--past-pivot", "--yes"]));
            assert_eq!(outcome.code, Some(if is_aborted { 4 } else { 0 }), "{outcome:?}");
            let skipped = declared(&world).into_iter().all(|(_, status)| status == "skipped");
            assert!(skipped, "what is left alone is known to be: {:?}", declared(&world));
            let back: &[&str] = if is_aborted {
                &["rollback", "abort", &world.run, "--yes"]
            } else {
                &["redo", "--run", &world.run, "--without-effects", "--yes"]
            };
            world.ic(back);
            assert_eq!((world.status(), declared(&world)), (before.clone(), begun.clone()), "{command}, {turn}");
        }
        // The rollback that stands keeps its decision.
        if !is_aborted {
            world.roll_back("a", &["--past-pivot"]);
            let coverage = world.cli.json(["compensation", "coverage", &world.run, "--json"]);
            assert!(!coverage.to_string().contains("letter"), "{coverage}");
        }
    }
}
