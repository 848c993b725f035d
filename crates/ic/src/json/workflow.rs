//! Workflows.

use std::path::PathBuf;

use ic_saga::coverage::CompensationReport;
use ic_workflow::definition::Run;
use ic_workflow::{Definition, Preview, Report, StepReport, TakenBack, Would};
use ic_worktree::Warning;
use serde::Serialize;

use super::checkpoint::SkippedJson;
use super::compensation::UndoneStepJson;
use super::rollback::{DataJson, RollbackJson, RollbackShowJson};
use super::run::WarningJson;
use super::{PathJson, exact};

/// What became of a workflow.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WorkflowJson {
    run_id: String,
    workflow: String,
    /// running, completed, failed, `rolled_back`, `rolling_back` or stopped.
    #[cfg_attr(test, schemars(extend("enum" = ic_workflow::Status::WORDS)))]
    status: &'static str,
    steps: Vec<StepJson>,
    failed_step: Option<String>,
    error: Option<String>,
    /// How this call rolled it back; null if it did not.
    rollback: Option<TakenBackJson>,
    /// The command that resumes; null when nothing is left to do.
    resume: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningJson>,
}

/// A step of a workflow.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StepJson {
    id: String,
    phase: String,
    /// pending, running, succeeded, failed, interrupted, skipped, or `rolled_back`: it had succeeded.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::and(&ic_workflow::table::StepState::WORDS, "rolled_back"))))]
    status: &'static str,
    dispatch_id: Option<String>,
    /// The tree as it was before the step.
    checkpoint_id: Option<String>,
    compensation_id: Option<String>,
    attempts: i64,
    exit_code: Option<i64>,
    error: Option<String>,
    duration_ms: Option<i64>,
    /// The file that holds what the step said.
    log: Option<String>,
    /// The file's exact bytes in base64, when they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_b64: Option<String>,
}

/// How a workflow was rolled back.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TakenBackJson {
    strategy: &'static str,
    /// In the order of their undo.
    compensations: Vec<UndoneStepJson>,
    /// Compensations that are not undone.
    compensations_left: Vec<String>,
    /// What was restored; null if the call did not get that far.
    restored: Option<RestoredJson>,
    /// Rows of the application's tables; null if they did not go.
    data: Option<DataJson>,
    rollback_id: Option<String>,
    to_phase: String,
    /// The steps before which the workflow is then, and that resuming begins with; empty: before the first one, or where it was.
    before_steps: Vec<String>,
    error: Option<String>,
    /// What can be done about the error; null where there is none, or no way is known.
    hint: Option<String>,
}

/// What was restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RestoredJson {
    checkpoint_id: String,
    /// How many changes of files that took.
    change_count: usize,
    /// Whether git's state was restored.
    git_restored: bool,
    failed: Vec<NotRestoredJson>,
    /// Paths that are left alone, and paths that cannot be compared with the checkpoint.
    skipped: Vec<SkippedJson>,
    /// What the checkpoint's tree had at a path and a restore cannot restore.
    not_kept: Vec<SkippedJson>,
    /// What differs from the checkpoint after the restore; git's state is named `.git`.
    differs: Vec<SkippedJson>,
}

/// A path that could not be restored.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NotRestoredJson {
    #[serde(flatten)]
    path: PathJson,
    error: String,
}

/// What rolling a workflow back would do (`workflow rollback --dry-run`): the rollback of its run, and what is of workflows alone.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WorkflowRollbackPlanJson {
    workflow: String,
    /// full, partial, files-only or git-only; null where a rollback would be resumed.
    strategy: Option<&'static str>,
    /// The steps before which the workflow is then, and that resuming begins with; empty: before the first one.
    before_steps: Vec<String>,
    /// The plan; its fields are left out where a rollback would be resumed, whose plan is made.
    #[serde(flatten)]
    plan: Option<RollbackJson>,
    /// The rollback that was begun, and that would be resumed, as far as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes: Option<RollbackShowJson>,
}

impl From<&Preview> for WorkflowRollbackPlanJson {
    fn from(preview: &Preview) -> Self {
        let nothing = Self {
            workflow: preview.workflow.clone(),
            strategy: None,
            before_steps: vec![],
            plan: None,
            resumes: None,
        };
        match &preview.would {
            Would::Begin(plan) => Self {
                strategy: Some(plan.strategy.as_str()),
                before_steps: plan.before_steps.clone(),
                plan: Some(RollbackJson::from(&plan.whole)),
                ..nothing
            },
            Would::Resume(begun) => {
                Self { resumes: Some(RollbackShowJson::new(&begun.0, &begun.1, false)), ..nothing }
            }
        }
    }
}

