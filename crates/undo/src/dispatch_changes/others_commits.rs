//! Commits that the work did not make, and what came off the stash: what they brought into the tree, and what they have of the work.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ic_base::{DispatchId, Result};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git;
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::reverse::{Own, has_change, merged};
use ic_dispatch::{code, report};
use ic_ledger::events::Hash;
use ic_ledger::path_bytes;
use ic_session::attribution::Attribution;
use ic_worktree::Workspace;

use super::commits::{OwnCommit, brought_of, git_ends, has_git, head_of, heads_between, is_recorded, last_of, own};
use super::parcels::{Parcels, brought};

/// How the reason begins for a path that is unsure because commits of others have it, too.
pub(super) const NOT_MADE: &str = "a commit that this work did not make";

/// What commits that the work did not make, and entries of the stash that it did not put there, have at paths that it changed.
#[derive(Default)]
pub(super) struct OthersCommits {
    /// Contents that commits brought into the tree, by path; `None` in the set for a path that one of them removed.
    brought: HashMap<Vec<u8>, HashSet<Option<Hash>>>,
    /// The content of the newest of them, by path; `None` where it removed the path.
    newest: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Paths that a checkpoint shows with such a content.
    seen: HashSet<Vec<u8>>,
    /// In how many of the times between checkpoints each of these paths changed.
    changed: HashMap<Vec<u8>, usize>,
    /// What stood there before such a change.
    met: HashMap<Vec<u8>, Hash>,
    /// Paths at which a merge with that has conflicts: the work resolved them.
    resolved: HashSet<Vec<u8>>,
    /// Whether git's log of HEAD does not tell which of the commits were made from the tree's content.
    is_unsure: bool,
    /// Commits that were made from the tree's content, newest first, with their paths: others committed what the work had changed.
    took: Vec<(String, BTreeSet<Vec<u8>>)>,
    /// What commits and the stash took out of the tree of the work's own.
    pub(super) parcels: Parcels,
}

/// The commits that were checked out as the first call of the work began, and at its end.
type Ends = (Option<String>, Option<String>);

