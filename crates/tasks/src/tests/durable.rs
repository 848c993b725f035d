//! Compensations that are rows.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use ic_base::{Code, Diagnosis};
use ic_dispatch::DispatchStatus;
use ic_effects::action::{EffectAction, How};
use ic_effects::compensation::{Compensation, CompensationState};
use ic_effects::order::FailurePolicy;
use ic_phase::RunStatus;
use ic_undo::RollbackTarget;
use ic_undo::compensation as effects;

use super::super::{Declared, TaskContext, TaskId, TaskResult, ToolCompensation};
use super::ledger::LedgerPlace;
use super::{Log, Task};
use crate::Status;

struct Silent;

impl effects::Sink for Silent {
    fn begins(&mut self, _: &Compensation) {}
    fn ended(&mut self, _: &Compensation) {}
}

fn exec(argv: &[&str]) -> Declared {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let how = How { directory: None, environment: BTreeMap::new(), timeout_ms: Some(5000), retries: 0, backoff_ms: 0 };
    Declared::Action(EffectAction::Exec { argv, how })
}

#[test]
fn a_durable_compensation_is_run_by_whoever_comes_after() {
    let place = LedgerPlace::new();
    let mut executor = place.executor();
    let create = Task::idle("create");
    executor.add_task(Task { outputs: vec![("NAME", "db")], ..create });
    executor.register_durable_compensation("create", "drop it", exec(&["sh", "-c", "echo $NAME > dropped"])).unwrap();
    assert_eq!(executor.run().unwrap().status, Status::Completed);
    let run = place.kernel.read(|s| ic_phase::run::get(s, executor.run_id().unwrap())).unwrap();
    drop(executor);
    let rows = place.rows(&run);
    assert_eq!((rows[0].description.as_deref(), rows[0].state), (Some("drop it"), CompensationState::Armed));

    let saga = effects::Saga::take(&place.kernel, &place.settings, &run.id).unwrap();
    let plan = place.kernel.read(|s| effects::plan(s, &run, &effects::EffectScope::All, false)).unwrap();
    saga.undo(&plan, FailurePolicy::Stop, None, &mut Silent).unwrap();
    assert_eq!(fs::read_to_string(place.root().join("dropped")).unwrap(), "db\n");
}

#[test]
fn a_durable_undo_that_fails_stops_the_rollback() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let mut executor = place.executor();
    executor.add_task(Task::noted("a", &log));
    executor.add_task(Task::idle("b"));
    executor.add_task(Task::failing("c"));
    executor.register_durable_compensation("b", "undo b", exec(&["test", "-e", "repaired"])).unwrap();
    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RollingBack);
    let rollback = report.rollback.unwrap();
    assert_eq!(rollback.failed().map(TaskId::as_str).collect::<Vec<_>>(), ["b"]);
    assert_eq!(rollback.pending().map(TaskId::as_str).collect::<Vec<_>>(), ["a"]);
    assert_eq!(place.rows(&place.the_run())[0].state, CompensationState::Failed);

    fs::write(place.root().join("repaired"), "").unwrap();
    let rollback = executor.rollback().unwrap();
    assert_eq!(rollback.rolled_back().map(TaskId::as_str).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(log.take(), ["a", "undo a"]);
    assert_eq!(place.the_run().status, RunStatus::Active);
}

#[test]
fn nothing_before_a_pivot_is_undone() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let mut executor = place.executor();
    executor.add_task(Task::noted("before", &log));
    executor.add_task(Task::idle("announce"));
    executor.add_task(Task::noted("after", &log));
    executor.add_task(Task::failing("fails"));
    let pivot = Declared::Action(EffectAction::Pivot { reason: None });
    executor.register_durable_compensation("announce", "mails are out", pivot).unwrap();
    let report = executor.run().unwrap();
    assert_eq!(report.status, Status::RollingBack);
    assert_eq!(log.take(), ["before", "after", "undo after"]);
    let rollback = report.rollback.unwrap();
    assert_eq!(rollback.failed().map(TaskId::as_str).collect::<Vec<_>>(), ["announce"]);
    assert_eq!(rollback.pending().map(TaskId::as_str).collect::<Vec<_>>(), ["before"]);
}

#[test]
fn what_cannot_be_registered_is_not_executed() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let mut executor = place.executor();
    executor.add_task(Task::noted("a", &log));
    executor.add_task(Task::noted("b", &log));
    fs::create_dir(place.root().join("directory")).unwrap();
    executor.register_compensation("b", log.undo("b"));
    executor.register_file_compensation("b", place.root().join("directory"));
    let report = executor.run().unwrap();
    assert_eq!((report.status, report.failure.unwrap().0), (Status::RolledBack, "b".into()));
    assert_eq!(log.take(), ["a", "undo a"]);
    assert_eq!(place.dispatches(&place.the_run())[1].status, DispatchStatus::Failed);
}

