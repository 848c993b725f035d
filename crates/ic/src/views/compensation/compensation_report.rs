//! The undo of a run's effects, planned or done.

use ic_effects::{Compensation, CompensationState};
use ic_undo::compensation::{CompensationRunReport, CompensationStatus};

use crate::text::{Cell, TextTable, counted, plain, refused, shell_word, style, styled};
use crate::views::common_shapes::RefusalJson;
use crate::views::compensation::{action, error, state_style};

shape! {
    /// The undo of a run's effects, planned or done (`compensation run`).
    pub(crate) struct UndoneJson from (report: &CompensationRunReport, resume: Option<&str>) {
        run_id: String = report.run_id.to_string(),
        /// done, stopped, failed or planned.
        status: &'static str as ic_undo::compensation::CompensationStatus = report.status.as_str(),
        /// The compensations that were tried, in that order; in a dry run, those that would be.
        results: Vec<UndoneStepJson> = report.results.iter().map(UndoneStepJson::from).collect(),
        /// The compensations that were asked for and are not undone.
        compensations_left: Vec<String> = report.left.iter().map(|one| one.id.to_string()).collect(),
        /// The step that cannot be undone and stops the others.
        held_by: Option<String> = report.pivot.clone(),
        /// Whether the run stays closed (`rolling_back`) until the rest is undone.
        closed: bool = report.is_closed,
        /// The checkpoint of the tree before files were restored in it; null if none were to be.
        safety_checkpoint_id: Option<String> = report.safety_id.as_ref().map(ToString::to_string),
        /// The command that resumes with the rest.
        resume: Option<String> = resume.map(str::to_owned),
        /// In a dry run, the refusal of the real call; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<RefusalJson> = report.refusal.as_ref().map(RefusalJson::from),
    }

    /// The outcome of one compensation.
    pub(crate) struct UndoneStepJson from one: &Compensation {
        id: String = one.id.to_string(),
        step: String = one.step.clone(),
        /// exec, file, process, skip, retry or pivot.
        #[cfg_attr(test, schemars(extend("enum" = ic_effects::EffectAction::KINDS)))]
        kind: &'static str = one.action.kind(),
        /// armed, running or failed if it is not undone yet; skipped if nothing was done, as declared.
        #[cfg_attr(test, schemars(extend("enum" = ic_effects::CompensationState::WORDS[1..])))]
        status: &'static str = one.state.as_str(),
        /// How many attempts at its undo were begun.
        attempts: i64 = one.attempts,
        /// The error of the last attempt; null if it did not fail.
        error: Option<String> = error(one),
        /// The reason why nothing was done about it.
        reason: Option<String> = one.last_error.clone().filter(|_| one.state == CompensationState::Skipped),
    }
}

/// The line about an undo that is running.
pub(crate) fn begins(one: &Compensation) -> String {
    let again = if one.attempts > 1 { format!(" (attempt {})", one.attempts) } else { String::new() };
    format!("{} {}{again} ...", styled(style::WARN, "undoing"), plain(&one.step))
}

/// The line about an undo that has ended. Its error is left to the report that follows: printed twice, it would look like two failures.
pub(crate) fn ended(one: &Compensation) -> String {
    let mut table = TextTable::headless();
    table.row(match one.state {
        CompensationState::Failed => row(one, "failed ", &action(&one.action)),
        _ => result(one),
    });
    table.render("")
}

/// The outcome as a row: `undone  deploy  ./down.sh`, or `failed  deploy  it ended with exit code 3: no such host`.
pub(crate) fn result(one: &Compensation) -> Vec<Cell> {
    let why = one.last_error.as_deref().unwrap_or("no reason was recorded");
    let (word, what) = match one.state {
        CompensationState::Done => ("undone", action(&one.action)),
        CompensationState::Skipped => ("skipped", why.to_owned()),
        CompensationState::Failed if one.attempts > 1 => ("failed", format!("{why} (attempt {})", one.attempts)),
        CompensationState::Failed => ("failed", why.to_owned()),
        CompensationState::Registered | CompensationState::Armed | CompensationState::Running => {
            ("left", action(&one.action))
        }
    };
    // As wide as the widest word, so that lines that are printed one by one line up.
    row(one, &format!("{word:<7}"), &what)
}

