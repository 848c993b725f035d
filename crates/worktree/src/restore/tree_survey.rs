//! Looking at the tree before a restore: what it differs in, what must be saved of it, and what cannot be compared.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use ic_base::{Result, Seq};
use ic_checkpoint::diff::{self, DiffState, Difference, Finder};
use ic_checkpoint::manifest::{CheckpointManifest, PathText, Skipped};
use ic_checkpoint::record::{self, CheckpointKind, CheckpointLink, CheckpointRecord};
use ic_checkpoint::restore::plan::{self, Limits, RestoreNode, RestorePlan, is_at_or_below};
use ic_checkpoint::restore::{Strategy, database};
use ic_checkpoint::rootfs::RootDir;
use ic_checkpoint::tree::Reason;
use ic_ledger::events::Hash;

use super::super::capture::{GitPart, OpenCapture, Purpose, Shot};
use super::super::skipped_files;
use super::super::workspace::{Warning, Workspace};
use super::request::RestoreWatch;

/// Why a path stays whose content no store has any more.
const PURGED: &str = "its content was purged, or lost";

/// The current tree, and how it differs from a target.
pub(super) struct SurveyedTree<'w> {
    /// The picture: all that a restore may change is in it.
    pub(super) open: OpenCapture<'w>,
    /// The tree as a checkpoint of it would have it, with what rules hide left out.
    pub(super) usual: Hash,
    pub(super) differences: Vec<Difference>,
    /// Databases that change together with what lies beside them.
    pub(super) databases: Vec<plan::PlannedDatabase>,
}

/// What a restore is to bring about.
#[derive(Clone, Copy)]
pub(super) struct MeantChanges<'a> {
    pub(super) target: &'a CheckpointRecord,
    pub(super) strategy: Strategy,
    /// Only what the run recorded.
    pub(super) mine: bool,
    /// Not the target, but the tree without a piece of work.
    pub(super) is_without: bool,
}

/// What of a repository inside of the tree no checkpoint has.
const NESTED: &str =
    "it is a repository of its own: its files are restored, what its git has checked out or staged is not";

/// What of a submodule no checkpoint has, and git does.
const SUBMODULE: &str = "it is a submodule, whose history git keeps: `git submodule update` brings it back";

/// A warning of a preview in which ignore rules change: what the current rules hide was not compared.
fn rules_go_back(plan: &RestorePlan) -> Option<Warning> {
    let is_of_rules = |path: &PathText| path.0.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore");
    let step = plan.steps.iter().find(|step| is_of_rules(&step.path))?;
    Some(Warning {
        code: "rules_change",
        message: format!(
            "{} goes back: files that it hides now are not compared, and the report names those that then differ",
            String::from_utf8_lossy(&step.path.0)
        ),
    })
}

