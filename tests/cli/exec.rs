//! `ic exec`: a command as a piece of work, whatever ends it, and what an undo of it takes out.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ic_testkit::{CliOutcome, Terminal, git_in, signals, wait_for};
use rustix::process::{Pid, Signal, getpgid, kill_process_group, test_kill_process};
use serde_json::{Value, json};

use crate::agents::in_git;
use crate::support::{BINARY, Project};

/// A call that makes ids of its own: what it starts makes some, too.
fn call<'a>(project: &Project, words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = project.command(words);
    command.env_remove("IC_TEST_IDS");
    command
}

fn run<'a>(project: &Project, words: impl IntoIterator<Item = &'a str>) -> CliOutcome {
    CliOutcome::of(&mut call(project, words))
}

fn ok(project: &Project, line: &str) -> String {
    let outcome = run(project, line.split(' '));
    assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    outcome.stdout.trim().to_owned()
}

fn exec(project: &Project, flags: &[&str], line: &str) -> CliOutcome {
    run(project, [&["exec"], flags, &["--", "sh", "-c", line]].concat())
}

/// The newest work, as `ic dispatch list` has it.
fn newest(project: &Project) -> Value {
    project.json("dispatch list").as_array().and_then(|all| all.last().cloned()).expect("some work")
}

fn text(project: &Project, name: &str) -> Option<String> {
    std::fs::read_to_string(project.root().join(name)).ok()
}

/// A command in the background that has written its own number to `pid`.
fn in_background(project: &Project, line: &str) -> (Child, Pid) {
    let line = format!("echo $$ > pid.new; mv pid.new pid; {line}");
    let mut command = call(project, ["exec", "--", "sh", "-c", &line]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic");
    wait_for("the command runs", || text(project, "pid").is_some());
    let pid = text(project, "pid").and_then(|pid| pid.trim().parse().ok()).and_then(Pid::from_raw);
    (child, pid.expect("a process"))
}

/// Whether a process has ended. Where nothing collects the children of dead parents, a zombie stays.
fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_err() || stat.contains(") Z ")
}

#[test]
fn streams_and_exit_are_the_commands_own() {
    let project = in_git();
    let outcome = exec(&project, &[], "echo out; echo err >&2; exit 7");
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(7), "out\n", "err\n"));
    assert_eq!(newest(&project)["status"], "failed");
    assert_eq!(newest(&project)["error"], "exit 7");
    let outcome = exec(&project, &["--json"], "echo out; kill -9 $$");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(137), "out\n"));
    let record = outcome.json();
    assert_eq!((&record["exit_code"], &record["error"]), (&json!(137), &json!("ended by signal 9")));
    let log = record["log"].as_str().expect("a log");
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "out\n");
}

#[test]
fn input_reaches_the_command_and_its_variables_name_the_work() {
    let project = in_git();
    let outcome = project.run_with_input("exec -- sh -c 'cat; echo $IC_DISPATCH; test -n $IC_RUN'", b"in\n");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, format!("in\n{}\n", newest(&project)["id"].as_str().expect("an id")));
}

#[test]
fn undo_takes_out_what_the_last_command_changed_and_redo_brings_it_back() {
    let project = in_git();
    project.write("mine", "one\n");
    exec(&project, &[], "echo first > first; echo two >> mine");
    project.write("mine", "zero\none\ntwo\n");
    exec(
        &project,
        &["--name", "second"],
        "echo second > second; git add -A; git -c user.name=a -c user.email=a@b commit -qm second",
    );
    // Work that changed nothing is not meant by a bare undo.
    exec(&project, &[], "true");
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "second"), text(&project, "first").as_deref()), (None, Some("first\n")));
    assert!(!git_in(project.root(), &["log", "--format=%s"]).contains("second"));
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "first"), text(&project, "mine").as_deref()), (None, Some("zero\none\n")));
    ok(&project, "redo --yes");
    ok(&project, "redo --yes");
    assert_eq!(
        (text(&project, "second").as_deref(), text(&project, "mine").as_deref()),
        (Some("second\n"), Some("zero\none\ntwo\n"))
    );
    assert!(git_in(project.root(), &["log", "--format=%s"]).contains("second"));
}

