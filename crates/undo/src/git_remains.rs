//! What work did to tags, branches, notes, the stash and the index, and an undo leaves. Each change is named, with the command that reverts
//! it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ic_base::{DispatchId, Result, shell_word};
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::restore::plan::{RestoreNode, RestoreStep};
use ic_checkpoint::restore::reverse::has_change;
use ic_dispatch::{Dispatch, code, dispatch};
use ic_kernel::Kernel;
use ic_kernel::journal::LayerName;
use ic_kernel::journal::table::{RollbackRecord, RollbackStatus};
use ic_ledger::{Snapshot, path_from_bytes};
use ic_phase::{Run, run};
use ic_worktree::{CaptureSettings, RestoreReport, Warning, Workspace};

use super::dispatch_changes::{git_around, git_around_ids};
use super::outcome::Parts;
use super::plan::RollbackPlan;
use super::rollback_marks::marked_dispatches;

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
const NOTES: &str = "refs/notes/";

/// The work that an undo covers.
struct Undone<'r> {
    run: Cow<'r, Run>,
    /// The dispatches that alone are undone; empty: the run goes back.
    chosen: Vec<DispatchId>,
    /// What is cancelled or marked.
    work: Vec<Dispatch>,
}

/// A warning for each ref, each entry of the stash and each staged path that changed during the work of the plan, and that stays so.
/// `is_done`: the plan was carried out, and the repository says what is left.
pub(super) fn remaining(
    kernel: &Kernel,
    settings: &CaptureSettings,
    plan: &RollbackPlan,
    parts: &Parts,
    is_done: bool,
) -> Result<Vec<Warning>> {
    let work = plan.cancelled_dispatches.iter().chain(&plan.marked_dispatches).cloned().collect();
    let undone = Undone { run: Cow::Borrowed(&plan.run), chosen: plan.chosen.clone(), work };
    let restored = parts.tree.as_ref().and_then(|tree| tree.git.as_ref());
    // The undo of an effect may remove a tag that its step made, which is known only afterwards.
    let has_effects = parts.effects.as_ref().is_some_and(|effects| !effects.compensations.is_empty());
    if has_effects && !is_done {
        return Ok(Vec::new());
    }
    // A rollback that leaves the tree, or git's state, says so by its layers; only an undo of works names what it left.
    if parts.tree.is_none() || (restored.is_none() && undone.chosen.is_empty()) {
        return Ok(Vec::new());
    }
    left_of(kernel, settings, &undone, parts.tree.as_ref(), is_done)
}

/// What git keeps of the work that a rollback undid which is done, whichever call made its steps: the warnings that its report has.
///
/// Errors: those of reading the ledger and of asking git.
pub fn git_remains(kernel: &Kernel, settings: &CaptureSettings, remembered: &RollbackRecord) -> Result<Vec<Warning>> {
    let chosen = remembered.chosen();
    let has = |layer| remembered.layers.contains(&layer);
    let is_meant = has(LayerName::Git) || !chosen.is_empty() && has(LayerName::Files);
    if remembered.status != RollbackStatus::Done || !is_meant {
        return Ok(Vec::new());
    }
    let (run, work) = kernel.read(|snapshot| {
        let ids = marked_dispatches(remembered);
        let work = ids.iter().map(|id| dispatch::get(snapshot, id)).collect::<Result<Vec<_>>>()?;
        Ok((run::get(snapshot, &remembered.run_id)?, work))
    })?;
    left_of(kernel, settings, &Undone { run: Cow::Owned(run), chosen, work }, None, true)
}

