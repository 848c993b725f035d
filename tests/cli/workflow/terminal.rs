//! A workflow at a terminal: what is shown, what is asked, and Ctrl-C.

use std::process::Command;

use ic_testkit::{Terminal, signals, wait_for};

use super::{call, content, lines, project, run, states, touch};
use crate::compensation::processes::is_alive;
use crate::support::{Project, args};

const PROMPT: &str = "Step failed. Rollback? [Y/n]";

/// A call on a terminal of its own; `None` where none can be made.
fn open(project: &Project, line: &str) -> Option<Terminal> {
    Terminal::open(&project.command(args(line)), project.root())
}

const FAILS: &str = "name: fails
steps:
  - {id: one, phase: first, run: 'echo hello; echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'echo no network; exit 3', compensate: skip}
";

#[test]
fn enter_rolls_back() {
    for answer in ["\n", "y\n", "yes\n"] {
        let project = project(FAILS);
        let Some(mut terminal) = open(&project, "workflow run flow.yaml") else { return };
        terminal.sees(PROMPT);
        assert!(content(&project, "one.txt").is_some(), "nothing is done before the answer");
        terminal.types(answer);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("▸ [1/2] one\n  │ hello\n✓ one"), "{shown}");
        assert!(shown.contains("✗ two") && shown.contains("two: it ended with exit code 3: no network\n"), "{shown}");
        assert!(shown.contains("undone   one") && shown.contains("Rolled back."), "{shown}");
        assert_eq!((content(&project, "one.txt"), lines(&project, "undone").len()), (None, 1));
    }
}

#[test]
fn the_guide_shows_the_question() {
    let guide = std::fs::read_to_string(crate::support::docs("WORKFLOWS.md")).expect("the guide");
    assert!(guide.contains(&format!("\n{PROMPT}\n")));
}

#[test]
fn no_leaves_everything_as_it_is() {
    // Ctrl-D is no answer, and so no yes.
    for answer in ["n\n", "no\n", "what\n", "\u{4}"] {
        let project = project(FAILS);
        let Some(mut terminal) = open(&project, "workflow run flow.yaml") else { return };
        terminal.sees(PROMPT);
        terminal.types(answer);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("Stopped. two failed") && shown.contains("to resume: ic workflow resume "), "{shown}");
        assert!(content(&project, "one.txt").is_some() && lines(&project, "undone").is_empty());
        assert_eq!(call(&project, "workflow show @", 0)["status"], "stopped");
    }
}

#[test]
fn nobody_is_asked_who_said_it_already() {
    for (line, verdict) in [
        ("workflow run flow.yaml --on-failure rollback", "Rolled back."),
        ("workflow run flow.yaml --on-failure stop", "Stopped."),
    ] {
        let project = project(FAILS);
        let Some(terminal) = open(&project, line) else { return };
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(!shown.contains("[Y/n]") && shown.contains(verdict), "{shown}");
    }
    let project = project(FAILS);
    project.write(".ic.yaml", "rollback: {on-failure: {prompt: false}}\n");
    let Some(terminal) = open(&project, "workflow run flow.yaml") else { return };
    let (_, shown) = terminal.ends();
    assert!(!shown.contains("[Y/n]") && shown.contains("Stopped."), "{shown}");
}

/// A person who was asked about a failure has read its error; only others find it in the report.
#[test]
fn the_report_does_not_repeat_what_the_question_said() {
    const ERROR: &str = "it ended with exit code 3";
    for answer in ["y\n", "n\n"] {
        let project = project(FAILS);
        let Some(mut terminal) = open(&project, "workflow run flow.yaml") else { return };
        terminal.sees(PROMPT);
        terminal.types(answer);
        let (_, shown) = terminal.ends();
        let (asked, report) = shown.split_once(PROMPT).expect("the question");
        assert_eq!((asked.matches(ERROR).count(), report.matches(ERROR).count()), (1, 0), "{shown}");
        assert!(report.contains("two"), "the step that failed is still named: {shown}");
        // It is left out of what this person reads, and of nothing that is kept.
        let shown = call(&project, "workflow show @", 0);
        assert!(shown["steps"][1]["error"].as_str().is_some_and(|error| error.contains(ERROR)), "{shown}");
    }
    let project = project(FAILS);
    let Some(terminal) = open(&project, "workflow run flow.yaml --on-failure stop") else { return };
    let (_, shown) = terminal.ends();
    assert_eq!(shown.matches(ERROR).count(), 1, "{shown}");
}

const HANGS: &str = "name: hangs
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'sleep 300 & echo $! > ../pid; test -e ../go || wait', compensate: {shell: 'echo two >> ../undone'}}
";

