mod durable;
mod ledger;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::sync::{Arc, Mutex};

use ic_base::{Code, Diagnosis};

use super::{
    CompensationAction, EffectCoverage, ExecutableCompensation, RollbackOutcome, TaskContext, TaskError, TaskId,
    TaskOutcome, TaskResult, ToolCompensation, WorkflowExecutor, WorkflowTask,
};
use crate::Status;

/// What happened, in that order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A compensation that notes that it is run.
    fn undo(&self, name: &str) -> ToolCompensation {
        let (log, text) = (self.clone(), format!("undo {name}"));
        ToolCompensation::new(text.clone(), move |_| {
            log.say(text.clone());
            Ok(TaskResult::Success)
        })
    }
}

type Work<'t> = Box<dyn Fn(&TaskContext) -> Result<TaskResult, TaskError> + 't>;

struct Task<'t> {
    id: &'static str,
    needs: &'static [&'static str],
    work: Work<'t>,
    undo: Option<ExecutableCompensation>,
    outputs: Vec<(&'static str, &'static str)>,
}

impl<'t> Task<'t> {
    fn new(id: &'static str, work: impl Fn(&TaskContext) -> Result<TaskResult, TaskError> + 't) -> Self {
        Self { id, needs: &[], work: Box::new(work), undo: None, outputs: Vec::new() }
    }

    /// One that notes that it is run, and brings an undo that does too.
    fn noted(id: &'static str, log: &Log) -> Self {
        let (run, undone) = (log.clone(), log.clone());
        let undo = ExecutableCompensation::with_undo(format!("undo {id}"), move |context| {
            undone.say(format!("undo {}", context.task_id));
            Ok(TaskResult::Success)
        });
        let work = move |context: &TaskContext| {
            run.say(context.task_id.as_str());
            Ok(TaskResult::Success)
        };
        Self { undo: Some(undo), ..Self::new(id, work) }
    }

    fn idle(id: &'static str) -> Self {
        Self::new(id, |_| Ok(TaskResult::Success))
    }

    fn failing(id: &'static str) -> Self {
        Self::new(id, |_| Err(Diagnosis::new(Code::Io, "It does not work.")))
    }

    fn needs(mut self, needs: &'static [&'static str]) -> Self {
        self.needs = needs;
        self
    }

    fn undone_by(mut self, undo: impl Into<Option<ExecutableCompensation>>) -> Self {
        self.undo = undo.into();
        self
    }
}

impl WorkflowTask for Task<'_> {
    fn id(&self) -> TaskId {
        self.id.into()
    }

    fn execute(&self, context: &TaskContext) -> Result<TaskResult, TaskError> {
        (self.work)(context)
    }

    fn executable_compensation(&self) -> Option<ExecutableCompensation> {
        self.undo.clone()
    }

    fn needs(&self) -> Vec<TaskId> {
        self.needs.iter().map(|need| TaskId::from(*need)).collect()
    }

    fn outputs(&self) -> BTreeMap<String, OsString> {
        self.outputs.iter().map(|(key, value)| ((*key).to_owned(), value.into())).collect()
    }
}

fn skip() -> ExecutableCompensation {
    ExecutableCompensation::new(CompensationAction::skip("it reads only"))
}

#[test]
fn test_executor_compensation_registration() {
    let log = Log::default();
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Task::noted("own", &log));
    executor.add_task(Task::noted("manual", &log));
    executor.add_task(Task::failing("fails").needs(&["own", "manual"]));
    executor.register_compensation("manual", log.undo("manual, overridden"));
    executor.register_compensation("manual", log.undo("manual, by hand"));
    executor.register_compensation("fails", log.undo("fails"));

    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RolledBack);
    assert_eq!(log.take(), ["own", "manual", "undo fails", "undo manual, by hand", "undo own"]);
    let (failed, error) = report.failure.unwrap();
    assert_eq!((failed.as_str(), error.code()), ("fails", Code::Io));
    let outcomes: Vec<TaskOutcome> = report.tasks.into_iter().map(|task| task.outcome).collect();
    let finished = TaskOutcome::Finished(TaskResult::Success);
    assert_eq!(outcomes, [finished.clone(), finished, TaskOutcome::Failed]);

    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made");
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Task::new("make", |_| {
        fs::write(&made, "half").unwrap();
        Err(Diagnosis::new(Code::Io, "It broke half-way."))
    }));
    executor.register_file_compensation("make", &made);
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert!(!made.exists());
}

#[test]
fn test_compensation_coverage_validation() {
    let warnings = RefCell::new(Vec::new());
    let mut executor = WorkflowExecutor::new();
    executor.on_warning(|warning| warnings.borrow_mut().push(warning.to_owned()));
    assert_eq!(executor.validate_compensation_coverage().percentage, 100);
    executor.add_task(Task::idle("lint").undone_by(skip()));
    executor.add_task(Task::idle("build"));
    let named = ExecutableCompensation::new(CompensationAction::undo("delete the tag"));
    executor.add_task(Task::idle("tag").undone_by(named));
    executor.add_task(Task::idle("deploy"));
    executor.register_compensation("deploy", Log::default().undo("it"));

    let report = executor.validate_compensation_coverage();
    assert_eq!((report.total, report.percentage), (4, 50));
    // A function that is announced and not there undoes nothing.
    assert_eq!(report.undeclared, ["build", "tag"]);
    assert_eq!(report.steps[3], ("deploy".to_owned(), EffectCoverage::Compensated));
    let said = warnings.take();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("50 %") && said[0].contains("build, tag"), "{said:?}");

    executor.register_compensation("build", ToolCompensation::skip("what it makes is ignored"));
    executor.register_compensation("tag", CompensationAction::retry("tags are cheap"));
    assert!(executor.validate_compensation_coverage().is_complete());
    assert!(executor.run().unwrap().coverage.is_complete());
    assert!(warnings.take().is_empty());
}

