//! The histories of paths that one piece of work and others changed: the content without the work, and with it.

mod rollbacks;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use ic_base::{CheckpointId, DispatchId, Result, Seq, Timestamp};
use ic_checkpoint::diff::{self, DiffState, Difference};
use ic_checkpoint::manifest::PathText;
use ic_checkpoint::objects::hash_of;
use ic_checkpoint::restore::reverse::{ChangeOwner, Own, Past, ReplayedPath, without_returns};
use ic_kernel::journal::Choices;
use ic_kernel::journal::table;
use ic_ledger::{Snapshot, path_from_bytes};
use ic_session::attribution::{Attribution, Window};
use ic_worktree::Workspace;

use super::others_commits::{MadeCommits, OthersCommits};
use super::own_changes::{owners, recorded_by};
use super::parcels::{Parcels, Returned, brought};
use super::span::WorkSpan;
use rollbacks::{Undo, decided, merged, restored, undos};

pub(crate) use rollbacks::{left_by, made_again, reverts, undo_begun};

/// The work whose paths are replayed.
pub(super) struct PathWork<'w> {
    /// Its dispatches, oldest first.
    pub(super) ids: &'w [DispatchId],
    /// The checkpoint with which it began.
    pub(super) began: (Seq, Timestamp),
    /// What commits of others have of it.
    pub(super) by_others: &'w OthersCommits,
    /// For work that was undone and comes back: the event since which the tree was without it.
    pub(super) undone_at: Option<Seq>,
    /// For work that was undone and comes back: what was decided when it was undone.
    pub(super) decided: Option<Choices>,
}

/// What is needed to tell whose a change is.
struct Facts {
    undos: Vec<Undo>,
    /// What git took out of the tree of the work of each of these undos.
    parcels: OnceCell<Vec<Parcels>>,
    /// The makers of what restores left, and effects of undos of works, by the checkpoint that shows it. For a checkpoint that is
    /// not in it nothing is known.
    restored: HashMap<CheckpointId, ChangeOwner>,
    /// The paths that a rollback of a run did not restore to its point, because others had changed them: there the run's changes were
    /// merged out. By the checkpoint that its restore left.
    merged: HashMap<CheckpointId, BTreeSet<PathText>>,
    attribution: Attribution,
}

/// The history of a path, oldest first.
type History = Vec<Past>;

/// The histories of paths, and texts of their states that no checkpoint may hold.
type Histories = (BTreeMap<Vec<u8>, History>, Vec<Vec<u8>>);

/// Adds to what is known of the work what others did to the same paths, and which of that is undone.
pub(super) fn replay(workspace: &Workspace<'_>, work: &PathWork<'_>, changes: &mut Own) -> Result<()> {
    let known = changes.known();
    let has_met = changes.met().next().is_some();
    let facts = workspace.kernel.read(|snapshot| facts(snapshot, workspace, work, has_met))?;
    let Some(facts) = facts.filter(|_| !known.is_empty()) else { return Ok(()) };
    // The state when the work was undone, for paths that the undo left: others may have reset them, and have been undone themselves since.
    let unchanged: BTreeSet<Vec<u8>> = known.iter().filter(|path| changes.pairs(path).is_empty()).cloned().collect();
    let then = match work.undone_at {
        Some(_) if !unchanged.is_empty() => histories(workspace, work, &facts, &unchanged, work.undone_at)?.0,
        _ => BTreeMap::new(),
    };
    let (all, texts) = histories(workspace, work, &facts, &known, None)?;
    for text in texts {
        changes.add_text(text);
    }
    for (path, history) in all {
        if is_met(&history) {
            let then = then.get(&path).map_or(&[][..], Vec::as_slice);
            let of_it = work.decided.as_ref().and_then(|choices| choices.about(&path));
            let undone = work.undone_at.map(|at| ReplayedPath { at, then, decided: of_it });
            changes.replay(&workspace.objects, &path, &history, decided(&facts.undos, &path), undone)?;
        }
    }
    let parents = known.iter().flat_map(|path| parents_of(path)).filter(|path| !known.contains(path));
    for (path, history) in histories(workspace, work, &facts, &parents.collect(), None)?.0 {
        if is_of_undone(&history) {
            changes.leave_if_empty(path);
        }
    }
    Ok(())
}

/// The directories above a path, without the root.
fn parents_of(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.map(|end| path[..end].to_vec())
}

/// Whether a directory was made by work that is undone, and nothing else happened to it: its undo left it only for what others had in it.
fn is_of_undone(history: &History) -> bool {
    let is_made = history.first().is_some_and(|first| first.change.0.is_none());
    is_made && history.iter().all(|past| past.whose == ChangeOwner::Undone)
}

