//! A hook never hinders an agent: whatever happens to the ledger, the agent continues, and `ic hooks doctor` reports it.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents::{Said, begin, captured, end, in_git, logged, say};
use crate::support::Project;

/// The number of hooks of one client that come at once.
const AT_ONCE: usize = 200;

fn said(event: &str) -> Said {
    Said::new("claude-code", "s-1", event)
}

fn prompt(id: &str) -> Said {
    said("UserPromptSubmit").prompt(id, "Add a login")
}

fn tool(event: &str, id: &str) -> Said {
    let mut call = said(event).prompt("p-1", "").with("tool_name", "Bash").with("tool_use_id", id);
    call.payload["tool_input"] = json!({ "command": "make" });
    call
}

/// The whole of a prompt: every hook ends well and answers nothing, as without `ic`.
fn whole_prompt(project: &Project) {
    for one in [prompt("p-1"), tool("PreToolUse", "c-1"), tool("PostToolUse", "c-1"), said("Stop"), said("SessionEnd")]
    {
        assert_eq!(say(project, &one), Value::Null, "{:?}", one.payload["hook_event_name"]);
    }
}

/// What `ic hooks doctor` says went wrong: the codes.
fn failures(project: &Project) -> Vec<String> {
    let mut codes: Vec<String> =
        logged(project).iter().filter_map(|line| line["code"].as_str().map(str::to_owned)).collect();
    codes.dedup();
    codes
}

#[test]
fn a_configuration_that_cannot_be_read_is_logged_and_lets_no_undone_work_go_on() {
    let project = captured();
    project.write(".ic.yaml", "rollback: [not, this]\n");
    say(&project, &prompt("p-1"));
    assert_eq!(project.json("session show s-1")["prompts"][0]["status"], "running");
    project.write(".ic.yaml", "");
    project.json("undo --layer=workflow --run @ --yes");
    project.write(".ic.yaml", "rollback: [not, this]\n");
    let answer = say(&project, &tool("PreToolUse", "c-1"));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(failures(&project), ["invalid_config"]);
}

#[test]
fn a_ledger_that_is_of_a_newer_program_or_none_at_all_holds_no_agent_up() {
    let project = captured();
    project.database().execute_batch("PRAGMA user_version = 99").expect("another schema");
    whole_prompt(&project);
    assert_eq!(failures(&project), ["newer_schema"]);
    project.database().execute_batch("PRAGMA user_version = 0").expect("no schema");
    std::fs::write(project.cli.db(), "this is no database, and never was one, whatever its name says")
        .expect("garbage");
    whole_prompt(&project);
    assert!(failures(&project).len() > 1, "{:?}", failures(&project));
    let known = logged(&project).len();
    std::fs::remove_file(project.cli.db()).expect("no ledger");
    whole_prompt(&project);
    assert_eq!(logged(&project).len(), known, "without a ledger there is nothing to log beside");
    assert!(!project.cli.db().exists(), "and none is made");
}

#[test]
fn a_ledger_that_another_process_holds_costs_its_patience_and_no_more() {
    let project = captured();
    say(&project, &prompt("p-1"));
    let holder = project.cli.hold_writers();
    let started = Instant::now();
    assert_eq!(say(&project, &tool("PreToolUse", "c-1")), Value::Null);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert_eq!(failures(&project), ["busy"]);
    drop(holder);
    assert_eq!(say(&project, &tool("PreToolUse", "c-2")), Value::Null);
    assert_eq!(project.json("session show s-1")["call_count"], 2, "the next one records what waited");
}

#[test]
fn of_many_hooks_at_once_none_is_lost() {
    let project = in_git();
    say(&project, &prompt("p-1"));
    let at_once = |event: &str| -> Vec<Child> {
        (0..AT_ONCE).map(|n| begin(&project, &tool(event, &format!("c-{n}")), &[])).collect()
    };
    for event in ["PreToolUse", "PostToolUse"] {
        project.write("made.txt", event);
        for child in at_once(event) {
            assert_eq!(end(child), Value::Null);
        }
    }
    // On a busy machine a capture may come too late; the call is recorded anyway. What others kept from the ledger is recorded by the next.
    let is_late = |code: &String| ["checkpoint_failed", "busy"].contains(&code.as_str());
    assert!(failures(&project).iter().all(is_late), "{:?}", failures(&project));
    say(&project, &said("Stop"));
    let calls = project.json("session show s-1 --calls")["calls"].clone();
    let ended = calls.as_array().expect("calls").iter().filter(|call| !call["finished_at"].is_null()).count();
    assert_eq!(ended, AT_ONCE);
    project.ok("events verify");
}

#[test]
fn a_hook_that_is_killed_leaves_a_ledger_that_the_next_one_goes_on_with() {
    let project = in_git();
    let mut random = ic_testkit::Random::seeded();
    for round in ic_testkit::rounds(12) {
        for one in [prompt(&format!("p-{round}")), tool("PreToolUse", "c-1"), tool("PostToolUse", "c-1"), said("Stop")]
        {
            project.write("work.txt", &format!("{round}"));
            let mut child = begin(&project, &one, &[]);
            std::thread::sleep(Duration::from_millis(random.below(80)));
            child.kill().and_then(|()| child.wait()).expect("kill it");
        }
    }
    say(&project, &prompt("last"));
    project.write("work.txt", "last");
    say(&project, &said("Stop"));
    project.ok("events verify");
    project.ok("health");
    let verified = project.json("checkpoint verify");
    assert_eq!(verified["damaged"], json!([]), "{verified}");
    let prompts = project.json("session show s-1")["prompts"].clone();
    assert_eq!(prompts.as_array().and_then(|all| all.last()).expect("the last")["status"], "completed");
    project.json("undo --yes");
    assert_ne!(std::fs::read_to_string(project.root().join("work.txt")).ok().as_deref(), Some("last"));
}

#[test]
fn a_line_cut_within_a_character_keeps_no_event_waiting() {
    let project = captured();
    say(&project, &prompt("p-1"));
    let spool = |name: &str| project.cli.beside(name);
    let waits = json!({ "at": 1_764_000_000_000_i64, "client": "claude-code", "event": "PreToolUse", "session": "s-1",
        "prompt": "p-1", "title": null, "tool": "Bash", "call": "c-1", "code": "busy" });
    let lines = [b"{\"at\":1,\"title\":\"caf\xc3\n", waits.to_string().as_bytes(), b"\n"].concat();
    std::fs::write(spool("unsent.jsonl"), lines).expect("what waits");
    std::fs::write(spool("unsent.more"), "...").expect("how many are lost");
    say(&project, &tool("PreToolUse", "c-2"));
    assert_eq!(project.json("session show s-1")["call_count"], 2, "the waiting one, and its own");
    // A later outage does not count these again.
    assert!(!spool("unsent.jsonl").exists() && !spool("unsent.more").exists());
}