#[test]
fn a_file_outside_of_the_project_is_kept_in_memory() {
    let (place, elsewhere) = (LedgerPlace::new(), tempfile::tempdir().unwrap());
    let (made, warned) = (elsewhere.path().join("made"), Cell::new(0));
    let mut executor = place.executor();
    executor.on_warning(|_| warned.set(warned.get() + 1));
    executor.add_task(Task::new("make", |_| {
        fs::write(&made, "half").unwrap();
        Err(Diagnosis::new(Code::Io, "It broke half-way."))
    }));
    executor.register_file_compensation("make", &made);
    assert_eq!(warned.get(), 1);
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert!(!made.exists());
    assert!(place.rows(&place.the_run()).is_empty());
    let error = place.dispatches(&place.the_run())[0].error.clone().unwrap();
    assert!(error.starts_with("It broke half-way.; undo, in its process only: put "), "{error}");
}

#[test]
fn work_that_somebody_took_back_meanwhile_is_undone() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let mut executor = place.executor();
    executor.add_task(Task::noted("a", &log));
    executor.add_task(Task::new("b", |context| {
        let request = ic_undo::RollbackRequest {
            run: context.run_id.as_ref().unwrap().as_str(),
            to: RollbackTarget::Phase { name: "executing", include_target: true },
            reason: Some("enough"),
            dry_run: false,
            expect_plan: None,
        };
        ic_undo::rollback(&place.kernel, &request).unwrap();
        Ok(TaskResult::Success)
    }));
    executor.add_task(Task::noted("c", &log));
    let report = executor.run().unwrap();
    assert_eq!(report.failure.unwrap().1.code(), Code::StaleDispatch);
    assert_eq!(log.take(), ["a", "undo a"]);
    assert_eq!(report.status, Status::RolledBack);
    assert_eq!(place.the_run().status, RunStatus::Active);
}

#[test]
fn a_function_that_is_registered_later_replaces_the_rows() {
    let place = LedgerPlace::new();
    let log = Log::default();
    let file = place.root().join("file");
    let mut executor = place.executor();
    executor.add_task(Task::new("write", |_| {
        fs::write(&file, "half").unwrap();
        Err(Diagnosis::new(Code::Io, "It broke half-way."))
    }));
    executor.register_file_compensation("write", &file);
    executor.register_compensation("write", log.undo("write"));
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert!(file.exists() && place.rows(&place.the_run()).is_empty());
    assert_eq!(log.take(), ["undo write"]);

    // What is registered after it is run as well, and first.
    executor.register_durable_compensation("write", "move it", exec(&["mv", "file", "moved"])).unwrap();
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert!(!file.exists() && place.root().join("moved").exists());
    assert_eq!(log.take(), ["undo write"]);
}

#[test]
fn what_somebody_else_armed_is_undone_with_the_tasks() {
    let place = LedgerPlace::new();
    let arm = |step: &str| {
        let declared = exec(&["sh", "-c", "echo $IC_STEP >> undone"]);
        let id = place.the_run().id;
        let declaration = effects::Declaration { run: id.as_str(), step, declared, description: None };
        effects::add(&place.kernel, &place.settings, &declaration).unwrap();
    };
    let mut executor = place.executor();
    arm("before");
    executor.add_task(Task::new("task", |_| {
        arm("within");
        Err(Diagnosis::new(Code::Io, "It broke half-way."))
    }));
    assert_eq!(executor.run().unwrap().status, Status::RolledBack);
    assert_eq!(fs::read_to_string(place.root().join("undone")).unwrap(), "within\nbefore\n");
}

#[test]
fn a_run_whose_undo_was_lost_is_opened_again_by_hand() {
    let place = LedgerPlace::new();
    let mut executor = place.executor();
    executor.add_task(Task::idle("a"));
    executor.add_task(Task::failing("b"));
    executor.register_durable_compensation("a", "undo a", exec(&["touch", "undone"])).unwrap();
    let lost = |_: &TaskContext| Err(Diagnosis::new(Code::Io, "The server does not answer."));
    executor.register_compensation("b", ToolCompensation::new("undo b", lost));
    assert_eq!(executor.run().unwrap().status, Status::RollingBack);
    let run = place.the_run();
    assert_eq!(run.status, RunStatus::RollingBack);
    drop(executor);

    let request = effects::CompensationRequest {
        run: run.id.as_str(),
        scope: effects::EffectScope::All,
        policy: FailurePolicy::Stop,
        force: false,
        skip: (&[], ""),
        dry_run: false,
        interrupted: Arc::default(),
    };
    let report = effects::run(&place.kernel, &place.settings, &request, &mut Silent).unwrap();
    assert_eq!(report.status, effects::CompensationStatus::Done);
    assert!(place.root().join("undone").exists());
    assert_eq!(place.the_run().status, RunStatus::Active);
}
