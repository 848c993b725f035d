//! What git took out of the tree during a piece of work, and returned later: in a commit that was not checked out when the work ended, or on
//! the stash. What others merge, pick or pop of it is still the work's.

use std::collections::{BTreeMap, BTreeSet};

use ic_base::{DispatchId, Result};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::git;
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::restore::reverse::{LookPair, has_change, merged};
use ic_dispatch::Dispatch;
use ic_ledger::events::Hash;
use ic_ledger::{Snapshot, path_from_bytes};
use ic_session::attribution::Attribution;
use ic_session::call::{self, ToolCall};
use ic_worktree::Workspace;

use super::commits::{git_ends, is_recorded};
use super::others_commits::brought;

/// The reason for a path that is unsure because what git returned there is merged with changes of the same lines.
pub(super) const CHANGED_ON_RETURN: &str =
    "git returned what this work had made there, and others changed the same lines";

/// The reason for a path that is unsure because both this work and a person put something onto the stash.
pub(super) const STASHED_BY_BOTH: &str =
    "it came off the stash, where not only this work put something, so it may be yours";

/// What git took out of the tree, by path, oldest first.
#[derive(Default)]
pub(super) struct Parcels(BTreeMap<Vec<u8>, Vec<Change>>);

/// What git has at a path.
#[derive(Clone, PartialEq, Eq)]
struct Version {
    /// The content; of a symbolic link, where it points.
    text: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File { is_executable: bool },
    Link,
}

//   work: edits, commits on `side`, switches back ── looks show no change
//   a person: merges `side`, or picks, squashes, pops ── a look shows the change, and no call made it
//
// The change is then the work's, applied to what stood there, and the rest of it is the person's.

/// A change that git took out of the tree; `None`: nothing stands there.
#[derive(Default)]
struct Change {
    from: Option<Version>,
    to: Option<Version>,
    /// Whether what is checked out has its commit by now, or the stash has its entry no more.
    is_returned: bool,
    /// Whether a person may have made it, and put it onto the stash.
    may_be_yours: bool,
    /// What a commit had there when git returned it. No checkpoint may show that.
    met: Option<Vec<u8>>,
}

/// A path of a commit of the work, or of an entry of the stash.
struct Packed {
    path: Vec<u8>,
    /// The names by which git knows its content before and after, and after if git did not track the path.
    versions: [String; 3],
    /// Git's modes before and after.
    modes: [u32; 2],
    is_returned: bool,
    /// Whether it is of an entry of the stash, which a person may have put there.
    is_stashed: bool,
}

/// A change that the work did not make, in its parts.
pub(super) enum Returned {
    /// It has nothing of the work.
    Nothing,
    /// The parts, oldest first, and whether each is the work's; and the texts in between.
    Parts(Vec<(bool, Difference)>, Vec<Vec<u8>>),
    /// It may have something of the work, and why that is not known; the parts and texts, where it is said to be the work's.
    Unsure(&'static str, Vec<(bool, Difference)>, Vec<Vec<u8>>),
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
        let stashing = calls.iter().filter(|call| stashes(call)).count();
        let entries: BTreeSet<&String> =
            all_packed.iter().filter(|one| one.is_stashed).map(|one| &one.versions[1]).collect();
        let entry_count = entries.len();
        for (Packed { path, modes, is_returned, is_stashed, .. }, has) in all_packed.into_iter().zip(contents.chunks(3))
        {
            let version = |text: Option<Vec<u8>>, mode| Some(Version { text: text?, kind: Kind::of_git(mode) });
            let (parent, to) = (version(has[0].clone(), modes[0]), has[1].clone().or_else(|| has[2].clone()));
            let to = version(to, modes[1]);
            let Some((first, end)) = stood.get(&path) else { continue };
            // Where no look shows a change of the work there, a person may have changed it and put it away.
            let is_unseen = is_stashed && !seen.contains(&path);
            if is_unseen && stashing == 0 {
                continue;
            }
            let may_be_yours = is_unseen && stashing < entry_count;
            let [first, end] = [first, end].map(|state| version_of(workspace, &path, state.as_ref()));
            let (Ok(first), Ok(end)) = (first, end) else { continue };
            // What others had changed before and not committed went with it, and is not the work's.
            let own = Change { from: parent.clone(), to: first.clone(), ..Change::default() };
            let from = if parent == first || own.is_in(to.as_ref()) != Some(true) { parent } else { first };
            let change = Change { from, to, is_returned, may_be_yours, met: None };
            if change.from != change.to && change.is_in(end.as_ref()) == Some(false) {
                all.0.entry(path).or_default().push(change);
            }
        }
        if let Some(since) = calls.iter().find_map(|call| call.head_log_start).filter(|_| !all.is_empty()) {
            all.find_met(workspace, since, recorded);
        }
        Ok(all)
    }

