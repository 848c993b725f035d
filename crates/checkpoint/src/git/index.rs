//! The index as text: what `git ls-files -s -v -z` prints, and the paths that are only intended to be added.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ic_base::{Code, Result};
use ic_ledger::events::Hash;
use ic_ledger::{IndexEntry, path_from_bytes};

use super::error::GitResult;
use super::index_content::IndexContent;
use super::index_file;
use super::program::Git;
use super::state::{GitState, Index};
use crate::objects::{Objects, Writer, hash_of};
use crate::tree::{Encoded, rarity};

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexLine<'l> {
    /// `H`, `S` (skip-worktree), `M` (unmerged), ...; small letters: assume-unchanged.
    pub(crate) tag: u8,
    /// Mode, object and stage: `100644 OID STAGE`.
    pub(crate) meta: &'l str,
    pub(crate) path: &'l [u8],
}

impl IndexLine<'_> {
    /// Whether the work tree is not to have the file.
    pub(crate) fn is_skipped(&self) -> bool {
        self.tag.eq_ignore_ascii_case(&b'S')
    }

    pub(crate) fn is_submodule(&self) -> bool {
        is_submodule(self.meta.as_bytes())
    }
}

/// Whether what begins with a mode is about a submodule.
pub(crate) fn is_submodule(meta: &[u8]) -> bool {
    meta.starts_with(b"160000")
}

/// How directories begin in which a restore edits a copy of the index.
pub(crate) const SCRATCH: &str = "ic-index-";

/// The file in such a directory that its restore holds a lock of.
pub(crate) const OWNER: &str = "owner";

/// A directory without an owner's file is younger than this while its restore makes one, in which nothing is waited for. Programs that
/// wrote none left only dead ones.
const OWNED_AFTER: Duration = Duration::from_mins(1);

/// What killed restores left in a git directory: a living restore holds a lock on the owner's file.
pub(super) fn left_behind(git_dir: &Path) -> Vec<PathBuf> {
    let is_dead = |entry: &std::fs::DirEntry| {
        if !entry.file_name().as_encoded_bytes().starts_with(SCRATCH.as_bytes())
            || !entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            return false;
        }
        std::fs::File::open(entry.path().join(OWNER)).map_or_else(
            |_| {
                let made = entry.metadata().and_then(|meta| meta.modified()).ok();
                made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= OWNED_AFTER)
            },
            // The operating system ends a lock with its process: one that can be taken has no living owner.
            |owner| owner.try_lock().is_ok(),
        )
    };
    let entries = std::fs::read_dir(git_dir).into_iter().flatten().flatten();
    entries.filter(is_dead).map(|entry| entry.path()).collect()
}

/// Removes what killed restores left in a git directory.
pub(crate) fn clear_left_behind(git_dir: &Path) {
    for path in left_behind(git_dir) {
        // What cannot be removed is tried again by the next one.
        let _ = std::fs::remove_dir_all(path);
    }
}

/// What lists an index.
const LIST: [&str; 4] = ["ls-files", "-s", "-v", "-z"];

/// What `git ls-files -s -v -z` prints. Git is asked only where the file is not of the usual form. `None` if there is no `git` on PATH
/// then.
pub(crate) fn list(git: &Git<'_>) -> GitResult<Option<Vec<u8>>> {
    match listing_of_file(git) {
        Some(listing) => Ok(Some(listing)),
        None => git.ask(&LIST),
    }
}

/// As [`list`], where git was there before.
pub(crate) fn listing(git: &Git<'_>) -> GitResult<Vec<u8>> {
    match listing_of_file(git) {
        Some(listing) => Ok(listing),
        None => git.run(&LIST),
    }
}

fn listing_of_file(git: &Git<'_>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    each_of_file(git, |entry| index_file::list(entry, &mut text))?;
    Some(text)
}

/// The paths of the entries, in the order of the index. `None` if git cannot be asked.
pub(crate) fn tracked(git: &Git<'_>) -> Option<Vec<Vec<u8>>> {
    paths_in_file(git).or_else(|| {
        let listed = git.ask(&["ls-files", "-z", "-c"]).ok()??;
        Some(listed.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    })
}

/// As [`tracked`], without git: `None` where the file is not of the usual form.
fn paths_in_file(git: &Git<'_>) -> Option<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    each_of_file(git, |entry| paths.push(entry.path.clone()))?;
    Some(paths)
}

/// Those of these paths whose files are not as long as the index says, where it says so; none where its file is not of the usual form.
pub(crate) fn of_other_length(git: &Git<'_>, paths: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let differs = |path: &Vec<u8>, known: u32| {
        let file = git.root.join(path_from_bytes(path)).symlink_metadata();
        file.is_ok_and(|file| file.is_file() && u32::try_from(file.len()).is_ok_and(|length| length != known))
    };
    let found = entries_where(git, |entry| paths.contains(&entry.path)).unwrap_or_default();
    let is_other = |entry: &IndexEntry| index_file::length(entry).is_some_and(|known| differs(&entry.path, known));
    found.into_iter().filter(is_other).map(|entry| entry.path).collect()
}

