//! Git's state: asked for, then kept. Nothing is written to the repository.

mod status;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ic_base::{Code, Diagnosis, Result};
use ic_ledger::events::Hash;
use ic_ledger::{GitDirs, path_from_bytes};

use self::status::GitStatusOutput;
use super::answer_cache::AnswerNote;
use super::pack::{KeptObjects, PackBase};
use super::program::Git;
use super::state::{BRANCHES, GitState, Index, Stash};
use super::{ic_refs, index, pack};
use crate::manifest::PathText;
use crate::objects::{Writer, hash_of};

/// What git says of a work tree.
#[derive(Debug)]
pub enum AskedGit {
    /// The root is not the top of a work tree.
    NotARepository,
    /// There is no `git` program.
    NoGit,
    /// The state of the repository, read at one moment.
    State(Box<FoundGit>),
}

/// Git's state, of which nothing is kept yet.
#[derive(Debug)]
pub struct FoundGit {
    /// All but where its index and packs are kept.
    pub(super) state: GitState,
    pub(super) index: GitText,
    /// Tracked paths that differ from the index.
    pub(super) changed: Vec<Vec<u8>>,
    /// The index differs from HEAD.
    pub(super) is_staged: bool,
    /// Files with ignore rules that are in the index and that a sparse checkout leaves out.
    pub(super) rules_left_out: Vec<Vec<u8>>,
    pub(super) has_submodules: bool,
    pub(super) is_unusual: bool,
    /// A moment before git looked at the files, where that was before it was asked.
    pub(super) since: Option<i64>,
    /// What git may lose and is kept already.
    pub(super) ahead: Option<KeptObjects>,
    /// What the next look need not ask.
    pub(super) note: Option<AnswerNote>,
}

/// The entries of an index.
#[derive(Debug)]
pub(super) enum GitText {
    /// As git lists them.
    Listed(Vec<u8>),
    /// As they were listed for a look; the store lacks them.
    Held(Vec<u8>),
    /// The store has them.
    Kept(Index),
}

/// A work tree that git called clean after it looked at every file.
#[derive(Debug, Clone)]
pub struct Clean {
    /// Git's state in a checkpoint of the tree, where it was clean: HEAD and the index are that again.
    pub state: GitState,
    /// The tree of that checkpoint.
    pub tree: Hash,
    /// A moment before git looked now, as [`super::moment_of`].
    pub since: i64,
}

/// Asks for the state of git in the work tree whose top is `root`. Nothing is written. Errors: `git_failed`.
pub fn ask(root: &Path) -> Result<AskedGit> {
    // Another git command that still changes things after this many tries is reported, not waited for.
    const ATTEMPTS: usize = 3;
    let Some(dirs) = ic_ledger::git_dirs(root) else { return Ok(AskedGit::NotARepository) };
    let git = Git::new(root);
    // A capture is the next thing that happens to a tree whose restore was killed.
    index::clear_left_behind(&dirs.git_dir);
    for _ in 0..ATTEMPTS {
        let before = index_stamp(&dirs.git_dir);
        let Some(texts) = texts(&git, &ic_refs::patterns_of_others(&dirs))? else {
            return Ok(AskedGit::NoGit);
        };
        let status = GitStatusOutput::parse(&texts.status);
        let refs = parse_refs(&texts.refs);
        let name = head_name(&git, status.branch);
        let at = name.as_ref().and_then(|name| refs.get(&name[..]));
        // What was asked apart may be of different moments.
        let is_of_one_moment =
            (name.is_none() || at.map(|at| at.oid) == status.head) && before == index_stamp(&dirs.git_dir);
        if is_of_one_moment {
            let found = found(&git, &dirs, &status, (name.as_deref(), &refs), texts.index)?;
            return Ok(AskedGit::State(Box::new(found)));
        }
    }
    Err(Diagnosis::new(Code::GitFailed, "Git's state changed while it was recorded.")
        .hint("try again when the other git command has ended"))
}