    /// Finds what others had committed at each path when git returned the change: what was checked out before the last commit that
    /// brought it, or is checked out where none did.
    fn find_met(&mut self, workspace: &Workspace<'_>, since: u64, recorded: &[String]) {
        /// No more of the last moves of HEAD are looked at, and no more paths at a time.
        const MOST: [usize; 2] = [20, 64];
        let root = &workspace.root;
        let mut moves = git::advanced_since(root, since);
        moves.retain(|[_, after]| !is_recorded(recorded, after));
        // The last one first, and before it what is checked out now.
        let now = git::head(root).into_iter().map(|head| [head.clone(), head]);
        let moves: Vec<[String; 2]> = moves.into_iter().chain(now).rev().take(MOST[0]).collect();
        let mut all: Vec<_> = self.0.iter_mut().collect();
        for some in all.chunks_mut(MOST[1]).filter(|_| !moves.is_empty()) {
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
        let text = |version: &Option<Version>| version.as_ref().map(|version| version.text.clone());
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

    /// The parts of a change that the work did not make: what git returned of the work, and then what others did.
    pub(super) fn returned(&self, workspace: &Workspace<'_>, difference: &Difference) -> Returned {
        let Difference { path, before, after } = difference;
        let Some(changes) = self.0.get(path) else { return Returned::Nothing };
        let [had, has] = [before, after].map(|state| version_of(workspace, path, state.as_ref()));
        let (Ok(had), Ok(has)) = (had, has) else { return Returned::Nothing };
        let (mut parts, mut texts, mut at, mut state) = (Vec::new(), Vec::new(), had.clone(), before.clone());
        // The change may have been made of the work's and of others' changes in the same lines: then it is asked about.
        let unsure = || Returned::Unsure(CHANGED_ON_RETURN, vec![(true, difference.clone())], Vec::new());
        let is_gone = |change: &Change| has.is_none() && change.is_returned;
        let is_come = |change: &&Change| {
            change.is_in(had.as_ref()) == Some(false) && (change.is_in(has.as_ref()) != Some(false) || is_gone(change))
        };
        let came: Vec<&Change> = changes.iter().filter(is_come).collect();
        for change in &came {
            if at.is_none() && change.from.is_some() {
                // The whole file came, as with another branch: what it was without the work came with it.
                let back = Change { from: change.to.clone(), to: change.from.clone(), ..Change::default() };
                let Ok(without) = back.onto(has.clone()) else { return unsure() };
                let without_state = without.as_ref().map(|without| without.state(difference, after.as_ref()));
                texts.extend(without.clone().map(|without| without.text));
                parts.push((false, part(path, state, without_state.clone())));
                (at, state) = (without, without_state);
            }
            if let Some(met) = change.conflict(has.as_ref()) {
                let of_others = brought(difference, met);
                let first = part(path, before.clone(), Some(of_others.clone()));
                let parts = vec![(false, first), (true, part(path, Some(of_others), after.clone()))];
                return Returned::Unsure(CHANGED_ON_RETURN, parts, vec![met.to_vec()]);
            }
            let Ok(next) = change.onto(at) else { return unsure() };
            let next_state = if next == has {
                after.clone()
            } else {
                next.as_ref().map(|next| next.state(difference, state.as_ref()))
            };
            texts.extend(next.clone().map(|next| next.text));
            parts.push((true, part(path, state, next_state.clone())));
            (at, state) = (next, next_state);
        }
        if parts.is_empty() {
            return Returned::Nothing;
        }
        // What went again may have another name, as what goes after any other change of the work.
        if at != has && has.is_some() {
            parts.push((false, part(path, state, after.clone())));
            // No checkpoint may hold what stands there now.
            texts.extend(has.map(|has| has.text));
        }
        if came.iter().any(|change| change.may_be_yours) {
            return Returned::Unsure(STASHED_BY_BOTH, parts, texts);
        }
        Returned::Parts(parts, texts)
    }
}

impl Change {
    /// `contents`: by the moves of HEAD, the last one first, what was there before each and after it.
    fn find_met(&mut self, contents: &[Option<Vec<u8>>]) {
        let Some([from, to]) = self.texts().map(|texts| texts.map(|version| version.text.as_slice())) else { return };
        let has = |text: &Option<Vec<u8>>| has_change(text.as_deref(), (Some(from), Some(to))) == Some(true);
        let mut moves = contents.chunks(2);
        let came = moves.clone().find(|ends| !has(&ends[0]) && has(&ends[1])).or_else(|| moves.next());
        self.met = came.and_then(|ends| ends[0].clone().filter(|_| !has(&ends[0])));
    }

    /// What a commit had there in the same lines when git returned the change, though it is not there now.
    fn conflict(&self, now: Option<&Version>) -> Option<&[u8]> {
        let ([from, to], met) = self.texts().zip(self.met.as_deref())?;
        let is_lost = now.is_none_or(|now| now.text != met) && merged(&from.text, met, &to.text).is_none();
        is_lost.then_some(met)
    }

    /// The text before it and after it, where it is one of a file that stays.
    fn texts(&self) -> Option<[&Version; 2]> {
        let is_file = |version: &&Version| version.kind != Kind::Link;
        Some([self.from.as_ref().filter(is_file)?, self.to.as_ref().filter(is_file)?])
    }

    /// Whether what stands at a path has this change. `None`: it cannot be told.
    fn is_in(&self, version: Option<&Version>) -> Option<bool> {
        if version == self.to.as_ref() || version == self.from.as_ref() {
            return Some(version == self.to.as_ref());
        }
        let Some(([from, to], version)) = self.texts().zip(version) else {
            // It came or went as a whole: where it came and nothing stands, or it went and something stands, it is not there.
            let is_none = version.is_none() == self.to.is_none();
            return if version.is_none() || self.to.is_none() { Some(is_none) } else { None };
        };
        // Where it changed both, the text decides: a person may have set the same permissions.
        if from.text == to.text {
            return Some(version.kind == to.kind);
        }
        has_change(Some(&version.text), (Some(&from.text), Some(&to.text)))
    }

    /// What stands at a path with this change. An error: others changed the same.
    fn onto(&self, version: Option<Version>) -> std::result::Result<Option<Version>, ()> {
        if version == self.from {
            return Ok(self.to.clone());
        }
        let ([from, to], version) = self.texts().zip(version).ok_or(())?;
        let text = if from.text == to.text { Some(version.text) } else { merged(&from.text, &version.text, &to.text) };
        let text = text.ok_or(())?;
        Ok(Some(Version { text, kind: if from.kind == to.kind { version.kind } else { to.kind } }))
    }
}

impl Kind {
    fn of_git(mode: u32) -> Self {
        if mode == 0o120_000 { Self::Link } else { Self::File { is_executable: mode & 0o100 != 0 } }
    }
}

impl Version {
    /// As a state of the tree; `beside`: what stood there, whose other bits it keeps.
    fn state(&self, difference: &Difference, beside: Option<&DiffState>) -> DiffState {
        let Kind::File { is_executable } = self.kind else { return DiffState::Symlink(self.text.clone()) };
        let mut state = brought(difference, &self.text);
        if let DiffState::File { mode, .. } = &mut state {
            // Git knows of one bit alone; the others are those of the person's umask.
            if let Some(DiffState::File { mode: stood, .. }) = beside {
                *mode = *stood;
            }
            *mode = if is_executable { *mode | (*mode & 0o444) >> 2 } else { *mode & !0o111 };
        }
        state
    }
}

/// Whether a call was asked to put something onto the stash, as far as its line says.
fn stashes(call: &ToolCall) -> bool {
    const OTHER: [&str; 7] = ["list", "show", "pop", "apply", "drop", "clear", "branch"];
    let is_put = |rest: &str| !OTHER.iter().any(|word| rest.trim_start().starts_with(word));
    call.line.as_ref().is_some_and(|line| line.split("git stash").skip(1).any(is_put))
}

fn part(path: &[u8], before: Option<DiffState>, after: Option<DiffState>) -> Difference {
    Difference { path: path.to_vec(), before, after }
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
    let mut add = |sha: String, untracked: String, is_returned: bool| {
        let versions = [format!("{sha}^1"), sha.clone(), untracked.clone()];
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

/// What stands at a path, `None` for nothing. An error: it is neither file nor link, or its text is not kept.
fn version_of(
    workspace: &Workspace<'_>,
    path: &[u8],
    state: Option<&DiffState>,
) -> std::result::Result<Option<Version>, ()> {
    match state {
        None => Ok(None),
        Some(DiffState::Symlink(to)) => Ok(Some(Version { text: to.clone(), kind: Kind::Link })),
        Some(DiffState::File { hash, mode, .. }) => {
            // Who only looks at the tree stores nothing of it.
            let in_tree = || std::fs::read(workspace.root.join(path_from_bytes(path))).ok();
            let text = workspace.objects.read(hash).ok().or_else(in_tree);
            let kind = Kind::of_git(*mode);
            text.filter(|text| hash_of(text) == *hash).map(|text| Some(Version { text, kind })).ok_or(())
        }
        Some(_) => Err(()),
    }
}
