//! The commits of a rollback.

use ic_checkpoint::git::GitCommit;
use ic_undo::{LeavingCommit, OwnCommit};

use crate::text::{Cell, TextTable, style};

shape! {
    /// A commit that a rollback takes off its branch.
    pub(crate) struct CommitJson from commit: &LeavingCommit where
        dispatch = commit.dispatch.as_ref();
        known = Some(&commit.commit).filter(|known| known.written_at.is_some());
    {
        sha: String = commit.commit.sha.clone(),
        /// The dispatch of the run that recorded it; null if none did.
        dispatch_id: Option<String> = dispatch.map(|dispatch| dispatch.id.to_string()),
        dispatch_name: Option<String> = dispatch.and_then(|dispatch| dispatch.work.name.clone()),
        phase: Option<String> = dispatch.map(|dispatch| dispatch.phase.clone()),
        /// The other run that recorded it, even if this one did, too; null if no other did, or that record is rolled back.
        other_run_id: Option<String> = commit.other_run.as_ref().map(ToString::to_string),
        /// The first line of its message; null if git cannot read it.
        subject: Option<String> = known.map(|one| ic_base::title(&one.subject)),
        author: Option<String> = known.map(|one| ic_base::title(&one.author)),
        /// Whether a remote branch has it, as far as this repository knows.
        pushed: Option<bool> = known.map(|one| one.is_pushed),
    }

    /// A commit of the dispatch that alone is undone: it stays on its branch.
    pub(crate) struct OwnCommitJson from one: &OwnCommit {
        sha: String = one.commit.sha.clone(),
        /// The first line of its message.
        subject: String = ic_base::title(&one.commit.subject),
        author: String = ic_base::title(&one.commit.author),
        /// `tip`: it is checked out; `buried`: it is below others; `pushed`: a remote branch has it; `merge`; `shared`: it may have more than
        /// the work, because others worked at the same time while it was not recorded for this dispatch, or it has what they had changed, or
        /// it is older than the work, which rebased it; `elsewhere`: it is not in the history of HEAD, as on another branch, or after a rebase.
        status: &'static str as ic_undo::CommitState = one.state().as_str(),
        /// The command that makes a commit which undoes it; null if it is not in the history of HEAD, or others may have made it.
        revert: Option<String> = one.revert(),
    }
}

/// The most paths and commits that are shown; the rest is counted.
pub(crate) const SHOWN: usize = 40;

pub(crate) fn commits_of(commits: &[LeavingCommit]) -> String {
    if commits.is_empty() {
        return String::new();
    }
    let mut out = match commits.len() {
        1 => "  1 commit leaves its branch; it is kept below refs/ic/rolled-back/\n".to_owned(),
        n => {
            format!("  {n} commits leave their branches, the newest first; they are kept below refs/ic/rolled-back/\n")
        }
    };
    let mut table = TextTable::headless();
    for commit in commits.iter().take(SHOWN) {
        let dispatch = commit.dispatch.as_ref();
        table.row(vec![
            "   ".into(),
            Cell::new(style::STRONG, &commit.commit.sha[..commit.commit.sha.len().min(8)]),
            dispatch.map_or("", |dispatch| dispatch.phase.as_str()).into(),
            match (dispatch, &commit.other_run) {
                (Some(d), None) => d.work.name.as_deref().unwrap_or(d.id.short()).into(),
                (Some(d), Some(run)) => Cell::new(
                    style::BAD,
                    &format!(
                        "{}, and recorded by the run {} too",
                        d.work.name.as_deref().unwrap_or(d.id.short()),
                        run.short()
                    ),
                ),
                (None, Some(run)) => Cell::new(style::BAD, &format!("recorded by the run {}", run.short())),
                (None, None) => "recorded for no dispatch".into(),
            },
            described(&commit.commit),
        ]);
    }
    out += &table.render("");
    out + &more(commits.len())
}

/// The commits of one dispatch, which its undo does not move. `has_changes`: whether the tree has any of the work; `is_planned`: whether to
/// say how to revert them instead. Once the tree has changed, git refuses a revert.
pub(crate) fn own_commits(commits: &[OwnCommit], has_changes: bool, is_planned: bool) -> String {
    let named = if has_changes { "; what is undone in the tree is named above" } else { "" };
    let mut out = format!(", which stay where they are{named}\n");
    let mut table = TextTable::headless();
    for one in commits.iter().take(SHOWN) {
        let commit = &one.commit;
        table.row(vec![
            " ".into(),
            Cell::new(style::STRONG, commit.sha.get(..12).unwrap_or(&commit.sha)),
            Cell::new(style::WARN, one.state().as_str()),
            ic_base::title(&commit.subject).as_str().into(),
            Cell::new(style::DIM, &ic_base::title(&commit.author)),
        ]);
    }
    out += &table.render("");
    let reverts = commits.iter().take(SHOWN).filter(|_| is_planned).filter_map(OwnCommit::revert);
    let reverts: Vec<String> = reverts.map(|command| format!("    {command}\n")).collect();
    if !reverts.is_empty() {
        out += "  to undo them by commits instead:\n";
        out += &reverts.concat();
    }
    out + &more(commits.len())
}

/// A commit: its message, its author, and whether a remote has it.
fn described(one: &GitCommit) -> Cell {
    if one.written_at.is_none() {
        return "".into();
    }
    let text = format!("{} ({})", ic_base::title(&one.subject), ic_base::title(&one.author));
    if one.is_pushed {
        Cell::new(style::BAD, &format!("{text}, a remote has it"))
    } else {
        Cell::new(style::DIM, &text)
    }
}

pub(crate) fn more(count: usize) -> String {
    match count.saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!("    and {n} more: --json\n"),
    }
}
