//! The run that an executor leaves in the ledger.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ic_base::{Code, Context, FixedClock, RollbackId, SeededIds, Timestamp};
use ic_dispatch::DispatchStatus;
use ic_dispatch::dispatch::{self, Dispatch, DispatchFilter};
use ic_effects::compensation::{Compensation, CompensationState, StepEnd};
use ic_kernel::Kernel;
use ic_kernel::config::Config;
use ic_ledger::{Ledger, Lookup, OpenOptions};
use ic_phase::run_reference::ProjectScope;
use ic_phase::{Run, RunStatus};
use ic_undo::compensation as effects;
use ic_worktree::CaptureSettings;

use super::super::{TaskId, TaskResult, ToolCompensation, WorkflowExecutor};
use super::{Log, Task, fragile, skip};
use crate::Status;

/// A project with a ledger on disk.
pub(super) struct LedgerPlace {
    _directory: tempfile::TempDir,
    pub(super) kernel: Kernel,
    pub(super) settings: CaptureSettings,
}

impl LedgerPlace {
    pub(super) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let directory = fs::canonicalize(temporary.path()).unwrap();
        let context =
            Context { clock: Box::new(FixedClock(Timestamp(1_700_000_000_000))), ids: Box::new(SeededIds::new(7)) };
        let lookup = Lookup { db: None, env_db: None, directory: &directory };
        let place = ic_ledger::initial_place(&lookup, None).unwrap();
        let (ledger, _): (Ledger, bool) =
            ic_ledger::create(&place, false, &directory, OpenOptions::default(), &context).unwrap();
        let project = ProjectScope { directory: directory.clone(), root: directory };
        let kernel = Kernel::new(ledger, context, project);
        let patience = Duration::from_secs(5);
        let settings = CaptureSettings::of(Config::default(), &kernel.project.root, kernel.store(), None, patience);
        Self { _directory: temporary, kernel, settings }
    }

    pub(super) fn root(&self) -> &Path {
        &self.kernel.project.root
    }

    pub(super) fn executor(&self) -> WorkflowExecutor<'_> {
        WorkflowExecutor::on_ledger(&self.kernel, &self.settings, "nightly").unwrap()
    }

    pub(super) fn the_run(&self) -> Run {
        self.kernel.read(|snapshot| self.kernel.run(snapshot, "@")).unwrap()
    }

    /// The dispatches of a run, oldest first.
    pub(super) fn dispatches(&self, run: &Run) -> Vec<Dispatch> {
        let filter = DispatchFilter { run_id: Some(&run.id), phase: None, status: None, limit: 100 };
        let mut all = self.kernel.read(|snapshot| dispatch::list(snapshot, &filter)).unwrap();
        all.sort_by_key(|dispatch| dispatch.seq);
        all
    }

    pub(super) fn rows(&self, run: &Run) -> Vec<Compensation> {
        effects::list(&self.kernel, run.id.as_str()).unwrap()
    }

    /// The types of the run's events, with their reasons.
    fn events(&self, run: &Run) -> Vec<(String, Option<String>)> {
        let mut all = Vec::new();
        self.kernel
            .read(|snapshot| {
                ic_ledger::events::each_of_run(snapshot, &run.id, |event| {
                    all.push((event.event_type, event.reason));
                    Ok(std::ops::ControlFlow::Continue(()))
                })
            })
            .unwrap();
        all
    }
}

#[test]
fn a_run_of_the_ledger_tells_the_story() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let mut executor = place.executor();
    let id = executor.run_id().unwrap().clone();
    executor.add_task(Task::noted("build", &log));
    executor.add_task(
        Task::new("lint", |context| {
            assert_eq!(context.run_id.as_ref(), Some(&place.the_run().id));
            assert_eq!(context.working_directory, place.root());
            let [build, lint] = &place.dispatches(&place.the_run())[..] else { panic!("two dispatches") };
            assert_eq!((build.status, lint.status), (DispatchStatus::Completed, DispatchStatus::Running));
            assert_eq!(context.idempotency_key, lint.id.as_str());
            Ok(TaskResult::Skipped { reason: "no sources".to_owned() })
        })
        .undone_by(skip()),
    );
    let report = executor.run().unwrap();
    assert_eq!((report.status, report.run_id.as_ref()), (Status::Completed, Some(&id)));

    let run = place.kernel.read(|snapshot| ic_phase::run::get(snapshot, &id)).unwrap();
    assert_eq!((run.status, run.phase.as_str(), run.goal.as_str()), (RunStatus::Completed, "done", "nightly"));
    let dispatches = place.dispatches(&run);
    let names: Vec<_> = dispatches.iter().map(|d| d.work.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["build", "lint"]);
    let ids: Vec<_> = report.tasks.into_iter().map(|task| task.dispatch_id.unwrap()).collect();
    assert_eq!(ids, [dispatches[0].id.clone(), dispatches[1].id.clone()]);
    assert_eq!(dispatches[0].summary.as_deref(), Some("undo, in its process only: undo build"));
    assert_eq!(dispatches[1].summary.as_deref(), Some("skipped: no sources"));
    // A function is no row; that nothing needs to be undone is.
    let rows = place.rows(&run);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].step.as_str(), rows[0].state), ("lint", CompensationState::Armed));
    assert_eq!(rows[0].step_ended, Some(StepEnd::Succeeded));
    let (_, coverage) = effects::coverage(&place.kernel, run.id.as_str()).unwrap();
    assert_eq!(coverage.undeclared, ["build"]);

    // Tasks that succeeded can be rolled back, too.
    assert!(executor.rollback().unwrap().is_success());
    assert_eq!(log.take(), ["build", "undo build"]);
    let run = place.the_run();
    assert_eq!((run.status, run.phase.as_str(), run.epoch), (RunStatus::Active, "executing", 1));
}

