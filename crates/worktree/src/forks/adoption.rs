//! Merging what a fork became into this work tree: the undo of a piece of work, the other way round.

use std::collections::BTreeMap;

use ic_base::{CheckpointId, Code, Diagnosis, RestoreId, Result};
use ic_checkpoint::capture::CaptureProgress;
use ic_checkpoint::diff::{DiffState, Difference, Finder};
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::record::{CheckpointKind, CheckpointLink};
use ic_checkpoint::restore::apply::{self, ApplyProgress};
use ic_checkpoint::restore::database;
use ic_checkpoint::restore::plan::{Limits, RestorePlan, plan};
use ic_checkpoint::restore::reverse::{LineDecision, LookPair, Now, Own, reverse};
use ic_checkpoint::rootfs::{EntryState, RootDir};
use ic_checkpoint::tree::Reason;
use ic_ledger::events::Hash;
use serde_json::{Value, json};

use super::super::capture::{Purpose, Shot};
use super::super::restore::{Conflict, differences};
use super::super::workspace::Workspace;
use super::fork::Fork;

/// What an adoption does, or would do.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The changes of paths.
    pub plan: RestorePlan,
    /// Paths that both changed so that a decision was needed, and how.
    pub decided: Vec<Conflict>,
    /// Paths that stay as they are here, or in part, and why.
    pub left: Vec<(PathText, String)>,
    /// The checkpoint of the fork that was adopted; `None` for a dry run, and where something could not come.
    pub theirs: Option<CheckpointId>,
}

/// Merges what a fork became into a tree. `place`: the workspace of the fork. A file that is here as the fork began with it becomes that of
/// the fork; text that both changed is merged.
///
/// What is here is captured before anything is written; nothing is written in a dry run. A file that changes during the adoption is left alone
/// and named. If this is killed, the same call again does the rest. Errors: `file_conflict` where both changed the same and nothing is
/// decided, and for an unfinished fork; those of a capture. Then nothing was written.
pub fn adopt(
    here: &Workspace<'_>,
    place: &Workspace<'_>,
    fork: &Fork,
    decision: Option<LineDecision>,
    dry_run: bool,
) -> Result<Adoption> {
    let base = fork.require_unadopted()?;
    // Recorded, so that its content stays until it is here, and until the next adoption.
    let taken = if dry_run { None } else { Some(place.record_look(None)?) };
    let theirs = taken.as_ref().map_or_else(|| place.tree_now(true), |taken| Ok(taken.tree))?;
    // Alone in the tree: a capture of another call must not see one half of it.
    let _held = here.lock(LockMode::Exclusive)?;
    let shot =
        here.shoot(Purpose::new(CheckpointKind::Auto, CheckpointLink::default()), &CaptureProgress::default())?;
    let root = RootDir::open(&here.root)?;
    // Both trees can be read from here: one kernel opened both workspaces, so they have one store.
    let made = made_by(here, &base.tree, &theirs)?;
    let mut merged = merge(here, &root, &shot, &made, decision).map_err(|conflicts| match conflicts {
        Refused::Undecided(conflicts) => in_conflict(&conflicts, &fork.name),
        Refused::Error(error) => error,
    })?;
    merged.leave_databases(&root);
    let mut adoption = merged.adoption(here.uncaptured_in_fork(&base.tree, &theirs)?);
    if decision == Some(LineDecision::Take) {
        adoption.leave_unwritten();
    }
    if dry_run {
        return Ok(adoption);
    }
    if !adoption.plan.steps.is_empty() {
        here.kernel.write(|tx, now| shot.record_unless_known(tx, now, &here.root, None))?;
    }
    // What is written comes from the store, so that a file is replaced by a whole one or not at all.
    here.keep_texts(&merged.texts)?;
    // The same name at each attempt: what a killed one left beside its files is found again.
    let id = RestoreId::from_ledger(base.id.as_str().to_owned());
    apply::sweep(&root, &adoption.plan, &id);
    let outcome = apply::apply(&here.objects, &root, &adoption.plan, &id, &ApplyProgress::default());
    adoption.left.extend(outcome.failed);
    // What could not come comes with the next adoption, so that one must not begin after it.
    let is_decided = |path: &PathText| adoption.decided.iter().any(|one| one.path == *path);
    let is_whole = match decision {
        Some(LineDecision::Leave) => adoption.left.iter().all(|(path, _)| is_decided(path)),
        Some(LineDecision::Take) | None => adoption.left.is_empty(),
    };
    adoption.theirs = taken.filter(|_| is_whole).map(|taken| taken.id);
    Ok(adoption)
}

