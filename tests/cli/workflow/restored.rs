//! What a rollback of a workflow restores, and what it does not touch.

use ic_testkit::wait_for;
use serde_json::json;

use super::failure::{is_as_before, release};
use super::{call, content, git, lines, project, repository, run, states, status, step, touch, undone};
use crate::compensation::processes::is_alive;

#[test]
fn files_are_put_back_and_processes_ended_as_declared() {
    let project = project(
        "name: kinds
steps:
  - id: settings
    phase: work
    run: 'echo new > settings; echo new > new.txt'
    compensate: {restore-file: [settings, new.txt]}
  - id: server
    run: 'sleep 300 > /dev/null 2>&1 & echo $! > server.pid; cp server.pid ../pid'
    compensate: {kill-process: server.pid}
  - {id: last, run: 'exit 1', compensate: {retry: it is flaky}}
",
    );
    // Without checkpoints nothing but the compensations brings anything back.
    project.write(".ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
    project.write("settings", "old\n");
    let report = run(&project, "", 1);
    let pid: u32 = lines(&project, "pid")[0].parse().expect("a number");
    assert!(is_alive(pid), "a server outlives its step");
    assert_eq!(step(&report, "settings")["checkpoint_id"], json!(null));
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(undone(&report), ["server", "settings"]);
    assert_eq!(report["warnings"][0]["code"], "no_checkpoint");
    assert_eq!((content(&project, "settings").as_deref(), content(&project, "new.txt")), (Some("old\n"), None));
    wait_for("the server is ended", || !is_alive(pid));
}

#[test]
fn a_rollback_that_restores_nothing_is_not_a_whole_one() {
    for config in ["enabled: false", "checkpointing: {auto: false}"] {
        let project = project(
            "name: w
steps:
  - {id: a, phase: p, run: 'echo a > a.txt'}
  - {id: b, phase: q, run: 'echo b > b.txt', compensate: {shell: 'rm b.txt'}}
  - {id: c, phase: r, run: 'echo c >> c.txt', compensate: skip}
",
        );
        project.write(".ic.yaml", &format!("rollback: {{{config}}}\n"));
        run(&project, "", 0);
        let report = call(&project, "workflow rollback --yes", 4);
        assert_eq!(report["status"], "rolled_back_in_part", "{config}: {report}");
        assert_eq!(report["rollback"]["not_undone"], json!(["a"]), "{report}");
        assert_eq!(report["warnings"][0]["code"], "no_checkpoint");
        assert_eq!((content(&project, "a.txt").as_deref(), content(&project, "b.txt")), (Some("a\n"), None));
        let again = run(&project, "", 0);
        let again = again["run_id"].as_str().expect("a run");
        let said = project.run(&format!("workflow rollback {again} --yes --format text"));
        assert_eq!(said.code, Some(4), "{said:?}");
        assert!(said.stdout.contains("not undone: the files and git of a: no checkpoint"), "{said:?}");
        assert!(said.stdout.contains("Rolled back, but for what is named above."), "{said:?}");
        // What a run's whole rollback would need is refused before anything is changed.
        project.ok(&format!("workflow resume {again}"));
        let whole = format!("undo created --run {again} --yes");
        assert_eq!(project.refused(&whole), (1, "no_checkpoint".to_owned()));
        // The failure of a step leads to the same, and its own exit.
        project.write("flow.yaml", "name: f\nsteps:\n  - {id: a, phase: p, run: 'echo f > f.txt; false'}\n");
        let report = run(&project, "--on-failure rollback", 1);
        assert_eq!(
            (&report["status"], &report["rollback"]["not_undone"]),
            (&json!("rolled_back_in_part"), &json!(["a"]))
        );
        assert_eq!(content(&project, "f.txt").as_deref(), Some("f\n"));
    }
}

const COMMITS: &str = "name: commits
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt && git add one.txt && git commit -q -m one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, phase: second, run: 'echo 2 > two.txt && git add two.txt && git commit -q -m two.txt && exit 1', compensate: {shell: 'echo two >> ../undone'}}
";

