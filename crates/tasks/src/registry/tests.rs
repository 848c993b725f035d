use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use ic_base::{Code, Diagnosis};
use tempfile::tempdir;

use super::{
    CompensationAction, CompensationRegistry, CompensationType, EffectCoverage, ExecutableCompensation, RollbackEngine,
    RollbackOutcome, TaskContext, TaskId, TaskResult, ToolCompensation,
};
use ic_effects::order::FailurePolicy;

/// Which compensations were run, in that order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    /// A compensation that succeeds.
    fn undo(&self) -> ToolCompensation {
        self.undo_unless(|_| None)
    }

    /// A compensation that fails as `fault` says, given how often it was called before.
    fn undo_unless(&self, fault: impl Fn(usize) -> Option<&'static str> + Send + Sync + 'static) -> ToolCompensation {
        let journal = self.clone();
        ToolCompensation::new("undo it", move |context| {
            let mut ran = journal.0.lock().unwrap();
            let earlier = ran.iter().filter(|task| **task == context.task_id.as_str()).count();
            ran.push(context.task_id.to_string());
            drop(ran);
            match fault(earlier) {
                Some(message) => Err(Diagnosis::new(Code::Io, message)),
                None => Ok(TaskResult::Success),
            }
        })
    }

    /// What ran since it was last asked.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn executed(tasks: &[&str]) -> Vec<TaskContext> {
    tasks.iter().map(|task| TaskContext::new(*task)).collect()
}

fn ids(tasks: &[&str]) -> Vec<TaskId> {
    tasks.iter().map(|task| TaskId::from(*task)).collect()
}

fn cloned<'t>(tasks: impl Iterator<Item = &'t TaskId>) -> Vec<TaskId> {
    tasks.cloned().collect()
}

#[test]
fn test_compensation_registry() {
    let mut registry = CompensationRegistry::new();
    let (a, b) = (TaskId::new("a"), TaskId::new("b"));
    assert!(!registry.has_compensation(&a));
    assert!(registry.get(&a).is_none() && registry.remove(&a).is_none());

    assert!(registry.register(&a, ToolCompensation::skip("reads only")).is_none());
    registry.register(&b, ToolCompensation::retry("the network is slow"));
    assert!(registry.has_compensation(&a) && registry.has_compensation(&b));
    assert_eq!(registry.get(&a).unwrap().description, "reads only");

    assert_eq!(registry.remove(&a).unwrap().description, "reads only");
    assert!(!registry.has_compensation(&a) && registry.has_compensation(&b));
}

#[test]
fn test_tool_compensation() {
    let context = TaskContext {
        outputs: [("BUCKET".to_owned(), "b-17".into())].into(),
        idempotency_key: "key".to_owned(),
        ..TaskContext::new("bucket")
    };
    let seen = Arc::new(Mutex::new(None));
    let undo = ToolCompensation::new("delete the bucket", {
        let seen = seen.clone();
        move |context| {
            *seen.lock().unwrap() = Some(context.clone());
            Ok(TaskResult::Success)
        }
    });
    assert_eq!(undo.clone().execute(&context).unwrap(), TaskResult::Success);
    assert_eq!(seen.lock().unwrap().as_ref(), Some(&context));

    let failing = ToolCompensation::new("fail", |_| Err(Diagnosis::new(Code::Busy, "The server does not answer.")));
    assert_eq!(failing.execute(&context).unwrap_err().code(), Code::Busy);
    for skipped in [ToolCompensation::skip("reads only"), ToolCompensation::retry("reads only")] {
        let TaskResult::Skipped { reason } = skipped.execute(&context).unwrap() else { panic!("not skipped") };
        assert!(reason.contains("reads only"), "{reason}");
    }
}

#[test]
fn test_compensation_coverage_validation() {
    let mut registry = CompensationRegistry::new();
    assert_eq!(registry.validate_coverage(&[]).percentage, 100);
    let tasks = ids(&["a", "b", "c", "d"]);
    assert_eq!(registry.validate_coverage(&tasks).percentage, 0);

    registry.register("a", Journal::default().undo());
    registry.register("b", ToolCompensation::skip("reads only"));
    registry.register("c", ToolCompensation::retry("the network is slow"));
    let report = registry.validate_coverage(&tasks);
    assert_eq!((report.total, report.percentage), (4, 75));
    assert_eq!(report.undeclared, ["d"]);
    let coverage: Vec<EffectCoverage> = report.steps.iter().map(|(_, coverage)| *coverage).collect();
    assert_eq!(
        coverage,
        [EffectCoverage::Compensated, EffectCoverage::Skip, EffectCoverage::Skip, EffectCoverage::Undeclared]
    );

    registry.register("d", CompensationAction::undo("delete it"));
    assert_eq!(registry.validate_coverage(&tasks).undeclared, ["d"], "nothing can be run for it");
    registry.register("d", ExecutableCompensation::with_undo("delete it", |_| Ok(TaskResult::Success)));
    assert!(registry.validate_coverage(&tasks).is_complete());
}

