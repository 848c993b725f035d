//! Runs, advances and gates.

use ic_base::{Label, Timestamp};
use ic_dispatch::dispatch::Tokens;
use ic_dispatch::spent::{self, Spent};
use ic_events::EventType;
use ic_ops::advance::Outcome;
use ic_ops::run::{Cancelled, Part, Reopened, Worker};
use ic_phase::gate::{Check, Condition, Unfinished};
use ic_phase::{Run, RunStatus};

use super::{Cell, Table, counted, path_text, plain, shell_word, style, styled, when};
use crate::json::GateRuleJson;

/// Runs, one a line.
pub(crate) fn table(runs: &[Run], now: Timestamp) -> String {
    let mut table = Table::new(&["RUN", "STATUS", "PHASE", "EPOCH", "CREATED", "GOAL"]);
    for run in runs {
        table.row(vec![
            Cell::new(style::STRONG, run.id.short()),
            Cell::new(status_style(run.status), run.status.as_str()),
            run.phase.as_str().into(),
            run.epoch.to_string().as_str().into(),
            Cell::new(style::DIM, &when(now, run.created_at)),
            run.goal.as_str().into(),
        ]);
    }
    table.render("No runs.")
}

fn status_style(status: RunStatus) -> anstyle::Style {
    match status {
        RunStatus::Active => style::NONE,
        RunStatus::RollingBack => style::WARN,
        RunStatus::Completed => style::GOOD,
        RunStatus::Cancelled | RunStatus::Failed => style::BAD,
    }
}

/// One run with its chain drawn.
pub(crate) fn card(run: &Run, skipped: &[String], spent: &[Spent]) -> String {
    let mut out = format!("{}  {}\n", styled(style::STRONG, run.id.short()), plain(&run.goal));
    let mut line = |label: &str, value: &str| {
        out.push_str(&format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<9}"))));
    };
    let mut state = styled(status_style(run.status), run.status.as_str());
    if !run.auto_advance {
        state.push_str(", auto-advance is off");
    }
    line("status", &state);
    line("chain", &chain(run, skipped));
    line("epoch", &run.epoch.to_string());
    if let Some(scope) = &run.scope_id {
        line("scope", &plain(scope));
    }
    if let Some(complexity) = run.complexity {
        line("work", &format!("{complexity} of 5"));
    }
    if let Some(tokens) = tokens(spent) {
        line("tokens", &tokens);
    }
    if run.metadata != "{}" {
        line("metadata", &plain(&run.metadata));
    }
    line("project", &path_text(&run.project_dir));
    line("created", &run.created_at.to_string());
    match run.completed_at {
        Some(completed) => line("completed", &completed.to_string()),
        None => line("updated", &run.updated_at.to_string()),
    }
    line("id", run.id.as_str());
    out
}

/// `12000 in, 3400 out, 0 cached`, and what of it was rolled back; `None` where no work told of any.
fn tokens(spent: &[Spent]) -> Option<String> {
    let (all, rolled_back) = spent::total(spent);
    let told = |t: Tokens| format!("{} in, {} out, {} cached", t.input, t.output, t.cache);
    let part = |t: Tokens| {
        if t == Tokens::default() { String::new() } else { format!("; rolled back of it: {}", told(t)) }
    };
    (all != Tokens::default()).then(|| told(all) + &part(rolled_back))
}

/// `✓ a  ▶ b  · c  ⤼ d  · e`
fn chain(run: &Run, skipped: &[String]) -> String {
    let current = run.chain.index_of(&run.phase).unwrap_or(0);
    let done = run.completed_at.is_some();
    let phases: Vec<String> = run
        .chain
        .names()
        .iter()
        .enumerate()
        .map(|(i, phase)| {
            let name = plain(phase);
            if skipped.iter().any(|s| s == phase) {
                styled(style::DIM, &format!("({name})"))
            } else if i < current || done {
                styled(style::GOOD, &format!("✓ {name}"))
            } else if i == current {
                styled(style::STRONG, &format!("▶ {name}"))
            } else {
                styled(style::DIM, &name)
            }
        })
        .collect();
    phases.join("  ")
}

/// What became of an advance.
pub(crate) fn advance(outcome: &Outcome) -> String {
    let (from, to) = (plain(&outcome.from), plain(&outcome.to));
    let mut out = match outcome.event_type {
        EventType::Advance => {
            format!("{} {from} → {}\n", styled(style::GOOD, "advanced"), styled(style::STRONG, &to))
        }
        EventType::Override => {
            format!("{} {from} → {}\n", styled(style::WARN, "overridden"), styled(style::STRONG, &to))
        }
        EventType::Pause => format!("{} at {from}: auto-advance is off\n", styled(style::WARN, "paused")),
        _ => format!("{} at {from}: the gate to {to} does not hold\n", styled(style::BAD, "blocked")),
    };
    out.push_str(&conditions(&outcome.verdict.conditions));
    out.push_str(&way_out(outcome));
    out
}

/// What an advance would do.
pub(crate) fn gate_check(outcome: &Outcome) -> String {
    let (from, to) = (plain(&outcome.from), plain(&outcome.to));
    let mut out = match outcome.event_type {
        EventType::Advance => format!("{from} → {to}: {}\n", styled(style::GOOD, "would advance")),
        EventType::Pause => {
            format!("{from} → {to}: {}, auto-advance is off\n", styled(style::WARN, "would pause"))
        }
        _ => format!("{from} → {to}: {}\n", styled(style::BAD, "would be blocked")),
    };
    out.push_str(&conditions(&outcome.verdict.conditions));
    out.push_str(&way_out(outcome));
    out
}

