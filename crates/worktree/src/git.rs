//! Git's state in checkpoints and restores.

use std::path::PathBuf;

use ic_base::display::counted;
use ic_base::{CheckpointId, Code, Diagnosis, Result};
use ic_checkpoint::git::{self, AskedGit, GitRestorePlan, GitState, IndexEdit, KeptObjects, OutsideChanges, PackBase};
use ic_checkpoint::lock::LockMode;
use ic_checkpoint::manifest::CheckpointManifest;
use ic_checkpoint::objects::Writer;
use ic_checkpoint::record::{self, CheckpointRecord};

use super::capture::Shot;
use super::outside_git_changes::{WHILE_IT_RESTED, refuse_moved};
use super::workspace::{Warning, Workspace};

/// What the restore that is undone left.
#[derive(Debug, Clone)]
pub(super) struct Brought {
    /// The checkpoint of it.
    pub(super) left: CheckpointId,
    /// The caller has compared already whether branches, the index or the stash were moved since.
    pub(super) is_compared: bool,
}

/// The checkpoints around a time in which a restore was stopped; without a second one it lasted until now.
pub(super) type Stop<'s> = (&'s CheckpointId, Option<&'s CheckpointId>);

/// What is to be restored of git's state.
pub(super) struct WantedGit {
    /// The state to return to, before refs that others use are left out ([`GitRestore::meant`]).
    meant: GitState,
    /// The state that is really restored ([`GitRestore::target`]).
    pub(super) target: GitState,
    /// What others changed since, as far as that is known.
    others: Vec<OutsideChanges>,
}

/// What a restore does about git.
#[derive(Debug, Clone)]
pub struct GitRestore {
    /// Which refs, HEAD, index and stash move, and in which order.
    pub plan: GitRestorePlan,
    /// The state that the checkpoint has. When a restore is undone, what it did not move keeps its current state.
    pub meant: GitState,
    /// The state that is restored: what others use or made stays.
    pub target: GitState,
    /// The state of git when the restore was planned.
    pub current: GitState,
    /// Below which refs the tips of what moved stay; `None` where none is to be kept.
    pub kept_below: Option<String>,
    /// Tags that do not come back: git has not what they name any more.
    pub lost_tags: Vec<Vec<u8>>,
}

