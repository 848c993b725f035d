//! One rollback: how far it is, what it did, which way it goes, and the commands that lead on.

use ic_base::{AgentId, CheckpointId, Diagnosis, DispatchId, RollbackId, shell_word};
use ic_journal::made::{Made, safety_of};
use ic_journal::steps::{self, Course, Step, StepKind, StepState, course, next_command};
use ic_journal::table::{RollbackRecord, RollbackStatus};
use ic_rollback::Undone;
use ic_saga::State;

use super::layered::{rows, tree};
use super::{status_of, where_to};
use crate::render::{Cell, Table, counted, plain, style, styled};

/// One rollback and its steps. `files_alone`: the checkpoint that has the files of before, where git's state of before was purged.
pub(crate) fn show(
    rollback: &RollbackRecord,
    all: &[Step],
    is_at_work: bool,
    files_alone: Option<&CheckpointId>,
) -> String {
    let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
    let route = match rollback.only() {
        Some(_) => where_to(rollback),
        None => format!("{} → {}", plain(&rollback.from_phase), plain(&rollback.to_phase)),
    };
    let mut out = format!(
        "{} {}  {route} of run {}  ({})\n",
        styled(style::STRONG, rollback.id.short()),
        styled(status_of(rollback.status), rollback.status.as_str()),
        rollback.run_id.short(),
        layers.join(", ")
    );
    if let Some(reason) = &rollback.reason {
        out.push_str(&format!("because {}\n", plain(reason)));
    }
    let (stands, way_back) = match rollback.status {
        RollbackStatus::Aborted => ("was to be", "It was aborted: the run is where it was.\n"),
        RollbackStatus::Undone => ("was", "It was undone itself: what it had marked counts again.\n"),
        RollbackStatus::InProgress | RollbackStatus::Stopped | RollbackStatus::Done => ("is", ""),
    };
    let what = match rollback.only() {
        Some(_) => "what this dispatch alone did".to_owned(),
        None => format!("what was recorded after event {}", rollback.cut_seq),
    };
    out.push_str(&format!("begun {}; {what} {stands} rolled back\n\n", rollback.created_at));
    if rollback.status.stands() {
        out.push_str(&steps(all));
        out.push_str(&files_alone.map(|safety| format!("\n{}\n", purged(safety))).unwrap_or_default());
    } else {
        out.push_str(way_back);
        out.push_str(&not_put_back(rollback, all, files_alone));
    }
    if is_at_work {
        out.push_str("\nanother process is executing it; if that process dies, this shows the commands that resume it\n");
    } else if resume(rollback, all).is_some() {
        out.push_str(&format!("\n{}", ways_on(&rollback.id, all, files_alone)));
    }
    out
}

/// What is said in place of a way back that would be refused.
pub(super) fn purged(safety: &CheckpointId) -> String {
    format!(
        "git's earlier state has content that was purged, and cannot be restored; to restore the files alone: ic checkpoint restore {} \
         --strategy files-only --yes",
        safety.short()
    )
}

/// What was passed over, where it is kept, and the command that puts it back; empty if nothing was.
fn not_put_back(rollback: &RollbackRecord, all: &[Step], files_alone: Option<&CheckpointId>) -> String {
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
            _ => match safety_of(step).first() {
                Some(id) => format!("files and git, as checkpoint {} has them", id.short()),
                None => "files and git".to_owned(),
            },
        };
        out.push_str(&format!("{}: {kept}\n", styled(style::WARN, "not restored")));
    }
    match files_alone {
        Some(safety) => format!("{out}{}\n", purged(safety)),
        None => out + &format!("to restore it: ic rollback undo {} --yes\n", rollback.id.short()),
    }
}

