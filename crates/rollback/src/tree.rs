//! The tree of a rollback that is taken back: first whether it can be, then the restores, newest first.
//!
//! Both can be asked and done again: a path that is back already is as one of the restores found it.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq};
use ic_checkpoint::capture::Progress;
use ic_checkpoint::lock::Mode;
use ic_checkpoint::record::{Kind, Link};
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::journal::Restore;
use ic_journal::Force;
use ic_journal::kept::goes_of;
use ic_journal::steps::{self, Happening, Step, StepKind};
use ic_journal::table::Remembered;
use ic_kernel::Kernel;
use ic_phase::run;
use ic_saga::Action;
use ic_store::path_from_bytes;
use ic_worktree::shot::Purpose;
use ic_worktree::{
    self as checkpoint, Report, RestoreRequest, Settings, TreeChanges, Watch, Which, Workspace,
};
use serde_json::{Value, json};

use super::preflight::{has_tree, require_project};
use crate::compensation::{Saga, UndoPlan};

/// The restores of a rollback, in the tree that they changed.
pub(super) struct TreeBack<'k> {
    workspace: Workspace<'k>,
    /// Oldest first.
    restores: Vec<Restore>,
    /// What each go at the effects changed in it, oldest first.
    effects: Vec<TreeChanges>,
    /// Only what one dispatch did was undone.
    is_of_one: bool,
}

/// Captures the tree before effects are undone, whose scripts may change any of it, and records that with the step; returns what is known
/// of the tree around them. Nothing is captured where no effect is left, or the rollback means nothing of the tree.
pub(super) fn keep_before_effects(
    saga: &Saga<'_>,
    remembered: &Remembered,
    step: &Step,
    plan: &UndoPlan,
) -> Result<Value> {
    // Others may work on beside the undo of one dispatch: what differs then around its effects need not be theirs.
    if plan.undo().next().is_none() || !has_tree(&remembered.layers) || remembered.only().is_some() {
        return Ok(step.detail.clone());
    }
    let keep = |id: &str| {
        let mut goes = goes_of(step);
        goes.push((id.to_owned(), None));
        goes
    };
    keep_tree(saga, remembered, step, ("before", files_of_effects(plan)), keep)
}

/// Captures the tree after effects were undone, if it was captured before; returns what is known of it.
pub(super) fn keep_after_effects(
    saga: &Saga<'_>,
    remembered: &Remembered,
    step: &Step,
    plan: &UndoPlan,
    known: Value,
) -> Result<Value> {
    let step = Step { detail: known, ..step.clone() };
    if !goes_of(&step).last().is_some_and(|(_, after)| after.is_none()) {
        return Ok(step.detail);
    }
    let keep = |id: &str| {
        let mut goes = goes_of(&step);
        if let Some((_, after)) = goes.last_mut() {
            *after = Some(id.to_owned());
        }
        goes
    };
    keep_tree(saga, remembered, &step, ("after", files_of_effects(plan)), keep)
}

/// The checkpoints of the tree around each go at the effects of a rollback, as [`goes_of`].
pub(super) fn done_by_effects(
    kernel: &Kernel,
    remembered: &Remembered,
) -> Result<Vec<(CheckpointId, Option<CheckpointId>)>> {
    let all = kernel.read(|snapshot| steps::of_rollback(snapshot, &remembered.id))?;
    let goes = all.iter().find(|step| step.kind == StepKind::Effects).map(goes_of).unwrap_or_default();
    let id = CheckpointId::from_ledger;
    Ok(goes.into_iter().map(|(before, after)| (id(before), after.map(id))).collect())
}

/// The files that undoing puts back by itself: they are captured whatever the rules hide.
fn files_of_effects(plan: &UndoPlan) -> BTreeSet<Vec<u8>> {
    let files = plan.undo().filter_map(|compensation| match &compensation.action {
        Action::RestoreFiles { files } => Some(files),
        _ => None,
    });
    files.flatten().map(|file| file.path.0.clone()).collect()
}

fn keep_tree(
    saga: &Saga<'_>,
    remembered: &Remembered,
    step: &Step,
    (when, force): (&str, BTreeSet<Vec<u8>>),
    keep: impl Fn(&str) -> Vec<(String, Option<String>)>,
) -> Result<Value> {
    let workspace = Workspace::of_run(saga.kernel, &saga.run()?, saga.settings)?;
    let _held = workspace.lock(Mode::Shared)?;
    let link = Link {
        run_id: Some(remembered.run_id.clone()),
        message: Some(format!("{when} the effects of rollback {} are undone", remembered.id.short())),
        ..Link::default()
    };
    let purpose = Purpose { force, ..Purpose::new(Kind::Safety, link) };
    let shot = workspace.shoot(purpose, &Progress::default())?;
    let goes = keep(shot.id().as_str());
    let (first, last) =
        (goes.first().map(|(before, _)| before), goes.last().and_then(|(_, after)| after.as_ref()));
    let known = json!({ "before": first, "after": last, "goes": goes });
    saga.write(|tx, now| {
        shot.record(tx, now, Some(remembered.epoch))?;
        steps::set(tx, now, &remembered.id, step.ord, Happening::Learns, Some(&known))
    })?;
    Ok(known)
}

