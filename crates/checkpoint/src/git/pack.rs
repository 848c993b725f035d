//! Objects that git may lose, as packs of git's own in our store; and back.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use ic_base::{Code, Diagnose, Diagnosis, Result};
use ic_ledger::{path_bytes, private};

use super::error::GitError;
use super::program::Git;
use super::purged_objects;
use super::state::{GitPack, GitState};
use crate::objects::{Objects, Writer};
use crate::scratch::Scratch;

/// How many commits before the first checkpoint are kept, so that amending one of them loses nothing.
const EARLIER_COMMITS: usize = 50;

/// The most bytes of them that are kept. A larger history is not kept: it is assumed to stay.
const EARLIER_BYTES: u64 = 32 << 20;

/// What was recorded before a state.
#[derive(Debug, Clone, Copy, Default)]
pub struct PackBase<'s> {
    /// The newest state, if there is any.
    pub newest: Option<&'s GitState>,
    /// Another one, to which the tree went back: what it names was kept when it was recorded.
    pub other: Option<&'s GitState>,
}

impl<'s> PackBase<'s> {
    /// The commits that the packs of the newest state have: its own, and those of the other one if it has all packs of that one.
    fn tips(self) -> impl Iterator<Item = &'s str> {
        let has = |pack: &GitPack| self.newest.is_some_and(|newest| newest.packs.contains(pack));
        let other = self.other.filter(|other| !other.purged && other.packs.iter().all(has));
        self.newest.into_iter().chain(other).flat_map(GitState::tips)
    }
}

/// Packs that were kept of a state.
#[derive(Debug)]
pub struct KeptObjects {
    /// What of it git may lose.
    pub(super) of: GitState,
    pub(super) packs: Vec<GitPack>,
    /// Something of it was purged, and so is not kept.
    pub(super) left_out: bool,
}

/// Whether [`keep`] has anything to keep.
pub(super) fn is_any_new(before: PackBase<'_>, state: &GitState) -> bool {
    before.newest.is_none_or(|previous| !since(before, previous, state).1.is_empty())
}

/// What earlier packs have of a state, or others can give again; and what they have not.
fn since<'s>(before: PackBase<'s>, previous: &'s GitState, state: &'s GitState) -> (BTreeSet<&'s str>, Vec<&'s str>) {
    // What is on a remote's branch can be had from there again.
    let known: BTreeSet<&str> =
        before.tips().chain(previous.staged.iter().map(String::as_str)).chain(remote_tips(state)).collect();
    let staged = state.staged.iter().map(String::as_str);
    let wanted: BTreeSet<&str> = state.own_tips().chain(staged).filter(|oid| !known.contains(oid)).collect();
    (known, wanted.into_iter().collect())
}

/// Keeps packs of what git may lose and no earlier pack has: what no ref reaches, and what was committed since. `left_out` says whether
/// something of it was purged, and so is not kept.
pub(super) fn keep(
    git: &Git<'_>,
    before: PackBase<'_>,
    state: &GitState,
    writer: &Writer<'_>,
    left_out: &mut bool,
) -> Result<Vec<GitPack>> {
    let Some(previous) = before.newest else { return keep_first(git, state, writer, left_out) };
    let (known, wanted) = since(before, previous, state);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let known: Vec<&str> = known.into_iter().collect();
    // Git makes no pack if it lacks a commit that bounds the pack, so only commits that it has are given.
    let there = existing(git, &known)?;
    let found: BTreeSet<&str> = there.iter().copied().collect();
    if !previous.own_tips().all(|tip| found.contains(tip)) {
        // Without the commits that bound it, history would be kept from its beginning.
        return keep_first(git, state, writer, left_out);
    }
    Ok(pack(git, &wanted, &there, None, writer, left_out)?.into_iter().collect())
}

fn remote_tips(state: &GitState) -> impl Iterator<Item = &str> {
    let remotes = state.refs.iter().filter(|(name, _)| name.0.starts_with(b"refs/remotes/"));
    remotes.map(|(_, commit)| commit.as_str())
}

/// Where no earlier checkpoint bounds it: all that no ref reaches, and of the branches the last commits.
fn keep_first(git: &Git<'_>, state: &GitState, writer: &Writer<'_>, left_out: &mut bool) -> Result<Vec<GitPack>> {
    let refs: BTreeSet<&str> = state.refs.iter().map(|(_, commit)| commit.as_str()).collect();
    let stash = state.stash.iter().map(|stash| stash.commit.as_str());
    let loose: BTreeSet<&str> = state
        .head
        .as_deref()
        .into_iter()
        .chain(stash)
        .chain(state.staged.iter().map(String::as_str))
        .filter(|oid| !refs.contains(oid))
        .collect();
    let mut packs = Vec::new();
    if !loose.is_empty() {
        let refs: Vec<&str> = refs.into_iter().collect();
        let loose: Vec<&str> = loose.into_iter().collect();
        packs.extend(pack(git, &loose, &existing(git, &refs)?, None, writer, left_out)?);
    }
    // Earlier commits are kept as an extra: if git fails here, the checkpoint is made without them.
    packs.extend(keep_earlier(git, state, writer, left_out).unwrap_or_default());
    Ok(packs)
}