/// As [`ask`], and git does not look at the files once more: whether they differ follows from `clean`, if the tree is captured as it was
/// then. `None` where HEAD or the index is another by now, or that does not decide it.
pub fn ask_clean(root: &Path, clean: &Clean) -> Option<AskedGit> {
    let dirs = ic_ledger::git_dirs(root)?;
    let git = Git::new(root);
    let before = index_stamp(&dirs.git_dir);
    let patterns = ic_refs::patterns_of_others(&dirs);
    let list = refs_list(&patterns);
    let (name, refs, index) = std::thread::scope(|scope| {
        let name = scope.spawn(|| git.run(&["symbolic-ref", "--quiet", "HEAD"]));
        let refs = scope.spawn(|| git.run(&list));
        let index = index::listing(&git);
        (name.join(), refs.join(), index)
    });
    let (name, refs, index) = (name.ok()?.ok()?, refs.ok()?.ok()?, index.ok()?);
    let (name, refs) = (name.strip_suffix(b"\n").unwrap_or(&name), parse_refs(&refs));
    let head = refs.get(name)?.oid;
    // An empty status: `clean` knew of no difference, and whether HEAD and index still agree with it is decided below.
    let status = GitStatusOutput { head: Some(head), ..GitStatusOutput::default() };
    let mut found = found(&git, &dirs, &status, (Some(name), &refs), index).ok()?;
    found.since = Some(clean.since);
    let has_index = matches!(&found.index, GitText::Listed(text) if hash_of(text) == clean.state.index.0);
    let is_so = has_index
        && clean.state.head.as_deref() == Some(head)
        // The HEAD of a submodule may move without a trace in the index or in the captured tree.
        && !found.has_submodules
        && before == index_stamp(&dirs.git_dir);
    is_so.then(|| AskedGit::State(Box::new(found)))
}

/// What is found where git said so.
fn found(
    git: &Git<'_>,
    dirs: &GitDirs,
    status: &GitStatusOutput<'_>,
    (name, refs): (Option<&[u8]>, &BTreeMap<&[u8], RefAt<'_>>),
    index: Vec<u8>,
) -> Result<FoundGit> {
    let state = state(git, &dirs.git_dir, status, name, refs)?;
    let intended = if status.may_have_intended { index::intended(git)? } else { Vec::new() };
    let index = index::text(index, &intended);
    let is_unusual = git.is_unusual()? || refs_elsewhere(git, &dirs.common_dir)?;
    let (lines, _) = index::parse(&index);
    Ok(FoundGit {
        changed: status.changed.iter().map(|path| path.to_vec()).collect(),
        is_staged: status.is_staged,
        rules_left_out: rules_left_out(&lines),
        has_submodules: lines.iter().any(index::IndexLine::is_submodule),
        is_unusual,
        state,
        index: GitText::Listed(index),
        since: None,
        ahead: None,
        note: None,
    })
}

impl FoundGit {
    /// Files with ignore rules that are in the index and, by a sparse checkout, not in the work tree: git reads those of the index.
    pub fn rules_left_out(&self, root: &Path) -> Vec<Vec<u8>> {
        let is_left_out = |path: &&Vec<u8>| !root.join(path_from_bytes(path)).exists();
        self.rules_left_out.iter().filter(is_left_out).cloned().collect()
    }

    /// The same, and what [`GitLook::keep_ahead`](super::GitLook::keep_ahead) kept need not be kept once more.
    #[must_use]
    pub fn with(self, ahead: Option<KeptObjects>) -> Self {
        Self { ahead, ..self }
    }

    /// Whether it is what git told before.
    #[cfg(test)]
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.index, GitText::Listed(_))
    }

    /// Keeps the state with `writer`, and what git may lose of it, unless it `is_a_look`: nothing goes back to that. `before` is what
    /// was recorded before. `left_out`: whether content that was purged is in git again, and was not kept. Errors: `git_failed`.
    pub fn keep(
        self,
        root: &Path,
        before: PackBase<'_>,
        writer: &Writer<'_>,
        is_a_look: bool,
        left_out: &mut bool,
    ) -> Result<GitState> {
        let git = Git::new(root);
        let mut state = self.state;
        // The text is cloned, because the store takes it, and the next capture of this process may want it.
        let held = match &self.index {
            GitText::Listed(text) | GitText::Held(text) if is_a_look && self.note.is_some() => Some(text.clone()),
            _ => None,
        };
        state.index = match self.index {
            GitText::Listed(text) | GitText::Held(text) => index::keep(writer, text)?,
            GitText::Kept(index) => index,
        };
        let previous = before.newest;
        // Packs add up: each state names those of the state before it, so a restore needs no other checkpoint.
        state.packs = previous.map(|previous| previous.packs.clone()).unwrap_or_default();
        state.purged = previous.is_some_and(|previous| previous.purged);
        if !is_a_look {
            // Git that was asked for all may have said something else than what was told.
            let packs = match self.ahead.filter(|ahead| ahead.of.may_lose_the_same(&state)) {
                Some(ahead) => {
                    *left_out = ahead.left_out;
                    ahead.packs
                }
                None => pack::keep(&git, before, &state, writer, left_out)?,
            };
            state.packs.extend(packs);
            state.purged |= *left_out;
            if let Some(note) = self.note {
                note.write(&state);
            }
        } else if let Some((note, index)) = self.note.zip(held) {
            note.hold(&state, index);
        }
        Ok(state)
    }
}

