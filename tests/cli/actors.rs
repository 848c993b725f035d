//! Who did it: the actor of each event, other people in lists, and gates that ask for the word of another.

use ic_testkit::CliOutcome;
use serde_json::{Value, json};

use crate::agents::{Said, in_call, in_git, say};
use crate::support::Project;

const OTHER: &str = "bob@build:/srv/shop";

/// Who wrote the newest event of a kind.
fn author(project: &Project, kind: &str) -> Value {
    let events = project.json("events tail --json");
    let events = events.as_array().expect("a list");
    events.iter().rfind(|event| event["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))["actor"].clone()
}

fn ann(client: &Value, session: &Value, dispatch: &Value) -> Value {
    json!({
        "user": "ann", "seat": "laptop:/home/ann/shop",
        "client": client, "client_session_id": session, "dispatch_id": dispatch,
    })
}

fn prompt(project: &Project, session: &str, file: &str) {
    say(project, &Said::new("claude-code", session, "UserPromptSubmit").prompt(file, file));
    in_call(project, "claude-code", session, || project.write(file, "text\n"));
    say(project, &Said::new("claude-code", session, "Stop"));
}

#[test]
fn each_event_says_who_wrote_it_and_for_whom() {
    let project = in_git();
    project.ok("run create --goal g --phases a,b");
    let person = ann(&Value::Null, &Value::Null, &Value::Null);
    assert_eq!(author(&project, "run_created"), person);
    prompt(&project, "s-1", "one");
    let agent = ann(&json!("claude-code"), &json!("s-1"), &Value::Null);
    for kind in ["session_begun", "dispatch_created", "dispatch_completed"] {
        assert_eq!(author(&project, kind), agent, "{kind}");
    }
    // In the shell of the agent: in the middle of its prompt.
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("two", "two"));
    let all = project.json("dispatch list");
    let work = all.as_array().and_then(|all| all.last()).expect("its work")["id"].clone();
    let made = project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", "dispatch create @ --json");
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(author(&project, "dispatch_created"), ann(&json!("claude-code"), &json!("s-1"), &work));
    // A script on behalf of a dispatch.
    let dispatch = project.ok("dispatch create @");
    let id = project.json(&format!("dispatch show {dispatch}"))["id"].clone();
    let noted = project.run_with("IC_DISPATCH", &dispatch, "run artifact add @ --path one");
    assert_eq!(noted.code, Some(0), "{noted:?}");
    assert_eq!(author(&project, "artifact_added"), ann(&Value::Null, &Value::Null, &id));
    project.ok("events verify");
    let text = project.ok("events tail --format text");
    assert!(text.contains("by claude-code of ann@laptop") && text.contains("by ann@laptop"), "{text}");
}

#[test]
fn a_changed_author_breaks_the_chain() {
    let project = Project::new();
    project.ok("run create --goal g --phases a,b");
    project.cli.sql(
        "DROP TRIGGER events_are_not_changed; UPDATE events SET actor = replace(actor, 'ann', 'eve') WHERE seq = 1",
    );
    let verified = project.run("events verify --json");
    assert_eq!((verified.code, verified.error()), (Some(2), "chain_broken".to_owned()));
}

#[test]
fn work_of_another_person_is_named_in_log_show_and_blame() {
    let project = in_git();
    prompt(&project, "s-1", "one");
    let bob = |line: &str| project.run_with("IC_TEST_ACTOR", OTHER, line);
    let said = bob("exec --name hers -- sh -c 'echo more >> one'");
    assert_eq!(said.code, Some(0), "{said:?}");
    let log = project.ok("log --format text");
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains("exec of bob@build"), "{log}");
    assert!(lines[1].contains("claude-code") && !lines[1].contains(" of "), "{log}");
    let own = bob("log --format text").stdout;
    assert!(own.lines().nth(1).is_some_and(|line| line.contains("claude-code of ann@laptop")), "{own}");
    let entries = project.json("log");
    assert_eq!(entries[0]["actor"]["seat"], "build:/srv/shop", "{entries}");
    let blamed = project.json("blame one");
    assert_eq!(blamed["changes"][0]["dispatches"][0]["actor"]["user"], "bob", "{blamed}");
    let name = entries[0]["reference"].as_str().expect("a reference").to_owned();
    let shown = project.ok(&format!("show {name} --format text"));
    assert!(shown.contains("of bob@build"), "{shown}");
}