#[test]
fn test_task_compensation_integration() {
    let context = TaskContext::new("task");
    let actions = [
        CompensationAction::skip("delete it"),
        CompensationAction::retry("delete it"),
        CompensationAction::undo("delete it"),
    ];
    for (action, says) in actions.into_iter().zip(["needs no undo", "tried again", "no function"]) {
        let compensation = ToolCompensation::from(action.clone());
        assert_eq!(compensation.description, "delete it");
        let executed = [compensation.execute(&context), ExecutableCompensation::new(action).execute(&context)];
        for result in executed {
            let TaskResult::Skipped { reason } = result.unwrap() else { panic!("not skipped") };
            assert!(reason.contains(says) && reason.contains("delete it"), "{reason}");
        }
    }

    let json = r#"{"action_type":"retry","description":"the network is slow"}"#;
    let action: CompensationAction = serde_json::from_str(json).unwrap();
    assert_eq!(action.action_type, CompensationType::Retry);
    assert_eq!(serde_json::to_string(&action).unwrap(), json);
}

#[test]
fn tasks_are_undone_in_reverse() {
    let (journal, mut registry) = (Journal::default(), CompensationRegistry::new());
    for task in ["b", "c", "a"] {
        registry.register(task, journal.undo());
    }
    registry.register("never-executed", journal.undo());
    let report = RollbackEngine::new().execute_rollback(&executed(&["a", "b", "c"]), &mut registry);
    assert_eq!(journal.take(), ["c", "b", "a"]);
    assert_eq!(cloned(report.rolled_back()), ids(&["c", "b", "a"]));
    assert!(report.is_success());
    assert!(!ids(&["a", "b", "c"]).iter().any(|task| registry.has_compensation(task)));
    assert!(registry.has_compensation(&"never-executed".into()));
}

#[test]
fn a_failure_stops_and_the_next_rollback_does_the_rest() {
    let (journal, mut registry) = (Journal::default(), CompensationRegistry::new());
    registry.register("a", journal.undo());
    registry.register("b", journal.undo_unless(|earlier| (earlier == 0).then_some("The server is away.")));
    registry.register("c", journal.undo());
    let tasks = executed(&["a", "b", "c"]);

    let report = RollbackEngine::new().execute_rollback(&tasks, &mut registry);
    assert_eq!(cloned(report.rolled_back()), ids(&["c"]));
    assert_eq!((cloned(report.failed()), cloned(report.pending())), (ids(&["b"]), ids(&["a"])));
    assert!(!report.is_success());
    let error = "The server is away.".to_owned();
    assert_eq!(report.results[1].outcome, RollbackOutcome::Failed { code: "io_error".to_owned(), error });
    assert!(registry.has_compensation(&"a".into()) && registry.has_compensation(&"b".into()));
    assert!(!registry.has_compensation(&"c".into()));

    let report = RollbackEngine::new().execute_rollback(&tasks, &mut registry);
    assert_eq!(journal.take(), ["c", "b", "b", "a"]);
    assert_eq!(report.results[0].outcome, RollbackOutcome::AlreadyRolledBack);
    assert_eq!(cloned(report.rolled_back()), ids(&["b", "a"]));
    assert!(report.is_success() && !registry.has_compensation(&"b".into()));
}

#[test]
fn a_failure_in_the_middle_can_be_passed_over() {
    let (journal, mut registry) = (Journal::default(), CompensationRegistry::new());
    registry.register("a", journal.undo());
    registry.register("b", journal.undo_unless(|_| Some("The server is away.")));
    registry.register("c", journal.undo());
    let tasks = executed(&["a", "b", "c"]);
    let engine = RollbackEngine::with_policy(FailurePolicy::Continue);

    let report = engine.execute_rollback(&tasks, &mut registry);
    assert_eq!(journal.take(), ["c", "b", "a"]);
    assert_eq!((cloned(report.rolled_back()), cloned(report.failed())), (ids(&["c", "a"]), ids(&["b"])));
    assert!(!report.is_success());

    let report = engine.execute_rollback(&tasks, &mut registry);
    assert_eq!(journal.take(), ["b"], "only what failed is run again");
    assert!(registry.has_compensation(&"b".into()) && !report.is_success());
    assert_eq!(report.results[0].outcome, RollbackOutcome::AlreadyRolledBack);
}

#[test]
fn what_is_skipped_or_undeclared_is_never_called_rolled_back() {
    let mut registry = CompensationRegistry::new();
    registry.register("skip", ToolCompensation::skip("reads only"));
    registry.register("retry", ToolCompensation::retry("the network is slow"));
    registry.register("missing", CompensationAction::undo("delete it"));
    let tasks = executed(&["skip", "retry", "missing", "undeclared"]);
    let report = RollbackEngine::new().execute_rollback(&tasks, &mut registry);
    assert_eq!(cloned(report.skipped()), ids(&["missing", "retry", "skip"]));
    assert_eq!(report.rolled_back().count(), 0);
    assert_eq!(report.results[0].outcome, RollbackOutcome::Undeclared);
    assert!(report.is_success() && registry.has_compensation(&"missing".into()));

    let json = serde_json::to_value(&report.results[0]).unwrap();
    assert_eq!(json, serde_json::json!({"task_id": "undeclared", "description": null, "outcome": "undeclared"}));
}

