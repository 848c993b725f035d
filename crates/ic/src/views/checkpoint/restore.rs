//! The plan and the outcome of a restore.

use std::sync::atomic::Ordering;

use ic_base::CheckpointId;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointKind;
use ic_checkpoint::restore::journal::RestoreRecord;
use ic_checkpoint::restore::plan::{self, RestoreAction, RestoreStep};
use ic_worktree::{RestoreReport, RestoreStatus, RestoreWatch};

use crate::text::{plain, refused, style, styled};
use crate::views::PathJson;
use crate::views::checkpoint::git::{GitRestoreJson, git_lines};
use crate::views::checkpoint::{SHOWN, capturing, section, text};
use crate::views::common_shapes::{RefusalJson, SkippedJson, WarningJson};

shape! {
    /// A restore, planned or done.
    pub(crate) struct RestoreJson from report: &RestoreReport where
        because = |(path, reason): &(PathText, String)| SkippedJson::new(&path.0, reason.clone());
    {
        checkpoint_id: String = report.target.id.to_string(),
        /// What it undoes, if it is the undo of a restore, or makes one again: restore.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, schemars(extend("enum" = ["restore"])))]
        undoes: Option<&'static str> = report.of_restore.as_ref().map(|_| "restore"),
        /// The restore that is undone or redone; left out if this is neither.
        #[serde(skip_serializing_if = "Option::is_none")]
        of_restore: Option<OfRestoreJson> =
            report.of_restore.as_ref().map(|restore| OfRestoreJson::new(restore, report)),
        /// The safety checkpoint, with the content before; null if nothing was written.
        safety_checkpoint_id: Option<String> = report.safety_id.as_ref().map(ToString::to_string),
        /// The checkpoint of the tree after the restore.
        restored_checkpoint_id: Option<String> = report.restored_id.as_ref().map(ToString::to_string),
        dry_run: bool = report.dry_run,
        /// full, partial, files-only or git-only.
        strategy: &'static str as ic_checkpoint::restore::Strategy = report.strategy.as_str(),
        /// restored, partial (a path could not be changed, or one of the checkpoint is skipped), planned or `up_to_date`.
        status: &'static str as ic_worktree::RestoreStatus = report.status.as_str(),
        /// The hash of the plan, for --expect-plan.
        plan_hash: String = report.plan_hash.clone(),
        changes: Vec<RestoreChangeJson> = report.plan.steps.iter().map(RestoreChangeJson::from).collect(),
        conflicts: Vec<SkippedJson> =
            report.conflicts.iter().map(|one| SkippedJson::new(&one.path.0, one.reason.clone())).collect(),
        /// Paths that are skipped, or that cannot be compared with the checkpoint.
        skipped: Vec<SkippedJson> =
            report.plan.skipped.iter().chain(&report.not_compared).map(because).collect(),
        /// What the checkpoint had at a path and a restore cannot make.
        not_kept: Vec<SkippedJson> = report.plan.not_kept.iter().map(because).collect(),
        failed: Vec<FailedJson> = report.failed.iter().map(FailedJson::from).collect(),
        /// Other differences from the checkpoint after the restore: others worked at the same time, or a branch is checked out in another
        /// work tree. Git's state is named `.git`.
        differs: Vec<SkippedJson> = report.differs.iter().map(because).collect(),
        /// Other work trees that were made or removed since, or that the checkpoint has files of; they are not changed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        work_trees: Vec<SkippedJson> = report.work_trees.iter().map(because).collect(),
        /// Repositories whose files are restored and whose history is not, with the command that moves it; the exit is 4.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        repositories: Vec<SkippedJson> = report.repositories.iter().map(because).collect(),
        /// In a dry run, the refusal of the real call; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<RefusalJson> = report.refusal.as_ref().map(RefusalJson::from),
        git: Option<GitRestoreJson> = report.git.as_ref().map(GitRestoreJson::from),
        /// Paths that the undone work had staged: their entries of the index go back, or come again, though git's state is not restored.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        index: Vec<String> = report.index.iter().map(|path| String::from_utf8_lossy(&path.0).into_owned()).collect(),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = report.warnings.iter().map(WarningJson::from).collect(),
    }

    /// A restore that is undone or redone.
    struct OfRestoreJson from (restore: &RestoreRecord, report: &RestoreReport) {
        id: String = restore.id.to_string(),
        /// The checkpoint that it restored the tree to.
        checkpoint_id: String = restore.target_id.to_string(),
        /// The run of that checkpoint; null if it belongs to none.
        run_id: Option<String> = report.target.link.run_id.as_ref().map(ToString::to_string),
        /// When it was made.
        created_at: String = restore.created_at.to_string(),
    }

    /// A change that a restore makes.
    pub(crate) struct RestoreChangeJson from step: &RestoreStep {
        #[serde(flatten)]
        path: PathJson = (&step.path).into(),
        /// create, modify, delete, chmod, attributes, link or replace.
        change: &'static str as ic_checkpoint::restore::plan::RestoreAction = step.action.as_str(),
        /// Whether only the safety checkpoint has the content that is there now.
        uncaptured: bool = step.uncaptured,
    }

    /// A path that could not be changed.
    struct FailedJson from (path, error): &(PathText, String) {
        #[serde(flatten)]
        path: PathJson = path.into(),
        error: String = error.clone(),
    }
}

