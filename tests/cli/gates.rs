//! Chains, gates, priorities, pauses and overrides.

use serde_json::json;

use crate::support::{Project, chain};

const DEFAULT: &[&str] = &[
    "brainstorm", "brainstorm-reviewed", "strategized", "planned", "executing", "review", "polish", "reflect", "done",
];

/// A default run, and what each of its transitions waits for.
#[test]
fn the_default_chain_has_its_gates() {
    let project = Project::new();
    let run = project.json("run create --goal g");
    assert_eq!(run["phases"], json!(DEFAULT));
    assert_eq!((&run["phase"], &run["auto_advance"]), (&json!("brainstorm"), &json!(true)));
    let artifact = |phase: &str| format!("run artifact add @ --path {phase}.md");
    let agent = project.ok("run agent add @ --type codex");
    let opens = |phase: &str| match phase {
        "brainstorm" | "brainstorm-reviewed" | "strategized" | "planned" | "reflect" => artifact(phase),
        "executing" => format!("run agent update {agent} --status completed"),
        "review" => {
            let reviewer = project.ok("dispatch create @");
            format!("dispatch complete {reviewer} --verdict pass")
        }
        _ => String::new(),
    };
    for pair in DEFAULT.windows(2) {
        let open = opens(pair[0]);
        if !open.is_empty() {
            let blocked = project.run("run advance @");
            assert_eq!(blocked.code, Some(1), "{pair:?}");
            assert_eq!(blocked.stderr, "", "a block is no error line");
            let record = blocked.json();
            assert_eq!((&record["event_kind"], &record["code"]), (&json!("block"), &json!("gate_blocked")));
            assert_eq!((&record["advanced"], &record["gate_result"]), (&json!(false), &json!("fail")));
            assert_eq!(project.ok("run phase @"), pair[0]);
            project.write(format!("{}.md", pair[0]), "written\n");
            project.ok(&open);
        }
        let record = project.json("run advance @");
        assert_eq!((&record["from_phase"], &record["to_phase"]), (&json!(pair[0]), &json!(pair[1])));
        assert_eq!(record["gate_result"], if open.is_empty() { "none" } else { "pass" }, "{pair:?}");
    }
    assert_eq!(project.json(&format!("run status {}", run["id"].as_str().expect("an id")))["status"], "completed");
}

#[test]
fn a_chain_of_its_own_has_no_gates_unless_they_are_given() {
    let project = Project::new();
    chain(&project, "planned,executing,done", "done");
    let gates = r#"{"planned→executing": [{"check": "artifact_exists", "phase": "planned", "tier": "hard"}]}"#;
    project.write("gates.json", gates);
    for given in [gates, "@gates.json"] {
        let words = ["run", "create", "--goal", "g", "--phases", "planned,executing,done", "--gates", given];
        let run = project.run_words(words).stdout.trim().to_owned();
        assert_eq!(project.run(&format!("run advance {run}")).code, Some(1), "{given}");
        project.write("plan.md", "a plan\n");
        project.ok(&format!("run artifact add {run} --path plan.md"));
        project.ok(&format!("run advance {run}"));
        project.ok(&format!("run cancel {run}"));
    }
}

#[test]
fn an_artifact_counts_while_its_file_exists() {
    let project = Project::new();
    let gates = r#"{"a->b": [{"check": "artifact_exists"}]}"#;
    assert_eq!(
        project.run_words(["run", "create", "--goal", "g", "--phases", "a,b,c", "--gates", gates]).code,
        Some(0)
    );
    let added = project.json("run artifact add @ --path docs/plan.md");
    assert_eq!(added["warnings"][0]["code"], "artifact_missing", "{added}");
    let blocked = project.run("run advance @");
    assert_eq!(blocked.code, Some(1), "{}", blocked.stdout);
    let condition = blocked.json()["evidence"]["conditions"][0].clone();
    assert_eq!((&condition["count"], &condition["missing"]), (&json!(0), &json!(["docs/plan.md"])));
    assert_eq!(condition["detail"], "no artifact in phase a; 1 registered file does not exist: docs/plan.md");
    assert_eq!(project.ok("run phase @"), "a");
    project.write("docs/plan.md", "a plan\n");
    assert_eq!(project.run("gate check @").code, Some(0), "it is there now");
    std::fs::remove_file(project.root().join("docs/plan.md")).expect("remove the plan");
    assert_eq!(project.run("gate check @").code, Some(1), "it is gone again");
    std::fs::remove_dir(project.root().join("docs")).expect("remove its directory");
    project.write("docs", "a file where a directory was\n");
    assert_eq!(project.run("gate check @").code, Some(1), "no file is below a file");
    // One that can be counted is enough; an address is no file, and a directory is there.
    for (path, code) in [("https://plans.example/7", 0), ("docs", 0)] {
        let added = project.json(&format!("run artifact add @ --path {path}"));
        assert_eq!(added.get("warnings"), None, "{added}");
        assert_eq!(project.run("gate check @").code, Some(code), "{path}");
        let seq = &added["seq"];
        project.ok(&format!("events redact {seq} --reason secret"));
        assert_eq!(project.run("gate check @").code, Some(code), "where a redacted path led is not known");
    }
    assert_eq!(project.json("run advance @")["to_phase"], "b");
}

