//! The entries of a place or of one run, one a line.

use ic_base::Timestamp;
use ic_phase::{Run, RunStatus};
use ic_undo::points::log::{LogEntry, What};
use unicode_width::UnicodeWidthStr;

use super::entry_text::{facts, title, went_back};
use super::{ALIGNED, Chosen, LEAST, LogUndoJson, LoggedEntry, WIDTH, head, is_open, is_over};
use crate::text::{age, cut_to, plain, screen, shell_word, style, styled};

/// What is shown around the entries.
pub(crate) struct PlaceView<'v> {
    /// The one run that all entries are of, and how it was chosen; `None`: they are of sessions, or of several runs.
    pub(crate) head: Option<(&'v Run, Chosen)>,
    /// Whether the caller named a run.
    pub(crate) is_named: bool,
    /// Whether everything that was rolled back is shown: of one run, as branches.
    pub(crate) all: bool,
    pub(crate) has_more: bool,
    pub(crate) now: Timestamp,
    pub(crate) back: LogUndoJson,
}

/// The entries below the run that they are of, and the commands for what comes next.
pub(crate) fn list(view: &PlaceView<'_>, logged: &[LoggedEntry]) -> String {
    let mut out = view.head.map_or_else(String::new, |(run, chosen)| head(run, chosen));
    if logged.is_empty() {
        out += "No entries.\n";
    }
    out += &lines(view, logged).concat();
    out + &styled(style::DIM, &ways(view)) + "\n"
}

/// The text of each entry, with the lines below it.
pub(crate) fn lines(view: &PlaceView<'_>, logged: &[LoggedEntry]) -> Vec<String> {
    let names: Vec<String> = logged.iter().map(|one| name(&one.entry)).collect();
    let owners: Vec<String> = logged.iter().map(who).collect();
    // A longer name stays whole and is not aligned: it would push all other lines to the right.
    let widest = |texts: &[String]| texts.iter().map(|text| text.width()).filter(|width| *width <= ALIGNED).max();
    let (name_width, who_width) = (widest(&names).unwrap_or(0), widest(&owners).unwrap_or(0));
    let mut all = Vec::new();
    for (at, one) in logged.iter().enumerate() {
        let lane = lane(view, logged, at);
        let (name, who) = (&names[at], &owners[at]);
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
        let age = age(view.now, one.entry.created_at);
        let start = format!("{}  {age:<10}  {who}{}", pad(name, name_width), pad(who, who_width));
        let room = lane.width() + name.width() + start.width();
        let rest = format!("{start}{}", rest(one, room));
        let is_dimmed = is_over(&one.entry) || is_undone(&one.entry);
        let style = if is_dimmed { style::DIM } else { style::NONE };
        let name = styled(if is_dimmed { style::DIM } else { style::STRONG }, name);
        let lane = if lane.is_empty() { lane } else { styled(style::DIM, &lane) };
        all.push(format!("{lane}{name}{}\n{}", styled(style, rest.trim_end()), below(one)));
    }
    all
}

/// What a person types to name an entry: the end of an id, or a name.
pub(crate) fn name(entry: &LogEntry) -> String {
    match &entry.what {
        What::Point { point, .. } => shell_word(point.name()),
        What::Rollback(rollback) => rollback.id.short().to_owned(),
    }
}

/// Who did it: the client of a session, a dispatch or step, you; of other people and clones with their name.
pub(crate) fn who(one: &LoggedEntry) -> String {
    let other = one.other.as_deref();
    let who = match &one.entry.what {
        What::Point { point, .. } => {
            point.who(one.session.as_ref().map(|session| session.client.as_str()), one.is_unknown, other)
        }
        What::Rollback(_) => other.map_or_else(|| "undo".to_owned(), |other| format!("undo of {other}")),
    };
    plain(&who)
}

pub(crate) fn is_undone(entry: &LogEntry) -> bool {
    matches!(&entry.what, What::Point { point, .. } if point.is_undone && point.kind != "phase")
}