/// The progress of a restore, in one line.
pub(crate) fn restoring(watch: &RestoreWatch) -> String {
    // The tree is captured first, for the safety checkpoint.
    match watch.apply.done.load(Ordering::Relaxed) {
        0 => capturing(&watch.capture),
        done => format!("restoring: {done} paths"),
    }
}

/// The restore that is undone or redone, which need not be the last one here.
fn of_restore(report: &RestoreReport) -> String {
    let Some(restore) = &report.of_restore else { return String::new() };
    let run = report.target.link.run_id.as_ref();
    let run = run.map_or_else(String::new, |run| format!(" of the run {}", run.short()));
    format!(
        "The last restore here is that of checkpoint {}{run}, made at {}.\n",
        styled(style::STRONG, restore.target_id.short()),
        restore.created_at
    )
}

/// A restore, planned or done, as text.
pub(crate) fn report(report: &RestoreReport) -> String {
    let mut out = of_restore(report) + &of(report);
    let steps = &report.plan.steps;
    let moves_git = report.git.as_ref().is_some_and(|git| !git.plan.is_empty());
    if steps.is_empty() && !moves_git && report.status == RestoreStatus::Planned {
        out += "  change nothing\n";
    }
    let unsaved = match report.status {
        RestoreStatus::Planned => styled(style::WARN, "  in no checkpoint yet"),
        _ => styled(style::WARN, "  only in the safety checkpoint"),
    };
    for step in steps.iter().take(SHOWN) {
        let note = if step.uncaptured { unsaved.as_str() } else { "" };
        out += &format!("  {}  {}{note}\n", action(step.action), text(&step.path));
    }
    if steps.len() > SHOWN {
        out += &format!("  and {} more: --json\n", steps.len() - SHOWN);
    }
    if let Some(git) = &report.git {
        out += &git_lines(git);
    }
    let because = |(path, reason): (&PathText, &str)| format!("{}  {}", text(path), styled(style::DIM, &plain(reason)));
    let list =
        |pairs: &[(PathText, String)]| pairs.iter().map(|(path, reason)| because((path, reason))).collect::<Vec<_>>();
    let conflicts: Vec<String> = report.conflicts.iter().map(|c| because((&c.path, &c.reason))).collect();
    section(&mut out, "Changed by others", &conflicts);
    section(&mut out, "Left alone", &list(&report.plan.skipped));
    section(&mut out, "Not compared", &list(&report.not_compared));
    section(&mut out, "Not kept", &list(&report.plan.not_kept));
    section(&mut out, "Failed", &list(&report.failed));
    section(&mut out, "Different from the checkpoint", &list(&report.differs));
    section(&mut out, "History that stays", &list(&report.repositories));
    section(&mut out, "Other work trees", &list(&report.work_trees));
    let uncaptured = steps.iter().filter(|step| step.uncaptured).count();
    match (&report.safety_id, report.status) {
        (Some(safety), _) => {
            out += &format!(
                "What was there before is checkpoint {}; to go back: {}\n",
                styled(style::STRONG, safety.short()),
                way_back(report, safety)
            );
        }
        (None, RestoreStatus::Planned) if uncaptured > 0 => {
            out += &format!(
                "{} no checkpoint yet: a safety checkpoint is taken first.\n",
                if uncaptured == 1 { "1 of these is in".to_owned() } else { format!("{uncaptured} of these are in") }
            );
        }
        _ => {}
    }
    out + &in_the_way(report) + &report.refusal.as_ref().map(refused).unwrap_or_default()
}

