//! A project whose workflows have effects outside of it: a script that makes them, undoes them, and stops where it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, Outcome};
use serde_json::Value;

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// `act do|undo` makes the effect of a step, or undoes it, once for each idempotency key. Two copies of a step that meet are a
/// complaint. At each of its points it waits if there is a file that holds it, the first that comes there alone.
const ACT: &str = r#"#!/bin/sh
out=$(dirname "$0"); point=$1-$IC_STEP
exec 9>>"$out/lock-$IC_STEP"
flock -n 9 || echo "$point meets another copy" >> "$out/complaints"
reach() {
    echo $$ > "$out/at-$point-$1"
    if mv "$out/hold-$point-$1" "$out/held-$point-$1" 2>/dev/null; then
        while [ -e "$out/held-$point-$1" ]; do sleep 0.01; done
    fi
}
test "$1" = do || echo "undoing $IC_STEP $IC_IDEMPOTENCY_KEY" >> "$out/log"
reach before
if [ -e "$out/fail-$point" ]; then echo "$point fails as told"; exit 7; fi
case $1 in do) echo "done $IC_STEP $IC_IDEMPOTENCY_KEY" ;; *) echo "undone $IC_STEP $IC_IDEMPOTENCY_KEY" ;; esac >> "$out/log"
reach after
if [ -e "$out/spoil-$point" ]; then echo "$point is spoilt as told"; exit 8; fi
"#;