/// Returns `None` where no other work and no undo affected the paths.
fn facts(
    snapshot: &Snapshot<'_>,
    workspace: &Workspace<'_>,
    work: &PathWork<'_>,
    has_met: bool,
) -> Result<Option<Facts>> {
    let all = table::all(snapshot)?;
    let undos = undos(snapshot, workspace, work, &all)?;
    if undos.is_empty() && !has_met && work.undone_at.is_none() {
        return Ok(None);
    }
    // An undo may reach further back than the work. Its changes are replayed from their beginning, too.
    let began = undos.iter().map(|undo| undo.began).fold(work.began, Ord::min);
    let until = ic_ledger::events::head(snapshot)?.0;
    let mut attribution = Attribution::between(snapshot, &workspace.root, (began.0, until), began.1)?;
    if let Some(choices) = &work.decided {
        attribution = attribution.as_decided(owners(choices));
    }
    let restored = restored(snapshot, workspace, &all)?;
    let merged = merged(snapshot, &workspace.root, &all)?;
    Ok(Some(Facts { undos, parcels: OnceCell::new(), restored, merged, attribution }))
}

/// The histories of these paths: complete, or up to an event, as if that was now.
fn histories(
    workspace: &Workspace<'_>,
    work: &PathWork<'_>,
    facts: &Facts,
    known: &BTreeSet<Vec<u8>>,
    until: Option<Seq>,
) -> Result<Histories> {
    let (mut histories, mut texts): Histories = Default::default();
    for window in facts.attribution.all().filter(|window| until.is_none_or(|until| window.to.seq <= until)) {
        let trees = (Some(&window.from.tree), Some(&window.to.tree));
        diff::diff(&workspace.objects, trees.0, trees.1, &mut |difference| {
            if known.contains(&difference.path) {
                let whose = whose(&window, &difference, work, facts, until);
                if matches!(whose, ChangeOwner::Person | ChangeOwner::Others)
                    && !window.is_restore()
                    && let Some((parts, more)) =
                        returned(workspace, (work, facts), (window.to.seq, whose), (&difference, until))?
                {
                    texts.extend(more);
                    histories.entry(difference.path).or_default().extend(parts);
                    return Ok(());
                }
                let made = work.by_others.made(&difference.path, difference.after.as_ref());
                let brought = match made {
                    MadeCommits::AfterCommit(text) if whose == ChangeOwner::Work => Some(brought(&difference, text)),
                    _ => None,
                };
                let Difference { path, before, after } = difference;
                let history = histories.entry(path).or_default();
                let past = |whose, change| Past { seq: window.to.seq, whose, change };
                // Two changes in one: what the commit brought, then what the work made of it.
                if brought.is_some() {
                    history.push(past(ChangeOwner::Others, (before, brought.clone())));
                    history.push(past(whose, (brought, after)));
                } else {
                    history.push(past(whose, (before, after)));
                }
            }
            Ok(())
        })?;
    }
    if let Some(last) = facts.attribution.looks.last().filter(|_| until.is_none()) {
        for unseen in work.by_others.parcels.unseen(workspace, &last.tree)? {
            let by = (last.seq, ChangeOwner::Person);
            if known.contains(&unseen.path)
                && let Some((parts, more)) = returned(workspace, (work, facts), by, (&unseen, until))?
            {
                texts.extend(more);
                histories.entry(unseen.path).or_default().extend(parts);
            }
        }
    }
    // A path that was taken away and came back unchanged, as by a stash or a switch, has no new maker.
    for (path, history) in &mut histories {
        if until.is_none() {
            history.extend(returned_unseen(workspace, path, history));
        }
        without_returns(history);
    }
    Ok((histories, texts))
}

