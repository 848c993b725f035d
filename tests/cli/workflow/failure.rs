//! What happens when a step fails, and how a workflow is rolled back.

use serde_json::{Value, json};

use super::{call, content, lines, project, run, states, status, step, touch, undone};
use crate::support::Project;

/// The last of three steps fails until `fixed` stands beside the project; each step and each undo writes its name down.
const RELEASE: &str = "name: release
steps:
  - id: one
    phase: first
    run: 'echo one >> ../ran; echo 1 > made.txt; echo 2 > kept.txt'
    compensate: {shell: 'echo one >> ../undone'}
  - id: two
    phase: second
    run: 'echo two >> ../ran; mkdir -p deep/er; echo 2 > deep/er/made.txt'
    compensate: {shell: 'echo two >> ../undone'}
  - id: three
    run: 'echo three >> ../ran; echo 3 > three.txt; test -e ../fixed'
    compensate: {shell: 'echo three >> ../undone'}
";

pub(super) fn release() -> Project {
    let project = project(RELEASE);
    project.write("kept.txt", "1\n");
    project
}

/// Whether the tree is as before the workflow.
pub(super) fn is_as_before(project: &Project) -> bool {
    content(project, "kept.txt").as_deref() == Some("1\n")
        && ["made.txt", "three.txt", "deep"].iter().all(|path| !project.root().join(path).exists())
}

#[test]
fn where_nobody_can_be_asked_it_stops_and_goes_on_later() {
    let project = release();
    let report = run(&project, "", 1);
    assert_eq!(
        (&report["status"], &report["failed_step"], &report["rollback"]),
        (&json!("stopped"), &json!("three"), &json!(null))
    );
    assert_eq!(states(&report), ["succeeded", "succeeded", "failed"]);
    assert_eq!(status(&project), ("active".to_owned(), "second".to_owned()));
    assert!(lines(&project, "undone").is_empty() && content(&project, "three.txt").is_some());
    touch(&project, "fixed");
    let resume = report["resume"].as_str().and_then(|line| line.strip_prefix("ic ")).expect("a command").to_owned();
    let report = call(&project, &resume, 0);
    assert_eq!((&report["status"], &report["resume"]), (&json!("completed"), &json!(null)));
    assert_eq!(lines(&project, "ran"), ["one", "two", "three", "three"], "what is finished is not run again");
    assert_eq!(step(&report, "three")["attempts"], json!(2));
    let again = report["run_id"].as_str().expect("a run");
    assert_eq!(project.refused(&format!("workflow resume {again}")), (1, "nothing_to_resume".to_owned()));
}

#[test]
fn a_rollback_undoes_in_reverse_and_puts_the_tree_back() {
    let project = release();
    let report = run(&project, "--on-failure rollback", 1);
    assert_eq!((&report["status"], &report["error"]), (&json!("rolled_back"), &json!("it ended with exit code 1")));
    assert_eq!(undone(&report), ["three", "two", "one"]);
    assert_eq!(lines(&project, "undone"), ["three", "two", "one"]);
    assert!(is_as_before(&project));
    assert_eq!(status(&project), ("active".to_owned(), "first".to_owned()));
    let taken = &report["rollback"];
    assert_eq!(
        (&taken["to_phase"], &taken["compensations_left"], &taken["error"]),
        (&json!("first"), &json!([]), &json!(null))
    );
    assert_eq!(taken["restored"]["checkpoint_id"], step(&report, "one")["checkpoint_id"]);
    let events = project.json("events tail @");
    let rollback = events.as_array().expect("events").iter().find(|event| event["kind"] == "rollback");
    assert_eq!(rollback.expect("an audit event")["subject_id"], taken["rollback_id"]);
    for id in ["one", "two", "three"] {
        let work = project.json(&format!("dispatch show {}", step(&report, id)["dispatch_id"].as_str().expect("work")));
        assert_eq!(work["rolled_back_by"], taken["rollback_id"], "{id}");
    }
    assert_eq!(project.json("events verify")["ok"], json!(true));
}