/// The lane of a branch that was rolled back, where everything of one run is shown.
fn lane(view: &PlaceView<'_>, logged: &[LoggedEntry], at: usize) -> String {
    let depth = |at: usize| logged.get(at).map(|one| one.entry.taken_back_by.len());
    match depth(at) {
        _ if !view.all || !view.is_named => String::new(),
        None | Some(0) => "● ".to_owned(),
        Some(deep) => {
            // The lane continues to the next line if that is on the same branch, or on a deeper one.
            let goes_on = depth(at + 1).is_some_and(|next| next >= deep);
            format!("{}{} ", "│ ".repeat(deep - 1), if goes_on { "│" } else { "╵" })
        }
    }
}

/// What the entry is, in words.
pub(crate) fn said(one: &LoggedEntry) -> String {
    match &one.entry.what {
        What::Point { point, .. } => title(point),
        What::Rollback(rollback) => went_back(rollback, one.taken_out.as_deref()),
    }
}

/// The title and the facts, cut to the room that is left.
fn rest(one: &LoggedEntry, taken: usize) -> String {
    let facts = match &one.entry.what {
        What::Point { point, files, commits, .. } => facts(point, *files, *commits),
        What::Rollback(_) => String::new(),
    };
    // On a narrow terminal the lines are those of a pipe, and are wrapped when they are printed.
    let width = screen().unwrap_or(WIDTH).max(WIDTH);
    cut_rest(&said(one), &facts, width.saturating_sub(taken))
}

/// A title and the facts, cut to this many columns.
pub(super) fn cut_rest(title: &str, facts: &str, room: usize) -> String {
    let facts = if facts.is_empty() { String::new() } else { format!("  {facts}") };
    // The title is cut first: the largest changes have the longest numbers, and people look for those.
    format!("  {}{facts}", cut_to(title, room.saturating_sub(facts.width() + 2).max(LEAST)))
}

/// The lines below an entry: the files outside of the project that its work changed, and the command for what an undo left.
fn below(one: &LoggedEntry) -> String {
    let What::Point { point, .. } = &one.entry.what else { return String::new() };
    let line = |path: &String| format!("            outside: {}\n", plain(path));
    let outside: String = one.outside.iter().map(line).collect();
    let rest = point.rest().map(|rest| format!("            the rest: {rest}\n"));
    outside + &rest.unwrap_or_default()
}

/// The commands for what comes next.
fn ways(view: &PlaceView<'_>) -> String {
    let more = if view.has_more { "; older ones: -n N" } else { "" };
    let way = match view.head {
        Some((run, chosen)) => of_run(run, chosen == Chosen::Named, view.back),
        None if view.back == LogUndoJson::Record => {
            "to take the record back to before one: ic run rollback RUN --to REFERENCE".to_owned()
        }
        None => "one of them: ic show ID; undo it, with what came after in its session: ic undo ID; alone: ic undo ID --only"
            .to_owned(),
    };
    format!("{way}{more}")
}

fn of_run(run: &Run, is_named: bool, back: LogUndoJson) -> String {
    let id = run.id.short();
    let flag = if is_named || !is_open(run) { format!(" --run {id}") } else { String::new() };
    match run.status {
        // A cancelled run cannot go back.
        RunStatus::Cancelled => {
            format!("the run is cancelled; to open it again: ic run reopen {id} --reason WHY")
        }
        RunStatus::Failed => {
            format!("the run failed, and cannot go back; its files: ic checkpoint list --run {id}")
        }
        RunStatus::RollingBack => format!("a rollback of the run is not finished: ic rollback show {id}"),
        _ if back == LogUndoJson::Record => {
            format!("to take the record back to before one: ic run rollback {id} --to REFERENCE")
        }
        _ => format!("to go back to before one: ic undo REFERENCE{flag}"),
    }
}
