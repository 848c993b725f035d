//! The steps of a rollback: the state and outcome of each, and the commands that can follow.

use ic_base::{RollbackId, shell_word};
use ic_effects::compensation::CompensationState;
use ic_kernel::journal::step_detail::Go;
use ic_kernel::journal::steps::{self, Course, RollbackStep, RollbackStepState, StepKind, course, next_command};
use ic_kernel::journal::table::RollbackRecord;
use serde::Serialize;

use crate::text::{Cell, TextTable, counted, plain, style, styled};

shape! {
    /// One attempt at undoing the effects.
    struct GoJson from (before, after): &Go {
        /// The checkpoint of the tree before it.
        before_checkpoint_id: String = before.to_string(),
        /// The checkpoint of the tree after it; null if its process died.
        after_checkpoint_id: Option<String> = after.as_ref().map(ToString::to_string),
    }

    /// A step of a rollback over several layers.
    pub(crate) struct StepJson from (step: &RollbackStep, course: Course, stands: bool) {
        /// effects, tree (files and git), data or settle.
        layer: &'static str as StepKind = step.kind.as_str(),
        /// pending, running, done, failed, skipped; or `as_before`: the rollback was undone or aborted, and the layer is as it was before
        /// it.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::and(&ic_kernel::journal::steps::RollbackStepState::WORDS, "as_before"))))]
        status: &'static str = step.shown(course, stands),
        /// The recorded part of its outcome.
        made: MadeJson = step.into(),
        error: Option<String> = step.error.clone(),
    }
}

/// The outcome of a step. A part that is not recorded yet is left out.
#[derive(Serialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MadeJson {
    /// For `effects`: the number of those that were undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_count: Option<usize>,
    /// For `effects`: the names of those that were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_steps: Option<Vec<String>>,
    /// For `effects`: the checkpoints around each attempt, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    goes: Option<Vec<GoJson>>,
    /// For `tree`: the number of paths that were restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_count: Option<usize>,
    /// For `tree`: what moved in git: branches, tags, HEAD, the index, the stash. Left out if nothing did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    git_moves: Vec<String>,
    /// For `tree`: the safety checkpoint of its last restore, with the content before.
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_checkpoint_id: Option<String>,
    /// For `data`: the number of rows that were deleted, by table.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_row_counts: Option<std::collections::BTreeMap<String, u64>>,
}

impl From<&RollbackStep> for MadeJson {
    fn from(RollbackStep { kind, detail, .. }: &RollbackStep) -> Self {
        let nothing = Self::default();
        match kind {
            StepKind::Effects => Self {
                undone_count: Some(detail.undone(CompensationState::Done.as_str())),
                skipped_steps: Some(detail.skipped.clone()),
                goes: Some(detail.goes.iter().map(GoJson::from).collect()),
                ..nothing
            },
            StepKind::Tree => {
                let safety_checkpoint_id = detail.safety.last().map(ToString::to_string);
                let git_moves = detail.git_moves.clone();
                Self { path_count: Some(detail.changes), git_moves, safety_checkpoint_id, ..nothing }
            }
            StepKind::Data => Self { deleted_row_counts: Some(detail.rows.clone().unwrap_or_default()), ..nothing },
            StepKind::Settle => nothing,
        }
    }
}

impl StepJson {
    /// The steps of one rollback. `stands`: whether the rollback is in force.
    pub(crate) fn all(all: &[RollbackStep], stands: bool) -> Vec<Self> {
        let course = steps::course(all);
        all.iter().map(|step| Self::new(step, course, stands)).collect()
    }
}

/// The note in place of the command for an undo that would be refused.
pub(crate) fn purged(files: &ic_undo::FilesAlone) -> String {
    let why = files.operation.as_ref().map_or_else(
        || "git's earlier state has content that was purged, and cannot be restored".to_owned(),
        |operation| format!("the {operation} that was in progress cannot be restored; begin it again with git"),
    );
    format!(
        "{why}; to restore the files alone: ic checkpoint restore {} --strategy files-only --yes",
        files.checkpoint.short()
    )
}

/// The paths that were skipped, the checkpoint that has them, and the command that restores them; empty if none were.
pub(crate) fn not_put_back(
    rollback: &RollbackRecord,
    all: &[RollbackStep],
    files_alone: Option<&ic_undo::FilesAlone>,
) -> String {
    let left = steps::not_put_back(rollback, all);
    if left.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    for step in left {
        let kept = match step.kind {
            StepKind::Data => {
                format!("rows, which are kept in rewinds/{}-*.db beside the ledger", rollback.id)
            }
            _ => match step.detail.safety.first() {
                Some(id) => format!("files and git, as checkpoint {} has them", id.short()),
                None => "files and git".to_owned(),
            },
        };
        out += &format!("{}: {kept}\n", styled(style::WARN, "not restored"));
    }
    match files_alone {
        Some(safety) => format!("{out}{}\n", purged(safety)),
        None => out + &format!("to restore it: ic redo {} --yes\n", rollback.id.short()),
    }
}

