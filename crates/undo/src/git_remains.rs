//! What work did to tags, branches and the stash, and an undo leaves. Each change is named, with the command that reverts it.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{DispatchId, Result, shell_word};
use ic_checkpoint::git::{self, GitState};
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::{Dispatch, code, dispatch};
use ic_kernel::Kernel;
use ic_ledger::Snapshot;
use ic_worktree::{CaptureSettings, Warning, Workspace};

use super::outcome::Parts;
use super::plan::RollbackPlan;

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";

/// The checkpoints before a piece of work and after it; `None` for the second: the work has not ended.
type Looks = (CheckpointRecord, Option<CheckpointRecord>);

/// A warning for each ref and each entry of the stash that changed during the work of the plan, and that stays so. `is_done`: the plan was
/// carried out, and the repository says what is left.
pub(super) fn remaining(
    kernel: &Kernel,
    settings: &CaptureSettings,
    plan: &RollbackPlan,
    parts: &Parts,
    is_done: bool,
) -> Result<Vec<Warning>> {
    // The undo of an effect may remove a tag that its step made, which is known only afterwards.
    let has_effects = parts.effects.as_ref().is_some_and(|effects| !effects.compensations.is_empty());
    if has_effects && !is_done {
        return Ok(Vec::new());
    }
    let restored = parts.tree.as_ref().and_then(|tree| tree.git.as_ref());
    let is_alone = plan.cut.is_of_works();
    // A rollback that leaves the tree, or git's state, says so by its layers; only an undo of works names what it left.
    if parts.tree.is_none() || (restored.is_none() && !is_alone) {
        return Ok(Vec::new());
    }
    let workspace = Workspace::of_run(kernel, &plan.run, settings)?;
    let looks = kernel.read(|snapshot| looks_of(snapshot, &workspace, plan))?;
    let state = |look: &CheckpointRecord| -> Result<Option<GitState>> {
        // A checkpoint whose content was pruned says nothing about refs.
        let is_kept = look.pruned_at.is_none();
        if is_kept { Ok(CheckpointManifest::read(&workspace.objects, &look.manifest)?.git) } else { Ok(None) }
    };
    let mut found = Vec::new();
    for (before, after) in &looks {
        let after = after.as_ref().map(state).transpose()?.flatten();
        // Without a checkpoint at the end, the state that the restore found stands for it.
        let after = after.or_else(|| restored.map(|git| git.current.clone()));
        let Some((before, after)) = state(before)?.zip(after) else { continue };
        let mut changes = refs_between(&before, &after, is_alone);
        match restored {
            Some(git) if !is_done => changes.retain(|one| one.stays_in(&refs_of(&git.target))),
            _ => {
                let now = git::ref_ids(&workspace.root)?;
                changes.retain(|one| one.stays_in(&now));
            }
        }
        if is_alone {
            found.extend(stash_between(&before, &after, &git::stash_ids(&workspace.root)?));
            found.extend(switched(&before, &after, git::branch(&workspace.root).as_ref()));
        }
        if !changes.is_empty() {
            let mut others = kernel.read(|snapshot| made_by_others(snapshot, plan, &changes))?;
            others.extend(git::branches_in_use_elsewhere(&workspace.root)?);
            changes.retain(|one| !others.contains(&one.name));
        }
        found.extend(changes.iter().map(RefChange::said));
    }
    found.sort();
    found.dedup();
    Ok(found.into_iter().map(|message| Warning { code: "git_remains", message }).collect())
}

/// The names of those refs whose present commit was recorded by other work that stands.
fn made_by_others(snapshot: &Snapshot<'_>, plan: &RollbackPlan, changes: &[RefChange]) -> Result<BTreeSet<String>> {
    let is_of_plan = |id: &DispatchId| {
        let mut going = plan.cancelled_dispatches.iter().chain(&plan.marked_dispatches);
        plan.chosen.contains(id) || going.any(|work| work.id == *id)
    };
    let mut found = BTreeSet::new();
    for change in changes {
        let Some(commit) = &change.is else { continue };
        if code::maker_of(snapshot, commit)?.is_some_and(|maker| !is_of_plan(&maker)) {
            found.insert(change.name.clone());
        }
    }
    Ok(found)
}

/// The checkpoints around each work of the plan that a person or a script began: work that it began in turn lies between them.
fn looks_of(snapshot: &Snapshot<'_>, workspace: &Workspace<'_>, plan: &RollbackPlan) -> Result<Vec<Looks>> {
    let work: Vec<Dispatch> = if plan.cut.is_of_works() {
        plan.chosen.iter().map(|id| dispatch::get(snapshot, id)).collect::<Result<_>>()?
    } else {
        plan.cancelled_dispatches.iter().chain(&plan.marked_dispatches).cloned().collect()
    };
    let mut found = Vec::new();
    for work in work.iter().filter(|work| plan.cut.is_of_works() || work.work.parent_id.is_none()) {
        let place = crate::points::place_of(snapshot, &plan.run, work)?;
        let Some(before) = crate::points::checkpoint_at(snapshot, &plan.run, place.seq)? else { continue };
        let after = match work.finished_seq {
            // The checkpoint of an end is recorded just before the event of the end.
            Some(end) => match record::of_event(snapshot, end - 1)? {
                Some(look) => Some(look),
                None => record::look_since(snapshot, &workspace.root, end)?,
            },
            None => None,
        };
        found.push((before, after));
    }
    Ok(found)
}

/// A branch or a tag that differs between two states of git.
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

    fn said(&self) -> String {
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
}

fn refs_of(state: &GitState) -> BTreeMap<String, String> {
    let mut refs = BTreeMap::new();
    for (name, oid) in &state.refs {
        refs.insert(String::from_utf8_lossy(&name.0).into_owned(), oid.clone());
    }
    refs
}

/// The tags that differ, and the branches where no ref is restored. The branch that is checked out moves with commits, which are named by
/// themselves.
fn refs_between(before: &GitState, after: &GitState, with_branches: bool) -> Vec<RefChange> {
    let (was, is) = (refs_of(before), refs_of(after));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let (was, is) = (was.get(name).cloned(), is.get(name).cloned());
        let is_told = match name.strip_prefix(BRANCHES) {
            // Both sides: a branch that was checked out at either of them moved with commits.
            Some(branch) => with_branches && !is_at(before, branch) && !is_at(after, branch),
            None => name.starts_with(TAGS),
        };
        if is_told && was != is {
            changes.push(RefChange { name: name.clone(), was, is });
        }
    }
    changes
}

/// A sentence about the branch that was checked out, if it still is. `now`: the present branch.
fn switched(before: &GitState, after: &GitState, now: Option<&Vec<u8>>) -> Option<String> {
    let (was, is) = (before.branch.as_ref()?, after.branch.as_ref().map(|branch| &branch.0));
    if is == Some(&was.0) || is != now {
        return None;
    }
    let was = String::from_utf8_lossy(&was.0);
    Some(format!(
        "this work or others checked out another branch than {was}, and it stays: git switch {}",
        shell_word(&was)
    ))
}

/// Whether this branch is checked out.
fn is_at(state: &GitState, branch: &str) -> bool {
    state.branch.as_ref().is_some_and(|at| String::from_utf8_lossy(&at.0) == branch)
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
