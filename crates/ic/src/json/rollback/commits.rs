//! Commits that a rollback is about.

use ic_rollback::{LeavingCommit, OwnCommit};
use serde::Serialize;

/// A commit that leaves its branch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CommitJson {
    sha: String,
    /// The dispatch of the run that recorded it; null if none did.
    dispatch_id: Option<String>,
    dispatch_name: Option<String>,
    phase: Option<String>,
    /// The other run that recorded it, though this one may have too; null if no other did, or its record is rolled back.
    other_run_id: Option<String>,
    /// The first line of its message; null if git does not say.
    subject: Option<String>,
    author: Option<String>,
    /// Whether a branch of a remote has it, as far as this repository knows.
    pushed: Option<bool>,
}

impl From<&LeavingCommit> for CommitJson {
    fn from(commit: &LeavingCommit) -> Self {
        let dispatch = commit.dispatch.as_ref();
        Self {
            sha: commit.sha.clone(),
            dispatch_id: dispatch.map(|dispatch| dispatch.id.to_string()),
            dispatch_name: dispatch.and_then(|dispatch| dispatch.work.name.clone()),
            phase: dispatch.map(|dispatch| dispatch.phase.clone()),
            other_run_id: commit.other_run.as_ref().map(ToString::to_string),
            subject: commit.described.as_ref().map(|one| ic_base::title(&one.subject)),
            author: commit.described.as_ref().map(|one| ic_base::title(&one.author)),
            pushed: commit.described.as_ref().map(|one| one.is_pushed),
        }
    }
}

/// A commit of the dispatch that alone is undone.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OwnCommitJson {
    sha: String,
    /// The first line of its message.
    subject: String,
    author: String,
    /// `tip`: it is checked out; `buried`: below others; `pushed`: a branch of a remote has it; `merge`; `shared`: others worked meanwhile and
    /// it was not recorded for this dispatch; `rewritten`: what is checked out does not have it.
    #[cfg_attr(test, schemars(extend("enum" = ic_rollback::CommitState::WORDS)))]
    status: &'static str,
    /// The command that makes a commit which undoes it; null where nothing of it is checked out.
    revert: Option<String>,
}

impl From<&OwnCommit> for OwnCommitJson {
    fn from(one: &OwnCommit) -> Self {
        Self {
            sha: one.commit.sha.clone(),
            subject: ic_base::title(&one.commit.subject),
            author: ic_base::title(&one.commit.author),
            status: one.state().as_str(),
            revert: one.revert(),
        }
    }
}
