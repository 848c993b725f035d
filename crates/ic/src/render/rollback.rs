//! A rollback at a glance, and the commits that it leaves behind.

mod layered;
mod state;

use std::collections::HashMap;

use ic_dispatch::Dispatch;
use ic_journal::table::{RollbackRecord, RollbackStatus};
use ic_rollback::code::{Entry, Report};
use ic_rollback::{Plan, Rollback};
use ic_runtrack::Agent;

pub(crate) use layered::{layered, plan};
pub(crate) use state::{again, in_the_way, resume, show, undone};

use super::{Cell, Table, counted, path_text, plain, shell_word, style, styled, when};

/// What a rollback did, or would do.
pub(crate) fn summary(rollback: &Rollback) -> String {
    let stays = match rollback.done {
        Some(_) => "Files and commits stayed as they are: only the record was rolled back.",
        None => "Files and commits stay as they are: only the record is rolled back. With them: --layer=all",
    };
    format!("{}{stays}\n{}", head(rollback, true, false), next(rollback))
}

/// `has_effects`: effects are undone too, which are part of the record.
fn head(rollback: &Rollback, is_finished: bool, has_effects: bool) -> String {
    let plan = &rollback.plan;
    let is_of_one = plan.cut.only.is_some();
    let what = match (&rollback.done, is_finished) {
        (Some(_), true) if is_of_one => styled(style::BAD, "undone in"),
        (Some(_), false) if is_of_one => styled(style::WARN, "undoing in"),
        (None, _) if is_of_one => styled(style::WARN, "would undo in"),
        (Some(_), true) => styled(style::BAD, "rolled back"),
        (Some(_), false) => styled(style::WARN, "rolling back"),
        (None, _) => styled(style::WARN, "would roll back"),
    };
    let mut out = format!(
        "{what} {} {}\n  {}\n",
        styled(style::STRONG, plan.run.id.short()),
        plain(&plan.run.goal),
        route(plan),
    );
    if let Some(reason) = &rollback.reason {
        out.push_str(&format!("  because {}\n", plain(reason)));
    }
    if plan.reopens() {
        let said = match (&rollback.done, is_finished) {
            (Some(_), true) => "The run was completed: it is active again.",
            _ => "The run is completed: it becomes active again.",
        };
        out.push_str(&format!("  {}\n", styled(style::WARN, said)));
    }
    out.push('\n');
    out.push_str(&details(plan, has_effects));
    if is_of_one {
        out.push_str("\nOther work stays, before and after it; the run stays where it is.\n");
        return out;
    }
    for undo in &plan.reinstated {
        out.push_str(&format!(
            "  the undo {} of one dispatch is lifted: its work counts again\n",
            undo.short()
        ));
    }
    let counts = plan.counts();
    out.push_str(&format!(
        "\n{}, {}, {}, {}, {}; records up to event {} stay.\n",
        counted(counts.phases, "phase"),
        counted(counts.dispatches, "dispatch"),
        counted(counts.artifacts, "artifact"),
        counted(counts.agents, "agent"),
        counted(counts.skips, "skip"),
        plan.cut.seq,
    ));
    out
}

/// `planned ← executing ← review`, or `executing, before dispatch:3f9a12c4`
fn route(plan: &Plan) -> String {
    if let Some(only) = &plan.cut.only {
        return format!("only {}", styled(style::STRONG, &format!("dispatch:{}", only.short())));
    }
    if let Some(point) = &plan.point {
        let from = if plan.run.phase == plan.to_phase {
            String::new()
        } else {
            format!(" ← {}", plain(&plan.run.phase))
        };
        return format!("{}{from}, before {}", styled(style::STRONG, &plain(&plan.to_phase)), plain(point));
    }
    let mut stops: Vec<String> = Vec::new();
    for phase in plan.run.chain.names() {
        let leaves = plan.cut.phases.iter().any(|p| p == phase);
        if phase == plan.to_phase {
            let name = styled(style::STRONG, &plain(phase));
            stops.push(if plan.include_target { format!("{name} (redone)") } else { name });
        } else if leaves {
            stops.push(styled(style::DIM, &plain(phase)));
        }
    }
    stops.join(" ← ")
}

