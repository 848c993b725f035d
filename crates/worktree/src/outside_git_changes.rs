//! What others than the work that goes back did to git: between two pieces of it, and since.

use std::path::{Path, PathBuf};

use ic_base::{CheckpointId, Code, Diagnosis, Result, RunId, Seq};
use ic_checkpoint::git::{self, GitRestorePlan, GitState, MovedByOthers, OutsideChanges};
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::record::{self, CheckpointRecord};
use ic_dispatch::dispatch;
use ic_dispatch::{Dispatch, code};
use ic_kernel::journal::table;
use ic_ledger::Snapshot;
use ic_session::attribution::{Attribution, Window};
use ic_session::call;

use super::workspace::Workspace;

/// When others changed something, for people.
pub(super) const WHILE_IT_RESTED: &str = "while this work was not under way";

/// The work of a run that began after an event; empty if not all of it was told by its calls.
fn told_since(snapshot: &Snapshot<'_>, run: &RunId, since: Seq) -> Result<Vec<Dispatch>> {
    let mut work = dispatch::of_run(snapshot, run)?;
    work.retain(|work| work.place() > since);
    let told = call::told_by_calls(snapshot, work.iter().map(|work| &work.id))?;
    // One work that tells no calls is enough: it may have changed git at any time.
    Ok(if work.iter().all(|work| told.contains(&work.id)) { work } else { Vec::new() })
}

/// Whether work has ended. Work that a rollback cancelled counts as running until the rollback is over: the real call must decide as its
/// preview did.
fn has_ended(snapshot: &Snapshot<'_>, work: &Dispatch) -> Result<bool> {
    let Some(by) = &work.rolled_back_by else { return Ok(work.finished_at.is_some()) };
    let by = table::get(snapshot, by)?;
    let is_called_off = work.finished_seq.is_some_and(|end| end > by.seq);
    Ok(work.finished_at.is_some() && (by.status.is_over() || !is_called_off))
}

/// Whether all work of a run that began after an event was told by its calls, and has ended.
fn is_told_and_ended(snapshot: &Snapshot<'_>, run: &RunId, since: Seq) -> Result<bool> {
    let work = told_since(snapshot, run, since)?;
    let ended = work.iter().map(|work| has_ended(snapshot, work)).collect::<Result<Vec<_>>>()?;
    Ok(!work.is_empty() && ended.iter().all(|has_ended| *has_ended))
}

/// A time between two looks at git in which no work of a run was under way.
struct Rest<'a> {
    from: &'a CheckpointRecord,
    to: &'a CheckpointRecord,
    /// Git was changed by a restore alone, not by others.
    is_restore: bool,
}

/// The times in which git changed though no work of a run was under way, oldest first. The looks of calls are at files alone.
fn rests<'a>(known: &'a Attribution, run: &RunId) -> Vec<Rest<'a>> {
    //   look ── call ── call ── look ── restored ── look     looks of calls do not say what git was,
    //    └─────── stretch ───────┘└─────┘└───────┘            so a stretch leads from one other look to the next
    let windows: Vec<Window<'_>> = known.all().collect();
    let mut found = Vec::new();
    let mut begin = 0;
    for (end, to) in known.looks.iter().enumerate().skip(1).filter(|(_, look)| !look.link.of_call) {
        let (from, within) = (&known.looks[begin], &windows[begin..end]);
        let is_restore = within.last().is_some_and(Window::is_restore);
        if (is_restore || !within.iter().any(|window| window.may_be_of(run))) && !from.has_git_as(to) {
            found.push(Rest { from, to, is_restore });
        }
        begin = end;
    }
    found
}

/// Errors: `foreign_commits` for a branch, the stash or the index that others changed. `when`: for people.
pub(super) fn refuse_moved(
    target: &CheckpointRecord,
    plan: &GitRestorePlan,
    (wanted, current, others): (&GitState, &GitState, &[OutsideChanges]),
    when: &str,
) -> Result<()> {
    let Some(moved) = git::moved_by_others(plan, wanted, current, others) else { return Ok(()) };
    let (what, forced) = match &moved {
        MovedByOthers::Branch(name) => (format!("The branch {name} was moved"), "move it back anyway"),
        MovedByOthers::Stash => ("The stash was changed".to_owned(), "put it back as it was anyway"),
        MovedByOthers::Index => {
            ("What is staged was changed".to_owned(), "take it off the index anyway, a checkpoint keeps it")
        }
    };
    Err(Diagnosis::new(Code::ForeignCommits, format!("{what} {when}, by you or by others; nothing was changed."))
        .hint(format!(
            "restore the files alone: ic checkpoint restore {} --strategy files-only --yes; or {forced}: --force",
            target.id.short()
        ))
        .detail("moved", moved.word()))
}