fn keep_earlier(git: &Git<'_>, state: &GitState, writer: &Writer<'_>, left_out: &mut bool) -> Result<Option<GitPack>> {
    // A tag bounds nothing: a restore may take it away, and with it the last name of what it keeps.
    let others: BTreeSet<&str> = remote_tips(state).collect();
    let branches: BTreeSet<&str> =
        state.branches().map(|(_, commit)| commit).filter(|commit| !others.contains(commit)).collect();
    if branches.is_empty() {
        return Ok(None);
    }
    let max = format!("--max-count={EARLIER_COMMITS}");
    let list = ["rev-list", "--ignore-missing", "--boundary", &max, "--stdin"];
    let range = lines(branches.iter().copied(), others.iter().copied());
    let listed = String::from_utf8_lossy(&git.run_with(&list, range.as_bytes())?).into_owned();
    let (bounds, commits): (Vec<&str>, Vec<&str>) = listed.lines().partition(|line| line.starts_with('-'));
    let commits: BTreeSet<&str> = commits.into_iter().collect();
    // A branch whose last commit is older than all these bounds the others.
    let (wanted, older): (Vec<&str>, Vec<&str>) = branches.into_iter().partition(|branch| commits.contains(branch));
    let bounds = bounds.into_iter().map(|line| &line[1..]);
    let known: Vec<&str> = bounds.chain(others).chain(older).collect();
    pack(git, &wanted, &existing(git, &known)?, Some(EARLIER_BYTES), writer, left_out)
}

/// Those of these objects that the repository has.
pub(super) fn existing<'o>(git: &Git<'_>, oids: &[&'o str]) -> Result<Vec<&'o str>> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let input = lines(oids.iter().copied(), []);
    let output = git.run_with(&["cat-file", "--batch-check=%(objecttype)"], input.as_bytes())?;
    // One line for each question, in the same order.
    let is_there = output.split(|b| *b == b'\n').map(|line| !line.ends_with(b" missing"));
    Ok(oids.iter().zip(is_there).filter_map(|(oid, there)| there.then_some(*oid)).collect())
}

fn lines<'o>(wanted: impl IntoIterator<Item = &'o str>, known: impl IntoIterator<Item = &'o str>) -> String {
    let wanted = wanted.into_iter().map(|oid| format!("{oid}\n"));
    wanted.chain(known.into_iter().map(|oid| format!("^{oid}\n"))).collect()
}

/// The store compresses, and does it faster and smaller; what git has as deltas stays so.
const PACK: [&str; 7] = ["-c", "pack.compression=0", "pack-objects", "--revs", "--stdout", "-q", "--window=0"];

/// As [`PACK`], of the objects that are listed and no others.
const LISTED: [&str; 6] = ["-c", "pack.compression=0", "pack-objects", "--stdout", "-q", "--window=0"];

/// Keeps what `wanted` reaches and `known` does not; `None` if that is nothing, or more than `max_bytes`. What was purged is left out,
/// though git has it again: then `left_out` says so.
fn pack(
    git: &Git<'_>,
    wanted: &[&str],
    known: &[&str],
    max_bytes: Option<u64>,
    writer: &Writer<'_>,
    left_out: &mut bool,
) -> Result<Option<GitPack>> {
    let range = lines(wanted.iter().copied(), known.iter().copied());
    if let Some(rest) = without_purged(git, &range, writer)? {
        *left_out = true;
        let oids: Vec<&str> = rest.iter().map(String::as_str).collect();
        return if oids.is_empty() { Ok(None) } else { packed(git, &LISTED, &lines(oids, []), max_bytes, writer) };
    }
    packed(git, &PACK, &range, max_bytes, writer)
}

/// The objects of a range but those that were purged; `None` if none of them was.
fn without_purged(git: &Git<'_>, range: &str, writer: &Writer<'_>) -> Result<Option<Vec<String>>> {
    let objects = writer.objects();
    if !purged_objects::is_any(objects)? {
        return Ok(None);
    }
    let listed = git.run_with(&["rev-list", "--objects", "--stdin"], range.as_bytes())?;
    let (mut rest, mut is_any) = (Vec::new(), false);
    for oid in String::from_utf8_lossy(&listed).lines().filter_map(|line| line.split(' ').next()) {
        if purged_objects::is_purged(objects, oid)? {
            is_any = true;
        } else {
            rest.push(oid.to_owned());
        }
    }
    Ok(is_any.then_some(rest))
}