/// The hint for an undo that changes nothing, because the restore changed something else and others changed the tree since; else empty.
fn in_the_way(report: &RestoreReport) -> String {
    let is_kept = report.plan.skipped.iter().any(|(_, why)| why == plan::HOLDS_KEPT);
    if report.of_restore.is_none() || report.status != RestoreStatus::Partial || report.safety_id.is_some() || !is_kept
    {
        return String::new();
    }
    let id = report.target.id.short();
    styled(style::DIM, &format!("to replace what is there, too: ic checkpoint restore {id} --yes")) + "\n"
}

/// The command that restores what a restore replaced; after the undo of a restore also the one that makes it again, without what came since.
fn way_back(report: &RestoreReport, safety: &CheckpointId) -> String {
    let safety = safety.short();
    let is_undo = report.of_restore.is_some() && report.target.kind == CheckpointKind::Safety;
    let command = if is_undo {
        format!("ic checkpoint restore {safety}\nTo make that restore again: ic undo {safety}")
    } else {
        format!("ic redo {safety}")
    };
    files_back(report).unwrap_or(command)
}

/// The command that restores only files, if git's former state cannot be restored because a part of it was purged.
fn files_back(report: &RestoreReport) -> Option<String> {
    let safety = report.safety_id.as_ref().filter(|_| report.strategy.has_git())?;
    let is_purged = report.warnings.iter().any(|warning| warning.code == "purged_in_git");
    is_purged.then(|| format!("ic checkpoint restore {} --strategy files-only", safety.short()))
}

fn action(action: RestoreAction) -> String {
    let (style, word) = match action {
        RestoreAction::Create => (style::GOOD, "create "),
        RestoreAction::Modify => (style::WARN, "modify "),
        RestoreAction::Delete => (style::BAD, "delete "),
        RestoreAction::Chmod => (style::DIM, "chmod  "),
        RestoreAction::Attributes => (style::DIM, "attrs  "),
        RestoreAction::Link => (style::DIM, "link   "),
        RestoreAction::Replace => (style::WARN, "replace"),
    };
    styled(style, word)
}

/// The outcome of a restore, in a line.
pub(crate) fn of(report: &RestoreReport) -> String {
    let target = styled(style::STRONG, report.target.id.short());
    let but = if report.plan.not_kept.is_empty() && report.differs.is_empty() { "" } else { ", but not all of it" };
    let what = match (report.is_whole, report.strategy.has_files()) {
        (_, false) => "Git's state",
        (true, true) => "The tree",
        (false, true) => "What was to be restored",
    };
    // What was skipped or not compared may differ, so the sentence must not say that the tree is as in the checkpoint.
    let is_compared = report.plan.skipped.is_empty() && report.not_compared.is_empty();
    match report.status {
        RestoreStatus::UpToDate if !is_compared && !report.is_whole => {
            format!("Nothing to do; what is named below was not compared with checkpoint {target}.\n")
        }
        RestoreStatus::UpToDate if !is_compared => {
            format!("Nothing to do: all that can be restored is as checkpoint {target} has it{but}.\n")
        }
        RestoreStatus::UpToDate if but.is_empty() => {
            format!("{what} is as checkpoint {target} has it; nothing to do.\n")
        }
        RestoreStatus::UpToDate => format!("{what} is as checkpoint {target} has it{but}.\n"),
        RestoreStatus::Partial if report.safety_id.is_none() => {
            format!("Nothing was changed: what checkpoint {target} holds could not be restored.\n")
        }
        RestoreStatus::Planned => format!("Restoring checkpoint {target} ({}) would:\n", report.strategy),
        RestoreStatus::Restored => format!("Restored checkpoint {target} ({}){but}.\n", report.strategy),
        RestoreStatus::Partial => format!("Restored checkpoint {target} ({}) in part.\n", report.strategy),
    }
}
