//! What others did since the point to which a run goes back, at the paths that it would restore. There the run's changes are merged out,
//! and what others did stays.
//!
//! ```text
//!   who changed the path since the point?
//!     others alone            it stays
//!     others and the run      the run's changes are merged out
//!     it is not known         a conflict: a person decides
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, DispatchId, Result, RunId, Seq};
use ic_checkpoint::diff::{self, DiffState, Difference, Finder};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::CheckpointRecord;
use ic_checkpoint::restore::plan::RestoreStep;
use ic_checkpoint::restore::reverse::Own;
use ic_dispatch::{Dispatch, code};
use ic_kernel::journal::table::{self, RollbackRecord};
use ic_ledger::{Snapshot, path_bytes};
use ic_phase::Run;
use ic_session::attribution::{Attribution, Window};
use ic_worktree::{Conflict, OthersPaths, RestoreReport, Workspace, root_of};

use super::dispatch_changes::{self, CUT_OFF};
use super::unsure_changes::is_changed_since;

/// Whose a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Run,
    Others,
    /// A person, beside several runs. Alone it goes back with the run; where others changed the path, it stays with what they did.
    Person,
    /// The run, or others that worked at the same time.
    Unknown,
    /// The run, or a person: it changed in or after a tool call of the run whose end was not told.
    Unsure,
}

/// The run that goes back, and the checkpoint to which it does.
#[derive(Clone, Copy)]
pub(super) struct Back<'b> {
    pub(super) run: &'b Run,
    pub(super) target: &'b CheckpointRecord,
    /// The work that ran until the rollback cancelled it.
    pub(super) called_off: &'b [DispatchId],
}

/// What others did at the paths of a plan that restores the whole tree, and the paths of which it is not known whose a change is.
pub(super) fn among(
    workspace: &Workspace<'_>,
    back: Back<'_>,
    report: &RestoreReport,
) -> Result<(OthersPaths, Vec<Conflict>)> {
    // The plan uses all that is known until now. What a plan decided is asked in `decided`, with what was known then.
    let facts = workspace.kernel.read(|snapshot| Facts::of(snapshot, back, Seq::MAX))?;
    let conflicts: BTreeSet<Vec<u8>> = report.conflicts.iter().map(|one| one.path.0.clone()).collect();
    // Alone, a run goes back with all that changed, so only what another rule found in conflict is looked at.
    let paths = if facts.is_alone() { Some(&conflicts) } else { None };
    if paths.is_some_and(BTreeSet::is_empty) {
        return Ok((OthersPaths::default(), Vec::new()));
    }
    let mut changes = facts.changes(workspace, paths)?;
    let steps: BTreeSet<&[u8]> = report.plan.steps.iter().map(|step| step.path.0.as_slice()).collect();
    if let Some((last, now)) = &facts.attribution.until_now(workspace.kernel.context.now()) {
        let window = facts.attribution.window(last, now);
        let mut last = Finder::new(&workspace.objects, &last.tree)?;
        let is_asked = |step: &&RestoreStep| paths.is_none_or(|paths| paths.contains(&step.path.0));
        for step in report.plan.steps.iter().filter(|step| !step.is_of_directory()).filter(is_asked) {
            if is_changed_since(&mut last, step)? {
                changes.entry(step.path.0.clone()).or_default().add(facts.maker(&window, &step.path.0), None);
            }
        }
    }
    // A path that is in conflict already has a reason of its own.
    let unknown = changes.iter().filter(|(path, of_path)| of_path.is_unknown() && steps.contains(path.as_slice()));
    let unknown = unknown.filter(|(path, _)| !conflicts.contains(*path));
    let conflict = |(path, of_path): (&Vec<u8>, &PathChanges)| {
        let reason = if of_path.is_unsure { CUT_OFF.to_owned() } else { facts.why_unknown() };
        Conflict { path: PathText(path.clone()), reason }
    };
    let unknown = unknown.map(conflict).collect();
    facts.follow_renames(workspace, &mut changes)?;
    // What others alone did matters where the restore would touch it. What the run did to it matters everywhere: it may have deleted it.
    changes.retain(|path, of_path| {
        let is_touched = of_path.has_run || steps.contains(path.as_slice()) || conflicts.contains(path);
        is_touched && of_path.has_others && !of_path.is_unknown()
    });
    Ok((facts.gather(workspace, changes)?, unknown))
}

