//! Every refusal of a rollback: the same in the real call and in its preview.

use crate::support::{Project, chain, story};

fn both_refuse(project: &Project, line: &str, code: &str) {
    let exit = if code == "unknown_phase" { 3 } else { 1 };
    for call in [line.to_owned(), format!("{line} --dry-run")] {
        assert_eq!(project.refused(&call), (exit, code.to_owned()), "{call}");
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
    project.cli.sql(&format!("UPDATE runs SET status = 'failed' WHERE id = '{failed}'"));
    both_refuse(&project, &format!("run rollback {failed} --to-phase a"), "run_not_active");
}

#[test]
fn a_run_in_the_middle_of_a_rollback_waits() {
    let project = Project::new();
    let story = story(&project);
    project.cli.sql(&format!("UPDATE runs SET status = 'rolling_back' WHERE id = '{}'", story.run));
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

/// Every kind of reference, to something that is not there.
#[test]
fn a_reference_to_nothing_ends_with_exit_3() {
    let project = Project::new();
    chain(&project, "a,b,c", "b");
    let checkpoint = project.ok("checkpoint create");
    let absent = format!("checkpoint cat {checkpoint} none");
    for (line, code) in [
        (absent.as_str(), "path_not_found"),
        ("run status 0123456789", "run_not_found"),
        ("run status scope:none", "run_not_found"),
        ("dispatch show 0123456789", "dispatch_not_found"),
        ("dispatch start 0123456789", "dispatch_not_found"),
        ("run agent update 0123456789 --status failed", "agent_not_found"),
        ("run artifact cat 0123456789", "artifact_not_found"),
        ("events redact 99999 --reason r", "event_not_found"),
        ("events cursor reset none", "cursor_not_found"),
        ("rollback show 0123456789", "rollback_not_found"),
        ("checkpoint show 0123456789", "checkpoint_not_found"),
        ("checkpoint restore --name none --dry-run", "checkpoint_not_found"),
        ("compensation run @ --step none --dry-run", "compensation_not_found"),
        ("rewind status 0123456789", "rewind_not_found"),
        ("run advance @ --expect-phase typo", "unknown_phase"),
        ("run skip @ typo --reason r", "unknown_phase"),
        ("run rollback @ --to-phase typo", "unknown_phase"),
        ("run rollback @ --to-phase typo --layer=all --dry-run", "unknown_phase"),
        ("run rollback @ --layer=code --phase typo", "unknown_phase"),
        ("dispatch create @ --phase typo", "unknown_phase"),
        ("dispatch list @ --phase typo", "unknown_phase"),
        ("run artifact add @ --path x --phase typo", "unknown_phase"),
        ("gate rules @ --phase typo", "unknown_phase"),
        ("compensation run @ --to-phase typo --dry-run", "unknown_phase"),
    ] {
        assert_eq!(project.refused(line), (3, code.to_owned()), "{line}");
    }
}

/// Each verb that asks, in a pipe: what is wrong with the call is said, and not that a yes is missing.
#[test]
fn validation_comes_before_confirmation() {
    let project = Project::new();
    let run = chain(&project, "a,b,c", "b");
    project.ok("checkpoint create --name first");
    project.ok("rewind init --profile devs");
    crate::verbs::rewind::fill(&project.cli.beside("state.db"));
    for (line, exit, code) in [
        ("rewind to T-999", 3, "unknown_task"),
        ("undo 0123456789", 3, "point_not_found"),
        ("rewind resume 0123456789", 3, "rewind_not_found"),
        ("redo 0123456789", 3, "rollback_not_found"),
        ("rollback resume 0123456789", 3, "rollback_not_found"),
        ("rollback abort 0123456789", 3, "rollback_not_found"),
        ("run rollback @ --to-phase typo --layer=all", 3, "unknown_phase"),
        ("run rollback 0123456789 --to-phase a --layer=all", 3, "run_not_found"),
        ("compensation run @ --to-phase typo", 3, "unknown_phase"),
        ("compensation run 0123456789", 3, "run_not_found"),
        ("checkpoint restore 0123456789", 3, "checkpoint_not_found"),
        ("redo", 1, "nothing_to_undo"),
        ("checkpoint purge ..", 3, "path_not_found"),
        ("workflow rollback 0123456789", 3, "run_not_found"),
        ("workflow resume 0123456789", 3, "run_not_found"),
    ] {
        assert_eq!(project.refused(line), (exit, code.to_owned()), "{line}");
    }
    // What is right asks, and changes nothing.
    for line in [
        "rewind to T1".to_owned(),
        format!("run rollback {run} --to-phase a --layer=workflow,effects"),
        "checkpoint purge a.md".to_owned(),
    ] {
        assert_eq!(project.refused(&line), (3, "confirmation_required".to_owned()), "{line}");
    }
}
