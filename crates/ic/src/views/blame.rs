//! Which work changed a file, one change a line.

use ic_base::Timestamp;
use ic_checkpoint::git::PathCommit;
use ic_ledger::path_from_bytes;
use ic_ops::blame::{BlameOwner, BlameReport, BlamedChange};
use ic_session::ToolCall;

use crate::text::{Cell, TextTable, path_text, style, styled, when};
use crate::views::event::ActorJson;
use crate::views::exact;

shape! {
    /// Which work changed a file (`blame`).
    pub(crate) struct BlameJson from blame: &BlameReport where
        path = path_from_bytes(&blame.path);
        commits = blame.commits.iter().map(BlamedCommitJson::from);
    {
        /// From the root of the working tree.
        path: String = path.to_string_lossy().into_owned(),
        #[serde(skip_serializing_if = "Option::is_none")]
        path_b64: Option<String> = exact(&path),
        /// What the checkpoints show, newest first.
        changes: Vec<BlamedChangeJson> = blame.changes.iter().map(BlamedChangeJson::from).collect(),
        /// Whether there are more changes than `--limit`.
        has_more: bool = blame.has_more,
        /// Whether the file has changed since the newest checkpoint.
        changed_since: bool = blame.is_unseen,
        /// The commits of git that changed it, newest first.
        commits: Vec<BlamedCommitJson> = commits.collect(),
    }

    struct BlamedChangeJson from changed: &BlamedChange {
        change: &'static str as ic_checkpoint::diff::TreeChange = changed.change.as_str(),
        /// When the first checkpoint with the change was taken.
        created_at: String = changed.seen_at.to_string(),
        /// The checkpoint before it.
        from_checkpoint_id: String = changed.from.to_string(),
        /// The checkpoint that shows it first.
        to_checkpoint_id: String = changed.to.to_string(),
        /// Whether a restore made it, by an undo or a redo.
        by_restore: bool = changed.is_restore,
        /// The work that made it. Several: any of them may have made it. None: no recorded work did.
        dispatches: Vec<BlamedWorkJson> = changed.owners.iter().map(BlamedWorkJson::from).collect(),
        /// The tool calls that may have made it, oldest first.
        calls: Vec<CallJson> = changed.calls.iter().map(CallJson::from).collect(),
    }

    struct BlamedWorkJson from owner: &BlameOwner where
        BlameOwner { dispatch, session, prompt, actor } = owner;
    {
        id: String = dispatch.id.to_string(),
        short_id: String = dispatch.id.short().to_owned(),
        run_id: String = dispatch.run_id.to_string(),
        /// The title of the prompt, or the name of the dispatch.
        name: Option<String> = dispatch.work.name.clone(),
        /// The kind of agent: of a subagent's work, of the subagent.
        agent_kind: Option<String> = dispatch.work.agent_type.clone(),
        /// The work of the prompt that it is a part of, as a subagent's is; null: it is a prompt itself, or of no prompt.
        prompt_id: Option<String> = prompt.as_ref().map(|prompt| prompt.id.to_string()),
        /// The title of that prompt.
        prompt_name: Option<String> = prompt.as_ref().and_then(|prompt| prompt.work.name.clone()),
        /// The session of the coding agent whose prompt it is, or in which it was begun.
        session_id: Option<String> = session.as_ref().map(|session| session.id.to_string()),
        /// The client of that session.
        client: Option<String> = session.as_ref().map(|session| session.client.clone()),
        /// Who recorded it; null: it is not known.
        actor: Option<ActorJson> = actor.as_ref().map(ActorJson::from),
        rolled_back_by: Option<String> = dispatch.rolled_back_by.as_ref().map(ToString::to_string),
    }

    /// A tool call of a coding agent, by a tool that may change files.
    pub(crate) struct CallJson from call: &ToolCall {
        id: String = call.id.to_string(),
        short_id: String = call.id.short().to_owned(),
        /// The prompt's work that it belongs to.
        dispatch_id: String = call.dispatch_id.to_string(),
        /// The kind of the subagent that made it; null: the agent itself did.
        agent_kind: Option<String> = call.agent_type.clone(),
        tool: String = call.tool.clone(),
        /// What it was asked to do, on one line; null: it was redacted.
        line: Option<String> = call.line.clone(),
        /// The files that it named, from the root.
        paths: Vec<String> = call.paths.clone(),
        created_at: String = call.created_at.to_string(),
        /// When its end was reported; null if it still runs, or its end was never reported.
        finished_at: Option<String> = call.finished_at.map(|at| at.to_string()),
    }

    struct BlamedCommitJson from (commit, maker): &(PathCommit, Option<BlameOwner>) {
        sha: String = commit.sha.clone(),
        subject: String = commit.subject.clone(),
        author: String = commit.author.clone(),
        created_at: String = Timestamp(commit.seconds.saturating_mul(1000)).to_string(),
        /// The dispatch that recorded it; null: none did.
        dispatch_id: Option<String> = maker.as_ref().map(|maker| maker.dispatch.id.to_string()),
    }
}