impl Workspace<'_> {
    /// Captures the current tree, with what a restore changes in it though a rule hides it. `taken`: a capture of a moment ago, which
    /// is used if nothing was recorded of the tree since; files that changed since then are left alone when it comes to writing. `own`:
    /// paths that the undone restore wrote.
    pub(super) fn compare(
        &self,
        target: &CheckpointRecord,
        (git, taken): (GitPart, Option<Shot>),
        limits: &mut Limits,
        own: &BTreeSet<Vec<u8>>,
        watch: &RestoreWatch,
    ) -> Result<SurveyedTree<'_>> {
        let link = CheckpointLink {
            name: None,
            message: Some(format!("before the restore of {}", target.id.short())),
            ..target.link.clone()
        };
        let purpose = Purpose { git, ..Purpose::new(CheckpointKind::Safety, link) };
        let newest = self.kernel.read(|snapshot| record::newest_look(snapshot, &self.root))?;
        let is_newest = |shot: &Shot| newest.as_ref().is_some_and(|newest| newest.id == *shot.id());
        let mut open = match taken.filter(is_newest) {
            Some(taken) => taken.into(),
            None => self.shoot_open(purpose.clone(), &watch.capture)?,
        };
        let usual = open.shot.captured.root;
        let mut differences = self.differences(&open.shot, target)?;
        let mut hidden = plan::must_be_saved(&differences, limits);
        hidden.extend(self.hidden_of(own.iter(), &open.shot)?);
        hidden.extend(self.made_in_git(target, &open.shot, limits)?);
        let root = RootDir::open(&self.root)?;
        let found = database::touched(&self.objects, &root, &usual, &target.tree, &differences, limits)?;
        // Side files of the target whose database stays: SQLite would replay them into a state to which they do not belong.
        for stranger in found.strangers {
            limits.held.insert(stranger, Reason::Database.as_str().to_owned());
        }
        // The files of a database in use may never hold its whole content at one moment: it is captured through SQLite, and refused when it
        // comes to writing.
        let unused: Vec<_> =
            found.databases.iter().filter(|one| !database::is_in_use(&root, &one.path.0)).cloned().collect();
        for one in &unused {
            // A database is read as its file is only where its log is asked for.
            hidden.extend(one.sides.iter().map(|side| side.0.clone()));
            hidden.insert(one.path.0.clone());
        }
        if !hidden.is_empty() {
            // Closed first, so that its stat cache is written: the second capture then reads only the forced paths.
            self.close(open)?;
            open = self.shoot_open(Purpose { force: hidden, ..purpose }, &watch.capture)?;
            differences = self.differences(&open.shot, target)?;
        }
        for one in &unused {
            self.take_along(one, &open.shot, limits)?;
        }
        Ok(SurveyedTree { open, usual, differences, databases: found.databases })
    }

    /// Lets a database's side files change with it. One that cannot be saved holds them all: what cannot be saved is not changed.
    fn take_along(&self, one: &plan::PlannedDatabase, shot: &Shot, limits: &mut Limits) -> Result<()> {
        for side in &one.sides {
            if let Some(DiffState::Passed(reason)) = diff::find(&self.objects, &shot.captured.root, &side.0)? {
                let name = String::from_utf8_lossy(&side.0).into_owned();
                let why = format!("{name} beside it is {}", reason.as_str());
                let all = one.sides.iter().chain([&one.path]);
                limits.held.extend(all.map(|path| (path.0.clone(), why.clone())));
                return Ok(());
            }
        }
        limits.sides.extend(one.sides.iter().map(|side| side.0.clone()));
        Ok(())
    }

    /// Files that the capture left out, that git has, and that the target does not have: they can be removed once they are saved.
    fn made_in_git(&self, target: &CheckpointRecord, shot: &Shot, limits: &Limits) -> Result<Vec<Vec<u8>>> {
        let mut there = Finder::new(&self.objects, &target.tree)?;
        let mut made = Vec::new();
        for gap in shot.manifest.skipped.iter().filter(|gap| gap.git.is_some()) {
            if limits.covers(&gap.path.0) && there.find(&gap.path.0)?.is_none() {
                made.push(gap.path.0.clone());
            }
        }
        Ok(made)
    }

    /// Those of the paths that the capture left out, except in git's own directories and in the store.
    fn hidden_of<'p>(&self, paths: impl Iterator<Item = &'p Vec<u8>>, shot: &Shot) -> Result<BTreeSet<Vec<u8>>> {
        let mut hidden = BTreeSet::new();
        let mut finder = Finder::new(&self.objects, &shot.captured.root)?;
        for path in paths.filter(|path| !path.is_empty()) {
            let found = finder.find(path)?;
            if matches!(found, Some(DiffState::Passed(reason)) if !matches!(reason, Reason::Git | Reason::Store)) {
                hidden.insert(path.clone());
            }
        }
        Ok(hidden)
    }

    fn differences(&self, shot: &Shot, target: &CheckpointRecord) -> Result<Vec<Difference>> {
        let mut differences = Vec::new();
        // Also below names that one side left out: a rule that is newer than the target may hide what the target holds.
        diff::diff_into_hidden(&self.objects, &shot.captured.root, &target.tree, &mut |difference| {
            differences.push(difference);
            Ok(())
        })?;
        Ok(differences)
    }

    pub(super) fn plan(
        &self,
        differences: &[Difference],
        limits: &Limits,
        databases: Vec<plan::PlannedDatabase>,
        shot: &Shot,
        until: Seq,
        ties: Option<Hash>,
    ) -> Result<RestorePlan> {
        let mut uncaptured = BTreeSet::new();
        let newest = self.kernel.read(|snapshot| record::newest_of_root_until(snapshot, &self.root, until))?;
        let newest = newest.map(|checkpoint| checkpoint.tree);
        diff::diff(&self.objects, newest.as_ref(), Some(&shot.captured.root), &mut |difference| {
            uncaptured.insert(difference.path);
            Ok(())
        })?;
        let limits = &self.holding_purged(differences, limits)?;
        let mut plan = plan::plan(differences, limits, &|path| uncaptured.contains(path));
        // Known before names are tied together: a database that comes with its log is tied to no other.
        plan.databases = databases;
        if let Some(target) = ties {
            self.tie(&mut plan, limits, shot, &target)?;
        }
        let steps: BTreeSet<PathText> = plan.steps.iter().map(|step| step.path.clone()).collect();
        plan.databases.retain(|one| one.sides.iter().chain([&one.path]).any(|path| steps.contains(path)));
        plan.closed = self.closed(&plan, &shot.captured.root)?;
        for (path, why) in plan.not_kept.iter_mut().filter(|(_, why)| *why == plan::NO_HISTORY) {
            if self.has_history_of(path) {
                SUBMODULE.clone_into(why);
            }
        }
        Ok(plan)
    }

    /// Whether git has the repository of a submodule, which it keeps by its name: mostly the path.
    fn has_history_of(&self, path: &PathText) -> bool {
        let Some(dirs) = ic_ledger::git_dirs(&self.root) else { return false };
        let name = ic_ledger::path_from_bytes(&path.0);
        [dirs.git_dir, dirs.common_dir].iter().any(|place| place.join("modules").join(&name).join("HEAD").exists())
    }

    /// Limits that leave alone what the target has no content of any more: known before anything is written, so that the preview says it.
    fn holding_purged<'l>(&self, differences: &[Difference], limits: &'l Limits) -> Result<Cow<'l, Limits>> {
        let content = |state: &Option<DiffState>| match state {
            Some(DiffState::File { hash, .. }) => Some(*hash),
            _ => None,
        };
        // Where the content stands already, only looks change.
        let comes = |difference: &&Difference| content(&difference.before) != content(&difference.after);
        let coming = || differences.iter().filter(comes);
        let wanted: HashSet<Hash> = coming().filter_map(|difference| content(&difference.after)).collect();
        let purged = self.objects.purged_among(&wanted)?;
        if purged.is_empty() {
            return Ok(Cow::Borrowed(limits));
        }
        let is_gone = |difference: &&Difference| content(&difference.after).is_some_and(|hash| purged.contains(&hash));
        let mut limits = limits.clone();
        for difference in coming().filter(is_gone) {
            limits.held.insert(difference.path.clone(), PURGED.to_owned());
        }
        Ok(Cow::Owned(limits))
    }

    /// The directories above the steps that their owner may not write into, and that are no steps themselves.
    fn closed(&self, plan: &RestorePlan, now: &ic_ledger::events::Hash) -> Result<Vec<(PathText, u32)>> {
        let steps: BTreeSet<&[u8]> = plan.steps.iter().map(|step| step.path.0.as_slice()).collect();
        let parents: BTreeSet<&[u8]> = steps
            .iter()
            .filter_map(|path| path.iter().rposition(|b| *b == b'/').map(|at| &path[..at]))
            .filter(|parent| !steps.contains(parent))
            .collect();
        let mut above: BTreeSet<&[u8]> = BTreeSet::new();
        for path in &steps {
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
            above.extend(ends.map(|end| &path[..end]).filter(|parent| !steps.contains(parent)));
        }
        let mut closed = Vec::new();
        let mut finder = Finder::new(&self.objects, now)?;
        for parent in above {
            // Every directory above a step has to be entered. The one that the step is in has to be written into as well.
            if let Some(DiffState::Directory { mode, .. }) = finder.find(parent)?
                && (mode & 0o100 == 0 || parents.contains(parent) && mode & 0o300 != 0o300)
            {
                closed.push((PathText(parent.to_vec()), mode));
            }
        }
        Ok(closed)
    }

    /// Paths that cannot be compared with the target, because it or the capture has no content of them, and why. Paths that the plan
    /// names are not among them. `passed`: those that the caller named.
    pub(super) fn not_compared(
        &self,
        meant: &MeantChanges<'_>,
        shot: &Shot,
        limits: &Limits,
        plan: &RestorePlan,
        passed: Vec<(Vec<u8>, String)>,
    ) -> Result<Vec<(PathText, String)>> {
        let MeantChanges { target, strategy, mine, is_without } = *meant;
        if !strategy.has_files() {
            return Ok(Vec::new());
        }
        let mut then = CheckpointManifest::read(&self.objects, &target.manifest)?.skipped;
        let here: BTreeMap<&PathText, &Skipped> = shot.manifest.skipped.iter().map(|gap| (&gap.path, gap)).collect();
        // Files that did not change since the target are not reported.
        let is_same = |gap: &Skipped| {
            here.get(&gap.path).is_some_and(|now| skipped_files::compare(gap, now) == skipped_files::KnownContent::Same)
        };
        let same: BTreeSet<PathText> = then.extract_if(.., |gap| is_same(gap)).map(|gap| gap.path).collect();
        let now = shot.captured.skipped.iter().map(|(path, reason)| (path.clone(), reason.as_str().to_owned()));
        let now = now.filter(|(path, _)| !same.contains(&PathText(path.clone())));
        let gaps: BTreeMap<Vec<u8>, String> = then.into_iter().map(|gap| (gap.path.0, gap.reason)).chain(now).collect();
        let steps: BTreeSet<&[u8]> = plan.steps.iter().map(|step| step.path.0.as_slice()).collect();
        let is_named = |path: &[u8]| {
            steps.contains(path) || plan.skipped.iter().any(|(skipped, _)| is_at_or_below(path, &skipped.0))
        };
        // The undo of a whole restore is limited to the paths that it changed. Paths that cannot be compared are named anyway,
        // because it is not known whether the restore, or the one piece of work, changed them.
        let undoes_all = limits.only.is_some() && (strategy.has_git() || is_without) && !mine;
        let is_meant = |path: &[u8]| undoes_all || limits.covers(path);
        let mut open: Vec<(PathText, String)> = Vec::new();
        let mut here = Finder::new(&self.objects, &shot.captured.root)?;
        let mut there = Finder::new(&self.objects, &target.tree)?;
        for (path, reason) in gaps {
            if !is_meant(&path) || is_named(&path) {
                continue;
            }
            let (here, there) = (here.find(&path)?, there.find(&path)?);
            // A path that the target left out and both trees hold by now was read for this restore, and so it was compared.
            if [&here, &there].into_iter().flatten().any(|state| !state.is_content()) {
                open.push((PathText(path), reason));
            }
        }
        let nested = |path: &Vec<u8>| {
            !plan.skipped.iter().any(|(skipped, _)| skipped.0 == *path)
                && plan.steps.iter().any(|step| step.path.0 != *path && is_at_or_below(&step.path.0, path))
        };
        for path in shot.captured.nested_git.iter().filter(|path| nested(path)) {
            open.push((PathText(path.clone()), NESTED.to_owned()));
        }
        // Rules hide far more than is listed, but a path that the caller named is always reported.
        for (path, reason) in passed {
            if !plan.skipped.iter().chain(&open).any(|(listed, _)| listed.0 == path) {
                open.push((PathText(path), reason));
            }
        }
        Ok(open)
    }

    /// What goes less well with a plan than it says.
    pub(super) fn warnings_of(
        &self,
        target: &CheckpointRecord,
        plan: &RestorePlan,
        dry_run: bool,
    ) -> Result<Vec<Warning>> {
        let torn = self.unsettled_in(target, plan)?;
        let rules = rules_go_back(plan).filter(|_| dry_run);
        Ok(torn.into_iter().chain(rules).chain(self.in_use(plan, dry_run)?).collect())
    }

    /// A warning where the plan writes what never stood still when the target was taken.
    fn unsettled_in(&self, target: &CheckpointRecord, plan: &RestorePlan) -> Result<Option<Warning>> {
        let unsettled = CheckpointManifest::read(&self.objects, &target.manifest)?.unsettled;
        let is_written = |path: &&PathText| {
            plan.steps.iter().any(|step| step.path == **path && matches!(step.after, Some(RestoreNode::File { .. })))
        };
        let written: Vec<String> =
            unsettled.iter().filter(is_written).map(|path| String::from_utf8_lossy(&path.0).into_owned()).collect();
        Ok((!written.is_empty()).then(|| Warning {
            code: "unsettled",
            message: format!(
                "checkpoint {} may hold an inconsistent state of what changed while it was taken: {}",
                target.id.short(),
                written.join(", ")
            ),
        }))
    }

    /// Warnings about databases of the plan that a program has open now: the real call leaves them as they are and ends there, unless
    /// the program ends before. The real call names them when it comes to them.
    fn in_use(&self, plan: &RestorePlan, dry_run: bool) -> Result<Vec<Warning>> {
        if !dry_run {
            return Ok(Vec::new());
        }
        let root = RootDir::open(&self.root)?;
        // One without a log is no group of the plan's.
        let files = plan.steps.iter().filter(|step| matches!(step.before, Some(RestoreNode::File { .. })));
        let open = files.filter(|step| database::stands_in_use(&root, &step.path.0));
        let warning = |step: &plan::RestoreStep| Warning {
            code: "database_in_use",
            message: format!(
                "a program has the database {} open now: unless it is ended first, the database is not restored and the real call ends with exit 4",
                String::from_utf8_lossy(&step.path.0)
            ),
        };
        Ok(open.map(warning).collect())
    }

    /// Whether the target holds a path that the plan does not restore.
    pub(super) fn lacks_any(&self, target: &CheckpointRecord, plan: &RestorePlan) -> Result<bool> {
        for (path, _) in &plan.skipped {
            if diff::find(&self.objects, &target.tree, &path.0)?.is_some_and(|state| state.is_content()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