#[test]
fn commits_are_recorded_for_the_command_that_made_them() {
    let project = in_git();
    exec(&project, &[], "echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm made");
    let head = git_in(project.root(), &["rev-parse", "HEAD"]);
    let shown = project.json(&format!("dispatch show {}", newest(&project)["id"].as_str().expect("an id")));
    assert_eq!(shown["commits"][0]["sha"], head.trim());
    assert_eq!(shown["commits"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_cannot_start_changes_nothing() {
    let project = in_git();
    let before = project.dump();
    for words in [
        vec!["exec", "--", "no-such-program"],
        vec!["exec", "--run", "99999999", "--", "touch", "made"],
        vec!["exec", "--detach", "--run", "99999999", "--", "touch", "made"],
        vec!["exec", "--phase", "review", "--", "touch", "made"],
        vec!["exec"],
    ] {
        let outcome = run(&project, words.clone());
        assert_eq!(outcome.code, Some(3), "{words:?} {outcome:?}");
        assert!(outcome.stdout.is_empty() && outcome.stderr.contains("\"code\""), "{words:?} {outcome:?}");
    }
    assert_eq!((project.dump(), text(&project, "made")), (before, None));
}

#[test]
fn one_that_takes_too_long_is_ended_with_what_it_started() {
    let project = in_git();
    let outcome = exec(&project, &["--timeout", "300ms"], "sleep 1000 & echo $! > child; wait");
    assert_eq!((outcome.code, &newest(&project)["status"]), (Some(124), &json!("timed_out")));
    let child: i32 = text(&project, "child").and_then(|pid| pid.trim().parse().ok()).expect("a child");
    wait_for("its child is gone", || is_gone(Pid::from_raw(child).expect("a process")));
}

#[test]
fn one_that_fails_is_run_again_as_the_same_work() {
    let project = in_git();
    let outcome =
        exec(&project, &["--retry=3", "--backoff=5ms", "--json"], "echo . >> tries; test $(wc -l < tries) = 3");
    let record = outcome.json();
    assert_eq!((outcome.code, &record["attempts"], &record["status"]), (Some(0), &json!(3), &json!("completed")));
    ok(&project, "undo --yes");
    assert_eq!(text(&project, "tries"), None);
    let outcome = exec(&project, &["--retry=1", "--backoff=5ms", "--json"], "exit 4");
    assert_eq!((outcome.code, &outcome.json()["attempts"]), (Some(4), &json!(2)));
}

#[test]
fn killed_one_leaves_no_child_and_says_interrupted() {
    let project = in_git();
    let (mut ic, command) = in_background(&project, "echo changed > changed; sleep 1000; echo never > never");
    signals::send_to("KILL", ic.id());
    ic.wait().expect("its end");
    wait_for("the command is gone", || is_gone(command));
    wait_for("the work says so", || newest(&project)["status"] == "interrupted");
    assert_eq!(newest(&project)["error"], "ic was killed");
    // The run that was made for it is over too, and an undo takes out what it changed.
    wait_for("its run is over", || project.json("run list")[0]["status"] == "completed");
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "changed"), text(&project, "never")), (None, None));
}

#[test]
fn tree_is_looked_at_as_soon_as_a_killed_command_has_ended() {
    // This one is given a second to end.
    let (stubborn, project) = (in_git(), in_git());
    let (mut first, _) = in_background(&stubborn, "trap '' TERM; sleep 1000");
    let (mut ic, _) = in_background(&project, "echo changed > changed; sleep 1000");
    for killed in [&mut ic, &mut first] {
        signals::send_to("KILL", killed.id());
        killed.wait().expect("its end");
    }
    wait_for("the work says so", || newest(&project)["status"] == "interrupted");
    assert_eq!(newest(&stubborn)["status"], "running");
    // What a person writes from then on stays.
    project.write("mine", "by hand\n");
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "changed"), text(&project, "mine").as_deref()), (None, Some("by hand\n")));
    wait_for("the guard ended both", || newest(&stubborn)["status"] == "interrupted");
}

/// A command that changed a file, which its line names or not, and was killed with ic and its guard, as by a power failure.
fn killed_with_its_guard(project: &Project, names: bool) {
    let line = if names { "echo changed > changed" } else { "echo changed | dd of=changed status=none" };
    let (mut ic, command) = in_background(project, &format!("{line}; : > ready; sleep 1000"));
    wait_for("the file", || text(project, "ready").is_some());
    let guard = getpgid(Some(command)).expect("the group of the command");
    signals::send_to("KILL", ic.id());
    signals::send_to("KILL", guard.as_raw_nonzero().get().unsigned_abs());
    ic.wait().expect("its end");
    // Without its guard the command may still run.
    let _ = kill_process_group(guard, Signal::KILL);
}