/// The entries of these paths as `git update-index --index-info` takes them; none where the index's file is not of the usual form.
pub(crate) fn info(git: &Git<'_>, paths: &[Vec<u8>]) -> Vec<u8> {
    let paths: BTreeSet<&Vec<u8>> = paths.iter().collect();
    let entries = entries_where(git, |entry| paths.contains(&entry.path)).unwrap_or_default();
    let listing = index_file::listing(&entries);
    // But for the tag, it is what is listed.
    records(&listing).filter_map(|entry| entry.get(2..)).flat_map(|entry| [entry, b"\0"].concat()).collect()
}

/// Visits the entries of the index that git works with; `None` where the file is not of the usual form.
pub(super) fn each_of_file(git: &Git<'_>, visit: impl FnMut(&IndexEntry)) -> Option<()> {
    let dirs = ic_ledger::git_dirs(git.root)?;
    let hash_length = ic_ledger::git_hash_length(&dirs).ok()?;
    match git.index {
        Some(path) => index_file::each(path, hash_length, visit),
        None => index_file::each(&dirs.git_dir.join("index"), hash_length, visit),
    }
}

/// The entries that are meant; `None` where the file is not of the usual form.
pub(super) fn entries_where(git: &Git<'_>, is_meant: impl Fn(&IndexEntry) -> bool) -> Option<Vec<IndexEntry>> {
    let mut meant = Vec::new();
    each_of_file(git, |entry| {
        if is_meant(entry) {
            meant.push(entry.clone());
        }
    })?;
    Some(meant)
}

/// The text of an index that was listed so.
pub(crate) fn text(mut text: Vec<u8>, intended: &[Vec<u8>]) -> Vec<u8> {
    // The text is one string, so that the index is one object of the store: the entries, an empty one, the paths.
    // No entry and no path is empty: an empty one stands between them.
    text.push(0);
    for path in intended {
        text.extend_from_slice(path);
        text.push(0);
    }
    text
}

