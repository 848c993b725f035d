//! A worker is a process of one boot with one start, not a number that another process has later.

use ic_testkit::{Cli, end_living_processes, living_process};
use serde_json::{Value, json};

/// A project with a checkpoint, a change since, and a pending dispatch of its run.
fn project() -> (Cli, String) {
    let path = std::env::var_os("PATH").expect("a PATH");
    let cli = Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints().with_env("PATH", path);
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c"]);
    cli.ok(["run", "advance", &run]);
    write(&cli, "one");
    cli.ok(["checkpoint", "create", "--name", "one"]);
    write(&cli, "two");
    let dispatch = cli.ok(["dispatch", "create", &run]);
    (cli, dispatch)
}

fn write(cli: &Cli, content: &str) {
    std::fs::write(cli.root().join("file"), content).expect("a file");
}

fn content(cli: &Cli) -> String {
    std::fs::read_to_string(cli.root().join("file")).expect("the file")
}

fn change(cli: &Cli, sql: &str) {
    let before = cli.dump();
    cli.sql(sql);
    assert_ne!(cli.dump(), before, "{sql}");
}

fn alive(cli: &Cli, dispatch: &str) -> Value {
    let shown = cli.json(["dispatch", "show", dispatch, "--json"])["alive"].clone();
    let listed = cli.json(["dispatch", "list", "--json"]);
    assert_eq!(listed[0]["alive"], shown, "the list and the dispatch itself");
    shown
}

const RESTORE: [&str; 5] = ["checkpoint", "restore", "--name", "one", "--yes"];

#[test]
fn a_living_worker_refuses_a_restore_and_one_that_ended_does_not() {
    let (cli, dispatch) = project();
    assert_eq!(alive(&cli, &dispatch), Value::Null);
    cli.ok(["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
    assert_eq!(alive(&cli, &dispatch), json!(true));
    assert_eq!(cli.refused(RESTORE), (Some(1), "work_running".to_owned()));
    assert_eq!(content(&cli), "two");
    end_living_processes();
    assert_eq!(alive(&cli, &dispatch), json!(false));
    cli.ok(RESTORE);
    assert_eq!(content(&cli), "one");
}

#[test]
fn a_process_that_has_the_number_of_a_worker_is_not_the_worker() {
    for of_another in ["pid_start_time = '1'", "pid_boot_id = 'another-boot'"] {
        let (cli, dispatch) = project();
        cli.ok(["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
        change(&cli, &format!("UPDATE dispatches SET {of_another}"));
        assert_eq!(alive(&cli, &dispatch), json!(false), "{of_another}");
        cli.ok(RESTORE);
        assert_eq!(content(&cli), "one", "{of_another}");
    }
}

#[test]
fn a_number_alone_is_on_record_as_unknown_and_refuses_nothing() {
    let (cli, dispatch) = project();
    cli.ok(["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
    change(&cli, "UPDATE dispatches SET pid_start_time = NULL, pid_boot_id = NULL");
    assert_eq!(alive(&cli, &dispatch), json!("unknown"));
    cli.ok(RESTORE);
    assert_eq!(content(&cli), "one");
}

#[test]
fn a_caller_that_descends_from_the_worker_is_not_refused_by_it() {
    let (cli, dispatch) = project();
    // This process starts ic: it is the orchestrator.
    cli.ok(["dispatch", "start", &dispatch, "--pid", &std::process::id().to_string()]);
    assert_eq!(alive(&cli, &dispatch), json!(true));
    cli.ok(RESTORE);
    assert_eq!(content(&cli), "one");
}

#[test]
fn a_number_that_no_process_has_is_on_record_as_ended_and_refuses_nothing() {
    let (cli, dispatch) = project();
    let ended = living_process();
    end_living_processes();
    let said = cli.run(["dispatch", "start", &dispatch, "--pid", &ended.to_string()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("process_gone"), "the end of the process is told: {said:?}");
    assert_eq!(alive(&cli, &dispatch), json!(false));
    cli.ok(RESTORE);
    assert_eq!(content(&cli), "one");
}

/// Ends a dispatch while its process lives.
type End = fn(&Cli, &str);

#[test]
fn a_worker_that_was_called_off_and_lives_refuses_what_writes_into_the_tree() {
    let ends: [(&str, End); 4] = [
        ("cancelled", |cli, _| {
            cli.ok(["run", "cancel", "@"]);
        }),
        ("failed", |cli, dispatch| {
            cli.ok(["dispatch", "fail", dispatch, "--error", "stuck"]);
        }),
        ("timed_out", |cli, dispatch| {
            cli.ok(["dispatch", "fail", dispatch, "--error", "slow", "--timed-out"]);
        }),
        ("cancelled", |cli, _| {
            cli.ok(["run", "rollback", "@", "--to-phase", "a", "--yes"]);
        }),
    ];
    for (status, end) in ends {
        let (cli, dispatch) = project();
        cli.ok(["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
        end(&cli, &dispatch);
        assert_eq!(cli.json(["dispatch", "show", &dispatch, "--json"])["status"], json!(status));
        assert_eq!(alive(&cli, &dispatch), json!(true), "{status}");
        let before = cli.dump();
        assert_eq!(cli.refused(RESTORE), (Some(1), "work_running".to_owned()), "{status}");
        assert_eq!((content(&cli).as_str(), cli.dump()), ("two", before), "{status}: nothing is changed");
        end_living_processes();
        cli.ok(RESTORE);
        assert_eq!(content(&cli), "one", "{status}");
    }
}

#[test]
fn a_worker_that_said_itself_that_it_is_done_refuses_nothing_though_it_lives() {
    let (cli, dispatch) = project();
    cli.ok(["dispatch", "start", &dispatch, "--pid", &living_process().to_string()]);
    cli.ok(["dispatch", "complete", &dispatch]);
    assert_eq!(alive(&cli, &dispatch), json!(true));
    cli.ok(RESTORE);
    assert_eq!(content(&cli), "one");
    end_living_processes();
}
