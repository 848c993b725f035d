//! The undo of a restore, of the last one or of one that is named, and of such an undo.
//!
//! Each is a restore itself, of the tree before the one that it undoes, limited to the paths which that wrote.

use std::collections::BTreeSet;

use ic_base::{CheckpointId, Code, Diagnosis, RestoreId, Result, shell_word};
use ic_checkpoint::record;
use ic_checkpoint::restore::journal::{self, RestoreKind, RestorePlace, RestoreRecord};
use ic_checkpoint::restore::plan::Limits;
use ic_kernel::Kernel;
use ic_kernel::journal::kept_checkpoints;
use ic_ledger::Snapshot;

use super::super::git::Brought;
use super::super::workspace::{CaptureSettings, Warning, Workspace, require_kept};
use super::interruption::{self, Settled, also_settled, settle_note};
use super::limits::LimitOwner;
use super::planned_restore::RestoreTask;
use super::request::{RestoreReport, RestoreRequest, RestoreWatch};
use super::{kept_plan, refusal, run};

/// What is undone: the next one of a kind, or the one that was named.
#[derive(Clone, Copy)]
struct UndoAsked<'a> {
    kind: RestoreKind,
    named: Option<&'a RestoreRecord>,
}

/// Undoes the last restore of this root: the tree is as it was before, where that restore changed it.
///
/// Errors: `nothing_to_undo`, and those of [`super::restore`].
pub fn undo(
    kernel: &Kernel,
    settings: &CaptureSettings,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let asked = UndoAsked { kind: RestoreKind::Undo, named: None };
    step(kernel, settings, asked, request, watch)
}

/// Undoes the restore with this id: the tree is as it was before, where that restore changed it. Where it is the undo of a restore, that
/// restore is made again.
///
/// Errors: `nothing_to_undo` if it was undone already; `not_undoable` if a newer one has to be undone first; `foreign_root`; and those of
/// [`super::restore`].
pub fn undo_named(
    kernel: &Kernel,
    settings: &CaptureSettings,
    id: &RestoreId,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let named = kernel.read(|snapshot| journal::find(snapshot, id))?.ok_or_else(|| {
        Diagnosis::new(Code::NothingToUndo, format!("The content that the undo of the restore {id} needs is lost."))
            .hint("see what there is: ic checkpoint list --tree")
    })?;
    let kind = match named.kind {
        RestoreKind::Undo => RestoreKind::Redo,
        RestoreKind::Restore | RestoreKind::Redo => RestoreKind::Undo,
    };
    step(kernel, settings, UndoAsked { kind, named: Some(&named) }, request, watch)
}

fn step(
    kernel: &Kernel,
    settings: &CaptureSettings,
    asked: UndoAsked<'_>,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let kind = asked.kind;
    let workspace = Workspace::here(kernel, settings)?;
    asked.named.map_or(Ok(()), |named| require_here(&workspace, named))?;
    // Locked before the restore to undo is chosen: no other restore can come in between.
    let _held = workspace.lock_for(request.dry_run)?;
    if request.dry_run {
        return match workspace.interrupted(asked)? {
            Some(report) => finishing(&workspace, kind, report, request),
            None => step_held(&workspace, asked, request, watch),
        };
    }
    let settled = workspace.settle(watch)?;
    let warning = settled.as_ref().map(Settled::warning);
    match settled {
        // The same call was interrupted before: finishing it is what was asked for, and another step would go too far.
        Some(settled) if workspace.is_asked(asked, &settled.restore)? => {
            let done = settled.into_report().and_then(|report| finishing(&workspace, kind, report, request));
            done.or_else(|error| also_settled(warning, || Err(error)))
        }
        _ => also_settled(warning, || step_held(&workspace, asked, request, watch)),
    }
}

/// As [`step`], where to finish an interrupted one is all that is asked for, and `report` says what that does or did. Errors:
/// `plan_changed`.
fn finishing(
    workspace: &Workspace<'_>,
    kind: RestoreKind,
    report: RestoreReport,
    request: &RestoreRequest<'_>,
) -> Result<RestoreReport> {
    if request.expect_plan.is_some_and(|expected| expected != report.plan_hash) {
        return Err(refusal::plan_changed(&report));
    }
    // What the interrupted call undid is at the top of what had ended before it began.
    let of = last_of(kind, &workspace.earlier(report.safety_id.as_ref())?);
    let mut report = RestoreReport { dry_run: request.dry_run, ..report };
    if let Some(of) = of {
        about(workspace.kernel, of, kind, &mut report)?;
    }
    Ok(report)
}