fn left_of(
    kernel: &Kernel,
    settings: &CaptureSettings,
    undone: &Undone<'_>,
    report: Option<&RestoreReport>,
    is_done: bool,
) -> Result<Vec<Warning>> {
    let restored = report.and_then(|report| report.git.as_ref());
    let taken_back = report.map_or(&[][..], |report| &report.index);
    // Where git's state is restored, only what that leaves is named.
    let is_alone = !undone.chosen.is_empty() && restored.is_none();
    let workspace = Workspace::of_run(kernel, &undone.run, settings)?;
    let looks = if is_alone {
        git_around_ids(kernel, &workspace, &undone.run, &undone.chosen)?
    } else {
        // What a piece of work began lies between its own checkpoints.
        let works = undone.work.iter().filter(|work| work.work.parent_id.is_none());
        git_around(kernel, &workspace, &undone.run, works)?
    };
    let Some((first, _)) = looks.first() else { return Ok(Vec::new()) };
    let had = first.stash.clone();
    // Git is asked once for all works. Before git is restored, the repository cannot tell what will be left, but the target can.
    let (root, planned) = (&workspace.root, restored.filter(|_| !is_done));
    let refs = planned.map_or_else(|| git::ref_ids(root), |git| Ok(refs_of(&git.target)))?;
    let (stash, branch) = if is_alone { (git::stash_ids(root)?, git::branch(root)) } else { Default::default() };
    let (mut found, mut staged) = (Vec::new(), Vec::new());
    let mut told: BTreeSet<Vec<u8>> = taken_back.iter().map(|path| path.0.clone()).collect();
    for (before, after) in looks {
        // Without a checkpoint at the end, the state that the restore found stands for it.
        let Some(after) = after.or_else(|| restored.map(|git| git.current.clone())) else { continue };
        let mut changes = refs_between(&before, &after, is_alone);
        // No restore moves notes.
        changes.retain(|one| planned.is_some() && one.is_of_notes() || one.stays_in(&refs));
        if is_alone {
            found.extend(stash_between(&before, &after, &stash));
            found.extend(switched(&before, &after, (branch.as_ref(), &refs)));
            found.extend(rewritten(root, [&before, &after], report));
            let mut index = git::index_changes(root, &workspace.objects, &before, &after)?;
            // Once it is done, the index itself says what is left.
            let stays = |path: &[u8]| is_done || !taken_back.iter().any(|taken| taken.0 == path);
            index.staged.retain(|one| stays(&one.path));
            found.extend(index.restaged.iter().filter(|path| stays(path)).map(|path| restaged_said(path)));
            found.extend(index.removed.iter().filter(|path| stays(path)).map(|path| removed_said(path)));
            // What one of the works had staged is not missing.
            index.unstaged.retain(|one| stays(&one.path) && !staged.contains(one));
            told.extend(index.staged.iter().map(|one| &one.path).chain(&index.restaged).chain(&index.removed).cloned());
            staged.extend(index.made);
            found.extend(index.unstaged.iter().map(unstaged_said));
            found.extend(index.staged.iter().take(MOST_STAGED).map(|one| staged_said(&one.path)));
            found.extend(more_staged(index.staged.len()));
        }
        if !changes.is_empty() {
            // A ref at a commit that other work recorded, or that another work tree has checked out, is not left by
            // this work.
            let mut others = kernel.read(|snapshot| made_by_others(snapshot, undone, &changes))?;
            others.extend(git::branches_in_use_elsewhere(root)?);
            changes.retain(|one| !others.contains(&one.name));
        }
        found.extend(changes.iter().map(RefChange::said));
    }
    if let (Some(report), true) = (report, is_alone) {
        for commit in stash.iter().filter(|commit| !had.iter().any(|entry| entry.commit == **commit)) {
            found.extend(is_stashed(&workspace, report, commit)?.then(|| stashed_said(commit)));
        }
        let staged = git::staged_paths(root)?.into_iter().filter(|path| !told.contains(path));
        // Without a commit, a path is asked of the index.
        let kept = with_undone(&workspace, report, staged.map(|path| (String::new(), path)))?;
        found.extend(kept.iter().take(MOST_STAGED).map(|path| staged_said(path)));
        found.extend(more_staged(kept.len()));
    }
    // The looks around two works may show the same change: each of them was under way.
    found.sort();
    found.dedup();
    Ok(found.into_iter().map(|message| Warning { code: "git_remains", message }).collect())
}

/// The names of those refs whose present commit was recorded by other work that stands.
fn made_by_others(snapshot: &Snapshot<'_>, undone: &Undone<'_>, changes: &[RefChange]) -> Result<BTreeSet<String>> {
    let is_of_plan = |id: &DispatchId| undone.chosen.contains(id) || undone.work.iter().any(|work| work.id == *id);
    let mut found = BTreeSet::new();
    for change in changes {
        let Some(commit) = &change.is else { continue };
        if code::maker_of(snapshot, commit)?.is_some_and(|maker| !is_of_plan(&maker)) {
            found.insert(change.name.clone());
        }
    }
    Ok(found)
}

/// A branch, a tag or a ref of notes that differs between two states of git.
struct RefChange {
    name: String,
    was: Option<String>,
    is: Option<String>,
}

impl RefChange {
    /// Whether the ref is in `refs` what the work left it as.
    fn stays_in(&self, refs: &BTreeMap<String, String>) -> bool {
        refs.get(&self.name) == self.is.as_ref()
    }

    fn is_of_notes(&self) -> bool {
        self.name.starts_with(NOTES)
    }

