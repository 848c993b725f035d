//! Git's state as git told it last: it is believed for as long as git's files are what they were, and nothing is asked.
//!
//! One file beside the stat cache for each root. What git tells depends on its own files ([`super::files`]) and, for what differs from
//! the index, on the work tree. An index that was written anew, as by `git status`, is compared by its entries. A capture has looked at
//! every file anyway. If the tree is the one that git saw, git is not asked. If few paths differ, git is asked about those alone. While
//! another path is known to differ from the index, it is not asked at all: the tree is not clean in either case.
//! What was touched since two seconds before git was asked counts as different, whatever it holds: git may have seen another state of it
//! than the capture did.

mod memory;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{io, mem};

use ic_base::Result;
use ic_ledger::events::Hash;
use ic_ledger::{DATABASE_SIDE_SUFFIXES, GitDirs, path_from_bytes};
use serde::{Deserialize, Serialize};

use self::memory::HeldAnswer;
use super::files::{self, Stamps};
use super::index;
use super::pack::{self, KeptObjects, PackBase};
use super::program::Git;
use super::record::{AskedGit, FoundGit, GitText, ask, operation, status_of};
use super::state::GitState;
use crate::capture::{Captured, Flush, RULES, SETTLED, TOLD, beside, moment, settings_files};
use crate::diff::{self, DiffState};
use crate::manifest::{PathText, hash_text};
use crate::objects::{Objects, Writer};

/// Changes when the file says something else. An older or newer program reads none of another number, and asks git.
const VERSION: u32 = 5;

/// Of more paths, git is asked as a whole; and no more of those that differ from the index are remembered.
const MOST: usize = 200;

/// What git told, and what was so when it did.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    version: u32,
    files: Stamps,
    /// The index was written anew since, and says the same: the new stamp is to be kept.
    #[serde(skip)]
    is_refreshed: bool,
    /// What the entries of the index say, once they were looked at.
    entries: Option<Hash>,
    #[serde(with = "hash_text")]
    settings: Hash,
    /// A moment before git was asked, by the file system's clock, in nanoseconds.
    asked: i64,
    /// The tree that was captured at the same time.
    #[serde(with = "hash_text")]
    tree: Hash,
    /// What that tree does not hold, none of which git tracks.
    unseen: Vec<PathText>,
    /// Tracked paths that differ from the index.
    changed: Vec<PathText>,
    /// Paths that changed since git was asked of them: what they are to the index is not known.
    unasked: Vec<PathText>,
    /// Any other path may differ from the index, too: there were more of them than are remembered.
    more: bool,
    /// The index differs from HEAD.
    is_staged: bool,
    /// Files with ignore rules that a sparse checkout leaves out.
    rules_left_out: Vec<PathText>,
    /// But for its packs and the operation in progress.
    state: GitState,
}

/// What is to be written once the state is kept.
#[derive(Debug)]
pub(super) struct AnswerNote {
    path: PathBuf,
    told: Told,
}

/// A look at git's files, from before a capture of the tree to its end.
pub struct GitLook<'r> {
    root: &'r Path,
    objects: &'r Objects,
    dirs: GitDirs,
    path: PathBuf,
    began: i64,
    files: Option<Stamps>,
    told: Option<Told>,
    /// The text of the index that was told of, where the store lacks it.
    index: Option<Vec<u8>>,
}

/// The moment now, as looks at this root tell it. `None`: nothing can be kept of it.
pub fn moment_of(objects: &Objects, root: &Path, flush: Flush) -> Option<i64> {
    moment(&beside(objects, root, flush).ok()?.with_extension(TOLD)).ok()
}

impl<'r> GitLook<'r> {
    /// Begins before the capture does. The caller holds the store's lock shared; `None`: git has to be asked, and nothing can be kept.
    pub fn begin(objects: &'r Objects, root: &'r Path, flush: Flush) -> Option<Self> {
        let dirs = ic_ledger::git_dirs(root)?;
        let path = beside(objects, root, flush).ok()?.with_extension(TOLD);
        let began = moment(&path).ok()?;
        // The stamps are taken before git is asked and the tree is captured, and again after both. If they differ, the answer
        // is not of a single moment, and is not kept.
        let files = files::of_repository(root, &dirs, began);
        let mut look = Self { root, objects, dirs, path, began, files, told: None, index: None };
        look.told = look.read();
        if look.told.is_none()
            && let Some(held) = HeldAnswer::take(&look.path)
            && let Ok(told) = serde_json::from_slice(&held.told)
            && let Some(told) = look.believed(told)
        {
            (look.told, look.index) = (Some(told), Some(held.index));
        }
        Some(look)
    }