/// Says which restore was undone, or made again: it need not be what the caller did last, newer work may have come since.
fn about(kernel: &Kernel, of: RestoreRecord, kind: RestoreKind, report: &mut RestoreReport) -> Result<()> {
    report.warnings.extend(rest_of_rollback(kernel, &of, kind)?);
    report.of_restore = Some(of);
    Ok(())
}

/// As [`step`], where the root is held, and no restore is unfinished, but for a dry run.
fn step_held(
    workspace: &Workspace<'_>,
    asked: UndoAsked<'_>,
    request: &RestoreRequest<'_>,
    watch: &RestoreWatch,
) -> Result<RestoreReport> {
    let (kernel, kind) = (workspace.kernel, asked.kind);
    // The real call finishes what was interrupted, and then finds it among the others.
    let last = workspace.next(asked, request.dry_run)?;
    // An undo leads to what was there before the restore, a redo to what the restore left.
    let target = match kind {
        RestoreKind::Redo => last.restored_id.as_ref().ok_or_else(|| nothing_to(kind))?,
        _ => &last.safety_id,
    };
    let target = kernel.read(|snapshot| record::get(snapshot, target))?;
    require_kept(&target)?;
    let plan = kept_plan::read_plan(workspace, &last)?;
    let own: BTreeSet<Vec<u8>> = plan.steps.into_iter().map(|step| step.path.0).collect();
    let limits = Limits { only: Some(own.clone()), ..Limits::default() };
    // With the strategy of that restore: where it left git alone, its undo does too.
    let request = RestoreRequest { strategy: Some(last.strategy), ..*request };
    // What is made again had been undone: that left what there was before it.
    let left = if kind == RestoreKind::Redo { Some(last.safety_id.clone()) } else { last.restored_id.clone() };
    let task = RestoreTask {
        whose: LimitOwner::Caller,
        own,
        brought: left.map(|left| Brought { left, is_compared: false }),
        ..RestoreTask::of(kind, target, limits)
    };
    run::require_nobody_works(workspace, &task, &request)?;
    let mut report = run::run_held(workspace, task, &request, watch)?;
    about(kernel, last, kind, &mut report)?;
    Ok(report)
}

/// A warning where the restore that is undone, or made again, is one layer of a rollback: the others stay as they are.
fn rest_of_rollback(kernel: &Kernel, restore: &RestoreRecord, kind: RestoreKind) -> Result<Option<Warning>> {
    let is_undo = kind == RestoreKind::Undo;
    let made_by = kernel.read(|snapshot| kept_checkpoints::that_restored(snapshot, &restore.safety_id, is_undo))?;
    Ok(made_by.map(|rollback| {
        let layers = rollback.layers.iter().map(|layer| layer.as_str());
        let others: Vec<&str> = layers.filter(|layer| !matches!(*layer, "files" | "git")).collect();
        let (id, others) = (rollback.id.short(), others.join(", "));
        if is_undo {
            let message = format!(
                "that restore was made by the rollback {id}, which is in force: {others} stay as it left them; to undo all of it instead: ic redo {id} --yes"
            );
            return Warning { code: "rollback_stands", message };
        }
        let message = format!(
            "that restore was made by the rollback {id}, which was undone: {others} stay as they are; to roll back all of it: ic run rollback {} --to-phase PHASE --yes",
            rollback.run_id.short()
        );
        Warning { code: "rollback_undone", message }
    }))
}

/// Of these restores, oldest first, the one that `undo` would undo next, or `redo` make again.
fn last_of(kind: RestoreKind, restores: &[RestoreRecord]) -> Option<RestoreRecord> {
    let (undo, redo) = journal::stacks(restores);
    if kind == RestoreKind::Redo { redo.last() } else { undo.last() }.map(|last| (*last).clone())
}

fn nothing_to(kind: RestoreKind) -> Diagnosis {
    let what = kind.as_str();
    Diagnosis::new(Code::NothingToUndo, format!("There is no restore to {what} here."))
        .hint("see what there is: ic checkpoint list --tree")
}

/// Errors: `foreign_root` if the restore was made in another tree.
fn require_here(workspace: &Workspace<'_>, restore: &RestoreRecord) -> Result<()> {
    if restore.root == workspace.root {
        return Ok(());
    }
    let safety = restore.safety_id.short();
    let hint = if restore.root.is_dir() {
        format!("work there: ic -C {} undo {safety}", shell_word(&restore.root.to_string_lossy()))
    } else {
        format!("if the tree was moved here: ic checkpoint restore {safety} --into --dry-run")
    };
    let (there, here) = (restore.root.display(), workspace.root.display());
    let message =
        format!("The restore of checkpoint {} was made in {there}, not in {here}.", restore.target_id.short());
    Err(Diagnosis::new(Code::ForeignRoot, message).hint(hint).detail("root", there.to_string()))
}