#[test]
fn what_was_taken_back_can_be_run_again() {
    let project = release();
    let before = run(&project, "--on-failure rollback", 1);
    touch(&project, "fixed");
    let report = call(&project, "workflow resume @", 0);
    assert_eq!(states(&report), ["succeeded"; 3]);
    assert_eq!(report["run_id"], before["run_id"]);
    let key = |report: &serde_json::Value| step(report, "one")["compensation_id"].clone();
    assert_ne!(key(&report), key(&before), "a redone step has a key of its own");
    assert_eq!(lines(&project, "ran").len(), 6);
    assert_eq!(content(&project, "kept.txt").as_deref(), Some("2\n"));
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(undone(&report), ["three", "two", "one"], "each effect is undone once");
    assert!(is_as_before(&project));
}

/// A step that fails in the middle of two phases; some steps need it, and some do not.
const TWO_WAYS: &str = "name: ways
steps:
  - {id: bad, phase: first, run: 'echo bad >> ../ran; test -e ../fixed', compensate: {shell: 'echo bad >> ../undone'}}
  - {id: needs, needs: [bad], run: 'echo needs >> ../ran', compensate: {shell: 'echo needs >> ../undone'}}
  - {id: free, run: 'echo free >> ../ran', compensate: {shell: 'echo free >> ../undone'}}
  - {id: later, phase: second, needs: [needs], run: 'echo later >> ../ran', compensate: {shell: 'echo later >> ../undone'}}
  - {id: end, run: 'echo end >> ../ran', compensate: {shell: 'echo end >> ../undone'}}
";

#[test]
fn steps_that_do_not_need_the_failed_one_go_on_if_that_is_wanted() {
    let project = project(TWO_WAYS);
    let report = run(&project, "--on-failure continue", 1);
    assert_eq!((&report["status"], &report["failed_step"]), (&json!("failed"), &json!("bad")));
    assert_eq!(states(&report), ["failed", "skipped", "succeeded", "skipped", "succeeded"]);
    assert_eq!(step(&report, "later")["error"], "it needs bad, which failed");
    assert_eq!(lines(&project, "ran"), ["bad", "free", "end"]);
    assert_eq!(status(&project).0, "active");
    touch(&project, "fixed");
    let report = call(&project, "workflow resume @", 0);
    assert_eq!(states(&report), ["succeeded"; 5]);
    assert_eq!(lines(&project, "ran"), ["bad", "free", "end", "bad", "needs", "later"]);
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(undone(&report).len(), 5);
}

#[test]
fn nothing_else_begins_after_a_failure_otherwise() {
    let project = project(TWO_WAYS);
    let report = run(&project, "", 1);
    assert_eq!(states(&report), ["failed", "pending", "pending", "pending", "pending"]);
}

#[test]
fn the_flag_counts_more_than_the_file_and_the_file_more_than_the_configuration() {
    let file = format!("on-failure: rollback\n{RELEASE}");
    for (flow, config, flag, status) in [
        (RELEASE, "{}", "", "stopped"),
        (RELEASE, "{auto-rollback: true}", "", "rolled_back"),
        (RELEASE, "{auto-rollback: true}", "--on-failure stop", "stopped"),
        (file.as_str(), "{}", "", "rolled_back"),
        (file.as_str(), "{}", "--on-failure stop", "stopped"),
        (file.as_str(), "{auto-rollback: false}", "--on-failure continue", "failed"),
    ] {
        let project = project(flow);
        project.write(".ic.yaml", &format!("rollback: {{on-failure: {config}}}\n"));
        let report = run(&project, flag, 1);
        assert_eq!(report["status"], status, "{config} {flag}");
    }
}

