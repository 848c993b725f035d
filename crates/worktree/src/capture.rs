//! Taking a picture of the tree and of git, before the transaction that records it.

mod shot_record;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use ic_base::{CheckpointId, Code, Diagnosis, Result, RunId};
use ic_checkpoint::capture::{self, CaptureProgress, CaptureSeen, Captured, RuleOptions};
use ic_checkpoint::diff::{self, Difference};
use ic_checkpoint::git::{self, AskedGit, Clean, GitLook, GitState, PackBase};
use ic_checkpoint::manifest::{ChangedCounts, CheckpointManifest, PathText};
use ic_checkpoint::nested_work_trees::Places;
use ic_checkpoint::objects::Writer;
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink, CheckpointRecord};

use super::workspace::{Warning, Workspace};

/// A picture whose content is durable, to be recorded in a transaction.
pub struct Shot {
    root: PathBuf,
    kind: CheckpointKind,
    link: CheckpointLink,
    parent: Option<CheckpointId>,
    /// The captured tree, with what the capture found about it.
    pub captured: Captured,
    /// What the row does not hold.
    pub manifest: CheckpointManifest,
    manifest_hash: ic_ledger::events::Hash,
    git_hash: ic_ledger::events::Hash,
    pub(super) settled: bool,
    took: Duration,
    id: CheckpointId,
    /// A file that both captures left out has changed since the parent.
    pub(super) has_changed_gaps: bool,
    /// It is a checkpoint already: it is not recorded a second time.
    pub(super) is_recorded: bool,
    /// What went less well.
    pub warnings: Vec<Warning>,
}

/// A picture that nothing may name yet: its content is durable once it is closed, and gone if it is dropped.
pub(super) struct OpenCapture<'w> {
    pub(super) shot: Shot,
    /// `None`: it is durable.
    content: Option<Content<'w>>,
}

/// What a picture found, on its way into the store.
struct Content<'w> {
    writer: Writer<'w>,
    seen: CaptureSeen,
    /// The store will have all that was seen.
    is_stored: bool,
}

impl OpenCapture<'_> {
    /// The same picture with another `tree` and state of git. The tree's maker also says how it differs from that of the parent.
    pub(super) fn with_tree(
        mut self,
        git: Option<GitState>,
        tree: impl FnOnce(&Writer<'_>, &ic_ledger::events::Hash) -> Result<(ic_ledger::events::Hash, Vec<Difference>)>,
    ) -> Result<(Self, Vec<Difference>)> {
        // A picture that is durable has no writer any more, so it keeps its tree.
        let Some(Content { writer, .. }) = &self.content else { return Ok((self, Vec::new())) };
        let (root, differences) = tree(writer, &self.shot.captured.root)?;
        let manifest = &mut self.shot.manifest;
        let shown = |one: &Difference| one.change().map(|change| ChangedCounts::new(one.path.clone(), change));
        manifest.changes = Some(differences.iter().filter_map(shown).collect());
        manifest.git = git;
        self.shot.manifest_hash = manifest.keep(writer)?;
        self.shot.git_hash = manifest.git_hash()?;
        self.shot.captured.root = root;
        Ok((self, differences))
    }
}

impl From<Shot> for OpenCapture<'_> {
    fn from(shot: Shot) -> Self {
        Self { shot, content: None }
    }
}

/// What was seen of a tree and of git, side by side.
struct Looked {
    captured: Captured,
    seen: CaptureSeen,
    asked: Option<Result<AskedGit>>,
    /// What git may lose of the state that was told before, kept already.
    ahead: Option<git::KeptObjects>,
}

/// How much of git's state a picture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitPart {
    /// All, with what git may lose.
    Kept,
    /// Its current state, to be compared and never restored: no objects are kept.
    Look,
    /// Nothing, and the content of files is kept.
    FilesAlone,
    /// Nothing, and the content of files is not kept: the capture is only compared.
    Nothing,
}

