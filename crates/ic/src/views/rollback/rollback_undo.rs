//! A rollback that was undone or aborted, or would be.

use ic_base::{AgentId, Diagnosis, DispatchId};
use ic_effects::CompensationState;
use ic_kernel::journal::RollbackStep;
use ic_kernel::journal::steps::{Course, next_command};
use ic_undo::UndoneRollback;

use crate::text::{plain, style, styled};
use crate::views::checkpoint::restore::RestoreJson;
use crate::views::common_shapes::RefusalJson;
use crate::views::compensation::compensation_report::UndoneStepJson;
use crate::views::rollback::data::{RestoredDataJson, rows};
use crate::views::rollback::record::RollbackRecordJson;
use crate::views::rollback::steps::{StepJson, not_put_back, steps, ways_on};
use crate::views::rollback::tree::{outside, tree};
use crate::views::rollback::{DecidedJson, OutsideJson};

shape! {
    /// A rollback that was undone or aborted (`redo`, `rollback abort`).
    pub(crate) struct RollbackUndoneJson from undone: &UndoneRollback {
        #[serde(flatten)]
        rollback: RollbackRecordJson = (&undone.remembered).into(),
        /// What it undoes, as opposed to a restore or a rewind: rollback.
        #[cfg_attr(test, schemars(extend("enum" = ["rollback"])))]
        undoes: &'static str = "rollback",
        /// For `--dry-run`: nothing was changed, and the rest is what would be.
        dry_run: bool = undone.is_dry_run,
        /// In the dry run of an undo, the hash of its plan, for --expect-plan; `plan_hash` belongs to the rollback itself. Null: no plan,
        /// or it is refused.
        undo_plan_hash: Option<String> = undone.plan_hash.clone(),
        /// Its direction: undo, abort, or reapply (a rollback whose undo is aborted is made again, so that `files` and `data` are what it
        /// rolls back).
        #[cfg_attr(test, schemars(extend("enum" = ic_kernel::journal::steps::Course::WORDS[1..])))]
        course: &'static str = undone.course.as_str(),
        /// The restores of files and git's state: one for each restore that was undone, newest first.
        files: Vec<RestoreJson> = undone.tree.iter().map(RestoreJson::from).collect(),
        /// Files outside of the project that tool calls changed; left out if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideJson> = undone.outside.iter().map(OutsideJson::from).collect(),
        /// The rows that were restored; null if none had been deleted.
        data: Option<RestoredDataJson> = undone.data.as_ref().map(RestoredDataJson::from),
        /// Its steps; `as_before` means as before the rollback. Empty for the workflow layer alone.
        steps: Vec<StepJson> = StepJson::all(&undone.steps, undone.remembered.status.stands()),
        /// Effects that stay undone.
        effects_left: Vec<UndoneStepJson> = undone.effects.iter().map(UndoneStepJson::from).collect(),
        /// Dispatches that the rollback cancelled, and that stay cancelled.
        dispatches_left: Vec<String> = undone.remembered.cancelled("cancelled_dispatches"),
        /// Agents that the rollback failed, and that stay failed.
        agents_left: Vec<String> = undone.remembered.cancelled("failed_agents"),
        /// In a dry run, the refusal of the real call; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<RefusalJson> = undone.refusals.first().map(|refusal| RefusalJson::from(&refusal.error)),
        /// In a dry run, all refusals of the real call, in order, each with the flag that overrides it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        refusals: Vec<DecidedJson> = undone.refusals.iter().map(DecidedJson::from).collect(),
        /// The command that resumes, if something could not be restored; null if nothing is left to do.
        resume: Option<String> = again(undone),
    }
}

/// The command that resumes the undo of a rollback; `None` if nothing is left to do.
pub(crate) fn again(undone: &UndoneRollback) -> Option<String> {
    // An undo records its own event last: without it something is left to do.
    (undone.seq.is_none() && !undone.is_dry_run).then(|| next_command(&undone.remembered.id, &undone.steps))
}

/// The error because of which the plan of an undo or abort cannot be shown.
pub(crate) fn in_the_way(error: &Diagnosis) -> String {
    format!("{}: {}\n", styled(style::WARN, "in the way"), plain(error.message()))
}

fn would_be_undone(undone: &UndoneRollback) -> String {
    let rollback = &undone.remembered;
    let (id, run) = (rollback.id.short(), rollback.run_id.short());
    if undone.is_rest {
        let head = styled(style::WARN, "would redo");
        return format!("{head} the rest of what {id} undid; the run {run} would stay where it is.\n");
    }
    // An undo of works moved no run, so no phase is named.
    if let Some(works) = rollback.alone() {
        return match undone.course {
            Course::Reapply => format!("{} {id}: {works} would stay undone.\n", styled(style::WARN, "would stand")),
            Course::Abort => format!("{} {id}: {works} would be back.\n", styled(style::WARN, "would abort")),
            _ => format!("{} {works}, which {id} undid.\n", styled(style::WARN, "would redo")),
        };
    }
    let (head, phase) = match undone.course {
        Course::Forward | Course::Reapply => {
            let head = styled(style::WARN, "would stand");
            return format!("{head} {id}: the run {run} would be at {}.\n", plain(&rollback.to_phase));
        }
        Course::Undo => ("would undo", &rollback.from_phase),
        Course::Abort => ("would abort", &rollback.from_phase),
    };
    format!("{} {id}: the run {run} would be at {} again.\n", styled(style::WARN, head), plain(phase))
}