impl Workspace<'_> {
    /// What others did to git in this work tree since a checkpoint of a run was taken, oldest first, as far as that is known. It is
    /// what changed while no work of the run was under way, except by restores. If work of the run reports no calls, it may have
    /// changed git at any time, and nothing is known. `brought`: the state that the undone restore left; then the result is what
    /// changed since.
    pub(super) fn git_of_others(
        &self,
        target: &CheckpointRecord,
        current: &GitState,
        brought: Option<&CheckpointId>,
    ) -> Result<Vec<OutsideChanges>> {
        if let Some(id) = brought {
            return Ok(self.git_between(id, None, current)?.into_iter().collect());
        }
        let elsewhere: Vec<_> = ic_ledger::other_work_trees(&self.root).into_iter().map(|other| other.top).collect();
        let own = self.rests_of(target, current, &[&self.root])?;
        if elsewhere.is_empty() {
            return Ok(own);
        }
        // Work trees of a repository have its branches and its stash in common: each look at one tells of those of all.
        let roots: Vec<&Path> = [&self.root].into_iter().chain(&elsewhere).map(PathBuf::as_path).collect();
        let shared = self.rests_of(target, current, &roots)?;
        let own = own.into_iter().map(OutsideChanges::of_the_index);
        Ok(own.chain(shared.into_iter().map(OutsideChanges::of_refs)).collect())
    }

    /// What others did to git from one checkpoint to another, or until now, between which nothing but them changed it; `None`: one has no
    /// state of git.
    pub(super) fn git_between(
        &self,
        from: &CheckpointId,
        until: Option<&CheckpointId>,
        current: &GitState,
    ) -> Result<Option<OutsideChanges>> {
        let at = |id| self.git_at(&self.kernel.read(|snapshot| record::get(snapshot, id))?);
        let after = until.map_or_else(|| Ok(Some(current.clone())), at)?;
        Ok(at(from)?.zip(after).map(|(before, after)| OutsideChanges { before, after }))
    }

    /// What git was before and after each time in which no work of the run was under way in these roots, of which the first is this one.
    fn rests_of(&self, target: &CheckpointRecord, current: &GitState, roots: &[&Path]) -> Result<Vec<OutsideChanges>> {
        let Some(run) = &target.link.run_id else { return Ok(Vec::new()) };
        let known = self.kernel.read(|snapshot| {
            let is_known = is_told_and_ended(snapshot, run, target.seq)?;
            let all = || Attribution::of_roots(snapshot, roots, (target.seq, Seq::MAX), target.created_at);
            is_known.then(all).transpose()
        })?;
        let Some(known) = known else { return Ok(Vec::new()) };
        let mut others: Vec<OutsideChanges> = Vec::new();
        for rest in rests(&known, run) {
            let Some((before, after)) = self.git_at(rest.from)?.zip(self.git_at(rest.to)?) else { continue };
            let between = OutsideChanges { before, after };
            if rest.is_restore {
                // The restore moved git on its own. What others had done before to the branches and the index that it
                // moved counts no more.
                for earlier in &mut others {
                    earlier.without(&between);
                }
            } else {
                others.push(between);
            }
        }
        // From the newest look until now no work was under way either: `is_told_and_ended` was asked above.
        let newest = known.looks.iter().rev().find(|look| !look.link.of_call);
        let newest = newest.map(|newest| self.git_at(newest)).transpose()?.flatten();
        others.extend(newest.map(|before| OutsideChanges { before, after: current.clone() }));
        Ok(others)
    }

    /// Errors: `foreign_commits` for a commit of another run, or of no agent.
    pub(super) fn refuse_foreign_commits(
        &self,
        target: &CheckpointRecord,
        plan: &GitRestorePlan,
        brought: Option<&CheckpointId>,
    ) -> Result<()> {
        let left = brought.map(|id| self.kernel.read(|snapshot| record::get(snapshot, id))).transpose()?;
        let left = left.map(|left| CheckpointManifest::read(&self.objects, &left.manifest)).transpose()?;
        // Commits that the undone restore put onto their branches may be removed from them again: they were not there before it.
        let new_commits = match left.and_then(|left| left.git) {
            Some(left) => git::not_in(&self.root, &plan.new_commits, &left)?,
            None => plan.new_commits.clone(),
        };
        let foreign = self.kernel.read(|snapshot| {
            let caller = self.kernel.calling_dispatch(snapshot)?.map(|dispatch| dispatch.run_id);
            let own: Vec<RunId> = target.link.run_id.iter().cloned().chain(caller).collect();
            if own.is_empty() {
                return Ok(Vec::new());
            }
            let others = code::commits_of_others(snapshot, &own, &new_commits)?;
            let mut foreign: Vec<_> = others.into_iter().map(|(commit, run)| (commit, Some(run))).collect();
            // Agents tell of each commit that they make, as the call ends that made it: one of which none told is a person's, or another
            // program's.
            // `own` begins with the target's run; where the target has none, it is the caller's alone.
            let work = told_since(snapshot, &own[0], target.seq)?;
            if foreign.is_empty() && brought.is_none() && !work.is_empty() {
                for commit in &new_commits {
                    if !code::is_recorded(snapshot, commit)? {
                        foreign.push((commit.clone(), None));
                    }
                }
            }
            Ok(foreign)
        })?;
        let Some((commit, run)) = foreign.first() else { return Ok(()) };
        let listed: Vec<_> = foreign
            .iter()
            .map(|(commit, run)| serde_json::json!({ "commit": commit, "run_id": run.as_ref().map(RunId::as_str) }))
            .collect();
        let short = &commit[..12.min(commit.len())];
        let whose = match run {
            Some(run) => format!("The commit {short} belongs to run {}", run.short()),
            None => format!("The commit {short} is of no agent: you made it, or another program"),
        };
        Err(Diagnosis::new(Code::ForeignCommits, format!("{whose}; nothing was changed."))
        .hint(format!(
            "restore the files alone: ic checkpoint restore {} --strategy files-only --yes; or take it off its branch anyway: --force",
            target.id.short()
        ))
        .detail("commits", listed))
    }
}