#[test]
fn each_strategy_restores_what_it_says() {
    for (strategy, commits, files, undone_steps, phase) in [
        ("full", 0, (false, false), vec!["two", "one"], "first"),
        ("files-only", 2, (false, false), vec!["two", "one"], "first"),
        ("git-only", 0, (true, true), vec!["two", "one"], "first"),
        ("partial", 1, (true, false), vec!["two"], "second"),
    ] {
        let project = repository(COMMITS);
        let before = git(&project, &["rev-parse", "HEAD"]);
        let report = run(&project, &format!("--on-failure rollback --strategy {strategy}"), 1);
        assert_eq!(undone(&report), undone_steps, "{strategy}");
        assert_eq!(report["rollback"]["strategy"], strategy);
        let since = git(&project, &["rev-list", "--count", &format!("{before}..HEAD")]);
        assert_eq!(since, commits.to_string(), "{strategy}");
        let there = |path: &str| content(&project, path).is_some();
        assert_eq!((there("one.txt"), there("two.txt")), files, "{strategy}");
        assert_eq!(status(&project), ("active".to_owned(), phase.to_owned()), "{strategy}");
    }
}

#[test]
fn after_a_partial_rollback_only_the_failed_step_runs_again() {
    let project = repository(&COMMITS.replace("exit 1", "test -e ../fixed"));
    run(&project, "--on-failure rollback --strategy partial", 1);
    touch(&project, "fixed");
    let report = call(&project, "workflow resume @", 0);
    assert_eq!(states(&report), ["succeeded", "succeeded"]);
    assert_eq!(step(&report, "one")["attempts"], json!(1));
    let report = call(&project, "workflow rollback --strategy full --yes", 0);
    assert_eq!(undone(&report), ["two", "one"]);
    assert!(content(&project, "one.txt").is_none() && content(&project, "two.txt").is_none());
}

#[test]
fn a_rollback_of_no_named_run_means_the_active_one_else_the_last_workflow() {
    let project = release();
    assert_eq!(project.refused("workflow rollback --yes"), (3, "run_not_found".to_owned()));
    touch(&project, "fixed");
    let first = run(&project, "", 0);
    let second = run(&project, "", 0);
    assert_eq!(project.refused("workflow rollback"), (3, "confirmation_required".to_owned()));
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(report["run_id"], second["run_id"]);
    assert_eq!(
        project.refused("workflow rollback --yes"),
        (1, "nothing_to_roll_back".to_owned()),
        "it is the active one now"
    );
    project.ok(&format!("run cancel {}", second["run_id"].as_str().expect("a run")));
    let by_hand = project.ok("run create --goal 'By hand' --phases a,b");
    assert_eq!(project.refused("workflow rollback --yes"), (1, "no_workflow".to_owned()), "no workflow");
    project.ok(&format!("run cancel {by_hand}"));
    let line = format!("workflow rollback {} --yes", first["run_id"].as_str().expect("a run"));
    // The second one was rolled back, so that the tree is as the first one left it.
    assert_eq!(call(&project, &line, 0)["status"], "rolled_back");
    assert!(is_as_before(&project));
    project.ok("run create --goal 'By hand' --phases a,b");
    assert_eq!(project.refused("workflow rollback --yes"), (3, "ambiguous_run".to_owned()));
}

