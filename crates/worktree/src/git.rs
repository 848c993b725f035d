//! Git's state in checkpoints and restores.

use std::path::PathBuf;

use ic_base::said::counted;
use ic_base::{CheckpointId, Code, Diagnosis, Result, RunId, Seq};
use ic_checkpoint::git::{self, Asked, Before, GitPlan, GitState, MovedSince};
use ic_checkpoint::manifest::Manifest;
use ic_checkpoint::objects::Writer;
use ic_checkpoint::record::{self, Checkpoint, Kind};
use ic_dispatch::code;
use ic_dispatch::dispatch::{self, Filter};
use ic_session::call;
use ic_store::Snapshot;

use super::shot::Shot;
use super::workspace::{Warning, Workspace};

/// What the restore that is undone left.
#[derive(Debug, Clone)]
pub(super) struct Brought {
    /// The checkpoint of it.
    pub(super) left: CheckpointId,
    /// The caller has compared already whether branches, the index or the stash were moved since.
    pub(super) is_compared: bool,
}

/// What is to be restored of git's state.
pub(super) struct Wanted {
    /// As [`GitRestore::meant`].
    meant: GitState,
    /// As [`GitRestore::target`].
    pub(super) target: GitState,
    /// The state when the work ended that goes back, as far as it is known.
    last: Option<GitState>,
}

/// What a restore does about git.
#[derive(Debug, Clone)]
pub struct GitRestore {
    /// What moves.
    pub plan: GitPlan,
    /// The state that the checkpoint has; of a restore that is undone, what that did not move is as it is now.
    pub meant: GitState,
    /// The state that is restored: what others use or made stays.
    pub target: GitState,
    /// The state before.
    pub current: GitState,
    /// Below which refs the tips of what moved stay; `None` where nothing was written.
    pub kept_below: Option<String>,
}

impl GitRestore {
    /// What moves and how, a pair for each, for people: branches, HEAD, the index, the stash.
    pub fn moves(&self) -> Vec<(String, String)> {
        let short = |oid: &Option<String>| {
            oid.as_deref().map_or("gone".to_owned(), |oid| oid[..oid.len().min(8)].to_owned())
        };
        let mut moves = Vec::new();
        for moved in &self.plan.refs {
            let name = String::from_utf8_lossy(&moved.name).into_owned();
            let name = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
            let how = match &moved.from {
                None => format!("made again at {}", short(&moved.to)),
                Some(_) => format!("{} → {}", short(&moved.from), short(&moved.to)),
            };
            moves.push((name, how));
        }
        if self.plan.head {
            let branch = self.target.standing_on();
            let to = branch.unwrap_or_else(|| short(&self.target.head));
            moves.push(("HEAD".to_owned(), format!("→ {to}")));
        }
        if self.plan.index {
            moves.push(("index".to_owned(), "restored as it was".to_owned()));
        }
        if self.plan.stash {
            moves.push(("stash".to_owned(), self.stash_moves()));
        }
        moves
    }

    fn stash_moves(&self) -> String {
        let (now, then) = (&self.current.stash, &self.target.stash);
        let back = then.iter().filter(|entry| !now.contains(entry)).count();
        let off = now.iter().filter(|entry| !then.contains(entry)).count();
        let back = (back > 0).then(|| format!("{} put back", counted(back, "entry")));
        let off = (off > 0).then(|| format!("{} taken off, and kept", counted(off, "entry")));
        let both: Vec<String> = back.into_iter().chain(off).collect();
        if both.is_empty() { "restored as it was".to_owned() } else { both.join("; ") }
    }
}

/// A warning of files with ignore rules that only git has.
fn rules_left_out(paths: &[Vec<u8>]) -> Option<Warning> {
    let first = paths.first()?;
    let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
    let message = format!(
        "a sparse checkout leaves out {}{more}: git reads ignore rules of it, the checkpoint does not",
        String::from_utf8_lossy(first)
    );
    Some(Warning { code: "rules_uncertain", message })
}

/// A warning of content that was purged and that git has again.
fn purged_in_git() -> Warning {
    Warning {
        code: "purged_in_git",
        message: "git's index, stash or a commit has content that was purged: it is not stored, and a restore of this \
                  checkpoint restores files alone (--strategy files-only)"
            .to_owned(),
    }
}

