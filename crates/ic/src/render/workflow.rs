//! Workflows: what would run, what became of it.

use ic_base::CompensationId;
use ic_rollback::LayeredRollback;
use ic_saga::coverage::{CompensationReport, Coverage};
use ic_workflow::definition::Run;
use ic_workflow::graph::Plan;
use ic_workflow::table::StepState;
use ic_workflow::{Definition, Point, Preview, Report, Status, StepReport, TakenBack, Would};

use super::rollback;
use super::{Cell, Table, compensation, counted, path_text, plain, shell_word, style, styled};

/// What a workflow would run, in order, and what can be undone.
pub(crate) fn plan(definition: &Definition, report: &CompensationReport) -> String {
    let mut text = format!(
        "{}: {}\n\n",
        styled(style::STRONG, &plain(&definition.name)),
        plain(&definition.phases.join(" → "))
    );
    let mut table = Table::new(&["STEP", "PHASE", "NEEDS", "UNDO", "RUNS"]);
    for at in Plan::of(definition).order().iter().copied() {
        let step = &definition.steps[at];
        let needs: Vec<&str> = step.needs.iter().map(|need| definition.steps[*need].id.as_str()).collect();
        let run = match &step.run {
            Run::Script { text, .. } => text.lines().next().unwrap_or_default().to_owned(),
            Run::Argv(argv) => argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        };
        let undo = report.steps.get(at).map_or(Coverage::Undeclared, |step| step.1);
        let undo_style = if undo == Coverage::Undeclared { style::WARN } else { style::NONE };
        table.row(vec![
            Cell::new(style::STRONG, &step.id),
            step.phase.as_str().into(),
            needs.join(" ").as_str().into(),
            Cell::new(undo_style, undo.as_str()),
            Cell::new(style::DIM, &run),
        ]);
    }
    text.push_str(&table.render("No steps."));
    if !report.is_complete() {
        text.push_str(&format!("\n{}\n", plain(&undeclared(report))));
    }
    text
}

/// What rolling a workflow back would do.
pub(crate) fn rollback_plan(preview: &Preview) -> String {
    would(preview, rollback::plan)
}

/// The same, with why it would be refused, or how to do this and nothing else.
pub(crate) fn rollback_preview(preview: &Preview) -> String {
    would(preview, |whole| rollback::layered(whole, None))
}

fn would(preview: &Preview, plan_text: fn(&LayeredRollback) -> String) -> String {
    let name = styled(style::STRONG, &plain(&preview.workflow));
    let plan = match &preview.would {
        Would::Begin(plan) => plan,
        Would::Resume(begun) => {
            let (remembered, steps) = begun.as_ref();
            return format!(
                "{name}: this rollback would be resumed\n\n{}",
                rollback::show(remembered, steps, false, None)
            );
        }
    };
    let at = again_at(&plan.whole.rollback.plan.to_phase, &plan.before_steps);
    let mut out = format!("{name}: it would be at {}\n", plain(&at));
    if let Some(why) = plan.stays {
        out.push_str(&format!("{} {why}\n", styled(style::WARN, "note:")));
    }
    out + "\n" + &plan_text(&plan.whole)
}

/// Which steps do not say what undoes them.
pub(crate) fn undeclared(report: &CompensationReport) -> String {
    format!(
        "{} of {} declare their undo ({}%); these do not: {}",
        report.total - report.undeclared.len(),
        counted(report.total, "step"),
        report.percentage,
        report.undeclared.join(", ")
    )
}