/// Files with ignore rules that a sparse checkout may leave out.
fn rules_left_out(lines: &[index::IndexLine<'_>]) -> Vec<Vec<u8>> {
    let is_one = |line: &&index::IndexLine<'_>| {
        line.is_skipped() && line.path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore")
    };
    lines.iter().filter(is_one).map(|line| line.path.to_vec()).collect()
}

/// Whether refs are kept in another way than in files or in tables.
fn refs_elsewhere(git: &Git<'_>, common_dir: &Path) -> Result<bool> {
    Ok(git.names_ref_storage()? && !common_dir.join("reftable/tables.list").exists())
}

/// Which of the paths that these patterns name differ from the index, while the index does not differ from HEAD; `None` if git
/// cannot say so.
pub(super) fn status_of(git: &Git<'_>, patterns: impl Iterator<Item = OsString>) -> Option<Vec<Vec<u8>>> {
    let words = STATUS.into_iter().chain(["--"]).map(OsString::from);
    let arguments: Vec<OsString> = words.chain(patterns).collect();
    let said = git.run(&arguments).ok()?;
    let status = GitStatusOutput::parse(&said);
    (!status.is_staged).then(|| status.changed.iter().map(|path| path.to_vec()).collect())
}

/// The whole name of the ref that HEAD is on; `None` when it is detached.
///
/// What `git status` calls it may be the name of a branch, or a word for another state: then git is asked once more.
fn head_name(git: &Git<'_>, said: Option<&[u8]>) -> Option<Vec<u8>> {
    let said = said?;
    if !said.starts_with(b"(") && !said.starts_with(b"refs/") {
        return Some([BRANCHES, said].concat());
    }
    // It ends with 1 where HEAD is detached.
    let name = git.run(&["symbolic-ref", "--quiet", "HEAD"]).ok()?;
    Some(name.strip_suffix(b"\n").unwrap_or(&name).to_vec())
}

/// What git says of itself.
struct Texts {
    status: Vec<u8>,
    refs: Vec<u8>,
    index: Vec<u8>,
}

/// How far a branch is ahead of another, and what is in submodules, costs time and is not recorded.
const STATUS: [&str; 8] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--untracked-files=no",
    "--no-renames",
    "--ignore-submodules=dirty",
];

/// `None` if there is no `git`.
fn texts(git: &Git<'_>, refs: &[String]) -> Result<Option<Texts>> {
    // None of these needs the answer of another: together they take as long as the slowest.
    let (status, refs, index) = std::thread::scope(|scope| {
        let status = scope.spawn(|| git.ask(&STATUS));
        let list = refs_list(refs);
        let refs = scope.spawn(move || git.ask(&list));
        let index = index::list(git);
        (status.join(), refs.join(), index)
    });
    let (Ok(status), Ok(refs)) = (status, refs) else {
        return Err(Diagnosis::new(Code::Internal, "A thread that asked git ended early."));
    };
    let (Some(status), Some(refs), Some(index)) = (status?, refs?, index?) else { return Ok(None) };
    Ok(Some(Texts { status, refs, index }))
}