/// A run with a gate that asks for a verdict of another, and work in it.
fn with_a_gate() -> (Project, String) {
    let project = Project::new();
    let gates = r#"{"a→b": [{"check": "verdict_exists", "by": "other"}]}"#;
    let made = project.run_words(["run", "create", "--goal", "g", "--phases", "a,b", "--gates", gates]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let work = project.ok("dispatch create @");
    project.ok(&format!("dispatch start {work}"));
    (project, work)
}

#[test]
fn a_gate_by_other_wants_the_word_of_another() {
    let (project, work) = with_a_gate();
    let as_work = |line: &str| project.run_with("IC_DISPATCH", &work, line);
    // Its own verdict, under its own name and under that of a review that it makes itself.
    let review = as_work("dispatch create @").stdout.trim().to_owned();
    assert_eq!(as_work(&format!("dispatch complete {review} --verdict pass")).code, Some(0));
    let blocked = project.run("run advance @ --json");
    assert_eq!((blocked.code, &blocked.json()["code"]), (Some(1), &json!("gate_blocked")));
    let condition = blocked.json()["evidence"]["conditions"][0].clone();
    assert_eq!((&condition["by"], &condition["count"]), (&json!("other"), &json!(0)));
    assert_eq!(condition["detail"], "no verdict in phase a by another than who did the work");
    // It may not pass over the gate either; a person may.
    let refused = as_work("gate override @ --reason mine --json");
    assert_eq!((refused.code, refused.error()), (Some(1), "gate_blocked".to_owned()));
    assert_eq!(project.ok("run phase @"), "a");
    let other = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {other} --verdict fail"));
    assert_eq!(project.run("run advance @").code, Some(1));
    let last = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {last} --verdict pass"));
    // A later word of its own changes nothing.
    let again = as_work("dispatch create @").stdout.trim().to_owned();
    assert_eq!(as_work(&format!("dispatch complete {again} --verdict fail")).code, Some(0));
    project.ok("run advance @");
}

#[test]
fn a_person_overrides_a_gate_by_other() {
    let (project, _work) = with_a_gate();
    project.ok("gate override @ --reason 'looked at it myself'");
    assert_eq!(author(&project, "override"), ann(&Value::Null, &Value::Null, &Value::Null));
}

#[test]
fn two_agents_of_one_session_are_no_others() {
    let project = in_git();
    let gates = r#"{"a→b": [{"check": "artifact_exists", "by": "other"}]}"#;
    let made = project.run_words(["run", "create", "--goal", "g", "--phases", "a,b", "--gates", gates]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let run = project.ok("run current");
    prompt(&project, "s-1", "other");
    let inside = |line: &str| project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", line);
    assert_eq!(inside(&format!("session attach {run}")).code, Some(0));
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("one", "one"));
    in_call(&project, "claude-code", "s-1", || project.write("plan", "text\n"));
    assert_eq!(inside(&format!("run artifact add {run} --path plan")).code, Some(0));
    assert_eq!(project.run(&format!("run advance {run}")).code, Some(1));
    project.ok(&format!("run artifact add {run} --path plan --type review"));
    project.ok(&format!("run advance {run}"));
}

#[test]
fn a_session_in_two_work_trees_is_no_other() {
    let project = in_git();
    let gates = r#"{"a→b": [{"check": "artifact_exists", "by": "other"}]}"#;
    let made = project.run_words(["run", "create", "--goal", "g", "--phases", "a,b", "--gates", gates]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let (run, there) = (project.ok("run current"), project.root().join(".claude/worktrees/there"));
    let at = there.to_str().expect("text");
    ic_testkit::git_in(project.root(), &["worktree", "add", "-q", "-b", "there", at]);
    prompt(&project, "s-1", "other");
    let inside = |line: &str| project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", line);
    assert_eq!(inside(&format!("session attach {run}")).code, Some(0));
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("one", "one"));
    in_call(&project, "claude-code", "s-1", || project.write("plan", "text\n"));
    let said = Said::new("claude-code", "s-1", "PreToolUse").prompt("one", "").with("cwd", at);
    say(&project, &said.with("tool_name", "Bash").with("tool_use_id", "there"));
    let plan = project.root().join("plan");
    let added = inside(&format!("-C {at} run artifact add {run} --path {}", plan.display()));
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(project.run(&format!("run advance {run}")).code, Some(1));
}

/// A run with a gate `by: other` at the end of `phase`, in a repository.
fn gated(phases: &str, at: &str, phase: &str) -> (Project, String) {
    let project = in_git();
    let gates = format!(r#"{{"{at}": [{{"check": "verdict_exists", "phase": "{phase}", "by": "other"}}]}}"#);
    let made = project.run_words(["run", "create", "--goal", "g", "--phases", phases, "--gates", &gates]);
    assert_eq!(made.code, Some(0), "{made:?}");
    (project, made.stdout.trim().to_owned())
}

#[test]
fn a_worker_of_an_earlier_phase_is_no_other() {
    let (project, _run) = gated("work,review,done", "review→done", "review");
    let work = project.ok("dispatch create @");
    project.ok(&format!("dispatch start {work}"));
    project.ok(&format!("dispatch complete {work}"));
    project.ok("run advance @");
    let own = project.run_with("IC_DISPATCH", &work, "dispatch create @").stdout.trim().to_owned();
    project.run_with("IC_DISPATCH", &work, &format!("dispatch complete {own} --verdict pass"));
    assert_eq!(project.run("run advance @").code, Some(1));
    for line in ["gate override @ --reason r", "run advance @ --priority 4", "run advance @ --priority 2"] {
        let as_worker = project.run_with("IC_DISPATCH", &work, &format!("{line} --json"));
        assert_eq!((as_worker.code, as_worker.error()), (Some(1), "gate_blocked".to_owned()), "{line}");
    }
    assert_eq!(project.ok("run phase @"), "review");
    let review = project.ok("dispatch create @");
    project.ok(&format!("dispatch complete {review} --verdict pass"));
    project.ok("run advance @");
}

#[test]
fn a_worker_does_not_skip_the_review_of_its_work() {
    let (project, _run) = gated("work,review,done", "review→done", "review");
    let work = project.ok("dispatch create @");
    project.ok(&format!("dispatch start {work}"));
    let skipped = project.run_with("IC_DISPATCH", &work, "run skip @ review --reason r --json");
    assert_eq!((skipped.code, skipped.error()), (Some(1), "gate_blocked".to_owned()));
    project.ok("run skip @ review --reason 'a person says so'");
}

#[test]
fn a_command_that_works_gives_no_verdict_on_itself() {
    let (project, run) = gated("a,b", "a→b", "a");
    let exec = |line: &str| {
        let mut call = project.command(["exec", "--run", &run, "--", "sh", "-c", line]);
        // A command in a command makes ids of its own.
        CliOutcome::of(call.env_remove("IC_TEST_IDS"))
    };
    let ic = project.command(["version"]).get_program().to_owned();
    let verdict = format!("{} dispatch complete $IC_DISPATCH --verdict pass", ic.to_string_lossy());
    assert_eq!(exec(&format!("echo w > w; {verdict}")).code, Some(0));
    assert_eq!(project.run("run advance @").code, Some(1), "it changed a file");
    // One that it begins is no other either.
    let inner = format!("echo v > v; {0} exec -- sh -c '{verdict}'", ic.to_string_lossy());
    assert_eq!(exec(&inner).code, Some(0));
    assert_eq!(project.run("run advance @").code, Some(1), "its child is no other");
    assert_eq!(exec(&verdict).code, Some(0));
    project.ok("run advance @");
}

#[test]
fn a_session_that_works_under_no_name_is_no_other() {
    let (project, _run) = gated("a,b", "a→b", "a");
    let inside = |line: &str| project.run_with("CLAUDE_CODE_SESSION_ID", "s-9", line);
    let work = inside("dispatch create @").stdout.trim().to_owned();
    for line in [format!("dispatch start {work}"), format!("dispatch complete {work}")] {
        assert_eq!(inside(&line).code, Some(0), "{line}");
    }
    let review = inside("dispatch create @").stdout.trim().to_owned();
    assert_eq!(inside(&format!("dispatch complete {review} --verdict pass")).code, Some(0));
    assert_eq!(project.run("run advance @").code, Some(1));
    assert_eq!(inside("gate override @ --reason r").code, Some(1));
}

#[test]
fn work_that_was_interrupted_is_work() {
    let project = in_git();
    let gates = r#"{"a→b": [{"check": "verdict_exists", "by": "other"}]}"#;
    let made = project.run_words(["run", "create", "--goal", "g", "--phases", "a,b", "--gates", gates]);
    let run = made.stdout.trim().to_owned();
    prompt(&project, "s-1", "other");
    let inside = |line: &str| project.run_with("CLAUDE_CODE_SESSION_ID", "s-1", line);
    assert_eq!(inside(&format!("session attach {run}")).code, Some(0));
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("one", "one"));
    in_call(&project, "claude-code", "s-1", || project.write("plan", "text\n"));
    // The person interrupts it with another prompt, which only reviews.
    say(&project, &Said::new("claude-code", "s-1", "UserPromptSubmit").prompt("two", "two"));
    let review = inside(&format!("dispatch create {run}")).stdout.trim().to_owned();
    assert_eq!(inside(&format!("dispatch complete {review} --verdict pass")).code, Some(0));
    assert_eq!(project.run(&format!("run advance {run}")).code, Some(1));
}

#[test]
fn a_project_that_was_moved_keeps_its_entries_its_own() {
    let project = in_git();
    prompt(&project, "s-1", "one");
    let log = project.run_with("IC_TEST_ACTOR", "ann@renamed:/home/ann/moved", "log --format text").stdout;
    assert!(log.contains("claude-code") && !log.contains(" of ann"), "{log}");
}
