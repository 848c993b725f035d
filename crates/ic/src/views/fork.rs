//! Forks: made, compared, adopted, dropped.

use ic_checkpoint::diff::TreeChange;
use ic_ledger::path_from_bytes;
use ic_ops::forks::{AdoptedFork, ComparedFork};
use ic_worktree::Warning;
use ic_worktree::forks::{DroppedFork, Fork};

use crate::text::{Cell, TextTable, counted, path_text, plain, style, styled};
use crate::views::PathJson;
use crate::views::checkpoint::restore::RestoreChangeJson;
use crate::views::common_shapes::{SkippedJson, WarningJson};
use crate::views::conversation::ConversationJson;
use crate::views::dispatch::TokensJson;

shape! {
    /// A fork that was just made (`fork`).
    pub(crate) struct ForkJson from (fork: &Fork, warnings: &[Warning]) {
        name: String = fork.name.clone(),
        /// Its directory, a linked work tree.
        #[serde(flatten)]
        path: PathJson = fork.root.as_path().into(),
        /// The checkpoint with which it began; null: the call that made it was killed, or another ledger has it.
        checkpoint_id: Option<String> = fork.base.as_ref().map(|base| base.id.to_string()),
        /// The client's own command that continues the conversation in it; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) continuation: Option<ConversationJson> = None,
        /// What does not come along. Left out if there is nothing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = warnings.iter().map(WarningJson::from).collect(),
    }

    /// A fork beside the others (`compare`).
    pub(crate) struct CompareJson from one: &ComparedFork where
        newest = one.newest.as_ref();
    {
        #[serde(flatten)]
        fork: ForkJson = ForkJson::new(&one.fork, &[]),
        /// The files that differ from those with which it began.
        files: Vec<ForkFileJson> = one.files.iter().map(ForkFileJson::from).collect(),
        /// The newest work in it; null: there is none.
        dispatch_id: Option<String> = newest.map(|work| work.id.to_string()),
        /// The state of that work, as of a dispatch.
        status: Option<&'static str> = newest.map(|work| work.status.as_str()),
        /// Why that work failed; null if it did not.
        error: Option<String> = newest.and_then(|work| work.error.clone()),
        /// Tokens of all work in it.
        tokens: TokensJson = one.tokens.into(),
        commit_count: usize = one.commits,
    }

    /// A file that a fork changed.
    struct ForkFileJson from file: &(Vec<u8>, TreeChange) {
        #[serde(flatten)]
        path: PathJson = path_from_bytes(&file.0).as_path().into(),
        /// added, modified, deleted or another word, as in a diff.
        change: &'static str = file.1.as_str(),
    }

    /// The outcome of an adoption (`adopt`).
    pub(crate) struct AdoptJson from (adopted: &AdoptedFork, dry_run: bool) where
        adoption = &adopted.adoption;
    {
        fork: String = adopted.fork.name.clone(),
        dry_run: bool = dry_run,
        /// The work that has the changes, which an undo takes out; null if nothing changed.
        dispatch_id: Option<String> = adopted.work.as_ref().map(|work| work.id.to_string()),
        /// Every change of files, in the order of paths.
        changes: Vec<RestoreChangeJson> = adoption.plan.steps.iter().map(RestoreChangeJson::from).collect(),
        /// Paths that both changed so that it had to be decided what stays, and how both did.
        conflicts: Vec<SkippedJson> = adoption.decided.iter().map(|one| SkippedJson::new(&one.path.0, one.reason.clone())).collect(),
        /// Paths of the fork that are not here, or only in part, and why.
        skipped: Vec<SkippedJson> = adoption.left.iter().map(|(path, why)| SkippedJson::new(&path.0, why.clone())).collect(),
        /// What went less well. Left out if there is nothing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = adopted.warnings.iter().map(WarningJson::from).collect(),
    }

    /// The outcome of removing a fork (`drop`).
    pub(crate) struct DropJson from (name: &str, dropped: &DroppedFork) {
        fork: String = name.to_owned(),
        /// The checkpoint that has its last state.
        checkpoint_id: String = dropped.checkpoint.to_string(),
        /// The ref that keeps its commits; null: a branch or a tag does, or there are none.
        kept_ref: Option<String> = dropped.kept_ref.clone(),
    }
}

/// Forks, one a line.
pub(crate) fn compared(forks: &[ComparedFork]) -> String {
    let mut table = TextTable::new(&["FORK", "STATUS", "FILES", "COMMITS", "TOKENS", "WORK", "DIRECTORY"]);
    for one in forks {
        let work = one.newest.as_ref();
        table.row(vec![
            Cell::new(style::STRONG, &plain(&one.fork.name)),
            match (&one.fork.base, one.fork.is_finished) {
                (Some(_), _) => work.map_or("", |work| work.status.as_str()),
                (None, true) => "of another ledger",
                (None, false) => "unfinished",
            }
            .into(),
            one.files.len().to_string().as_str().into(),
            one.commits.to_string().as_str().into(),
            (one.tokens.input + one.tokens.output).to_string().as_str().into(),
            plain(work.and_then(|work| work.work.name.as_deref()).unwrap_or("")).as_str().into(),
            path_text(&one.fork.root).as_str().into(),
        ]);
    }
    table.render("No forks. Make one: ic fork")
}

/// What an adoption did, a line a path.
pub(crate) fn adopted(adopted: &AdoptedFork, dry_run: bool) -> String {
    let AdoptedFork { fork, adoption, work, .. } = adopted;
    let name = styled(style::STRONG, &plain(&fork.name));
    let count = counted(adoption.plan.steps.len(), "change");
    let mut out = match (dry_run, work) {
        (true, _) => format!("would adopt {name}: {count}\n"),
        (false, None) => format!("nothing to adopt from {name}\n"),
        (false, Some(_)) => format!("adopted {name}: {count}\n"),
    };
    for step in &adoption.plan.steps {
        out += &format!("  {:<8}  {}\n", step.action.as_str(), path_text(&path_from_bytes(&step.path.0)));
    }
    for (path, why) in &adoption.left {
        out += &format!("  stays     {} ({})\n", path_text(&path_from_bytes(&path.0)), plain(why));
    }
    if let Some(work) = work {
        out += &format!("to take it out again: ic undo {} --only\n", work.id.short());
    }
    out
}

/// What a dropped fork leaves.
pub(crate) fn dropped(name: &str, dropped: &DroppedFork) -> String {
    let name = styled(style::STRONG, &plain(name));
    let kept = dropped.kept_ref.as_ref().map(|kept| format!("its commits are kept by {kept}\n")).unwrap_or_default();
    format!("dropped {name}; its last state is checkpoint {}\n{kept}", dropped.checkpoint.short())
}
