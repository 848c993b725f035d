//! Real effects and their undo: the order, failures, what is left, and what survives a crash.

mod failures;
mod files;
mod interrupted;
pub(crate) mod processes;

use ic_testkit::CliOutcome;
use serde_json::{Value, json};

use crate::support::{Project, chain, story};

/// A project with a run on a short chain.
fn project() -> Project {
    let project = Project::new();
    chain(&project, "draft,edit,review,done", "draft");
    project
}

/// Declares that a line of shell undoes a step; returns the id.
fn shell(project: &Project, step: &str, line: &str, more: &[&str]) -> String {
    let words = ["compensation", "add", "@", "--step", step, "--shell", line];
    let outcome = project.run_words(words.iter().chain(more));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout.trim().to_owned()
}

/// Declares that undoing a step writes its name into the file `log`.
fn logs(project: &Project, step: &str) -> String {
    shell(project, step, &format!("echo {step} >> log"), &[])
}

/// What the undos wrote into a file, line by line.
fn lines(project: &Project, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.root().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Step and state of each compensation, in the order of their effects.
fn states(project: &Project) -> Vec<(String, String)> {
    let all = project.json("compensation list @");
    all.as_array().expect("a list").iter().map(|one| (text(&one["step"]), text(&one["status"]))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Undoes, and returns the record.
fn undo(project: &Project, more: &str, exit: i32) -> Value {
    let outcome: CliOutcome = project.run(&format!("compensation run @ --yes --json {more}"));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(exit), ""), "{outcome:?}");
    outcome.json()
}

/// The steps of the results, in their order, each with its state.
fn results(report: &Value) -> Vec<(String, String)> {
    let results = report["results"].as_array().expect("results");
    results.iter().map(|one| (text(&one["step"]), text(&one["status"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn status(project: &Project) -> String {
    let runs = project.json("run list");
    text(&runs[0]["status"])
}

#[test]
fn effects_are_undone_from_the_last_to_the_first() {
    let project = project();
    for step in ["one", "two", "three"] {
        logs(&project, step);
    }
    let exec =
        ["compensation", "add", "@", "--step", "four", "--exec", "--", "sh", "-c", "echo $0 >> log", "it's four"];
    assert_eq!(project.run_words(exec).code, Some(0));
    let planned = project.json("compensation run @ --dry-run");
    assert_eq!((&planned["status"], &planned["compensations_left"]), (&json!("planned"), &json!([])));
    assert_eq!(lines(&project, "log"), Vec::<String>::new(), "a dry run only looks");
    let report = undo(&project, "", 0);
    assert_eq!((&report["status"], &report["resume"]), (&json!("done"), &json!(null)));
    assert_eq!(lines(&project, "log"), ["it's four", "three", "two", "one"]);
    let order = pairs(&[("four", "done"), ("three", "done"), ("two", "done"), ("one", "done")]);
    assert_eq!(results(&report), order);
    assert_eq!(status(&project), "active");
    assert_eq!(results(&undo(&project, "", 0)), [], "what is undone is not undone again");
    assert_eq!(lines(&project, "log").len(), 4);
}

#[test]
fn a_command_runs_where_and_as_it_was_declared() {
    let project = project();
    std::fs::create_dir_all(project.root().join("ops/db")).expect("a directory");
    let inside = project.root().join("ops");
    for cwd in ["ops/db/..", inside.to_str().expect("a path")] {
        let id =
            shell(&project, "s", "pwd > ../where; echo $IC_RUN $IC_STEP $IC_IDEMPOTENCY_KEY > ../who", &["--cwd", cwd]);
        undo(&project, "", 0);
        assert_eq!(lines(&project, "where"), [inside.to_str().expect("a path")]);
        let run = text(&project.json("run current")["id"]);
        assert_eq!(lines(&project, "who"), [format!("{run} s {id}")]);
    }
    std::os::unix::fs::symlink(project.cli.home(), project.root().join("out")).expect("a link");
    for cwd in ["..", "/", "out", "ops/../.."] {
        let line = format!("compensation add @ --step s --shell true --cwd {cwd}");
        assert_eq!(project.refused(&line), (3, "invalid_value".to_owned()), "{cwd}");
    }
}

#[test]
fn what_is_declared_to_need_nothing_is_skipped_and_never_called_undone() {
    let project = project();
    project.ok("compensation add @ --step build --skip --reason 'makes nothing'");
    project.ok("compensation add @ --step test --retry --reason flaky");
    logs(&project, "queue");
    let report = undo(&project, "", 0);
    let order = pairs(&[("queue", "done"), ("test", "skipped"), ("build", "skipped")]);
    assert_eq!(results(&report), order);
    assert_eq!(report["results"][2]["error"], json!(null), "it is no error");
    assert!(text(&report["results"][2]["reason"]).ends_with("makes nothing"), "{report}");
    project.ok("compensation add @ --step build --skip");
    let shown = project.ok("compensation run @ --yes --format text");
    assert!(shown.contains("Nothing") && shown.contains("1 skipped") && shown.contains("skipped  build"), "{shown}");
    assert!(!shown.contains("undone  ") && !shown.contains("rolled back"), "{shown}");
}

#[test]
fn nothing_before_a_pivot_is_undone_without_force() {
    let project = project();
    logs(&project, "before");
    project.ok("compensation add @ --step mail --pivot --reason sent");
    logs(&project, "after");
    let planned = project.json("compensation run @ --dry-run");
    assert_eq!((results(&planned).len(), &planned["held_by"]), (1, &json!("mail")));
    let report = undo(&project, "", 4);
    assert_eq!((&report["status"], &report["held_by"]), (&json!("stopped"), &json!("mail")));
    assert_eq!(report["compensations_left"].as_array().map(Vec::len), Some(2), "{report}");
    assert_eq!(lines(&project, "log"), ["after"]);
    assert_eq!(status(&project), "active", "nothing failed, and so nothing is closed");
    let resume = text(&report["resume"]);
    assert!(resume.ends_with(" --force --yes"), "{resume}");
    let shown = project.run("compensation run @ --yes --format text");
    assert_eq!(shown.code, Some(4), "{shown:?}");
    assert!(shown.stdout.contains("mail cannot be undone") && shown.stdout.contains("--force"), "{shown:?}");
    project.ok(resume.strip_prefix("ic ").expect("a call"));
    assert_eq!(lines(&project, "log"), ["after", "before"]);
    assert_eq!(states(&project), pairs(&[("before", "done"), ("mail", "skipped"), ("after", "done")]));
}

#[test]
fn only_what_was_begun_after_the_phase_is_undone() {
    let project = project();
    logs(&project, "draft");
    project.ok("run advance @");
    logs(&project, "edit");
    project.ok("run advance @");
    logs(&project, "review");
    assert_eq!(results(&undo(&project, "--to-phase review", 0)), [], "it is still there");
    assert_eq!(results(&undo(&project, "--to-phase edit", 0)), pairs(&[("review", "done")]));
    assert_eq!(results(&undo(&project, "--to-phase draft", 0)), pairs(&[("edit", "done")]));
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("draft", "done")]));
    assert_eq!(lines(&project, "log"), ["review", "edit", "draft"]);
}

#[test]
fn only_the_step_that_was_named_is_undone() {
    let project = project();
    for step in ["one", "two", "one", "--odd name"] {
        let line = format!("echo '{step}' >> log");
        let step = format!("--step={step}");
        assert_eq!(project.run_words(["compensation", "add", "@", &step, "--shell", &line]).code, Some(0));
    }
    undo(&project, "--step one", 0);
    assert_eq!(lines(&project, "log"), ["one", "one"]);
    assert_eq!(project.refused("compensation run @ --yes --step One"), (3, "compensation_not_found".to_owned()));
    let words = ["compensation", "run", "@", "--yes", "--step=--odd name"];
    assert_eq!(project.run_words(words).code, Some(0));
    assert_eq!(lines(&project, "log"), ["one", "one", "--odd name"]);
}

#[test]
fn every_change_is_an_event() {
    let project = project();
    let id = shell(&project, "queue", "test -e fixed", &["--retries", "1"]);
    undo(&project, "", 4);
    project.write("fixed", "");
    undo(&project, "", 0);
    let events = project.json("events tail @");
    let events = events.as_array().expect("events");
    let of = |source: &str| -> Vec<String> {
        let those = events.iter().filter(|event| event["source"] == source);
        those.map(|event| text(&event["kind"])).collect()
    };
    let happened = ["registered", "armed", "started", "failed", "started", "failed", "started", "done"];
    assert_eq!(of("compensation"), happened.map(|what| format!("compensation_{what}")));
    assert!(events.iter().all(|event| event["source"] != "compensation" || event["subject_id"] == *id));
    assert_eq!(of("run")[1..], ["compensating_begun", "compensating_ended"]);
    assert_eq!(project.json("events verify")["ok"], json!(true));
}

#[test]
fn the_steps_of_a_run_are_its_work_and_what_was_declared() {
    let project = Project::new();
    let story = story(&project);
    let report = project.json("compensation coverage @");
    assert_eq!((&report["percentage"], &report["undeclared"]), (&json!(0), &json!(["plan", "form"])));
    assert_eq!(report["warnings"][0]["code"], "undeclared_steps");
    project.ok(&format!("compensation add @ --step database --shell true --dispatch {}", story.builder));
    project.ok("compensation add @ --step plan --skip");
    let report = project.json("compensation coverage @");
    assert_eq!((&report["percentage"], &report["undeclared"]), (&json!(100), &json!([])));
    assert_eq!(report.get("warnings"), None);
    assert_eq!(project.json("compensation list @")[0]["dispatch_id"], json!(story.builder));
    let warned = Project::new();
    chain(&warned, "a,b", "a");
    assert_eq!(warned.json("compensation coverage @")["percentage"], json!(100), "no steps are covered");
    warned.ok("dispatch create @ --name build");
    let shown = warned.run("compensation coverage @ --format text");
    assert!(shown.stderr.contains("for 1 of 1 step: build"), "{shown:?}");
}

#[test]
fn nothing_is_declared_for_a_run_that_ended_or_by_work_that_was_rolled_back() {
    let project = Project::new();
    let story = story(&project);
    project.ok("run rollback @ --to-phase planned");
    let late = format!("compensation add @ --step s --skip --dispatch {}", story.builder);
    assert_eq!(project.refused(&late), (1, "stale_dispatch".to_owned()));
    let late = format!("compensation run @ --yes --dispatch {}", story.builder);
    assert_eq!(project.refused(&late), (1, "stale_dispatch".to_owned()));
    project.ok("run cancel @");
    let ended = format!("compensation add {} --step s --skip", story.run);
    assert_eq!(project.refused(&ended), (1, "run_not_active".to_owned()));
}

#[test]
fn a_run_that_ended_can_be_undone_and_stays_ended() {
    let project = project();
    logs(&project, "queue");
    let run = text(&project.json("run current")["id"]);
    project.ok("run cancel @");
    project.ok(&format!("compensation run {run} --yes"));
    assert_eq!(lines(&project, "log"), ["queue"]);
    assert_eq!(status(&project), "cancelled");
}

#[test]
fn a_cancelled_run_stays_cancelled_when_an_undo_of_it_fails() {
    let project = project();
    shell(&project, "one", "test -e mended && echo one >> log", &[]);
    project.ok("run cancel @");
    let run = project.json("run list")[0]["id"].as_str().expect("a run").to_owned();
    let call = ["compensation", "run", &run, "--yes"];
    let failed = project.run_words(call);
    assert_ne!(failed.code, Some(0), "{failed:?}");
    let status = || project.json(&format!("run status {run}"))["status"].clone();
    assert_eq!(status(), "cancelled");
    // The same call undoes what is left.
    std::fs::write(project.root().join("mended"), "").expect("a file");
    let mended = project.run_words(call);
    assert_eq!(mended.code, Some(0), "{mended:?}");
    assert_eq!((status(), lines(&project, "log")), (json!("cancelled"), vec!["one".to_owned()]));
}
