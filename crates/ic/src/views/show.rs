//! One entry of a log: a prompt, dispatch or step.

pub(crate) mod change;

use ic_base::{RollbackId, Timestamp};
use ic_checkpoint::diff::TreeChange;
use ic_ledger::Actor;
use ic_ledger::path_from_bytes;
use ic_session::{AgentSession, ToolCall};
use ic_undo::OwnCommit;
use ic_undo::points::NamedWork;
use serde::Serialize;

use crate::text::{Cell, TextTable, age, counted, path_text, plain, style, styled};
use crate::views::PathJson;
use crate::views::blame::CallJson;
use crate::views::checkpoint::content::PatchJson;
use crate::views::common_shapes::SkippedJson;
use crate::views::dispatch::DispatchJson;
use crate::views::event::ActorJson;
use crate::views::rollback::commits::OwnCommitJson;
use crate::views::session::SessionJson;

/// A piece of work with all that is known of it.
pub(crate) struct ShownWork<'w> {
    pub(crate) work: &'w NamedWork,
    /// The undo that stands and left a part of it.
    pub(crate) in_part: Option<RollbackId>,
    /// What a person typed, masked; the name of a dispatch or step.
    pub(crate) text: Option<String>,
    /// The session in which it is a prompt, or was begun by one.
    pub(crate) session: Option<AgentSession>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) files: Vec<ShownFile>,
    /// Paths of which it is not known whether it changed them, and why.
    pub(crate) unsure: Vec<(Vec<u8>, String)>,
    pub(crate) commits: Vec<OwnCommit>,
    /// Files outside of the project, absolute.
    pub(crate) outside: Vec<String>,
    /// Who wrote the event with which the work was created.
    pub(crate) actor: Option<Actor>,
    /// Who did it, where it was another user or was done in another clone.
    pub(crate) other: Option<String>,
    /// Why its files are not known.
    pub(crate) unknown: Option<String>,
}

/// A path that work changed.
pub(crate) struct ShownFile {
    pub(crate) path: Vec<u8>,
    pub(crate) change: TreeChange,
    /// The lines that it added and removed; `None` where lines say nothing.
    pub(crate) lines: Option<(usize, usize)>,
}

shape! {
    /// A prompt, dispatch or step, and what it did.
    pub(crate) struct ShowWorkJson from (shown: &ShownWork<'_>, patch: Option<PatchJson>) where
        work = shown.work;
        kind = work.reference.split(':').next().unwrap_or_default();
    {
        /// The reference of the point before it, as `ic undo` takes it.
        reference: String = work.reference.clone(),
        /// prompt, dispatch or step.
        kind: String = kind.to_owned(),
        #[serde(flatten)]
        dispatch: DispatchJson = (&work.dispatch).into(),
        /// What a person typed, masked: the whole text if the client's own record has it, else its first line. Of a dispatch or step, its
        /// name. Null if it was redacted.
        text: Option<String> = shown.text.clone(),
        /// The session of the coding agent; null if there is none.
        session: Option<SessionJson> = shown.session.as_ref().map(SessionJson::from),
        /// Who recorded it; null: it is not known.
        actor: Option<ActorJson> = shown.actor.as_ref().map(ActorJson::from),
        /// Its tool calls that may change files, and those of its subagents, oldest first.
        calls: Vec<CallJson> = shown.calls.iter().map(CallJson::from).collect(),
        /// What it changed, by path.
        files: Vec<ShownFileJson> = shown.files.iter().map(ShownFileJson::from).collect(),
        /// Why that is not known: the tree was not captured. Left out if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        files_unknown: Option<String> = shown.unknown.clone(),
        /// Paths that changed while it was under way, and of which it is not known whether it changed them.
        unsure: Vec<SkippedJson> =
            shown.unsure.iter().map(|(path, why)| SkippedJson::new(path, why.clone())).collect(),
        /// Its commits, newest first.
        commits: Vec<OwnCommitJson> = shown.commits.iter().map(OwnCommitJson::from).collect(),
        /// Files outside of the project that its tool calls changed, absolute.
        outside: Vec<String> = shown.outside.clone(),
        /// Its changes as a patch, with control characters escaped; left out without `--patch-bytes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<PatchJson> = patch,
    }

    struct ShownFileJson from file: &ShownFile {
        #[serde(flatten)]
        path: PathJson = path_from_bytes(&file.path).as_path().into(),
        change: &'static str as ic_checkpoint::diff::TreeChange = file.change.as_str(),
        /// The number of lines that it added; null for what has no lines.
        added: Option<usize> = file.lines.map(|(added, _)| added),
        /// The number of lines that it removed; null for what has no lines.
        removed: Option<usize> = file.lines.map(|(_, removed)| removed),
    }
}

/// An entry of a log (`show`).
#[derive(Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum ShowJson {
    /// A prompt, dispatch or step.
    Work(Box<ShowWorkJson>),
    /// A restore, or what a person changed.
    Change(Box<change::ShowChangeJson>),
}