impl GitRestore {
    /// What moves and how, a pair for each, for people: branches, HEAD, the index, the stash.
    pub fn moves(&self) -> Vec<(String, String)> {
        let short =
            |oid: &Option<String>| oid.as_deref().map_or("gone".to_owned(), |oid| oid[..oid.len().min(8)].to_owned());
        let mut moves = Vec::new();
        for moved in &self.plan.refs {
            let name = String::from_utf8_lossy(&moved.name).into_owned();
            let name = match name.strip_prefix("refs/tags/") {
                Some(tag) => format!("tag {tag}"),
                None => name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned(),
            };
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
        if let Some(operation) = &self.plan.ends {
            moves.push((operation.clone(), "ended: it began since".to_owned()));
        }
        if self.plan.stash {
            moves.push(("stash".to_owned(), self.stash_moves()));
        }
        moves
    }

    /// Whether a branch, or a HEAD, was somewhere from which it goes.
    pub fn keeps_branches(&self) -> bool {
        self.plan.refs.iter().any(|moved| moved.from.is_some()) || (self.plan.head && self.current.head.is_some())
    }

    /// Whether an entry leaves the stash.
    pub fn keeps_stash(&self) -> bool {
        self.plan.stash && self.current.stash.iter().any(|entry| !self.target.stash.contains(entry))
    }

    fn stash_moves(&self) -> String {
        let (now, then) = (&self.current.stash, &self.target.stash);
        let back = then.iter().filter(|entry| !now.contains(entry)).count();
        let off = now.iter().filter(|entry| !then.contains(entry)).count();
        let back = (back > 0).then(|| format!("{} restored", counted(back, "entry")));
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
    Diagnosis::new(Code::GitUnsupported, format!("{whose} holds no state of git."))
        .hint(format!("restore the files alone: ic checkpoint restore {} --strategy files-only --yes", target.short()))
}

/// The error with a hint that can be run: the planner of git's part does not know the checkpoint, and writes `ID`.
fn naming(error: Diagnosis, target: &CheckpointId) -> Diagnosis {
    let hint = error
        .get_hint()
        .map(|hint| hint.replace("checkpoint restore ID", &format!("checkpoint restore {}", target.short())));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

impl Workspace<'_> {
    /// Reverts entries of the index to before the work that left them there, or makes them again: [`git::revert_entries`].
    pub fn revert_entries(&self, edits: &[IndexEdit], is_back: bool) -> Result<()> {
        let _held = self.lock(LockMode::Exclusive)?;
        git::revert_entries(&self.root, edits, is_back)
    }

    /// Git's state as a checkpoint has it; `None`: it has none.
    pub fn git_at(&self, look: &CheckpointRecord) -> Result<Option<GitState>> {
        Ok(CheckpointManifest::read(&self.objects, &look.manifest)?.git)
    }

    /// Git's state now, to be compared: nothing of it is kept. `None`: there is none.
    ///
    /// Errors: `git_failed`, `git_busy`.
    pub fn git_now(&self) -> Result<Option<GitState>> {
        let AskedGit::State(found) = git::ask(&self.root)? else { return Ok(None) };
        let writer = self.objects.looker(self.kernel.context.now())?;
        let state = found.keep(&self.root, PackBase::default(), &writer, true, &mut false)?;
        // Its index is in memory, for as long as this workspace lives.
        writer.expose()?;
        Ok(Some(state))
    }

    /// What was recorded of git before a picture that follows `parent`: the newest state, and that of the parent where it is another one.
    pub fn recorded_git(&self, parent: Option<&CheckpointRecord>) -> Result<[Option<GitState>; 2]> {
        let newest = self.kernel.read(|snapshot| record::newest_of_root(snapshot, &self.root))?;
        // If the parent is the newest one, its state is read only once.
        let parent = parent.filter(|parent| newest.as_ref().is_some_and(|newest| newest.id != parent.id));
        let state = |of: Option<&CheckpointRecord>| match of {
            Some(of) => CheckpointManifest::read(&self.objects, &of.manifest).map(|manifest| manifest.git),
            None => Ok(None),
        };
        Ok([state(newest.as_ref())?, state(parent)?])
    }

    /// Adds git's answers to a capture; `before`: what was recorded before, `ahead`: what is kept already. A missing or failing `git`
    /// costs a warning and not the checkpoint.
    pub fn record_git(
        &self,
        shot: &mut Shot,
        asked: Result<AskedGit>,
        writer: &Writer<'_>,
        is_a_look: bool,
        (before, ahead): (PackBase<'_>, Option<KeptObjects>),
    ) -> Result<()> {
        let warn = |message| Warning { code: "git_not_recorded", message };
        let mut left_out = false;
        let state = match asked {
            Ok(AskedGit::State(found)) => {
                shot.warnings.extend(rules_left_out(&found.rules_left_out(&self.root)));
                found.with(ahead).keep(&self.root, before, writer, is_a_look, &mut left_out)
            }
            Ok(AskedGit::NotARepository) => return Ok(()),
            Ok(AskedGit::NoGit) => {
                shot.warnings.push(warn("git's state is not in the checkpoint: there is no git on PATH".to_owned()));
                return Ok(());
            }
            Err(error) => Err(error),
        };
        shot.warnings.extend(left_out.then(purged_in_git));
        match state {
            Ok(state) => shot.manifest.git = Some(state),
            // Files are worth a checkpoint even without git's state. Other errors, as a full disk, concern the files too.
            Err(error) if matches!(error.code(), Code::GitFailed | Code::GitBusy) => {
                shot.warnings.push(warn(format!("git's state is not in the checkpoint: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What restoring the git state of `target` over that of the picture would do.
    ///
    /// Branches that other work trees use stay where they are: what is done there is not this tree's to undo. `brought`: what an earlier
    /// restore left, which this one undoes. `stops`: when this one was stopped. `past`: locks that will be gone by then.
    /// Errors: those of [`git::plan`]; `foreign_commits` unless forced.
    pub(super) fn plan_git(
        &self,
        target: &CheckpointRecord,
        shot: &Shot,
        force: bool,
        (brought, stops): (Option<&Brought>, &[Stop<'_>]),
        past: &[PathBuf],
    ) -> Result<GitRestore> {
        let current = shot.manifest.git.clone().ok_or_else(|| holds_nothing("The working tree", &target.id))?;
        let left = brought.map(|brought| &brought.left);
        let WantedGit { meant, target: wanted, others } = self.wanted_git(target, &current, left, stops)?;
        let plan =
            git::plan(&self.root, &wanted, &current, &self.objects, past).map_err(|error| naming(error, &target.id))?;
        if !force {
            self.refuse_foreign_commits(target, &plan, left)?;
            if brought.is_none_or(|brought| !brought.is_compared) {
                let when = if brought.is_some() { "after that restore" } else { WHILE_IT_RESTED };
                refuse_moved(target, &plan, (&wanted, &current, &others), when)?;
            }
        }
        let lost_tags = git::lost_tags(&meant, &wanted, &others);
        Ok(GitRestore { plan, meant, target: wanted, current, kept_below: None, lost_tags })
    }

    /// The state to restore over another one. `left`: what the restore left that is undone; `stops` as in [`Workspace::plan_git`]. Errors: `git_unsupported` where the checkpoint
    /// has none.
    pub(super) fn wanted_git(
        &self,
        target: &CheckpointRecord,
        current: &GitState,
        left: Option<&CheckpointId>,
        stops: &[Stop<'_>],
    ) -> Result<WantedGit> {
        let wanted = CheckpointManifest::read(&self.objects, &target.manifest)?.git;
        let wanted = wanted.ok_or_else(|| holds_nothing(&format!("Checkpoint {}", target.id.short()), &target.id))?;
        let mut others = self.git_of_others(target, current, left)?;
        if left.is_none() {
            for (from, until) in stops {
                others.extend(self.git_between(from, *until, current)?);
            }
        }
        // Where a restore is undone, `others` is one pair: from the state which that restore left to the current one.
        let meant = match others.first() {
            Some(since) if left.is_some() => git::leaving_unmoved(&wanted, current, &since.before),
            _ => wanted,
        };
        // `meant` keeps the state from before others' refs are left out: the report compares with it which tags are lost.
        let wanted = git::leaving_others(&self.root, meant.clone(), current, left.is_some())?;
        let wanted = git::leaving_newer(wanted, current, &others);
        let is_way_back = left.is_some() && !others.is_empty();
        let wanted = git::with_tags(&self.root, wanted, current, &others, is_way_back)?;
        Ok(WantedGit { meant, target: wanted, others })
    }
}
