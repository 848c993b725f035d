//! The environment of a step, its record, and its order among the others.

use serde_json::json;

use super::{call, content, git, lines, project, repository, run, states, status, step};
use crate::support::Project;

#[test]
fn a_step_is_told_who_it_is() {
    let project = project(
        "name: who
steps:
  - id: only
    phase: work
    run: 'env | grep ^IC_ | grep -v ^IC_TEST | sort > ../../env; pwd >> ../../env; echo $GREETING >> ../../env'
    cwd: sub
    env: {GREETING: hello}
    compensate: {shell: 'env | grep ^IC_ | grep -v ^IC_TEST | sort > ../undo; pwd >> ../undo'}
",
    );
    project.write("sub/kept", "");
    let report = run(&project, "", 0);
    let step = step(&report, "only");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let (root, db) = (project.root().display().to_string(), project.cli.name_of_ledger());
    let run = text(&report["run_id"]);
    let key = text(&step["compensation_id"]);
    let seen = [
        format!("IC_DB={db}"),
        format!("IC_DISPATCH={}", text(&step["dispatch_id"])),
        format!("IC_IDEMPOTENCY_KEY={key}"),
        format!("IC_OUTPUTS={}", text(&step["log"]).replace(".log", ".outputs")),
        format!("IC_RUN={run}"),
        "IC_STEP=only".to_owned(),
        format!("{root}/sub"),
        "hello".to_owned(),
    ];
    assert_eq!(lines(&project, "env"), seen);
    call(&project, "workflow rollback --yes", 0);
    let seen = [
        format!("IC_DB={db}"),
        format!("IC_IDEMPOTENCY_KEY={key}"),
        format!("IC_RUN={run}"),
        "IC_STEP=only".to_owned(),
        root,
    ];
    assert_eq!(lines(&project, "undo"), seen);
}

#[test]
fn what_a_step_wrote_to_its_outputs_reaches_its_undo() {
    let project = project(
        "name: outputs
steps:
  - id: queue
    phase: work
    run: |
      {
        echo 'QUEUE=orders 17=a'
        echo 'no pair'
        echo '2ND=digit'
        echo 'IC_STEP=forged'
        echo 'EMPTY='
        echo 'QUEUE_2=second'
        echo 'LAST=first'
        printf 'LAST=last'
      } >> \"$IC_OUTPUTS\"
    compensate: {shell: 'printf \"%s|\" \"$QUEUE\" \"$EMPTY\" \"$QUEUE_2\" \"$LAST\" \"$IC_STEP\" >> ../undone'}
  - id: other
    run: 'echo ${QUEUE-} > ../other'
    compensate: {shell: 'echo \"other has $QUEUE\" >> ../undone'}
",
    );
    run(&project, "", 0);
    assert_eq!(lines(&project, "other"), [""], "outputs are for the undo of the same step");
    call(&project, "workflow rollback --yes", 0);
    assert_eq!(lines(&project, "undone"), ["other has ", "orders 17=a||second|last|queue|"]);
}

#[test]
fn commits_made_by_a_step_are_recorded_on_its_work() {
    let project = repository(
        "name: commits
steps:
  - id: quiet
    phase: work
    run: 'true'
    compensate: skip
  - id: port
    run: |
      echo 'port = 8080' > app.toml && git commit -q -a -m port
      echo hello > hello.txt && git add hello.txt && git commit -q -m hello
    compensate: skip
",
    );
    let before = git(&project, &["rev-parse", "HEAD"]);
    let report = run(&project, "", 0);
    let shas = git(&project, &["rev-list", "--reverse", &format!("{before}..HEAD")]);
    let shas: Vec<&str> = shas.lines().collect();
    let shown = |id: &str| {
        let dispatch = step(&report, id)["dispatch_id"].as_str().expect("its work").to_owned();
        project.json(&format!("dispatch show {dispatch}"))
    };
    assert_eq!(shown("quiet")["commits"], json!([]));
    let work = shown("port");
    let recorded: Vec<&str> = work["commits"]
        .as_array()
        .expect("commits")
        .iter()
        .map(|commit| commit["sha"].as_str().expect("a commit"))
        .collect();
    assert_eq!(recorded, shas);
    assert_eq!((&work["status"], &work["name"], &work["phase"]), (&json!("completed"), &json!("port"), &json!("work")));
    let report = call(&project, "workflow rollback --yes", 0);
    assert_eq!(report["rollback"]["restored"]["git_restored"], json!(true));
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), before);
    assert_eq!((content(&project, "app.toml").as_deref(), content(&project, "hello.txt")), (Some("port = 80\n"), None));
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
}