/// What a picture is taken for.
#[derive(Debug, Clone)]
pub struct Purpose {
    /// What is looked at of git.
    pub git: GitPart,
    /// What the checkpoint is.
    pub kind: CheckpointKind,
    /// What it is linked to.
    pub link: CheckpointLink,
    /// The checkpoint that it follows; `None`: the newest of its line.
    pub parent: Option<CheckpointId>,
    /// Whether work had ended.
    pub settled: bool,
    /// Paths that are captured whatever any rule or limit says.
    pub force: BTreeSet<Vec<u8>>,
    /// What can have changed since the last capture; `None`: anything.
    pub touched: Option<BTreeSet<Vec<u8>>>,
    /// Git has just looked at the files: it need not again where the tree is this one.
    pub clean: Option<Clean>,
}

/// The move of a run that a checkpoint is recorded with.
#[derive(Debug, Clone, Copy)]
pub struct CaptureOccasion<'a> {
    /// The run that moves; the checkpoint is linked to it.
    pub run_id: &'a RunId,
    /// The epoch of the run at the move.
    pub epoch: i64,
    /// The phase that it is at.
    pub phase: &'a str,
}

impl Purpose {
    /// A picture that becomes a checkpoint, with git's state.
    pub fn new(kind: CheckpointKind, link: CheckpointLink) -> Self {
        let (git, force) = (GitPart::Kept, BTreeSet::new());
        Self { git, kind, link, parent: None, settled: false, force, touched: None, clean: None }
    }

    /// A picture that is compared with others and never recorded.
    pub fn look(git: GitPart, force: BTreeSet<Vec<u8>>) -> Self {
        Self { git, force, ..Self::new(CheckpointKind::Safety, CheckpointLink::default()) }
    }
}