#[test]
fn the_run_of_a_killed_command_that_was_undone_ends_with_the_next_command() {
    for names in [true, false] {
        let project = in_git();
        killed_with_its_guard(&project, names);
        ok(&project, "undo --yes");
        assert_eq!(text(&project, "changed"), None, "named: {names}");
        exec(&project, &[], "echo later > later");
        let runs = project.json("run list");
        let states: Vec<&Value> = runs.as_array().expect("a list").iter().map(|run| &run["status"]).collect();
        assert_eq!(states, ["completed", "completed"], "{runs}");
        // What was undone is undone, and is not ended a second time.
        let works = project.json("dispatch list");
        assert!(works[0]["rolled_back_by"].is_string(), "{works}");
        ok(&project, "undo --yes");
        assert_eq!((text(&project, "later"), text(&project, "changed")), (None, None));
    }
}

#[test]
fn work_whose_guard_is_gone_too_is_ended_by_the_next_command() {
    let project = in_git();
    killed_with_its_guard(&project, true);
    exec(&project, &[], "echo later > later");
    let all = project.json("dispatch list");
    let states: Vec<&Value> = all.as_array().expect("a list").iter().map(|work| &work["status"]).collect();
    assert_eq!(states, ["interrupted", "completed"]);
    // None of them ran beside the other: each is undone alone.
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "changed").as_deref(), text(&project, "later")), (Some("changed\n"), None));
    ok(&project, "undo --yes");
    assert_eq!(text(&project, "changed"), None);
}

#[test]
fn signals_are_passed_on_and_a_closed_terminal_ends_the_command() {
    for (signal, seen, code) in [("TERM", "TERM", 143), ("INT", "INT", 130), ("HUP", "TERM", 129)] {
        let project = in_git();
        let line = "for s in TERM INT HUP; do trap \"echo $s > seen; exit 3\" $s; done; sleep 1000 & wait";
        let (mut ic, _) = in_background(&project, line);
        signals::send_to(signal, ic.id());
        if signal == "HUP" {
            // By the shell of the terminal, and by the system.
            signals::send_to(signal, ic.id());
        }
        let status = ic.wait().expect("its end");
        assert_eq!(text(&project, "seen").as_deref().map(str::trim), Some(seen));
        assert_eq!((status.code(), &newest(&project)["status"]), (Some(code), &json!("interrupted")));
    }
}

#[test]
fn detached_one_goes_on_and_can_be_waited_for() {
    let project = in_git();
    let id = run(&project, ["exec", "--detach", "--", "sh", "-c", "sleep 0.3; echo late > late"]);
    assert_eq!((id.code, text(&project, "late")), (Some(0), None));
    let waited = project.run(&format!("wait {} --json", id.stdout.trim()));
    assert_eq!((waited.code, &waited.json()[0]["status"]), (Some(0), &json!("completed")));
    assert_eq!(text(&project, "late").as_deref(), Some("late\n"));
    ok(&project, "undo --yes");
    assert_eq!(text(&project, "late"), None);
}

#[test]
fn detached_one_that_is_refused_says_so_in_the_form_asked_for() {
    let project = in_git();
    let refused = project.run("--format text exec --detach --run none -- true");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.starts_with("error: "), "{refused:?}");
    // It waits as long as this call would.
    let holder = project.cli.hold_writers();
    let mut ic = call(&project, ["--busy-timeout", "10s", "exec", "--detach", "--", "true"]);
    let child = ic.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic");
    let is_told = || {
        let all = Command::new("ps").args(["-eo", "args"]).output().expect("ps").stdout;
        let root = project.root().to_string_lossy();
        let words = ["--in-background", "--busy-timeout=10000ms", &root];
        String::from_utf8_lossy(&all).lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    wait_for("the process in the background", is_told);
    drop(holder);
    assert_eq!(child.wait_with_output().expect("its end").status.code(), Some(0));
}