pub(crate) fn row(one: &Compensation, word: &str, what: &str) -> Vec<Cell> {
    vec![
        "".into(),
        Cell::new(state_style(one.state), word),
        Cell::new(style::STRONG, &one.step),
        Cell::new(style::DIM, what),
    ]
}

/// What was undone, what was not and why, what is left, and the command that resumes.
pub(crate) fn report(report: &CompensationRunReport, resume: Option<&str>) -> String {
    let run = styled(style::STRONG, report.run_id.short());
    if report.status == CompensationStatus::Planned {
        return planned(report, &run) + &report.refusal.as_ref().map(refused).unwrap_or_default();
    }
    // An undo that failed in an earlier call closes the run, even if nothing is left of what this call was asked for.
    let others = if report.is_closed {
        let rest = format!("ic compensation run {}", report.run_id.short());
        format!("The run stays closed: another undo of it failed; to resume: {rest}\n")
    } else {
        String::new()
    };
    if report.results.is_empty() && report.left.is_empty() {
        return format!("Nothing of run {run} is to be undone.\n{others}");
    }
    let of = |state: CompensationState| report.results.iter().filter(|one| one.state == state).count();
    let skipped = match of(CompensationState::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    let mut out = match of(CompensationState::Done) {
        0 => format!("Nothing of run {run} was undone{skipped}.\n"),
        undone => format!("Undid {} of run {run}{skipped}.\n", counted(undone, "effect")),
    };
    let mut table = TextTable::headless();
    report.results.iter().for_each(|one| table.row(result(one)));
    if !report.results.is_empty() {
        out += &table.render("");
    }
    if let Some(safety) = &report.safety_id {
        out += &format!("  the old content is kept in checkpoint {}\n", safety.short());
    }
    if report.left.is_empty() {
        return out + &others;
    }
    out += &left(report);
    if report.is_closed {
        out += "The run stays closed until they are undone.\n";
    }
    out += &held(report);
    if let Some(resume) = resume {
        let when = match (has_failed(report), report.is_closed) {
            (true, _) => "after fixing the cause",
            (false, true) => "to resume",
            (false, false) => "to undo them anyway",
        };
        out += &format!("{}\n", styled(style::DIM, &format!("{when}: {resume}")));
    }
    if let Some(failed) = report.results.iter().find(|one| one.state == CompensationState::Failed) {
        let (run, step) = (report.run_id.short(), shell_word(&failed.step));
        let leave =
            format!("if that is impossible, to skip it: ic compensation run {run} --skip {step} --reason WHY --yes");
        out += &format!("{}\n", styled(style::DIM, &leave));
    }
    out
}

/// Whether an undo failed, rather than being interrupted.
fn has_failed(report: &CompensationRunReport) -> bool {
    report.results.iter().any(|one| one.state == CompensationState::Failed)
}

fn planned(report: &CompensationRunReport, run: &str) -> String {
    let mut out = match (report.results.is_empty(), report.left.is_empty()) {
        (true, true) => return format!("Nothing of run {run} is to be undone.\n"),
        (true, false) => format!("Nothing of run {run} would be undone.\n"),
        (false, _) => format!("Of run {run} would be undone, in this order:\n"),
    };
    let mut table = TextTable::headless();
    for (at, one) in report.results.iter().enumerate() {
        table.row(vec![
            Cell::new(style::DIM, &format!("{:>3}", at + 1)),
            Cell::new(style::STRONG, &one.step),
            action(&one.action).as_str().into(),
            Cell::new(style::DIM, one.description.as_deref().unwrap_or("")),
        ]);
    }
    if !report.results.is_empty() {
        out += &table.render("");
    }
    if !report.left.is_empty() {
        out += &left(report);
        out += &held(report);
    }
    out
}

/// The compensations that are not undone, with their states.
fn left(report: &CompensationRunReport) -> String {
    let mut table = TextTable::headless();
    report.left.iter().for_each(|one| table.row(row(one, one.state.as_str(), &action(&one.action))));
    format!("{} ({})\n{}", styled(style::STRONG, "Left"), report.left.len(), table.render(""))
}

/// A sentence about the pivot that stops others, if one does.
fn held(report: &CompensationRunReport) -> String {
    report.pivot.as_ref().map_or_else(String::new, |pivot| {
        format!(
            "{} cannot be undone, so earlier effects are not undone either; --force undoes them anyway.\n",
            styled(style::STRONG, &plain(pivot))
        )
    })
}
