//! Which work changed a file: what the looks at the tree say, and beyond the first of them what git says.

use std::path::Path;

use ic_base::{CheckpointId, Code, Diagnosis, Result, Seq, Timestamp};
use ic_checkpoint::diff::{self, DiffState, Difference, TreeChange};
use ic_checkpoint::git::{self, PathCommit};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointRecord};
use ic_dispatch::{Dispatch, code, dispatch};
use ic_ledger::Actor;
use ic_ledger::{Snapshot, path_from_bytes};
use ic_session::attribution::Attribution;
use ic_session::{self as session, AgentSession, ToolCall};
use ic_worktree::{Workspace, path_in_root, require_here};

/// What is known of a file.
#[derive(Debug)]
pub struct BlameReport {
    /// The file's path, relative to the root of the working tree.
    pub path: Vec<u8>,
    /// What the looks at the tree show, newest first.
    pub changes: Vec<BlamedChange>,
    /// Whether there are more changes than were asked for.
    pub has_more: bool,
    /// Whether the file differs from the newest look: it changed afterwards, and no look has seen that yet.
    pub is_unseen: bool,
    /// The commits that changed it, newest first, with the work that recorded them.
    pub commits: Vec<(PathCommit, Option<BlameOwner>)>,
}

/// A change of a file between two looks at the tree.
#[derive(Debug)]
pub struct BlamedChange {
    /// What became of it.
    pub change: TreeChange,
    /// When the later look was taken.
    pub seen_at: Timestamp,
    /// The look before it.
    pub from: CheckpointId,
    /// The look that shows it.
    pub to: CheckpointId,
    /// Whether a restore made it: an undo or a redo.
    pub is_restore: bool,
    /// The work that may have made it. One: that one did. Several: it is not known which. None: no recorded work did.
    pub owners: Vec<BlameOwner>,
    /// The tool calls that may have made it.
    pub calls: Vec<ToolCall>,
}

/// Work that may have made a change.
#[derive(Debug)]
pub struct BlameOwner {
    /// The dispatch that did the work.
    pub dispatch: Dispatch,
    /// The session of the agent whose prompt it is, or began it.
    pub session: Option<AgentSession>,
    /// The work of that prompt, which began this work; `None`: it is the prompt itself, or there is none.
    pub prompt: Option<Dispatch>,
    /// Who wrote the event with which the work was created.
    pub actor: Option<Actor>,
}

impl BlameOwner {
    fn new(snapshot: &Snapshot<'_>, dispatch: Dispatch) -> Result<Self> {
        let session = session::of_work(snapshot, &dispatch)?;
        // Without a session there is no prompt above it, and the walk would read each parent for nothing.
        let prompt = if session.is_some() { prompt_above(snapshot, &dispatch)? } else { None };
        let actor = ic_ledger::events::author(snapshot, dispatch.seq)?;
        Ok(Self { dispatch, session, prompt, actor })
    }

    /// Whether it is a prompt itself, and no subagent's work or continuation.
    pub fn is_prompt(&self) -> bool {
        self.session.is_some() && self.prompt.is_none()
    }
}

/// The prompt that began work; `None`: it is one itself, or there is none.
fn prompt_above(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<Option<Dispatch>> {
    for one in dispatch::with_parents(snapshot, work)? {
        if session::prompt_of(snapshot, &one.id)?.is_some() {
            return Ok((one.id != work.id).then_some(one));
        }
    }
    Ok(None)
}

/// Which work changed a file, up to a number of changes and of commits.
///
/// Errors: `path_not_found` for a path outside of the working tree, or one of which neither a look at the tree, nor git, nor the tree
/// itself knows; `foreign_root` for one of another work tree; `invalid_value` for a directory.
pub fn blame(workspace: &Workspace<'_>, path: &Path, at_most: usize) -> Result<BlameReport> {
    let path = path_in_root(workspace, path)?;
    require_here(workspace, &path)?;
    let full = workspace.root.join(path_from_bytes(&path));
    if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Err(Diagnosis::new(Code::InvalidValue, format!("{} is a directory.", full.display()))
            .hint("name one file; which files a prompt changed: ic checkpoint diff FROM TO --stat"));
    }
    let looks = workspace.kernel.read(|snapshot| record::of_root_between(snapshot, &workspace.root, 0, Seq::MAX))?;
    let (mut found, last) = differences(workspace, &looks, &path)?;
    // The differences are oldest first. The newest are kept where there are too many.
    found.reverse();
    let has_more = found.len() > at_most;
    found.truncate(at_most);
    // Git is asked before the read below, so that no snapshot of the ledger is held open for it.
    let commits = git::commits_of_path(&workspace.root, &path, at_most);
    if found.is_empty() && last.is_none() && commits.is_empty() && full.symlink_metadata().is_err() {
        return Err(Diagnosis::new(
            Code::PathNotFound,
            format!("There is no file {}, and no record of one.", full.display()),
        )
        .hint("give the path of a file in the working tree"));
    }
    // If no look has a path, it is known from git alone. Then there is no look from which it could differ.
    let is_known = last.is_some() || !found.is_empty();
    let is_unseen = is_known && !is_as_seen(&full, last.as_ref());
    workspace.kernel.read(|snapshot| {
        let changes = found
            .iter()
            .map(|(from, to, difference)| changed(snapshot, workspace, (&looks[*from], &looks[*to]), difference));
        let changes = changes.collect::<Result<_>>()?;
        let maker = |commit: &PathCommit| -> Result<Option<BlameOwner>> {
            let maker = code::maker_of(snapshot, &commit.sha)?;
            maker.map(|id| BlameOwner::new(snapshot, dispatch::get(snapshot, &id)?)).transpose()
        };
        let commits = commits.into_iter().map(|commit| maker(&commit).map(|maker| (commit, maker)));
        Ok(BlameReport { path: path.clone(), changes, has_more, is_unseen, commits: commits.collect::<Result<_>>()? })
    })
}