#[test]
fn verdicts_and_dispatches_are_counted() {
    let project = Project::new();
    let gates = r#"{"a->b": [{"check": "dispatches_complete"}, {"check": "verdict_clean"}]}"#;
    let words = ["run", "create", "--goal", "g", "--phases", "a,b", "--gates", gates];
    assert_eq!(project.run_words(words).code, Some(0));
    let failed = || {
        let conditions = project.run("gate check @ --json").json()["evidence"]["conditions"].clone();
        let failed: Vec<String> = conditions
            .as_array()
            .expect("conditions")
            .iter()
            .filter(|c| c["result"] == "fail")
            .map(|c| c["check"].as_str().expect("a check").to_owned())
            .collect();
        failed
    };
    assert_eq!(failed(), ["verdict_clean"]);
    let one = project.ok("dispatch create @");
    assert_eq!(failed(), ["dispatches_complete", "verdict_clean"]);
    project.ok(&format!("dispatch complete {one} --verdict pass"));
    assert!(failed().is_empty());
    let two = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {two} --verdict fail"));
    assert_eq!(failed(), ["verdict_clean"], "one that failed is enough");
}

#[test]
fn priorities_decide_how_much_a_gate_weighs() {
    for (priority, advances, tier) in [
        (0, false, "hard"),
        (1, false, "hard"),
        (2, true, "soft"),
        (3, true, "soft"),
        (4, true, "none"),
        (9, true, "none"),
    ] {
        let project = Project::new();
        project.ok("run create --goal g");
        let check = project.run(&format!("gate check @ --priority {priority}"));
        let advance = project.run(&format!("run advance @ --priority {priority}"));
        assert_eq!(advance.code, Some(i32::from(!advances)), "{priority}");
        assert_eq!(check.code, advance.code, "{priority}");
        let record = advance.json();
        assert_eq!((&record["advanced"], &record["gate_tier"]), (&json!(advances), &json!(tier)), "{priority}");
        assert_eq!(record["gate_result"], if tier == "none" { "none" } else { "fail" });
        let warned = record["warnings"][0]["code"] == "gate_failed_softly";
        assert_eq!(warned, tier == "soft", "{record}");
        assert_eq!(check.json()["gate_tier"], record["gate_tier"]);
    }
}

#[test]
fn gates_are_disabled_only_with_a_reason() {
    let project = Project::new();
    project.ok("run create --goal g");
    assert_eq!(project.refused("run advance @ --disable-gates"), (3, "usage".to_owned()));
    assert_eq!(project.refused("run advance @ --disable-gates --reason ''"), (3, "invalid_value".to_owned()));
    let record = project.json("run advance @ --disable-gates --reason 'a spike'");
    assert_eq!((&record["gate_result"], &record["gate_tier"]), (&json!("none"), &json!("none")));
    let events = project.json("run events @");
    assert_eq!(events[1]["reason"], "a spike", "it is recorded");
}

#[test]
fn a_run_that_does_not_advance_by_itself_pauses() {
    let project = Project::new();
    project.ok("run create --goal g --phases a,b,c --auto-advance false");
    let paused = project.run("run advance @");
    assert_eq!((paused.code, paused.stderr.as_str()), (Some(1), ""));
    let record = paused.json();
    assert_eq!((&record["event_kind"], &record["code"]), (&json!("pause"), &json!("paused")));
    assert_eq!(project.run("run advance @ --priority 4").code, Some(1), "a priority is no consent");
    assert_eq!(project.run("gate check @ --json").json()["would"], "pause");

    let record = project.json("gate override @ --reason 'go on'");
    assert_eq!((&record["event_kind"], &record["to_phase"]), (&json!("override"), &json!("b")));
    assert_eq!(project.run("run advance @").code, Some(1), "an override is used up");
    project.ok("run set @ --auto-advance true");
    project.ok("run advance @");
}

