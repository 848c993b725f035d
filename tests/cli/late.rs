//! Reports of work that was rolled back: they are refused, except those that the revert plan needs.

use serde_json::json;

use crate::support::{Project, Story, chain, story};

/// Every verb that writes, on a run that is at planned after its rollback. `{run}`, `{fresh}` and `{agent}` stand for ids.
const WRITES: &[&str] = &[
    "run create --goal g",
    "run advance {run}",
    "run skip {run} review --reason r",
    "run set {run} --complexity 2",
    "run cancel {run}",
    "run rollback {run} --to-phase brainstorm",
    "run agent add {run} --type codex",
    "run agent update {agent} --status completed",
    "run artifact add {run} --path a.md",
    "dispatch create {run}",
    "dispatch start {fresh}",
    "dispatch complete {fresh}",
    "dispatch fail {fresh} --error e",
    "dispatch cancel {fresh}",
    "gate override {run} --reason r",
    "events redact 1 --reason r",
];

struct Late {
    story: Story,
    fresh: String,
    agent: String,
}

fn rolled_back(project: &Project) -> Late {
    let story = story(project);
    project.ok("run rollback @ --to-phase planned");
    let fresh = project.ok("dispatch create @ --name fresh");
    let agent = project.ok("run agent add @ --type codex");
    Late { story, fresh, agent }
}

impl Late {
    fn fill(&self, line: &str) -> String {
        line.replace("{run}", &self.story.run).replace("{fresh}", &self.fresh).replace("{agent}", &self.agent)
    }
}

#[test]
fn a_rolled_back_dispatch_can_write_nothing_by_flag_or_environment() {
    let project = Project::new();
    let late = rolled_back(&project);
    for line in WRITES {
        let line = late.fill(line);
        let by_flag = format!("{line} --dispatch {}", late.story.builder);
        assert_eq!(project.refused(&by_flag), (1, "stale_dispatch".to_owned()), "{by_flag}");
        let before = project.dump();
        let outcome = project.run_with("IC_DISPATCH", &late.story.builder, &line);
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "stale_dispatch"), "{line}");
        assert_eq!(project.dump(), before, "{line}");
        let short = project.run_with("IC_DISPATCH", &late.story.builder[28..], &line);
        assert_eq!(short.error(), "stale_dispatch", "{line}: the end of the id is enough");
    }
    let cursor = project.run_with("IC_DISPATCH", &late.story.builder, "events cursor reset c");
    assert_eq!(cursor.error(), "stale_dispatch");
}

#[test]
fn a_standing_dispatch_may_write_all_of_it() {
    for line in WRITES {
        let project = Project::new();
        let late = rolled_back(&project);
        let line = late.fill(line);
        let outcome = project.run_with("IC_DISPATCH", &late.story.planner, &line);
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    }
}

#[test]
fn the_dispatch_of_this_call_is_stronger_than_that_of_the_environment() {
    let project = Project::new();
    let late = rolled_back(&project);
    let line = format!("run artifact add @ --path a.md --dispatch {}", late.story.planner);
    let outcome = project.run_with("IC_DISPATCH", &late.story.builder, &format!("{line} --json"));
    assert_eq!(outcome.json()["dispatch_id"], late.story.planner.as_str());
    let line = format!("run artifact add @ --path a.md --dispatch {}", late.story.builder);
    assert_eq!(project.run_with("IC_DISPATCH", &late.story.planner, &line).error(), "stale_dispatch");
}

#[test]
fn an_unknown_caller_is_refused() {
    let project = Project::new();
    let late = rolled_back(&project);
    for (id, code) in [("999999", "dispatch_not_found"), ("mine", "invalid_reference")] {
        assert_eq!(project.refused(&format!("run advance @ --dispatch {id}")), (3, code.to_owned()));
        assert_eq!(project.run_with("IC_DISPATCH", id, "run advance @").error(), code);
    }
    assert_eq!(project.run_with("IC_DISPATCH", "", "run skip @ review --reason r").code, Some(0));
    let status = project.run_with("IC_DISPATCH", &late.story.builder, "run status @");
    assert_eq!(status.code, Some(0), "reading is free");
}