#[test]
fn what_a_step_says_is_kept() {
    let project = project(
        "name: logs
steps:
  - {id: talk, phase: work, run: 'echo to stdout; echo to stderr >&2; echo the reason; exit 7'}
",
    );
    let report = run(&project, "", 1);
    let talk = step(&report, "talk");
    assert_eq!((&talk["exit_code"], &talk["status"]), (&json!(7), &json!("failed")));
    assert_eq!(talk["error"], "it ended with exit code 7: the reason");
    let log = std::fs::read_to_string(talk["log"].as_str().expect("a log")).expect("the log");
    assert!(log.contains("to stdout\nto stderr\nthe reason\n"), "{log}");
    let work = project.json(&format!("dispatch show {}", talk["dispatch_id"].as_str().expect("its work")));
    assert_eq!(work["status"], "failed");
    let text = project.run("workflow show @ --format text").stdout;
    assert!(text.contains("the reason") && text.contains("log: "), "{text}");
}

#[test]
fn a_step_that_fails_is_tried_again() {
    let project = project(
        "name: flaky
steps:
  - id: flaky
    phase: work
    run: 'echo $IC_IDEMPOTENCY_KEY >> ../tries; test \"$(wc -l < ../tries)\" -ge 3'
    retries: {max: 3, backoff: 1ms}
    compensate: {shell: 'echo undone >> ../undone'}
",
    );
    let report = run(&project, "", 0);
    let flaky = step(&report, "flaky");
    assert_eq!((&flaky["attempts"], &flaky["status"], &flaky["error"]), (&json!(3), &json!("succeeded"), &json!(null)));
    let tries = lines(&project, "tries");
    assert!(tries.len() == 3 && tries.iter().all(|key| *key == tries[0]), "one key for all attempts: {tries:?}");
    let dispatches = project.json(&format!("dispatch list {}", report["run_id"].as_str().expect("a run")));
    assert_eq!(dispatches.as_array().map(Vec::len), Some(1), "one piece of work");
    call(&project, "workflow rollback --yes", 0);
    assert_eq!(lines(&project, "undone"), ["undone"], "and one undo");
}

#[test]
fn a_step_that_never_succeeds_is_given_up() {
    let project = project(
        "name: hopeless
steps:
  - {id: a, phase: work, run: 'echo try >> ../tries; exit 1', retries: {max: 2, backoff: 1ms}, compensate: skip}
",
    );
    let report = run(&project, "", 1);
    assert_eq!((&step(&report, "a")["attempts"], lines(&project, "tries").len()), (&json!(3), 3));
}

#[test]
fn a_step_that_takes_too_long_is_ended_with_all_that_it_started() {
    let project = project(
        "name: slow
steps:
  - {id: slow, phase: work, run: 'sleep 300 & echo $! > ../pid; wait', timeout: 300ms, compensate: skip}
",
    );
    let report = run(&project, "", 1);
    let slow = step(&report, "slow");
    assert_eq!((&slow["status"], &slow["exit_code"]), (&json!("failed"), &json!(null)));
    assert_eq!(slow["error"], "it timed out and was ended");
    let pid = lines(&project, "pid")[0].parse().expect("a number");
    assert!(!crate::compensation::processes::is_alive(pid));
    let work = project.json(&format!("dispatch show {}", slow["dispatch_id"].as_str().expect("its work")));
    assert_eq!(work["status"], "timed_out");
}