/// What a change of others was in its parts, if git returned something of the work with it, or of work that is undone; and the texts in
/// between.
fn returned(
    workspace: &Workspace<'_>,
    (work, facts): (&PathWork<'_>, &Facts),
    (seq, by): (Seq, ChangeOwner),
    (difference, at): (&Difference, Option<Seq>),
) -> Result<Option<(History, Vec<Vec<u8>>)>> {
    let (mut parts, mut texts) = (vec![(by, difference.clone())], Vec::new());
    let mut split = |parcels: &Parcels, owner| {
        let mut found = Vec::new();
        for (whose, part) in std::mem::take(&mut parts) {
            // A part may be of several: a squash has what two prompts committed.
            match parcels.returned(workspace, &part, &texts) {
                Returned::Parts(parts, more) if whose == by => {
                    texts.extend(more);
                    found.extend(parts.into_iter().map(|(is_its, part)| (if is_its { owner } else { by }, part)));
                }
                _ => found.push((whose, part)),
            }
        }
        parts = found;
    };
    split(&work.by_others.parcels, ChangeOwner::Work);
    for (undo, parcels) in facts.undos.iter().zip(facts.parcels_of_undos(workspace)?) {
        if undo.stands_at(at) {
            split(parcels, ChangeOwner::Undone);
        }
    }
    let past = |(whose, part): (ChangeOwner, Difference)| Past { seq, whose, change: (part.before, part.after) };
    Ok((parts.len() > 1 || parts[0].0 != by).then(|| (parts.into_iter().map(past).collect(), texts)))
}

impl Facts {
    fn parcels_of_undos(&self, workspace: &Workspace<'_>) -> Result<&[Parcels]> {
        if let Some(known) = self.parcels.get() {
            return Ok(known);
        }
        let mut all = Vec::new();
        for undo in &self.undos {
            let (attribution, recorded) = workspace.kernel.read(|snapshot| {
                // Where checkpoints are pruned, its work cannot be told from that of others.
                let span = WorkSpan::of(snapshot, &workspace.root, &undo.work).ok();
                let attribution = span.map(|span| span.attribution(snapshot, &workspace.root)).transpose()?;
                Ok((attribution, recorded_by(snapshot, &undo.work)?))
            })?;
            let of = |found| Parcels::of(workspace, (&found, &undo.work), &recorded);
            all.push(attribution.map(of).transpose()?.unwrap_or_default());
        }
        Ok(self.parcels.get_or_init(|| all))
    }
}

/// The change with which a person returned a path to what it was before their own changes, if no checkpoint shows that yet.
fn returned_unseen(workspace: &Workspace<'_>, path: &[u8], history: &History) -> Option<Past> {
    let last = history.last().filter(|past| past.whose == ChangeOwner::Person)?;
    let file = workspace.root.join(path_from_bytes(path));
    let is_here = |state: &Option<DiffState>| match state {
        Some(DiffState::File { hash, size, .. }) => {
            let is_alike = file.symlink_metadata().is_ok_and(|is| is.is_file() && is.len() == *size);
            is_alike && std::fs::read(&file).is_ok_and(|text| hash_of(&text) == *hash)
        }
        Some(_) => false,
        None => file.symlink_metadata().is_err(),
    };
    let own = history.iter().rev().take_while(|past| past.whose == ChangeOwner::Person);
    let back = own.map(|past| &past.change.0).find(|state| is_here(state))?;
    let change = (last.change.1.clone(), back.clone());
    (!is_here(&last.change.1)).then_some(Past { seq: last.seq, whose: ChangeOwner::Person, change })
}

fn whose(
    window: &Window<'_>,
    difference: &Difference,
    work: &PathWork<'_>,
    facts: &Facts,
    at: Option<Seq>,
) -> ChangeOwner {
    let restored = facts.restored.get(&window.to.id).copied();
    let is_merged =
        || facts.merged.get(&window.to.id).is_some_and(|paths| paths.iter().any(|path| path.0 == difference.path));
    // At this path the cut merged out the work of its run and did not restore the point's content. Neither that work
    // nor this merge counts (ADR 0058).
    if window.is_restore() && matches!(restored, Some(ChangeOwner::Back { .. })) && is_merged() {
        return ChangeOwner::Undone;
    }
    if window.is_restore() {
        return restored.unwrap_or(ChangeOwner::Others);
    }
    let makers = window.makers(&difference.path);
    let is_of = |ids: &[DispatchId]| !makers.is_empty() && makers.iter().all(|maker| ids.contains(&maker.id));
    let made = || work.by_others.made(&difference.path, difference.after.as_ref());
    // The undo that is undone took what may be the work's for its own, and so it comes back.
    let is_taken =
        || facts.attribution.is_sure(&difference.path) && makers.iter().any(|one| work.ids.contains(&one.id));
    if is_of(work.ids) || is_taken() {
        if matches!(made(), MadeCommits::ByWork | MadeCommits::AfterCommit(_)) {
            ChangeOwner::Work
        } else {
            ChangeOwner::Others
        }
    } else if facts.undos.iter().any(|undo| undo.covers(window, at) && is_of(&undo.work)) {
        ChangeOwner::Undone
    } else if makers.is_empty() {
        // No call made it: the effects of an undo did, or a person.
        restored.unwrap_or(ChangeOwner::Person)
    } else {
        ChangeOwner::Others
    }
}

/// Whether the path has another history than that of the work alone: others changed it after the work, or it held what is undone by now.
fn is_met(history: &History) -> bool {
    let first = history.iter().position(|past| past.whose == ChangeOwner::Work);
    first.is_some_and(|first| {
        history[..first].iter().any(|past| past.whose == ChangeOwner::Undone)
            || history[first..].iter().any(|past| past.whose != ChangeOwner::Work)
    })
}
