//! What git took out of the tree during a piece of work, and returned later: in a commit that was not checked out when the work ended, or on
//! the stash. What others merge, pick or pop of it is still the work's.

use std::collections::BTreeMap;

use ic_base::Result;
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git;
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::restore::reverse::{LookPair, has_change, merged};
use ic_dispatch::{Dispatch, report};
use ic_ledger::events::Hash;
use ic_ledger::{path_bytes, path_from_bytes};
use ic_session::attribution::Attribution;
use ic_worktree::Workspace;

use super::commits::has_git;
use super::others_commits::brought;

/// The reason for a path that is unsure because what git returned there is merged with changes of the same lines.
pub(super) const CHANGED_ON_RETURN: &str =
    "git returned what this work had made there, and others changed the same lines";

/// What git took out of the tree, by path, oldest first.
#[derive(Default)]
pub(super) struct Parcels(BTreeMap<Vec<u8>, Vec<Change>>);

/// A change that git took out of the tree; `None`: no file.
struct Change {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    /// Whether what is checked out has its commit, or the stash has its entry no more: then git returned it, whatever the tree has now.
    is_returned: bool,
}

/// A path of a commit of the work, or of an entry of the stash.
struct Packed {
    path: Vec<u8>,
    /// The names by which git knows its content before and after, and after if git did not track the path.
    versions: [String; 3],
    is_returned: bool,
}

/// A change that no call made, in its parts.
pub(super) enum Returned {
    /// It has nothing of the work.
    Nothing,
    /// The parts, oldest first, and whether each is the work's; and the texts in between.
    Parts(Vec<(bool, Difference)>, Vec<Vec<u8>>),
    /// It has something of the work in lines that others changed as well.
    Unsure,
}

impl Parcels {
    /// `recorded`: the commits of the work, newest first; `is_its`: whether all makers of a change are of the work.
    pub(super) fn of(
        workspace: &Workspace<'_>,
        attribution: &Attribution,
        recorded: &[String],
        is_its: impl Fn(&Dispatch) -> bool,
    ) -> Result<Self> {
        let mut stood: BTreeMap<Vec<u8>, LookPair> = BTreeMap::new();
        let all_packed = packed(workspace, attribution, recorded)?;
        let Some(last) = attribution.looks.last().filter(|_| !all_packed.is_empty()) else {
            return Ok(Self::default());
        };
        for one in &all_packed {
            let now = diff::find(&workspace.objects, &last.tree, &one.path)?;
            stood.insert(one.path.clone(), (now.clone(), now));
        }
        // From the last on, each change leads back to what stood there when the work began.
        for window in attribution.windows().rev() {
            diff::diff(&workspace.objects, Some(&window.from.tree), Some(&window.to.tree), &mut |difference| {
                let makers = window.makers(&difference.path);
                if makers.is_empty() || !makers.into_iter().all(&is_its) {
                    // Where others had a part in it, whose each line is that git took cannot be told.
                    stood.remove(&difference.path);
                } else if let Some((first, _)) = stood.get_mut(&difference.path) {
                    *first = difference.before;
                }
                Ok(())
            })?;
        }
        let asked =
            all_packed.iter().flat_map(|one| one.versions.iter().map(|version| (version.clone(), one.path.clone())));
        let contents = git::contents(&workspace.root, &asked.collect::<Vec<_>>());
        let mut all = Self::default();
        for (Packed { path, is_returned, .. }, has) in all_packed.into_iter().zip(contents.chunks(3)) {
            let (parent, to) = (has[0].clone(), has[1].clone().or_else(|| has[2].clone()));
            let Some((first, end)) = stood.get(&path) else { continue };
            let [first, end] = [first, end].map(|state| text_of(workspace, &path, state.as_ref()));
            let (Ok(first), Ok(end)) = (first, end) else { continue };
            // What others had changed before and not committed went with it, and is not the work's.
            let has_theirs = has_change(to.as_deref(), (parent.as_deref(), first.as_deref()));
            let from = if parent == first || has_theirs != Some(true) { parent } else { first };
            let has = has_change(end.as_deref(), (from.as_deref(), to.as_deref()));
            if from != to && has == Some(false) {
                all.0.entry(path).or_default().push(Change { from, to, is_returned });
            }
        }
        Ok(all)
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
        Some([changes.first()?.from.clone(), changes.last()?.to.clone()])
    }

    /// What others changed at its paths since a checkpoint with this tree, and no other checkpoint shows.
    pub(super) fn unseen(&self, workspace: &Workspace<'_>, tree: &Hash) -> Result<Vec<Difference>> {
        let mut found = Vec::new();
        for path in self.0.keys() {
            let before = diff::find(&workspace.objects, tree, path)?;
            let after = workspace.content_now(path);
            let is_gone = || workspace.root.join(path_from_bytes(path)).symlink_metadata().is_err();
            if after.is_some() || is_gone() {
                found.push(part(path, before, after));
            }
        }
        found.retain(|difference| difference.change().is_some());
        Ok(found)
    }