#[test]
fn a_failure_takes_the_run_back() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let (old, new) = (place.root().join("old"), place.root().join("new"));
    fs::write(&old, "precious").unwrap();
    let mut executor = place.executor();
    executor.add_task(Task::noted("first", &log));
    executor.add_task(Task::new("write", |_| {
        assert_eq!(place.rows(&place.the_run()).len(), 2, "armed before it is executed");
        fs::write(&old, "overwritten").unwrap();
        fs::write(&new, "generated").unwrap();
        Ok(TaskResult::Success)
    }));
    executor.add_task(Task::noted("last", &log));
    executor.add_task(Task::failing("fails"));
    executor.register_file_compensation("write", &old);
    executor.register_file_compensation("write", &new);
    let (seen, files) = (log.clone(), [old.clone(), new.clone()]);
    // It is undone before the files are restored.
    executor.register_compensation(
        "last",
        ToolCompensation::new("undo last", move |_| {
            seen.say(format!("undo last, files {}", fs::read_to_string(&files[0]).unwrap()));
            Ok(TaskResult::Success)
        }),
    );
    let (seen, files) = (log.clone(), [old.clone(), new.clone()]);
    executor.register_compensation(
        "first",
        ToolCompensation::new("undo first", move |_| {
            seen.say(format!("undo first, files {}, {}", fs::read_to_string(&files[0]).unwrap(), files[1].exists()));
            Ok(TaskResult::Success)
        }),
    );
    assert_eq!(executor.validate_compensation_coverage().undeclared, ["fails"]);

    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RolledBack);
    assert_eq!(log.take(), ["first", "last", "undo last, files overwritten", "undo first, files precious, false"]);
    let undone = report.rollback.unwrap();
    assert_eq!(undone.rolled_back().map(TaskId::as_str).collect::<Vec<_>>(), ["last", "write", "first"]);

    check_taken_back(&place, &report.rollback_id.unwrap());
    // It can be run again, in its new epoch.
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert_eq!(place.the_run().epoch, 2);
}

/// The ledger after [`a_failure_takes_the_run_back`].
fn check_taken_back(place: &LedgerPlace, rollback_id: &RollbackId) {
    let run = place.the_run();
    assert_eq!((run.status, run.phase.as_str(), run.epoch), (RunStatus::Active, "executing", 1));
    let dispatches = place.dispatches(&run);
    assert_eq!(dispatches.len(), 4);
    assert!(dispatches.iter().all(|dispatch| dispatch.rolled_back_by.as_ref() == Some(rollback_id)));
    assert_eq!(dispatches[3].status, DispatchStatus::Failed);
    assert_eq!(dispatches[3].error.as_deref(), Some("It does not work."));
    assert_eq!(dispatches[1].summary, None, "what is a row needs no mention");
    assert!(place.rows(&run).iter().all(|row| row.state == CompensationState::Done && row.rolled_back_by.is_some()));
    let remembered = place.kernel.read(|snapshot| ic_kernel::journal::table::of_run(snapshot, &run.id)).unwrap();
    assert_eq!(
        remembered[0].reason.as_deref(),
        Some("task fails failed: It does not work.; undone: last, write, first")
    );
    let report = place.kernel.read(|snapshot| ic_ledger::events::verify(snapshot, None)).unwrap();
    assert_eq!(report.first_bad, None);
}

#[test]
fn an_undo_that_fails_leaves_the_run_closed_until_it_succeeds() {
    let place = LedgerPlace::new();
    let (log, broken) = (Log::default(), Arc::new(Mutex::new(true)));
    let mut executor = place.executor();
    executor.add_task(Task::noted("a", &log));
    executor.add_task(Task::failing("b"));
    executor.register_compensation("a", fragile(&log, &broken));
    assert_eq!(executor.run().unwrap().status, Status::RollingBack);
    let run = place.the_run();
    assert_eq!(run.status, RunStatus::RollingBack);
    let (_, reason) = place.events(&run).into_iter().rfind(|(kind, _)| kind == "rollback_stopped").unwrap();
    let reason = reason.unwrap();
    assert!(reason.ends_with("could not be undone: a (The server does not answer.)"), "{reason}");
    // No other process compensates the run in the meantime.
    let taken = effects::Saga::take(&place.kernel, &place.settings, &run.id);
    assert_eq!(taken.err().unwrap().code(), Code::WorkRunning);

    *broken.lock().unwrap() = false;
    assert!(executor.rollback().unwrap().is_success());
    let run = place.the_run();
    assert_eq!((run.status, run.epoch), (RunStatus::Active, 1));
    let remembered = place.kernel.read(|snapshot| ic_kernel::journal::table::of_run(snapshot, &run.id)).unwrap();
    assert!(remembered[0].reason.as_deref().unwrap().starts_with("task b failed"), "the cause is remembered");
}