#[test]
fn a_command_that_is_not_there_is_a_failed_step() {
    let project = project("name: none\nsteps:\n  - {id: a, phase: work, run: [no-such-program]}\n");
    let report = run(&project, "", 1);
    let error = step(&report, "a")["error"].as_str().expect("an error");
    assert!(error.contains("no-such-program"), "{error}");
}

#[test]
fn steps_run_after_what_they_need_and_else_in_the_order_of_the_file() {
    let project = project(
        "name: order
steps:
  - {id: last, phase: one, needs: [middle, first], run: 'echo last >> ../order', compensate: {shell: 'echo last >> ../undone'}}
  - {id: middle, needs: [first], run: 'echo middle >> ../order', compensate: {shell: 'echo middle >> ../undone'}}
  - {id: first, run: 'echo first >> ../order', compensate: {shell: 'echo first >> ../undone'}}
  - {id: free, run: 'echo free >> ../order', compensate: {shell: 'echo free >> ../undone'}}
  - {id: later, phase: two, run: 'echo later >> ../order', compensate: {shell: 'echo later >> ../undone'}}
",
    );
    run(&project, "", 0);
    assert_eq!(status(&project), ("completed".to_owned(), "done".to_owned()));
    let order = lines(&project, "order");
    let at = |step: &str| order.iter().position(|line| line == step).expect("it ran");
    assert!(at("first") < at("middle") && at("middle") < at("last") && at("later") == 4, "{order:?}");
    call(&project, "workflow rollback --yes", 0);
    let undone: Vec<String> = lines(&project, "undone").into_iter().rev().collect();
    assert_eq!(undone, order, "undone in the reverse of the order in which they ran");
    assert_eq!(status(&project), ("active".to_owned(), "one".to_owned()));
}

/// Two steps, each of which waits for the other.
const TOGETHER: &str = "name: together
steps:
  - {id: a, phase: work, run: 'touch ../a; until test -e ../b; do sleep 0.01; done', timeout: 1s, compensate: skip}
  - {id: b, run: 'touch ../b; until test -e ../a; do sleep 0.01; done', timeout: 20s, compensate: skip}
  - {id: c, needs: [a, b], run: 'true', compensate: skip}
";

#[test]
fn steps_that_need_nothing_of_each_other_may_run_at_once() {
    let project = project(TOGETHER);
    let report = run(&project, "--on-failure stop", 1);
    assert_eq!(states(&report), ["failed", "pending", "pending"], "one at a time by default");
    std::fs::remove_file(project.cli.home().join("a")).expect("its file");
    let project = self::project(&TOGETHER.replace("timeout: 1s", "timeout: 20s"));
    let report = run(&project, "--jobs 2", 0);
    assert_eq!(states(&report), ["succeeded", "succeeded", "succeeded"]);
    let checkpoint = |id: &str| step(&report, id)["checkpoint_id"].clone();
    assert_eq!(checkpoint("a"), checkpoint("b"), "steps that overlap share the checkpoint before them");
    assert_ne!(checkpoint("b"), checkpoint("c"));
}

#[test]
fn at_most_so_many_steps_run_at_once() {
    let one = "mkdir ../running/$IC_STEP; ls ../running | wc -l >> ../most; sleep 0.2; rmdir ../running/$IC_STEP";
    let steps: Vec<String> =
        (0..6).map(|n| format!("  - {{id: s{n}, phase: work, run: '{one}', compensate: skip}}\n")).collect();
    let project = project(&format!("name: many\nsteps:\n{}", steps.concat()));
    std::fs::create_dir(project.cli.home().join("running")).expect("a directory");
    run(&project, "--jobs 3", 0);
    let most = lines(&project, "most").iter().filter_map(|line| line.trim().parse::<u32>().ok()).max();
    assert!(most.is_some_and(|most| (2..=3).contains(&most)), "{most:?}");
}