#[test]
fn an_override_is_itself_the_advance_and_used_up() {
    let project = Project::new();
    project.ok("run create --goal g");
    assert_eq!(project.run("run advance @").code, Some(1));
    let seq = project.json("gate override @ --reason 'seen by eye'")["seq"].clone();
    assert_eq!(project.ok("run phase @"), "brainstorm-reviewed");
    let events = project.json("run events @");
    let last = events.as_array().expect("events").last().expect("an event");
    assert_eq!((&last["seq"], &last["kind"], &last["reason"]), (&seq, &json!("override"), &json!("seen by eye")));
    project.ok("run rollback @ --to-phase brainstorm");
    assert_eq!(project.run("run advance @").code, Some(1), "the redo meets the gate again");
}

#[test]
fn an_expectation_names_phase_and_epoch() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    for (stale, exit, code) in
        [("a", 1, "stale_phase"), ("b@1", 1, "stale_phase"), ("c", 1, "stale_phase"), ("z", 3, "unknown_phase")]
    {
        let line = format!("run advance @ --expect-phase {stale}");
        assert_eq!(project.refused(&line), (exit, code.to_owned()));
    }
    project.ok("run rollback @ --to-phase a");
    assert_eq!(project.refused("run advance @ --expect-phase a@0"), (1, "stale_phase".to_owned()));
    project.ok("run advance @ --expect-phase a@1");
    project.ok("run advance @ --expect-phase b");
}

#[test]
fn checking_a_gate_writes_nothing() {
    let project = Project::new();
    project.ok("run create --goal g");
    let before = project.dump();
    assert_eq!(project.run("gate check @").code, Some(1));
    assert_eq!(project.run("gate check @ --priority 4").code, Some(0));
    assert_eq!(project.dump(), before);
}

/// Whether an advance from `executing` moves, with its record.
fn executing(project: &Project) -> String {
    let gates = r#"{"executing->review": [{"check": "agents_complete"}]}"#;
    let words = ["run", "create", "--goal", "g", "--phases", "executing,review,done", "--gates", gates];
    project.run_words(words).stdout.trim().to_owned()
}

#[test]
fn agents_complete_waits_for_dispatches_too_and_names_each() {
    let project = Project::new();
    executing(&project);
    let agent = project.ok("run agent add @ --type codex");
    let pending = project.ok("dispatch create @ --name parser");
    let running = project.ok("dispatch create @");
    project.ok(&format!("dispatch start {running}"));

    let blocked = project.run("run advance @ --json");
    assert_eq!(blocked.code, Some(1), "{blocked:?}");
    let condition = blocked.json()["evidence"]["conditions"][0].clone();
    assert_eq!((&condition["result"], &condition["count"]), (&json!("fail"), &json!(3)));
    assert_eq!(condition["detail"], "1 active agent and 2 unfinished dispatches in the run");
    let waits = condition["unfinished"].as_array().expect("what it waits for");
    let named: Vec<_> = waits.iter().map(|w| (w["id"].clone(), w["status"].clone())).collect();
    let expected = [(&agent, "active"), (&pending, "pending"), (&running, "running")];
    assert_eq!(named, expected.map(|(id, status)| (json!(id), json!(status))));
    let text = project.run("gate check @ --format text").stdout;
    assert!(text.contains(&format!("dispatch {} parser is pending: ic dispatch complete", &pending[28..])), "{text}");

    // The commands that it names are those that open it.
    for work in waits {
        assert_eq!(project.run("gate check @").code, Some(1));
        let command = work["command"].as_str().expect("a command");
        project.ok(command.strip_prefix("ic ").expect("a command of ic"));
    }
    let advanced = project.json("run advance @");
    assert_eq!(advanced["advanced"], json!(true));
    assert_eq!(advanced["warnings"], json!(null), "work was recorded");
}