#[test]
fn an_undo_that_fails_leaves_the_rest_and_is_taken_up_again() {
    let project = project(
        "name: stuck
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - id: two
    phase: second
    run: 'true'
    compensate: {shell: 'echo $IC_IDEMPOTENCY_KEY >> ../keys; test -e ../network || { echo no network; exit 9; }', retries: {max: 1, backoff: 1ms}}
  - {id: three, run: 'exit 1', compensate: {shell: 'echo three >> ../undone'}}
",
    );
    let report = run(&project, "--on-failure rollback", 4);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolling_back"), vec!["three"]));
    let left = report["rollback"]["compensations_left"].as_array().expect("what is left");
    assert_eq!(left.len(), 2);
    assert_eq!(report["rollback"]["compensations"][1]["error"], "it ended with exit code 9: no network");
    assert_eq!(status(&project), ("rolling_back".to_owned(), "second".to_owned()));
    assert!(content(&project, "one.txt").is_some(), "the tree is restored last");
    let run_id = report["run_id"].as_str().expect("a run");
    assert_eq!(project.refused(&format!("run advance {run_id}")), (1, "rolling_back".to_owned()));
    assert_eq!(project.refused("workflow resume @"), (3, "confirmation_required".to_owned()));
    let resume = report["resume"].as_str().and_then(|line| line.strip_prefix("ic ")).expect("a command").to_owned();
    assert_eq!(call(&project, &resume, 4)["status"], "rolling_back");
    touch(&project, "network");
    let report = call(&project, &resume, 1);
    assert_eq!((&report["status"], undone(&report)), (&json!("rolled_back"), vec!["two", "one"]));
    assert_eq!(lines(&project, "undone"), ["three", "one"], "what is undone is not undone again");
    let keys = lines(&project, "keys");
    assert!(keys.len() == 5 && keys.iter().all(|key| *key == keys[0]), "one key for all attempts: {keys:?}");
    assert_eq!(content(&project, "one.txt"), None);
    assert_eq!(status(&project), ("active".to_owned(), "first".to_owned()));
}

#[test]
fn the_failed_step_is_undone_too_unless_it_says_otherwise() {
    let project = project(
        "name: own
steps:
  - {id: one, phase: first, run: 'true', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'exit 1', compensate: {shell: 'echo two >> ../undone', on-failure: false}}
",
    );
    let report = run(&project, "--on-failure rollback", 1);
    assert_eq!((&report["status"], lines(&project, "undone")), (&json!("rolled_back"), vec!["one".to_owned()]));
    let succeeded = self::project(
        "name: own
steps:
  - {id: two, phase: first, run: 'true', compensate: {shell: 'echo two >> ../undone', on-failure: false}}
",
    );
    run(&succeeded, "", 0);
    call(&succeeded, "workflow rollback --yes", 0);
    assert_eq!(lines(&succeeded, "undone"), ["two"], "it runs when its step succeeded");
}

#[test]
fn a_step_that_was_never_begun_is_not_undone() {
    let project = project(
        "name: never
steps:
  - {id: one, phase: first, run: 'exit 1', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'true', compensate: {shell: 'echo two >> ../undone'}}
",
    );
    run(&project, "--on-failure rollback", 1);
    assert_eq!(lines(&project, "undone"), ["one"]);
}

#[test]
fn a_cancelled_workflow_is_neither_resumed_nor_taken_back() {
    let project = release();
    let report = run(&project, "", 1);
    let run_id = report["run_id"].as_str().expect("a run");
    project.ok("run cancel @");
    assert_eq!(project.refused(&format!("workflow resume {run_id}")), (1, "run_not_active".to_owned()));
    assert_eq!(project.refused(&format!("workflow rollback {run_id} --yes")), (1, "run_not_active".to_owned()));
    assert!(lines(&project, "undone").is_empty());
}

#[test]
fn a_step_that_failed_keeps_its_key_when_it_is_resumed() {
    // An undo that does not run after a failure is settled by it, and its step's next attempt has another.
    for (compensate, keeps) in [
        ("", true),
        (", compensate: skip", true),
        (", compensate: {shell: 'true'}", true),
        (", compensate: {shell: 'true', on-failure: false}", false),
    ] {
        let flow = format!(
            "name: key\nsteps:\n  - {{id: one, phase: first, run: 'echo $IC_IDEMPOTENCY_KEY >> ../keys; test -e ../fixed'{compensate}}}\n"
        );
        let project = project(&flow);
        run(&project, "", 1);
        touch(&project, "fixed");
        call(&project, "workflow resume @", 0);
        let keys = lines(&project, "keys");
        assert_eq!(keys[0] == keys[1], keeps, "{compensate}");
        call(&project, "workflow rollback --yes", 0);
        call(&project, "workflow resume @", 0);
        assert_ne!(lines(&project, "keys")[2], keys[0], "{compensate}: done anew");
    }
}

/// Changes rows of the ledger, as a damaged disk could have left them.
fn damage(project: &Project, sql: &str) {
    project.cli.sql(sql);
}