#[test]
fn what_it_says_about_itself_is_late() {
    let project = Project::new();
    let late = rolled_back(&project);
    let builder = &late.story.builder;
    for verb in [
        format!("dispatch start {builder}"),
        format!("dispatch complete {builder} --verdict pass"),
        format!("dispatch fail {builder} --error e"),
        format!("dispatch cancel {builder}"),
        format!("run agent update {} --status completed", late.story.agent),
    ] {
        assert_eq!(project.refused(&verb), (1, "stale_dispatch".to_owned()), "{verb}");
    }
}

#[test]
fn its_commits_and_tokens_are_recorded_all_the_same() {
    let project = Project::new();
    let late = rolled_back(&project);
    let builder = &late.story.builder;
    let line = format!("dispatch record {builder} --commit ccccccc3 --file late.rs --json");
    let recorded = project.run_with("IC_DISPATCH", builder, &line).json();
    assert_eq!(
        (&recorded["late"], &recorded["commit_count"], &recorded["file_count"]),
        (&json!(true), &json!(1), &json!(1))
    );
    let tokens = project.run_with("IC_DISPATCH", builder, &format!("dispatch tokens {builder} --in 5 --out 6 --json"));
    assert_eq!(tokens.json()["tokens"], json!({"in": 5, "out": 6, "cache": 0}));
    let shown = project.json(&format!("dispatch show {builder}"));
    let flags: Vec<_> = shown["commits"].as_array().expect("commits").iter().map(|c| c["late"].clone()).collect();
    assert_eq!(flags, [json!(false), json!(true)]);
    let events = project.json("events tail --limit 2");
    assert!(events.as_array().expect("events").iter().all(|e| e["payload"]["late"] == true), "{events}");
}

