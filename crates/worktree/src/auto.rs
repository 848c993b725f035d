//! What is captured automatically, when a run begins and whenever it moves: the tree in a checkpoint, and where a state database is.
//!
//! Both are read before the transaction that moves the run, which then only adds rows: reading a tree takes too long to hold the ledger's
//! lock. A capture that fails does not stop the run: it moves without a checkpoint, and a warning says so.

use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result, RunId, Seq, Timestamp};
use ic_checkpoint::capture::root_key;
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink};
use ic_checkpoint::tree::Reason;
use ic_kernel::Kernel;
use ic_ledger::Transaction;
use ic_ledger::events::{Hash, hex};
use ic_phase::Run;
use ic_phase::point::{self, NewPoint, PointRecord};
use ic_phase::run::NewRun;

use super::capture::{CaptureOccasion, GitPart, Purpose, Shot};
use super::locked_root::LockedRoot;
use super::points;
use super::workspace::{CaptureSettings, Warning, Workspace, root_of};
use crate::database_mark::Marked;

/// A tree that was captured for what is about to be recorded. Nothing is swept while it lives.
pub struct TakenTree {
    shot: Option<Shot>,
    /// Whether the tree is as the newest checkpoint has it, as another call has just seen.
    is_as_newest: bool,
    marked: Marked,
    /// Whether the look failed for another reason than a lock that others held.
    is_blind: bool,
    /// Whether a look a little later may succeed: this one reached its time limit, was interrupted, or waited too long for a lock.
    is_cut_off: bool,
    /// What went less well.
    pub warnings: Vec<Warning>,
    _held: Option<LockedRoot>,
}

/// What is left out of a tree, from its root, and why.
pub type LeftOut = (Vec<u8>, String);

/// What is known of the tree at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenTree {
    /// The event of the newest checkpoint; 0: there is none.
    pub seq: Seq,
    /// Whether the tree was looked at, and is as that checkpoint has it.
    pub is_certain: bool,
}

impl SeenTree {
    /// The event at which work that has ended counts as over. If the tree was not looked at, that is one later: the next checkpoint shows
    /// what the work did.
    pub fn end(self) -> Seq {
        self.seq + Seq::from(!self.is_certain)
    }
}

impl TakenTree {
    /// No capture was wanted; recording it adds no checkpoint.
    pub fn nothing() -> Self {
        let (marked, warnings) = (Marked::nothing(), Vec::new());
        let (is_blind, is_cut_off) = (false, false);
        Self { shot: None, is_as_newest: false, marked, is_blind, is_cut_off, warnings, _held: None }
    }

    /// Captures the tree of a project for a run, where the settings say so, and looks where a configured state database is.
    pub fn take(
        kernel: &Kernel,
        settings: &CaptureSettings,
        project_dir: &std::path::Path,
        link: CheckpointLink,
    ) -> Self {
        let workflow = link.workflow.clone().or_else(|| settings.workflow.clone());
        let link = CheckpointLink { workflow, ..link };
        let captured = settings.checkpointing.auto.then(|| capture(kernel, settings, project_dir, link));
        let mut taken = match captured {
            // The locks are held until the row is recorded: otherwise a sweep could remove content that no row names yet.
            Some(Ok((shot, held))) => {
                let warnings = shot.warnings.clone();
                Self { shot: Some(shot), warnings, _held: Some(held), ..Self::nothing() }
            }
            Some(Err(error)) => {
                let is_cut_off = is_cut_off(&error);
                Self { is_cut_off, warnings: vec![failed(&error)], ..Self::nothing() }
            }
            None => Self::nothing(),
        };
        // Also where the capture failed: the rows of a state database go back by their mark, without the tree.
        taken.marked = Marked::look(settings);
        taken.warnings.extend(taken.marked.warning.clone());
        taken
    }