/// What `command` packs of the objects that `input` names.
fn packed(
    git: &Git<'_>,
    command: &[&str],
    input: &str,
    max_bytes: Option<u64>,
    writer: &Writer<'_>,
) -> Result<Option<GitPack>> {
    // A hash is written as twice as many digits.
    let hash_bytes = input.trim_start_matches('^').lines().next().map_or(0, |oid| oid.len() as u64 / 2);
    let input = input.to_owned();
    let give = move |mut stdin: std::process::ChildStdin| {
        // A command that reads no more of it says why by its status.
        let _ = stdin.write_all(input.as_bytes());
    };
    let mut is_over = false;
    let kept = git.converse(command, give, |stdout| {
        let mut output = Bounded { inner: stdout, left: max_bytes.unwrap_or(u64::MAX), is_over: &mut is_over };
        writer.put_reader(&mut output)
    });
    // Before the error: what a stream that was cut off makes git say is no failure.
    if is_over {
        return Ok(None);
    }
    let (hash, size) = kept?;
    // The header, and a checksum as long as the repository's hashes.
    let empty = 12 + hash_bytes;
    Ok((size > empty).then_some(GitPack(hash)))
}

/// A pack of these objects and no others; `None` if there are none. Deltas against others are resolved.
pub(super) fn of_objects(git: &Git<'_>, oids: &[&str], writer: &Writer<'_>) -> Result<Option<GitPack>> {
    if oids.is_empty() {
        return Ok(None);
    }
    packed(git, &LISTED, &lines(oids.iter().copied(), []), None, writer)
}

/// A stream that fails when it gives more than it may.
struct Bounded<'b, R> {
    inner: R,
    left: u64,
    is_over: &'b mut bool,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(read as u64) else {
            *self.is_over = true;
            return Err(io::Error::other("more than is kept"));
        };
        self.left = left;
        Ok(read)
    }
}

/// Whether git has `target` whole: every branch, stash entry and staged file, and all that they need.
pub(super) fn is_whole(git: &Git<'_>, target: &GitState) -> Result<bool> {
    let needed: BTreeSet<&str> = target.own_tips().chain(target.staged.iter().map(String::as_str)).collect();
    if needed.is_empty() {
        return Ok(true);
    }
    let input = lines(needed, []);
    // As `git fetch` does: what a ref reaches is taken to be whole, the rest is walked.
    let walk = ["rev-list", "--objects", "--quiet", "--stdin", "--not", "--all"];
    match git.run_with(&walk, input.as_bytes()) {
        Ok(_) => Ok(true),
        // Git has no status of its own for a missing object, and to put objects back that are there does no harm.
        Err(GitError::Failed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Puts objects back that git has collected since: it has not all of `target`. Errors: `git_failed` if some are lost; `corrupt`.
pub(super) fn bring_back(git: &Git<'_>, target: &GitState, objects: &Objects) -> Result<()> {
    unpack(git, target, objects)?;
    if is_whole(git, target)? {
        return Ok(());
    }
    let needed: Vec<&str> = target.own_tips().chain(target.staged.iter().map(String::as_str)).collect();
    let there: BTreeSet<&str> = existing(git, &needed)?.into_iter().collect();
    let lost = needed.iter().find(|oid| !there.contains(*oid)).copied();
    let lost = lost.unwrap_or("what some commit of the checkpoint needs");
    Err(Diagnosis::new(Code::GitFailed, format!("Git has lost {lost}, and it is from before the first checkpoint."))
        .hint("restore the files alone: ic checkpoint restore ID --strategy files-only --yes")
        .detail("object", lost))
}

/// Each pack comes whole or not at all, so that a commit never lacks its files.
fn unpack(git: &Git<'_>, target: &GitState, objects: &Objects) -> Result<()> {
    for pack in &target.packs {
        git.feed(&["index-pack", "--stdin"], |stdin| objects.read_to(&pack.0, stdin).map(|_| ()))?;
    }
    Ok(())
}

/// Calls `then` with a git that has the objects of `target`, though the repository may have lost them: they are put into
/// a place of their own for the time being.
pub(super) fn with_objects<T>(
    git: &Git<'_>,
    common_dir: &Path,
    target: &GitState,
    objects: &Objects,
    then: impl FnOnce(&Git<'_>) -> Result<T>,
) -> Result<T> {
    if is_whole(git, target)? {
        return then(git);
    }
    let doing = || "making room for objects".to_owned();
    let place = Scratch::new(objects.path())?;
    let info = place.path().join("info");
    private::directory(&info).while_doing(doing)?;
    // Git would read a relative path from the scratch directory.
    let own = std::path::absolute(common_dir.join("objects")).while_doing(doing)?;
    std::fs::write(info.join("alternates"), [path_bytes(&own), b"\n"].concat()).while_doing(doing)?;
    let git = Git { objects: Some(place.path()), ..git.clone() };
    unpack(&git, target, objects)?;
    then(&git)
}