#[test]
fn work_in_a_run_counts_there_and_goes_back_with_it() {
    let project = in_git();
    let run = ok(&project, "run create --goal g --phases a,b,c");
    ok(&project, "run advance @");
    exec(&project, &["--run", "@"], "echo in > in");
    assert_eq!((&newest(&project)["run_id"], &newest(&project)["phase"]), (&json!(run), &json!("b")));
    ok(&project, "run advance @");
    ok(&project, &format!("run rollback {run} --to-phase a --layer=all --yes"));
    assert_eq!(text(&project, "in"), None);
    assert!(newest(&project)["rolled_back_by"].is_string());
}

#[test]
fn command_of_a_command_goes_back_with_it() {
    let project = in_git();
    let line = format!("echo o > o; '{BINARY}' exec --name inner -- sh -c 'echo i > i'");
    exec(&project, &["--name", "outer"], &line);
    let all = project.json("dispatch list");
    let (outer, inner) = (&all[0], &all[1]);
    assert_eq!((&inner["parent_id"], &inner["run_id"]), (&outer["id"], &outer["run_id"]));
    ok(&project, &format!("undo {} --only --yes", outer["short_id"].as_str().expect("an id")));
    assert_eq!((text(&project, "o"), text(&project, "i")), (None, None));
}