#[test]
fn test_task_compensation_integration() {
    struct Documented;
    impl WorkflowTask for Documented {
        fn id(&self) -> TaskId {
            "documented".into()
        }
        fn execute(&self, _: &TaskContext) -> Result<TaskResult, TaskError> {
            Ok(TaskResult::Skipped { reason: "nothing changed".to_owned() })
        }
        fn compensation(&self) -> Option<CompensationAction> {
            Some(CompensationAction::skip("it only reads"))
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let undo = ExecutableCompensation::with_undo("drop the database", move |context| {
        noted.lock().unwrap().push(context.outputs.get("DATABASE").cloned());
        Ok(TaskResult::Success)
    });
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Documented);
    let create = Task::idle("create").undone_by(undo);
    executor.add_task(Task { outputs: vec![("DATABASE", "feature_42")], ..create });
    executor.add_task(Task::failing("migrate").needs(&["create"]));

    let report = executor.run().unwrap();
    let rollback = report.rollback.unwrap();
    assert_eq!(rollback.rolled_back().map(TaskId::as_str).collect::<Vec<_>>(), ["create"]);
    assert_eq!(rollback.skipped().map(TaskId::as_str).collect::<Vec<_>>(), ["documented"]);
    assert_eq!(rollback.results[0].outcome, RollbackOutcome::Undeclared);
    assert_eq!(*seen.lock().unwrap(), [Some(OsString::from("feature_42"))]);
    let reason = "nothing changed".to_owned();
    assert_eq!(report.tasks[0].outcome, TaskOutcome::Finished(TaskResult::Skipped { reason }));
}

#[test]
fn tasks_run_after_what_they_need() {
    let log = Log::default();
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Task::noted("d", &log).needs(&["b", "c"]));
    executor.add_task(Task::noted("b", &log).needs(&["a", "a"]));
    executor.add_task(Task::noted("c", &log));
    executor.add_task(Task::noted("a", &log));
    assert_eq!(executor.run().unwrap().status, Status::Completed);
    assert_eq!(log.take(), ["c", "a", "b", "d"]);
    assert_eq!(executor.run().unwrap_err().code(), Code::Conflict);
    // Tasks that succeeded can be rolled back, too, and run again.
    assert!(executor.rollback().unwrap().is_success());
    assert_eq!(log.take(), ["undo d", "undo b", "undo a", "undo c"]);
    assert_eq!(executor.rollback().unwrap_err().code(), Code::Conflict);
    assert_eq!(executor.run().unwrap().status, Status::Completed);
    assert_eq!(WorkflowExecutor::new().run().unwrap().status, Status::Completed);
}

#[test]
fn tasks_that_cannot_be_ordered_are_refused() {
    let log = Log::default();
    let refused = |tasks: &[(&'static str, &'static [&'static str])]| {
        let mut executor = WorkflowExecutor::new();
        for (id, needs) in tasks {
            executor.add_task(Task::noted(id, &log).needs(needs));
        }
        let error = executor.run().unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        error.message().to_owned()
    };
    assert!(refused(&[("z", &[]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"])]).ends_with("a, b, c."));
    assert!(refused(&[("a", &["a"])]).ends_with("circle: a."));
    assert!(refused(&[("a", &[]), ("a", &[])]).contains("Two tasks"));
    assert!(refused(&[("a", &["x"])]).contains("no such task"));
    refused(&[("", &[])]);
    refused(&[("a\nb", &[])]);
    assert!(log.take().is_empty());
}

#[test]
fn a_panic_is_a_failure_and_is_undone() {
    let log = Log::default();
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Task::new("panics", |_| panic!("no way")));
    executor.register_compensation("panics", log.undo("panics"));
    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RolledBack);
    assert!(report.failure.unwrap().1.message().contains("no way"));
    assert_eq!(log.take(), ["undo panics"]);
}

/// An undo that fails as long as `broken`.
fn fragile(log: &Log, broken: &Arc<Mutex<bool>>) -> ToolCompensation {
    let (log, broken) = (log.clone(), Arc::clone(broken));
    ToolCompensation::new("undo it, perhaps", move |_| {
        log.say("try");
        if *broken.lock().unwrap() {
            return Err(Diagnosis::new(Code::Io, "The server does not answer."));
        }
        Ok(TaskResult::Success)
    })
}

#[test]
fn a_rollback_that_stopped_goes_on_where_it_was() {
    let (log, broken) = (Log::default(), Arc::new(Mutex::new(true)));
    let mut executor = WorkflowExecutor::new();
    executor.add_task(Task::noted("a", &log));
    executor.add_task(Task::noted("b", &log));
    executor.add_task(Task::noted("c", &log));
    executor.add_task(Task::failing("d"));
    executor.register_compensation("b", fragile(&log, &broken));

    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RollingBack);
    let rollback = report.rollback.unwrap();
    assert_eq!(rollback.failed().map(TaskId::as_str).collect::<Vec<_>>(), ["b"]);
    assert_eq!(rollback.pending().map(TaskId::as_str).collect::<Vec<_>>(), ["a"]);
    assert_eq!(log.take(), ["a", "b", "c", "undo c", "try"]);
    assert_eq!(executor.run().unwrap_err().code(), Code::Conflict);

    *broken.lock().unwrap() = false;
    assert!(executor.rollback().unwrap().is_success());
    assert_eq!(log.take(), ["try", "undo a"]);
}