    /// Whether git need not be asked beside the capture.
    pub fn knows(&self) -> bool {
        self.told.is_some()
    }

    /// Whether what was told has something that git may lose and that is not kept.
    pub fn has_news(&self, before: PackBase<'_>) -> bool {
        self.told.as_ref().is_some_and(|told| pack::is_any_new(before, &told.state))
    }

    /// Keeps what git may lose of what was told, beside the capture. `None` where it cannot be kept now.
    pub fn keep_ahead(&self, before: PackBase<'_>, writer: &Writer<'_>) -> Option<KeptObjects> {
        let of = self.told.as_ref()?.state.clone();
        let mut left_out = false;
        let packs = pack::keep(&Git::new(self.root), before, &of, writer, &mut left_out).ok()?;
        Some(KeptObjects { of, packs, left_out })
    }

    /// What the capture is to report, if it was touched at this moment or later.
    pub fn since(&self) -> Option<i64> {
        self.told.as_ref().map(|told| told.asked.saturating_sub(SETTLED))
    }

    /// What git says, once the tree was captured; `asked` is its answer, if it was asked beside. Errors: `git_failed`.
    pub fn end(&self, captured: &Captured, asked: Option<Result<AskedGit>>) -> Result<AskedGit> {
        if let Some(told) = self.told.as_ref().filter(|_| asked.is_none()) {
            // A capture is the next thing that happens to a tree whose restore was killed.
            index::clear_left_behind(&self.dirs.git_dir);
            if let Some(found) = self.retold(told, captured) {
                return Ok(AskedGit::State(Box::new(found)));
            }
        }
        let mut asked = asked.unwrap_or_else(|| ask(self.root))?;
        if let AskedGit::State(found) = &mut asked {
            found.note = self.note(found, captured);
        }
        Ok(asked)
    }

    /// What was told last, if all that it stands on is as it was.
    fn read(&self) -> Option<Told> {
        let told = serde_json::from_slice(&std::fs::read(&self.path).ok()?).ok()?;
        let told = self.believed(told)?;
        // A sweep may have taken the index of a checkpoint that was pruned.
        self.objects.has(&told.state.index.0).ok()?.then_some(told)
    }

    /// What was told, if all that it stands on is as it was, but for the tree.
    fn believed(&self, told: Told) -> Option<Told> {
        let files = self.files?;
        // A clock that was set back dates changes before the look that did not see them.
        let is_so = told.version == VERSION
            && told.files.others == files.others
            && told.asked <= self.began
            && Some(told.settings) == self.settings();
        if !is_so {
            return None;
        }
        let is_refreshed = told.files.index != files.index;
        let entries = if is_refreshed { Some(self.entries_as_in(&told, files)?) } else { told.entries };
        Some(Told { files, is_refreshed, entries, ..told })
    }

    /// What the entries of the index say, which was written anew, if that is what they said, and of none of the paths that differed that
    /// they do not.
    fn entries_as_in(&self, told: &Told, files: Stamps) -> Option<Hash> {
        let changed: BTreeSet<&Vec<u8>> = told.changed.iter().map(|path| &path.0).collect();
        let entries = index::says(&Git::new(self.root), (told.state.index, told.entries), &changed);
        // What was read is what has the stamp.
        entries.filter(|_| files::of_index(&self.dirs, self.began) == Some(files.index))
    }

    fn settings(&self) -> Option<Hash> {
        let (place, files) = settings_files(self.root, &self.dirs, &self.path.with_extension(RULES))?;
        files::of_settings(place, &files, self.began)
    }

