//! Single entries of the index: what work made of them, and how that is reverted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use ic_base::Result;
use serde::{Deserialize, Serialize};

use super::pack::existing;
use super::program::Git;
use super::state::GitState;
use super::{index, log};
use crate::manifest::PathText;
use crate::objects::Objects;

/// What the index holds of a path: `100644 OID`, as git writes it; `None`: nothing.
pub(super) type Entry = Option<String>;

/// The entries of an index by path, without those of a conflict.
type Entries = BTreeMap<Vec<u8>, String>;

/// An entry of the index that an undo of work reverts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEdit {
    /// The path from the root of the work tree.
    pub path: PathText,
    /// The entry as the work left it.
    pub was: Option<String>,
    /// The entry as the undo makes it.
    pub becomes: Option<String>,
}

/// An entry of the index whose content no commit has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedPath {
    /// The path from the root of the work tree.
    pub path: Vec<u8>,
    /// The mode, as git writes it: `100644`.
    pub mode: String,
    /// The id of its content.
    pub oid: String,
}

impl StagedPath {
    fn of((path, entry): (&Vec<u8>, &String)) -> Self {
        let (mode, oid) = entry.split_once(' ').unwrap_or_default();
        Self { path: path.clone(), mode: mode.to_owned(), oid: oid.to_owned() }
    }
}

/// What work did to the index, and is so now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// What was staged before the work, was not after it, and is not now.
    pub unstaged: Vec<StagedPath>,
    /// What was staged after the work and was not before it.
    pub made: Vec<StagedPath>,
    /// What of that still is staged.
    pub staged: Vec<StagedPath>,
    /// Paths of that which were staged once more since: what is staged may have what the work had staged.
    pub restaged: Vec<Vec<u8>>,
    /// Paths that were taken off the index, and that HEAD has: the next commit would delete them.
    pub removed: Vec<Vec<u8>>,
}

/// The entries that were staged or unstaged between two states, and stayed so until now.
///
/// Errors: `corrupt` if a kept index cannot be read; `git_failed`.
pub fn index_changes(root: &Path, objects: &Objects, before: &GitState, after: &GitState) -> Result<IndexChanges> {
    if before.index == after.index || ic_ledger::git_dirs(root).is_none() {
        return Ok(IndexChanges::default());
    }
    let git = Git::new(root);
    let (was, is) = (index::read(objects, before.index)?, index::read(objects, after.index)?);
    let (was, is, now) = (entries(&was), entries(&is), entries(&index::listing(&git)?));
    let staged_in = |all: &Entries, state: &GitState| -> Vec<StagedPath> {
        let staged: HashSet<&str> = state.staged.iter().map(String::as_str).collect();
        all.iter().filter(|(_, entry)| staged.contains(oid(entry))).map(StagedPath::of).collect()
    };
    let is_in = |all: &Entries, one: &StagedPath| all.get(&one.path).is_some_and(|entry| oid(entry) == one.oid);
    let (mut unstaged, mut made) = (staged_in(&was, before), staged_in(&is, after));
    unstaged.retain(|one| !is_in(&is, one) && !is_in(&now, one));
    made.retain(|one| !is_in(&was, one));
    let mut staged: Vec<StagedPath> = made.iter().filter(|one| is_in(&now, one)).cloned().collect();
    // An entry that is again what it was before the work has nothing of the work, and is not staged once more.
    let is_other = |one: &&StagedPath| {
        now.get(&one.path).is_some_and(|entry| oid(entry) != one.oid && was.get(&one.path) != Some(entry))
    };
    let mut restaged: Vec<Vec<u8>> = made.iter().filter(is_other).map(|one| one.path.clone()).collect();
    let is_gone = |path: &&Vec<u8>| !is.contains_key(*path) && !now.contains_key(*path);
    let mut removed: Vec<Vec<u8>> = was.keys().filter(is_gone).cloned().collect();
    if !staged.is_empty() || !restaged.is_empty() || !removed.is_empty() {
        // The index alone changes only what no commit has.
        let in_head = unlike_head(&git, log::head(root).as_deref())?;
        staged.retain(|one| in_head.contains_key(&one.path));
        restaged.retain(|path| in_head.contains_key(path));
        removed.retain(|path| in_head.get(path).is_some_and(Option::is_some));
    }
    Ok(IndexChanges { unstaged, made, staged, restaged, removed })
}

/// What work made of an entry.
struct Change {
    was: Entry,
    is: Entry,
    /// Whether no commit had what it was.
    was_staged: bool,
    /// The commit that was checked out before.
    head: Option<String>,
}