#[test]
fn what_somebody_else_changed_afterwards_is_not_overwritten() {
    let project = release();
    touch(&project, "fixed");
    run(&project, "", 0);
    project.write("kept.txt", "mine\n");
    project.write("notes.txt", "mine too\n");
    assert_eq!(project.refused("workflow rollback --yes"), (1, "file_conflict".to_owned()));
    let outcome = project.run("workflow rollback --yes");
    let error: serde_json::Value = serde_json::from_str(&outcome.stderr).expect("an error");
    let conflicts = error["error"]["details"]["conflicts"].as_array().expect("conflicts").clone();
    let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
    assert_eq!(paths, ["kept.txt", "notes.txt"]);
    assert!(lines(&project, "undone").is_empty(), "nothing is undone before that is known");
    let report = call(&project, "workflow rollback --yes --force", 0);
    assert_eq!(undone(&report), ["three", "two", "one"]);
    assert!(is_as_before(&project) && content(&project, "notes.txt").is_none());
    project.ok(&format!("redo {} --yes", project.cli.last_restore()));
    assert_eq!(content(&project, "kept.txt").as_deref(), Some("mine\n"), "it was saved anyway");
}

#[test]
fn what_somebody_mends_after_a_failure_is_not_overwritten_either() {
    let project = release();
    run(&project, "", 1);
    project.write("kept.txt", "mended\n");
    let report = call(&project, "workflow resume @ --on-failure rollback --yes", 1);
    assert_eq!((&report["status"], content(&project, "kept.txt").as_deref()), (&json!("stopped"), Some("mended\n")));
    let why = report["rollback"]["error"].as_str().expect("why");
    assert!(why.contains("kept.txt (changed after checkpoint"), "{why}");
    let report = call(&project, "workflow resume @ --on-failure rollback --force --yes", 1);
    assert_eq!(report["status"], "rolled_back");
    assert!(is_as_before(&project));
}

#[test]
fn what_an_undo_changes_is_no_work_of_somebody_else() {
    let project = project(
        "name: inside
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo undone >> log.txt; echo undone > one.txt'}}
",
    );
    project.write("log.txt", "before\n");
    run(&project, "", 0);
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(report["status"], "rolled_back");
    assert_eq!((content(&project, "log.txt").as_deref(), content(&project, "one.txt")), (Some("before\n"), None));
}

#[test]
fn what_a_person_changes_while_a_rollback_stands_stopped_is_asked_for_beside_what_its_undos_changed() {
    let project = project(
        "name: inside
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt; echo 2 > two.txt', compensate: {shell: 'echo undone >> log.txt; test -e ../mended'}}
",
    );
    project.write("log.txt", "before\n");
    run(&project, "", 0);
    let report = call(&project, "workflow rollback --yes", 4);
    assert_eq!(content(&project, "log.txt").as_deref(), Some("before\nundone\n"), "{report}");
    project.write("one.txt", "by hand\n");
    touch(&project, "mended");
    let report = call(&project, "workflow resume @ --yes", 4);
    let why = report["rollback"]["error"].as_str().expect("why");
    assert!(why.contains("one.txt (changed after checkpoint") && !why.contains("more"), "{why}");
    assert_eq!(content(&project, "one.txt").as_deref(), Some("by hand\n"));
    call(&project, "workflow resume @ --force-files --yes", 0);
    assert_eq!(
        (content(&project, "log.txt").as_deref(), content(&project, "one.txt"), content(&project, "two.txt")),
        (Some("before\n"), None, None)
    );
}

/// What was asked for and is finished now exits as if it had been finished at once; what a failed step led to is a failure still.
#[test]
fn a_requested_rollback_that_a_resume_finishes_is_done() {
    const FLOW: &str = "name: w
steps:
  - {id: a, phase: p, run: 'test ! -e ../broken', compensate: {shell: 'test -e ../net'}}
";
    let project = project(FLOW);
    run(&project, "", 0);
    assert_eq!(project.run("workflow rollback --yes --json").code, Some(4));
    touch(&project, "net");
    let report = call(&project, "workflow resume @ --yes", 0);
    assert_eq!(report["status"], "rolled_back");
    let project = self::project(FLOW);
    touch(&project, "broken");
    assert_eq!(project.run("workflow run flow.yaml --on-failure rollback --json").code, Some(4));
    touch(&project, "net");
    let report = call(&project, "workflow resume @ --yes", 1);
    assert_eq!((&report["status"], &report["failed_step"]), (&"rolled_back".into(), &"a".into()));
}