/// What others did at paths of which a plan decided that it stays. `until`: the event of that decision.
pub(super) fn decided(
    workspace: &Workspace<'_>,
    back: Back<'_>,
    until: Seq,
    paths: &BTreeSet<PathText>,
) -> Result<OthersPaths> {
    if paths.is_empty() {
        return Ok(OthersPaths::default());
    }
    let paths: BTreeSet<Vec<u8>> = paths.iter().map(|path| path.0.clone()).collect();
    let facts = workspace.kernel.read(|snapshot| Facts::of(snapshot, back, until))?;
    let mut changes = facts.changes(workspace, Some(&paths))?;
    // What others did there after the last checkpoint was seen when it was decided.
    for path in paths {
        changes.entry(path).or_default();
    }
    facts.gather(workspace, changes)
}

/// What changed at a path since the target, oldest first.
#[derive(Default)]
struct PathChanges {
    all: Vec<(Maker, Difference)>,
    has_run: bool,
    has_others: bool,
    has_unknown: bool,
    is_unsure: bool,
    /// Whether the run changed it after the last checkpoint: that cannot be merged out.
    is_unseen: bool,
}

impl PathChanges {
    /// Adds a change; `None` for one that no checkpoint shows.
    fn add(&mut self, maker: Maker, change: Option<Difference>) {
        self.has_run |= maker == Maker::Run;
        self.has_others |= maker == Maker::Others;
        self.has_unknown |= maker == Maker::Unknown;
        self.is_unsure |= maker == Maker::Unsure;
        self.is_unseen |= maker == Maker::Run && change.is_none();
        self.all.extend(change.map(|change| (maker, change)));
    }

    fn is_unknown(&self) -> bool {
        self.has_unknown || self.is_unsure || self.has_others && self.is_unseen
    }
}

/// What is needed to tell whose a change is.
struct Facts<'b> {
    back: Back<'b>,
    attribution: Attribution,
    /// Whether the run is that of a session, whose client reports all that its agent does.
    is_of_session: bool,
    /// Whether work of the run told that it began since the target.
    has_work: bool,
    /// The paths that others recorded since the target, and the run did not.
    named: BTreeSet<Vec<u8>>,
    /// Whether another run worked here since the target that no session made. What a session does outside of its prompts is a person's.
    is_beside: bool,
    /// Whose rollback, or the undo of it, left a checkpoint. What a person restored is not among them.
    restored: HashMap<CheckpointId, Maker>,
}

impl<'b> Facts<'b> {
    fn of(snapshot: &Snapshot<'_>, back: Back<'b>, until: Seq) -> Result<Self> {
        let Back { run, target, called_off, .. } = back;
        let attribution = Attribution::between(snapshot, &target.root, (target.seq, until), target.created_at)?
            .with_running(called_off);
        let runs: BTreeSet<&RunId> = attribution.looks.iter().filter_map(|look| look.link.run_id.as_ref()).collect();
        let mut is_beside = false;
        for other in runs.into_iter().filter(|other| **other != run.id) {
            is_beside = is_beside || !ic_session::is_own_run(snapshot, other)?;
        }
        let has_work = attribution.workers.iter().any(|one| one.run_id == run.id);
        let is_of_session = ic_session::is_own_run(snapshot, &run.id)?;
        let all = table::all(snapshot)?;
        let left_by = dispatch_changes::left_by(snapshot, &target.root, &all)?.into_iter();
        let maker = |one: &RollbackRecord| if one.run_id == run.id { Maker::Run } else { Maker::Others };
        let restored = left_by.map(|(look, one)| (look, maker(one))).collect();
        let own: BTreeSet<PathBuf> =
            code::files_of_run(snapshot, &run.id, target.seq)?.into_iter().map(|file| file.path).collect();
        let others_files = code::files_of_others(snapshot, std::slice::from_ref(&run.id), target.seq)?.into_iter();
        let is_here = |path: &PathBuf, project: &Path| root_of(project) == target.root && !own.contains(path);
        let named = others_files.filter(|(path, _, project)| is_here(path, project));
        let named = named.map(|(path, ..)| path_bytes(&path).to_vec()).collect();
        Ok(Self { back, attribution, is_of_session, has_work, named, is_beside, restored })
    }

    /// Whether all that changed here since the target goes back with the run. What changes between the prompts of a session is a person's.
    fn is_alone(&self) -> bool {
        !self.is_of_session
            && !self.is_beside
            && !self.attribution.has_cut_off()
            && self.attribution.workers.iter().all(|one| one.run_id == self.back.run.id)
    }