    /// Captures the tree alone.
    pub fn take_tree(kernel: &Kernel, settings: &CaptureSettings, project_dir: &Path, link: CheckpointLink) -> Self {
        let alone = CaptureSettings { state: None, ..settings.clone() };
        Self::take(kernel, &alone, project_dir, link)
    }

    /// The tree that was seen.
    pub fn tree(&self) -> Option<Hash> {
        self.shot.as_ref().map(|shot| shot.captured.root)
    }

    /// Records what was seen, unless the newest look at the root shows the same.
    pub fn record_unless_known(&self, tx: &Transaction<'_>, now: Timestamp, root: &Path, epoch: i64) -> Result<()> {
        self.shot.as_ref().map_or(Ok(()), |shot| shot.record_unless_known(tx, now, root, Some(epoch)))
    }

    /// Records a point of a run with what a checkpoint has that was taken before; its event is the first of the transaction.
    pub fn record_point_at(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        run: &Run,
        new: &NewPoint<'_>,
        look: &CheckpointId,
    ) -> Result<()> {
        points::record_point_at(tx, now, run, new, look, &self.marked)
    }

    /// The same, taken as the last agent at work in the tree stopped: what changes from here on is others' work.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if let Some(shot) = &mut self.shot {
            shot.settled = true;
        }
        self
    }

    /// Captures the tree of a run that does not exist yet: the first of its line.
    pub fn take_first(kernel: &Kernel, settings: &CaptureSettings, id: &RunId, new: &NewRun) -> Self {
        let link = CheckpointLink { run_id: Some(id.clone()), ..CheckpointLink::default() };
        Self::take(kernel, settings, &new.project_dir, link)
    }

    /// As [`TakenTree::take`] if there are `settings`; without them, nothing is captured.
    pub fn take_if(
        kernel: &Kernel,
        settings: Option<&CaptureSettings>,
        project_dir: &std::path::Path,
        link: CheckpointLink,
    ) -> Self {
        settings.map_or_else(Self::nothing, |settings| Self::take(kernel, settings, project_dir, link))
    }

    /// Looks at the tree at the beginning or the end of a tool call: at files alone, while no other call looks at it. The result
    /// becomes a checkpoint only if it differs from the newest one ([`TakenTree::record_news`]).
    /// `with_git`: git's state too, and it is recorded whatever is seen.
    pub fn look_for_call(
        kernel: &Kernel,
        settings: Option<&CaptureSettings>,
        root: PathBuf,
        link: CheckpointLink,
        with_git: bool,
    ) -> Self {
        let Some(settings) = settings.filter(|settings| settings.checkpointing.auto) else {
            return Self::nothing();
        };
        let link = CheckpointLink { of_call: true, ..link };
        let git = if with_git { GitPart::Kept } else { GitPart::FilesAlone };
        let purpose = Purpose { git, ..Purpose::new(CheckpointKind::Auto, link) };
        match look(kernel, settings, root, purpose) {
            Ok((shot, held)) => {
                let warnings = shot.as_ref().map(|shot| shot.warnings.clone()).unwrap_or_default();
                let is_as_newest = shot.is_none();
                Self { shot, is_as_newest, warnings, _held: held, ..Self::nothing() }
            }
            Err(error) => {
                // `busy` means that another call holds the tree now, and records what it sees or restores. After any
                // other error it is not known what the tree is.
                let (is_blind, is_cut_off) = (error.code() != Code::Busy, is_cut_off(&error));
                Self { is_blind, is_cut_off, warnings: vec![failed(&error)], ..Self::nothing() }
            }
        }
    }

    /// As [`TakenTree::look_for_call`], of a subagent that begins its work with this call: what is seen is a point of the run, with git's state
    /// and where a state database is.
    pub fn look_for_subagent(
        kernel: &Kernel,
        settings: Option<&CaptureSettings>,
        root: PathBuf,
        link: CheckpointLink,
    ) -> Self {
        let marked = settings.map_or_else(Marked::nothing, Marked::look);
        let looked = Self::look_for_call(kernel, settings, root, link, true);
        let warnings = looked.warnings.iter().chain(&marked.warning).cloned().collect();
        Self { marked, warnings, ..looked }
    }

    /// Which event shows the tree as it was seen, once that is recorded.
    pub fn recorded(&self, tx: &Transaction<'_>, root: &Path) -> Result<SeenTree> {
        let newest = record::newest_look(tx, root)?;
        Ok(SeenTree { seq: newest.map_or(0, |newest| newest.seq), is_certain: self.shot.is_some() })
    }

    /// Records what was seen if it is new, and returns which event shows the current tree, as far as that is known.
    pub fn record_news(&self, tx: &Transaction<'_>, now: Timestamp, root: &Path, epoch: i64) -> Result<SeenTree> {
        let newest = record::newest_look(tx, root)?;
        let newest_seq = newest.as_ref().map_or(0, |newest| newest.seq);
        match &self.shot {
            None => Ok(SeenTree { seq: newest_seq, is_certain: self.is_as_newest }),
            Some(shot)
                                // A picture with git's state is always recorded: equal trees say nothing of git's state.
                if shot.manifest.git.is_none()
                    && !shot.has_changed_gaps
                    && newest.is_some_and(|newest| newest.tree == shot.captured.root) =>
            {
                Ok(SeenTree { seq: newest_seq, is_certain: true })
            }
            Some(shot) => {
                let seq = shot.record(tx, now, Some(epoch))?.seq;
                Ok(SeenTree { seq, is_certain: true })
            }
        }
    }

    /// What is left out of what was seen, and why; `None`: nothing was captured.
    pub fn left_out(&self, kernel: &Kernel, settings: &CaptureSettings, root: &Path) -> Result<Option<Vec<LeftOut>>> {
        let tree = match &self.shot {
            Some(shot) => Some(shot.captured.root),
            None if self.is_blind => None,
            None => kernel.read(|snapshot| record::newest_look(snapshot, root))?.map(|newest| newest.tree),
        };
        let Some(tree) = tree else { return Ok(None) };
        let workspace = Workspace::open(kernel, root.to_owned(), settings)?;
        // What belongs to a database is in the database's own copy.
        let passed = workspace.passed(&tree)?.into_iter().filter(|(_, reason)| *reason != Reason::Database);
        Ok(Some(passed.map(|(path, reason)| (path, reason.as_str().to_owned())).collect()))
    }

    /// Whether nothing was seen, and a look a little later may see it.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Records what was seen at a point that was recorded before it was looked at, and lets the point have it.
    pub fn record_at_point(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        run: &Run,
        point: &PointRecord,
    ) -> Result<SeenTree> {
        // Without a picture the point gets no checkpoint, and an undo that leads to it is refused.
        let Some(shot) = &self.shot else { return self.recorded(tx, &root_of(&run.project_dir)) };
        let seq = shot.record(tx, now, Some(run.epoch))?.seq;
        self.marked.record(tx, point.seq, &run.id)?;
        point::show(tx, point, shot.id())?;
        Ok(SeenTree { seq, is_certain: true })
    }

    /// Records a point of a run with what was seen there; its event is the first of the transaction.
    pub fn record_point(&self, tx: &Transaction<'_>, now: Timestamp, run: &Run, new: &NewPoint<'_>) -> Result<()> {
        points::record_point(tx, now, run, new, self.shot.as_ref(), &self.marked)
    }

    /// Records what was seen after work, beside what ended it.
    pub fn record_after(&self, tx: &Transaction<'_>, now: Timestamp, run: &Run) -> Result<()> {
        match &self.shot {
            Some(shot) => shot.record(tx, now, Some(run.epoch)).map(drop),
            None => Ok(()),
        }
    }

    /// The id that its row will have.
    pub fn id(&self) -> Option<&CheckpointId> {
        self.shot.as_ref().map(Shot::id)
    }

    /// Records it, if there is one, with the event that it was taken for; returns that event's seq.
    pub fn record(
        &self,
        tx: &Transaction<'_>,
        now: Timestamp,
        occasion: CaptureOccasion<'_>,
        event: impl FnOnce() -> Result<Seq>,
    ) -> Result<Seq> {
        let seq = match &self.shot {
            None => event()?,
            Some(shot) => shot.record_for(tx, now, occasion, event)?,
        };
        self.marked.record(tx, seq, occasion.run_id)?;
        Ok(seq)
    }
}

