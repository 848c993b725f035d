//! Workflows, and the outcome of each.

use std::path::PathBuf;

use ic_base::CompensationId;
use ic_ops::status::HeldPhase;
use ic_workflow::table::WorkflowStepState;
use ic_workflow::{EffectUndone, Restored, StepReport, UndoneSteps, WorkflowRunReport, WorkflowStatus};
use ic_worktree::Warning;

use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled};
use crate::views::common_shapes::{SkippedJson, WarningJson};
use crate::views::compensation::compensation_report::UndoneStepJson;
use crate::views::rollback::data::DataJson;
use crate::views::workflow::plan::again_at;
use crate::views::{self, PathJson, exact};

pub(crate) mod plan;

shape! {
    /// The outcome of a workflow, so far.
    pub(crate) struct WorkflowJson from (report: &WorkflowRunReport, warnings: &[Warning]) {
        run_id: String = report.run_id.to_string(),
        workflow: String = report.workflow.clone(),
        /// running, completed, failed, `rolled_back`, `rolled_back_in_part` (something of it stays), `rolling_back` or stopped.
        status: &'static str as ic_workflow::WorkflowStatus = report.status.as_str(),
        steps: Vec<StepJson> = report.steps.iter().map(StepJson::from).collect(),
        failed_step: Option<String> = report.failed_step.clone(),
        error: Option<String> = report.error.clone(),
        /// The rollback that this call made; null if it made none.
        rollback: Option<TakenBackJson> = report.rollback.as_ref().map(TakenBackJson::from),
        /// The reason why the run waits before the phase of the next step; left out if it does not wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_for: Option<WaitsForJson> = report.waits_for.as_ref().map(WaitsForJson::from),
        /// The command that resumes; null if nothing is left to do. If the workflow waits, the command of `waits_for` comes first.
        resume: Option<String> = resume(report),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = warnings.iter().map(WarningJson::from).collect(),
    }

    /// The gate or the pause that a workflow waits for.
    struct WaitsForJson from held: &HeldPhase {
        /// The code of the reason: `gate_blocked` or `paused`.
        #[cfg_attr(test, schemars(extend("enum" = [ic_base::Code::GateBlocked, ic_base::Code::Paused].map(ic_base::Code::as_str))))]
        code: &'static str = held.code.as_str(),
        message: String = held.message.clone(),
        /// The command that removes it, or the first of several.
        command: String = held.command.clone(),
    }

    /// A step of a workflow.
    struct StepJson from step: &StepReport where
        row = step.row.as_ref();
        log = row.and_then(|row| row.log.as_deref());
    {
        id: String = step.id.clone(),
        phase: String = step.phase.clone(),
        /// pending, running, succeeded, failed, interrupted, skipped, or `rolled_back`: it had succeeded.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::and(&ic_workflow::table::WorkflowStepState::WORDS, "rolled_back"))))]
        status: &'static str = step.shown(),
        /// Whether a finished rollback went back to before it, and it has not begun again since. Its outside effect is undone, too, if the
        /// status is `rolled_back`.
        undone: bool = step.is_undone,
        /// Whether only its effect was undone since, while its work stays: resuming an unfinished workflow runs it again. Null: an undo of
        /// the effect was interrupted, with an unknown outcome; the step runs again, too.
        effect_undone: Option<bool> = match step.effect_undone {
            None => Some(false),
            Some(EffectUndone::Yes) => Some(true),
            Some(EffectUndone::Perhaps) => None,
        },
        dispatch_id: Option<String> = row.and_then(|row| row.dispatch_id.as_ref()).map(ToString::to_string),
        /// The checkpoint of the tree before the step.
        checkpoint_id: Option<String> =
            row.and_then(|row| row.checkpoint_id.as_ref()).map(ToString::to_string),
        compensation_id: Option<String> =
            row.and_then(|row| row.compensation_id.as_ref()).map(ToString::to_string),
        attempts: i64 = row.map_or(0, |row| row.attempts),
        exit_code: Option<i64> = row.and_then(|row| row.exit_code),
        error: Option<String> = row.and_then(|row| row.error.clone()),
        duration_ms: Option<i64> = row.and_then(|row| row.duration_ms),
        /// The file with the output of the step.
        log: Option<String> = log.map(|log| log.to_string_lossy().into_owned()),
        /// The file's exact bytes in base64, when they are not UTF-8.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_b64: Option<String> = log.and_then(exact),
    }

    /// How a workflow was rolled back.
    struct TakenBackJson from taken: &UndoneSteps {
        strategy: &'static str = taken.strategy.as_str(),
        /// The compensations, in the order in which they were undone.
        compensations: Vec<UndoneStepJson> = taken.compensations.iter().map(UndoneStepJson::from).collect(),
        /// The compensations that were not undone.
        compensations_left: Vec<String> = taken.left.iter().map(ToString::to_string).collect(),
        /// The restore of the tree; null if the call did not get that far.
        restored: Option<RestoredJson> = taken.restored.as_ref().map(RestoredJson::from),
        /// Rows of the application's tables; null if they were not rolled back.
        data: Option<DataJson> = taken.rows.as_ref().map(DataJson::from),
        rollback_id: Option<String> = taken.rollback_id.as_ref().map(ToString::to_string),
        to_phase: String = taken.to_phase.clone(),
        /// The steps that resuming begins with; empty: the first one, or where the workflow was.
        before_steps: Vec<String> = taken.before_steps.clone(),
        /// The undone steps whose files stay: no checkpoint has the tree before them, and they declare no undo.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        not_undone: Vec<String> = taken.not_undone.clone(),
        error: Option<String> = taken.error.clone(),
        /// How to resolve the error; null if there is none, or no way is known.
        hint: Option<String> = taken.hint.clone(),
    }

    /// The restore of a tree by the rollback of a workflow.
    struct RestoredJson from restored: &Restored {
        checkpoint_id: String = restored.checkpoint_id.to_string(),
        /// The number of changed files.
        change_count: usize = restored.changes,
        /// Whether git's state was restored.
        git_restored: bool = restored.git,
        failed: Vec<NotRestoredJson> = restored
            .failed
            .iter()
            .map(|(path, error)| NotRestoredJson {
                path: path.as_path().into(),
                error: error.clone(),
            })
            .collect(),
        /// Paths that are skipped, or that cannot be compared with the checkpoint.
        skipped: Vec<SkippedJson> = because(restored.skipped.iter().chain(&restored.not_compared)),
        /// What the checkpoint had at a path and a restore cannot make.
        not_kept: Vec<SkippedJson> = because(restored.not_kept.iter()),
        /// What differs from the checkpoint after the restore; git's state is named `.git`.
        differs: Vec<SkippedJson> = because(restored.differs.iter()),
        /// Other work trees that were made or removed since, or that the checkpoint has files of; they are not changed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        work_trees: Vec<SkippedJson> = because(restored.work_trees.iter()),
        /// Repositories whose files are restored and whose history is not, with the command that moves it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        repositories: Vec<SkippedJson> = because(restored.repositories.iter()),
    }

    /// A path that could not be restored.
    struct NotRestoredJson from (path, error): &(PathBuf, String) {
        #[serde(flatten)]
        path: PathJson = path.as_path().into(),
        error: String = error.clone(),
    }
}

