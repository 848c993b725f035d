//! What one dispatch did to the tree: what differs between the looks at the tree from its start to its end, as far as it is its own
//! ([`ic_session::attribution`]).

use std::path::Path;

use ic_base::{Code, Diagnosis, DispatchId, Result, Seq};
use ic_checkpoint::diff;
use ic_checkpoint::git::{self, Commit, GitState};
use ic_checkpoint::manifest::{Manifest, PathText};
use ic_checkpoint::record::{self, Checkpoint};
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::{Dispatch, code, dispatch, report};
use ic_phase::run;
use ic_session::attribution::Attribution;
use ic_session::call;
use ic_store::{Snapshot, path_bytes};

use ic_worktree::Workspace;

/// The tree before a dispatch, and what the dispatch did to it.
pub(super) struct OwnWork {
    /// The checkpoint that was taken as it began.
    pub(super) before: Checkpoint,
    /// What it changed.
    pub(super) changes: Own,
    /// The commits that were made meanwhile, newest first.
    pub(super) commits: Vec<OwnCommit>,
}

/// A commit that was made while a dispatch was at work, or recorded for it. The undo of one dispatch moves no branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommit {
    /// The commit, and where it is now.
    pub commit: Commit,
    /// Others worked meanwhile, and it was not recorded for this dispatch alone: nobody knows whose it is.
    pub is_shared: bool,
}

ic_base::words! {
    /// Where a commit is that a run made.
    pub enum CommitState {
        /// It is checked out.
        Tip = "tip",
        /// Others are above it.
        Buried = "buried",
        /// A remote has it.
        Pushed = "pushed",
        /// It joins several histories.
        Merge = "merge",
        /// Others worked meanwhile: it may be theirs.
        Shared = "shared",
        /// What is checked out does not have it.
        Rewritten = "rewritten",
    }
}

impl OwnCommit {
    /// What a person must know before it is reverted: the first of these that is so.
    pub fn state(&self) -> CommitState {
        match &self.commit {
            commit if !commit.is_reached => CommitState::Rewritten,
            commit if commit.is_merge => CommitState::Merge,
            _ if self.is_shared => CommitState::Shared,
            commit if commit.is_pushed => CommitState::Pushed,
            commit if commit.is_tip => CommitState::Tip,
            _ => CommitState::Buried,
        }
    }

    /// The command that makes a commit which undoes it; `None` where nothing of it is checked out.
    pub fn revert(&self) -> Option<String> {
        let commit = &self.commit;
        let short = commit.sha.get(..12).unwrap_or(&commit.sha);
        let parent = if commit.is_merge { " -m 1" } else { "" };
        commit.is_reached.then(|| format!("git revert --no-edit{parent} {short}"))
    }
}