/// The changes, commits and uncertainties of a file, as text.
pub(crate) fn blame(blame: &BlameReport, now: Timestamp) -> String {
    let path = path_text(&path_from_bytes(&blame.path));
    let mut out = format!("{}\n", styled(style::STRONG, &path));
    if blame.is_unseen {
        out += "It changed since the newest checkpoint; who changed it is not known yet.\n";
    }
    let mut table = TextTable::headless();
    for changed in &blame.changes {
        table.row(vec![
            Cell::new(style::DIM, &when(now, changed.seen_at)),
            changed.change.as_str().into(),
            Cell::new(style::STRONG, &whose(changed)),
            calls(changed).as_str().into(),
            titles(changed).as_str().into(),
        ]);
    }
    out += &table.render("No checkpoint shows a change of it.");
    if blame.has_more {
        out += "There are more: add --limit N.\n";
    }
    if !blame.commits.is_empty() {
        out += "Git:\n";
        let mut table = TextTable::headless();
        for (commit, maker) in &blame.commits {
            table.row(vec![
                Cell::new(style::DIM, &when(now, Timestamp(commit.seconds.saturating_mul(1000)))),
                commit.sha.get(..9).unwrap_or(&commit.sha).into(),
                maker.as_ref().map_or(String::new(), reference).as_str().into(),
                commit.author.as_str().into(),
                commit.subject.as_str().into(),
            ]);
        }
        out += &table.render("");
    }
    // Where the work is one of several, it is not known which to undo.
    if let Some(owner) = blame.changes.iter().filter(|one| one.owners.len() == 1).find_map(|one| one.owners.first()) {
        let id = owner.dispatch.id.short();
        if owner.dispatch.rolled_back_by.is_none() {
            out += &format!("To undo that work alone: ic undo --only {id} --dry-run\n");
        }
    }
    out
}

/// `prompt:3f9a12c4`, `dispatch:7c1299aa of prompt:3f9a12c4`: each names its point, as `ic undo` takes it.
fn reference(owner: &BlameOwner) -> String {
    let kind = if owner.is_prompt() { "prompt" } else { "dispatch" };
    let of = owner.prompt.as_ref().map_or(String::new(), |prompt| format!(" of prompt:{}", prompt.id.short()));
    format!("{kind}:{}{of}", owner.dispatch.id.short())
}

fn whose(changed: &BlamedChange) -> String {
    match changed.owners.as_slice() {
        // This comes before the empty list: what a restore changed belongs to no work.
        _ if changed.is_restore => format!("a restore, checkpoint:{}", changed.to.short()),
        [] => "no recorded work".to_owned(),
        owners => owners.iter().map(reference).collect::<Vec<_>>().join(" or "),
    }
}

fn calls(changed: &BlamedChange) -> String {
    let mut tools: Vec<&str> = changed.calls.iter().map(|call| call.tool.as_str()).collect();
    // The tools are in the order of the calls: only runs of one tool become one word.
    tools.dedup();
    tools.join(", ")
}

fn titles(changed: &BlamedChange) -> String {
    let title = |owner: &BlameOwner| {
        let part = if owner.prompt.is_some() { "↳ " } else { "" };
        let undone = if owner.dispatch.rolled_back_by.is_some() { " (undone)" } else { "" };
        format!("{part}{}{undone}", owner.dispatch.work.name.as_deref().unwrap_or_default())
    };
    changed.owners.iter().map(title).collect::<Vec<_>>().join("; ")
}