fn because<'p>(pairs: impl Iterator<Item = &'p (PathBuf, String)>) -> Vec<SkippedJson> {
    let one = |(path, reason): &(PathBuf, String)| SkippedJson { path: path.as_path().into(), reason: reason.clone() };
    pairs.map(one).collect()
}

/// A duration for people.
pub(crate) fn took(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// The progress of a workflow, with the states of its steps.
pub(crate) fn state(report: &WorkflowRunReport) -> String {
    format!("{}\n{}\n", steps(report), verdict(report))
}

/// The outcome of a workflow, and the command that resumes it.
pub(crate) fn report(report: &WorkflowRunReport) -> String {
    let mut text = steps(report);
    let failed = report.steps.iter().find(|step| Some(&step.id) == report.failed_step.as_ref());
    if let Some(log) = failed.and_then(|step| step.row.as_ref()).and_then(|row| row.log.as_ref()) {
        text += &format!("\nlog: {}\n", path_text(log));
    }
    if let Some(taken) = &report.rollback {
        text.push('\n');
        text += &taken_back(report, taken);
    }
    text += &format!("\n{}\n", verdict(report));
    if let Some(held) = &report.waits_for {
        text += &format!("waits: {}\n", plain(&held.message));
        text += &format!("{}\n", styled(style::DIM, &format!("first: {}", held.command)));
    }
    if let Some(command) = resume(report) {
        let when = match report.status {
            WorkflowStatus::RolledBack | WorkflowStatus::RolledBackInPart => "to run it again",
            _ => "to resume",
        };
        text += &format!("{}\n", styled(style::DIM, &format!("{when}: {command}")));
    }
    text
}

pub(crate) fn steps(report: &WorkflowRunReport) -> String {
    let mut table = TextTable::new(&["STEP", "PHASE", "STATE", "TOOK", "ABOUT"]);
    for step in &report.steps {
        let row = step.row.as_ref();
        let state_style = match step.state {
            _ if step.is_rolled_back || step.is_undone => style::DIM,
            WorkflowStepState::Succeeded => style::GOOD,
            WorkflowStepState::Failed | WorkflowStepState::Interrupted => style::BAD,
            WorkflowStepState::Running => style::WARN,
            WorkflowStepState::Pending | WorkflowStepState::Skipped => style::DIM,
        };
        let error = row.and_then(|row| row.error.as_deref()).unwrap_or_default();
        // The state of a step is that of its effect; that its work was undone with the tree is said here.
        let about = match (step.is_undone && !step.is_rolled_back, step.is_effect_left) {
            (true, true) => "undone; its effect outside is left".to_owned(),
            (true, false) if error.is_empty() => "undone".to_owned(),
            (true, false) => format!("undone; {error}"),
            (false, _) if step.effect_undone == Some(EffectUndone::Yes) => "its effect is undone".to_owned(),
            (false, _) if step.effect_undone.is_some() => {
                "its effect may be undone: its undo was interrupted".to_owned()
            }
            (false, _) => error.to_owned(),
        };
        table.row(vec![
            Cell::new(style::STRONG, &step.id),
            step.phase.as_str().into(),
            Cell::new(state_style, step.shown()),
            row.and_then(|row| row.duration_ms).map(took).unwrap_or_default().into(),
            Cell::new(style::DIM, &about),
        ]);
    }
    table.render("No steps.")
}

fn taken_back(report: &WorkflowRunReport, taken: &UndoneSteps) -> String {
    let mut table = TextTable::headless();
    taken.compensations.iter().for_each(|one| table.row(views::compensation::compensation_report::result(one)));
    // One that was tried is in the table already.
    let is_tried = |id: &CompensationId| taken.compensations.iter().any(|one| one.id == *id);
    for id in taken.left.iter().filter(|id| !is_tried(id)) {
        let of = |step: &&StepReport| step.row.as_ref().and_then(|row| row.compensation_id.as_ref()) == Some(id);
        let step = report.steps.iter().find(of).map_or(id.short(), |step| step.id.as_str());
        table.row(vec!["".into(), Cell::new(style::DIM, "left   "), Cell::new(style::STRONG, step)]);
    }
    let is_empty = taken.compensations.is_empty() && taken.left.is_empty();
    let mut text = if is_empty { String::new() } else { table.render("") };
    if let Some(restored) = &taken.restored {
        let checkpoint = restored.checkpoint_id.short();
        text += &match (restored.changes, restored.git) {
            (0, false) => format!("the tree was as in checkpoint {checkpoint} already\n"),
            (0, true) => format!("restored git's state from checkpoint {checkpoint}\n"),
            (changes, false) => format!("restored checkpoint {checkpoint}: {}\n", counted(changes, "change")),
            (changes, true) => {
                format!("restored checkpoint {checkpoint}: {}, and git's state\n", counted(changes, "change"))
            }
        };
        for (word, pairs) in [
            ("not restored:", &restored.failed),
            ("left alone:", &restored.skipped),
            ("not compared:", &restored.not_compared),
            ("not kept:", &restored.not_kept),
            ("differs:", &restored.differs),
            ("other work tree:", &restored.work_trees),
            ("history stays:", &restored.repositories),
        ] {
            for (path, why) in pairs {
                let word = styled(style::BAD, word);
                text += &format!("{word} {}: {}\n", path_text(path), plain(why));
            }
        }
    }
    if !taken.not_undone.is_empty() {
        let steps = plain(&taken.not_undone.join(", "));
        let word = styled(style::BAD, "not undone:");
        text += &format!(
            "{word} the files and git of {steps}: no checkpoint has the tree from before, and no undo is declared\n"
        );
    }
    // Where paths failed, they are named above, and the error only repeats it.
    if let Some(error) = taken.error.as_ref().filter(|_| !has_failed_paths(taken)) {
        text += &format!("{} {}\n", styled(style::BAD, "stopped:"), plain(error));
        if let Some(hint) = &taken.hint {
            text += &format!("hint: {}\n", plain(hint));
        }
    }
    text
}

fn has_failed_paths(taken: &UndoneSteps) -> bool {
    taken.restored.as_ref().is_some_and(|restored| !restored.failed.is_empty())
}

/// The outcome of a workflow, in a sentence.
fn verdict(report: &WorkflowRunReport) -> String {
    let run = report.run_id.short();
    let name = plain(&report.workflow);
    match report.status {
        WorkflowStatus::Completed => {
            format!("{} {name} is completed (run {run}).", styled(style::GOOD, "Done."))
        }
        WorkflowStatus::RolledBack | WorkflowStatus::RolledBackInPart => {
            let at = match &report.rollback {
                Some(taken) => again_at(&taken.to_phase, &taken.before_steps),
                None => standing(report),
            };
            let restored = report.rollback.as_ref().and_then(|taken| taken.restored.as_ref());
            // The status alone does not tell it: a path that was skipped, or cannot be made, leaves the tree different.
            let is_exact = report.status == WorkflowStatus::RolledBack
                && restored.is_none_or(|restored| {
                    [&restored.skipped, &restored.not_kept, &restored.differs].iter().all(|all| all.is_empty())
                });
            let done = if is_exact {
                styled(style::GOOD, "Rolled back.")
            } else {
                styled(style::WARN, "Rolled back, but for what is named above.")
            };
            format!("{done} The run {run} is at {}.", plain(&at))
        }
        WorkflowStatus::RollingBack => {
            let unfinished = styled(style::BAD, "The rollback is not finished.");
            format!("{unfinished} The run {run} stays closed until it is.")
        }
        WorkflowStatus::Failed => {
            format!("{} {}; what does not need it was run.", styled(style::BAD, "Failed."), what_happened(report))
        }
        WorkflowStatus::Stopped => {
            let is_any_undone =
                report.steps.iter().any(|step| step.is_undone || step.is_rolled_back || step.effect_undone.is_some());
            let rest = if is_any_undone { "what is undone says so above" } else { "nothing is rolled back" };
            format!("{} {}; {rest}.", styled(style::WARN, "Stopped."), what_happened(report))
        }
        WorkflowStatus::Running => format!("The run {run} is running, or was interrupted."),
        WorkflowStatus::Cancelled => {
            format!("{} Its run {run} is not active any more.", styled(style::WARN, "Cancelled."))
        }
    }
}

/// The position of a workflow that was rolled back earlier.
fn standing(report: &WorkflowRunReport) -> String {
    let ahead = report.steps.iter().find(|step| Some(&step.id) == report.ahead.as_ref());
    ahead.map_or_else(
        || "its first phase again".to_owned(),
        |step| again_at(&step.phase, std::slice::from_ref(&step.id)),
    )
}

/// The error of the step that failed, as in `build failed`.
fn what_happened(report: &WorkflowRunReport) -> String {
    let step = report.steps.iter().find(|step| Some(&step.id) == report.failed_step.as_ref());
    match step {
        Some(step) if step.state == WorkflowStepState::Interrupted => {
            format!("{} was interrupted", plain(&step.id))
        }
        Some(step) => format!("{} failed", plain(&step.id)),
        None => "No further step was begun".to_owned(),
    }
}

/// The command that resumes a workflow; `None` if nothing is left to do.
pub(crate) fn resume(report: &WorkflowRunReport) -> Option<String> {
    let run = report.run_id.short();
    match report.status {
        WorkflowStatus::Completed | WorkflowStatus::Cancelled => None,
        WorkflowStatus::RollingBack => Some(format!("ic workflow resume {run} --yes")),
        WorkflowStatus::RolledBack
        | WorkflowStatus::RolledBackInPart
        | WorkflowStatus::Failed
        | WorkflowStatus::Stopped
        | WorkflowStatus::Running => Some(format!("ic workflow resume {run}")),
    }
}