/// Between which two looks a path changed, oldest first; and how the newest look that knows it has it.
type Found = (Vec<(usize, usize, Difference)>, Option<DiffState>);

fn differences(workspace: &Workspace<'_>, looks: &[CheckpointRecord], path: &[u8]) -> Result<Found> {
    let mut found = Vec::new();
    let mut before: Option<(usize, Option<DiffState>)> = None;
    for (at, look) in looks.iter().enumerate() {
        // Most looks show the same tree, and none of these needs a read of the store.
        if at > 0 && look.tree == looks[at - 1].tree {
            if let Some((last, _)) = before.as_mut().filter(|(last, _)| *last == at - 1) {
                *last = at;
            }
            continue;
        }
        let state = diff::find(&workspace.objects, &look.tree, path)?;
        // A path that the look left out says nothing of what was there.
        if matches!(state, Some(DiffState::Passed(_))) {
            continue;
        }
        if let Some((last, known)) = before.as_ref().filter(|(_, known)| *known != state) {
            let difference = Difference { path: path.to_vec(), before: known.clone(), after: state.clone() };
            if difference.change().is_some() {
                // It does not begin at the look right before: looks that left the path out may lie in between, and it may have changed
                // there.
                found.push((*last, at, difference));
            }
        }
        before = Some((at, state));
    }
    Ok((found, before.and_then(|(_, state)| state)))
}

fn changed(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    (from, to): (&CheckpointRecord, &CheckpointRecord),
    difference: &Difference,
) -> Result<BlamedChange> {
    let range = (from.seq, to.seq);
    let attribution = Attribution::between(snapshot, &workspace.root, range, from.created_at)?;
    let (mut owners, mut calls) = (Vec::new(), Vec::new());
    for window in attribution.windows() {
        let of_path = window.owners(&difference.path);
        // A call or work that lasts is in several windows.
        for call in window.calls(&difference.path) {
            let is_known = calls.iter().any(|known: &ToolCall| known.id == call.id);
            if !is_known && of_path.iter().any(|owner| owner.id == call.dispatch_id) {
                calls.push(call.clone());
            }
        }
        for owner in of_path {
            if !owners.iter().any(|known: &BlameOwner| known.dispatch.id == owner.id) {
                owners.push(BlameOwner::new(snapshot, owner.clone())?);
            }
        }
    }
    Ok(BlamedChange {
        // What has none is left out before.
        change: difference.change().unwrap_or(TreeChange::Modified),
        seen_at: to.created_at,
        from: from.id.clone(),
        to: to.id.clone(),
        is_restore: to.kind == CheckpointKind::Restored,
        owners,
        calls,
    })
}

/// Whether a file is as the newest look has it.
fn is_as_seen(full: &Path, seen: Option<&DiffState>) -> bool {
    let Ok(found) = full.symlink_metadata() else { return seen.is_none() };
    match seen {
        Some(DiffState::File { hash, size, .. }) => {
            // Compared by content: an editor or a switch of branches changes times and nothing else.
            let content = || std::fs::read(full).is_ok_and(|bytes| ic_checkpoint::objects::hash_of(&bytes) == *hash);
            found.is_file() && found.len() == *size && content()
        }
        Some(DiffState::Symlink(target)) => {
            std::fs::read_link(full).is_ok_and(|now| ic_ledger::path_bytes(&now) == target.as_slice())
        }
        _ => false,
    }
}
