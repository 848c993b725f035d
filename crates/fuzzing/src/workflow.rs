//! Workflows: a definition keeps what it promises, and written out again it is the same.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Duration;

use ic_base::Code;
use ic_workflow::Definition;
use ic_workflow::definition::{
    LAST_PHASE, StepAction, StepCommand, StepCompensation, StepFailurePolicy, StepRetries, StepShell, Strategy,
    WorkflowStep,
};
use serde_json::{Map, Value, json};

/// A sentence about a file is never longer, whatever stands in it.
const LONGEST_SENTENCE: usize = 8192;

/// Reads it.
pub fn workflow(bytes: &[u8]) {
    let path = Path::new("w.yaml");
    match Definition::parse(bytes, path) {
        Ok(definition) => {
            check(&definition);
            let text = written(&definition).to_string();
            let mut again = Definition::parse(text.as_bytes(), path).expect("what is defined can be written");
            again.text.clone_from(&definition.text);
            for (step, first) in again.steps.iter_mut().zip(&definition.steps) {
                step.line = first.line;
            }
            assert_eq!(again, definition, "{text}");
        }
        Err(error) => {
            assert_eq!(error.code(), Code::InvalidWorkflow);
            assert!(error.message().len() < LONGEST_SENTENCE, "{}", error.message());
        }
    }
}

/// What the documentation of [`Definition`] says of each.
fn check(definition: &Definition) {
    let Definition { phases, steps, .. } = definition;
    assert_eq!(phases.last().map(String::as_str), Some(LAST_PHASE));
    assert!(phases.len() >= 2 && !steps.is_empty());
    let place = |phase: &str| phases.iter().position(|name| name == phase).expect("a phase of the chain");
    assert!(steps.windows(2).all(|pair| place(&pair[0].phase) <= place(&pair[1].phase)));
    for (at, step) in steps.iter().enumerate() {
        assert!(step.phase != LAST_PHASE);
        assert!(step.needs.windows(2).all(|pair| pair[0] < pair[1]), "ascending, each once");
        let need_is_earlier = |need: &usize| *need != at && place(&steps[*need].phase) <= place(&step.phase);
        assert!(step.needs.iter().all(need_is_earlier));
        assert!(step.timeout.is_none_or(|timeout| !timeout.is_zero()));
        assert!(step.directory.as_deref().is_none_or(is_inside));
        if let Some(StepAction::RestoreFile(paths)) = step.compensate.as_ref().map(|c| &c.action) {
            assert!(!paths.is_empty() && paths.iter().all(|path| is_inside(path)));
        }
    }
}

fn is_inside(path: &Path) -> bool {
    path == Path::new(".") || path.components().all(|part| matches!(part, Component::Normal(_)))
}

fn written(definition: &Definition) -> Value {
    let Definition { name, goal, on_failure, strategy, .. } = definition;
    let steps: Vec<Value> = definition.steps.iter().map(|step| written_step(step, &definition.steps)).collect();
    let mut file = json!({"name": name, "goal": goal, "steps": steps});
    if let Some(on_failure) = on_failure {
        file["on-failure"] = json!(StepFailurePolicy::as_str(*on_failure));
    }
    if let Some(strategy) = strategy {
        file["strategy"] = json!(Strategy::as_str(*strategy));
    }
    file
}

fn written_step(step: &WorkflowStep, steps: &[WorkflowStep]) -> Value {
    let needs: Vec<&str> = step.needs.iter().map(|need| steps[*need].id.as_str()).collect();
    let (run, shell) = match &step.run {
        StepCommand::Script { text, shell: StepShell::Sh } => (json!(text), json!("sh")),
        StepCommand::Script { text, shell: StepShell::Bash } => (json!(text), json!("bash")),
        StepCommand::Script { text, shell: StepShell::Own(argv) } => (json!(text), json!(argv)),
        StepCommand::Argv(words) => (json!(words), Value::Null),
    };
    let mut written = json!({"id": step.id, "phase": step.phase, "run": run, "needs": needs});
    if !shell.is_null() {
        written["shell"] = shell;
    }
    add_common(&mut written, step.directory.as_deref(), &step.environment, step.timeout, step.retries);
    if let Some(compensate) = &step.compensate {
        written["compensate"] = written_compensation(compensate);
    }
    written
}

fn written_compensation(compensate: &StepCompensation) -> Value {
    let mut written = Value::Object(Map::new());
    let reason = |word: &'static str, reason: &Option<String>| match reason {
        None => json!(word),
        Some(reason) => json!({word: reason}),
    };
    match &compensate.action {
        StepAction::Exec { argv } => written["exec"] = json!(argv),
        StepAction::Shell(text) => written["shell"] = json!(text),
        StepAction::RestoreFile(paths) => written["restore-file"] = json!(paths),
        StepAction::KillProcess(path) => written["kill-process"] = json!(path),
        StepAction::Skip(why) => return reason("skip", why),
        StepAction::Pivot(why) => return reason("pivot", why),
        StepAction::Retry(why) => return reason("retry", why),
    }
    let StepCompensation { directory, environment, timeout, retries, on_failure, .. } = compensate;
    add_common(&mut written, directory.as_deref(), environment, *timeout, *retries);
    written["on-failure"] = json!(on_failure);
    written
}

fn add_common(
    written: &mut Value,
    directory: Option<&Path>,
    environment: &BTreeMap<String, String>,
    timeout: Option<Duration>,
    retries: StepRetries,
) {
    if let Some(directory) = directory {
        written["cwd"] = json!(directory);
    }
    if !environment.is_empty() {
        written["env"] = json!(environment);
    }
    if let Some(timeout) = timeout {
        written["timeout"] = json!(duration(timeout));
    }
    if retries != StepRetries::default() {
        written["retries"] = json!({"max": retries.max, "backoff": duration(retries.backoff)});
    }
}

fn duration(duration: Duration) -> String {
    format!("{}s {}ns", duration.as_secs(), duration.subsec_nanos())
}