fn details(plan: &Plan, has_effects: bool) -> String {
    let mut table = Table::new(&["", "", "PHASE", "WAS", ""]);
    for d in &plan.cancelled_dispatches {
        table.row(dispatch_row("cancel", d));
    }
    for d in &plan.marked_dispatches {
        table.row(dispatch_row("mark", d));
    }
    for a in &plan.artifacts {
        table.row(vec![
            Cell::new(style::WARN, "mark"),
            format!("artifact {}", a.id.short()).as_str().into(),
            a.phase.as_str().into(),
            a.status.as_str().into(),
            path_text(&a.path).as_str().into(),
        ]);
    }
    for a in &plan.failed_agents {
        table.row(agent_row("fail", a));
    }
    for a in &plan.marked_agents {
        table.row(agent_row("mark", a));
    }
    for s in &plan.skips {
        table.row(vec![
            Cell::new(style::WARN, "clear"),
            "skip".into(),
            s.phase.as_str().into(),
            "skipped".into(),
            s.reason.as_deref().unwrap_or("").into(),
        ]);
    }
    let moves = match (has_effects, plan.reopens()) {
        (true, _) => "No dispatch, artifact, agent or skip is marked.",
        (false, true) => "In the record, only the phase and the status of the run change.",
        (false, false) => "In the record, only the phase changes.",
    };
    let text = table.render(moves);
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn dispatch_row(verb: &str, d: &Dispatch) -> Vec<Cell> {
    vec![
        Cell::new(style::BAD, verb),
        format!("dispatch {}", d.id.short()).as_str().into(),
        d.phase.as_str().into(),
        d.status.as_str().into(),
        d.work.name.as_deref().unwrap_or("").into(),
    ]
}

fn agent_row(verb: &str, a: &Agent) -> Vec<Cell> {
    vec![
        Cell::new(style::BAD, verb),
        format!("agent {}", a.id.short()).as_str().into(),
        a.phase.as_str().into(),
        a.status.as_str().into(),
        a.name.as_deref().unwrap_or("").into(),
    ]
}

fn next(rollback: &Rollback) -> String {
    let id = rollback.plan.run.id.short();
    let to = shell_word(&rollback.plan.to_phase);
    let hint = match &rollback.done {
        Some((rollback_id, _)) if rollback.plan.point.is_some() || rollback.plan.cut.only.is_some() => {
            format!("to bring it back: ic rollback undo {} --yes", rollback_id.short())
        }
        Some(_) => {
            let target = if rollback.plan.include_target { " --include-target" } else { "" };
            format!(
                "to see which commits to revert, before you advance again: ic run rollback {id} --layer=code --to-phase {to}{target}"
            )
        }
        None => format!("nothing was changed; exactly this plan: --expect-plan {}", rollback.plan_hash),
    };
    styled(style::DIM, &hint) + "\n"
}

/// The commits to revert, newest first, and the files that were recorded, with phase and dispatch.
pub(crate) fn code(report: &Report) -> String {
    let mut origin: HashMap<&str, &Entry> = HashMap::new();
    for entry in report.entries.iter().rev() {
        for sha in &entry.commits {
            origin.insert(sha, entry);
        }
    }
    let mut table = Table::headless();
    for sha in &report.revert_order {
        let entry = origin.get(sha.as_str());
        let dispatch = entry.map(|e| &e.dispatch);
        let late = if entry.is_some_and(|e| e.late) { ", late" } else { "" };
        table.row(vec![
            Cell::new(style::STRONG, sha),
            dispatch.map_or("", |d| d.phase.as_str()).into(),
            dispatch.map_or("", |d| d.id.short()).into(),
            format!("{}{late}", dispatch.map_or("", |d| d.status.as_str())).as_str().into(),
            dispatch.and_then(|d| d.work.name.as_deref()).unwrap_or("").into(),
        ]);
    }
    table.render("No commits.") + &files_of(report)
}

/// The files that each dispatch recorded.
fn files_of(report: &Report) -> String {
    let mut table = Table::headless();
    for entry in &report.entries {
        for file in &entry.files {
            table.row(vec![
                "".into(),
                Cell::new(style::STRONG, &path_text(file)),
                entry.dispatch.phase.as_str().into(),
                entry.dispatch.id.short().into(),
            ]);
        }
    }
    let files = table.render("");
    if report.entries.iter().all(|entry| entry.files.is_empty()) {
        String::new()
    } else {
        format!("\nFiles\n{files}")
    }
}

/// Rollbacks, a line each.
pub(crate) fn list(all: &[RollbackRecord], now: ic_base::Timestamp) -> String {
    let mut table = Table::new(&["ROLLBACK", "RUN", "STATUS", "FROM", "TO", "LAYERS", "CREATED", "REASON"]);
    for rollback in all {
        let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
        table.row(vec![
            Cell::new(style::STRONG, rollback.id.short()),
            rollback.run_id.short().into(),
            Cell::new(status_of(rollback.status), rollback.status.as_str()),
            rollback.from_phase.as_str().into(),
            where_to(rollback).as_str().into(),
            layers.join(" ").as_str().into(),
            Cell::new(style::DIM, &when(now, rollback.created_at)),
            Cell::new(style::DIM, rollback.reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.render("No rollbacks.")
}

/// Where a rollback went: a phase, or nowhere.
pub(crate) fn where_to(rollback: &RollbackRecord) -> String {
    match rollback.only() {
        Some(only) => format!("only dispatch:{}", only.short()),
        None => rollback.to_phase.clone(),
    }
}

fn status_of(status: RollbackStatus) -> anstyle::Style {
    match status {
        RollbackStatus::Done => style::GOOD,
        RollbackStatus::InProgress => style::WARN,
        RollbackStatus::Stopped => style::BAD,
        RollbackStatus::Aborted | RollbackStatus::Undone => style::DIM,
    }
}