fn conditions(conditions: &[Condition]) -> String {
    conditions
        .iter()
        .map(|c| {
            let mark = if c.holds { styled(style::GOOD, "✓") } else { styled(style::BAD, "✗") };
            let tier = styled(style::DIM, &format!("({})", c.tier.as_str()));
            let waits: String = c.unfinished.iter().map(unfinished).collect();
            format!("  {mark} {}: {} {tier}\n{waits}", c.check.as_str(), plain(&c.detail))
        })
        .collect()
}

/// One piece of work that a gate waits for, with the command that ends it.
fn unfinished(work: &Unfinished) -> String {
    let name = work.name.as_deref().map(|name| format!(" {}", plain(name))).unwrap_or_default();
    let commands: Vec<&str> =
        [&work.command].into_iter().chain(&work.other_commands).map(String::as_str).collect();
    let commands = styled(style::DIM, &commands.join(", or "));
    format!("      {} {}{name} is {}: {commands}\n", work.kind, work.short_id, work.status)
}

fn way_out(outcome: &Outcome) -> String {
    let id = outcome.run_id.short();
    match outcome.event_type {
        EventType::Block => {
            missing(outcome)
                + &styled(style::DIM, &format!("  to override it: ic gate override {id} --reason WHY"))
                + "\n"
        }
        EventType::Pause => {
            styled(
                style::DIM,
                &format!(
                    "  to advance: ic gate override {id} --reason WHY, or ic run set {id} --auto-advance true"
                ),
            ) + "\n"
        }
        _ => String::new(),
    }
}

/// How to give a gate the artifact that it asks for, if it asks for one.
fn missing(outcome: &Outcome) -> String {
    let is_missing = |condition: &&Condition| !condition.holds && condition.check == Check::ArtifactExists;
    let Some(condition) = outcome.verdict.conditions.iter().find(is_missing) else { return String::new() };
    let elsewhere = condition.phase.as_ref().map(Label::as_str).filter(|phase| *phase != outcome.from);
    let phase = elsewhere.map(|phase| format!(" --phase {}", shell_word(phase))).unwrap_or_default();
    let id = outcome.run_id.short();
    styled(style::DIM, &format!("  to register one: ic run artifact add {id} --path FILE{phase}")) + "\n"
}

/// A run that was called off, and the processes that were ended or still work for it, one a line. `stops`: they were to be ended.
pub(crate) fn cancelled(cancelled: &Cancelled, stops: bool) -> String {
    let with = match (cancelled.dispatches.len(), cancelled.agents.len()) {
        (0, 0) => String::new(),
        (dispatches, agents) => {
            format!(", with {} and {}", counted(dispatches, "dispatch"), counted(agents, "agent"))
        }
    };
    let id = cancelled.run.id.short();
    let mut text = if cancelled.changed {
        format!("{} {id}{with}.\n", styled(style::BAD, "cancelled"))
    } else {
        format!("{id} was cancelled before.\n")
    };
    text.extend(cancelled.stopped.iter().map(|one| worker("stopped", one)));
    text.extend(cancelled.still_running.iter().map(|one| worker("still running", one)));
    let is_of_workflow = |worker: &Worker| !matches!(worker.part, Part::Dispatch(_));
    if stops && cancelled.stopped.is_empty() && !cancelled.still_running.iter().any(is_of_workflow) {
        text += "  no process of its workflow was running\n";
    } else if !stops && cancelled.still_running.iter().any(is_of_workflow) {
        let way = format!("  to end what its workflow runs: ic run cancel {id} --stop");
        text += &format!("{}\n", styled(style::DIM, &way));
    }
    text
}

fn worker(how: &str, worker: &Worker) -> String {
    let what = match &worker.part {
        Part::Executor => "the executor of its workflow".to_owned(),
        Part::Step(step) => format!("step {}", plain(step)),
        Part::Dispatch(id) => format!("dispatch {}", id.short()),
    };
    let pid = worker.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let why = worker.error.as_deref().map(|error| format!(": {}", plain(error))).unwrap_or_default();
    format!("  {how:<13}  {what}{pid}{why}\n")
}

/// A run that is active again, and what stays ended, one a line.
pub(crate) fn reopened(reopened: &Reopened) -> String {
    let (id, phase) = (reopened.run.id.short(), plain(&reopened.run.phase));
    let mut text = format!("{} {id}, at {phase}.\n", styled(style::GOOD, "reopened"));
    for dispatch in &reopened.dispatches {
        text += &format!("  stays cancelled  dispatch {}\n", dispatch.id.short());
    }
    for agent in &reopened.agents {
        text += &format!("  stays failed     agent {}\n", agent.id.short());
    }
    text
}

/// What must hold, one requirement a line.
pub(crate) fn rules(rules: &[GateRuleJson]) -> String {
    let mut table = Table::new(&["FROM", "TO", "CHECK", "OF", "TIER"]);
    for rule in rules {
        for check in &rule.checks {
            table.row(vec![
                rule.from_phase.as_str().into(),
                rule.to_phase.as_str().into(),
                check.check.into(),
                check.phase.as_deref().unwrap_or("the run").into(),
                check.tier.into(),
            ]);
        }
    }
    table.render("No gates.")
}