#[test]
fn a_late_report_stays_recorded_and_marked_whatever_follows() {
    let project = Project::new();
    let late = rolled_back(&project);
    let builder = &late.story.builder;
    project.ok(&format!("dispatch record {builder} --commit ccccccc3 --file late.rs"));
    project.ok(&format!("dispatch tokens {builder} --in 5 --out 6"));
    let reported = project.json(&format!("dispatch show {builder}"));
    assert_eq!((&reported["status"], reported["rolled_back_by"].is_string()), (&json!("cancelled"), true));
    let marks = |list: &str| {
        let all = reported[list].as_array().expect("a list").iter();
        all.map(|one| one["late"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((marks("commits"), marks("files")), (vec![json!(false), json!(true)], vec![json!(false), json!(true)]));
    for line in [
        format!("dispatch complete {builder} --verdict pass"),
        "run advance @".to_owned(),
        "run rollback @ --to-phase brainstorm --yes --layer=workflow,effects".to_owned(),
        "run cancel @".to_owned(),
        format!("run reopen {} --reason r", late.story.run),
    ] {
        let outcome = project.run(&line);
        let is_refused = line.starts_with("dispatch complete");
        assert_eq!(outcome.code == Some(0), !is_refused, "{line}: {outcome:?}");
        assert_eq!(project.json(&format!("dispatch show {builder}")), reported, "{line}");
    }
    let plan = project.json("run rollback @ --layer=code");
    let entry = plan["entries"].as_array().expect("entries").iter().find(|one| one["dispatch_id"] == builder.as_str());
    assert_eq!(entry.expect("its entry")["late"], true, "{plan}");
}

#[test]
fn what_it_delivered_late_opens_no_gate() {
    let project = Project::new();
    let story = story(&project);
    project.ok(&format!("run agent update {} --status completed", story.agent));
    project.ok(&format!("dispatch complete {}", story.builder));
    project.ok("run advance @");
    let reviewer = project.ok("dispatch create @ --name check");
    project.ok(&format!("dispatch complete {reviewer} --verdict pass"));
    assert_eq!(project.run("gate check @").code, Some(0));
    project.ok("run rollback @ --to-phase executing");
    project.ok("run advance @");
    let blocked = project.run("run advance @");
    assert_eq!((blocked.code, &blocked.json()["evidence"]["conditions"][0]["count"]), (Some(1), &json!(0)));
}

#[test]
fn a_dispatch_of_another_run_cannot_be_named_for_this_one() {
    let project = Project::new();
    let story = story(&project);
    let other = project.ok("run create --goal other --phases a,b");
    for verb in ["run artifact add {} --path a.md", "run agent add {} --type codex"] {
        let line = format!("{} --dispatch {}", verb.replace("{}", &other), story.builder);
        assert_eq!(project.refused(&line), (1, "dispatch_of_other_run".to_owned()), "{line}");
        let outcome =
            project.run_with("IC_DISPATCH", &story.builder, &format!("{} --json", verb.replace("{}", &other)));
        assert_eq!(outcome.json()["dispatch_id"], serde_json::Value::Null, "the environment only says who calls");
    }
}

#[test]
fn an_agent_of_a_rolled_back_dispatch_satisfies_no_gate() {
    let project = Project::new();
    let gates = r#"{"a->b": [{"check": "agents_complete"}]}"#;
    let run = project.cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c", "--gates", gates]);
    // Joined before the cut, in a phase that stays, but working for a phase that goes.
    let dispatch = project.ok(&format!("dispatch create {run} --phase b"));
    let agent = project.ok(&format!("run agent add {run} --type x --dispatch {dispatch}"));
    project.ok(&format!("gate override {run} --reason on"));
    let rollback = project.json(&format!("run rollback {run} --to-phase a"));
    assert_eq!(rollback["failed_agents"][0]["id"], agent.as_str());
    assert_eq!(
        project.refused(&format!("run agent update {agent} --status completed")),
        (1, "stale_dispatch".to_owned())
    );
    project.ok(&format!("run advance {run}"));
}

#[test]
fn a_dry_run_refuses_a_stale_dispatch_as_the_real_call_does() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    let dispatch = project.ok(&format!("dispatch create {run}"));
    project.ok(&format!("run rollback {run} --to-phase a"));
    project.ok(&format!("run advance {run}"));
    for flags in ["", "--dry-run"] {
        let line = format!("run rollback {run} --to-phase a --dispatch {dispatch} {flags}");
        assert_eq!(project.refused(&line), (1, "stale_dispatch".to_owned()), "{line}");
    }
}

/// What `ic run artifact add --help` and `ic dispatch record --help` say of a path outside, and of a commit.
#[test]
fn a_file_outside_is_recorded_by_its_absolute_path_and_git_is_not_asked_for_a_commit() {
    let project = Project::new();
    project.ok("run create --goal g");
    let outside = project.root().parent().expect("a parent").join("report.html");
    std::fs::write(&outside, "x").expect("a file");
    let id = project.ok("dispatch create @ --name form");
    project.ok(&format!("dispatch record {id} --file ../report.html --file a.txt"));
    project.ok(&format!("dispatch record {id} --commit DEADBEEFDEADBEEF"));
    project.ok("run artifact add @ --path ../report.html");
    let shown = project.json(&format!("dispatch show {id}"));
    let outside = outside.to_str().expect("text");
    assert_eq!((&shown["files"][0]["path"], &shown["files"][1]["path"]), (&outside.into(), &"a.txt".into()));
    assert_eq!(shown["commits"][0]["sha"], "deadbeefdeadbeef");
    assert_eq!(project.json("run artifact list @")[0]["path"], outside);
    let refused = project.run(&format!("dispatch record {id} --commit HEAD"));
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"));
    assert!(refused.stderr.contains("git rev-parse HEAD"), "{refused:?}");
    for (verb, said) in [
        ("run artifact add", "recorded as an absolute path"),
        ("dispatch record", "recorded as an absolute path"),
        ("dispatch record", "git does not check it"),
    ] {
        let help = project.ok(&format!("{verb} --help")).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(said), "{verb}: {help}");
    }
}