/// Removes the temporary files that a killed adoption of a fork left here, beside what the fork changed.
pub fn sweep(here: &Workspace<'_>, place: &Workspace<'_>, fork: &Fork) -> Result<()> {
    let (base, root) = (fork.require_base()?, RootDir::open(&here.root)?);
    let id = RestoreId::from_ledger(base.id.as_str().to_owned());
    let made = differences(here, &base.tree, &place.tree_now(true)?)?;
    apply::sweep(&root, &plan(&made, &Limits::default(), &|_| false), &id);
    Ok(())
}

impl Adoption {
    /// Names what was decided to come, and cannot be written: something of another kind is in its place here.
    fn leave_unwritten(&mut self) {
        let is_written = |path: &PathText| self.plan.steps.iter().any(|step| step.path == *path);
        let is_named = |path: &PathText| self.left.iter().any(|(left, _)| left == path);
        let unwritten = self.decided.iter().filter(|one| !is_written(&one.path) && !is_named(&one.path));
        let why = "it cannot be written here: something else is in its place";
        self.left.extend(unwritten.map(|one| (one.path.clone(), why.to_owned())).collect::<Vec<_>>());
    }
}

/// By path, what a fork began with and what it made of it.
type Made = BTreeMap<Vec<u8>, LookPair>;

fn made_by(here: &Workspace<'_>, base: &Hash, theirs: &Hash) -> Result<Made> {
    let made = differences(here, base, theirs)?.into_iter();
    Ok(made.map(|one| (one.path, (one.before, one.after))).collect())
}

/// Why nothing is merged.
enum Refused {
    Undecided(Vec<Conflict>),
    Error(Diagnosis),
}

impl From<Diagnosis> for Refused {
    fn from(error: Diagnosis) -> Self {
        Self::Error(error)
    }
}

/// How this tree differs from the one with what the fork made.
struct Merged {
    differences: BTreeMap<Vec<u8>, Difference>,
    decided: Vec<Conflict>,
    left: Vec<(PathText, String)>,
    texts: Vec<Vec<u8>>,
}

fn merge(
    here: &Workspace<'_>,
    root: &RootDir,
    shot: &Shot,
    made: &Made,
    decision: Option<LineDecision>,
) -> std::result::Result<Merged, Refused> {
    let mut own = Own::default();
    for (path, (before, after)) in made {
        // Turned around: what `reverse` takes out is the way from the fork's state to its base, so the fork's state comes in.
        own.add(Difference { path: path.clone(), before: after.clone(), after: before.clone() });
    }
    let exact = &shot.captured.root;
    // No path was forced into the picture, so the exact tree is the usual one. Databases are left out of the plan later.
    let mut reversed = reverse(&here.objects, Now { root, exact, usual: exact, databases: &[] }, &own)?;
    let mut finder = Finder::new(&here.objects, exact)?;
    let mut decided = Vec::new();
    for (path, why) in std::mem::take(&mut reversed.conflicts) {
        let reason = reason(made, &path, finder.find(&path)?.is_some(), &why);
        decided.push(Conflict { path: PathText(path), reason });
    }
    let mut left = Vec::new();
    for (path, why) in std::mem::take(&mut reversed.parts) {
        let reason = reason(made, &path, finder.find(&path)?.is_some(), &why);
        left.push((PathText(path), reason));
    }
    if decision.is_none() && !decided.is_empty() {
        return Err(Refused::Undecided(decided));
    }
    let mut merged = Merged {
        differences: reversed.differences.into_iter().map(|one| (one.path.clone(), one)).collect(),
        left,
        texts: reversed.texts,
        decided,
    };
    if decision == Some(LineDecision::Leave) {
        merged.keep_own(reversed.without_lines);
    }
    Ok(merged)
}

