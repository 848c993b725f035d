//! What became of compensations: what was undone of a run, or would be.

use ic_rollback::compensation::{Report, Status};
use ic_saga::{Compensation, State};

use crate::text::{Cell, Table, counted, plain, refused, shell_word, style, styled};
use crate::views::compensation::{action, error, state_style};
use crate::views::shared::RefusalJson;

shape! {
    /// What was undone of a run, or would be.
    pub(crate) struct UndoneJson from (report: &Report, resume: Option<&str>) {
        run_id: String = report.run_id.to_string(),
        /// done, stopped, failed or planned.
        status: &'static str as ic_rollback::compensation::Status = report.status.as_str(),
        /// What was tried, in that order; of a dry run, what would be.
        results: Vec<UndoneStepJson> = report.results.iter().map(UndoneStepJson::from).collect(),
        /// The compensations that were meant and are not undone.
        compensations_left: Vec<String> = report.left.iter().map(|one| one.id.to_string()).collect(),
        /// The step that cannot be undone, and because of which something is left.
        held_by: Option<String> = report.pivot.clone(),
        /// Whether the run stays closed (`rolling_back`) until more is undone.
        closed: bool = report.is_closed,
        /// The checkpoint of the tree before files were restored in it; null if none was to be.
        safety_checkpoint_id: Option<String> = report.safety_id.as_ref().map(ToString::to_string),
        /// The call that resumes with the rest.
        resume: Option<String> = resume.map(str::to_owned),
        /// Of a dry run: why the real call would be refused; left out if it would not be.
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<RefusalJson> = report.refusal.as_ref().map(RefusalJson::from),
    }

    /// What became of one compensation.
    pub(crate) struct UndoneStepJson from one: &Compensation {
        id: String = one.id.to_string(),
        step: String = one.step.clone(),
        /// exec, file, process, skip, retry or pivot.
        #[cfg_attr(test, schemars(extend("enum" = ic_saga::Action::KINDS)))]
        kind: &'static str = one.action.kind(),
        /// armed, running or failed where it is not undone yet; skipped: nothing was done about it, as declared.
        #[cfg_attr(test, schemars(extend("enum" = ic_saga::State::WORDS[1..])))]
        status: &'static str = one.state.as_str(),
        /// How often its undo was begun.
        attempts: i64 = one.attempts,
        /// Why the last attempt failed.
        error: Option<String> = error(one),
        /// Why nothing was done about it.
        reason: Option<String> = one.last_error.clone().filter(|_| one.state == State::Skipped),
    }
}

/// The line of an undo while it is under way.
pub(crate) fn begins(one: &Compensation) -> String {
    let again = if one.attempts > 1 { format!(" (attempt {})", one.attempts) } else { String::new() };
    format!("{} {}{again} ...", styled(style::WARN, "undoing"), plain(&one.step))
}

/// The line of an undo that has ended. Why one failed is told by the report that follows: twice on a screen reads as two failures.
pub(crate) fn ended(one: &Compensation) -> String {
    let mut table = Table::headless();
    table.row(match one.state {
        State::Failed => row(one, "failed ", &action(&one.action)),
        _ => result(one),
    });
    table.render("")
}

/// `undone  deploy  ./down.sh`, `failed  deploy  it ended with exit code 3: no such host`.
pub(crate) fn result(one: &Compensation) -> Vec<Cell> {
    let why = one.last_error.as_deref().unwrap_or("no reason was recorded");
    let (word, what) = match one.state {
        State::Done => ("undone", action(&one.action)),
        State::Skipped => ("skipped", why.to_owned()),
        State::Failed if one.attempts > 1 => ("failed", format!("{why} (attempt {})", one.attempts)),
        State::Failed => ("failed", why.to_owned()),
        State::Registered | State::Armed | State::Running => ("left", action(&one.action)),
    };
    // As wide as the widest word, so that lines that come one by one stand below each other.
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

/// What was undone, what was not and why, what is left and how to go on.
pub(crate) fn report(report: &Report, resume: Option<&str>) -> String {
    let run = styled(style::STRONG, report.run_id.short());
    if report.status == Status::Planned {
        return planned(report, &run) + &report.refusal.as_ref().map(refused).unwrap_or_default();
    }
    let others = if report.is_closed {
        let rest = format!("ic compensation run {}", report.run_id.short());
        format!("The run stays closed: another undo of it failed; to resume: {rest}\n")
    } else {
        String::new()
    };
    if report.results.is_empty() && report.left.is_empty() {
        return format!("Nothing of run {run} is to be undone.\n{others}");
    }
    let of = |state: State| report.results.iter().filter(|one| one.state == state).count();
    let skipped = match of(State::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    let mut out = match of(State::Done) {
        0 => format!("Nothing of run {run} was undone{skipped}.\n"),
        undone => format!("Undid {} of run {run}{skipped}.\n", counted(undone, "effect")),
    };
    let mut table = Table::headless();
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
    if let Some(failed) = report.results.iter().find(|one| one.state == State::Failed) {
        let (run, step) = (report.run_id.short(), shell_word(&failed.step));
        let leave = format!(
            "if that is impossible, to skip it: ic compensation run {run} --skip {step} --reason WHY --yes"
        );
        out += &format!("{}\n", styled(style::DIM, &leave));
    }
    out
}

/// Whether an undo failed by itself, rather than by an interrupt.
fn has_failed(report: &Report) -> bool {
    report.results.iter().any(|one| one.state == State::Failed)
}

fn planned(report: &Report, run: &str) -> String {
    let mut out = match (report.results.is_empty(), report.left.is_empty()) {
        (true, true) => return format!("Nothing of run {run} is to be undone.\n"),
        (true, false) => format!("Nothing of run {run} would be undone.\n"),
        (false, _) => format!("Of run {run} would be undone, in this order:\n"),
    };
    let mut table = Table::headless();
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

/// What is not undone, as it is.
fn left(report: &Report) -> String {
    let mut table = Table::headless();
    report.left.iter().for_each(|one| table.row(row(one, one.state.as_str(), &action(&one.action))));
    format!("{} ({})\n{}", styled(style::STRONG, "Left"), report.left.len(), table.render(""))
}

/// Which pivot holds something back, if one does.
fn held(report: &Report) -> String {
    report.pivot.as_ref().map_or_else(String::new, |pivot| {
        format!(
            "{} cannot be undone, so earlier effects are not undone either; --force undoes them anyway.\n",
            styled(style::STRONG, &plain(pivot))
        )
    })
}