    /// The state from what was told and what the capture saw; `None`: git has to be asked.
    fn retold(&self, told: &Told, captured: &Captured) -> Option<FoundGit> {
        let is_known = |path: &Vec<u8>| told.unseen.iter().any(|known| known.0 == *path);
        if !captured.unsettled.is_empty() || !captured.doubts.is_empty() || !captured.unseen.iter().all(is_known) {
            return None;
        }
        let paths = |texts: &[PathText]| texts.iter().map(|path| path.0.clone()).collect::<Vec<_>>();
        let mut now = told.clone();
        // Where the index differs from HEAD, nothing in the tree can make it clean.
        let different = if told.is_staged { BTreeSet::new() } else { self.different(told, captured)? };
        let is_same = different.is_empty();
        if !is_same {
            self.weigh(&mut now, different)?;
            now.tree = captured.root;
            now.asked = self.began;
            now.unseen = captured.unseen.iter().cloned().map(PathText).collect();
            now.state.dirty = !now.changed.is_empty();
        }
        // Written only if it differs from what the file has.
        let is_news = !is_same || told.is_refreshed || self.index.is_some();
        let note = is_news.then(|| AnswerNote { path: self.path.clone(), told: now.clone() });
        now.state.operation = operation(&self.dirs.git_dir);
        let index = self.index.clone().map_or(GitText::Kept(now.state.index), GitText::Held);
        Some(FoundGit {
            index,
            changed: paths(&now.changed),
            is_staged: now.is_staged,
            rules_left_out: paths(&now.rules_left_out),
            // No answer is kept of a repository that has submodules or is unusual.
            has_submodules: false,
            is_unusual: false,
            since: None,
            ahead: None,
            state: now.state,
            note,
        })
    }

    /// What differs from the index now that these paths are `different`; git is not asked of them while something else differs for sure.
    /// `None`: it has to be asked of all.
    fn weigh(&self, now: &mut Told, different: BTreeSet<Vec<u8>>) -> Option<()> {
        let changed = mem::take(&mut now.changed);
        let (unsure, mut sure): (Vec<_>, Vec<_>) = changed.into_iter().partition(|path| is_at_any(&path.0, &different));
        let is_most = different.len() > MOST;
        let before = unsure.into_iter().chain(mem::take(&mut now.unasked)).map(|path| path.0);
        let mut open: BTreeSet<Vec<u8>> = different.into_iter().chain(before).collect();
        if sure.is_empty() {
            sure = self.of_other_length(&open)?.into_iter().map(PathText).collect();
            for path in &sure {
                open.remove(&path.0);
            }
        }
        let is_much = open.len() > 2 * MOST;
        if sure.is_empty() {
            if is_most || is_much || now.more {
                return None;
            }
            now.remember(self.changed_among(open)?);
        } else {
            now.remember(sure.into_iter().map(|path| path.0).collect());
            now.more |= is_much;
            now.unasked = if is_much { Vec::new() } else { open.into_iter().map(PathText).collect() };
        }
        Some(())
    }

    /// Those of these paths that git takes for changed without a look into them: files that are not as long as the index says. However
    /// lately they were touched, they differ. `None`: the index is not the one that git was asked of.
    fn of_other_length(&self, paths: &BTreeSet<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        let differ = index::of_other_length(&Git::new(self.root), paths);
        let is_same = files::of_repository(self.root, &self.dirs, self.began) == self.files;
        is_same.then_some(differ)
    }

    /// What may stand otherwise to the index than it was told; `None` where that may be anything.
    fn different(&self, told: &Told, captured: &Captured) -> Option<BTreeSet<Vec<u8>>> {
        let mut paths: BTreeSet<Vec<u8>> = captured.young.iter().cloned().collect();
        let compared = diff::diff(self.objects, Some(&told.tree), Some(&captured.root), &mut |difference| {
            let is_directory = |state: &Option<DiffState>| matches!(state, Some(DiffState::Directory { .. }));
            if !(is_directory(&difference.before) && is_directory(&difference.after)) {
                paths.insert(difference.path);
            }
            Ok(())
        });
        compared.ok()?;
        // These say how git compares other files.
        let decides = |path: &Vec<u8>| {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            name == b".gitattributes" || name == b".gitmodules"
        };
        (!paths.iter().any(decides)).then_some(paths)
    }

    /// Which of these paths, and of what lies below them, differ from the index. Of the root, that is what lies in it alone: a directory
    /// that was moved there and back was touched itself.
    fn changed_among(&self, paths: BTreeSet<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        let pattern = |path: Vec<u8>| {
            // Without this magic, git takes a `*` or a `[` in a name for a pattern.
            let whole = if path.is_empty() { b":(glob)*".to_vec() } else { [b":(literal)", &path[..]].concat() };
            path_from_bytes(&whole).into_os_string()
        };
        let said = status_of(&Git::new(self.root), paths.into_iter().map(pattern))?;
        // The answer is of the files that have these stamps only if none changed while git was asked.
        let is_same = files::of_repository(self.root, &self.dirs, self.began) == self.files;
        is_same.then_some(said)
    }

