//! `ic run status`: the tokens that the work of a run used, phase by phase and in all.

use serde_json::{Value, json};

use crate::statements::plan;
use crate::support::{Project, chain};

fn work(project: &Project, phase: &str, tokens: (i64, i64, i64)) -> String {
    let dispatch = project.ok(&format!("dispatch create @ --phase {phase}"));
    let (input, output, cache) = tokens;
    project.ok(&format!("dispatch tokens {dispatch} --in {input} --out {output} --cache {cache}"));
    dispatch
}

fn tokens(project: &Project) -> Value {
    project.json("run status @")["tokens"].clone()
}

fn sum(input: i64, output: i64, cache: i64) -> Value {
    json!({ "in": input, "out": output, "cache": cache })
}

fn spent(all: Value, rolled_back: &Value) -> Value {
    let mut spent = all;
    spent["rolled_back"] = rolled_back.clone();
    spent
}

#[test]
fn what_was_rolled_back_was_used_too_and_is_named_for_each_phase() {
    let project = Project::new();
    chain(&project, "c,b,a", "c");
    let nothing = sum(0, 0, 0);
    let mut expected = spent(sum(0, 0, 0), &nothing);
    expected["by_phase"] = json!([]);
    assert_eq!(tokens(&project), expected);
    assert!(!project.ok("run status @ --format text").contains("  tokens "));

    work(&project, "c", (1, 2, 3));
    project.ok("run advance @");
    let first = work(&project, "b", (10, 20, 30));
    work(&project, "b", (100, 200, 300));
    project.ok(&format!("dispatch tokens {first} --in 11 --out 20 --cache 30"));
    project.write("sub/notes.md", "of another project");
    let other = project.ok("run create --goal other --phases b,c --project sub --scope-id other");
    let foreign = project.ok(&format!("dispatch create {other}"));
    project.ok(&format!("dispatch tokens {foreign} --in 7777 --out 7777"));
    project.ok("run rollback @ --to-phase c");
    work(&project, "b", (1000, 0, 0));
    // A late report is of work that was rolled back.
    project.ok(&format!("dispatch tokens {first} --in 12 --out 20 --cache 30"));

    let gone = sum(112, 220, 330);
    let named = |phase: &str, of: Value| {
        let mut of = of;
        of["phase"] = phase.into();
        of
    };
    let mut expected = spent(sum(1113, 222, 333), &gone);
    expected["by_phase"] =
        json!([named("c", spent(sum(1, 2, 3), &nothing)), named("b", spent(sum(1112, 220, 330), &gone)),]);
    assert_eq!(tokens(&project), expected);
    let text = project.ok("run status @ --format text");
    let line = "tokens     1113 in, 222 out, 333 cached; rolled back of it: 112 in, 220 out, 330 cached\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn reports_that_no_sum_holds_do_not_hide_the_run() {
    let project = Project::new();
    chain(&project, "a,b", "a");
    for _ in 0..3 {
        work(&project, "a", (i64::MAX, i64::MAX - 5, 1 << 40));
    }
    let status = tokens(&project);
    assert_eq!(
        (&status["in"], &status["out"], &status["cache"]),
        (&json!(i64::MAX), &json!(i64::MAX), &json!(3_i64 << 40))
    );
}

#[test]
fn the_sum_looks_only_at_the_work_of_the_run() {
    let project = Project::new();
    chain(&project, "a,b", "a");
    let log = project.cli.home().join("sql.log");
    project.run_with("IC_TEST_SQL_LOG", &log, "run status @");
    let log = std::fs::read_to_string(&log).expect("the log");
    let sums: Vec<&str> = log.lines().filter(|sql| sql.contains("SUM(tokens_in")).collect();
    assert_eq!(sums.len(), 1, "{log}");
    let steps = plan(&project.database(), sums[0]);
    assert!(steps[0].starts_with("SEARCH dispatches USING INDEX dispatches_of_run (run_id=?)"), "{steps:?}");
}
