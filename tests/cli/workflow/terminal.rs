//! A person at a terminal: what is shown, what is asked, and Ctrl-C. `script` of util-linux makes the terminal.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::{call, content, lines, project, run, states, touch};
use crate::compensation::processes::{is_alive, wait_for};
use crate::support::{Project, args};

const PROMPT: &str = "Step failed. Rollback? [Y/n]";

/// A call on a terminal of its own.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// `script`, if it is there.
fn script() -> Option<PathBuf> {
    let found = ["/usr/bin/script", "/bin/script"].into_iter().map(Path::new).find(|path| path.exists());
    let is_linux = |path: &Path| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("util-linux"))
    };
    let found = found.filter(|path| is_linux(path)).map(Path::to_owned);
    if found.is_none() {
        println!("skipped: there is no `script` of util-linux");
    }
    found
}

impl Terminal {
    /// Starts a call; `None` where no terminal can be made.
    fn open(project: &Project, line: &str) -> Option<Self> {
        let script = script()?;
        let call = project.command(args(line));
        let words = [call.get_program()].into_iter().chain(call.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().expect("text"))).collect();
        let mut command = Command::new(script);
        command.env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("NO_COLOR", "1").env("TERM", "dumb").env("SHELL", "/bin/sh").current_dir(project.root());
        command.args(["-qec", &format!("exec {}", words.join(" ")), "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("start script");
        let keys = child.stdin.take().expect("a pipe");
        let mut screen = child.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let kept = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..read]);
            }
        });
        Some(Self { child, keys, shown })
    }

    fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).replace('\r', "")
    }

    fn sees(&self, text: &str) {
        wait_for(text, || self.shown().contains(text));
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("type");
    }

    /// The exit code, and all that was shown.
    fn ends(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("its end");
        wait_for("the rest is shown", || Arc::strong_count(&self.shown) == 1);
        (status.code(), self.shown())
    }
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
        let Some(mut terminal) = Terminal::open(&project, "workflow run flow.yaml") else { return };
        terminal.sees(PROMPT);
        assert!(content(&project, "one.txt").is_some(), "nothing is done before the answer");
        terminal.types(answer);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("▸ [1/2] one\n  │ hello\n✓ one"), "{shown}");
        assert!(
            shown.contains("✗ two") && shown.contains("two: it ended with exit code 3: no network\n"),
            "{shown}"
        );
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
        let Some(mut terminal) = Terminal::open(&project, "workflow run flow.yaml") else { return };
        terminal.sees(PROMPT);
        terminal.types(answer);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(
            shown.contains("Stopped. two failed") && shown.contains("to go on: ic workflow resume "),
            "{shown}"
        );
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
        let Some(terminal) = Terminal::open(&project, line) else { return };
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(1), "{shown}");
        assert!(!shown.contains("[Y/n]") && shown.contains(verdict), "{shown}");
    }
    let project = project(FAILS);
    project.write(".ic.yaml", "rollback: {on-failure: {prompt: false}}\n");
    let Some(terminal) = Terminal::open(&project, "workflow run flow.yaml") else { return };
    let (_, shown) = terminal.ends();
    assert!(!shown.contains("[Y/n]") && shown.contains("Stopped."), "{shown}");
}

const HANGS: &str = "name: hangs
steps:
  - {id: one, phase: first, run: 'echo 1 > one.txt', compensate: {shell: 'echo one >> ../undone'}}
  - {id: two, run: 'sleep 300 & echo $! > ../pid; test -e ../go || wait', compensate: {shell: 'echo two >> ../undone'}}
";

/// Starts the workflow, waits until its second step hangs, and presses Ctrl-C; returns what the step had started.
fn interrupted(project: &Project) -> Option<(Terminal, u32)> {
    let mut terminal = Terminal::open(project, "workflow run flow.yaml")?;
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
            let terminal = Terminal::open(&project, "workflow run flow.yaml");
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
        let Some(mut terminal) = Terminal::open(&project, "workflow rollback") else { return };
        terminal.sees("Roll all of it back? [y/N]");
        terminal.types(answer);
        let (ended, shown) = terminal.ends();
        assert_eq!(ended, Some(code), "{answer:?}: {shown}");
    }
    assert_eq!((content(&project, "one.txt"), lines(&project, "undone").len()), (None, 1));
}

#[test]
fn a_quiet_call_shows_no_progress_but_asks() {
    let project = project(FAILS);
    let Some(mut terminal) = Terminal::open(&project, "workflow run flow.yaml --quiet") else { return };
    terminal.sees(PROMPT);
    assert!(!terminal.shown().contains("hello"), "{}", terminal.shown());
    terminal.types("n\n");
    assert_eq!(terminal.ends().0, Some(1));
}