    /// The parts of a change that no call made: what others did, and what git returned of the work.
    pub(super) fn returned(&self, workspace: &Workspace<'_>, difference: &Difference) -> Returned {
        let Difference { path, before, after } = difference;
        let Some(changes) = self.0.get(path) else { return Returned::Nothing };
        let [had, has] = [before, after].map(|state| text_of(workspace, path, state.as_ref()));
        let (Ok(had), Ok(mut has)) = (had, has) else { return Returned::Nothing };
        let state = |text: &Option<Vec<u8>>| text.as_ref().map(|text| brought(difference, text));
        let (mut parts, mut texts, mut to) = (Vec::new(), Vec::new(), after.clone());
        for change in changes.iter().rev() {
            let ends = (change.from.as_deref(), change.to.as_deref());
            if has_change(had.as_deref(), ends) != Some(false) {
                continue;
            }
            has = match (has_change(has.as_deref(), ends), &change.from, &change.to, &has) {
                (Some(false), ..) => continue,
                (None, ..) if !change.is_returned => continue,
                (_, Some(from), Some(text), Some(now)) => match merged(text, now, from) {
                    Some(without) => Some(without),
                    None => return Returned::Unsure,
                },
                // A file came or went as a whole, and others may have changed it then.
                _ if had == change.from => {
                    if has != change.to {
                        let came = state(&change.to);
                        texts.extend(change.to.clone());
                        parts.push((false, part(path, came.clone(), to)));
                        to = came;
                    }
                    change.from.clone()
                }
                _ => return Returned::Unsure,
            };
            let without = state(&has);
            texts.extend(has.clone());
            parts.push((true, part(path, without.clone(), to)));
            to = without;
        }
        if parts.is_empty() {
            return Returned::Nothing;
        }
        if had != has {
            parts.push((false, part(path, before.clone(), to)));
        } else if let Some((_, first)) = parts.last_mut() {
            first.before.clone_from(before);
        }
        parts.reverse();
        Returned::Parts(parts, texts)
    }
}

fn part(path: &[u8], before: Option<DiffState>, after: Option<DiffState>) -> Difference {
    Difference { path: path.to_vec(), before, after }
}

/// What the work committed and was not checked out when it ended, and what it put onto the stash, oldest first.
fn packed(workspace: &Workspace<'_>, attribution: &Attribution, recorded: &[String]) -> Result<Vec<Packed>> {
    let (root, looks) = (&workspace.root, &attribution.looks);
    let ends = looks.iter().find(|look| has_git(look)).zip(looks.iter().rfind(|look| has_git(look)));
    let Some((first, last)) = ends else { return Ok(Vec::new()) };
    let Some((first, last)) = workspace.git_at(first)?.zip(workspace.git_at(last)?) else { return Ok(Vec::new()) };
    let without = |head: Option<String>, shas: &[String]| {
        if shas.is_empty() { Vec::new() } else { git::not_reached(root, shas, &head.into_iter().collect::<Vec<_>>()) }
    };
    let commits = without(last.head, recorded);
    let still_out = without(git::head(root), &commits);
    let entries: Vec<String> =
        last.stash.into_iter().filter(|one| !first.stash.contains(one)).map(|one| one.commit).collect();
    if commits.is_empty() && entries.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let mut add = |sha: &str, untracked: &str, paths: Vec<Vec<u8>>, is_returned| {
        let versions = [format!("{sha}^1"), sha.to_owned(), untracked.to_owned()];
        found.extend(paths.into_iter().map(|path| Packed { path, versions: versions.clone(), is_returned }));
    };
    for commit in report::parse(&git::log_of(root, &commits)?)?.commits.into_iter().rev() {
        let paths = commit.files.iter().map(|path| path_bytes(path).to_vec()).collect();
        add(&commit.sha, &commit.sha, paths, !still_out.contains(&commit.sha));
    }
    let stash = git::stash_ids(root)?;
    for entry in entries.into_iter().rev() {
        // The third parent of an entry has the files that git did not track.
        let (untracked, paths) = (format!("{entry}^3"), git::stashed_paths(root, &entry));
        add(&entry, &untracked, paths, !stash.contains(&entry));
    }
    Ok(found)
}

/// The text of a state, `None` where nothing stands. An error: it is no file, or its text is not kept.
fn text_of(
    workspace: &Workspace<'_>,
    path: &[u8],
    state: Option<&DiffState>,
) -> std::result::Result<Option<Vec<u8>>, ()> {
    match state {
        None => Ok(None),
        Some(DiffState::File { hash, .. }) => {
            // Who only looks at the tree stores nothing of it.
            let in_tree = || std::fs::read(workspace.root.join(path_from_bytes(path))).ok();
            let text = workspace.objects.read(hash).ok().or_else(in_tree);
            text.filter(|text| hash_of(text) == *hash).map(Some).ok_or(())
        }
        Some(_) => Err(()),
    }
}