/// What each go at the effects of a rollback changed in the tree, oldest first. `restores`: those of the rollback, oldest first.
fn changed_by_effects(
    workspace: &Workspace<'_>,
    remembered: &Remembered,
    restores: &[Restore],
) -> Result<Vec<TreeChanges>> {
    let goes = done_by_effects(workspace.kernel, remembered)?;
    let mut changes = Vec::new();
    for (at, (before, after)) in goes.iter().enumerate() {
        // Where the process died, all until the next look at the tree counts as the effects' work.
        let next = goes.get(at + 1).map(|(next, _)| next);
        let after = after.as_ref().or(next).or_else(|| restores.first().map(|restore| &restore.safety_id));
        changes.extend(checkpoint::changes_between(workspace, (before, after))?);
    }
    Ok(changes)
}

/// How the tree of a rollback is looked at before it is put back.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The rollback's restores lie before this event.
    pub(super) until: Seq,
    /// What somebody changed is put back, too.
    pub(super) force: Force,
    /// Nothing is changed, not even to finish what was interrupted.
    pub(super) dry_run: bool,
}

/// What is to be put back of files and git's state, when nothing stands against it; `None`: nothing.
///
/// Errors: `file_conflict` if somebody changed since what the rollback restored, or recorded it; `foreign_commits`, `work_running`: nothing
/// is changed. `force`: none of them.
pub(super) fn to_put_back<'k>(
    (kernel, settings): (&'k Kernel, &'k Settings),
    remembered: &Remembered,
    look: Look,
    watch: &Watch,
) -> Result<Option<TreeBack<'k>>> {
    let target = kernel.read(|snapshot| {
        let run = run::get(snapshot, &remembered.run_id)?;
        ic_point::checkpoint_at(snapshot, &run, remembered.cut_seq)
    })?;
    let Some(target) = target.filter(|_| has_tree(&remembered.layers)) else { return Ok(None) };
    let (run, steps) = kernel.read(|snapshot| {
        Ok((run::get(snapshot, &remembered.run_id)?, steps::of_rollback(snapshot, &remembered.id)?))
    })?;
    let safety = steps.iter().find_map(|step| step.detail["safety"][0].as_str());
    let kept = safety.map_or_else(|| target.id.clone(), |id| CheckpointId::from_ledger(id.to_owned()));
    require_project(&run, &kept, "put it back there, then call again")?;
    let workspace = Workspace::of_run(kernel, &run, settings)?;
    // One that was interrupted is undone like the others, once it is finished; a dry run takes it to be.
    if !look.dry_run {
        checkpoint::settle(&workspace, watch)?;
    }
    let mut restores = checkpoint::restores_since(&workspace, &target.id, remembered.seq, look.dry_run)?;
    restores.retain(|restore| restore.seq < look.until);
    let effects = changed_by_effects(&workspace, remembered, &restores)?;
    let tree = TreeBack { workspace, restores, effects, is_of_one: remembered.only().is_some() };
    if look.force.files {
        return Ok(Some(tree));
    }
    tree.require_own(watch).map_err(|error| match error.code() {
        Code::WorkRunning => error.hint("end it first; then call again"),
        Code::GitBusy => {
            error.hint("wait until git is done, or remove the lock that a dead git left; then call again")
        }
        _ => error,
    })?;
    Ok(Some(tree))
}