/// The maker of a change that happened in a tool call of the work.
pub(super) enum MadeCommits<'m> {
    ByWork,
    ByCommit,
    /// A commit brought this text, and the work changed it then.
    AfterCommit(&'m [u8]),
    /// It cannot be known, and why.
    Unsure(&'static str),
}

impl OthersCommits {
    /// `known`: the paths that the work changed; `recorded`: its own commits.
    ///
    /// Of work whose client tells no calls, all commits that were made here count as its own: only what a pull, a merge or a switch brought
    /// is of others.
    pub(super) fn of(
        workspace: &Workspace<'_>,
        (attribution, ids): (&Attribution, &[DispatchId]),
        recorded: &[String],
        known: &BTreeSet<Vec<u8>>,
    ) -> Result<Self> {
        let looks = &attribution.looks;
        // No call of the work brought what was checked out as its first call began, whatever others did to the paths before that.
        let ends = (attribution.first_head(ids).map(str::to_owned), head_of(workspace, last_of(looks))?);
        let left = left_heads(workspace, attribution.heads(ids), &ends);
        let shas = came_in_calls(workspace, (attribution, ids), recorded, (&ends, &left))?;
        let (since, is_told) = (attribution.first_log_size(ids), attribution.are_told_by_calls(ids));
        let unstashed = unstashed(workspace, looks)?;
        if shas.is_empty() && unstashed.is_empty() {
            return Ok(Self::default());
        }
        // The order is that of git's log and not of a clock: commits that the log has before the first call were there when the work began.
        let taken = since.and_then(|since| Some((git::took_from_tree(&workspace.root, since)?, since)));
        let is_taken = |sha: &str| {
            let found = taken.as_ref().map(|(taken, since)| taken.get(sha).is_some_and(|at| at >= since));
            found.unwrap_or(false)
        };
        let mut others = Self { is_unsure: is_told && taken.is_none() && !shas.is_empty(), ..Self::default() };
        let mut asked = Vec::new();
        // The commits come oldest first: of several at a path, the last one decides about `newest`.
        for commit in report::parse(&git::log_of(&workspace.root, &shas)?)?.commits.into_iter().rev() {
            let paths: BTreeSet<Vec<u8>> = commit.files.iter().map(|path| path_bytes(path).to_vec()).collect();
            // The work changed none of its paths, so nothing has to be told apart.
            if paths.is_disjoint(known) {
                continue;
            }
            if is_taken(&commit.sha) {
                others.took.push((commit.sha, paths));
            } else {
                let paths = paths.into_iter().filter(|path| known.contains(path));
                asked.extend(paths.map(|path| (commit.sha.clone(), path)));
            }
        }
        others.took.reverse();
        if !left.is_empty() {
            others.leave_again(workspace, asked.iter().map(|(_, path)| path), &ends);
        }
        let contents = git::contents(&workspace.root, &asked);
        let mut newest_of = BTreeMap::new();
        for ((sha, path), content) in asked.into_iter().zip(contents) {
            others.bring(&path, content);
            newest_of.insert(path, sha);
        }
        if let Some(end) = looks.last() {
            others.bring_unstashed(workspace, unstashed, (known, &end.tree), &mut newest_of)?;
        }
        others.look(workspace, attribution)?;
        let first = || head_of(workspace, looks.iter().find(|look| has_git(look)));
        let from = ends.0.map_or_else(first, |head| Ok(Some(head)))?;
        if let Some(from) = from {
            others.merge_onto_met(workspace, &from, newest_of)?;
        }
        Ok(others)
    }

    /// What came off the stash is of others, too. `end`: the tree at the last look; `shas`: as below.
    fn bring_unstashed(
        &mut self,
        workspace: &Workspace<'_>,
        entries: Vec<String>,
        (known, end): (&BTreeSet<Vec<u8>>, &Hash),
        shas: &mut BTreeMap<Vec<u8>, String>,
    ) -> Result<()> {
        for entry in entries {
            let paths = git::stashed_paths(&workspace.root, &entry).into_iter().filter(|path| known.contains(path));
            // The third parent of an entry has the files that git did not track.
            let versions = [format!("{entry}^1"), entry.clone(), format!("{entry}^3")];
            let asked: Vec<_> =
                paths.flat_map(|path| versions.clone().map(|version| (version, path.clone()))).collect();
            let contents = git::contents(&workspace.root, &asked);
            for (asked, content) in asked.chunks(3).zip(contents.chunks(3)) {
                let (path, [before, after @ ..]) = (&asked[0].1, content) else { continue };
                let after = after.iter().flatten().next();
                // An entry that was dropped brought nothing.
                let has = |text: Option<&[u8]>| has_change(text, (before.as_deref(), after.map(Vec::as_slice)));
                let end = match diff::find(&workspace.objects, end, path)? {
                    Some(DiffState::File { hash, .. }) => Some(workspace.objects.read(&hash)?),
                    _ => None,
                };
                let is_there = has(end.as_deref());
                let texts = [before.as_ref(), after, end.as_ref()].map(|text| text.map_or(&[][..], Vec::as_slice));
                if is_there == Some(false) || is_there.is_none() && !has_new_line(texts) {
                    continue;
                }
                // What of two merges in one call came from where cannot be told.
                if shas.insert(path.clone(), entry.clone()).is_some() {
                    self.resolved.insert(path.clone());
                }
                self.bring(path, after.cloned());
            }
        }
        Ok(())
    }

    /// With a branch that was left again, what it had brought to these paths went, too: then they have what the first or the last commit has.
    fn leave_again<'p>(
        &mut self,
        workspace: &Workspace<'_>,
        paths: impl Iterator<Item = &'p Vec<u8>>,
        (first, last): &Ends,
    ) {
        let ends =
            |path: &Vec<u8>| first.iter().chain(last).map(|head| (head.clone(), path.clone())).collect::<Vec<_>>();
        let asked: Vec<(String, Vec<u8>)> = paths.flat_map(ends).collect();
        for ((_, path), content) in asked.iter().zip(git::contents(&workspace.root, &asked)) {
            self.brought.entry(path.clone()).or_default().insert(content.as_deref().map(hash_of));
        }
    }

    fn bring(&mut self, path: &[u8], content: Option<Vec<u8>>) {
        self.brought.entry(path.to_vec()).or_default().insert(content.as_deref().map(hash_of));
        self.newest.insert(path.to_vec(), content);
    }

    /// A merge, a pull, a rebase or a pop of the stash brings content onto what stands there, which others may have changed: that is none of the work's.
    /// `shas`: by path, the newest commit that brought it; `from`: what was checked out before.
    fn merge_onto_met(&mut self, workspace: &Workspace<'_>, from: &str, shas: BTreeMap<Vec<u8>, String>) -> Result<()> {
        let mut bases: HashMap<String, Option<String>> = HashMap::new();
        let mut asked = Vec::new();
        for (path, sha) in shas.into_iter().filter(|(path, _)| self.changed.get(path) == Some(&1)) {
            let base = bases.entry(sha).or_insert_with_key(|sha| git::merge_base(&workspace.root, from, sha));
            asked.extend(base.clone().map(|base| (base, path)));
        }
        let contents = git::contents(&workspace.root, &asked);
        for ((_, path), base) in asked.into_iter().zip(contents) {
            let (Some(met), Some(Some(text))) = (self.met.get(&path), self.newest.get(&path)) else { continue };
            let base = base.unwrap_or_default();
            if hash_of(&base) == *met {
                continue;
            }
            match merged(&base, &workspace.objects.read(met)?, text) {
                Some(text) => drop(self.newest.insert(path, Some(text))),
                None => drop(self.resolved.insert(path)),
            }
        }
        Ok(())
    }

    /// Notes the paths that a checkpoint shows with the content that a commit brought.
    fn look(&mut self, workspace: &Workspace<'_>, attribution: &Attribution) -> Result<()> {
        if self.brought.is_empty() {
            return Ok(());
        }
        for window in attribution.windows() {
            let (from, to) = (&window.from.tree, &window.to.tree);
            diff::diff(&workspace.objects, Some(from), Some(to), &mut |difference| {
                if self.has_brought(&difference.path, difference.after.as_ref()) {
                    self.seen.insert(difference.path);
                } else if self.brought.contains_key(&difference.path) {
                    if let Some(DiffState::File { hash, .. }) = difference.before {
                        self.met.insert(difference.path.clone(), hash);
                    }
                    *self.changed.entry(difference.path).or_default() += 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn has_brought(&self, path: &[u8], after: Option<&DiffState>) -> bool {
        let Some(contents) = self.brought.get(path) else { return false };
        contents.contains(&match after {
            Some(DiffState::File { hash, .. }) => Some(*hash),
            // Git keeps a link as a blob with its target.
            Some(DiffState::Symlink(target)) => Some(hash_of(target)),
            // Git tracks no directories, and of a file that was left out no content is known.
            Some(DiffState::Directory { .. } | DiffState::Passed(_)) => return false,
            None => None,
        })
    }

    /// Whose a change is that a tool call of the work made: a commit that was pulled or merged in the call brought content of others.
    pub(super) fn made(&self, path: &[u8], after: Option<&DiffState>) -> MadeCommits<'_> {
        if !self.brought.contains_key(path) {
            return MadeCommits::ByWork;
        }
        match self.has_brought(path, after) {
            true if self.is_unsure => MadeCommits::Unsure(
                "a commit that this work did not make has it, and git's log does not tell which came first",
            ),
            true => MadeCommits::ByCommit,
            false if self.seen.contains(path) => MadeCommits::ByWork,
            false if self.resolved.contains(path) => MadeCommits::Unsure(
                "a commit that this work did not make changed the same lines as others before, and this work merged them",
            ),
            // It changed once, so the commit's content stood there in between: git brings none onto changes that are not committed.
            false if self.changed.get(path) == Some(&1) && !self.is_unsure => match self.newest.get(path) {
                Some(Some(text)) => MadeCommits::AfterCommit(text),
                _ => {
                    MadeCommits::Unsure("a commit that this work did not make removed it, and this work made it again")
                }
            },
            false => {
                MadeCommits::Unsure("a commit that this work did not make changed it too, while the work was under way")
            }
        }
    }

    /// Whether commits brought anything.
    pub(super) fn brought_any(&self) -> bool {
        !self.brought.is_empty()
    }

    /// The commits of others that contain changes of the work, newest first: they stay. A commit of another agent is its own; any other
    /// commit that has nothing but this work can be reverted.
    pub(super) fn took(&self, workspace: &Workspace<'_>, changes: &Own) -> Result<Vec<OwnCommit>> {
        let known = changes.known();
        let is_its = |path: &Vec<u8>| known.contains(path) && !changes.is_of_several(path);
        let mut is_shared = BTreeMap::new();
        for (sha, paths) in &self.took {
            // A commit from before the work changed the path has nothing of the work, though it has the path.
            let asked: Vec<_> = paths.intersection(&known).map(|path| (sha.clone(), path.clone())).collect();
            let contents = git::contents(&workspace.root, &asked);
            let is_older = |((_, path), content): (&(String, Vec<u8>), &Option<Vec<u8>>)| {
                let first = changes.pairs(path).first().and_then(|(before, _)| before.as_ref());
                matches!(first, Some(DiffState::File { hash, .. }) if content.as_deref().map(hash_of) == Some(*hash))
            };
            if asked.iter().zip(&contents).all(is_older) {
                continue;
            }
            let is_recorded = workspace.kernel.read(|snapshot| code::is_recorded(snapshot, sha))?;
            is_shared.insert(sha.clone(), is_recorded || !paths.iter().all(is_its));
        }
        let took = self.took.iter().map(|(sha, _)| sha).filter(|sha| is_shared.contains_key(*sha));
        let shas: Vec<String> = took.cloned().collect();
        // One that is not known counts as others' work: no revert of it is offered.
        Ok(own(workspace, &shas, |commit| is_shared.get(&commit.sha).copied().unwrap_or(true)))
    }
}

/// The commits that the work did not make and that came with one, newest first. `left`: commits whose branch was checked out in between.
fn came_in_calls(
    workspace: &Workspace<'_>,
    (attribution, ids): (&Attribution, &[DispatchId]),
    recorded: &[String],
    ((first, last), left): (&Ends, &[String]),
) -> Result<Vec<String>> {
    // A pull seldom brings more commits.
    const MOST: usize = 10_000;
    let (root, looks) = (&workspace.root, &attribution.looks);
    let mut shas = match (first, last) {
        (Some(from), Some(to)) => git::commits_between(root, from, to, MOST),
        _ => heads_between(workspace, looks, MOST)?,
    };
    for head in left {
        let brought = first.iter().flat_map(|first| git::commits_between(root, first, head, MOST));
        shas.extend(brought.filter(|sha| !shas.contains(sha)).collect::<Vec<_>>());
    }
    shas.retain(|sha| !is_recorded(recorded, sha));
    if !attribution.are_told_by_calls(ids) {
        shas = brought_of(workspace, looks, &shas)?;
    }
    // What a restore brought came back with its own look at the tree, and in no call.
    let restored = attribution.first_log_size(ids).map(|since| git::restored_since(root, since));
    for [from, to] in restored.unwrap_or_default() {
        let restored = git::commits_between(root, &from, &to, MOST);
        shas.retain(|sha| !restored.contains(sha));
    }
    Ok(shas)
}

/// Those of these commits that the last one has not: a call had checked out their branch, and a later one left it.
fn left_heads(workspace: &Workspace<'_>, heads: BTreeSet<&str>, (first, last): &Ends) -> Vec<String> {
    let mut left: Vec<String> = heads.into_iter().map(str::to_owned).collect();
    left.retain(|head| Some(head) != first.as_ref() && Some(head) != last.as_ref());
    match last {
        Some(last) if !left.is_empty() => git::not_reached(&workspace.root, &left, std::slice::from_ref(last)),
        _ => left,
    }
}

/// Whether a text has a line that is in a second version of another text and not in the first.
fn has_new_line([first, second, text]: [&[u8]; 3]) -> bool {
    let lines = |text: &'_ [u8]| text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<HashSet<_>>();
    let (first, text) = (lines(first), lines(text));
    lines(second).iter().any(|line| !first.contains(line) && text.contains(line))
}

/// The entries that came off the stash during the work, and were there before it: they are of others, and exist nowhere else by now.
fn unstashed(workspace: &Workspace<'_>, looks: &[CheckpointRecord]) -> Result<Vec<String>> {
    let Some([first, last]) = git_ends(workspace, looks)? else { return Ok(Vec::new()) };
    let had = first.stash.into_iter().filter(|entry| !last.stash.contains(entry));
    Ok(had.map(|entry| entry.commit).collect())
}

/// Adds a change in two parts: a commit of others made the first part, with this text, and the work made the rest.
pub(super) fn add_after_commit(changes: &mut Own, difference: Difference, text: &[u8]) {
    let brought = Some(brought(&difference, text));
    let Difference { path, before, after } = difference;
    changes.add_text(text.to_vec());
    changes.add_since(Difference { path: path.clone(), before, after: brought.clone() });
    changes.add(Difference { path, before: brought, after });
}
