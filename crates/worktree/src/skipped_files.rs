//! Files that a capture leaves out: how a change of one is noticed, and where git has its content.
//!
//! A checkpoint holds no content of them. It says of each how the file was, so that a restore can tell which of them changed since: those
//! come back from git, or they are named and the restore is not complete.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use ic_base::Result;
use ic_checkpoint::attributes::Attributes;
use ic_checkpoint::capture::Captured;
use ic_checkpoint::diff::{DiffState, Finder};
use ic_checkpoint::git;
use ic_checkpoint::graft::graft;
use ic_checkpoint::manifest::{CheckpointManifest, GitContent, PathText, Skipped};
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::Strategy;
use ic_checkpoint::restore::plan::{Limits, RestoreNode, RestorePlan};
use ic_checkpoint::restore::reverse::Own;
use ic_checkpoint::tree::{self, Reason};
use ic_ledger::events::Hash;
use ic_ledger::path_from_bytes;
use sha2::{Digest, Sha256};

use super::capture::Shot;
use super::workspace::Workspace;

/// Contents that git has and the store may not have, by their hashes.
pub type ContentSources = HashMap<Hash, GitContent>;

/// What is known of a gap at two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownContent {
    /// The file is the same.
    Same,
    /// It is another one, or was written.
    Changed,
    /// One of both moments does not tell.
    Unknown,
}

/// Compares what two captures recorded about a file that both left out.
pub fn compare(then: &Skipped, now: &Skipped) -> KnownContent {
    // A fifo or a device has no content that could have changed.
    let are_special = [then, now].iter().all(|gap| gap.reason == Reason::Special.as_str());
    let are_in_git = then.git.is_some() && then.git == now.git;
    if then == now && then.seen.is_some() || are_special || are_in_git {
        KnownContent::Same
    } else if then.seen.is_none() || now.seen.is_none() || then.reason == Reason::Ledger.as_str() {
        // A ledger changes with every call, so a change of its file means nothing.
        KnownContent::Unknown
    } else if then.seen == now.seen {
        KnownContent::Same
    } else {
        KnownContent::Changed
    }
}

/// What tells this state of a file from another.
pub(super) fn state_of(file: &Metadata) -> String {
    let (written, changed) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
    format!(
        "{:x}-{:x}-{:o}-{:x}.{:x}-{:x}.{:x}",
        file.ino(),
        file.size(),
        file.mode(),
        written.0,
        written.1,
        changed.0,
        changed.1
    )
}