impl TreeBack<'_> {
    /// Errors: `file_conflict`, `foreign_commits`, `work_running` where putting back would take what is not the rollback's.
    fn require_own(&self, watch: &Watch) -> Result<()> {
        // What another run recorded comes first: the way around it is the way around what was changed, too.
        for at in 0..self.restores.len() {
            refuse_conflict(&self.take_back(at, (true, Force::default()), watch)?, false)?;
        }
        require_untouched(&self.workspace, &self.restores)?;
        for at in 0..self.effects.len() {
            self.effects[at].require_untouched(&self.workspace, (&self.restores, &self.effects[at + 1..]))?;
            refuse_conflict(&self.undo_what_effects_changed(at, (true, Force::default()), watch)?, true)?;
        }
        Ok(())
    }

    /// Puts back what one go at the effects changed in the tree, once the restores and later goes are taken back.
    fn undo_what_effects_changed(
        &self,
        at: usize,
        (dry_run, force): (bool, Force),
        watch: &Watch,
    ) -> Result<Report> {
        let changes = &self.effects[at];
        let request =
            RestoreRequest { dry_run, force, ..request(changes.before().as_str(), Strategy::FilesOnly) };
        let not_yet =
            if dry_run { (&self.restores[..], &self.effects[at + 1..]) } else { (&[][..], &[][..]) };
        checkpoint::take_changes_back(&self.workspace, (changes, not_yet), &request, watch)
    }

    /// Takes one restore back, once the later ones are.
    fn take_back(&self, at: usize, (dry_run, force): (bool, Force), watch: &Watch) -> Result<Report> {
        let restore = &self.restores[at];
        let request = RestoreRequest {
            dry_run,
            force,
            beside_others: self.is_of_one,
            ..request(restore.safety_id.as_str(), restore.strategy)
        };
        let not_yet = if dry_run { &self.restores[at + 1..] } else { &[] };
        checkpoint::take_restore_back(&self.workspace, (restore, not_yet), &request, watch).map_err(|error| {
            match error.code() {
                Code::FileConflict | Code::ForeignCommits => by_hand(&restore.safety_id, "", error),
                _ => error,
            }
        })
    }
}

fn request(checkpoint: &str, strategy: Strategy) -> RestoreRequest<'_> {
    RestoreRequest {
        which: Which::Id(checkpoint),
        strategy: Some(strategy),
        paths: &[],
        mine: false,
        dry_run: false,
        force: Force::default(),
        keep_theirs: false,
        into: false,
        compares_all: true,
        beside_others: false,
        expect_plan: None,
    }
}

/// Errors: `file_conflict`, naming a path that another run recorded.
fn refuse_conflict(report: &Report, is_of_effects: bool) -> Result<()> {
    let Some(conflict) = report.conflicts.first() else { return Ok(()) };
    let path = path_from_bytes(&conflict.path.0).display().to_string();
    let message = format!("{path} is not the rollback's any more: {}.", conflict.reason);
    // Undoing effects may have changed little of a tree.
    let alone = if is_of_effects { checkpoint::path_option(&path) } else { String::new() };
    Err(by_hand(&report.target.id, &alone, Diagnosis::new(Code::FileConflict, message)))
}

fn by_hand(back_to: &CheckpointId, path: &str, error: Diagnosis) -> Diagnosis {
    error.hint(format!(
        "put the tree back by hand, then call again: ic checkpoint restore {}{path} --force --yes",
        back_to.short()
    ))
}

/// Puts files and git's state back as they were before the rollback touched them, newest restore first. A path that does not come
/// back ends it: the last report names it. `dry_run`: the reports say what each would do, one after another.
pub(super) fn put_back(
    tree: &TreeBack<'_>,
    (dry_run, force): (bool, Force),
    reports: &mut Vec<Report>,
    watch: &Watch,
) -> Result<()> {
    for at in (0..tree.restores.len()).rev() {
        let report = tree.take_back(at, (dry_run, force), watch)?;
        let is_whole = report.failed.is_empty();
        reports.push(report);
        if !is_whole {
            return Ok(());
        }
    }
    for at in (0..tree.effects.len()).rev() {
        if !dry_run && !force.files {
            tree.effects[at].require_untouched(&tree.workspace, (&[], &[]))?;
        }
        reports.push(tree.undo_what_effects_changed(at, (dry_run, force), watch)?);
    }
    Ok(())
}

/// Errors: `file_conflict`, naming what somebody changed since the rollback restored it.
fn require_untouched(workspace: &Workspace<'_>, restores: &[Restore]) -> Result<()> {
    let changed = checkpoint::changed_since(workspace, restores)?;
    let Some(first) = changed.first() else { return Ok(()) };
    let shown = |path: &[u8]| path_from_bytes(path).display().to_string();
    let others = match changed.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let left = restores.iter().rev().find_map(|restore| restore.restored_id.as_ref());
    let hint = left.map_or_else(String::new, |left| {
        format!(
            "this puts it as it was (and keeps your changes in a checkpoint): ic checkpoint restore {} --yes",
            left.short()
        )
    });
    Err(Diagnosis::new(
        Code::FileConflict,
        format!(
            "What the rollback restored was changed since: {}{others}. Nothing was changed.",
            shown(&first.0)
        ),
    )
    .hint(hint)
    .detail("paths", changed.iter().map(|path| shown(&path.0)).collect::<Vec<_>>()))
}