/// Who did it and when, and what was asked for.
pub(crate) fn head(shown: &ShownWork<'_>, now: Timestamp) -> String {
    let dispatch = &shown.work.dispatch;
    let who = match &shown.other {
        Some(other) => format!("{} of {}", who(shown), plain(other)),
        None => who(shown),
    };
    let mut facts = vec![who, age(now, dispatch.created_at)];
    let in_part = shown.in_part.as_ref().or(dispatch.rolled_back_by.as_ref());
    facts.push(match (&dispatch.rolled_back_by, in_part) {
        (Some(by), _) if dispatch.undone_in_part_from().is_none() => format!("undone by {}", by.short()),
        (_, Some(by)) => format!("undone in part by {}", by.short()),
        (_, None) => dispatch.status.as_str().to_owned(),
    });
    let name = match shown.work.reference.strip_prefix("step:") {
        Some(step) => plain(step),
        None => dispatch.id.short().to_owned(),
    };
    let mut out = format!("{}  {}\n", styled(style::STRONG, &name), styled(style::DIM, &facts.join(", ")));
    for line in shown.text.as_deref().unwrap_or("(redacted)").lines() {
        out += format!("    {}", plain(line)).trim_end();
        out.push('\n');
    }
    out
}

/// The client of the session, and the kind of a subagent or agent.
fn who(shown: &ShownWork<'_>) -> String {
    let agent = shown.work.dispatch.work.agent_type.as_deref().map(plain);
    match (&shown.session, agent) {
        // The work of a prompt has the client itself as its kind of agent.
        (Some(session), Some(agent)) if agent != session.client => format!("{}, {agent}", plain(&session.client)),
        (Some(session), _) => plain(&session.client),
        (None, Some(agent)) => agent,
        (None, None) => if shown.work.is_step() { "step" } else { "dispatch" }.to_owned(),
    }
}

/// One entry with its calls, files, commits and tokens.
pub(crate) fn card(shown: &ShownWork<'_>, now: Timestamp) -> String {
    let mut out = head(shown, now) + &calls(&shown.calls) + &files(shown);
    if !shown.commits.is_empty() {
        out += "commits:\n";
        let mut table = TextTable::headless();
        for one in &shown.commits {
            table.row(vec![
                " ".into(),
                Cell::new(style::STRONG, one.commit.sha.get(..12).unwrap_or(&one.commit.sha)),
                Cell::new(style::WARN, one.state().as_str()),
                ic_base::title(&one.commit.subject).as_str().into(),
            ]);
        }
        out += &table.render("");
    }
    let tokens = shown.work.dispatch.tokens;
    if tokens.input + tokens.output + tokens.cache > 0 {
        out += &format!("tokens: {} in, {} out, {} cached\n", tokens.input, tokens.output, tokens.cache);
    }
    out + &ways(shown)
}

fn calls(calls: &[ToolCall]) -> String {
    /// The most calls that are shown; the rest is counted.
    const SHOWN: usize = 20;
    if calls.is_empty() {
        return String::new();
    }
    let mut table = TextTable::headless();
    for call in calls.iter().take(SHOWN) {
        let by = call.agent_type.as_deref().map_or(String::new(), |agent| format!(" ({agent})"));
        // A path says more than the line of a tool that edits; a shell names no path.
        let named = match call.paths.as_slice() {
            [] => call.line.clone().unwrap_or_else(|| "(redacted)".to_owned()),
            paths => paths.join(", "),
        };
        table.row(vec![" ".into(), format!("{}{by}", call.tool).as_str().into(), named.as_str().into()]);
    }
    let more = match calls.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!("  and {n} more: --json\n"),
    };
    format!("calls:\n{}{more}", table.render(""))
}

fn files(shown: &ShownWork<'_>) -> String {
    if let Some(why) = &shown.unknown {
        return format!("files: not known. {}\n", plain(why));
    }
    let mut out = if shown.files.is_empty() { String::new() } else { file_table(&shown.files) };
    for path in &shown.outside {
        out += &format!("outside: {}\n", plain(path));
    }
    if !shown.unsure.is_empty() {
        out += "unsure:\n";
        for (path, why) in &shown.unsure {
            out += &format!("  {}: {}\n", path_text(&path_from_bytes(path)), plain(why));
        }
    }
    if out.is_empty() { "files: none changed\n".to_owned() } else { out }
}

/// The paths that changed, each with its lines.
fn file_table(files: &[ShownFile]) -> String {
    let mut table = TextTable::headless();
    for file in files {
        let (style, sign) = match file.change {
            TreeChange::Added => (style::GOOD, "+"),
            TreeChange::Deleted => (style::BAD, "-"),
            TreeChange::Modified | TreeChange::Mode | TreeChange::Attributes | TreeChange::Type => (style::WARN, "~"),
        };
        let lines = file.lines.map_or(String::new(), |(added, removed)| format!("+{added} -{removed}"));
        let path = path_text(&path_from_bytes(&file.path));
        table.row(vec![" ".into(), Cell::new(style, sign), path.as_str().into(), lines.as_str().into()]);
    }
    format!("files:\n{}", table.render(""))
}

/// The commands for what comes next.
fn ways(shown: &ShownWork<'_>) -> String {
    let work = shown.work;
    let name = match work.reference.strip_prefix("step:") {
        Some(step) => crate::text::shell_word(step),
        None => work.dispatch.id.short().to_owned(),
    };
    let mut ways = Vec::new();
    if !shown.files.is_empty() {
        ways.push(format!("its patch, of {}: ic show {name} -p", counted(shown.files.len(), "file")));
    }
    if work.dispatch.rolled_back_by.is_none() {
        ways.push(format!("undo it and what came after: ic undo {name} --dry-run"));
    }
    if ways.is_empty() { String::new() } else { styled(style::DIM, &ways.join("; ")) + "\n" }
}