    fn said(&self) -> String {
        if self.is_of_notes() {
            return self.said_of_notes();
        }
        let (kind, name) = match self.name.strip_prefix(TAGS) {
            Some(tag) => ("tag", tag),
            None => ("branch", self.name.strip_prefix(BRANCHES).unwrap_or(&self.name)),
        };
        let word = shell_word(name);
        let (done, way) = match (&self.was, kind) {
            (None, "tag") => ("was made", format!("git tag -d {word}")),
            (None, _) => ("was made", format!("git branch -D {word}")),
            (Some(was), _) if self.is.is_none() => ("was removed", format!("git {kind} {word} {was}")),
            (Some(was), _) => ("was moved", format!("git {kind} -f {word} {was}")),
        };
        format!("the {kind} {name} {done} by this work or beside it, and stays so: {way}")
    }

    fn said_of_notes(&self) -> String {
        let name = self.name.strip_prefix(NOTES).unwrap_or(&self.name);
        let word = shell_word(&self.name);
        let way = match &self.was {
            Some(was) => format!("git update-ref {word} {was}"),
            None => format!("git update-ref -d {word}"),
        };
        format!("the notes {name} were changed by this work or beside it, and stay so: {way}")
    }
}

/// A sentence for a path that was staged before the work, and is staged no longer.
fn unstaged_said(one: &git::StagedPath) -> String {
    let path = String::from_utf8_lossy(&one.path);
    let entry = shell_word(&format!("{},{},{path}", one.mode, one.oid));
    format!(
        "what was staged of {path} was taken off the index by this work or beside it, and stays so: \
         git update-index --add --cacheinfo {entry}"
    )
}

/// The most staged paths that are named, each with its command: an agent may have staged a whole tree.
const MOST_STAGED: usize = 20;

/// A sentence about the staged paths that are not named; `None`: there are none.
fn more_staged(count: usize) -> Option<String> {
    let more = count.checked_sub(MOST_STAGED).filter(|more| *more > 0)?;
    Some(format!(
        "{more} more paths were staged by this work or beside it, and stay on the index: git diff --cached --name-only"
    ))
}

/// A sentence for a path whose content the work staged, or others did since, and that is staged still.
fn staged_said(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let word = shell_word(&path);
    format!(
        "{path} was staged by this work or beside it, and its content stays on the index: git restore --staged -- {word}"
    )
}

/// A sentence for a path that the work staged, and that others staged again.
fn restaged_said(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let word = shell_word(&path);
    format!(
        "{path} was staged by this work or beside it, and again since, so the index may have what is undone: git diff --cached -- {word}"
    )
}

/// A sentence for a path that the work took off the index, and that is off it still.
fn removed_said(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let word = shell_word(&path);
    format!(
        "{path} was taken off the index by this work or beside it, and the next commit would delete it: git restore --staged -- {word}"
    )
}

fn refs_of(state: &GitState) -> BTreeMap<String, String> {
    let mut refs = BTreeMap::new();
    for (name, oid) in &state.refs {
        refs.insert(String::from_utf8_lossy(&name.0).into_owned(), oid.clone());
    }
    refs
}

/// The tags and notes that differ, and the branches where no ref is restored. The branch that is checked out moves with commits, which are named by
/// themselves.
fn refs_between(before: &GitState, after: &GitState, with_branches: bool) -> Vec<RefChange> {
    let (was, is) = (refs_of(before), refs_of(after));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let (was, is) = (was.get(name).cloned(), is.get(name).cloned());
        // Example: work commits on `main` and makes the tag `v1`. Only the tag is told here: `main` moved with the
        // commit, which is named by itself.
        let is_told = match name.strip_prefix(BRANCHES) {
            // Both sides: a branch that was checked out at either of them moved with commits.
            Some(branch) => with_branches && !is_at(before, branch) && !is_at(after, branch),
            None => name.starts_with(TAGS) || name.starts_with(NOTES),
        };
        if is_told && was != is {
            changes.push(RefChange { name: name.clone(), was, is });
        }
    }
    changes
}

/// A sentence about the branch that was checked out before, if it is not now, and what the work checked out still is. `now`: the present
/// branch, and the refs that there are.
fn switched(
    before: &GitState,
    after: &GitState,
    (now, refs): (Option<&Vec<u8>>, &BTreeMap<String, String>),
) -> Option<String> {
    let (was, is) = (before.branch.as_ref()?, after.branch.as_ref().map(|branch| &branch.0));
    // If the work ended where it began, or others have switched since, it left no switch.
    if is == Some(&was.0) || is != now {
        return None;
    }
    let was = String::from_utf8_lossy(&was.0);
    if !refs.contains_key(&format!("{BRANCHES}{was}")) {
        let way = format!("git switch -c {} {}", shell_word(&was), before.head.as_deref()?);
        return Some(format!("the branch {was} was removed by this work or beside it, and stays so: {way}"));
    }
    Some(format!(
        "this work or others checked out another branch than {was}, and it stays: git switch {}",
        shell_word(&was)
    ))
}

