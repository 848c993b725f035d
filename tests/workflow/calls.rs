//! Calls, and what they report.

use std::process::{Child, Command, Stdio};

use ic_testkit::{CliOutcome, TestWorld, text_of};
use serde_json::Value;

/// Calls that are written as one line.
pub(crate) trait Calls {
    /// Starts a call that is not waited for.
    fn start(&self, arguments: &str) -> Child;

    fn command(&self, arguments: &str) -> Command;

    /// Runs a call to its end.
    fn call(&self, arguments: &str) -> CliOutcome;

    /// Runs a call that ends with this exit code, and returns its record.
    fn report(&self, arguments: &str, code: i32) -> Value;

    /// What a call is refused with.
    fn refused(&self, arguments: &str) -> String;

    /// The states of the compensations of the run, by step, in the order in which they were begun.
    fn compensations(&self) -> Vec<(String, String)>;
}

impl Calls for TestWorld {
    fn start(&self, arguments: &str) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic")
    }

    fn command(&self, arguments: &str) -> Command {
        self.cli.command(arguments.split_whitespace())
    }

    fn call(&self, arguments: &str) -> CliOutcome {
        CliOutcome::of(&mut self.command(arguments))
    }

    fn report(&self, arguments: &str, code: i32) -> Value {
        let preview = preview(self, arguments);
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

    fn refused(&self, arguments: &str) -> String {
        let preview = preview(self, arguments);
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

    fn compensations(&self) -> Vec<(String, String)> {
        let list = self.cli.json(["compensation", "list", &self.newest_run()]);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let list = list.as_array().expect("a list");
        list.iter().map(|one| (text(&one["step"]), text(&one["status"]))).collect()
    }
}

/// What a rollback of a workflow would do, which changes nothing.
fn preview(world: &TestWorld, arguments: &str) -> Option<CliOutcome> {
    if !arguments.starts_with("workflow rollback") || !arguments.contains("--yes") {
        return None;
    }
    let dump = world.cli.dump();
    let preview = world.call(&arguments.replace("--yes", "--dry-run --json"));
    assert_eq!(world.cli.dump(), dump, "the preview of {arguments}");
    Some(preview)
}

/// The status of the run that was begun last.
pub(crate) fn status(world: &TestWorld) -> String {
    text_of(&world.cli.json(["run", "status", &world.newest_run()]), "status")
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