#[test]
fn parallel_steps_are_not_taken_back_one_without_the_other() {
    let project = project(TOGETHER);
    for more in ["", "--dry-run"] {
        let line = format!("workflow run flow.yaml --jobs 2 --strategy partial {more}");
        assert_eq!(project.refused(&line), (3, "invalid_value".to_owned()), "{more}");
    }
}

#[test]
fn a_dry_run_and_a_validation_only_look() {
    let project = project(TOGETHER);
    let before = project.dump();
    let plan = project.json("workflow run flow.yaml --dry-run");
    assert_eq!(plan, project.json("workflow validate flow.yaml"));
    assert_eq!((&plan["percentage"], &plan["phases"]), (&json!(100), &json!(["work", "done"])));
    assert_eq!(project.dump(), before);
    assert!(lines(&project, "a").is_empty() && !project.root().join(".ic/logs").exists());
    let elsewhere = Project::without_ledger();
    elsewhere.write("flow.yaml", TOGETHER);
    assert_eq!(elsewhere.json("workflow validate flow.yaml"), plan);
    assert_eq!(elsewhere.refused("workflow run flow.yaml --dry-run"), (3, "no_ledger".to_owned()));
}

#[test]
fn a_step_may_not_set_what_is_set_for_it() {
    let project = project("name: forged\nsteps:\n  - {id: a, phase: p, run: 'true', env: {IC_RUN: x}}\n");
    assert_eq!(project.refused("workflow run flow.yaml"), (3, "invalid_workflow".to_owned()));
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().expect("a text")
}

/// The smallest workflow: a file that names nothing but commands.
#[test]
fn a_file_of_commands_alone_is_a_workflow() {
    let project = project(
        "steps: [{run: 'echo hello > hello.txt'}, {run: 'test -e hello.txt'}, {id: step-4, run: 'true'}, {run: 'true'}]",
    );
    let report = run(&project, "", 0);
    assert_eq!((&report["workflow"], &report["status"]), (&"flow".into(), &"completed".into()));
    let ids: Vec<&str> = report["steps"].as_array().expect("steps").iter().map(|step| text(&step["id"])).collect();
    assert_eq!(ids, ["step-1", "step-2", "step-4", "step-4-2"], "an id that another step names is skipped");
    assert_eq!(report["steps"][0]["phase"], "executing");
    assert_eq!(content(&project, "hello.txt").as_deref(), Some("hello\n"));
    // What it was called is kept: a rollback and a resume read the file again.
    assert_eq!(call(&project, "workflow rollback --yes", 0)["workflow"], "flow");
    assert_eq!(call(&project, "workflow resume @", 0)["status"], "completed");
    let refused = project.run("workflow checkpoints prune --json");
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "usage"));
    assert!(refused.stderr.contains("did you mean ic checkpoint prune?"), "{refused:?}");
}

#[test]
fn every_checkpoint_of_a_workflow_carries_its_name() {
    let project = repository(
        "name: named\nsteps:\n  - {id: a, phase: first, run: 'echo 1 > a'}\n  - {id: b, phase: second, run: 'echo 2 > a'}\n",
    );
    let report = run(&project, "", 0);
    let all = project.json(&format!("workflow checkpoints {}", text(&report["run_id"])));
    let all = all.as_array().expect("checkpoints");
    let (steps, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one["step"].is_string());
    assert!(steps.len() == 2 && others.len() >= 2, "the first one, and those of advances: {all:?}");
    for checkpoint in all {
        assert_eq!(checkpoint["workflow"], "named", "{checkpoint}");
    }
    let named = project.json("workflow checkpoints --workflow named");
    assert_eq!(named.as_array().map(Vec::len), Some(all.len()));
}
