//! `ic status`: what is unfinished is named with a command that really resumes it, and what lives is not named as left.

use std::process::{Command, Stdio};

use ic_testkit::{TestWorld, end_living_processes, living_process, wait_for};
use serde_json::{Value, json};

use crate::project::{Work as _, in_git};
use crate::statements::{dead_before, dead_before_the_end};

fn status(world: &TestWorld) -> Value {
    world.cli.json(["status", "--json"])
}

/// Types a command as it was printed, with a shell, in the project.
fn type_it(world: &TestWorld, command: &str) {
    assert!(command.starts_with("ic "), "{command}");
    let line = format!("ic() {{ \"$IC\" \"$@\"; }}; {command}");
    let mut ic = world.cli.command(["version"]);
    let (directory, variables) = (ic.get_current_dir().map(std::path::Path::to_owned), variables(&mut ic));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env_clear().envs(variables).env("IC", env!("CARGO_BIN_EXE_ic"));
    let output = shell.current_dir(directory.expect("a directory")).output().expect("start sh");
    assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
}

fn variables(command: &mut Command) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
}

/// The only thing that is unfinished, which is also what to type next.
fn left(world: &TestWorld, kind: &str) -> String {
    let status = status(world);
    assert_eq!(status["unfinished"].as_array().map(Vec::len), Some(1), "{status}");
    let one = &status["unfinished"][0];
    assert_eq!((&one["kind"], &one["command"]), (&json!(kind), &status["next"]), "{status}");
    let text = world.cli.ok(["status", "--format", "text"]);
    let command = one["command"].as_str().expect("a command");
    assert!(text.contains(command), "{command}: {text}");
    command.to_owned()
}

#[test]
fn a_run_at_work_is_seen_at_a_glance() {
    let world = in_git().begun();
    assert_eq!(status(&world)["last_point"]["reference"], "created");
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "form"]);
    world.ic(&["dispatch", "start", &id, "--pid", &living_process().to_string()]);
    let seen = status(&world);
    assert_eq!(seen["run"]["id"], world.run.as_str());
    assert_eq!(
        (&seen["gate"]["would"], &seen["next"]),
        (&json!("advance"), &json!(format!("ic run advance {}", &world.run[28..])))
    );
    assert_eq!(
        (&seen["working"][0]["dispatch_id"], &seen["working"][0]["alive"]),
        (&json!(id), &json!(true)),
        "{seen}"
    );
    assert_eq!(seen["last_point"]["reference"], format!("dispatch:{}", &id[28..]));
    assert_eq!(seen["unfinished"], json!([]));
    end_living_processes();
    assert_eq!(status(&world)["working"][0]["alive"], false);
    assert!(world.cli.ok(["status", "--format", "text"]).contains(", gone"));
    world.ic(&["dispatch", "complete", &id]);
    assert_eq!(status(&world)["working"], json!([]));
    type_it(&world, status(&world)["next"].as_str().expect("a command"));
    assert_eq!(world.status(), "active@b");
}

#[test]
fn what_was_undone_is_no_last_point() {
    let world = in_git().begun();
    let work = |name: &str| {
        let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
        world.ic(&["dispatch", "start", &id]);
        world.write(name, name);
        world.ic(&["dispatch", "complete", &id]);
        format!("dispatch:{}", &id[28..])
    };
    let (first, second) = (work("first"), work("second"));
    assert_eq!(status(&world)["last_point"]["reference"], second);
    world.ic(&["undo", "--only", &second["dispatch:".len()..], "--yes"]);
    assert_eq!(status(&world)["last_point"]["reference"], first);
}

#[test]
fn a_killed_rollback_is_named_with_what_resumes_it() {
    let world = dead_before_the_end();
    let seen = status(&world);
    assert_eq!((&seen["gate"], &seen["run"]["status"]), (&Value::Null, &json!("rolling_back")), "{seen}");
    let command = left(&world, "rollback");
    type_it(&world, &command);
    assert_eq!(world.status(), "active@a");
    assert_eq!(status(&world)["unfinished"], json!([]));
}

#[test]
fn a_killed_rollback_is_named_with_what_aborts_it() {
    let world = dead_before_the_end();
    let seen = status(&world);
    let abort = seen["unfinished"][0]["abort"].as_str().unwrap_or_else(|| panic!("no abort: {seen}")).to_owned();
    let text = world.cli.ok(["status", "--format", "text"]);
    assert!(text.contains(&format!("or abort it: {abort}\n")), "{text}");
    type_it(&world, &abort);
    assert_eq!(world.status(), "active@d", "where the run was");
    assert_eq!(status(&world)["unfinished"], json!([]));
}