impl WorkflowJson {
    pub(crate) fn new(report: &Report, warnings: &[Warning]) -> Self {
        Self {
            run_id: report.run_id.to_string(),
            workflow: report.workflow.clone(),
            status: report.status.as_str(),
            steps: report.steps.iter().map(StepJson::from).collect(),
            failed_step: report.failed_step.clone(),
            error: report.error.clone(),
            rollback: report.rollback.as_ref().map(TakenBackJson::from),
            resume: crate::render::workflow::resume(report),
            warnings: warnings.iter().map(WarningJson::from).collect(),
        }
    }
}

impl From<&StepReport> for StepJson {
    fn from(step: &StepReport) -> Self {
        let row = step.row.as_ref();
        let log = row.and_then(|row| row.log.as_deref());
        Self {
            id: step.id.clone(),
            phase: step.phase.clone(),
            status: step.shown(),
            dispatch_id: row.and_then(|row| row.dispatch_id.as_ref()).map(ToString::to_string),
            checkpoint_id: row.and_then(|row| row.checkpoint_id.as_ref()).map(ToString::to_string),
            compensation_id: row.and_then(|row| row.compensation_id.as_ref()).map(ToString::to_string),
            attempts: row.map_or(0, |row| row.attempts),
            exit_code: row.and_then(|row| row.exit_code),
            error: row.and_then(|row| row.error.clone()),
            duration_ms: row.and_then(|row| row.duration_ms),
            log: log.map(|log| log.to_string_lossy().into_owned()),
            log_b64: log.and_then(exact),
        }
    }
}

impl From<&TakenBack> for TakenBackJson {
    fn from(taken: &TakenBack) -> Self {
        Self {
            strategy: taken.strategy.as_str(),
            compensations: taken.compensations.iter().map(UndoneStepJson::from).collect(),
            compensations_left: taken.left.iter().map(ToString::to_string).collect(),
            restored: taken.restored.as_ref().map(|restored| RestoredJson {
                checkpoint_id: restored.checkpoint_id.to_string(),
                change_count: restored.changes,
                git_restored: restored.git,
                failed: restored
                    .failed
                    .iter()
                    .map(|(path, error)| NotRestoredJson {
                        path: path.as_path().into(),
                        error: error.clone(),
                    })
                    .collect(),
                skipped: because(restored.skipped.iter().chain(&restored.not_compared)),
                not_kept: because(restored.not_kept.iter()),
                differs: because(restored.differs.iter()),
            }),
            data: taken.rows.as_ref().map(DataJson::from),
            rollback_id: taken.rollback_id.as_ref().map(ToString::to_string),
            to_phase: taken.to_phase.clone(),
            before_steps: taken.before_steps.clone(),
            error: taken.error.clone(),
            hint: taken.hint.clone(),
        }
    }
}

fn because<'p>(pairs: impl Iterator<Item = &'p (PathBuf, String)>) -> Vec<SkippedJson> {
    let one = |(path, reason): &(PathBuf, String)| SkippedJson {
        path: path.as_path().into(),
        reason: reason.clone(),
    };
    pairs.map(one).collect()
}

/// The content of a workflow's file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WorkflowPlanJson {
    workflow: String,
    goal: String,
    /// The chain of its runs.
    phases: Vec<String>,
    /// In the order in which one after the other could run.
    steps: Vec<PlannedStepJson>,
    /// The share of steps that declare their undo, 0-100.
    percentage: u8,
    /// The steps that do not.
    undeclared: Vec<String>,
}

/// A step as its file has it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlannedStepJson {
    id: String,
    phase: String,
    needs: Vec<String>,
    /// The program and its arguments, or a line for `sh`.
    argv: Vec<String>,
    timeout_ms: Option<u64>,
    retries: u32,
    /// compensated, skip, pivot or undeclared.
    #[cfg_attr(test, schemars(extend("enum" = crate::json::words::coverages())))]
    coverage: &'static str,
}

impl WorkflowPlanJson {
    pub(crate) fn new(definition: &Definition, coverage: &CompensationReport) -> Self {
        let order = ic_workflow::graph::Plan::of(definition).order().to_vec();
        let steps =
            order.into_iter().filter_map(|at| Some((at, definition.steps.get(at)?))).map(|(at, step)| {
                PlannedStepJson {
                    id: step.id.clone(),
                    phase: step.phase.clone(),
                    needs: step.needs.iter().map(|need| definition.steps[*need].id.clone()).collect(),
                    argv: match &step.run {
                        Run::Script { text, shell } => shell.argv(text, true),
                        Run::Argv(argv) => argv.clone(),
                    },
                    timeout_ms: step.timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
                    retries: step.retries.max,
                    coverage: coverage.steps.get(at).map_or("undeclared", |step| step.1.as_str()),
                }
            });
        Self {
            workflow: definition.name.clone(),
            goal: definition.goal.clone(),
            phases: definition.phases.clone(),
            steps: steps.collect(),
            percentage: coverage.percentage,
            undeclared: coverage.undeclared.clone(),
        }
    }
}