/// What a dispatch that has ended did to the tree of its run, with the work that it began. Errors: `no_checkpoint` if the tree was not
/// captured as it began, or as it ended, or is not kept any more.
pub(super) fn of_dispatch(
    workspace: &Workspace<'_>,
    id: &DispatchId,
    descendants: &[DispatchId],
) -> Result<OwnWork> {
    let is_own = |other: &DispatchId| other == id || descendants.contains(other);
    let (dispatch, attribution, since, recorded) = workspace.kernel.read(|snapshot| {
        let dispatch = dispatch::resolve(snapshot, id.as_str())?;
        let run = run::get(snapshot, &dispatch.run_id)?;
        let place = ic_point::place_of(snapshot, &run, &dispatch)?;
        let before = ic_point::checkpoint_at(snapshot, &run, place.seq)?;
        let before = kept(before, &dispatch, "as it began")?;
        let after = kept(at_end(snapshot, &workspace.root, &dispatch)?, &dispatch, "as it ended")?;
        let mut last = after.seq;
        for own in std::iter::once(id).chain(descendants) {
            // Calls may have gone on after its end: a subagent was left in the background.
            let calls = call::of_dispatch(snapshot, own)?;
            last = calls.iter().filter_map(|call| call.ended_seq).fold(last, Seq::max);
        }
        // Where an end was not looked at, the next look shows what was done until then.
        let last = record::look_since(snapshot, &workspace.root, last)?.map_or(last, |look| look.seq);
        let range = (before.seq, last);
        let attribution = Attribution::between(snapshot, &workspace.root, range, before.created_at)?;
        let mut recorded = Vec::new();
        for own in std::iter::once(id).chain(descendants) {
            recorded.extend(code::commits_of(snapshot, own)?.into_iter().rev().map(|commit| commit.sha));
        }
        let since = (last, ic_events::head(snapshot)?.0);
        let since = Attribution::between(snapshot, &workspace.root, since, before.created_at)?;
        Ok((dispatch, attribution, since, recorded))
    })?;
    let mut changes = changes_of(workspace, &attribution, &is_own)?;
    add_since(workspace, &mut changes, &since)?;
    require_one_branch(workspace, &dispatch, &attribution.looks)?;
    let others = attribution.workers.iter().any(|other| !is_own(&other.id));
    let is_told = attribution.is_told_by_calls(id);
    let captures = attribution.looks;
    let commits = if is_told {
        // Each call's commits are on record: what else came was pulled, or a person made it.
        leave_brought(workspace, &mut changes, &captures, &recorded)?;
        leave_unstashed(workspace, &mut changes, &captures)?;
        commits_of(workspace, recorded.clone(), &recorded, others)
    } else {
        let made = heads_between(workspace, &captures, 200)?;
        commits_of(workspace, made, &recorded, others)
    };
    let before = captures.into_iter().next().ok_or_else(|| missing(&dispatch, "as it began"))?;
    Ok(OwnWork { before, changes, commits })
}