/// The paths of the index that are only intended to be added.
pub(crate) fn intended(git: &Git<'_>) -> Result<Vec<Vec<u8>>> {
    // Git's own CE_INTENT_TO_ADD, which `--debug` prints among the other flags.
    const INTENT_TO_ADD: u32 = 1 << 29;
    if let Some(intended) = entries_where(git, IndexEntry::is_intended) {
        return Ok(intended.into_iter().map(|entry| entry.path).collect());
    }
    let text = git.run(&["ls-files", "--debug", "-z"])?;
    // A path, NUL, lines of which the last ends in `flags: HEX`, the next path.
    let mut parts = text.split(|b| *b == 0);
    let mut path = parts.next().unwrap_or_default();
    let mut intended = Vec::new();
    for part in parts {
        let Some(at) = part.windows(FLAGS.len()).position(|window| window == FLAGS) else { break };
        let rest = &part[at + FLAGS.len()..];
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let flags = std::str::from_utf8(&rest[..end]).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if flags.is_some_and(|flags| flags & INTENT_TO_ADD != 0) {
            intended.push(path.to_vec());
        }
        path = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(intended)
}

const FLAGS: &[u8] = b"flags: ";

/// Keeps an index; a changed entry stores one new piece.
pub(crate) fn keep(writer: &Writer<'_>, text: Vec<u8>) -> Result<Index> {
    let mut entries = Vec::new();
    let mut start = 0;
    for entry in text.split_inclusive(|b| *b == 0) {
        // An entry ends with its path.
        entries.push((start, rarity(&entry[entry.len().saturating_sub(12)..])));
        start += entry.len();
    }
    writer.put_tree(&Encoded { bytes: text, entries }).map(Index)
}

/// The text of an index that was kept. Its hundreds of pieces are read in one transaction, in which nothing may be written to the store.
pub(crate) fn read(objects: &Objects, index: Index) -> Result<Arc<[u8]>> {
    let hash: Hash = index.0;
    let read = objects.at_one_moment(|| objects.read_once(&hash));
    read.map_err(|error| match error.code() {
        Code::Corrupt => error.hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes"),
        _ => error,
    })
}

/// The text of the index that git works with; `None` where the file is not of the usual form.
fn text_of_file(git: &Git<'_>) -> Option<Vec<u8>> {
    let (mut listing, mut intended) = (Vec::new(), Vec::new());
    each_of_file(git, |entry| {
        index_file::list(entry, &mut listing);
        if entry.is_intended() {
            intended.push(entry.path.clone());
        }
    })?;
    Some(text(listing, &intended))
}

/// What the index says now, if that is what was kept, whatever stats git wrote into it, and none that lets git take one of the `changed`
/// paths for unchanged: it does so without a look into a file of the same stat, and a filter may have found it unchanged. `entries`: what
/// the entries of the kept one said, if that is known.
pub(crate) fn says(
    git: &Git<'_>,
    (kept, entries): (Index, Option<Hash>),
    changed: &BTreeSet<&Vec<u8>>,
) -> Option<Hash> {
    let is_like_its_file = |entry: &IndexEntry| {
        let file = git.root.join(path_from_bytes(&entry.path)).symlink_metadata();
        file.is_ok_and(|file| entry.size == low(file.len()) && entry.written_at.0 == low(file.mtime().cast_unsigned()))
    };
    let mut is_any = false;
    let now = IndexContent::read(git, |entry| is_any |= changed.contains(&entry.path) && is_like_its_file(entry))?;
    let is_kept = match entries {
        Some(known) => known == now.entries,
        // Until the entries were hashed once, only the hash of the kept text is known, so the text is made again.
        None => text_of_file(git).is_some_and(|text| hash_of(&text) == kept.0),
    };
    (is_kept && !is_any).then_some(now.entries)
}

/// As much of a number as an index has room for.
fn low(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}

/// Which of these states has the current index; `None`: neither.
pub(crate) fn found_in<'s>(
    git: &Git<'_>,
    states: [&'s GitState; 2],
    objects: &Objects,
) -> Result<Option<&'s GitState>> {
    // An index is stored under the hash of its text: comparing hashes is enough, and the stored text is not read.
    let now = text_of_file(git).map(|text| hash_of(&text));
    if let Some(state) = states.into_iter().find(|state| now == Some(state.index.0)) {
        return Ok(Some(state));
    }
    // What is intended to be added does not show in a listing.
    let listing = listing(git)?;
    for state in states {
        let rest = read(objects, state.index)?.strip_prefix(listing.as_slice()).map(<[u8]>::to_vec);
        // After the same entries comes the empty one. Anything else there is one more entry of the kept index.
        if rest.is_some_and(|rest| rest.first() == Some(&0)) {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// The entries in a text, and the intended paths.
pub(crate) fn parse(text: &[u8]) -> (Vec<IndexLine<'_>>, Vec<&[u8]>) {
    let (entries, intended) = parts(text);
    (records(entries).filter_map(line).collect(), records(intended).collect())
}

/// The entries of which `is_meant` says so by their first bytes: the tag, a space, the mode. Most are not even looked through.
pub(crate) fn lines_with(text: &[u8], is_meant: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = IndexLine<'_>> {
    records(parts(text).0).filter(move |entry| is_meant(entry)).filter_map(line)
}

/// All that an index holds of one path: one entry, or up to three of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfPath<'t> {
    pub(crate) path: &'t [u8],
    text: &'t [u8],
}

impl<'t> OfPath<'t> {
    pub(crate) fn lines(&self) -> impl Iterator<Item = IndexLine<'t>> + use<'t> {
        records(self.text).filter_map(line)
    }
}

/// What a text holds of each path, in its order, and the intended paths.
pub(crate) fn by_path(text: &[u8]) -> (Vec<OfPath<'_>>, Vec<&[u8]>) {
    let (entries, intended) = parts(text);
    let mut paths: Vec<OfPath<'_>> = Vec::new();
    let (mut start, mut first) = (0, 0);
    for entry in records(entries) {
        let end = start + entry.len() + 1;
        if let Some(path) = path(entry) {
            // The entries of one path are neighbours: git sorts them by path, and then by stage.
            if let Some(last) = paths.last_mut().filter(|last| last.path == path) {
                last.text = &entries[first..end];
            } else {
                first = start;
                paths.push(OfPath { path, text: &entries[start..end] });
            }
        }
        start = end;
    }
    (paths, records(intended).collect())
}

/// The text of the entries, and that of the intended paths: an empty one stands between them.
fn parts(text: &[u8]) -> (&[u8], &[u8]) {
    // The text of an index without entries begins with the empty one.
    if text.first() == Some(&0) {
        return (&[], &text[1..]);
    }
    match memchr::memmem::find(text, b"\0\0") {
        // The first NUL ends the last entry, and the second is the empty entry.
        Some(at) => (&text[..=at], &text[at + 2..]),
        None => (text, &[]),
    }
}

/// What each NUL ends.
fn records(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(0, text).map(move |end| {
        let record = &text[start..end];
        start = end + 1;
        record
    })
}

fn path(entry: &[u8]) -> Option<&[u8]> {
    Some(&entry[memchr::memchr(b'\t', entry)? + 1..])
}

fn line(entry: &[u8]) -> Option<IndexLine<'_>> {
    let path = path(entry)?;
    // `H 100644 OID 0`, a tab, the path: the tag and a space come before the mode.
    let meta = std::str::from_utf8(entry.get(2..entry.len() - path.len() - 1)?).ok()?;
    Some(IndexLine { tag: entry[0], meta, path })
}