    /// What is to be kept of an answer of git's; `None` where it may change without a trace in what is looked at.
    fn note(&self, found: &FoundGit, captured: &Captured) -> Option<AnswerNote> {
        let GitText::Listed(text) = &found.index else { return None };
        let can_tell = captured.unsettled.is_empty()
            && captured.doubts.is_empty()
            && captured.unseen.len() <= MOST
            && !found.is_unusual
            && !found.has_submodules;
        if !can_tell || tracks_any(text, &captured.unseen) {
            return None;
        }
        // Git was asked between two looks that saw the same.
        let is_same = files::of_repository(self.root, &self.dirs, self.began) == self.files;
        let texts = |paths: &[Vec<u8>]| paths.iter().cloned().map(PathText).collect::<Vec<_>>();
        let mut told = Told {
            version: VERSION,
            files: self.files.filter(|_| is_same)?,
            is_refreshed: false,
            entries: None,
            settings: self.settings()?,
            // `ask_clean` relies on an earlier look of git's: what was touched since then has to count as young.
            asked: found.since.unwrap_or(self.began),
            tree: captured.root,
            unseen: texts(&captured.unseen),
            changed: Vec::new(),
            unasked: Vec::new(),
            more: false,
            is_staged: found.is_staged,
            rules_left_out: texts(&found.rules_left_out),
            state: found.state.clone(),
        };
        told.remember(found.changed.clone());
        Some(AnswerNote { path: self.path.clone(), told })
    }
}

impl Told {
    /// Remembers what differs from the index: enough to know that something does.
    fn remember(&mut self, changed: Vec<Vec<u8>>) {
        self.more |= changed.len() > MOST;
        self.changed = changed.into_iter().take(MOST).map(PathText).collect();
    }
}

impl AnswerNote {
    /// Holds what a look was told for the next capture. `index`: its text.
    pub(super) fn hold(self, state: &GitState, index: Vec<u8>) {
        let Self { path, told } = self.about(state);
        if let Ok(told) = serde_json::to_vec(&told) {
            HeldAnswer { path, told, index }.hold();
        }
    }

    fn about(mut self, state: &GitState) -> Self {
        // Packs are kept for a checkpoint, and the operation is looked for each time: neither is part of what git told.
        self.told.state = GitState { packs: Vec::new(), purged: false, operation: None, ..state.clone() };
        self
    }

    /// Replaces the file whole, so that no process reads half of it. Where that fails, git is asked again.
    pub(super) fn write(self, state: &GitState) {
        self.about(state).replace();
    }

    fn replace(&self) {
        let Some((text, directory)) = serde_json::to_vec(&self.told).ok().zip(self.path.parent()) else {
            return;
        };
        let Ok(mut file) = tempfile::NamedTempFile::new_in(directory) else { return };
        if io::Write::write_all(&mut file, &text).is_ok() {
            let _ = file.persist(&self.path);
        }
    }
}

/// Whether a path is one of these, or lies below one. Of the root, that is what lies in it alone.
fn is_at_any(path: &[u8], paths: &BTreeSet<Vec<u8>>) -> bool {
    let parents = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &path[..end]);
    let is_in_root = !path.contains(&b'/') && paths.contains(&b""[..]);
    is_in_root || parents.chain([path]).any(|at| paths.contains(at))
}

/// Whether an index holds one of these paths, what lies below it, or the database that it belongs to.
fn tracks_any(index: &[u8], paths: &[Vec<u8>]) -> bool {
    if paths.is_empty() {
        return false;
    }
    let databases =
        paths.iter().flat_map(|path| DATABASE_SIDE_SUFFIXES.iter().filter_map(|end| path.strip_suffix(*end)));
    let paths: Vec<&[u8]> = paths.iter().map(Vec::as_slice).chain(databases).collect();
    let is_any = |tracked: &[u8]| {
        let is_at =
            |path: &&[u8]| tracked.strip_prefix(*path).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
        paths.iter().any(is_at)
    };
    index::parse(index).0.iter().any(|line| is_any(line.path))
}
