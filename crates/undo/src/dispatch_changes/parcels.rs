//! What git took out of the tree during a piece of work, and returned later: in a commit that was not checked out when the work ended, or on
//! the stash. What others merge, pick or pop of it is still the work's.

mod arrival;
mod change;

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{DispatchId, Result};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git;
use ic_checkpoint::restore::reverse::LookPair;
use ic_dispatch::Dispatch;
use ic_ledger::events::Hash;
use ic_ledger::{Snapshot, path_from_bytes};
use ic_session::attribution::Attribution;
use ic_session::call::{self, ToolCall};
use ic_worktree::Workspace;

use super::commits::{git_ends, is_recorded};
use change::{Change, Kind, PathVersion, part, version_of};

pub(super) use arrival::{CHANGED_ON_RETURN, Returned, STASHED_BY_BOTH};
pub(super) use change::brought;

/// What git took out of the tree, by path, oldest first.
#[derive(Default)]
pub(super) struct Parcels(BTreeMap<Vec<u8>, Vec<Change>>);

/// A path of a commit of the work, or of an entry of the stash.
struct Packed {
    path: Vec<u8>,
    /// The names by which git knows its content before and after, after if git did not track the path, and where the branch began.
    versions: [String; 4],
    /// Git's modes before and after.
    modes: [u32; 2],
    is_returned: bool,
    /// Whether it is of an entry of the stash, which a person may have put there.
    is_stashed: bool,
}

