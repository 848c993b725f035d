//! Compensations, what became of them, and how much of a run they cover.

use anstyle::Style;
use ic_base::RunId;
use ic_base::mask::mask;
use ic_rollback::compensation::{Report, Status};
use ic_saga::action::{Before, FileBefore};
use ic_saga::coverage::{CompensationReport, Coverage};
use ic_saga::{Action, Compensation, State};
use ic_store::path_from_bytes;

use super::{Cell, Table, counted, path_text, plain, refused, shell_word, style, styled};

/// Compensations, one a line, and what is to be known about those that failed.
pub(crate) fn list(all: &[Compensation]) -> String {
    let mut table = Table::new(&["COMPENSATION", "STATE", "TRIES", "STEP", "PHASE", "UNDONE BY", "ABOUT"]);
    for one in all {
        let state = one.state.as_str();
        let rolled_back = if one.rolled_back_by.is_some() { ", rolled back" } else { "" };
        table.row(vec![
            Cell::new(style::STRONG, one.id.short()),
            Cell::new(state_style(one.state), &format!("{state}{rolled_back}")),
            Cell::new(style::DIM, &one.attempts.to_string()),
            one.step.as_str().into(),
            one.phase.as_str().into(),
            action(&one.action).as_str().into(),
            Cell::new(style::DIM, one.description.as_deref().unwrap_or("")),
        ]);
    }
    let mut out = table.render("No compensations.");
    for one in all.iter().filter(|one| one.state == State::Failed) {
        let why = one.last_error.as_deref().unwrap_or("no reason was recorded");
        out.push_str(&format!("{} {}: {}\n", styled(style::BAD, "failed"), plain(&one.step), plain(why)));
    }
    let open = all.iter().filter(|one| one.state.is_open()).count();
    if let (Some(first), true) = (all.first(), open > 0) {
        let run = first.run_id.short();
        let hint =
            format!("{open} of {} not undone; to undo, the last first: ic compensation run {run}", all.len());
        out.push_str(&format!("{}\n", styled(style::DIM, &hint)));
    }
    out
}

/// What an undo does, in a few words.
pub(super) fn action(action: &Action) -> String {
    let because = |what: &str, reason: &Option<String>| {
        reason.as_ref().map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}"))
    };
    match action {
        Action::Exec { argv, .. } => {
            argv.iter().map(|word| shell_word(&mask(word))).collect::<Vec<_>>().join(" ")
        }
        Action::Shell { line, .. } => format!("sh: {}", mask(line)),
        Action::RestoreFiles { files } => files.iter().map(before).collect::<Vec<_>>().join(", "),
        Action::KillProcess { identity: Some(identity), .. } => format!("end process {}", identity.pid),
        Action::KillProcess { pid_file: Some(file), .. } => {
            format!("end the process in {}", path_text(&path_from_bytes(&file.0)))
        }
        Action::KillProcess { .. } => "end a process".to_owned(),
        Action::Skip { reason } => because("needs no undo", reason),
        Action::Retry { reason } => because("nothing; try it again", reason),
        Action::Pivot { reason } => because("cannot be undone", reason),
    }
}

fn before(file: &FileBefore) -> String {
    let path = path_text(&path_from_bytes(&file.path.0));
    match file.before {
        Before::Absent => format!("remove {path}"),
        Before::File { .. } | Before::Symlink { .. } => format!("restore {path}"),
    }
}

fn state_style(state: State) -> Style {
    match state {
        State::Done => style::GOOD,
        State::Failed => style::BAD,
        State::Running => style::WARN,
        State::Registered | State::Skipped => style::DIM,
        State::Armed => style::NONE,
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
pub(super) fn result(one: &Compensation) -> Vec<Cell> {
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

fn row(one: &Compensation, word: &str, what: &str) -> Vec<Cell> {
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
        out.push_str(&table.render(""));
    }
    if report.left.is_empty() {
        return out + &others;
    }
    out.push_str(&left(report));
    if report.is_closed {
        out.push_str("The run stays closed until they are undone.\n");
    }
    out.push_str(&held(report));
    if let Some(resume) = resume {
        let when = match (has_failed(report), report.is_closed) {
            (true, _) => "after fixing the cause",
            (false, true) => "to resume",
            (false, false) => "to undo them anyway",
        };
        out.push_str(&format!("{}\n", styled(style::DIM, &format!("{when}: {resume}"))));
    }
    if let Some(failed) = report.results.iter().find(|one| one.state == State::Failed) {
        let (run, step) = (report.run_id.short(), shell_word(&failed.step));
        let leave = format!(
            "if that is impossible, to skip it: ic compensation run {run} --skip {step} --reason WHY --yes"
        );
        out.push_str(&format!("{}\n", styled(style::DIM, &leave)));
    }
    out
}

/// Whether an undo failed by itself, rather than that somebody interrupted it.
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
        out.push_str(&table.render(""));
    }
    if !report.left.is_empty() {
        out.push_str(&left(report));
        out.push_str(&held(report));
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

/// How much of a run can be undone, step by step.
pub(crate) fn coverage(run_id: &RunId, report: &CompensationReport) -> String {
    let run = styled(style::STRONG, run_id.short());
    let declared = report.total - report.undeclared.len();
    let all = counted(report.total, "step");
    let style = if report.is_complete() { style::GOOD } else { style::WARN };
    let percentage = styled(style, &format!("{}%", report.percentage));
    let mut out = format!("{percentage} of run {run} is covered: {declared} of {all}\n");
    let mut table = Table::headless();
    for (step, coverage) in &report.steps {
        table.row(vec![
            "".into(),
            Cell::new(coverage_style(*coverage), coverage.as_str()),
            step.as_str().into(),
        ]);
    }
    if report.total > 0 {
        out.push_str(&table.render(""));
    }
    out
}

fn coverage_style(coverage: Coverage) -> Style {
    match coverage {
        Coverage::Compensated => style::GOOD,
        Coverage::Skip => style::DIM,
        Coverage::Pivot => style::WARN,
        Coverage::Undeclared => style::BAD,
    }
}