/// The entries that work changed, that are as it left them, and that no commit has: each with what an undo makes of it. That is what it was
/// where it was staged before, and else what HEAD has. `spans`: git's state before each piece of the work and after it, oldest first;
/// `is_own`: whether a path is the work's. An entry whose former content git has lost is not among them.
///
/// Errors: `corrupt` if a kept index cannot be read; `git_failed`.
pub fn index_edits(
    root: &Path,
    objects: &Objects,
    spans: &[(GitState, GitState)],
    is_own: impl Fn(&[u8]) -> bool,
) -> Result<Vec<IndexEdit>> {
    let mut changed: BTreeMap<Vec<u8>, Change> = BTreeMap::new();
    for (before, after) in spans.iter().filter(|(before, after)| before.index != after.index) {
        let (was, is) = (entries(&index::read(objects, before.index)?), entries(&index::read(objects, after.index)?));
        let names: BTreeSet<&Vec<u8>> = was.keys().chain(is.keys()).collect();
        for path in names.into_iter().filter(|path| was.get(*path) != is.get(*path) && is_own(path)) {
            let (was, is) = (was.get(path).cloned(), is.get(path).cloned());
            // Where others staged something between two works, the undo goes back to that.
            if let Some(one) = changed.get_mut(path).filter(|one| one.is == was) {
                one.is = is;
            } else {
                let was_staged = was.as_ref().is_some_and(|was| before.staged.iter().any(|staged| staged == oid(was)));
                changed.insert(path.clone(), Change { was, is, was_staged, head: before.head.clone() });
            }
        }
    }
    if changed.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Ok(Vec::new());
    }
    let git = Git::new(root);
    let (now, head) = (entries(&index::listing(&git)?), log::head(root));
    let in_head = unlike_head(&git, head.as_deref())?;
    let mut edits = Vec::new();
    for (path, change) in changed {
        // What HEAD has is committed, and no entry of the index alone.
        let Some(committed) = in_head.get(&path).filter(|_| now.get(&path) == change.is.as_ref()) else { continue };
        // A commit since may have changed what is not staged: then HEAD has the newer content.
        let becomes = if change.was_staged || head == change.head { change.was } else { committed.clone() };
        if becomes != change.is {
            edits.push(IndexEdit { path: PathText(path), was: change.is, becomes });
        }
    }
    // The objects of a look are not kept: git may have collected what nothing names any more.
    let wanted: Vec<&str> = edits.iter().filter_map(|edit| edit.becomes.as_deref().map(oid)).collect();
    let there: HashSet<String> = existing(&git, &wanted)?.into_iter().map(str::to_owned).collect();
    edits.retain(|edit| edit.becomes.as_deref().is_none_or(|entry| there.contains(oid(entry))));
    Ok(edits)
}

/// The paths whose entries are what an undo made of them: a redo makes them again what the work had left.
///
/// Errors: `git_failed`.
pub fn paths_as_undone(root: &Path, edits: &[IndexEdit]) -> Result<Vec<PathText>> {
    if edits.is_empty() || ic_ledger::git_dirs(root).is_none() {
        return Ok(Vec::new());
    }
    let now = entries(&index::listing(&Git::new(root))?);
    let is_as_undone = |edit: &&IndexEdit| now.get(&edit.path.0) == edit.becomes.as_ref();
    Ok(edits.iter().filter(is_as_undone).map(|edit| edit.path.clone()).collect())
}

/// The entries that a restore took off the index: staged in `before`, the state before it, and something else in `after`.
///
/// Errors: `corrupt` if a kept index cannot be read.
pub fn unstaged_by(objects: &Objects, before: &GitState, after: &GitState) -> Result<Vec<IndexEdit>> {
    if before.staged.is_empty() || before.index == after.index {
        return Ok(Vec::new());
    }
    let (was, is) = (entries(&index::read(objects, before.index)?), entries(&index::read(objects, after.index)?));
    let is_staged = |entry: &str| before.staged.iter().any(|staged| staged == oid(entry));
    let staged = was.into_iter().filter(|(path, entry)| is_staged(entry) && is.get(path) != Some(entry));
    let edit = |(path, entry): (Vec<u8>, String)| {
        let becomes = is.get(&path).cloned();
        IndexEdit { path: PathText(path), was: Some(entry), becomes }
    };
    Ok(staged.map(edit).collect())
}

/// The object of an entry.
pub(super) fn oid(entry: &str) -> &str {
    entry.split_once(' ').map_or("", |(_, oid)| oid)
}

/// The entries of an index, without those of a conflict.
pub(super) fn entries(text: &[u8]) -> Entries {
    let entry = |line: index::IndexLine<'_>| {
        // The stages 1 to 3 are the sides of a conflict.
        let entry = line.meta.strip_suffix(" 0")?;
        Some((line.path.to_vec(), entry.to_owned()))
    };
    index::parse(text).0.into_iter().filter_map(entry).collect()
}

/// The paths of which the index has something else than HEAD.
///
/// Errors: `git_failed`.
pub fn staged_paths(root: &Path) -> Result<BTreeSet<Vec<u8>>> {
    if ic_ledger::git_dirs(root).is_none() {
        return Ok(BTreeSet::new());
    }
    Ok(unlike_head(&Git::new(root), log::head(root).as_deref())?.into_keys().collect())
}

/// What HEAD has at each path of which the index has something else.
fn unlike_head(git: &Git<'_>, head: Option<&str>) -> Result<BTreeMap<Vec<u8>, Entry>> {
    let said = match head {
        Some(head) => git.run(&["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", head])?,
        // Nothing is committed yet.
        None => return Ok(entries(&index::listing(git)?).into_keys().map(|path| (path, None)).collect()),
    };
    let mut found = BTreeMap::new();
    let mut parts = said.split(|byte| *byte == 0);
    // `:MODE MODE OID OID STATUS`, NUL, the path, NUL. The first of each pair is HEAD's, and the second is the index's.
    while let (Some(meta), Some(path)) = (parts.next().filter(|meta| !meta.is_empty()), parts.next()) {
        let meta = String::from_utf8_lossy(meta).into_owned();
        let mut fields = meta.trim_start_matches(':').split(' ');
        let (mode, oid) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        let entry = (mode != "000000").then(|| format!("{mode} {oid}"));
        found.insert(path.to_vec(), entry);
    }
    Ok(found)
}