impl Parcels {
    /// `recorded`: the commits of the work, newest first.
    pub(super) fn of(
        workspace: &Workspace<'_>,
        (attribution, ids): (&Attribution, &[DispatchId]),
        recorded: &[String],
    ) -> Result<Self> {
        let is_its = |maker: &Dispatch| ids.contains(&maker.id);
        let all_packed = packed(workspace, attribution, recorded)?;
        let Some(last) = attribution.looks.last().filter(|_| !all_packed.is_empty()) else {
            return Ok(Self::default());
        };
        let (mut stood, mut seen): (BTreeMap<Vec<u8>, LookPair>, BTreeSet<Vec<u8>>) = Default::default();
        for one in &all_packed {
            let now = diff::find(&workspace.objects, &last.tree, &one.path)?;
            stood.insert(one.path.clone(), (now.clone(), now));
        }
        // From the last on, each change leads back to what stood there when the work began.
        for window in attribution.windows().rev() {
            diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
                let makers = window.makers(&difference.path);
                if makers.is_empty() || !makers.into_iter().all(is_its) {
                    // Where others had a part in it, whose each line is that git took cannot be told.
                    stood.remove(&difference.path);
                } else if let Some((first, _)) = stood.get_mut(&difference.path) {
                    *first = difference.before;
                    seen.insert(difference.path);
                }
                Ok(())
            })?;
        }
        let asked =
            all_packed.iter().flat_map(|one| one.versions.iter().map(|version| (version.clone(), one.path.clone())));
        let contents = git::contents(&workspace.root, &asked.collect::<Vec<_>>());
        let mut all = Self::default();
        let calls =
            |snapshot: &Snapshot<'_>| ids.iter().map(|id| call::of_dispatch(snapshot, id)).collect::<Result<Vec<_>>>();
        // A call that left the tree as it was has no look of its own, so it is in no window.
        let calls = workspace.kernel.read(calls)?.concat();
        let (may_be_its, may_be_anothers) = stashed_by(&calls, &all_packed);
        for (Packed { path, modes, is_returned, is_stashed, .. }, has) in all_packed.into_iter().zip(contents.chunks(4))
        {
            let version = |text: Option<Vec<u8>>, mode| Some(PathVersion { text: text?, kind: Kind::of_git(mode) });
            let (parent, to) = (version(has[0].clone(), modes[0]), has[1].clone().or_else(|| has[2].clone()));
            let to = version(to, modes[1]);
            let Some((first, end)) = stood.get(&path) else { continue };
            // Where no look shows a change of the work there, a person may have changed it and put it away.
            let is_unseen = is_stashed && !seen.contains(&path);
            if is_unseen && !may_be_its {
                continue;
            }
            let may_be_yours = is_unseen && may_be_anothers;
            let [first, end] = [first, end].map(|state| version_of(workspace, &path, state.as_ref(), &[]));
            let (Ok(first), Ok(end)) = (first, end) else { continue };
            // What others had changed before and not committed went with it, and is not the work's.
            let own = Change { from: parent.clone(), to: first.clone(), ..Change::default() };
            let from = if parent == first || own.is_in(to.as_ref()) != Some(true) { parent } else { first };
            let changes = all.0.entry(path).or_default();
            let branched = has[3].clone().filter(|fork| from.as_ref().is_some_and(|from| from.text != *fork));
            let change = Change { from, to, branched, is_returned, may_be_yours, met: None };
            if change.from != change.to && change.is_in(end.as_ref()) != Some(true) {
                changes.push(change);
            }
        }
        all.0.retain(|_, changes| !changes.is_empty());
        if let Some(since) = calls.iter().find_map(|call| call.head_log_start).filter(|_| !all.is_empty()) {
            all.find_met(workspace, since, recorded);
        }
        Ok(all)
    }

    /// Finds what others had committed at each path when git returned the change: what was checked out before the last commit that
    /// brought it, or is checked out where none did.
    fn find_met(&mut self, workspace: &Workspace<'_>, since: u64, recorded: &[String]) {
        /// No more of the last moves of HEAD are looked at.
        const MOST_MOVES: usize = 20;
        const PATHS_AT_ONCE: usize = 64;
        let root = &workspace.root;
        let mut moves = git::advanced_since(root, since);
        moves.retain(|[_, after]| !is_recorded(recorded, after));
        // The last one first, and before it what is checked out now.
        let now = git::head(root).into_iter().map(|head| [head.clone(), head]);
        let moves: Vec<[String; 2]> = moves.into_iter().chain(now).rev().take(MOST_MOVES).collect();
        let mut all: Vec<_> = self.0.iter_mut().collect();
        for some in all.chunks_mut(PATHS_AT_ONCE).filter(|_| !moves.is_empty()) {
            let asked =
                some.iter().flat_map(|(path, _)| moves.iter().flatten().map(|sha| (sha.clone(), (*path).clone())));
            let contents = git::contents(root, &asked.collect::<Vec<_>>());
            for ((_, changes), contents) in some.iter_mut().zip(contents.chunks(2 * moves.len())) {
                for change in changes.iter_mut() {
                    change.find_met(contents);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.keys()
    }

    /// What stood at a path before all that git took out there, and what stood there with it.
    pub(super) fn ends(&self, path: &[u8]) -> Option<[Option<Vec<u8>>; 2]> {
        let changes = self.0.get(path)?;
        let text = |version: &Option<PathVersion>| version.as_ref().map(|version| version.text.clone());
        Some([text(&changes.first()?.from), text(&changes.last()?.to)])
    }

    /// What others changed at its paths since a checkpoint with this tree, and no other checkpoint shows.
    pub(super) fn unseen(&self, workspace: &Workspace<'_>, tree: &Hash) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        for path in self.0.keys() {
            let before = diff::find(&workspace.objects, tree, path)?;
            let file = workspace.root.join(path_from_bytes(path));
            let link = std::fs::read_link(&file).ok().map(|to| DiffState::Symlink(ic_ledger::path_bytes(&to).to_vec()));
            let after = link.or_else(|| workspace.content_now(path));
            if after.is_some() || file.symlink_metadata().is_err() {
                found.push(part(path, before, after));
            }
        }
        // What came and went again may have another name by now.
        let may_be_renamed = |path: &Vec<u8>| self.0[path].iter().any(|change| change.is_returned);
        found.retain(|one| one.change().is_some() || one.after.is_none() && may_be_renamed(&one.path));
        Ok(found)
    }
}

/// Whether calls may have put entries onto the stash, and whether another may have, as far as their lines say.
fn stashed_by(calls: &[ToolCall], all_packed: &[Packed]) -> (bool, bool) {
    const OTHER: [&str; 7] = ["list", "show", "pop", "apply", "drop", "clear", "branch"];
    let puts = |rest: &str| !OTHER.iter().any(|word| rest.trim_start().starts_with(word));
    let stashes = |line: &str| line.split("git stash").skip(1).any(puts);
    let sure = calls.iter().filter(|call| call.line.as_deref().is_some_and(stashes)).count();
    // Of a long call, or one of several lines, only the beginning is known.
    let is_cut = |call: &ToolCall| call.line.as_ref().is_none_or(|line| line.ends_with('…'));
    let entries = all_packed.iter().filter(|one| one.is_stashed).map(|one| &one.versions[1]);
    (sure > 0 || calls.iter().any(is_cut), sure < entries.collect::<BTreeSet<_>>().len())
}

/// What the work committed and was not checked out when it ended, and what it put onto the stash, oldest first.
fn packed(workspace: &Workspace<'_>, attribution: &Attribution, recorded: &[String]) -> Result<Vec<Packed>> {
    let root = &workspace.root;
    let Some([first, last]) = git_ends(workspace, &attribution.looks)? else { return Ok(Vec::new()) };
    // What the last HEAD has was in the tree, and the looks show it.
    let head: Vec<String> = last.head.into_iter().collect();
    let commits = if recorded.is_empty() { Vec::new() } else { git::not_reached(root, recorded, &head) };
    let entries = last.stash.into_iter().filter(|one| !first.stash.contains(one)).map(|one| one.commit);
    let mut found = Vec::new();
    let fork = commits.last().and_then(|oldest| git::merge_base(root, head.first()?, oldest));
    let mut add = |sha: String, untracked: String, is_returned: bool| {
        let before = format!("{sha}^1");
        let fork = fork.clone().filter(|_| sha == untracked).unwrap_or_else(|| before.clone());
        let versions = [before, sha.clone(), untracked.clone(), fork];
        let is_stashed = sha != untracked;
        let shas = if is_stashed { vec![sha, untracked] } else { vec![sha] };
        for (path, modes) in git::changed_entries(root, &shas) {
            // A submodule has no content of its own.
            if !modes.contains(&0o160_000) {
                found.push(Packed { path, versions: versions.clone(), modes, is_returned, is_stashed });
            }
        }
    };
    if !commits.is_empty() {
        let head: Vec<String> = git::head(root).into_iter().collect();
        let still_out = git::not_reached(root, &commits, &head);
        commits.into_iter().rev().for_each(|sha| add(sha.clone(), sha.clone(), !still_out.contains(&sha)));
    }
    let entries: Vec<String> = entries.collect();
    let stash = if entries.is_empty() { Vec::new() } else { git::stash_ids(root)? };
    for entry in entries.into_iter().rev() {
        // The third parent of an entry has the files that git did not track.
        add(entry.clone(), format!("{entry}^3"), !stash.contains(&entry));
    }
    Ok(found)
}
