//! Recording git's state. Nothing is written to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};

use super::program::{Git, failed};
use super::{GitState, Pack, Stash, index};
use crate::manifest::PathText;
use crate::objects::Writer;

/// What was found out about git.
#[derive(Debug)]
pub enum Recorded {
    /// The root is not the top of a work tree.
    NotARepository,
    /// There is no `git` program.
    NoGit,
    /// Its state.
    State(Box<GitState>),
}

/// Records the state of git in the work tree whose top is `root`; `previous` is what was recorded before, if anything.
///
/// Content that git may lose is kept with `writer`. Errors: `git_failed`.
pub fn record(root: &Path, previous: Option<&GitState>, writer: &Writer<'_>) -> Result<Recorded> {
    let Some(dirs) = ic_store::git_dirs(root) else { return Ok(Recorded::NotARepository) };
    let git = Git::new(root);
    let (status, refs, index) = std::thread::scope(|scope| {
        let status = scope.spawn(|| {
            git.ask(&["status", "--porcelain=v2", "-z", "--branch", "--untracked-files=no", "--no-renames"])
        });
        let refs = scope.spawn(|| git.ask(&["for-each-ref", "--format=%(objectname) %(refname)"]));
        let index = git.ask(&index::LIST);
        (status.join(), refs.join(), index)
    });
    let (Ok(status), Ok(refs)) = (status, refs) else {
        return Err(Diagnosis::new(Code::Internal, "A thread that asked git ended early."));
    };
    let (Some(status), Some(refs), Some(index)) = (status?, refs?, index?) else {
        return Ok(Recorded::NoGit);
    };
    let status = Status::parse(&status);
    let refs = parse_refs(&refs);
    let stash = if refs.contains_key(&b"refs/stash"[..]) { stash(&git)? } else { Vec::new() };
    let kept = |name: &[u8]| !name.starts_with(b"refs/ic/") && name != b"refs/stash";
    let mut state = GitState {
        branch: status.branch.map(|name| PathText(name.to_vec())),
        head: status.head.map(str::to_owned),
        dirty: status.dirty,
        stash,
        operation: operation(&dirs.git_dir),
        refs: refs
            .iter()
            .filter(|(name, _)| kept(name))
            .map(|(name, commit)| (PathText(name.to_vec()), (*commit).to_owned()))
            .collect(),
        index: index::keep(writer, index::text(index, &status.intended))?,
        packs: previous.map(|previous| previous.packs.clone()).unwrap_or_default(),
    };
    state.packs.extend(keep_what_may_go(&git, previous, &state, &status.staged, writer)?);
    Ok(Recorded::State(Box::new(state)))
}

/// What `git status --porcelain=v2 -z --branch` says.
#[derive(Default)]
struct Status<'s> {
    branch: Option<&'s [u8]>,
    head: Option<&'s str>,
    dirty: bool,
    /// Content in the index that HEAD does not have.
    staged: BTreeSet<&'s str>,
    /// Paths that are only intended to be added.
    intended: Vec<&'s [u8]>,
}

impl<'s> Status<'s> {
    fn parse(text: &'s [u8]) -> Self {
        let mut status = Self::default();
        for line in text.split(|b| *b == 0).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix(b"# branch.head ") {
                status.branch = (name != b"(detached)").then_some(name);
            } else if let Some(oid) = line.strip_prefix(b"# branch.oid ") {
                status.head = std::str::from_utf8(oid).ok().filter(|oid| *oid != "(initial)");
            } else if matches!(line[0], b'1' | b'u') {
                status.dirty = true;
                status.entry(line);
            }
        }
        status
    }

    /// `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
    fn entry(&mut self, line: &'s [u8]) {
        let is_unmerged = line[0] == b'u';
        let fields: Vec<&[u8]> = line.splitn(if is_unmerged { 11 } else { 9 }, |b| *b == b' ').collect();
        let (Some(state), Some(path)) = (fields.get(1), fields.last()) else { return };
        let oids = if is_unmerged { fields.get(7..10) } else { fields.get(7..8) };
        let is_nothing = |oid: &&str| oid.bytes().all(|b| b == b'0');
        if *state == b".A" {
            self.intended.push(path);
        } else if is_unmerged || state[0] != b'.' {
            let oids = oids.unwrap_or_default().iter().filter_map(|oid| std::str::from_utf8(oid).ok());
            self.staged.extend(oids.filter(|oid| !is_nothing(oid)));
        }
    }
}