/// The four steps of a -> {b, c} -> d, and what each needs.
pub(crate) const DIAMOND: [(&str, &[&str]); 4] =
    [("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])];

/// A project, and a place outside of it.
pub(crate) struct World {
    pub(crate) cli: Cli,
    outside: PathBuf,
}

/// A line of the log of effects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Act {
    pub(crate) what: String,
    pub(crate) step: String,
    pub(crate) key: String,
}

impl World {
    /// A project without checkpoints along the way.
    pub(crate) fn new() -> Self {
        Self::around(Cli::new(env!("CARGO_BIN_EXE_ic")))
    }

    /// A project with checkpoints along the way.
    pub(crate) fn with_checkpoints() -> Self {
        Self::around(Cli::new(env!("CARGO_BIN_EXE_ic")).with_checkpoints())
    }

    fn around(cli: Cli) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let cli = cli.with_env("PATH", path);
        let outside = cli.home().join("outside");
        std::fs::create_dir(&outside).expect("a directory");
        let world = Self { cli, outside };
        world.put("act", ACT);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(world.outside("act"), executable).expect("an executable");
        world
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outside.join(name)
    }

    /// Puts a file outside.
    pub(crate) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.outside(name), text).expect("a file outside");
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.outside(name)).expect("a file that is removed");
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.outside(name).exists()
    }

    /// What a file outside holds; nothing if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.outside(name)).unwrap_or_default()
    }

    /// Puts a file into the project.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.cli.root().join(name), text).expect("a file");
    }

    /// What a file of the project holds; nothing if there is none.
    pub(crate) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.cli.root().join(name)).unwrap_or_default()
    }

    /// Writes `flow.yaml`: these steps, each with its effect and its undo.
    pub(crate) fn flow(&self, steps: &[(&str, &[&str])]) {
        let line = |(step, needs): &(&str, &[&str])| {
            let needs = needs.join(", ");
            format!("{{id: {step}, needs: [{needs}], run: 'ACT do', compensate: {{shell: 'ACT undo'}}}}")
        };
        let lines: Vec<String> = steps.iter().map(line).collect();
        self.steps(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Writes `flow.yaml` with these lines under `steps:`, in the phase `main` unless they name others; `ACT` stands for the
    /// script, `OUT` for the place outside.
    pub(crate) fn steps(&self, lines: &[&str]) {
        self.workflow("flow", lines);
    }

    /// As [`World::steps`], under another name.
    pub(crate) fn workflow(&self, name: &str, lines: &[&str]) {
        let mut text = format!("name: {name}\nsteps:\n");
        for (at, line) in lines.iter().enumerate() {
            let phase = if at == 0 && !line.contains("phase:") { "phase: main, " } else { "" };
            text.push_str(&format!("  - {{{phase}{}\n", line.trim_start_matches('{')));
        }
        let act = self.outside("act").display().to_string();
        let text = text.replace("OUTPUTS", "\0").replace("OUT", &self.outside.display().to_string());
        self.write(&format!("{name}.yaml"), &text.replace('\0', "OUTPUTS").replace("ACT", &act));
    }

    /// Starts a call that is not waited for.
    pub(crate) fn start(&self, arguments: &str) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic")
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        self.cli.command(arguments.split_whitespace())
    }

    /// Runs a call to its end.
    pub(crate) fn call(&self, arguments: &str) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    /// Runs a call that ends with this exit code, and returns its record.
    pub(crate) fn report(&self, arguments: &str, code: i32) -> Value {
        let preview = self.preview(arguments);
        let outcome = self.call(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments}: {outcome:?}");
        let report = outcome.json();
        if let Some(preview) = preview {
            assert_eq!(preview.code, Some(0), "{arguments}: {preview:?}");
            let steps = |list: &Value| -> Vec<Value> {
                list.as_array().expect("a list").iter().map(|one| one["step"].clone()).collect()
            };
            let (planned, undone) = (preview.json(), &report["rollback"]["compensations"]);
            if planned["resumes"].is_object() {
                assert_eq!(planned["resumes"]["id"], report["rollback"]["rollback_id"], "{arguments}");
                return report;
            }
            // A failure ends it before the others are tried.
            let planned = steps(&planned["effects"]["results"]);
            assert!(planned.starts_with(&steps(undone)), "{arguments}: {planned:?} {undone}");
            assert!(code != 0 || planned == steps(undone), "{arguments}: {planned:?} {undone}");
        }
        report
    }

    /// What a call is refused with.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let preview = self.preview(arguments);
        let outcome = self.call(arguments);
        assert!(outcome.code != Some(0) && outcome.stdout.is_empty(), "{arguments}: {outcome:?}");
        if let Some(preview) = preview {
            assert_eq!(preview.code, outcome.code, "{arguments}: {preview:?}");
            // What a flag decides is part of the plan.
            let said = match preview.stdout.as_str() {
                "" => preview.error(),
                _ => preview.json()["refusal"]["code"].as_str().expect("a refusal").to_owned(),
            };
            assert_eq!(said, outcome.error(), "{arguments}");
        }
        outcome.error()
    }

    /// Before a workflow is taken back, what that would do, which changes nothing.
    fn preview(&self, arguments: &str) -> Option<Outcome> {
        if !arguments.starts_with("workflow rollback") || !arguments.contains("--yes") {
            return None;
        }
        let dump = self.cli.dump();
        let preview = self.call(&arguments.replace("--yes", "--dry-run --json"));
        assert_eq!(self.cli.dump(), dump, "the preview of {arguments}");
        Some(preview)
    }

    /// The id of the run that was begun last.
    pub(crate) fn run(&self) -> String {
        self.cli.json(["run", "list"])[0]["id"].as_str().expect("a run").to_owned()
    }

    pub(crate) fn status(&self) -> String {
        let status = self.cli.json(["run", "status", &self.run()]);
        status["status"].as_str().expect("a status").to_owned()
    }

    /// Waits until a script has come to a point where it is held, such as `do-b-before`.
    pub(crate) fn await_held(&self, point: &str) {
        self.until(&format!("{point} is held"), || self.has(&format!("held-{point}")));
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < PATIENCE, "it never came to it that {what}: {}", self.read("log"));
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Starts a call, kills its process when the script is held at a point, and leaves the script there.
    pub(crate) fn kill_at(&self, arguments: &str, point: &str) {
        self.put(&format!("hold-{point}"), "");
        let mut child = self.start(arguments);
        self.await_held(point);
        kill(&mut child);
    }

    /// What was done and undone outside, in order.
    pub(crate) fn log(&self) -> Vec<Act> {
        let act = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, step, key] = words[..] else { panic!("an odd line: {line}") };
            Act { what: what.to_owned(), step: step.to_owned(), key: key.to_owned() }
        };
        self.read("log").lines().map(act).collect()
    }

    /// The steps in the order in which they were undone, each once.
    pub(crate) fn undone(&self) -> Vec<String> {
        let mut undone: Vec<String> = Vec::new();
        for act in self.log().into_iter().filter(|act| act.what == "undone") {
            if !undone.contains(&act.step) {
                undone.push(act.step);
            }
        }
        undone
    }

    /// Asserts that no two copies of a step ever met.
    pub(crate) fn assert_no_complaints(&self) {
        assert_eq!(self.read("complaints"), "", "{}", self.read("log"));
    }

    /// Asserts that of each of these steps one effect stands, and was made under one key.
    pub(crate) fn assert_each_stands_once(&self, steps: &[(&str, &[&str])], context: &str) {
        let effects = self.effects();
        for (step, _) in steps {
            let (done, undone) = effects.get(*step).cloned().unwrap_or_default();
            let standing: Vec<_> = done.difference(&undone).collect();
            assert_eq!(standing.len(), 1, "{context}: {step}: {}", self.read("log"));
        }
        self.assert_order(steps, context);
    }

    /// Asserts that no effect stands.
    pub(crate) fn assert_nothing_stands(&self, steps: &[(&str, &[&str])], context: &str) {
        for (step, (done, undone)) in self.effects() {
            let left: Vec<_> = done.difference(&undone).collect();
            assert!(left.is_empty(), "{context}: {step}: {}", self.read("log"));
        }
        self.assert_order(steps, context);
    }

    /// The keys under which each step was done, and those under which it was undone.
    pub(crate) fn effects(&self) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
        let mut effects: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
        for act in self.log() {
            let (done, undone) = effects.entry(act.step).or_default();
            match act.what.as_str() {
                "done" => done.insert(act.key),
                "undone" => undone.insert(act.key),
                _ => continue,
            };
        }
        effects
    }

    /// Asserts that the undo of a step begins only after everything that depends on it is undone.
    fn assert_order(&self, steps: &[(&str, &[&str])], context: &str) {
        let mut standing: BTreeSet<(String, String)> = BTreeSet::new();
        for act in self.log() {
            match act.what.as_str() {
                "done" => {
                    standing.insert((act.step, act.key));
                }
                "undone" => {
                    standing.remove(&(act.step, act.key));
                }
                _ => {
                    let dependents = dependents(steps, &act.step);
                    let early: Vec<_> =
                        standing.iter().filter(|(step, _)| dependents.contains(step.as_str())).collect();
                    assert!(
                        early.is_empty(),
                        "{context}: {} before {early:?}: {}",
                        act.step,
                        self.read("log")
                    );
                }
            }
        }
    }

    /// Asserts that the ledger is sound.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.cli.json(["health"])["ok"], true);
        self.cli.ok(["events", "verify"]);
    }

    /// The states of the compensations of the run, by step, in the order in which they were begun.
    pub(crate) fn compensations(&self) -> Vec<(String, String)> {
        let list = self.cli.json(["compensation", "list", &self.run()]);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let list = list.as_array().expect("a list");
        list.iter().map(|one| (text(&one["step"]), text(&one["status"]))).collect()
    }
}

/// The steps that need a step, directly or through others.
fn dependents<'s>(steps: &[(&'s str, &[&'s str])], step: &str) -> BTreeSet<&'s str> {
    let mut found = BTreeSet::new();
    let mut open = vec![step];
    while let Some(at) = open.pop() {
        for (name, _) in steps.iter().filter(|(_, needs)| needs.contains(&at)) {
            if found.insert(*name) {
                open.push(name);
            }
        }
    }
    found
}

/// kill -9, and its end.
pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("kill -9");
    child.wait().expect("its end");
}

/// What a call that was started came to.
pub(crate) fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("its end");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The steps of a report, and their states.
pub(crate) fn states(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let steps = report["steps"].as_array().expect("steps");
    steps.iter().map(|step| (text(&step["id"]), text(&step["status"]))).collect()
}

/// Pairs of texts, to compare with.
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}