#[test]
fn a_killed_undo_of_a_rollback_is_named_as_such() {
    let world = in_git().begun();
    world.advance();
    world.write("x", "x\n");
    world.roll_back("a", &[]);
    let rollback = world.cli.json(["rollback", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    dead_before(&world, &["redo", &rollback, "--yes", "--json"], 2);
    assert!(status(&world)["unfinished"][0]["message"].as_str().expect("text").contains("undo of the rollback"));
    type_it(&world, &left(&world, "rollback"));
    assert_eq!((world.status().as_str(), world.read("x").as_deref()), ("active@b", Some("x\n")));
}

#[test]
fn effects_that_could_not_be_undone_are_named_with_what_undoes_them() {
    let world = in_git().begun();
    let home = world.cli.home().display().to_string();
    world.effect("bill", &[&format!("test -e {home}/repaired || exit 3")]);
    let stopped = world.cli.run(["compensation", "run", &world.run, "--yes"]);
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let command = left(&world, "compensation");
    std::fs::write(world.cli.home().join("repaired"), "").expect("a mark");
    type_it(&world, &command);
    assert_eq!((world.effects(), world.status().as_str()), (vec!["bill".to_owned()], "active@a"));
    assert_eq!(status(&world)["unfinished"], json!([]));
}

#[test]
fn an_interrupted_restore_is_finished_by_the_command_and_nothing_else_is_restored() {
    let world = in_git().begun();
    world.write("src/a b.txt", "one\n");
    world.write("other.txt", "one\n");
    let kept = world.ic(&["checkpoint", "create"]);
    world.write("src/a b.txt", "two\n");
    world.write("other.txt", "two\n");
    dead_before(&world, &["checkpoint", "restore", &kept, "--path", "src", "--yes", "--json"], 1);
    let command = left(&world, "restore");
    type_it(&world, &command);
    assert_eq!(world.read("src/a b.txt").as_deref(), Some("one\n"));
    assert_eq!(world.read("other.txt").as_deref(), Some("two\n"), "{command}");
    assert_eq!(status(&world)["unfinished"], json!([]));
    world.cli.ok(["events", "verify"]);
}

#[test]
fn an_interrupted_restore_of_git_is_finished_by_the_command() {
    let world = in_git().begun();
    let kept = world.ic(&["checkpoint", "create"]);
    let before = world.git(&["rev-parse", "HEAD"]);
    world.write("more.txt", "more\n");
    world.commit("more");
    dead_before(&world, &["checkpoint", "restore", &kept, "--strategy", "git-only", "--yes", "--json"], 1);
    let command = left(&world, "restore");
    type_it(&world, &command);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), before, "{command}");
    assert_eq!(world.read("more.txt").as_deref(), Some("more\n"), "{command}");
    assert_eq!(status(&world)["unfinished"], json!([]));
}

#[test]
fn a_workflow_that_stopped_or_whose_executor_was_killed_is_resumed_by_the_command() {
    let world = in_git();
    let home = world.cli.home().display().to_string();
    let flow = format!(
        "name: flow\nsteps:\n  - {{id: one, phase: planned, run: 'true'}}\n  - {{id: two, run: 'touch {home}/begun; test -e {home}/repaired || sleep 30'}}\n"
    );
    world.write("flow.yaml", &flow);
    let mut command = world.cli.command(["workflow", "run", "flow.yaml", "--on-failure", "stop"]);
    let mut executor = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    wait_for("the second step has begun", || world.cli.home().join("begun").exists());
    let seen = status(&world);
    assert_eq!((&seen["working"][0]["kind"], &seen["unfinished"]), (&json!("executor"), &json!([])), "{seen}");
    assert_eq!(seen["working"][0]["pid"], executor.id());
    executor.kill().expect("kill it");
    executor.wait().expect("its end");
    let resume = left(&world, "workflow");
    std::fs::write(world.cli.home().join("repaired"), "").expect("a mark");
    type_it(&world, &resume);
    let seen = status(&world);
    assert_eq!((&seen["run"]["status"], &seen["unfinished"]), (&json!("completed"), &json!([])), "{seen}");
}

#[test]
fn no_text_of_a_status_steers_a_terminal_or_widens_a_line() {
    let world = in_git().begun();
    let hostile = "\u{202e}evil 計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃計劃";
    let id = world.ic(&["dispatch", "create", &world.run, "--name", hostile]);
    world.ic(&["dispatch", "start", &id]);
    world.cli.sql(&format!("UPDATE runs SET goal = '{hostile}'"));
    let text = world.cli.ok(["status", "--format", "text"]);
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
    for line in text.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
    }
}

#[test]
fn an_agent_of_the_run_is_a_worker_until_it_ends() {
    let world = in_git().begun();
    let agent = world.ic(&["run", "agent", "add", &world.run, "--type", "codex", "--name", "reviewer"]);
    let seen = status(&world)["working"][0].clone();
    let told = ["kind", "agent_id", "name", "agent_kind", "run_id"].map(|key| seen[key].clone());
    assert_eq!(told, ["agent", agent.as_str(), "reviewer", "codex", world.run.as_str()], "{seen}");
    assert_eq!(seen["dispatch_id"], json!(null));
    let text = world.cli.ok(["status", "--format", "text"]);
    assert!(text.contains(&format!("working     agent {} reviewer (codex), added ", &agent[28..])), "{text}");
    world.ic(&["run", "agent", "update", &agent, "--status", "completed"]);
    assert_eq!(status(&world)["working"], json!([]));
}
