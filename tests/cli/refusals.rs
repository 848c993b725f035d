//! Every refusal of a rollback, in the real call and in its preview alike.

use crate::support::{Project, chain, story};

fn both_refuse(project: &Project, line: &str, code: &str) {
    for call in [line.to_owned(), format!("{line} --dry-run")] {
        assert_eq!(project.refused(&call), (1, code.to_owned()), "{call}");
    }
}

#[test]
fn targets_that_are_no_target() {
    let project = Project::new();
    let run = chain(&project, "a,b,c,d", "b");
    for (target, code) in [
        ("b", "already_at_phase"),
        ("c", "phase_ahead"),
        ("d", "phase_ahead"),
        ("z", "unknown_phase"),
        ("A", "unknown_phase"),
    ] {
        both_refuse(&project, &format!("run rollback {run} --to-phase {target}"), code);
    }
    for (target, code) in [("c", "phase_ahead"), ("z", "unknown_phase")] {
        both_refuse(&project, &format!("run rollback {run} --to-phase {target} --include-target"), code);
    }
    let done = chain(&project, "a,b", "b");
    both_refuse(&project, &format!("run rollback {done} --to-phase b"), "already_at_phase");
    both_refuse(&project, &format!("run rollback {done} --to-phase b --include-target"), "terminal_phase");
}

#[test]
fn a_cancelled_or_failed_run_stays_as_it_is() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    project.ok("run cancel @");
    both_refuse(&project, &format!("run rollback {run} --to-phase a"), "run_not_active");
    both_refuse(&project, &format!("run rollback {run} --to-phase a --include-target"), "run_not_active");
    let failed = chain(&project, "a,b,c", "b");
    project
        .database()
        .execute("UPDATE runs SET status = 'failed' WHERE id = ?1", [&failed])
        .expect("mark it failed");
    both_refuse(&project, &format!("run rollback {failed} --to-phase a"), "run_not_active");
}

#[test]
fn a_run_in_the_middle_of_a_rollback_waits() {
    let project = Project::new();
    let story = story(&project);
    project
        .database()
        .execute("UPDATE runs SET status = 'rolling_back' WHERE id = ?1", [&story.run])
        .expect("mark it");
    both_refuse(&project, "run rollback @ --to-phase planned", "rolling_back");
    for line in [
        "run advance @",
        "gate check @",
        "gate override @ --reason r",
        "run skip @ reflect --reason r",
        "run set @ --complexity 1",
        "run cancel @",
        "run artifact add @ --path a.md",
        "run agent add @ --type codex",
        "dispatch create @",
        "dispatch complete 0a00000f",
        "run agent update 0a000012 --status failed",
    ] {
        assert_eq!(project.refused(line), (1, "rolling_back".to_owned()), "{line}");
    }
    project.ok(&format!("dispatch record {} --commit ccccccc3", story.builder));
    assert_eq!(project.json("run status @")["status"], "rolling_back", "it can be looked at");
}

#[test]
fn references_are_refused_as_everywhere() {
    let project = Project::new();
    for (name, code) in [("@", "run_not_found"), ("999999", "run_not_found"), ("abc", "invalid_reference")] {
        for flag in ["", "--dry-run"] {
            let line = format!("run rollback {name} --to-phase a {flag}");
            assert_eq!(project.refused(&line), (3, code.to_owned()), "{line}");
        }
    }
}

#[test]
fn reasons_are_checked_in_the_preview_too() {
    let project = Project::new();
    story(&project);
    for flag in ["", "--dry-run"] {
        let line = format!("run rollback @ --to-phase planned --reason ' ' {flag}");
        assert_eq!(project.refused(&line), (3, "invalid_value".to_owned()));
    }
}