/// How long something took, for people.
pub(crate) fn took(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// How far a workflow is.
pub(crate) fn state(report: &Report) -> String {
    format!("{}\n{}\n", steps(report), verdict(report))
}

/// What became of a workflow, and how to go on with it.
pub(crate) fn report(report: &Report) -> String {
    let mut text = steps(report);
    let failed = report.steps.iter().find(|step| Some(&step.id) == report.failed_step.as_ref());
    if let Some(log) = failed.and_then(|step| step.row.as_ref()).and_then(|row| row.log.as_ref()) {
        text.push_str(&format!("\nlog: {}\n", path_text(log)));
    }
    if let Some(taken) = &report.rollback {
        text.push('\n');
        text.push_str(&taken_back(report, taken));
    }
    text.push_str(&format!("\n{}\n", verdict(report)));
    if let Some(command) = resume(report) {
        let when = match report.status {
            Status::RolledBack => "to run it again",
            _ => "to resume",
        };
        text.push_str(&format!("{}\n", styled(style::DIM, &format!("{when}: {command}"))));
    }
    text
}

fn steps(report: &Report) -> String {
    let mut table = Table::new(&["STEP", "PHASE", "STATE", "TOOK", "ABOUT"]);
    for step in &report.steps {
        let row = step.row.as_ref();
        let state_style = match step.state {
            _ if step.is_rolled_back => style::DIM,
            StepState::Succeeded => style::GOOD,
            StepState::Failed | StepState::Interrupted => style::BAD,
            StepState::Running => style::WARN,
            StepState::Pending | StepState::Skipped => style::DIM,
        };
        let about = row.and_then(|row| row.error.as_deref()).unwrap_or_default();
        table.row(vec![
            Cell::new(style::STRONG, &step.id),
            step.phase.as_str().into(),
            Cell::new(state_style, step.shown()),
            row.and_then(|row| row.duration_ms).map(took).unwrap_or_default().as_str().into(),
            Cell::new(style::DIM, about),
        ]);
    }
    table.render("No steps.")
}

fn taken_back(report: &Report, taken: &TakenBack) -> String {
    let mut table = Table::headless();
    taken.compensations.iter().for_each(|one| table.row(compensation::result(one)));
    let is_tried = |id: &CompensationId| taken.compensations.iter().any(|one| one.id == *id);
    for id in taken.left.iter().filter(|id| !is_tried(id)) {
        let of =
            |step: &&StepReport| step.row.as_ref().and_then(|row| row.compensation_id.as_ref()) == Some(id);
        let step = report.steps.iter().find(of).map_or(id.short(), |step| step.id.as_str());
        table.row(vec!["".into(), Cell::new(style::DIM, "left   "), Cell::new(style::STRONG, step)]);
    }
    let is_empty = taken.compensations.is_empty() && taken.left.is_empty();
    let mut text = if is_empty { String::new() } else { table.render("") };
    if let Some(restored) = &taken.restored {
        let checkpoint = restored.checkpoint_id.short();
        text.push_str(&match (restored.changes, restored.git) {
            (0, false) => format!("the tree was as in checkpoint {checkpoint} already\n"),
            (0, true) => format!("restored git's state from checkpoint {checkpoint}\n"),
            (changes, false) => format!("restored checkpoint {checkpoint}: {}\n", counted(changes, "change")),
            (changes, true) => {
                format!("restored checkpoint {checkpoint}: {}, and git's state\n", counted(changes, "change"))
            }
        });
        for (word, pairs) in [
            ("not restored:", &restored.failed),
            ("left alone:", &restored.skipped),
            ("not compared:", &restored.not_compared),
            ("not kept:", &restored.not_kept),
            ("differs:", &restored.differs),
        ] {
            for (path, why) in pairs {
                let word = styled(style::BAD, word);
                text.push_str(&format!("{word} {}: {}\n", path_text(path), plain(why)));
            }
        }
    }
    if let Some(error) = taken.error.as_ref().filter(|_| !has_failed_paths(taken)) {
        text.push_str(&format!("{} {}\n", styled(style::BAD, "stopped:"), plain(error)));
        if let Some(hint) = &taken.hint {
            text.push_str(&format!("hint: {}\n", plain(hint)));
        }
    }
    text
}

fn has_failed_paths(taken: &TakenBack) -> bool {
    taken.restored.as_ref().is_some_and(|restored| !restored.failed.is_empty())
}

/// What became of it, in a sentence.
fn verdict(report: &Report) -> String {
    let run = report.run_id.short();
    let name = plain(&report.workflow);
    match report.status {
        Status::Completed => {
            format!("{} {name} is completed (run {run}).", styled(style::GOOD, "Done."))
        }
        Status::RolledBack => {
            let at = match &report.rollback {
                Some(taken) => again_at(&taken.to_phase, &taken.before_steps),
                None => standing(report),
            };
            let restored = report.rollback.as_ref().and_then(|taken| taken.restored.as_ref());
            let is_exact = restored.is_none_or(|restored| {
                [&restored.skipped, &restored.not_kept, &restored.differs].iter().all(|all| all.is_empty())
            });
            let done = if is_exact {
                styled(style::GOOD, "Rolled back.")
            } else {
                styled(style::WARN, "Rolled back, but for what is named above.")
            };
            format!("{done} The run {run} is at {}.", plain(&at))
        }
        Status::RollingBack => {
            let unfinished = styled(style::BAD, "The rollback is not finished.");
            format!("{unfinished} The run {run} stays closed until it is.")
        }
        Status::Failed => format!(
            "{} {}; what does not need it was run.",
            styled(style::BAD, "Failed."),
            what_happened(report)
        ),
        Status::Stopped => {
            format!("{} {}; nothing was rolled back.", styled(style::WARN, "Stopped."), what_happened(report))
        }
        Status::Running => format!("The run {run} is running, or was interrupted."),
        Status::Cancelled => {
            format!("{} Its run {run} is not active any more.", styled(style::WARN, "Cancelled."))
        }
    }
}

/// `built again, before the step test`.
fn again_at(phase: &str, before: &[String]) -> String {
    match before {
        [] => format!("{phase} again"),
        [step] => format!("{phase} again, before the step {step}"),
        steps => format!("{phase} again, before the steps {}", steps.join(" and ")),
    }
}

/// Where a workflow stands that was rolled back earlier.
fn standing(report: &Report) -> String {
    let ahead = report.steps.iter().find(|step| Some(&step.id) == report.ahead.as_ref());
    ahead.map_or_else(
        || "its first phase again".to_owned(),
        |step| again_at(&step.phase, std::slice::from_ref(&step.id)),
    )
}

/// The points that a workflow can be rolled back to, numbered.
pub(crate) fn points(points: &[Point]) -> String {
    let mut table = Table::new(&["", "BEFORE", "PHASE", "CHECKPOINT", "TAKEN"]);
    for (at, point) in points.iter().enumerate() {
        let all = if point.is_first { " (all of it)" } else { "" };
        table.row(vec![
            format!("{}", at + 1).as_str().into(),
            Cell::new(style::STRONG, &format!("{}{all}", point.steps.join(" and "))),
            point.phase.as_str().into(),
            point.checkpoint.id.short().into(),
            Cell::new(style::DIM, &point.checkpoint.created_at.to_string()),
        ]);
    }
    table.render("No points.")
}

/// `build failed`.
fn what_happened(report: &Report) -> String {
    let step = report.steps.iter().find(|step| Some(&step.id) == report.failed_step.as_ref());
    match step {
        Some(step) if step.state == StepState::Interrupted => format!("{} was interrupted", plain(&step.id)),
        Some(step) => format!("{} failed", plain(&step.id)),
        None => "No further step was begun".to_owned(),
    }
}

/// The command that goes on with a workflow; `None` when nothing is left to do.
pub(crate) fn resume(report: &Report) -> Option<String> {
    let run = report.run_id.short();
    match report.status {
        Status::Completed | Status::Cancelled => None,
        Status::RollingBack => Some(format!("ic workflow resume {run} --yes")),
        Status::RolledBack | Status::Failed | Status::Stopped | Status::Running => {
            Some(format!("ic workflow resume {run}"))
        }
    }
}
