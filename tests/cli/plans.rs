//! The preview is the plan: a dry run names what the real call does, and the real call can insist on it.

use serde_json::{Value, json};

use crate::support::{Project, chain, story};

/// What only the real call has.
fn without_outcome(mut rollback: Value) -> Value {
    for key in ["rollback_id", "dry_run", "status", "seq"] {
        rollback[key] = Value::Null;
    }
    rollback
}

#[test]
fn a_dry_run_is_the_real_thing_without_doing_it() {
    for flags in
        ["--to-phase planned", "--to-phase planned --include-target", "--to-phase brainstorm --reason 'all of it'"]
    {
        let project = Project::new();
        story(&project);
        let before = project.dump();
        let dry = project.json(&format!("run rollback @ {flags} --dry-run"));
        assert_eq!(project.dump(), before, "a preview changes nothing");
        assert_eq!(
            (&dry["dry_run"], &dry["rollback_id"], &dry["seq"], &dry["status"]),
            (&json!(true), &Value::Null, &Value::Null, &json!("planned"))
        );
        let real = project.json(&format!("run rollback @ {flags}"));
        assert_eq!((&real["dry_run"], &real["status"]), (&json!(false), &json!("rolled_back")));
        assert!(real["rollback_id"].is_string() && real["seq"].is_i64());
        assert_eq!(without_outcome(dry), without_outcome(real), "{flags}");
    }
}

#[test]
fn the_plan_that_was_shown_is_the_plan_that_is_done() {
    let project = Project::new();
    story(&project);
    let hash = |flags: &str| {
        let dry = project.json(&format!("run rollback @ {flags} --dry-run"));
        dry["plan_hash"].as_str().expect("a hash").to_owned()
    };
    let plan = hash("--to-phase planned");
    assert_eq!(plan.len(), 64);
    assert_eq!(hash("--to-phase planned"), plan, "nothing has changed");
    assert_eq!(hash("--to-phase planned --reason why"), plan, "the reason is no part of it");
    assert_ne!(hash("--to-phase planned --include-target"), plan);
    assert_ne!(hash("--to-phase strategized"), plan);

    let dispatch = project.ok("dispatch create @");
    let line = format!("run rollback @ --to-phase planned --expect-plan {plan}");
    assert_eq!(project.refused(&line), (1, "plan_changed".to_owned()));
    assert_eq!(project.refused(&format!("{line} --dry-run")), (1, "plan_changed".to_owned()));
    let before_start = hash("--to-phase planned");
    project.ok(&format!("dispatch start {dispatch}"));
    let plan = hash("--to-phase planned");
    assert_ne!(plan, before_start, "a dispatch that was begun is another plan");
    let rollback = project.json(&format!("run rollback @ --to-phase planned --expect-plan {plan}"));
    assert_eq!(rollback["plan_hash"], plan.as_str());
    assert_eq!(rollback["counts"]["dispatches"], 2);
}

#[test]
fn an_undo_of_the_record_alone_keeps_the_hash_of_its_plan() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    let undo = "undo phase:a --layer=workflow";
    let hash = project.json(&format!("{undo} --dry-run"))["plan_hash"].as_str().expect("a hash").to_owned();
    let done = project.json(&format!("{undo} --expect-plan {hash} --yes"));
    assert_eq!(done["plan_hash"], hash.as_str());
    assert_eq!(project.json("rollback list")[0]["plan_hash"], hash.as_str());
}

#[test]
fn the_refusal_names_the_plan_as_it_is_now() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    let now = project.json("run rollback @ --to-phase a --dry-run")["plan_hash"].clone();
    for wrong in ["0", "5d41402a", &"0".repeat(64)] {
        let outcome = project.run(&format!("run rollback @ --to-phase a --expect-plan {wrong}"));
        let error: Value = serde_json::from_str(&outcome.stderr).expect("JSON");
        assert_eq!((outcome.code, &error["error"]["code"]), (Some(1), &json!("plan_changed")));
        assert_eq!(error["error"]["details"]["plan_hash"], now);
    }
    let upper = now.as_str().expect("a hash").to_uppercase();
    assert_eq!(project.run(&format!("run rollback @ --to-phase a --expect-plan {upper}")).code, Some(1));
}

#[test]
fn what_is_no_plan_hash_is_not_called_a_changed_plan() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    let before = project.dump();
    for wrong in ["garbage", "--", "0x12", "5d41 402a", &"0".repeat(65)] {
        for verb in ["run rollback @ --to-phase a", "workflow rollback @ --yes", "checkpoint restore --latest --yes"] {
            let mut words: Vec<String> = verb.split(' ').map(str::to_owned).collect();
            words.push(format!("--expect-plan={wrong}"));
            let outcome = project.run_words(words);
            assert_eq!((outcome.code, outcome.error()), (Some(3), "invalid_value".to_owned()), "{verb} {wrong}");
        }
    }
    assert_eq!(project.dump(), before);
}

#[test]
fn other_runs_do_not_change_a_plan() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    let line = format!("run rollback {run} --to-phase a --dry-run");
    let plan = project.json(&line);
    let other = chain(&project, "a,b,c", "c");
    project.ok(&format!("run rollback {other} --to-phase b"));
    assert_eq!(project.json(&line), plan);
}