/// What differs between the looks at the tree, as far as it is of the work.
fn changes_of(
    workspace: &Workspace<'_>,
    attribution: &Attribution,
    is_own: &impl Fn(&DispatchId) -> bool,
) -> Result<Own> {
    let mut changes = Own::default();
    for window in attribution.windows() {
        let trees = (Some(&window.from.tree), Some(&window.to.tree));
        diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
            let owners = window.owners(&difference.path);
            let others: Vec<&Dispatch> = owners.iter().filter(|one| !is_own(&one.id)).copied().collect();
            match (others.len() < owners.len(), others.as_slice()) {
                (true, []) if window.is_in_call() => changes.add(difference),
                (true, []) if difference.change().is_some() => {
                    changes.add_shared(difference.path, "what ran outside of its tool calls, or a person");
                }
                (true, others) if difference.change().is_some() => {
                    changes.add_shared(difference.path, &names(others));
                }
                (false, others) if !is_undone(others) => changes.add_since(difference),
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(changes)
}

/// Adds what others did to the paths of the work after its last look at the tree.
fn add_since(workspace: &Workspace<'_>, changes: &mut Own, since: &Attribution) -> Result<()> {
    for window in since.windows() {
        let trees = (Some(&window.from.tree), Some(&window.to.tree));
        diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
            if !is_undone(&window.owners(&difference.path)) {
                changes.add_since(difference);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether a change of these dispatches was undone; one of none is a person's.
fn is_undone(owners: &[&Dispatch]) -> bool {
    !owners.is_empty() && owners.iter().all(|owner| owner.rolled_back_by.is_some())
}

/// Errors: `branch_switched` where the work ended on another branch than it began on, for what differs is the branches' difference, too; and
/// where what is checked out has not what it was done on, for its files are not here.
fn require_one_branch(workspace: &Workspace<'_>, dispatch: &Dispatch, looks: &[Checkpoint]) -> Result<()> {
    let mut states = Vec::new();
    for look in looks.iter().filter(|look| !look.link.of_call) {
        states.extend(Manifest::read(&workspace.objects, &look.manifest)?.git);
    }
    let (Some(first), Some(last)) = (states.first(), states.last()) else { return Ok(()) };
    let id = dispatch.id.short();
    let all = format!("ic undo dispatch:{id} --dry-run");
    let (message, hint) = if first.branch == last.branch && !is_moved(&workspace.root, first, last) {
        let here = git::branch(&workspace.root);
        let is_here = here.is_some() && here == last.branch.as_ref().map(|branch| branch.0.clone());
        let ends = first.head.as_deref().zip(last.head.as_deref());
        if is_here
            || !has_branch(&workspace.root, last)
            || has_commit(&workspace.root, last.head.as_deref())
            || ends.is_some_and(|(from, to)| git::has_changes(&workspace.root, from, to))
        {
            return Ok(());
        }
        let here = here.map(PathText);
        let message = format!(
            "The dispatch {id} worked on {}, and {} is checked out, which has not got that.",
            branch_name(last.branch.as_ref()),
            branch_name(here.as_ref())
        );
        (message, "check that branch out, and undo it there".to_owned())
    } else {
        let message = format!(
            "The dispatch {id} began on {} and ended on {}, so what it did to the files cannot be told from that switch.",
            branch_name(first.branch.as_ref()),
            branch_name(last.branch.as_ref())
        );
        (message, format!("undo it with all that came after it, and switch back: {all}"))
    };
    Err(Diagnosis::new(Code::BranchSwitched, message).hint(hint).detail("dispatch_id", dispatch.id.as_str()))
}

/// Whether work without a branch ended on a commit that has not got the one on which it began.
fn is_moved(root: &Path, first: &GitState, last: &GitState) -> bool {
    let heads = first.head.as_deref().zip(last.head.as_deref()).filter(|_| last.branch.is_none());
    heads.is_some_and(|(first, last)| !git::commits_between(root, last, first, 1).is_empty())
}

/// Whether there is anything to check out where the work was done: a branch that is gone by now was merged somehow, or thrown away.
fn has_branch(root: &Path, last: &GitState) -> bool {
    let Some(branch) = &last.branch else { return true };
    let name = format!("refs/heads/{}", String::from_utf8_lossy(&branch.0));
    git::is_ref(root, &name)
}

/// Whether what is checked out is a commit or has it among its ancestors.
fn has_commit(root: &Path, sha: Option<&str>) -> bool {
    let Some(sha) = sha else { return true };
    git::commits(root, &[sha.to_owned()]).first().is_some_and(|commit| commit.is_reached)
}

/// For people.
fn branch_name(branch: Option<&PathText>) -> String {
    branch.map_or("a detached HEAD".to_owned(), |name| ic_base::title(&String::from_utf8_lossy(&name.0)))
}

/// What commits that it did not make brought is no work of its own, though the files came while it worked.
fn leave_brought(
    workspace: &Workspace<'_>,
    changes: &mut Own,
    captures: &[Checkpoint],
    recorded: &[String],
) -> Result<()> {
    // What is fetched at once seldom is more.
    let mut brought = heads_between(workspace, captures, 10_000)?;
    brought.retain(|sha| !is_recorded(recorded, sha));
    if brought.is_empty() {
        return Ok(());
    }
    let log = git::log_of(&workspace.root, &brought)?;
    let known = changes.paths();
    let files = report::parse(&log)?.commits.into_iter().flat_map(|commit| commit.files);
    for path in files.map(|path| path_bytes(&path).to_vec()).filter(|path| known.contains(path)) {
        changes.leave(path, "a commit that this work did not make brought it");
    }
    Ok(())
}

/// What the work took off a stash that was there before is no work of its own, and is nowhere else by now.
fn leave_unstashed(workspace: &Workspace<'_>, changes: &mut Own, captures: &[Checkpoint]) -> Result<()> {
    let mut looks = captures.iter().filter(|look| !look.link.of_call);
    let (Some(first), Some(last)) = (looks.next(), looks.next_back()) else { return Ok(()) };
    let stash = |look: &Checkpoint| -> Result<Vec<String>> {
        let git = Manifest::read(&workspace.objects, &look.manifest)?.git;
        Ok(git.map(|git| git.stash.into_iter().map(|entry| entry.commit).collect()).unwrap_or_default())
    };
    let (had, has) = (stash(first)?, stash(last)?);
    let known = changes.paths();
    for entry in had.iter().filter(|entry| !has.contains(entry)) {
        let paths = git::stashed_paths(&workspace.root, entry);
        for path in paths.into_iter().filter(|path| known.contains(path)) {
            changes.leave(path, "it came off the stash, where others had put it");
        }
    }
    Ok(())
}

/// The commits that are checked out at the last look and were not at the first, newest first.
fn heads_between(workspace: &Workspace<'_>, captures: &[Checkpoint], at_most: usize) -> Result<Vec<String>> {
    // The looks around a call say nothing of git.
    let mut looks = captures.iter().filter(|look| !look.link.of_call);
    let (first, last) = (looks.next(), looks.next_back());
    let head = |look: Option<&Checkpoint>| -> Result<Option<String>> {
        let Some(look) = look else { return Ok(None) };
        Ok(Manifest::read(&workspace.objects, &look.manifest)?.git.and_then(|git| git.head))
    };
    let ends = head(first)?.zip(head(last)?);
    let between = ends.map(|(from, to)| git::commits_between(&workspace.root, &from, &to, at_most));
    Ok(between.unwrap_or_default())
}

fn is_recorded(recorded: &[String], sha: &str) -> bool {
    recorded.iter().any(|own| sha.starts_with(own.as_str()))
}

/// The commits that were made while a dispatch was at work, and those that were recorded for it.
fn commits_of(
    workspace: &Workspace<'_>,
    mut shas: Vec<String>,
    recorded: &[String],
    is_shared: bool,
) -> Vec<OwnCommit> {
    let lost: Vec<String> = recorded
        .iter()
        .filter(|own| !shas.iter().any(|sha| sha.starts_with(own.as_str())))
        .cloned()
        .collect();
    shas.extend(lost);
    let found = git::commits(&workspace.root, &shas).into_iter();
    let own =
        |commit: Commit| OwnCommit { is_shared: is_shared && !is_recorded(recorded, &commit.sha), commit };
    found.map(own).collect()
}

/// These dispatches, for people.
fn names(others: &[&Dispatch]) -> String {
    let names = others.iter().map(|other| match &other.work.name {
        Some(name) => format!("{} ({})", ic_base::title(name), other.id.short()),
        None => other.id.short().to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The look at the tree with which a dispatch ended: the event right before the one that ended it. Of work that is told by its calls and
/// whose end its client did not tell, the next look shows it.
fn at_end(snapshot: &Snapshot<'_>, root: &Path, dispatch: &Dispatch) -> Result<Option<Checkpoint>> {
    let Some(end) = dispatch.finished_seq else { return Ok(None) };
    if let Some(look) = record::of_event(snapshot, end - 1)? {
        return Ok(Some(look));
    }
    if call::told_by_calls(snapshot, std::iter::once(&dispatch.id))?.is_empty() {
        return Ok(None);
    }
    if let Some(look) = record::look_since(snapshot, root, end)? {
        return Ok(Some(look));
    }
    // Nothing was captured since: each of its calls ended with a capture.
    let calls = call::of_dispatch(snapshot, &dispatch.id)?;
    let last = calls.iter().filter_map(|call| call.ended_seq).max();
    last.map_or(Ok(None), |last| record::look_since(snapshot, root, last))
}

fn kept(found: Option<Checkpoint>, dispatch: &Dispatch, when: &str) -> Result<Checkpoint> {
    found.filter(|checkpoint| checkpoint.pruned_at.is_none()).ok_or_else(|| missing(dispatch, when))
}

fn missing(dispatch: &Dispatch, when: &str) -> Diagnosis {
    let id = dispatch.id.short();
    Diagnosis::new(
        Code::NoCheckpoint,
        format!("There is no checkpoint of the tree {when}, so the changes of the dispatch {id} cannot be told from others."),
    )
    .hint(format!("undo it with all that came after it: ic undo dispatch:{id} --dry-run; or its record and effects alone: ic undo --dispatch {id} --layer=workflow,effects --yes"))
    .detail("dispatch_id", dispatch.id.as_str())
}