#[test]
fn an_unknown_word_in_what_was_decided_stops_the_rollback_of_a_workflow() {
    let flow = "name: kept
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, phase: second, run: 'exit 1'}
";
    for (key, word) in [("strategy", "\"everything\""), ("on_failure", "\"shrug\""), ("strategy", "null")] {
        let project = project(flow);
        run(&project, "--on-failure stop", 1);
        let mut options: Value = serde_json::from_str(&project.cli.sql("SELECT options FROM workflows")).expect("JSON");
        options[key] = serde_json::from_str(word).expect("JSON");
        damage(&project, &format!("UPDATE workflows SET options = '{options}'"));
        for call in ["workflow rollback --yes", "workflow rollback --yes --strategy files-only", "workflow resume @"] {
            assert_eq!(project.refused(call), (2, "corrupt".to_owned()), "{key} {word}: {call}");
        }
        assert!(content(&project, "one.txt").is_some() && lines(&project, "undone").is_empty(), "{key} {word}");
    }
}

#[test]
fn what_was_decided_is_read_from_the_row() {
    for (strategy, error) in [("full", ""), ("files-only", ""), ("git-only", "git_unsupported")] {
        let project = project("name: old\nsteps: [{id: one, phase: first, run: 'exit 1'}]\n");
        run(&project, "--on-failure stop", 1);
        let decided = format!(r#"{{"on_failure":"stop","strategy":"{strategy}","jobs":1}}"#);
        damage(&project, &format!("UPDATE workflows SET options = '{decided}'"));
        let outcome = project.run("workflow rollback --dry-run --json");
        if error.is_empty() {
            assert_eq!(outcome.json()["strategy"], strategy, "{outcome:?}");
        } else {
            assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), error), "there is no git here");
        }
    }
}

#[test]
fn a_run_whose_status_before_its_effects_were_undone_is_not_known_stays_closed() {
    let project = project(
        "name: stuck
steps:
  - {id: one, phase: first, run: 'true', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'exit 1', compensate: {shell: 'test -e ../network'}}
",
    );
    run(&project, "--on-failure stop", 1);
    call(&project, "compensation run @ --yes", 4);
    // As a process leaves it that dies in the middle.
    damage(&project, "UPDATE runs SET status = 'rolling_back'");
    touch(&project, "network");
    damage(&project, "UPDATE run_owners SET status_before = 'asleep'");
    for _ in 0..2 {
        let outcome = project.run("compensation run @ --yes --json");
        assert_eq!((outcome.code, outcome.error().as_str()), (Some(2), "corrupt"), "{outcome:?}");
        assert_eq!(status(&project).0, "rolling_back");
        assert!(lines(&project, "undone").is_empty(), "no effect is undone first");
    }
    damage(&project, "UPDATE run_owners SET status_before = 'active'");
    call(&project, "compensation run @ --yes", 0);
    assert_eq!((status(&project).0, lines(&project, "undone")), ("active".to_owned(), vec!["one".to_owned()]));
}

/// A run that does not advance by itself holds its workflow between two phases: no failure, and the report says what it waits for.
#[test]
fn a_paused_run_stops_its_workflow_with_a_report() {
    let project = project(
        "name: waits
steps:
  - {id: a, phase: first, run: 'until test -e ../go; do sleep 0.02; done', compensate: skip}
  - {id: b, phase: second, run: 'echo b > b.txt', compensate: skip}
",
    );
    let words = crate::support::args("workflow run flow.yaml --json");
    let mut command = project.command(words);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("start ic");
    ic_testkit::wait_for("the step runs", || project.run("workflow show @ --json").stdout.contains("running"));
    project.ok("run set @ --auto-advance false");
    touch(&project, "go");
    let outcome = ic_testkit::CliOutcome::at_end_of(child);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), ""), "{outcome:?}");
    let report = outcome.json();
    assert_eq!((&report["status"], states(&report)), (&"stopped".into(), vec!["succeeded", "pending"]));
    let warning = report["warnings"].as_array().and_then(|all| all.last()).expect("a warning").clone();
    let message = warning["message"].as_str().expect("a text");
    assert_eq!(warning["code"], "paused");
    assert!(message.contains("from first to second") && message.contains("--auto-advance true"), "{message}");
    project.ok("run set @ --auto-advance true");
    assert_eq!(call(&project, "workflow resume @", 0)["status"], "completed");
}