#[test]
fn registering_overrides_and_begins_anew() {
    let (journal, mut registry) = (Journal::default(), CompensationRegistry::new());
    registry.register("a", ToolCompensation::new("the old undo", |_| panic!("overridden")));
    assert_eq!(registry.register("a", journal.undo()).unwrap().description, "the old undo");
    let tasks = executed(&["a"]);
    for _ in 0..2 {
        assert!(RollbackEngine::new().execute_rollback(&tasks, &mut registry).rolled_back().count() == 1);
        registry.register("a", journal.undo());
    }
    assert_eq!(journal.take(), ["a", "a"]);
    registry.remove(&"a".into());
    let report = RollbackEngine::new().execute_rollback(&tasks, &mut registry);
    assert_eq!(report.results[0].outcome, RollbackOutcome::Undeclared, "of what was done anew nothing is undone");
}

#[test]
fn a_task_that_was_executed_twice_is_undone_once_by_its_last_execution() {
    let (journal, mut registry) = (Journal::default(), CompensationRegistry::new());
    registry.register("a", journal.undo());
    registry.register("b", journal.undo());
    let report = RollbackEngine::new().execute_rollback(&executed(&["a", "b", "a"]), &mut registry);
    assert_eq!(journal.take(), ["a", "b"]);
    assert_eq!(report.results.len(), 2);
}

#[test]
fn a_compensation_that_panics_has_failed() {
    let mut registry = CompensationRegistry::new();
    registry.register("a", ToolCompensation::new("panic", |_| panic!("out of {}", "luck")));
    let report = RollbackEngine::new().execute_rollback(&executed(&["a"]), &mut registry);
    let RollbackOutcome::Failed { error, .. } = &report.results[0].outcome else { panic!("not failed") };
    assert!(error.contains("out of luck"), "{error}");
    assert!(registry.has_compensation(&"a".into()));
}

#[test]
fn all_files_of_a_task_are_put_back_and_a_second_registration_of_one_does_no_harm() {
    let root = tempdir().unwrap();
    let [new, old]: [PathBuf; 2] = ["new", "old"].map(|name| root.path().join(name));
    fs::write(&old, "precious").unwrap();
    let mut registry = CompensationRegistry::new();
    registry.register("a", ToolCompensation::skip("nothing yet"));
    registry.register_file_creation("a", &new);
    registry.register_file_creation("a", &old);
    fs::write(&new, "first attempt").unwrap();
    fs::write(&old, "first attempt").unwrap();
    registry.register_file_creation("a", &new);
    fs::write(&new, "second attempt").unwrap();

    let report = RollbackEngine::new().execute_rollback(&executed(&["a"]), &mut registry);
    assert_eq!(report.rolled_back().count(), 1, "{report:?}");
    assert!(!new.exists());
    assert_eq!(fs::read_to_string(&old).unwrap(), "precious");
}

#[test]
fn a_whole_of_which_a_part_was_skipped_is_skipped() {
    let journal = Journal::default();
    let whole = journal.undo().then(ToolCompensation::skip("reads only")).then(journal.undo());
    let result = whole.execute(&TaskContext::new("a")).unwrap();
    assert!(matches!(result, TaskResult::Skipped { .. }));
    assert_eq!(journal.take(), ["a", "a"]);
    let failing = journal.undo_unless(|_| Some("The server is away.")).then(journal.undo());
    assert!(failing.execute(&TaskContext::new("a")).is_err());
    assert_eq!(journal.take().len(), 1);
}

/// A process that is waited for as soon as it ends, as a service's is.
fn sleeper() -> (u32, thread::JoinHandle<bool>) {
    let mut child: Child = Command::new("sleep").arg("30").spawn().unwrap();
    (child.id(), thread::spawn(move || child.wait().unwrap().success()))
}

#[test]
fn a_process_that_was_started_is_ended_and_may_be_gone_already() {
    let mut registry = CompensationRegistry::new();
    let ((one, waits_one), (two, waits_two)) = (sleeper(), sleeper());
    registry.register_process_spawn("serve", one);
    registry.register_process_spawn("serve", two);
    let compensation = registry.get(&"serve".into()).unwrap().clone();
    let report = RollbackEngine::new().execute_rollback(&executed(&["serve"]), &mut registry);
    assert!(report.is_success() && report.rolled_back().count() == 1);
    assert!(!waits_one.join().unwrap() && !waits_two.join().unwrap());
    compensation.execute(&TaskContext::new("serve")).unwrap();
    ToolCompensation::process_compensation(one).execute(&TaskContext::new("serve")).unwrap();
}

#[test]
fn a_rollback_does_not_end_itself() {
    let undo = ToolCompensation::process_compensation(std::process::id());
    assert_eq!(undo.execute(&TaskContext::new("self")).unwrap_err().code(), Code::InvalidValue);
}