/// Starts the workflow, waits until its second step hangs, and presses Ctrl-C; returns what the step had started.
fn interrupted(project: &Project) -> Option<(Terminal, u32)> {
    let mut terminal = open(project, "workflow run flow.yaml")?;
    wait_for("the step hangs", || lines(project, "pid").len() == 1);
    let pid = lines(project, "pid")[0].parse().expect("a number");
    assert!(is_alive(pid));
    terminal.types("\u{3}");
    terminal.sees(PROMPT);
    assert!(!is_alive(pid), "what the step started is ended");
    assert!(terminal.shown().contains("two: it was interrupted\n"), "{}", terminal.shown());
    Some((terminal, pid))
}

#[test]
fn ctrl_c_ends_the_step_and_the_same_is_asked() {
    let project = project(HANGS);
    let Some((mut terminal, _)) = interrupted(&project) else { return };
    terminal.types("y\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Rolled back."), "{shown}");
    assert_eq!(
        (content(&project, "one.txt"), lines(&project, "undone")),
        (None, vec!["two".to_owned(), "one".to_owned()])
    );
}

#[test]
fn after_ctrl_c_and_no_it_can_go_on() {
    let project = project(HANGS);
    let Some((mut terminal, _)) = interrupted(&project) else { return };
    terminal.types("n\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Stopped. two was interrupted"), "{shown}");
    touch(&project, "go");
    assert_eq!(states(&call(&project, "workflow resume @", 0)), ["succeeded", "succeeded"]);
}

#[test]
fn ctrl_c_at_the_question_leaves_it_stopped() {
    for flow in [FAILS, HANGS] {
        let project = project(flow);
        let terminal = if flow == FAILS {
            let terminal = open(&project, "workflow run flow.yaml");
            terminal.inspect(|terminal| terminal.sees(PROMPT))
        } else {
            interrupted(&project).map(|(terminal, _)| terminal)
        };
        let Some(mut terminal) = terminal else { return };
        terminal.types("\u{3}");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(130), "{shown}");
        assert!(content(&project, "one.txt").is_some() && lines(&project, "undone").is_empty());
        assert_eq!(call(&project, "workflow show @", 0)["status"], "stopped");
    }
}

#[test]
fn a_whole_workflow_is_taken_back_after_a_yes() {
    let project = project(&FAILS.replace("exit 3", "true"));
    run(&project, "", 0);
    for (answer, code) in [("n\n", 1), ("\n", 1), ("y\n", 0)] {
        assert!(content(&project, "one.txt").is_some(), "{answer:?}");
        let Some(mut terminal) = open(&project, "workflow rollback") else { return };
        terminal.sees("Roll back to before which checkpoint? [number]");
        terminal.types("2\n");
        terminal.sees("Roll it back? [y/N]");
        terminal.types(answer);
        let (ended, shown) = terminal.ends();
        assert_eq!(ended, Some(code), "{answer:?}: {shown}");
    }
    assert_eq!((content(&project, "one.txt"), lines(&project, "undone").len()), (None, 1));
}

#[test]
fn a_quiet_call_shows_no_progress_but_asks() {
    let project = project(FAILS);
    let Some(mut terminal) = open(&project, "workflow run flow.yaml --quiet") else { return };
    terminal.sees(PROMPT);
    assert!(!terminal.shown().contains("hello"), "{}", terminal.shown());
    terminal.types("n\n");
    assert_eq!(terminal.ends().0, Some(1));
}

/// Nothing goes on unwatched: the step is ended and recorded, whatever a closed terminal can still be told.
#[test]
fn a_closed_terminal_ends_the_step_as_a_request_to_end_does() {
    if !signals::that_end().contains(&"HUP") {
        return;
    }
    let project = project(HANGS);
    let ic = project.command(args("workflow run flow.yaml"));
    let mut shell = Command::new("sh");
    shell.envs(ic.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The first shell is the terminal's own, whose end tells all others. The second one survives, and tells how its command ended.
    let tells = "trap : HUP; \"$0\" \"$@\"; echo $? > ../exit";
    shell.args(["-c", "\"$0\" \"$@\"; true", "sh", "-c", tells]).arg(ic.get_program()).args(ic.get_args());
    let Some(terminal) = Terminal::open(&shell, project.root()) else { return };
    wait_for("the step hangs", || lines(&project, "pid").len() == 1);
    let pid = lines(&project, "pid")[0].parse().expect("a number");
    assert!(is_alive(pid));
    terminal.closes();
    wait_for("it ends", || !lines(&project, "exit").is_empty());
    assert_eq!(lines(&project, "exit"), ["1"], "as after SIGTERM");
    assert!(!is_alive(pid), "what the step started is ended");
    let shown = call(&project, "workflow show @", 0);
    assert_eq!((&shown["status"], states(&shown)), (&"stopped".into(), vec!["succeeded", "interrupted"]));
    touch(&project, "go");
    call(&project, "workflow resume @", 0);
}
