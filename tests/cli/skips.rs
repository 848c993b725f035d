//! Phases that are skipped.

use serde_json::json;

use crate::support::{Project, chain};

#[test]
fn only_a_phase_ahead_can_be_skipped() {
    let project = Project::new();
    chain(&project, "a,b,c,d", "b");
    for (phase, exit, code) in
        [("a", 1, "phase_passed"), ("b", 1, "already_at_phase"), ("d", 1, "terminal_phase"), ("z", 3, "unknown_phase")]
    {
        assert_eq!(project.refused(&format!("run skip @ {phase} --reason r")), (exit, code.to_owned()), "{phase}");
    }
    let skip = project.json("run skip @ c --reason r");
    assert_eq!(skip["changed"], true);
    let before = project.dump();
    let again = project.json("run skip @ c --reason other");
    assert_eq!((&again["changed"], &again["seq"], &again["reason"]), (&json!(false), &skip["seq"], &json!("r")));
    assert_eq!(project.dump(), before);
    assert_eq!(project.json("run advance @")["to_phase"], "d");
}

#[test]
fn an_ended_run_has_nothing_to_skip() {
    let project = Project::new();
    let done = chain(&project, "a,b,c", "c");
    assert_eq!(project.refused(&format!("run skip {done} b --reason r")), (1, "run_not_active".to_owned()));
    let cancelled = chain(&project, "a,b,c", "a");
    project.ok("run cancel @");
    assert_eq!(project.refused(&format!("run skip {cancelled} b --reason r")), (1, "run_not_active".to_owned()));
}

#[test]
fn a_skip_that_was_walked_past_is_crossed_too() {
    let project = Project::new();
    chain(&project, "a,b,c,d", "a");
    project.ok("run skip @ b --reason r");
    let advance = project.json("run advance @");
    assert_eq!(advance["to_phase"], "c");
    let rollback = project.json("run rollback @ --to-phase b");
    assert_eq!((&rollback["cut_seq"], &rollback["cleared_skips"]), (&advance["seq"], &json!(["b"])));
    assert_eq!(project.ok("run phase @"), "b");
}

#[test]
fn a_rollback_clears_the_skips_after_its_cut_and_the_targets_own() {
    let project = Project::new();
    chain(&project, "a,b,c,d,e,f", "a");
    project.ok("run skip @ d --reason early");
    project.ok("run advance @");
    project.ok("run advance @");
    project.ok("run skip @ e --reason late");
    let rollback = project.json("run rollback @ --to-phase a");
    assert_eq!(rollback["cleared_skips"], json!(["e"]), "d was there at the cut");
    for to in ["b", "c", "e"] {
        assert_eq!(project.json("run advance @")["to_phase"], to);
    }
    let rollback = project.json("run rollback @ --to-phase d");
    assert_eq!(rollback["cleared_skips"], json!(["d"]));
    assert_eq!(project.json("run advance @")["to_phase"], "e", "and it can be walked again");
    project.ok("run rollback @ --to-phase a");
    assert_eq!(project.json("run advance @")["to_phase"], "b");
}

#[test]
fn every_phase_but_the_last_may_be_skipped() {
    let project = Project::new();
    let run = chain(&project, "a,b,c,d", "a");
    project.ok("run skip @ b --reason r");
    project.ok("run skip @ c --reason r");
    assert_eq!(project.json("run advance @")["to_phase"], "d");
    assert_eq!(project.json(&format!("run status {run}"))["status"], "completed");
}