fn refs_list(patterns: &[String]) -> Vec<&str> {
    let list = ["for-each-ref", "--format=%(objectname) %(refname) %(symref)"].into_iter();
    list.chain(patterns.iter().map(String::as_str)).collect()
}

/// Changes when the index does: git replaces the file.
fn index_stamp(git_dir: &Path) -> Option<(u64, u64, i64, i64)> {
    let meta = std::fs::metadata(git_dir.join("index")).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

fn state(
    git: &Git<'_>,
    git_dir: &Path,
    status: &GitStatusOutput<'_>,
    head_name: Option<&[u8]>,
    refs: &BTreeMap<&[u8], RefAt<'_>>,
) -> Result<GitState> {
    let stash = if refs.contains_key(&b"refs/stash"[..]) { stash(git)? } else { Vec::new() };
    // A symbolic branch has the object of another ref. It is recorded by what it stands for, so that it does not move
    // that one.
    let is_symbolic = |name: &[u8], at: &RefAt<'_>| at.symbolic.is_some() && name.starts_with(b"refs/heads/");
    // The stash is recorded by its entries, and refs/ic/ belongs to ic, not to the user.
    let is_kept = |name: &[u8]| !name.starts_with(b"refs/ic/") && name != b"refs/stash";
    let path = |name: &[u8]| PathText(name.to_vec());
    let branch = head_name.and_then(|name| name.strip_prefix(BRANCHES));
    Ok(GitState {
        branch: branch.map(path),
        // Refs that no checkpoint keeps are none that HEAD can be put on again.
        head_ref: head_name.filter(|name| branch.is_none() && is_kept(name)).map(path),
        head: status.head.map(str::to_owned),
        dirty: status.dirty,
        stash,
        operation: operation(git_dir),
        refs: refs
            .iter()
            .filter(|(name, at)| is_kept(name) && !is_symbolic(name, at))
            .map(|(name, at)| (path(name), at.oid.to_owned()))
            .collect(),
        symbolic: refs
            .iter()
            .filter(|(name, at)| is_symbolic(name, at))
            .filter_map(|(name, at)| Some((path(name), path(at.symbolic?))))
            .collect(),
        staged: status.staged.iter().map(|oid| (*oid).to_owned()).collect(),
        index: Index(Hash::default()),
        packs: Vec::new(),
        purged: false,
    })
}

/// Where a ref is.
pub(super) struct RefAt<'t> {
    pub(super) oid: &'t str,
    /// What it stands for.
    pub(super) symbolic: Option<&'t [u8]>,
}

/// `OID NAME SYMBOLIC`; no name has a space in it.
fn parse_refs(text: &[u8]) -> BTreeMap<&[u8], RefAt<'_>> {
    text.split(|b| *b == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|b| *b == b' ');
            let (oid, name) = (std::str::from_utf8(fields.next()?).ok()?, fields.next()?);
            Some((name, RefAt { oid, symbolic: fields.next().filter(|name| !name.is_empty()) }))
        })
        .collect()
}

/// The stash, newest entry first.
pub(super) fn stash(git: &Git<'_>) -> Result<Vec<Stash>> {
    // Without `--`, git calls the name ambiguous where a file has it, too.
    let text = git.run(&["log", "-g", "-z", "--encoding=UTF-8", "--format=%H %gs", "refs/stash", "--"])?;
    let entry = |line: &[u8]| {
        let space = line.iter().position(|b| *b == b' ')?;
        let commit = std::str::from_utf8(&line[..space]).ok()?;
        Some(Stash { commit: commit.to_owned(), message: PathText(line[space + 1..].to_vec()) })
    };
    Ok(text.split(|b| *b == 0).filter_map(entry).collect())
}

/// The operation that is in progress, by the files that git keeps for it.
pub(super) fn operation(git_dir: &Path) -> Option<String> {
    // The order matters: `git am` keeps its notes in rebase-apply, as one kind of rebase does.
    let signs = [
        ("rebase-merge", "rebase"),
        ("rebase-apply/applying", "am"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    signs.iter().find(|(file, _)| git_dir.join(file).exists()).map(|(_, name)| (*name).to_owned())
}