/// What both did to a path, for people. `why`: what the merge says; it has the lines.
fn reason(made: &Made, path: &[u8], is_here: bool, why: &str) -> String {
    match made.get(path) {
        Some((Some(was), None)) => {
            match made.iter().find(|(_, (before, after))| before.is_none() && after.as_ref() == Some(was)) {
                Some((name, _)) => {
                    let name = String::from_utf8_lossy(name);
                    format!("the fork renamed it to {name}, and it was changed here: both stay")
                }
                None => "the fork removed it, and it was changed here".to_owned(),
            }
        }
        Some((Some(_), Some(_))) if !is_here => "the fork changed it, and it was removed here".to_owned(),
        Some((None, Some(_))) => "both made it".to_owned(),
        _ => why.replacen("others changed", "both changed", 1).replace(" since", ""),
    }
}

impl Merged {
    /// Leaves the paths in conflict unchanged, or lets only the lines stay that both changed.
    fn keep_own(&mut self, mut without_lines: BTreeMap<Vec<u8>, DiffState>) {
        for Conflict { path, reason } in &self.decided {
            match (self.differences.get_mut(&path.0), without_lines.remove(&path.0)) {
                (Some(difference), Some(state)) if difference.before.as_ref() != Some(&state) => {
                    difference.after = Some(state);
                }
                _ => {
                    self.differences.remove(&path.0);
                }
            }
            self.left.push((path.clone(), format!("kept unchanged: {reason}")));
        }
    }

    /// Leaves databases that a program uses here, or that have a log beside them: another content would be read with that log.
    fn leave_databases(&mut self, root: &RootDir) {
        let stands = |path: &[u8]| root.state(path).is_ok_and(|state| !matches!(state, EntryState::Absent));
        let is_used =
            |path: &Vec<u8>| database::stands_in_use(root, path) || database::sides_of(path).any(|side| stands(&side));
        let used: Vec<Vec<u8>> = self.differences.keys().filter(|path| is_used(path)).cloned().collect();
        for path in used {
            self.differences.remove(&path);
            let why = "a program may use this database, or its log is beside it: end the program, and adopt again";
            self.left.push((PathText(path), why.to_owned()));
        }
    }

    fn adoption(&mut self, uncaptured: Vec<Vec<u8>>) -> Adoption {
        let differences: Vec<Difference> = std::mem::take(&mut self.differences).into_values().collect();
        let plan = plan(&differences, &Limits::default(), &|_| false);
        let mut left = std::mem::take(&mut self.left);
        left.extend(plan.skipped.iter().cloned());
        let why = "no checkpoint holds what the fork has: copy it yourself";
        left.extend(uncaptured.into_iter().map(|path| (PathText(path), why.to_owned())));
        Adoption { plan, decided: std::mem::take(&mut self.decided), left, theirs: None }
    }
}

impl Workspace<'_> {
    /// Stores merged texts, which no checkpoint holds yet.
    fn keep_texts(&self, texts: &[Vec<u8>]) -> Result<()> {
        if texts.is_empty() {
            return Ok(());
        }
        let writer = self.objects.writer(self.kernel.context.now())?;
        for text in texts {
            writer.put_reader(&mut text.as_slice())?;
        }
        writer.finish().map(drop)
    }

    /// What came to stand in a fork and is in no checkpoint, but for what a rule ignores: secrets, large files, repositories.
    fn uncaptured_in_fork(&self, base: &Hash, theirs: &Hash) -> Result<Vec<Vec<u8>>> {
        let is_meant = |path: &[u8], reason: Reason| reason.is_a_gap() || reason == Reason::Git && path != b".git";
        let before = self.left_out(base, is_meant)?;
        let mut after = self.left_out(theirs, is_meant)?;
        after.retain(|path| before.binary_search(path).is_err());
        Ok(after)
    }
}

fn in_conflict(conflicts: &[Conflict], name: &str) -> Diagnosis {
    let shown: Vec<String> =
        conflicts.iter().map(|one| format!("{} ({})", String::from_utf8_lossy(&one.path.0), one.reason)).collect();
    let listed: Vec<Value> = conflicts
        .iter()
        .map(|one| json!({ "path": String::from_utf8_lossy(&one.path.0), "reason": one.reason }))
        .collect();
    let message =
        format!("This work tree and the fork {name} changed the same: {}. Nothing was changed.", shown.join(", "));
    Diagnosis::new(Code::FileConflict, message).detail("conflicts", listed).hint(format!(
        "keep what is here: ic adopt {name} --ours; or take what the fork has: ic adopt {name} --theirs; everything else is merged in both"
    ))
}