pub(crate) fn steps(all: &[RollbackStep]) -> String {
    let is_back = course(all).is_back();
    let mut table = TextTable::new(&["STEP", "STATE", "ABOUT"]);
    for step in all {
        let colour = match step.state {
            RollbackStepState::Done => style::GOOD,
            RollbackStepState::Failed => style::BAD,
            RollbackStepState::Running => style::WARN,
            RollbackStepState::Pending | RollbackStepState::Skipped => style::DIM,
        };
        let is_outside = matches!(step.kind, StepKind::Tree | StepKind::Data);
        let state = match step.state {
            // In an undo or an abort, a step that is still `done` has yet to be reverted.
            RollbackStepState::Done if is_back && is_outside => "to be restored",
            // People read a word here; JSON has the name of the step.
            _ if step.shown(course(all), true) == "as_before" => "as before",
            _ => step.state.as_str(),
        };
        let about = step.error.as_deref().map_or_else(|| about(step), str::to_owned);
        table.row(vec![
            Cell::new(style::STRONG, step.kind.as_str()),
            Cell::new(colour, state),
            Cell::new(style::DIM, &about),
        ]);
    }
    table.render("One transaction, no steps.")
}

/// The outcome of a step, in a few words.
fn about(step: &RollbackStep) -> String {
    if step.state != RollbackStepState::Done {
        return String::new();
    }
    let detail = &step.detail;
    match step.kind {
        StepKind::Effects => {
            let names: Vec<_> = detail.skipped.iter().map(|name| plain(name)).collect();
            let left = if names.is_empty() { String::new() } else { format!("; skipped: {}", names.join(", ")) };
            let before = detail.goes.first().map(|(before, _)| before);
            let kept = before.map(|id| format!("; the tree before them is in checkpoint {}", id.short()));
            let undone = detail.undone(CompensationState::Done.as_str());
            format!("{} undone{left}{}", counted(undone, "effect"), kept.unwrap_or_default())
        }
        StepKind::Tree => {
            let kept = detail.safety.last().map(|id| format!("; the old content is in checkpoint {}", id.short()));
            let moves: Vec<_> = detail.git_moves.iter().map(|one| plain(one)).collect();
            let moves = if moves.is_empty() { String::new() } else { format!("; git: {}", moves.join(", ")) };
            format!("{} restored{moves}{}", counted(detail.changes, "path"), kept.unwrap_or_default())
        }
        StepKind::Data => format!("{} deleted", counted(detail.deleted(), "row")),
        StepKind::Settle => String::new(),
    }
}

/// The commands that can follow an unfinished rollback.
pub(crate) fn ways_on(id: &RollbackId, all: &[RollbackStep], files_alone: Option<&ic_undo::FilesAlone>) -> String {
    let (doing, give_up) = match course(all) {
        // An abort would restore git's former state, which is not possible here.
        Course::Forward => ("", files_alone.is_none().then_some("to abort it, and be where the run was")),
        Course::Undo => ("it is being undone; ", Some("to leave it rolled back")),
        Course::Abort => ("it is being aborted; ", None),
        Course::Reapply => ("its undo was aborted; ", None),
    };
    let (id, go_on) = (id.short(), next_command(id, all));
    let mut out = format!("{doing}to resume: {go_on}\n");
    // The last step cannot be skipped: it records the end.
    let failed = all.iter().find(|step| step.state == RollbackStepState::Failed && step.kind != StepKind::Settle);
    if let Some(failed) = failed {
        if let Some(effect) = steps::failed_effect(failed) {
            let step = shell_word(effect);
            out += &format!(
                "to skip the effect of {}: ic rollback resume {id} --skip-effect {step} --reason WHY --yes\n",
                plain(effect)
            );
        }
        let what = match failed.kind {
            StepKind::Effects => "all effects that are left",
            StepKind::Tree => "files and git",
            StepKind::Data | StepKind::Settle => "the rows",
        };
        out += &format!("to skip {what}: ic rollback resume {id} --skip-step --reason WHY --yes\n");
    }
    let give_up = give_up.map(|what| format!("{what}: ic rollback abort {id} --yes\n"));
    out + &give_up.unwrap_or_default()
}

/// The command that resumes a rollback; `None` if nothing is left to do.
pub(crate) fn resume(rollback: &RollbackRecord, all: &[RollbackStep]) -> Option<String> {
    (!rollback.status.is_over()).then(|| next_command(&rollback.id, all))
}
