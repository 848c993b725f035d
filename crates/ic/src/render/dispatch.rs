//! Dispatches.

use ic_dispatch::code::{Recorded, RecordedCommit, RecordedFile};
use ic_dispatch::{Dispatch, DispatchStatus, Verdict};
use ic_kernel::worker::{Life, life};
use ic_ops::dispatch::Waited;

use super::{Cell, Table, counted, path_text, plain, style, styled};

/// Dispatches, one a line.
pub(crate) fn table(dispatches: &[Dispatch]) -> String {
    let mut table = Table::new(&["DISPATCH", "STATUS", "VERDICT", "PHASE", "AGENT", "NAME", "RUN"]);
    for d in dispatches {
        table.row(vec![
            Cell::new(style::STRONG, d.id.short()),
            Cell::new(status_style(d.status), &status(d)),
            d.verdict.map_or("".into(), |one| Cell::new(verdict_style(one), one.as_str())),
            d.phase.as_str().into(),
            d.work.agent_type.as_deref().unwrap_or("").into(),
            d.work.name.as_deref().unwrap_or("").into(),
            Cell::new(style::DIM, d.run_id.short()),
        ]);
    }
    table.render("No dispatches.")
}

/// One dispatch on one line.
pub(crate) fn one_line(dispatch: &Dispatch) -> String {
    let name = dispatch.work.name.as_deref().map(|n| format!(" {}", plain(n))).unwrap_or_default();
    let status = styled(status_style(dispatch.status), &status(dispatch));
    format!(
        "{}{name} is {status} in {}\n",
        styled(style::STRONG, dispatch.id.short()),
        plain(&dispatch.phase)
    )
}

/// One dispatch with what it left in the repository.
pub(crate) fn card(dispatch: &Dispatch, commits: &[RecordedCommit], files: &[RecordedFile]) -> String {
    let mut out = one_line(dispatch);
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push_str(&format!("  {}  {value}\n", styled(style::DIM, &format!("{label:<8}"))));
        }
    };
    line("agent", dispatch.work.agent_type.as_deref().map(plain));
    line("model", dispatch.work.model.as_deref().map(plain));
    line("verdict", dispatch.verdict.map(|v| v.as_str().to_owned()));
    line("summary", dispatch.summary.as_deref().map(plain));
    line("error", dispatch.error.as_deref().map(plain));
    line("process", dispatch.pid().map(|pid| format!("{pid}{}", life(dispatch).map_or("", alive))));
    let tokens = dispatch.tokens;
    if tokens.input + tokens.output + tokens.cache > 0 {
        line("tokens", Some(format!("{} in, {} out, {} cached", tokens.input, tokens.output, tokens.cache)));
    }
    line("run", Some(dispatch.run_id.to_string()));
    line("id", Some(dispatch.id.to_string()));
    for commit in commits {
        line("commit", Some(format!("{}{}", commit.sha, late(commit.late))));
    }
    for file in files {
        line("file", Some(format!("{}{}", path_text(&file.path), late(file.late))));
    }
    out
}

/// Why a wait ended before the work did.
pub(crate) fn waited(waited: Waited) -> String {
    let why = match waited {
        Waited::ProcessGone => "its process is gone, and nothing recorded its end",
        Waited::TimedOut => "the timeout passed",
        Waited::Ended | Waited::Interrupted => return String::new(),
    };
    format!("{}: {why}\n", styled(style::BAD, "the wait ended early"))
}

/// What recording did.
pub(crate) fn recorded(dispatch: &Dispatch, recorded: &Recorded) -> String {
    format!(
        "recorded {} and {} for {}{}\n",
        counted(recorded.commits, "commit"),
        counted(recorded.files, "file"),
        dispatch.id.short(),
        late(recorded.late),
    )
}

pub(super) fn alive(life: Life) -> &'static str {
    match life {
        Life::Alive => ", alive",
        Life::Gone => ", gone",
        Life::Unknown => ", it is unknown whether it lives",
    }
}

fn late(late: bool) -> String {
    if late { styled(style::WARN, " (late: it was rolled back)") } else { String::new() }
}

fn status_style(status: DispatchStatus) -> anstyle::Style {
    match status {
        DispatchStatus::Pending => style::DIM,
        DispatchStatus::Running => style::WARN,
        DispatchStatus::Completed => style::GOOD,
        DispatchStatus::Failed | DispatchStatus::TimedOut | DispatchStatus::Cancelled => style::BAD,
    }
}

fn verdict_style(verdict: Verdict) -> anstyle::Style {
    match verdict {
        Verdict::Pass => style::GOOD,
        Verdict::Fail => style::BAD,
    }
}

fn status(dispatch: &Dispatch) -> String {
    match dispatch.rolled_back_by {
        Some(_) => format!("{}, rolled back", dispatch.status.as_str()),
        None => dispatch.status.as_str().to_owned(),
    }
}
