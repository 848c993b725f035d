//! Which work changed a file.

use ic_base::Timestamp;
use ic_ops::blame::{Blame, Changed, Owner};
use ic_session::Call;
use ic_store::path_from_bytes;
use serde::Serialize;

use super::exact;

/// Which work changed a file (`blame`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BlameJson {
    /// From the root of the working tree.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    /// What the checkpoints show, newest first.
    changes: Vec<BlamedChangeJson>,
    /// Whether there are more changes than `--limit`.
    has_more: bool,
    /// Whether the file differs from the newest checkpoint: it changed since.
    changed_since: bool,
    /// What git says, newest first.
    commits: Vec<BlamedCommitJson>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlamedChangeJson {
    #[cfg_attr(test, schemars(extend("enum" = ic_checkpoint::diff::Change::WORDS)))]
    change: &'static str,
    /// When the checkpoint was taken that shows it first.
    created_at: String,
    /// The checkpoint before it.
    from_checkpoint_id: String,
    /// The checkpoint that shows it first.
    to_checkpoint_id: String,
    /// Whether a restore made it: something was undone, or brought back.
    by_restore: bool,
    /// The work that made it. Several: any of them may have. None: no recorded work made it.
    dispatches: Vec<BlamedWorkJson>,
    /// The tool calls that may have made it, oldest first.
    calls: Vec<CallJson>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlamedWorkJson {
    id: String,
    short_id: String,
    run_id: String,
    /// The title of the prompt, or the name of the dispatch.
    name: Option<String>,
    /// The session of the coding agent whose prompt it is.
    session_id: Option<String>,
    /// The client of that session.
    client: Option<String>,
    rolled_back_by: Option<String>,
}

/// A tool call of a coding agent that may change files.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CallJson {
    id: String,
    short_id: String,
    /// The prompt's work that it belongs to.
    dispatch_id: String,
    /// The kind of the subagent that made it; null: the agent itself did.
    agent_kind: Option<String>,
    tool: String,
    /// What it was asked to do, on one line; null: it was redacted.
    line: Option<String>,
    /// The files that it named, from the root.
    paths: Vec<String>,
    created_at: String,
    /// When its end was reported; null: it never was, or it is running.
    finished_at: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlamedCommitJson {
    sha: String,
    subject: String,
    author: String,
    created_at: String,
    /// The dispatch that recorded it; null: none did.
    dispatch_id: Option<String>,
}

impl From<&Call> for CallJson {
    fn from(call: &Call) -> Self {
        Self {
            id: call.id.to_string(),
            short_id: call.id.short().to_owned(),
            dispatch_id: call.dispatch_id.to_string(),
            agent_kind: call.agent_type.clone(),
            tool: call.tool.clone(),
            line: call.line.clone(),
            paths: call.paths.clone(),
            created_at: call.created_at.to_string(),
            finished_at: call.finished_at.map(|at| at.to_string()),
        }
    }
}

impl From<&Owner> for BlamedWorkJson {
    fn from(owner: &Owner) -> Self {
        let Owner { dispatch, session } = owner;
        Self {
            id: dispatch.id.to_string(),
            short_id: dispatch.id.short().to_owned(),
            run_id: dispatch.run_id.to_string(),
            name: dispatch.work.name.clone(),
            session_id: session.as_ref().map(|session| session.id.to_string()),
            client: session.as_ref().map(|session| session.client.clone()),
            rolled_back_by: dispatch.rolled_back_by.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Changed> for BlamedChangeJson {
    fn from(changed: &Changed) -> Self {
        Self {
            change: changed.change.as_str(),
            created_at: changed.seen_at.to_string(),
            from_checkpoint_id: changed.from.to_string(),
            to_checkpoint_id: changed.to.to_string(),
            by_restore: changed.is_restore,
            dispatches: changed.owners.iter().map(BlamedWorkJson::from).collect(),
            calls: changed.calls.iter().map(CallJson::from).collect(),
        }
    }
}

impl From<&Blame> for BlameJson {
    fn from(blame: &Blame) -> Self {
        let path = path_from_bytes(&blame.path);
        let commits = blame.commits.iter().map(|(commit, maker)| BlamedCommitJson {
            sha: commit.sha.clone(),
            subject: commit.subject.clone(),
            author: commit.author.clone(),
            created_at: Timestamp(commit.seconds.saturating_mul(1000)).to_string(),
            dispatch_id: maker.as_ref().map(|maker| maker.id.to_string()),
        });
        Self {
            path: path.to_string_lossy().into_owned(),
            path_b64: exact(&path),
            changes: blame.changes.iter().map(BlamedChangeJson::from).collect(),
            has_more: blame.has_more,
            changed_since: blame.is_unseen,
            commits: commits.collect(),
        }
    }
}