fn capture(
    kernel: &Kernel,
    settings: &CaptureSettings,
    project_dir: &std::path::Path,
    link: CheckpointLink,
) -> Result<(Shot, LockedRoot)> {
    let workspace = Workspace::open(kernel, root_of(project_dir), settings)?;
    let held = workspace.lock(LockMode::Exclusive)?;
    let shot = workspace.shoot(Purpose::new(CheckpointKind::Auto, link), &settings.progress())?;
    Ok((shot, held))
}

/// Looks at the tree of a root alone; `None`: another call began to look after this one was made, and saw it as the newest checkpoint has
/// it. Of many calls that are made at once, two look.
fn look(
    kernel: &Kernel,
    settings: &CaptureSettings,
    root: PathBuf,
    purpose: Purpose,
) -> Result<(Option<Shot>, Option<LockedRoot>)> {
    // The note `KEY.look` in the cache directory has the time at which a look began and the tree that it saw:
    // `NANOSECONDS HEX`. Calls that were made before that time need not look.
    let made = kernel.context.nanos();
    let workspace = Workspace::open(kernel, root, settings)?;
    let name = format!("{}.look", root_key(&workspace.root));
    let note = workspace.objects.path().with_extension("cache").join(name);
    let is_seen = || -> Result<bool> {
        let newest = kernel.read(|snapshot| record::newest_look(snapshot, &workspace.root))?;
        let noted = noted(&note, made, kernel.context.nanos());
        // Both have to name the same tree: a call that died after its note has recorded nothing.
        Ok(newest.is_some_and(|newest| noted.is_some_and(|tree| tree == hex(&newest.tree))))
    };
    let held = match workspace.lock(LockMode::Exclusive) {
        Err(error) if error.code() == Code::Busy && is_seen()? => return Ok((None, None)),
        held => held?,
    };
    // With git's state it is always made: the note tells of files alone.
    // Once more under the lock: another call may have looked while this one waited.
    if purpose.git == GitPart::FilesAlone && is_seen()? {
        return Ok((None, Some(held)));
    }
    let began = kernel.context.nanos();
    let shot = workspace.shoot(purpose, &settings.progress())?;
    // A failure costs time alone: without the note the next call looks at the tree itself.
    let _ = std::fs::write(&note, format!("{began} {}", hex(&shot.captured.root)));
    Ok((Some(shot), Some(held)))
}

/// The tree that a look saw which began after this time.
fn noted(note: &Path, since: i128, now: i128) -> Option<String> {
    let text = std::fs::read_to_string(note).ok()?;
    let (began, tree) = text.split_once(' ')?;
    let began: i128 = began.parse().ok()?;
    // A note with a time in the future was written before the clock was set back: it proves nothing.
    (began > since && began <= now).then(|| tree.to_owned())
}

fn is_cut_off(error: &Diagnosis) -> bool {
    matches!(error.code(), Code::TimedOut | Code::Interrupted | Code::Busy)
}

fn failed(error: &Diagnosis) -> Warning {
    // The run moves anyway, so no error is shown: the warning has to carry the error's hint.
    let hint = error.get_hint().map_or_else(String::new, |hint| format!(" To have one next time: {hint}"));
    Warning {
        code: "checkpoint_failed",
        message: format!("no checkpoint was taken ({}): {}{hint}", error.code().as_str(), error.message()),
    }
}