impl Workspace<'_> {
    /// What is recorded about the files that a capture left out. `parent`: the manifest before it. Git's answers in it are still true
    /// where the file is the same.
    pub(super) fn gaps(&self, captured: &Captured, parent: Option<&CheckpointManifest>) -> Vec<Skipped> {
        let known: BTreeMap<&PathText, &Skipped> =
            parent.into_iter().flat_map(|parent| &parent.skipped).map(|gap| (&gap.path, gap)).collect();
        let mut asked = BTreeMap::new();
        let mut gaps = Vec::with_capacity(captured.skipped.len());
        for (path, reason) in &captured.skipped {
            let file = self.file_at(path);
            let seen = file.as_ref().map(state_of);
            let path = PathText(path.clone());
            // Two files of which nothing could be seen are not the same.
            let same = known.get(&path).filter(|gap| seen.is_some() && gap.seen == seen);
            let git = same.and_then(|gap| gap.git.clone());
            if let Some(file) = file
                && *reason == Reason::Oversize
                && git.is_none()
                && file.is_file()
            {
                asked.insert(path.0.clone(), file);
            }
            gaps.push(Skipped { path, reason: reason.as_str().to_owned(), seen, git });
        }
        let mut blobs = git::blobs_of(&self.root, &asked);
        for gap in &mut gaps {
            if let (Some(oid), Some(file)) = (blobs.remove(&gap.path.0), asked.get(&gap.path.0)) {
                gap.git = Some(GitContent { oid, size: file.size(), mode: file.mode() & 0o7777 });
            }
        }
        gaps
    }

    fn file_at(&self, path: &[u8]) -> Option<Metadata> {
        self.root.join(path_from_bytes(path)).symlink_metadata().ok()
    }

    /// Whether a file is as a picture saw it.
    pub fn is_as_seen(&self, gap: &Skipped) -> bool {
        gap.seen.is_some() && self.file_at(&gap.path.0).as_ref().map(state_of) == gap.seen
    }

    /// A content that git has, as a checkpoint would hold it; `None` where git does not have it any more.
    pub fn content_in_git(&self, content: &GitContent, sources: &mut ContentSources) -> Result<Option<DiffState>> {
        // Found by what git calls it: a large file would have to be read once more to be hashed.
        let known = sources.iter().find(|(_, known)| *known == content).map(|(hash, _)| *hash);
        let hash = if known.is_some() {
            known
        } else {
            let mut digest = Digested(Sha256::new());
            let is_there = git::copy_content(&self.root, content, &mut digest)?;
            is_there.then(|| digest.0.finalize().into())
        };
        Ok(hash.map(|hash| {
            sources.insert(hash, content.clone());
            let (size, mode) = (content.size, content.mode);
            DiffState::File { hash, size, mode, attributes: Attributes::default() }
        }))
    }

    /// The current state of a file that captures leave out; `None` if it cannot be read.
    pub fn content_now(&self, path: &[u8]) -> Option<DiffState> {
        let mut file = ic_ledger::regular_file::open_regular_itself(&self.root.join(path_from_bytes(path))).ok()?;
        let (hash, size) = digest_of(&mut file)?;
        let mode = file.metadata().ok()?.mode() & 0o7777;
        Some(DiffState::File { hash, size, mode, attributes: Attributes::default() })
    }

    /// Adds to a target the content of files that it left out, that changed since, and that git has. Also returns where git has
    /// contents that the restore may need. `work`: only this work is undone, and it brings its own sources.
    pub(super) fn with_content_of_git(
        &self,
        target: CheckpointRecord,
        work: Option<&Own>,
        limits: &Limits,
        strategy: Strategy,
    ) -> Result<(CheckpointRecord, ContentSources)> {
        let mut sources = work.map(|work| work.sources.clone()).unwrap_or_default();
        if target.complete || work.is_some() || !strategy.has_files() {
            return Ok((target, sources));
        }
        let mut nodes = BTreeMap::new();
        let mut finder = Finder::new(&self.objects, &target.tree)?;
        for gap in CheckpointManifest::read(&self.objects, &target.manifest)?.skipped {
            let Some(content) = gap.git.as_ref().filter(|_| limits.covers(&gap.path.0) && !self.is_as_seen(&gap))
            else {
                continue;
            };
            if finder.find(&gap.path.0)? == Some(DiffState::Passed(Reason::Oversize))
                && let Some(DiffState::File { hash, size, mode, .. }) = self.content_in_git(content, &mut sources)?
            {
                nodes.insert(gap.path.0, tree::TreeNode::File { hash, size, mode });
            }
        }
        if nodes.is_empty() {
            return Ok((target, sources));
        }
        // The new tree is not stored: it has new directories alone, which are small, and stay in memory.
        let looker = self.objects.looker(self.kernel.context.now())?;
        let tree = graft(&self.objects, &looker, &target.tree, &nodes)?;
        Ok((CheckpointRecord { tree, ..target }, sources))
    }

    /// Stores what the plan needs and git has.
    pub(super) fn keep_from_git(&self, plan: &RestorePlan, sources: &ContentSources) -> Result<()> {
        if sources.is_empty() {
            return Ok(());
        }
        let writer = self.objects.writer(self.kernel.context.now())?;
        for step in &plan.steps {
            let Some(RestoreNode::File { hash, .. }) = &step.after else { continue };
            let Some(content) = sources.get(hash) else { continue };
            if self.objects.has(hash)? {
                continue;
            }
            // A file without a name: such a content is larger than the limit of a capture, and its copy goes with the process.
            let mut copy = tempfile::tempfile().map_err(|e| self.no_copy(&e))?;
            git::copy_content(&self.root, content, &mut copy)?;
            io::Seek::rewind(&mut copy).map_err(|e| self.no_copy(&e))?;
            writer.put_file(&mut copy)?;
        }
        writer.finish().map(drop)
    }

    fn no_copy(&self, error: &io::Error) -> ic_base::Diagnosis {
        let place = self.root.display();
        let message = format!("Content that git has cannot be copied from {place}: {error}.");
        ic_base::Diagnosis::new(ic_base::Code::Io, message)
    }

    /// Names the paths left out of both captures that changed and cannot be restored. `target`: with the content that git has.
    pub(super) fn name_changed_gaps(
        &self,
        target: &CheckpointRecord,
        shot: &Shot,
        limits: &Limits,
        plan: &mut RestorePlan,
    ) -> Result<()> {
        let then = CheckpointManifest::read(&self.objects, &target.manifest)?;
        let of = |manifest: &CheckpointManifest| -> BTreeMap<Vec<u8>, Skipped> {
            manifest.skipped.iter().map(|gap| (gap.path.0.clone(), gap.clone())).collect()
        };
        let (then, now) = (of(&then), of(&shot.manifest));
        let mut here = Finder::new(&self.objects, &shot.captured.root)?;
        let mut there = Finder::new(&self.objects, &target.tree)?;
        for path in then.keys().chain(now.keys().filter(|path| !then.contains_key(*path))) {
            let is_step = plan.steps.iter().any(|step| step.path.0 == *path);
            if is_step || !limits.covers(path) {
                continue;
            }
            let (is, was) = (here.find(path)?, there.find(path)?);
            // Both trees hold it by now, or have nothing there: it was compared as any other path.
            if [&is, &was].into_iter().all(|state| state.as_ref().is_none_or(DiffState::is_content)) {
                continue;
            }
            let known = match (then.get(path), now.get(path)) {
                (Some(then), Some(now)) => compare(then, now),
                (Some(then), None) if then.seen.is_none() => KnownContent::Unknown,
                (Some(then), None) if self.is_as_seen(then) => KnownContent::Same,
                // A rule hid the place when the target was taken: the file may have been there.
                (None, _) if matches!(was, Some(DiffState::Passed(_))) => KnownContent::Unknown,
                _ => KnownContent::Changed,
            };
            let reason = now.get(path).or(then.get(path)).map_or("", |gap| gap.reason.as_str());
            // What a person purged is gone on purpose.
            let is_meant = [Reason::Ledger, Reason::Purged].iter().any(|meant| reason == meant.as_str());
            if known == KnownContent::Changed && !is_meant {
                plan.leave_changed(PathText(path.clone()), reason.to_owned());
            }
        }
        Ok(())
    }
}

/// The hash of a file's content, and its size; `None` if it cannot be read.
pub(super) fn digest_of(file: &mut File) -> Option<(Hash, u64)> {
    let mut digest = Digested(Sha256::new());
    let size = io::copy(file, &mut digest).ok()?;
    Some((digest.0.finalize().into(), size))
}

/// Takes the digest of what is written.
struct Digested(Sha256);

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
