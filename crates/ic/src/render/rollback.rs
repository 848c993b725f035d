//! A rollback at a glance, and the commits that it leaves behind.

use std::collections::HashMap;

use ic_base::{AgentId, DispatchId, RollbackId};
use ic_dispatch::Dispatch;
use ic_ops::rollback::code::{Entry, Report};
use ic_ops::rollback::steps::{Step, StepKind, StepState, next_command};
use ic_ops::rollback::table::{Remembered, RollbackStatus};
use ic_ops::rollback::{Plan, Rollback, Undone, Whole, WholeStatus};
use ic_runtrack::Agent;
use ic_saga::{Compensation, State};

use super::{Cell, Table, counted, path_text, plain, shell_word, style, styled};

/// What a rollback did, or would do.
pub(crate) fn summary(rollback: &Rollback) -> String {
    head(rollback) + &next(rollback)
}

fn head(rollback: &Rollback) -> String {
    let plan = &rollback.plan;
    let done = rollback.done.is_some();
    let what = if done { styled(style::BAD, "rolled back") } else { styled(style::WARN, "would roll back") };
    let mut out = format!(
        "{what} {} {}\n  {}\n",
        styled(style::STRONG, plan.run.id.short()),
        plain(&plan.run.goal),
        route(plan),
    );
    if let Some(reason) = &rollback.reason {
        out.push_str(&format!("  because {}\n", plain(reason)));
    }
    out.push('\n');
    out.push_str(&details(plan));
    let counts = plan.counts();
    out.push_str(&format!(
        "\n{}, {}, {}, {}, {}; what was recorded up to event {} stays.\n",
        counted(counts.phases, "phase"),
        counted(counts.dispatches, "dispatch"),
        counted(counts.artifacts, "artifact"),
        counted(counts.agents, "agent"),
        counted(counts.skips, "skip"),
        plan.cut.seq,
    ));
    out
}

/// `planned ← executing ← review`
fn route(plan: &Plan) -> String {
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

fn details(plan: &Plan) -> String {
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
    let text = table.render("Nothing was recorded since; only the phase moves.");
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
        Some(_) => {
            let target = if rollback.plan.include_target { " --include-target" } else { "" };
            format!(
                "to revert, before you advance again: ic run rollback {id} --layer=code --to-phase {to}{target}"
            )
        }
        None => format!("nothing was changed; exactly this plan: --expect-plan {}", rollback.plan_hash),
    };
    styled(style::DIM, &hint) + "\n"
}

/// The commits to revert, newest first, with phase and dispatch.
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
    table.render("No commits.")
}

/// A rollback over several layers, planned, done or stopped.
pub(crate) fn whole(whole: &Whole) -> String {
    let mut out = head(&whole.rollback);
    if let Some(effects) = &whole.parts.effects {
        let would =
            if whole.status == WholeStatus::Planned { "Effects, undone in this order:" } else { "Effects:" };
        out.push_str(&format!("\n{}\n", styled(style::STRONG, would)));
        for compensation in &effects.compensations {
            out.push_str(&format!("  {}  {}\n", plain(&compensation.step), effect(compensation)));
        }
        if effects.compensations.is_empty() {
            out.push_str("  none\n");
        }
        for left in &effects.left {
            out.push_str(&format!("  {} {}\n", styled(style::BAD, "stays"), left.short()));
        }
    }
    if let Some(tree) = &whole.parts.tree {
        out.push('\n');
        out.push_str(&super::checkpoint::report(tree));
    }
    if let Some(data) = &whole.parts.data {
        out.push_str(&format!("\n{} {}\n", styled(style::STRONG, "Rows of"), path_text(&data.database)));
        for (table, rows) in &data.rows {
            out.push_str(&format!("  {rows:>8}  {}\n", plain(table)));
        }
        out.push_str("  rows that were updated since are not restored\n");
    }
    out.push('\n');
    out.push_str(&outcome(whole));
    out
}

/// What it came to, and what can be done next.
fn outcome(whole: &Whole) -> String {
    let id = whole.rollback.done.as_ref().map_or("", |(id, _)| id.short());
    match whole.status {
        WholeStatus::Planned => next(&whole.rollback),
        WholeStatus::RolledBack => {
            styled(style::DIM, &format!("to take the rollback back: ic rollback undo {id}")) + "\n"
        }
        WholeStatus::RollingBack => format!(
            "{}{}\nto go on: ic rollback resume {id} --yes\n",
            steps(&whole.steps),
            styled(style::BAD, "The rollback is not finished; the run stays closed.")
        ),
    }
}

fn effect(compensation: &Compensation) -> String {
    match compensation.state {
        State::Done => styled(style::GOOD, "undone"),
        State::Skipped => styled(style::DIM, "left as it is"),
        State::Failed => {
            let why = compensation.last_error.as_deref().unwrap_or_default();
            format!("{}: {}", styled(style::BAD, "not undone"), plain(why))
        }
        _ => styled(style::DIM, compensation.action.kind()),
    }
}