pub(super) fn steps(all: &[Step]) -> String {
    let is_back = course(all).is_back();
    let mut table = Table::new(&["STEP", "STATE", "ABOUT"]);
    for step in all {
        let colour = match step.state {
            StepState::Done => style::GOOD,
            StepState::Failed => style::BAD,
            StepState::Running => style::WARN,
            StepState::Pending | StepState::Skipped => style::DIM,
        };
        let is_outside = matches!(step.kind, StepKind::Tree | StepKind::Data);
        let state = match step.state {
            StepState::Done if is_back && is_outside => "to be restored",
            // In words, where JSON has a name.
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

/// What a step did, in a few words.
fn about(step: &Step) -> String {
    if step.state != StepState::Done {
        return String::new();
    }
    match Made::by(step) {
        Made::Effects { undone, skipped, .. } => {
            let names: Vec<_> = skipped.iter().map(|name| plain(name)).collect();
            let left =
                if names.is_empty() { String::new() } else { format!("; skipped: {}", names.join(", ")) };
            format!("{} undone{left}", counted(undone, "effect"))
        }
        Made::Tree { paths, safety } => {
            let kept = safety.map(|id| format!("; the old content is in checkpoint {}", id.short()));
            format!("{} restored{}", counted(paths, "path"), kept.unwrap_or_default())
        }
        Made::Data { rows } => {
            let rows = usize::try_from(rows.values().sum::<u64>()).unwrap_or(usize::MAX);
            format!("{} deleted", counted(rows, "row"))
        }
        Made::Settle => String::new(),
    }
}

/// What can be done about a rollback that is not finished.
pub(super) fn ways_on(id: &RollbackId, all: &[Step], files_alone: Option<&CheckpointId>) -> String {
    let (doing, give_up) = match course(all) {
        // To abort it would bring git's state of before back.
        Course::Forward => ("", files_alone.is_none().then_some("to abort it, and be where the run was")),
        Course::Undo => ("it is being undone; ", Some("to leave it rolled back")),
        Course::Abort => ("it is being aborted; ", None),
        Course::Reapply => ("its undo was aborted; ", None),
    };
    let (id, go_on) = (id.short(), next_command(id, all));
    let mut out = format!("{doing}to resume: {go_on}\n");
    let failed = all.iter().find(|step| step.state == StepState::Failed && step.kind != StepKind::Settle);
    if let Some(failed) = failed {
        if let Some(effect) = steps::failed_effect(failed) {
            let step = shell_word(effect);
            out.push_str(&format!(
                "to skip the effect of {}: ic rollback resume {id} --skip-effect {step} --reason WHY --yes\n",
                plain(effect)
            ));
        }
        let what = match failed.kind {
            StepKind::Effects => "all effects that are left",
            StepKind::Tree => "files and git",
            StepKind::Data | StepKind::Settle => "the rows",
        };
        out.push_str(&format!("to skip {what}: ic rollback resume {id} --skip-step --reason WHY --yes\n"));
    }
    let give_up = give_up.map(|what| format!("{what}: ic rollback abort {id} --yes\n"));
    out + &give_up.unwrap_or_default()
}

/// The command that resumes a rollback; `None` when nothing is left to do.
pub(crate) fn resume(rollback: &RollbackRecord, all: &[Step]) -> Option<String> {
    (!rollback.status.is_over()).then(|| next_command(&rollback.id, all))
}

/// The command that resumes the undo of a rollback; `None` when nothing is left to do.
pub(crate) fn again(undone: &Undone) -> Option<String> {
    (undone.seq.is_none() && !undone.is_dry_run).then(|| next_command(&undone.remembered.id, &undone.steps))
}

/// Why nobody can say what a way back would do.
pub(crate) fn in_the_way(error: &Diagnosis) -> String {
    format!("{}: {}\n", styled(style::WARN, "in the way"), plain(error.message()))
}

fn would_be_undone(undone: &Undone) -> String {
    let rollback = &undone.remembered;
    let (id, run) = (rollback.id.short(), rollback.run_id.short());
    if rollback.only().is_some() && !undone.is_rest {
        let head = if undone.course == Course::Reapply { "would stand" } else { "would undo" };
        return format!("{} {id}: {}.\n", styled(style::WARN, head), plain(&where_to(rollback)));
    }
    if undone.is_rest {
        let head = styled(style::WARN, "would undo");
        return format!("{head} what was left of {id}; the run {run} would stay where it is.\n");
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

/// How a way back ended.
fn ended(undone: &Undone) -> String {
    let rollback = &undone.remembered;
    let (id, run) = (rollback.id.short(), rollback.run_id.short());
    let stands = undone.course == Course::Reapply;
    match rollback.only() {
        _ if undone.is_rest => {
            let done = styled(style::GOOD, "undone");
            format!("{done} what was left of {id}; the run {run} stays where it is.\n")
        }
        Some(_) => {
            let state = if stands { "stands" } else { rollback.status.as_str() };
            let back = if stands { "undone" } else { "back" };
            let what = plain(&where_to(rollback));
            format!("{} {id}: {what} is {back} in the run {run}.\n", styled(style::GOOD, state))
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

/// A rollback that was undone or aborted, or would be, and what cannot be. `files_alone`: as of [`show`].
pub(crate) fn undone(undone: &Undone, files_alone: Option<&CheckpointId>) -> String {
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
        out.push_str(&tree(report, &[]));
    }
    if let Some(data) = undone.data.as_ref().filter(|data| data.rows.iter().any(|(_, rows)| *rows > 0)) {
        let title = match (undone.is_dry_run, stands) {
            (true, true) => "Rows that would be deleted",
            (true, false) => "Rows that would be restored",
            (false, true) => "Rows deleted",
            (false, false) => "Rows restored",
        };
        out.push_str(&format!("\n{}{}", styled(style::STRONG, title), rows(data, "")));
    }
    if stands || undone.is_rest {
        return out;
    }
    out.push_str(&not_put_back(rollback, &undone.steps, files_alone));
    let mut still = |what: &str, all: Vec<String>| {
        if !all.is_empty() {
            out.push_str(&format!("{}: {}\n", styled(style::WARN, what), all.join(", ")));
        }
    };
    let (cut_off, gone): (Vec<_>, Vec<_>) =
        undone.effects.iter().partition(|one| one.is_cut_off() || one.state == State::Running);
    still("still undone, not made again", gone.iter().map(|one| plain(&one.step)).collect());
    still("perhaps undone, interrupted half way", cut_off.iter().map(|one| plain(&one.step)).collect());
    let dispatches = rollback.cancelled("cancelled_dispatches").into_iter().map(DispatchId::from_ledger);
    still("dispatches still cancelled", dispatches.map(|id| id.short().to_owned()).collect());
    let agents = rollback.cancelled("failed_agents").into_iter().map(AgentId::from_ledger);
    still("agents still failed", agents.map(|id| id.short().to_owned()).collect());
    out
}