/// Errors: why the one that was named is not the next to be undone.
fn not_next(snapshot: &Snapshot<'_>, named: &RestoreRecord, place: RestorePlace<'_>) -> Result<Diagnosis> {
    let what = match named.kind {
        RestoreKind::Restore | RestoreKind::Redo => "The restore of checkpoint",
        RestoreKind::Undo => "The undo that restored checkpoint",
    };
    let (what, safety) = (format!("{what} {}", named.target_id.short()), named.safety_id.short());
    let before = format!("the tree as it was before it: ic checkpoint restore {safety} --dry-run");
    Ok(match place {
        RestorePlace::Below(newer) => {
            let message = format!("{what} is not the newest here: that of {} came after it.", newer.target_id.short());
            let first = undone_by(snapshot, newer)?.map(|first| format!("undo the newer one first: {first}; "));
            Diagnosis::new(Code::NotUndoable, message)
                .hint(first.unwrap_or_default() + &before)
                .detail("newer_checkpoint_id", newer.safety_id.as_str())
        }
        RestorePlace::Undone(by) => Diagnosis::new(Code::NothingToUndo, format!("{what} was undone already."))
            .hint(format!("make it again: ic undo {} --yes", by.safety_id.short())),
        RestorePlace::Next | RestorePlace::Past => Diagnosis::new(
            Code::NothingToUndo,
            format!("{what} stands no longer: it was undone, or newer work replaced it."),
        )
        .hint(before),
    })
}

/// The command that undoes a restore, with the rollback that it is a part of. `None` for one by which undone work came back: the record
/// would not follow.
fn undone_by(snapshot: &Snapshot<'_>, restore: &RestoreRecord) -> Result<Option<String>> {
    if let Some(rollback) = kept_checkpoints::that_restored(snapshot, &restore.safety_id, true)? {
        return Ok(Some(format!("ic redo {} --dry-run", rollback.id.short())));
    }
    let is_of_redo = kept_checkpoints::that_restored(snapshot, &restore.target_id, false)?.is_some()
        || kept_checkpoints::that_restored(snapshot, &restore.safety_id, false)?.is_some();
    Ok((!is_of_redo).then(|| format!("ic redo {} --dry-run", restore.safety_id.short())))
}

impl Workspace<'_> {
    /// The restore that is undone, or made again. The caller holds the root. Errors: those of [`undo_named`].
    fn next(&self, asked: UndoAsked<'_>, and_interrupted: bool) -> Result<RestoreRecord> {
        self.kernel.read(|snapshot| {
            let mut all = journal::finished(snapshot, &self.root)?;
            if and_interrupted {
                all.extend(journal::unfinished(snapshot, &self.root)?);
            }
            if let Some(named) = asked.named {
                let place = journal::place(&all, &named.id);
                if place != RestorePlace::Next {
                    return Err(not_next(snapshot, named, place)?);
                }
            }
            last_of(asked.kind, &all).ok_or_else(|| nothing_to(asked.kind))
        })
    }

    /// The restores of this root that were finished when the restore of this safety checkpoint began; all, if that one is unfinished.
    fn earlier(&self, safety: Option<&CheckpointId>) -> Result<Vec<RestoreRecord>> {
        let mut all = self.kernel.read(|snapshot| journal::finished(snapshot, &self.root))?;
        let until = all.iter().position(|one| Some(&one.safety_id) == safety).unwrap_or(all.len());
        all.truncate(until);
        Ok(all)
    }

    /// Whether an interrupted restore is the very step that is asked for.
    fn is_asked(&self, asked: UndoAsked<'_>, interrupted: &RestoreRecord) -> Result<bool> {
        if interrupted.kind != asked.kind {
            return Ok(false);
        }
        let Some(named) = asked.named else { return Ok(true) };
        Ok(journal::place(&self.earlier(Some(&interrupted.safety_id))?, &named.id) == RestorePlace::Next)
    }

    /// What there is to say of an interrupted restore that the same call finishes.
    fn interrupted(&self, asked: UndoAsked<'_>) -> Result<Option<RestoreReport>> {
        let Some(restore) = self.kernel.read(|s| journal::unfinished(s, &self.root))? else { return Ok(None) };
        if !self.is_asked(asked, &restore)? {
            return Ok(None);
        }
        let target = self.kernel.read(|s| record::get(s, &restore.target_id))?;
        let plan = kept_plan::read_plan(self, &restore)?;
        let git = self.left_for_git(&restore, &target)?;
        let mut report = interruption::resumed(&restore, target, plan, git)?;
        report.warnings.extend(settle_note(self)?);
        Ok(Some(report))
    }
}