#[test]
fn a_phase_without_work_passes_with_a_warning() {
    let project = Project::new();
    let run = executing(&project);
    let advanced = project.run("run advance @ --json");
    assert_eq!(advanced.code, Some(0));
    let record = advanced.json();
    let condition = &record["evidence"]["conditions"][0];
    assert_eq!((&condition["count"], &condition["result"]), (&json!(0), &json!("pass")));
    assert_eq!(condition["detail"], "no work was recorded in this phase");
    assert_eq!(record["warnings"][0]["code"], "no_work_recorded");

    // Rolled-back work is none: it ended since the phase began, and counts for nothing.
    project.ok(&format!("run rollback {run} --to-phase executing"));
    let dispatch = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {dispatch}"));
    assert_eq!(
        project.json("gate check @")["evidence"]["conditions"][0]["detail"],
        "no active agent and no unfinished dispatch in the run"
    );
    project.ok(&format!("run rollback {run} --to-phase executing --include-target"));
    assert_eq!(
        project.json("gate check @")["evidence"]["conditions"][0]["detail"],
        "no work was recorded in this phase"
    );

    // A dispatch that was cancelled did nothing.
    let dispatch = project.ok("dispatch create @");
    project.ok(&format!("dispatch cancel {dispatch}"));
    let advanced = project.run("run advance @ --format text");
    assert!(advanced.stderr.contains("No work was recorded in executing"), "{}", advanced.stderr);
}

#[test]
fn an_advance_says_whether_it_completes_the_run() {
    let project = Project::new();
    project.ok("run create --goal g --phases a,b,c");
    for (says, status) in [(false, "active"), (true, "completed")] {
        let advanced = project.run("run advance @ --disable-gates --reason r --format text");
        assert_eq!(advanced.stdout.contains("The run is completed."), says, "{advanced:?}");
        assert_eq!(project.json("run list")[0]["status"], status);
    }
}

#[test]
fn the_newest_verdict_of_the_phase_decides() {
    let project = Project::new();
    let gates = r#"{"a->b": [{"check": "verdict_exists"}], "b->c": [{"check": "verdict_exists"}]}"#;
    let words = ["run", "create", "--goal", "g", "--phases", "a,b,c", "--gates", gates];
    let run = project.run_words(words).stdout.trim().to_owned();
    let opens = || project.run("gate check @").code == Some(0);
    assert!(!opens());
    let [first, second, third] = [(); 3].map(|()| project.ok("dispatch create @"));
    // The order of the events counts, not that of the dispatches.
    project.ok(&format!("dispatch complete {third} --verdict pass"));
    assert!(opens());
    project.ok(&format!("dispatch complete {first} --verdict fail"));
    assert!(!opens(), "an older pass is no answer to a newer fail");
    project.ok(&format!("dispatch complete {second} --verdict pass"));
    assert!(opens());
    project.ok("run advance @");
    assert!(!opens(), "a verdict of another phase");
    let fail = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {fail} --verdict fail"));
    let pass = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {pass} --verdict pass"));
    assert!(opens());
    // What was rolled back says nothing any more.
    project.ok(&format!("run rollback {run} --to-phase b --include-target"));
    assert!(!opens());
}

/// The process of a dispatch that ended without a word did not say that its work was done: `fail` is offered first, and works as printed.
#[test]
fn a_gate_offers_to_fail_what_has_no_process_any_more() {
    let project = Project::new();
    project.ok("run create --goal g --phases a,b --gates '{\"a→b\":[{\"check\":\"dispatches_complete\"}]}'");
    let id = project.ok("dispatch create @ --name form");
    let offered = |first: &str| {
        let evidence = project.run("gate check @ --json").json()["evidence"]["conditions"][0]["unfinished"][0].clone();
        let command = evidence["command"].as_str().expect("a command").to_owned();
        assert!(command.starts_with(&format!("ic dispatch {first} ")), "{evidence}");
        let others = evidence["other_commands"].as_array().expect("others").len();
        assert_eq!(others, 1, "{evidence}");
        let text = project.run("gate check @ --format text").stdout;
        assert!(text.contains("ic dispatch complete ") && text.contains(", or ic dispatch "), "{text}");
        command
    };
    offered("complete");
    project.ok(&format!("dispatch start {id} --pid {}", ic_testkit::living_process()));
    offered("complete");
    ic_testkit::end_living_processes();
    let fail = offered("fail");
    project.ok(fail.strip_prefix("ic ").expect("a call"));
    assert_eq!(project.json(&format!("dispatch show {id}"))["status"], "failed");
    project.ok("run advance @");
}
