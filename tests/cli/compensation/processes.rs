//! Processes that are ended, and only those.

use std::process::{Child, Command};

use serde_json::{Value, json};

use super::{pairs, project, results, undo};

/// Whether a process still runs; one that only waits to be collected does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !matches!(stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()), None | Some('Z' | 'X'))
}

fn sleeper() -> Child {
    Command::new("sleep").arg("300").spawn().expect("start sleep")
}

#[test]
fn a_process_is_ended() {
    let project = project();
    let mut server = sleeper();
    project.ok(&format!("compensation add @ --step serve --kill-pid {}", server.id()));
    assert_eq!(project.json("compensation list @")[0]["action"]["pid"], json!(server.id()));
    let report = undo(&project, "", 0);
    assert_eq!(results(&report), pairs(&[("serve", "done")]));
    assert!(!is_alive(server.id()));
    server.wait().expect("its end");
}

#[test]
fn a_process_that_is_gone_needs_nothing() {
    let project = project();
    let mut server = sleeper();
    project.ok(&format!("compensation add @ --step serve --kill-pid {}", server.id()));
    server.kill().expect("end it");
    server.wait().expect("its end");
    let line = format!("compensation add @ --step serve --kill-pid {}", server.id());
    assert_eq!(project.refused(&line), (3, "invalid_value".to_owned()), "there is no such process");
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("serve", "done")]));
}

#[test]
fn another_process_with_the_same_number_is_left_alone() {
    let project = project();
    let mut other = sleeper();
    let pid = other.id();
    project.ok(&format!("compensation add @ --step serve --kill-pid {pid}"));
    // What the ledger would hold if the number had belonged to a process that began earlier.
    let mut args: Value = serde_json::from_str(&project.cli.sql("SELECT args FROM compensations")).expect("JSON");
    args["identity"]["start_time"] = json!(1);
    project.cli.sql(&format!("UPDATE compensations SET args = '{args}'"));
    assert_eq!(results(&undo(&project, "", 0)), pairs(&[("serve", "done")]));
    assert!(is_alive(pid), "it is another one");
    other.kill().expect("end it");
    other.wait().expect("its end");
}

#[test]
fn the_first_process_and_ones_own_group_are_never_ended() {
    let project = project();
    for pid in ["0", "1"] {
        let line = format!("compensation add @ --step serve --kill-pid {pid}");
        assert_eq!(project.refused(&line), (3, "invalid_value".to_owned()), "{pid}");
    }
}