#[test]
fn of_commands_at_once_in_one_tree_none_is_lost_and_none_has_what_another_made() {
    let project = in_git();
    let start = |at: usize| {
        let line = format!("echo {at} > f{at}; sleep 0.2; echo {at} >> f{at}");
        let mut command = call(&project, ["exec", "--name", &format!("n{at}"), "--", "sh", "-c", &line]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start ic")
    };
    let all: Vec<Child> = (0..8).map(start).collect();
    for mut one in all {
        assert_eq!(one.wait().expect("its end").code(), Some(0));
    }
    let works = project.json("dispatch list");
    let works = works.as_array().expect("a list");
    assert_eq!(works.iter().filter(|work| work["status"] == "completed").count(), 8);
    for work in works {
        let own = work["name"].as_str().expect("a name").replace('n', "f");
        let shown = project.json(&format!("show {}", work["short_id"].as_str().expect("an id")));
        for file in shown["files"].as_array().expect("a list") {
            assert_eq!(file["path"], own, "{shown}");
        }
    }
}

#[test]
fn command_on_a_terminal_has_the_terminal() {
    let project = in_git();
    let line = "test -t 0 && test -t 1 && read answer && echo \"got $answer\" && echo made > made";
    let call = call(&project, ["exec", "--", "sh", "-c", line]);
    let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
    terminal.types("yes\n");
    terminal.sees("got yes");
    let (code, shown) = terminal.ends();
    assert_eq!((code, text(&project, "made").as_deref()), (Some(0), Some("made\n")), "{shown}");
    assert!(shown.contains("ic undo"), "{shown}");
}

#[test]
fn interrupt_on_a_terminal_reaches_the_command_alone() {
    let project = in_git();
    let call =
        call(&project, ["exec", "--", "sh", "-c", "trap \"echo caught; exit 0\" INT; echo ready; sleep 1000 & wait"]);
    let Some(mut terminal) = Terminal::open(&call, project.root()) else { return };
    terminal.sees("ready");
    terminal.types("\u{3}");
    terminal.sees("caught");
    assert_eq!(terminal.ends().0, Some(0));
    assert_eq!(newest(&project)["status"], "completed");
}

#[test]
fn closed_output_ends_the_command() {
    let project = in_git();
    let mut command = call(&project, ["exec", "--", "yes"]);
    let mut ic = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("start ic");
    std::thread::sleep(Duration::from_millis(50));
    drop(ic.stdout.take());
    ic.wait().expect("its end");
    assert_eq!(newest(&project)["status"], "failed");
}

#[test]
fn piped_command_does_not_wait_for_the_terminal() {
    let project = in_git();
    let words = call(&project, ["exec", "--", "cat"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{BINARY} exec -- cat | cat; echo over")]);
    shell.envs(words.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Some(terminal) = Terminal::open(&shell, project.root()) else { return };
    terminal.sees("over");
    assert_eq!(terminal.ends().0, Some(0));
    assert_eq!(newest(&project)["status"], "completed");
}

#[test]
fn killed_in_the_pause_before_a_retry_it_says_interrupted() {
    let project = in_git();
    let mut command = call(&project, ["exec", "--retry=9", "--backoff=1h", "--", "touch", "/nonexistent/x"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut ic = command.spawn().expect("start ic");
    wait_for("it has failed once", || {
        let log = project.json("dispatch list").as_array().and_then(|all| all.last().cloned());
        log.is_some_and(|work| {
            project.json(&format!("dispatch show {}", work["id"].as_str().expect("an id")))["log"].is_string()
        })
    });
    std::thread::sleep(Duration::from_millis(100));
    signals::send_to("KILL", ic.id());
    ic.wait().expect("its end");
    wait_for("the work says so", || newest(&project)["status"] == "interrupted");
}

#[test]
fn only_the_guard_of_a_dead_process_records_its_death() {
    let project = in_git();
    ok(&project, "run create --goal g --phases a,b");
    let work = ok(&project, "dispatch create @");
    ok(&project, &format!("dispatch start {work}"));
    let refused = run(&project, ["exec", "--killed", &work]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "invalid_value"), "{refused:?}");
    let detached = run(&project, ["exec", "--detach", "--", "sleep", "1000"]);
    let refused = run(&project, ["exec", "--killed", detached.stdout.trim()]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(1), "work_running"), "{refused:?}");
    assert_eq!(newest(&project)["status"], "running");
    signals::send_to(
        "TERM",
        newest(&project)["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process"),
    );
    wait_for("its end", || newest(&project)["status"] == "interrupted");
}

#[test]
fn run_of_another_work_tree_is_refused() {
    let project = in_git();
    let run_id = ok(&project, "run create --goal g --phases a,b");
    let place = project.root().with_file_name("other");
    git_in(project.root(), &["worktree", "add", "-q", "--detach", place.to_str().expect("text")]);
    let words = ["-C", place.to_str().expect("text"), "exec", "--run", &run_id, "--", "touch", "made"];
    let refused = run(&project, words);
    // Where the ledger lies in the other work tree, it is not found here at all.
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(!place.join("made").exists());
}

#[test]
fn output_of_a_detached_command_is_where_its_work_says() {
    let project = in_git();
    let id = run(&project, ["exec", "--detach", "--", "echo", "said"]).stdout;
    run(&project, ["dispatch", "wait", id.trim()]);
    let shown = project.json(&format!("dispatch show {}", id.trim()));
    assert_eq!(std::fs::read_to_string(shown["log"].as_str().expect("a log")).expect("the log"), "said\n");
    assert_eq!(project.json("session list"), json!([]));
}

#[test]
fn a_file_that_a_command_changed_and_hid_is_named_by_its_undo() {
    for rules in [".gitignore", ".git/info/exclude"] {
        let project = in_git();
        project.write("notes.md", "precious\n");
        exec(&project, &[], &format!("echo notes.md >> {rules}; echo trash > notes.md; echo more > more"));
        let shown = run(&project, ["undo", "--yes", "--format", "text"]);
        assert_eq!(shown.code, Some(4), "{rules}: {shown:?}");
        assert!(shown.stdout.contains("notes.md  a rule ignores it since, and it was changed"), "{rules}: {shown:?}");
        assert_eq!((text(&project, "more"), text(&project, "notes.md").as_deref()), (None, Some("trash\n")));
        let id = newest(&project)["id"].as_str().expect("an id").to_owned();
        ok(&project, &format!("restore --before {id} notes.md --yes"));
        assert_eq!(text(&project, "notes.md").as_deref(), Some("precious\n"), "{rules}");
        // Hidden and unchanged, it is not of the work.
        exec(&project, &[], "echo one > one; echo notes.md >> .gitignore");
        ok(&project, "undo --yes");
        assert_eq!(text(&project, "notes.md").as_deref(), Some("precious\n"), "{rules}");
    }
}

#[test]
fn ignored_files_that_come_with_a_command_are_not_listed_beside_others() {
    let project = in_git();
    project.write(".gitignore", "build/\n*.log\n");
    project.write("b", "one\n");
    exec(&project, &[], "echo a > a; mkdir build; echo o > build/o; echo l > x.log");
    project.write("b", "one\nby hand\n");
    let undone = run(&project, ["undo", "--yes", "--format", "text"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(!undone.stdout.contains("\n  stays "), "{undone:?}");
    let left = ["a", "x.log", "b"].map(|name| text(&project, name));
    assert_eq!(left, [None, Some("l\n".to_owned()), Some("one\nby hand\n".to_owned())]);
}

#[test]
fn failed_undone_redone_and_killed_commands_follow_each_other() {
    let project = in_git();
    let start = ic_testkit::tree(project.root());
    exec(&project, &[], "echo half > half; exit 1");
    let failed = ic_testkit::tree(project.root());
    ok(&project, "undo --yes");
    assert_eq!(ic_testkit::tree(project.root()), start);
    ok(&project, "redo --yes");
    assert_eq!(ic_testkit::tree(project.root()), failed);
    project.write("mine", "mine\n");
    let (mut ic, _) = in_background(&project, "echo more >> half; sleep 1000");
    wait_for("it changed the file", || text(&project, "half").as_deref() == Some("half\nmore\n"));
    signals::send_to("KILL", ic.id());
    ic.wait().expect("its end");
    wait_for("the work says so", || newest(&project)["status"] == "interrupted");
    ok(&project, "undo --yes");
    assert_eq!(
        (text(&project, "half").as_deref(), text(&project, "mine").as_deref()),
        (Some("half\n"), Some("mine\n"))
    );
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "half"), text(&project, "mine").as_deref()), (None, Some("mine\n")));
}

#[test]
fn an_undo_after_a_command_in_a_command_takes_out_both() {
    let project = in_git();
    let ic = project.command(["version"]).get_program().to_string_lossy().into_owned();
    let inner = format!("{ic} exec --name inner -- sh -c 'echo 2 > i'; echo 4 > o");
    assert_eq!(exec(&project, &["--name", "outer"], &inner).code, Some(0));
    ok(&project, "undo --yes");
    assert_eq!((text(&project, "i"), text(&project, "o")), (None, None));
    let all = project.json("dispatch list");
    let undone = all.as_array().expect("a list").iter().filter(|work| work["rolled_back_by"].is_string()).count();
    assert_eq!(undone, 2, "the record says so: {all}");
    ok(&project, "redo --yes");
    assert_eq!((text(&project, "i").as_deref(), text(&project, "o").as_deref()), (Some("2\n"), Some("4\n")));
}

#[test]
fn a_run_of_a_command_that_was_undone_while_it_ran_ends_with_it() {
    let project = in_git();
    let (mut ic, _) = in_background(&project, "echo changed > changed; sleep 1000");
    let undone = project.run("undo --yes --force-workers");
    assert!(matches!(undone.code, Some(0 | 4)), "{undone:?}");
    signals::send_to("TERM", ic.id());
    ic.wait().expect("its end");
    assert_eq!(project.run("run current").code, Some(1), "no run is left open");
}

#[test]
fn a_wait_for_the_run_of_a_command_is_one_for_its_work() {
    let project = in_git();
    let work = run(&project, ["exec", "--detach", "--", "sh", "-c", "exit 3"]).stdout.trim().to_owned();
    let of_run = project.json(&format!("dispatch show {work}"))["run_id"].as_str().expect("a run").to_owned();
    let waited = project.run(&format!("wait {of_run} --json"));
    assert_eq!((waited.code, &waited.json()[0]["status"]), (Some(1), &json!("failed")));
}

#[test]
fn a_wait_hears_what_the_guard_of_a_killed_command_records() {
    let project = in_git();
    let (mut ic, _) = in_background(&project, "echo changed > changed; sleep 1000");
    let work = newest(&project)["id"].as_str().expect("an id").to_owned();
    signals::send_to("KILL", ic.id());
    ic.wait().expect("its end");
    let waited = project.run(&format!("wait {work} --json"));
    assert_eq!(waited.json()[0]["status"], "interrupted", "{waited:?}");
    assert_eq!(waited.json()[0]["code"], Value::Null);
}

#[test]
fn a_command_keeps_the_name_of_its_directory() {
    let project = in_git();
    let link = project.cli.beside("link");
    std::os::unix::fs::symlink(project.root(), &link).expect("a link");
    let mut through = call(&project, ["exec", "--", "sh", "-c", "echo $PWD"]);
    let said = CliOutcome::of(through.current_dir(&link).env("PWD", &link)).stdout;
    assert_eq!(said.trim(), link.to_str().expect("a path"));
}