/// Whether all of the work stayed where a rollback was to undo it: the work did not count as undone.
fn undid_nothing(steps: &[RollbackStep]) -> bool {
    let is_nothing = |step: &RollbackStep| step.detail.changes == 0 && step.detail.compensations.is_empty();
    steps.iter().all(is_nothing) && steps.iter().any(|step| step.detail.parts_left > 0)
}

/// The outcome of an undo or abort, in a sentence.
fn ended(undone: &UndoneRollback) -> String {
    let rollback = &undone.remembered;
    let (id, run) = (rollback.id.short(), rollback.run_id.short());
    let stands = undone.course == Course::Reapply;
    match rollback.alone() {
        _ if undone.is_rest => {
            let done = styled(style::GOOD, "redone");
            format!("{done}: the rest of what {id} undid is back; the run {run} stays where it is.\n")
        }
        Some(works) if stands => format!("{} {id}: {works} stays undone.\n", styled(style::GOOD, "stands")),
        Some(works) => {
            let head = if undone.course == Course::Abort { "aborted" } else { "redone" };
            let what = if undid_nothing(&undone.steps) { "had not been undone" } else { "is back" };
            format!("{} {id}: {works} {what}.\n", styled(style::GOOD, head))
        }
        None if stands => {
            let phase = plain(&rollback.to_phase);
            format!("{} {id} stands: the run {run} is at {phase}.\n", styled(style::GOOD, "done"))
        }
        None => format!(
            "{} {id}: the run {run} is at {} again.\n",
            styled(style::GOOD, rollback.status.as_str()),
            plain(&rollback.from_phase)
        ),
    }
}

/// A rollback that was undone or aborted, or would be, and what stays. `files_alone`: as in `layers_plan::show`.
pub(crate) fn undone(undone: &UndoneRollback, files_alone: Option<&ic_undo::FilesAlone>) -> String {
    let rollback = &undone.remembered;
    let (id, run) = (rollback.id.short(), rollback.run_id.short());
    let stands = undone.course == Course::Reapply;
    let mut out = match undone.seq {
        None if undone.is_dry_run => would_be_undone(undone),
        Some(_) => ended(undone),
        None => {
            let what = "not everything could be restored, and the run";
            let head = styled(style::BAD, "not finished");
            format!("{head} {id}: {what} {run} stays closed.\n{}", steps(&undone.steps))
                + &ways_on(&rollback.id, &undone.steps, None)
        }
    };
    for report in &undone.tree {
        out += &tree(report, &[], !stands);
    }
    out += &outside(&undone.outside);
    if let Some(data) = undone.data.as_ref().filter(|data| data.rows.iter().any(|(_, rows)| *rows > 0)) {
        let title = match (undone.is_dry_run, stands) {
            (true, true) => "Rows that would be deleted",
            (true, false) => "Rows that would be restored",
            (false, true) => "Rows deleted",
            (false, false) => "Rows restored",
        };
        out += &format!("\n{}{}", styled(style::STRONG, title), rows(data, ""));
    }
    // The rollback is in force again, or only a rest was restored: then nothing of what follows applies.
    if stands || undone.is_rest {
        return out;
    }
    out += &not_put_back(rollback, &undone.steps, files_alone);
    let mut still = |what: &str, all: Vec<String>| {
        if !all.is_empty() {
            out += &format!("{}: {}\n", styled(style::WARN, what), all.join(", "));
        }
    };
    let (cut_off, gone): (Vec<_>, Vec<_>) =
        // An interrupted undo may have had its effect or not, so it is not claimed to be undone.
        undone.effects.iter().partition(|one| one.is_cut_off() || one.state == CompensationState::Running);
    still("still undone, not made again", gone.iter().map(|one| plain(&one.step)).collect());
    still("perhaps undone, interrupted half way", cut_off.iter().map(|one| plain(&one.step)).collect());
    let dispatches = rollback.cancelled("cancelled_dispatches").into_iter().map(DispatchId::from_ledger);
    still("dispatches still cancelled", dispatches.map(|id| id.short().to_owned()).collect());
    let agents = rollback.cancelled("failed_agents").into_iter().map(AgentId::from_ledger);
    still("agents still failed", agents.map(|id| id.short().to_owned()).collect());
    out
}