/// A sentence about the branch that is checked out, if the work left it without a commit that it had, as after a rebase.
fn rewritten(root: &Path, [before, after]: [&GitState; 2], report: Option<&RestoreReport>) -> Option<String> {
    let (branch, is, now) = (after.branch.as_ref()?, after.head.as_deref()?, git::head(root)?);
    let had = refs_of(before);
    let was = had.get(&format!("{BRANCHES}{}", String::from_utf8_lossy(&branch.0)))?.as_str();
    let is_lost = |head: &str| !git::commits_between(root, head, was, 1).is_empty();
    // Others may have restored it, or checked out another branch.
    if git::branch(root).as_ref() != Some(&branch.0) || !is_lost(is) || !is_lost(&now) {
        return None;
    }
    let name = String::from_utf8_lossy(&branch.0);
    // A reset would take off what was committed since, too, and git refuses it over files that the undo has changed.
    let is_as_left = report.is_some_and(|report| report.plan.steps.is_empty());
    let way = if now == is && is_as_left {
        format!("git reset --keep {was}")
    } else {
        format!("git branch {} {was}", shell_word(&format!("{name}-before")))
    };
    Some(format!("the branch {name} was rewritten by this work or beside it, and stays so: {way}"))
}

/// Whether this branch is checked out.
fn is_at(state: &GitState, branch: &str) -> bool {
    state.branch.as_ref().is_some_and(|at| String::from_utf8_lossy(&at.0) == branch)
}

/// Whether an entry of the stash has what is undone, as after `git stash apply`.
fn is_stashed(workspace: &Workspace<'_>, report: &RestoreReport, entry: &str) -> Result<bool> {
    // The third parent of an entry has the files that git did not track.
    let both = |path: Vec<u8>| [(entry.to_owned(), path.clone()), (format!("{entry}^3"), path)];
    let asked = git::stashed_paths(&workspace.root, entry).into_iter().flat_map(both);
    Ok(!with_undone(workspace, report, asked)?.is_empty())
}

/// Those of these paths of which the commit beside them has what is undone.
fn with_undone(
    workspace: &Workspace<'_>,
    report: &RestoreReport,
    asked: impl Iterator<Item = (String, Vec<u8>)>,
) -> Result<Vec<Vec<u8>>> {
    let steps: BTreeMap<&[u8], &RestoreStep> =
        report.plan.steps.iter().map(|step| (step.path.0.as_slice(), step)).collect();
    let asked: Vec<_> = asked.filter(|(_, path)| steps.contains_key(path.as_slice())).collect();
    let found = git::contents(&workspace.root, &asked);
    let content = |path: &[u8], node: &Option<RestoreNode>| -> Result<_> {
        let Some(RestoreNode::File { hash, .. }) = node else { return Ok(None) };
        if workspace.objects.knows(hash)? {
            return workspace.objects.read(hash).map(Some);
        }
        // A preview stores nothing: what no checkpoint holds was merged for it, or is in the tree alone.
        let is_it = |text: &Vec<u8>| hash_of(text) == *hash;
        let here = || std::fs::read(workspace.root.join(path_from_bytes(path))).ok();
        Ok(report.texts.iter().find(|text| is_it(text)).cloned().or_else(here).filter(is_it))
    };
    let mut kept = Vec::new();
    for ((_, path), text) in asked.into_iter().zip(found) {
        let (Some(text), Some(step)) = (text, steps.get(path.as_slice())) else { continue };
        let (with, without) = (content(&path, &step.before)?, content(&path, &step.after)?);
        // Where both changed the same lines, it cannot be told, and the text is a person's.
        if with.is_some() && has_change(Some(&text), (without.as_deref(), with.as_deref())) == Some(true) {
            kept.push(path);
        }
    }
    Ok(kept)
}

/// A sentence for an entry that others put onto the stash since.
fn stashed_said(commit: &String) -> String {
    format!("a stash entry that was made since has what is undone, and stays: git stash show -p {commit}")
}

/// A sentence for each entry of the stash that was added or removed. `now`: the commits of the entries that are there.
fn stash_between(before: &GitState, after: &GitState, now: &[String]) -> Vec<String> {
    let is_there = |commit: &String| now.contains(commit);
    let made = after.stash.iter().filter(|one| !before.stash.contains(one) && is_there(&one.commit));
    let gone = before.stash.iter().filter(|one| !after.stash.contains(one) && !is_there(&one.commit));
    let made = made.map(|one| {
        let commit = &one.commit;
        format!("a stash entry was made by this work or beside it, and stays: git stash show -p {commit}")
    });
    let gone = gone.map(|one| {
        let commit = &one.commit;
        format!("a stash entry was removed by this work or beside it, and stays so: git stash store {commit}")
    });
    made.chain(gone).collect()
}