impl Workspace<'_> {
    /// Captures the tree and git's state. The caller holds the locks.
    pub fn shoot(&self, purpose: Purpose, progress: &CaptureProgress) -> Result<Shot> {
        self.close(self.shoot_open(purpose, progress)?)
    }

    /// As [`Workspace::shoot`], where more is to become durable with the picture.
    pub(super) fn shoot_open(&self, purpose: Purpose, progress: &CaptureProgress) -> Result<OpenCapture<'_>> {
        //   parent chosen ─▶ tree walked, git asked beside ─▶ manifest ─▶ close: content durable ─▶ stat cache
        //
        // Nothing counts before `close`. A picture that is dropped before gives back what it stored, except what a
        // capture with a limit has entered on its way.
        self.check_root()?;
        // Read again for each capture: a workspace in a server process lives long, and work trees come and go.
        self.objects.set_places(Some(Arc::new(Places::of(&self.root))));
        let started = Instant::now();
        // Bound to a name: git is limited for as long as this lives, which is to the end of the capture.
        let _limited = git::limited(&progress.limit);
        let now = self.kernel.context.now();
        let parent = match &purpose.parent {
            Some(id) => Some(self.kernel.read(|snapshot| record::get(snapshot, id))?),
            None => self.kernel.read(|s| record::latest_of_lineage(s, &self.root, &purpose.link))?,
        };
        let asks = matches!(purpose.git, GitPart::Kept | GitPart::Look) && self.has_git();
        // A look is never restored: content that no checkpoint will hold is not stored.
        let is_look = matches!(purpose.git, GitPart::Look | GitPart::Nothing);
        let mut writer = if is_look { self.objects.looker(now)? } else { self.objects.writer(now)? };
        // The caller of a limited capture may be killed at any moment. What was stored until then spares the next
        // capture that work.
        if progress.limit.is_any() {
            writer.keep_progress();
        }
        let recorded = if asks { self.recorded_git(parent.as_ref())? } else { [None, None] };
        let before = PackBase { newest: recorded[0].as_ref(), other: recorded[1].as_ref() };
        let asks = asks.then_some((before, is_look));
        let Looked { captured, seen, asked, ahead } = self.see(&purpose, asks, &writer, progress)?;
        // Before the manifest, which a look never stores: with it, no look would ever keep its stat cache.
        let is_stored = writer.stores_all();
        // The manifest compares this tree with the parent's, so its new directories have to be readable before they are durable.
        writer.expose()?;
        let (manifest, has_changed_gaps) = self.manifest(&captured, parent.as_ref())?;
        let mut shot = Shot {
            root: self.root.clone(),
            kind: purpose.kind,
            link: purpose.link,
            parent: parent.as_ref().map(|parent| parent.id.clone()),
            manifest,
            has_changed_gaps,
            warnings: captured.doubts.iter().map(|message| doubt(message)).collect(),
            captured,
            manifest_hash: ic_ledger::events::Hash::default(),
            git_hash: ic_ledger::events::Hash::default(),
            settled: purpose.settled,
            took: Duration::ZERO,
            id: self.kernel.context.new_id(),
            is_recorded: false,
        };
        shot.warnings.extend(unsettled(&shot.captured.unsettled));
        let is_work = matches!(shot.kind, CheckpointKind::Manual | CheckpointKind::Auto) && !shot.link.of_call;
        if is_work {
            shot.warnings.extend(self.news(&shot.captured)?);
        }
        if let Some(asked) = asked {
            self.record_git(&mut shot, asked, &writer, is_look, (before, ahead))?;
        }
        // After git's answer, which is a part of the manifest.
        shot.manifest_hash = shot.manifest.keep(&writer)?;
        shot.git_hash = shot.manifest.git_hash()?;
        shot.took = started.elapsed();
        Ok(OpenCapture { shot, content: Some(Content { writer, seen, is_stored }) })
    }

    /// Makes what a picture found durable. Errors: `disk_full`: nothing may name it.
    pub(super) fn close(&self, open: OpenCapture<'_>) -> Result<Shot> {
        self.close_with(open, &[]).map(|(shot, _)| shot)
    }

    /// As [`Workspace::close`], and these contents with it, in one transaction; returns their hashes, too.
    pub(super) fn close_with(
        &self,
        open: OpenCapture<'_>,
        contents: &[&[u8]],
    ) -> Result<(Shot, Vec<ic_ledger::events::Hash>)> {
        let started = Instant::now();
        let OpenCapture { mut shot, content } = open;
        let (writer, seen) = match content {
            Some(Content { writer, seen, is_stored }) => (writer, Some((seen, is_stored))),
            // The picture was durable before. What is to become durable with it needs a writer of its own.
            None => (self.objects.writer(self.kernel.context.now())?, None),
        };
        let put = |bytes: &&[u8]| writer.put_reader(&mut &**bytes).map(|(hash, _)| hash);
        let hashes = contents.iter().map(put).collect::<Result<_>>()?;
        let stored = writer.finish()?;
        // Only now: a stat cache may name no content that a crash could still lose, because the next capture believes it.
        if let Some((seen, is_stored)) = seen {
            shot.captured.stored = stored;
            seen.keep_if(is_stored)?;
            ic_ledger::reserve::keep(self.kernel.ledger.path());
            shot.took += started.elapsed();
        }
        Ok((shot, hashes))
    }

    /// Captures the tree into `writer`, and asks git of its state, if `asks` says what was recorded of it before and whether it is a look.
    fn see(
        &self,
        purpose: &Purpose,
        asks: Option<(PackBase<'_>, bool)>,
        writer: &Writer<'_>,
        progress: &CaptureProgress,
    ) -> Result<Looked> {
        let (options, root) = (self.options(), self.root.as_path());
        // Where the caller names what was touched, the capture looks at nothing else. Such a tree proves nothing about
        // what git told before, so git is asked.
        let look = asks.filter(|_| purpose.touched.is_none());
        let look = look.and_then(|_| GitLook::begin(&self.objects, root, options.flush));
        let since = look.as_ref().and_then(GitLook::since);
        let rules = RuleOptions { force: purpose.force.clone(), compare: asks.is_some(), ..options.rules };
        let options = capture::CaptureOptions { rules, touched: purpose.touched.clone(), since, ..options };
        let knows = look.as_ref().is_some_and(GitLook::knows);
        let clean = purpose.clean.as_ref().filter(|_| look.is_some());
        let ask = || match clean {
            Some(clean) => git::ask_clean(root, clean).map(Ok),
            None => Some(git::ask(root)),
        };
        let news = look.as_ref().zip(asks).filter(|(look, (before, is_look))| !is_look && look.has_news(*before));
        // Git looks at as many files as the capture does, and packs what it may lose; neither needs the other.
        let (captured, asked, ahead) = std::thread::scope(|scope| {
            let asked = (asks.is_some() && !knows).then(|| scope.spawn(ask));
            let ahead = news.map(|(look, (before, _))| scope.spawn(move || look.keep_ahead(before, writer)));
            let captured = capture::capture_with(&self.objects, writer, root, &options, progress);
            // A failure is ignored: what was not kept ahead is kept when git's state is recorded.
            let ahead = ahead.and_then(|ahead| ahead.join().ok().flatten());
            (captured, asked.map(ScopedJoinHandle::join), ahead)
        });
        let (captured, seen) = captured?;
        let asked = asked.and_then(|asked| asked.unwrap_or_else(|_| Some(Err(ended_early()))));
        // What git said of a clean tree is true of that tree alone: if the capture found another one, the answer is dropped.
        let asked = asked.filter(|_| clean.is_none_or(|clean| clean.tree == captured.root));
        let asked = match look {
            Some(look) => Some(look.end(&captured, asked)),
            None => asked,
        };
        Ok(Looked { captured, seen, asked, ahead })
    }

    /// The manifest of a capture, and whether a file that is left out changed since the parent.
    fn manifest(&self, captured: &Captured, parent: Option<&CheckpointRecord>) -> Result<(CheckpointManifest, bool)> {
        let changes = match parent {
            None => None,
            Some(parent) => {
                let mut changes = Vec::new();
                diff::diff(&self.objects, Some(&parent.tree), Some(&captured.root), &mut |difference| {
                    if let Some(change) = difference.change() {
                        changes.push(ChangedCounts::new(difference.path, change));
                    }
                    Ok(())
                })?;
                Some(changes)
            }
        };
        // One that was pruned says nothing any more.
        let before = parent.filter(|parent| !parent.complete && !captured.skipped.is_empty());
        let before = before.and_then(|before| CheckpointManifest::read(&self.objects, &before.manifest).ok());
        let skipped = self.gaps(captured, before.as_ref());
        let has_changed_gaps = before.is_some_and(|before| before.skipped != skipped);
        let manifest = CheckpointManifest {
            skipped,
            unsettled: captured.unsettled.iter().cloned().map(PathText).collect(),
            nested_git: captured.nested_git.iter().cloned().map(PathText).collect(),
            changes,
            git: None,
            work_trees: self.work_trees(captured),
            repositories: self.repositories(captured),
        };
        Ok((manifest, has_changed_gaps))
    }
}

fn ended_early() -> Diagnosis {
    Diagnosis::new(Code::Internal, "A thread that asked git ended early.")
}

/// What is not known about ignored files, as a warning: nothing is captured or left out by a wrong rule in silence.
fn doubt(message: &str) -> Warning {
    Warning { code: "rules_uncertain", message: message.to_owned() }
}

/// A warning about files that never stood still.
fn unsettled(paths: &[Vec<u8>]) -> Option<Warning> {
    let first = paths.first()?;
    let others = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
    Some(Warning {
        code: "unsettled",
        message: format!(
            "{}{others} changed at each read: the checkpoint may hold an inconsistent state of it; stop what writes it, \
             or ignore it",
            String::from_utf8_lossy(first)
        ),
    })
}