    /// What checkpoints show of these paths; `None`: of all.
    fn changes(
        &self,
        workspace: &Workspace<'_>,
        paths: Option<&BTreeSet<Vec<u8>>>,
    ) -> Result<BTreeMap<Vec<u8>, PathChanges>> {
        let mut changes: BTreeMap<Vec<u8>, PathChanges> = BTreeMap::new();
        for window in self.attribution.all().filter(|window| window.from.tree != window.to.tree) {
            let trees = (Some(&window.from.tree), Some(&window.to.tree));
            diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
                let is_asked = paths.is_none_or(|paths| paths.contains(&difference.path));
                // What a checkpoint left out has no content that could be merged.
                let is_content =
                    [&difference.before, &difference.after].into_iter().flatten().all(DiffState::is_content);
                if is_asked && is_content {
                    let maker = self.maker(&window, &difference.path);
                    changes.entry(difference.path.clone()).or_default().add(maker, Some(difference));
                }
                Ok(())
            })?;
        }
        Ok(changes)
    }

    /// What others did at these paths, and the new names that they gave to what the run left.
    fn gather(&self, workspace: &Workspace<'_>, changes: BTreeMap<Vec<u8>, PathChanges>) -> Result<OthersPaths> {
        let mut found = OthersPaths::default();
        for (path, PathChanges { all, has_run, .. }) in changes {
            if !has_run {
                found.theirs.insert(path);
                continue;
            }
            for (maker, change) in all {
                if maker == Maker::Run { found.mixed.add(change) } else { found.mixed.add_since(change) }
            }
        }
        self.add_renames(workspace, &mut found.mixed)?;
        Ok(found)
    }

    /// Adds the names that others gave since to what the run left.
    fn add_renames(&self, workspace: &Workspace<'_>, own: &mut Own) -> Result<()> {
        if own.known().is_empty() {
            return Ok(());
        }
        for window in self.attribution.windows() {
            let is_of_others = |path: &[u8]| self.maker(&window, path) != Maker::Run;
            own.add_renames(&workspace.objects, (&window.from.tree, &window.to.tree), is_of_others)?;
        }
        if let Some(last) = self.attribution.looks.last() {
            own.seen_last(last.tree);
        }
        Ok(())
    }

    /// A file of the run that others changed under a new name is one that others changed.
    fn follow_renames(&self, workspace: &Workspace<'_>, changes: &mut BTreeMap<Vec<u8>, PathChanges>) -> Result<()> {
        let mut own = Own::default();
        for (maker, change) in changes.values().flat_map(|of_path| &of_path.all) {
            if *maker == Maker::Run {
                own.add(change.clone());
            }
        }
        self.add_renames(workspace, &mut own)?;
        for (path, name) in own.renamed() {
            let has_others = changes.get(name).is_some_and(|of_path| of_path.has_others);
            if let Some(of_path) = changes.get_mut(path).filter(|_| has_others) {
                of_path.has_others = true;
            }
        }
        Ok(())
    }

    fn maker(&self, window: &Window<'_>, path: &[u8]) -> Maker {
        // The first that fits:
        //   a restore of a rollback       the run of that rollback
        //   a maker is known              the run, others, or unknown where both are makers
        //   between two calls of work     the work that was under way
        //   a restore by hand, or idle    `maker_without_work`
        if window.is_restore() {
            return self.restored.get(&window.to.id).copied().unwrap_or_else(|| self.maker_without_work(window, path));
        }
        let is_of_run = |one: &&Dispatch| one.run_id == self.back.run.id;
        let makers = window.makers(path);
        if !makers.is_empty() {
            return match makers.iter().filter(|one| is_of_run(one)).count() {
                0 => Maker::Others,
                all if all < makers.len() => Maker::Unknown,
                _ if window.is_unsure(path) => Maker::Unsure,
                _ => Maker::Run,
            };
        }
        if !window.is_idle() {
            // In the pause of a prompt its agent may have left a program running, or a person wrote: the plan warns of that.
            return match window.owners(path).iter().any(is_of_run) {
                // A call that edits files makes none but those that it names.
                true if window.is_unsure(path) => Maker::Unsure,
                true => Maker::Run,
                false => Maker::Others,
            };
        }
        self.maker_without_work(window, path)
    }

    /// Whose a change is that no work was under way for: in a place where one run alone is open that no session made, it is that run's. A
    /// script that advances a run may tell of no other work.
    fn maker_without_work(&self, window: &Window<'_>, path: &[u8]) -> Maker {
        let was_open = match self.back.run.completed_at {
            Some(at) => window.to.created_at <= at,
            None => true,
        };
        // A session tells all that its agent does, and a run that has ended does nothing more.
        if self.is_of_session || !was_open || self.named.contains(path) {
            Maker::Others
        } else if self.is_beside && self.has_work {
            // It told of other work, so it would have told of this.
            Maker::Person
        } else {
            // A script that only advances its run tells of nothing.
            Maker::Run
        }
    }

    fn why_unknown(&self) -> String {
        let mut others = self.attribution.workers.iter().map(|one| &one.run_id).filter(|id| **id != self.back.run.id);
        match others.next_back() {
            Some(other) => format!("changed while run {} worked here too, and may be its work", other.short()),
            None => "changed while another run was open here too, and may be its work".to_owned(),
        }
    }
}