fn parse_refs(text: &[u8]) -> BTreeMap<&[u8], &str> {
    text.split(|b| *b == b'\n')
        .filter_map(|line| {
            let space = line.iter().position(|b| *b == b' ')?;
            Some((&line[space + 1..], std::str::from_utf8(&line[..space]).ok()?))
        })
        .collect()
}

fn stash(git: &Git<'_>) -> Result<Vec<Stash>> {
    let text = git.run(&["log", "-g", "-z", "--format=%H %gs", "refs/stash", "--"])?;
    let entry = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let (commit, message) = line.split_once(' ')?;
        Some(Stash { commit: commit.to_owned(), message: message.to_owned() })
    };
    Ok(text.split(|b| *b == 0).filter_map(entry).collect())
}

/// The operation that is in progress, by the files that git keeps for it.
fn operation(git_dir: &Path) -> Option<String> {
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

/// Keeps a pack of what git may lose and no earlier pack has: what no ref reaches, and what was committed since.
fn keep_what_may_go(
    git: &Git<'_>,
    previous: Option<&GitState>,
    state: &GitState,
    staged: &BTreeSet<&str>,
    writer: &Writer<'_>,
) -> Result<Option<Pack>> {
    let mut wanted: BTreeSet<&str> = staged.clone();
    let known: BTreeSet<&str> = match previous {
        // History is taken to last from before the first checkpoint on; only what no ref reaches is in danger.
        None => {
            wanted.extend(state.stash.iter().map(|stash| stash.commit.as_str()));
            if state.branch.is_none() {
                wanted.extend(state.head.as_deref());
            }
            state.refs.iter().map(|(_, commit)| commit.as_str()).collect()
        }
        Some(previous) => {
            wanted.extend(state.tips());
            previous.tips().collect()
        }
    };
    wanted.retain(|oid| !known.contains(oid));
    let already_staged = previous.is_some_and(|previous| previous.index == state.index);
    let is_nothing_new = wanted.iter().all(|oid| already_staged && staged.contains(oid));
    if wanted.is_empty() || is_nothing_new {
        return Ok(None);
    }
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let known: Vec<&str> = known.into_iter().collect();
    pack(git, &wanted, &existing(git, &known)?, writer)
}

/// Those of these objects that the repository has.
pub(crate) fn existing<'o>(git: &Git<'_>, oids: &[&'o str]) -> Result<Vec<&'o str>> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
    let output = git.run_with(&["cat-file", "--batch-check=%(objecttype)"], input.as_bytes())?;
    let is_there = output.split(|b| *b == b'\n').map(|line| !line.ends_with(b" missing"));
    Ok(oids.iter().zip(is_there).filter_map(|(oid, there)| there.then_some(*oid)).collect())
}

fn pack(git: &Git<'_>, wanted: &[&str], known: &[&str], writer: &Writer<'_>) -> Result<Option<Pack>> {
    let arguments = ["pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"];
    let doing = || "packing what git may lose".to_owned();
    let mut child = git.start(&arguments)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let lines: String = wanted
        .iter()
        .map(|oid| format!("{oid}\n"))
        .chain(known.iter().map(|oid| format!("^{oid}\n")))
        .collect();
    let (kept, error) = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that reads no more of it says why by its status.
            let _ = stdin.map(|mut stdin| stdin.write_all(lines.as_bytes()));
        });
        let error = scope.spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            text
        });
        let kept = stdout.map(|mut stdout| writer.put_reader(&mut stdout));
        (kept, error.join().unwrap_or_default())
    });
    if !child.wait().while_doing(doing)?.success() {
        return Err(failed(&arguments, &error));
    }
    // The header, and a checksum as long as the repository's hashes.
    let empty = 12 + wanted.first().map_or(0, |oid| oid.len() as u64 / 2);
    match kept {
        Some(kept) => {
            let (hash, size) = kept?;
            Ok((size > empty).then_some(Pack(hash)))
        }
        None => Ok(None),
    }
}
