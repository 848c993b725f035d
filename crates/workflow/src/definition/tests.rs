mod refusals;

use std::path::Path;
use std::time::Duration;

use ic_base::{Code, Result};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Definition, StepAction, StepCommand, StepCompensation, StepFailurePolicy, StepRetries, StepShell,
    Strategy as Restored, WorkflowStep,
};

fn parse(text: impl AsRef<[u8]>) -> Result<Definition> {
    Definition::parse(text.as_ref(), Path::new("flow.yaml"))
}

fn good(text: &str) -> Definition {
    let definition = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(definition.text, text);
    assert_eq!(parse(&definition.text).unwrap(), definition, "what is kept is the same workflow");
    definition
}

/// The only step of a workflow, with these lines.
fn step(lines: &str) -> WorkflowStep {
    good(&format!("name: n\nsteps:\n  - id: a\n    phase: p\n    run: x\n    {lines}\n")).steps.remove(0)
}

/// What undoes the only step of a workflow.
fn undo(value: &str) -> StepCompensation {
    step(&format!("compensate: {value}")).compensate.unwrap()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn a_workflow_says_what_runs_where_and_what_undoes_it() {
    let definition = good(
        "name: feature-dev\ngoal: A login page\non-failure: rollback\nstrategy: files-only\nsteps:\n  - id: plan\n    \
         phase: planned\n    run: ./agents/plan.sh\n    timeout: 10m\n  - id: implement\n    needs: [plan]\n    \
         phase: executing\n    run: [codex, exec, --prompt-file, prompt.md]\n    cwd: sub/dir\n    \
         env: {KEY: value, VERSION: 1.10, ON: yes}\n    retries: {max: 2, backoff: 5s}\n    compensate:\n      \
         exec: [./scripts/undo.sh, '--hard']\n      on-failure: false\n      cwd: ./scripts//\n      env: {A: b}\n      \
         timeout: 1m 30s\n      retries: 3\n  - {id: review, run: \"test -f done\\n\", needs: [implement, plan]}\n",
    );
    assert_eq!((definition.name.as_str(), definition.goal.as_str()), ("feature-dev", "A login page"));
    assert_eq!(definition.phases, ["planned", "executing", "done"]);
    assert_eq!(
        (definition.on_failure, definition.strategy),
        (Some(StepFailurePolicy::Rollback), Some(Restored::FilesOnly))
    );
    let [plan, implement, review] = definition.steps.as_slice() else { panic!("{definition:?}") };
    assert_eq!((plan.id.as_str(), plan.phase.as_str(), plan.line), ("plan", "planned", 6));
    assert_eq!((&plan.run, plan.timeout), (&sh("./agents/plan.sh"), Some(Duration::from_mins(10))));
    assert_eq!((plan.retries, &plan.compensate, &plan.directory), (StepRetries::default(), &None, &None));
    assert!(plan.needs.is_empty() && plan.environment.is_empty());
    assert_eq!((implement.phase.as_str(), implement.needs.as_slice()), ("executing", &[0][..]));
    assert_eq!(implement.run, StepCommand::Argv(words(&["codex", "exec", "--prompt-file", "prompt.md"])));
    assert_eq!(implement.directory.as_deref(), Some(Path::new("sub/dir")));
    let environment: Vec<_> = implement.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(environment, [("KEY", "value"), ("ON", "yes"), ("VERSION", "1.10")], "as they are written");
    assert_eq!(implement.retries, StepRetries { max: 2, backoff: Duration::from_secs(5) });
    assert_eq!(
        implement.compensate,
        Some(StepCompensation {
            action: StepAction::Exec { argv: words(&["./scripts/undo.sh", "--hard"]) },
            directory: Some("scripts".into()),
            environment: [("A".to_owned(), "b".to_owned())].into(),
            timeout: Some(Duration::from_secs(90)),
            retries: StepRetries { max: 3, backoff: Duration::from_secs(1) },
            on_failure: false,
        })
    );
    assert_eq!((review.phase.as_str(), review.needs.as_slice(), review.line), ("executing", &[0, 1][..], 24));
}

#[test]
fn what_is_not_said_has_a_default() {
    let definition = good("steps: [{run: x, id: a, phase: p}]\nname: n");
    assert_eq!((definition.goal.as_str(), definition.on_failure, definition.strategy), ("n", None, None));
    assert_eq!(definition.phases, ["p", "done"]);
    for empty in ["needs:", "needs: []", "env:", "env: {}", "retries: 0"] {
        let step = step(empty);
        assert!(step.needs.is_empty() && step.environment.is_empty() && step.retries.max == 0, "{empty}");
    }
    assert_eq!(step("retries: {max: 4}").retries, StepRetries { max: 4, backoff: Duration::from_secs(1) });
    assert_eq!(step("retries: {max: 4, backoff: 0s}").retries.backoff, Duration::ZERO);
    assert_eq!(step("cwd: .").directory.as_deref(), Some(Path::new(".")));
    assert_eq!(step("timeout: 365d").timeout, Some(Duration::from_hours(365 * 24)));
}

#[test]
fn choices_are_read_as_they_are_written() {
    for on_failure in StepFailurePolicy::ALL {
        let text = format!("on-failure: {}\nname: n\nsteps: [{{id: a, phase: p, run: x}}]", on_failure.as_str());
        assert_eq!(good(&text).on_failure, Some(on_failure));
    }
    for strategy in Restored::ALL {
        let text = format!("strategy: {}\nname: n\nsteps: [{{id: a, phase: p, run: x}}]", strategy.as_str());
        assert_eq!(good(&text).strategy, Some(strategy));
    }
}

#[test]
fn every_kind_of_compensation_can_be_written() {
    let reason = || Some("it only reads".to_owned());
    for (value, action) in [
        ("skip", StepAction::Skip(None)),
        ("pivot", StepAction::Pivot(None)),
        ("retry", StepAction::Retry(None)),
        ("{skip: it only reads}", StepAction::Skip(reason())),
        ("{pivot: it only reads}", StepAction::Pivot(reason())),
        ("{retry: it only reads}", StepAction::Retry(reason())),
        ("{exec: [rm, -f, 2024]}", StepAction::Exec { argv: words(&["rm", "-f", "2024"]) }),
        ("{shell: rm -f x}", StepAction::Shell("rm -f x".into())),
        ("{restore-file: ./a/b}", StepAction::RestoreFile(vec!["a/b".into()])),
        ("{restore-file: [a, b/]}", StepAction::RestoreFile(vec!["a".into(), "b".into()])),
        ("{kill-process: run/server.pid}", StepAction::KillProcess("run/server.pid".into())),
    ] {
        let found = undo(value);
        assert!(found.on_failure && found.timeout.is_none() && found.directory.is_none(), "{value}");
        assert_eq!(found.action, action, "{value}");
    }
    let found = undo("{restore-file: a, timeout: 5s, retries: 1, on-failure: false}");
    assert_eq!((found.timeout, found.retries.max, found.on_failure), (Some(Duration::from_secs(5)), 1, false));
}

fn sh(text: &str) -> StepCommand {
    StepCommand::Script { text: text.to_owned(), shell: StepShell::Sh }
}

#[test]
fn a_step_has_its_own_shell_or_that_of_the_file() {
    let text = "name: n\nshell: bash\nsteps:\n  - {id: a, phase: p, run: x}\n  - {id: b, run: x, shell: sh}\n  \
         - {id: c, run: x, shell: [sh, -c]}\n  - {id: d, run: [x]}\n";
    let runs: Vec<StepCommand> = good(text).steps.into_iter().map(|step| step.run).collect();
    let script = |shell| StepCommand::Script { text: "x".to_owned(), shell };
    let own = StepShell::Own(words(&["sh", "-c"]));
    assert_eq!(runs, [script(StepShell::Bash), script(StepShell::Sh), script(own), StepCommand::Argv(words(&["x"]))]);
    for (shell, argv) in [
        (StepShell::Sh, &["sh", "-eu", "-c", "x"][..]),
        (StepShell::Bash, &["bash", "-euo", "pipefail", "-c", "x"]),
        (StepShell::Own(words(&["python3", "-c"])), &["python3", "-c", "x"]),
    ] {
        assert_eq!(shell.argv("x"), argv);
    }
}

#[test]
fn commands_are_what_is_written() {
    for (text, run) in [
        ("run: true", sh("true")),
        ("run: '5'", sh("5")),
        ("run: |\n      a\n      b", sh("a\nb\n")),
        ("run: [sleep, 5]", StepCommand::Argv(words(&["sleep", "5"]))),
        ("run: [echo, true, 1.10, '', 計劃]", StepCommand::Argv(words(&["echo", "true", "1.10", "", "計劃"]))),
    ] {
        let text = format!("name: n\nsteps:\n  - id: 7\n    phase: p\n    {text}\n");
        let step = good(&text).steps.remove(0);
        assert_eq!((step.id.as_str(), step.run), ("7", run), "{text}");
    }
}

#[test]
fn aliases_and_merges_are_text_that_stands_twice() {
    let definition = good(
        "name: n\nsteps:\n  - {id: a, phase: p, run: x, env: &env {A: b}, compensate: &undo {shell: y}}\n  \
         - {id: b, run: z, compensate: *undo, env: {<<: *env, C: d}}\n",
    );
    assert_eq!(definition.steps[0].compensate, definition.steps[1].compensate);
    assert_eq!(definition.steps[1].environment.len(), 2);
}

#[test]
fn steps_of_a_phase_may_need_later_ones_of_it() {
    let definition = good(
        "name: n\nsteps: [{id: a, phase: p, run: x, needs: [c]}, {id: b, run: x}, {id: c, run: x, needs: [b]},\n\
         {id: d, phase: q, run: x, needs: [c, a]}]",
    );
    let needs: Vec<&[usize]> = definition.steps.iter().map(|step| step.needs.as_slice()).collect();
    assert_eq!(needs, [&[2][..], &[], &[1], &[0, 2]]);
}

#[test]
fn a_file_is_loaded_if_it_is_one_and_not_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flow.yaml");
    let mut text = b"\xef\xbb\xbfname: n\r\nsteps:\r\n- {id: a, phase: p, run: x}\r\n#".to_vec();
    text.resize(1_000_000, b'#');
    std::fs::write(&path, &text).unwrap();
    let definition = Definition::load(&path).unwrap();
    assert_eq!((definition.name.as_str(), definition.text.as_bytes()), ("n", text.as_slice()));
    assert_eq!(definition.steps[0].line, 3);
    text.push(b'#');
    std::fs::write(&path, &text).unwrap();
    for (path, says) in [
        (path.clone(), "it is longer than 1 MB."),
        (dir.path().to_owned(), "it is not a file."),
        (dir.path().join("absent.yaml"), "it does not exist."),
        (path.join("x"), "it does not exist."),
    ] {
        let error = Definition::load(&path).unwrap_err();
        assert_eq!(error.code(), Code::InvalidWorkflow);
        assert_eq!(error.message(), format!("{}: {says}", path.display()));
        assert!(error.get_hint().is_some() && error.details()["file"] == path.to_str().unwrap());
    }
}