fn steps(all: &[Step]) -> String {
    let mut table = Table::new(&["STEP", "STATE", "ABOUT"]);
    for step in all {
        let colour = match step.state {
            StepState::Done => style::GOOD,
            StepState::Failed => style::BAD,
            StepState::Running => style::WARN,
            StepState::Pending | StepState::Skipped => style::DIM,
        };
        table.row(vec![
            Cell::new(style::STRONG, step.kind.as_str()),
            Cell::new(colour, step.state.as_str()),
            Cell::new(style::DIM, step.error.as_deref().unwrap_or_default()),
        ]);
    }
    table.render("One transaction, no steps.")
}

/// Rollbacks, a line each.
pub(crate) fn list(all: &[Remembered]) -> String {
    let mut table = Table::new(&["ROLLBACK", "RUN", "STATUS", "FROM", "TO", "LAYERS", "CREATED", "REASON"]);
    for rollback in all {
        let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
        table.row(vec![
            Cell::new(style::STRONG, rollback.id.short()),
            rollback.run_id.short().into(),
            Cell::new(status_of(rollback.status), rollback.status.as_str()),
            rollback.from_phase.as_str().into(),
            rollback.to_phase.as_str().into(),
            layers.join(" ").as_str().into(),
            Cell::new(style::DIM, &rollback.created_at.to_string()[..16]),
            Cell::new(style::DIM, rollback.reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.render("No rollbacks.")
}

fn status_of(status: RollbackStatus) -> anstyle::Style {
    match status {
        RollbackStatus::Done => style::GOOD,
        RollbackStatus::InProgress => style::WARN,
        RollbackStatus::Stopped => style::BAD,
        RollbackStatus::Abandoned | RollbackStatus::Undone => style::DIM,
    }
}

/// One rollback and its steps.
pub(crate) fn show(rollback: &Remembered, all: &[Step]) -> String {
    let layers: Vec<&str> = rollback.layers.iter().map(|layer| layer.as_str()).collect();
    let mut out = format!(
        "{} {}  {} → {} of run {}  ({})\n",
        styled(style::STRONG, rollback.id.short()),
        styled(status_of(rollback.status), rollback.status.as_str()),
        plain(&rollback.from_phase),
        plain(&rollback.to_phase),
        rollback.run_id.short(),
        layers.join(", ")
    );
    if let Some(reason) = &rollback.reason {
        out.push_str(&format!("because {}\n", plain(reason)));
    }
    out.push_str(&format!(
        "begun {}; what was recorded after event {} is taken back\n\n",
        rollback.created_at, rollback.cut_seq
    ));
    out.push_str(&steps(all));
    if resume(rollback, all).is_some() {
        out.push_str(&format!("\n{}", ways_on(&rollback.id, all)));
    }
    out
}

/// What can be done about a rollback that is not finished.
fn ways_on(id: &RollbackId, all: &[Step]) -> String {
    let mut out = format!("to go on: {}\n", next_command(id, all));
    if all.iter().any(|step| step.state == StepState::Failed && step.kind != StepKind::Settle) {
        out.push_str(&format!("to leave it as it is: ic rollback resume {} --skip-step --yes\n", id.short()));
    }
    out + &format!("to give it up: ic rollback abandon {} --yes\n", id.short())
}

/// The command that goes on with a rollback; `None` when nothing is left to do.
pub(crate) fn resume(rollback: &Remembered, all: &[Step]) -> Option<String> {
    (!rollback.status.is_over()).then(|| next_command(&rollback.id, all))
}

/// The command that goes on taking a rollback back; `None` when nothing is left to do.
pub(crate) fn again(undone: &Undone) -> Option<String> {
    let id = undone.remembered.id.short();
    match (undone.seq, undone.remembered.status) {
        (Some(_), _) => None,
        (None, RollbackStatus::Done) if undone.effects.is_empty() => {
            Some(format!("ic rollback undo {id} --yes"))
        }
        (None, RollbackStatus::Done) => Some(format!("ic rollback undo {id} --without-effects --yes")),
        (None, _) => Some(format!("ic rollback abandon {id} --yes")),
    }
}

/// A rollback that was taken back, and what cannot be.
pub(crate) fn undone(undone: &Undone) -> String {
    let rollback = &undone.remembered;
    let mut out = match again(undone) {
        None => format!(
            "{} {}: the run {} is at {} again.\n",
            styled(style::GOOD, rollback.status.as_str()),
            rollback.id.short(),
            rollback.run_id.short(),
            plain(&rollback.from_phase)
        ),
        Some(command) => format!(
            "{} {}: some paths could not be put back.\nto go on: {command}\n",
            styled(style::BAD, "not finished"),
            rollback.id.short()
        ),
    };
    for tree in &undone.tree {
        out.push_str(&super::checkpoint::report(tree));
    }
    let mut left = |what: &str, stays: &str| {
        out.push_str(&format!("{} {what}: {stays}\n", styled(style::WARN, "left")));
    };
    for effect in &undone.effects {
        left(&plain(&effect.step), "its effect stays undone");
    }
    for id in rollback.cancelled("cancelled_dispatches") {
        left(&format!("dispatch {}", DispatchId::from_ledger(id).short()), "it stays cancelled");
    }
    for id in rollback.cancelled("failed_agents") {
        left(&format!("agent {}", AgentId::from_ledger(id).short()), "it stays failed");
    }
    out
}