fn holds_nothing(whose: &str, target: &CheckpointId) -> Diagnosis {
    Diagnosis::new(Code::GitUnsupported, format!("{whose} holds no state of git.")).hint(format!(
        "restore the files alone: ic checkpoint restore {} --strategy files-only --yes",
        target.short()
    ))
}

/// The error with a hint that can be run: who plans git's part knows no checkpoint.
fn naming(error: Diagnosis, target: &CheckpointId) -> Diagnosis {
    let hint = error
        .get_hint()
        .map(|hint| hint.replace("checkpoint restore ID", &format!("checkpoint restore {}", target.short())));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether all work of a run that began after an event was told by its calls, and has ended.
fn is_told_and_ended(snapshot: &Snapshot<'_>, run: &RunId, since: Seq) -> Result<bool> {
    let filter = Filter { run_id: Some(run), phase: None, status: None, limit: i64::MAX };
    let mut work = dispatch::list(snapshot, &filter)?;
    work.retain(|work| work.place() > since);
    let told = call::told_by_calls(snapshot, work.iter().map(|work| &work.id))?;
    Ok(!work.is_empty() && work.iter().all(|work| work.finished_at.is_some() && told.contains(&work.id)))
}

/// Errors: `foreign_commits` for a branch, the stash or the index that was changed `after` the work had ended, or a restore left it.
fn refuse_moved_since(
    target: &Checkpoint,
    plan: &GitPlan,
    (current, last): (&GitState, &GitState),
    after: &str,
) -> Result<()> {
    let Some(moved) = git::moved_since(plan, current, last) else { return Ok(()) };
    let (what, forced) = match &moved {
        MovedSince::Branch(name) => (format!("The branch {name} was moved"), "move it back anyway"),
        MovedSince::Stash => ("The stash was changed".to_owned(), "put it back as it was anyway"),
        MovedSince::Index => {
            ("What is staged was changed".to_owned(), "take it off the index anyway, a checkpoint keeps it")
        }
    };
    Err(Diagnosis::new(
        Code::ForeignCommits,
        format!("{what} after {after}, by you or by others; nothing was changed."),
    )
    .hint(format!(
        "restore the files alone: ic checkpoint restore {} --strategy files-only --yes; or {forced}: --force",
        target.id.short()
    ))
    .detail("moved", moved.word()))
}

impl Workspace<'_> {
    /// Adds what git said to a picture, which follows `parent`. That there is no `git`, or that it fails, costs a warning and not the
    /// checkpoint.
    pub fn record_git(
        &self,
        shot: &mut Shot,
        asked: Result<Asked>,
        writer: &Writer<'_>,
        is_a_look: bool,
        parent: Option<&Checkpoint>,
    ) -> Result<()> {
        let newest = self.kernel.read(|snapshot| record::newest_of_root(snapshot, &self.root))?;
        let parent = parent.filter(|parent| newest.as_ref().is_some_and(|newest| newest.id != parent.id));
        let state = |of: Option<&Checkpoint>| match of {
            Some(of) => Manifest::read(&self.objects, &of.manifest).map(|manifest| manifest.git),
            None => Ok(None),
        };
        let (newest, parent) = (state(newest.as_ref())?, state(parent)?);
        let before = Before { newest: newest.as_ref(), other: parent.as_ref() };
        let warn = |message| Warning { code: "git_not_recorded", message };
        let mut left_out = false;
        let state = match asked {
            Ok(Asked::State(found)) => {
                shot.warnings.extend(rules_left_out(&found.rules_left_out(&self.root)));
                found.keep(&self.root, before, writer, is_a_look, &mut left_out)
            }
            Ok(Asked::NotARepository) => return Ok(()),
            Ok(Asked::NoGit) => {
                shot.warnings
                    .push(warn("git's state is not in the checkpoint: there is no git on PATH".to_owned()));
                return Ok(());
            }
            Err(error) => Err(error),
        };
        shot.warnings.extend(left_out.then(purged_in_git));
        match state {
            Ok(state) => shot.manifest.git = Some(state),
            Err(error) if matches!(error.code(), Code::GitFailed | Code::GitBusy) => {
                shot.warnings
                    .push(warn(format!("git's state is not in the checkpoint: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What restoring the git state of `target` over that of the picture would do.
    ///
    /// Branches that other work trees use stay where they are: what is done there is not this tree's to undo. `brought`: what an earlier restore
    /// left, which this one undoes. `past`: locks that will be gone by then. Errors: those of [`git::plan`]; `foreign_commits` unless forced.
    pub(super) fn plan_git(
        &self,
        target: &Checkpoint,
        shot: &Shot,
        force: bool,
        brought: Option<&Brought>,
        past: &[PathBuf],
    ) -> Result<GitRestore> {
        let current =
            shot.manifest.git.clone().ok_or_else(|| holds_nothing("The tree as it is", &target.id))?;
        let left = brought.map(|brought| &brought.left);
        let Wanted { meant, target: wanted, last } = self.wanted_git(target, &current, left)?;
        let plan = git::plan(&self.root, &wanted, &current, &self.objects, past)
            .map_err(|error| naming(error, &target.id))?;
        if !force {
            self.refuse_foreign_commits(target, &plan, left)?;
            if let Some(last) = last.filter(|_| brought.is_none_or(|brought| !brought.is_compared)) {
                let what = if brought.is_some() { "that restore" } else { "this work had ended" };
                refuse_moved_since(target, &plan, (&current, &last), what)?;
            }
        }
        Ok(GitRestore { plan, meant, target: wanted, current, kept_below: None })
    }

    /// The state to restore over another one. `left`: what the restore left that is undone. Errors: `git_unsupported` where the checkpoint has
    /// none.
    pub(super) fn wanted_git(
        &self,
        target: &Checkpoint,
        current: &GitState,
        left: Option<&CheckpointId>,
    ) -> Result<Wanted> {
        let wanted = Manifest::read(&self.objects, &target.manifest)?.git;
        let wanted =
            wanted.ok_or_else(|| holds_nothing(&format!("Checkpoint {}", target.id.short()), &target.id))?;
        let last = self.last_of_work(target, left)?;
        let meant = match &last {
            Some(last) if left.is_some() => git::leaving_unmoved(&wanted, current, last),
            _ => wanted,
        };
        let wanted = git::leaving_others(&self.root, meant.clone(), current)?;
        let wanted = match &last {
            Some(last) => git::leaving_newer(wanted, current, last),
            None => wanted,
        };
        Ok(Wanted { meant, target: wanted, last })
    }

    /// Git's state when the work ended that goes back, as far as it is known: what came after it was made by others. Of a restore that is
    /// undone it is what that left; of prompts, what the last one left. Work that tells of no calls may have gone on by itself.
    fn last_of_work(&self, target: &Checkpoint, brought: Option<&CheckpointId>) -> Result<Option<GitState>> {
        let left = match (brought, &target.link.run_id) {
            (Some(id), _) => Some(self.kernel.read(|snapshot| record::get(snapshot, id))?),
            (None, Some(run)) => self.kernel.read(|snapshot| {
                if !is_told_and_ended(snapshot, run, target.seq)? {
                    return Ok(None);
                }
                let mut looks = record::of_root_between(snapshot, &self.root, target.seq + 1, Seq::MAX)?;
                looks.retain(|look| look.link.run_id.as_ref() == Some(run) && look.kind == Kind::Auto);
                Ok(looks.into_iter().rev().find(|look| !look.link.of_call))
            })?,
            (None, None) => None,
        };
        Ok(left
            .map(|left| Manifest::read(&self.objects, &left.manifest))
            .transpose()?
            .and_then(|left| left.git))
    }

    fn refuse_foreign_commits(
        &self,
        target: &Checkpoint,
        plan: &GitPlan,
        brought: Option<&CheckpointId>,
    ) -> Result<()> {
        let left = brought.map(|id| self.kernel.read(|snapshot| record::get(snapshot, id))).transpose()?;
        let left = left.map(|left| Manifest::read(&self.objects, &left.manifest)).transpose()?;
        // Who restored them may take them off their branches again: they were not there before.
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
            // Agents tell of each commit that they make: one of which none told is a person's, or another program's.
            if foreign.is_empty() && brought.is_none() && is_told_and_ended(snapshot, &own[0], target.seq)? {
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
            .map(|(commit, run)| {
                serde_json::json!({ "commit": commit, "run_id": run.as_ref().map(RunId::as_str) })
            })
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