/// A text that YAML can hold and the ledger takes for a name.
fn any_name() -> impl Strategy<Value = String> {
    "[a-z計:#&*!|>'\"%@`{}\\[\\],?~-][a-zA-Z0-9 計:#'\"\\\\-]{0,12}[a-z0-9:~#]"
}

prop_compose! {
    fn any_step()(
        name in any_name(),
        argv in proptest::option::of(proptest::collection::vec("[ -~\u{e9}\t\n]{1,10}", 1..4)),
        shell in "[a-z~:#-][ -~\n]{0,20}",
        later in any::<bool>(),
        environment in proptest::collection::btree_map("[A-Z_]{1,5}", "[ -~\u{8a08}\n]{0,10}", 0..3),
        seconds in 1..100_000_u64,
        max in 0..1_000_u32,
    ) -> (String, bool, Value) {
        let run = argv.map_or(json!(shell), |argv| json!(argv));
        let step = json!({"run": run, "env": environment, "timeout": format!("{seconds}s"), "retries": max});
        (name, later, step)
    }
}

proptest! {
    /// JSON is YAML too.
    #[test]
    fn what_is_written_is_what_is_read(name in any_name(), steps in proptest::collection::vec(any_step(), 1..8)) {
        let (mut written, mut phase) = (Vec::new(), 0);
        for (index, (id, later, mut step)) in steps.into_iter().enumerate() {
            phase += usize::from(later);
            step["id"] = json!(format!("{id}{index}"));
            step["phase"] = json!(format!("phase {phase}"));
            written.push(step);
        }
        let text = json!({"name": name, "steps": written}).to_string();
        let definition = good(&text);
        prop_assert_eq!(&definition.name, &name);
        prop_assert_eq!(definition.steps.len(), written.len());
        for (step, written) in definition.steps.iter().zip(&written) {
            let run = match &step.run {
                StepCommand::Script { text, .. } => json!(text),
                StepCommand::Argv(argv) => json!(argv),
            };
            let seconds = step.timeout.unwrap().as_secs();
            let read = json!({"run": run, "env": step.environment, "timeout": format!("{seconds}s"),
                "retries": step.retries.max, "id": step.id, "phase": step.phase});
            prop_assert_eq!(&read, written);
        }
    }

    #[test]
    fn any_bytes_are_a_workflow_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = parse(&bytes) {
            prop_assert_eq!(error.code(), Code::InvalidWorkflow);
        }
    }

    #[test]
    fn any_value_is_taken_or_refused_where_it_stands(value in "[-+0-9a-zA-Z.'\"&*!|>%@`#,: {}\\[\\]]{0,14}") {
        for key in ["id", "phase", "run", "needs", "cwd", "env", "timeout", "retries", "compensate"] {
            let text = format!("name: n\nsteps:\n  - {{id: a, phase: p, run: x}}\n  - id: b\n    run: y\n    {key}: {value}\n");
            let text = text.replacen("run: y\n    run", "run", 1).replacen("id: b\n    run: y\n    id", "run: y\n    id", 1);
            match parse(&text) {
                Ok(definition) => prop_assert_eq!(definition.steps.len(), 2),
                Err(error) => {
                    prop_assert_eq!(error.code(), Code::InvalidWorkflow);
                    prop_assert!(error.details().contains_key("line"), "{}", error);
                }
            }
        }
    }
}
