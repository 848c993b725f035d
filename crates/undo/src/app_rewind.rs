//! Rewinding an application to a task: git, then its database, then vectors (seed 002).
//!
//! Locking and recovery: only one rewind of a database runs at a time, by a lock that the operating system ends with its holder. The
//! journal is written before each stage and after it. A stage that was done and not yet recorded when its process died is recognised by
//! what it left (the commit that is checked out, the archive), so [`resume`] never does one twice. Later stages never run after an earlier
//! one failed.

mod configure;
mod git;
pub mod lock;
mod plan;
mod retention;
mod rewind_records;
mod stages;
mod undo;
mod vectors;

use std::path::{Path, PathBuf};

use ic_base::{Code, Diagnosis, Result, RewindId};
use ic_rewind::journal::{self, NewRewind, RewindEntry, RewindJournalSetup, RewindStatus, Stage};
use ic_rewind::{AnchorTask, RelationalRollbackEngine, RewindTarget, RollbackSnapshot, TaskRef};

pub use configure::{RewindSetup, add_to_configuration, configuration_text, init};
pub use git::{GitStagePlan, restore_command};
pub use retention::give_up_archives;
pub use rewind_records::{list, open_remembered};
pub use undo::{UndoneRewind, preview_undo, undo};
pub use vectors::VectorWatch;

use rewind_records::{here, options};

use ic_kernel::Kernel;
use ic_kernel::config::Config;
use ic_worktree::{CaptureSettings, Warning};

/// The task to which to rewind, and how.
#[derive(Debug, Clone, Copy)]
pub struct RewindRequest<'a> {
    /// The key of the task.
    pub task: &'a str,
    /// Values of the anchor's scope columns, where the key is not enough.
    pub scope: &'a [(String, String)],
    /// Whether the tree stays unchanged.
    pub no_git: bool,
    /// Whether local changes in the tree are allowed; they are kept in the safety checkpoint.
    pub force: bool,
}

impl RewindRequest<'_> {
    fn task_ref(&self) -> TaskRef {
        let task = TaskRef::new(self.task);
        self.scope.iter().fold(task, |task, (column, value)| task.in_scope(column, value.as_str()))
    }
}

/// What a rewind would do.
#[derive(Debug, Clone)]
pub struct RewindPreview {
    /// The file of the database.
    pub database: PathBuf,
    /// The task, its order, and the rows that would go.
    pub snapshot: RollbackSnapshot,
    /// What git would do; `None`: the tree stays.
    pub git: Option<GitStagePlan>,
    /// The command that prunes vectors; `None`: there is none.
    pub vectors: Option<Vec<String>>,
}

impl RewindPreview {
    /// Whether everything is already what the rewind would make it.
    pub fn is_at_target(&self) -> bool {
        self.snapshot.affected_row_counts.total() == 0 && self.git.as_ref().is_none_or(|git| !git.moves())
    }
}

/// The result of a call that was to rewind.
#[derive(Debug)]
pub enum RewindOutcome {
    /// Nothing was begun, because everything was at the target already.
    NothingToDo(Box<RewindPreview>),
    /// It was begun, and is done or stopped.
    Begun(Box<RewindEntry>),
}

/// The configuration by which can be rewound here.
#[derive(Debug)]
pub struct FoundRewind {
    /// The database and its tables.
    pub setup: RewindJournalSetup,
    /// A warning where this is not from the configuration: the tree of an old commit may have none.
    pub warning: Option<Warning>,
}

/// What can be rewound here, by the configuration. Without that, and if a rewind moved the tree to its present commit, by the configuration
/// of that rewind.
///
/// Errors: `invalid_config` if neither exists.
pub fn setup(kernel: &Kernel, config: &Config) -> Result<FoundRewind> {
    let root = &kernel.project.root;
    if let Some(rewinding) = &config.rewind {
        return Ok(FoundRewind { setup: rewinding.setup(root, kernel.store()), warning: None });
    }
    if let Some(entry) = rewind_that_moved(kernel, root)? {
        let message = format!(
            "the tree has no section `rewind` in its configuration; taken from the rewind {}, which brought the tree here",
            entry.id.short()
        );
        return Ok(FoundRewind { setup: entry.setup, warning: Some(Warning { code: "config_of_rewind", message }) });
    }
    Err(Diagnosis::new(Code::InvalidConfig, "The configuration has no section `rewind`: nothing can be rewound.")
        .hint("ic rewind init --profile devs; or, for a database that is there: ic rewind inspect DB --write"))
}

/// The newest rewind that moved the tree to the commit at which it still is.
fn rewind_that_moved(kernel: &Kernel, root: &Path) -> Result<Option<RewindEntry>> {
    if ic_ledger::git_dirs(root).is_none() {
        return Ok(None);
    }
    match ic_checkpoint::git::standing(root)?.head {
        Some(head) => kernel.read(|snapshot| journal::newest_at(snapshot, root, &head)),
        None => Ok(None),
    }
}

/// The newest tasks of the database that `setup` names, newest first. Nothing is changed, and no lock of a rewind is taken: a person must
/// be able to look while one runs or is unfinished.
///
/// Errors: `invalid_config`; `invalid_value` for a scope where the tasks have none; `busy`, `corrupt`.
pub fn targets(
    settings: &CaptureSettings,
    setup: &RewindJournalSetup,
    scope: Option<&str>,
    limit: u32,
) -> Result<Vec<AnchorTask>> {
    RelationalRollbackEngine::open(&setup.target, options(settings))?.read_newest_tasks(scope, limit)
}

/// What [`rewind`] would do now. Nothing is changed.
///
/// Errors: `unknown_task`, `ambiguous_id`; `file_conflict` or `row_conflict`, naming what refuses it in the tree or among the rows;
/// `git_in_progress`, `invalid_config`, `stale_dispatch`, `busy`.
pub fn preview(
    kernel: &Kernel,
    settings: &CaptureSettings,
    setup: &RewindJournalSetup,
    request: &RewindRequest<'_>,
) -> Result<RewindPreview> {
    kernel.ledger.require_one_host("A rewind")?;
    lock::require_free(kernel.store(), &setup.target.database, settings.busy_timeout)?;
    refuse_unfinished(kernel, &setup.target)?;
    plan::plan(kernel, settings, setup, request, true).map(|planned| planned.preview)
}

/// Rewinds the tree, the database and vectors to a task.
///
/// Errors: those of [`preview`]: nothing was begun. A later failure is an error too if nothing was changed before it. Otherwise the entry
/// says that it stopped, and where.
pub fn rewind(
    kernel: &Kernel,
    settings: &CaptureSettings,
    setup: &RewindJournalSetup,
    request: &RewindRequest<'_>,
    watch: &VectorWatch,
) -> Result<RewindOutcome> {
    kernel.ledger.require_one_host("A rewind")?;
    // The lock is taken before the journal is read: another rewind may have ended, or died, while this one waited.
    let _lock = lock::database(kernel.store(), &setup.target.database, settings.busy_timeout)?;
    refuse_unfinished(kernel, &setup.target)?;
    // The lock is held, so no other rewind can change the rows that the plan counts.
    let planned = plan::plan(kernel, settings, setup, request, false)?;
    if planned.preview.is_at_target() {
        return Ok(RewindOutcome::NothingToDo(Box::new(planned.preview)));
    }
    let id: RewindId = kernel.context.new_id();
    let archive = archive_path(kernel, &id)?;
    let git_commit = planned.preview.git.as_ref().map(|git| git.commit.as_str());
    // The row is written before anything changes: after a crash `ic rewind status` and `resume` find it.
    let entry = kernel.write(|tx, now| {
        let new = NewRewind {
            id: &id,
            root: &kernel.project.root,
            setup,
            task: &planned.task,
            git_commit,
            is_forced: request.force,
            archive: &archive,
        };
        journal::begin(tx, now, &new)?;
        journal::get(tx, &id)
    })?;
    stages::carry_out(kernel, settings, entry, watch).map(|entry| RewindOutcome::Begun(Box::new(entry)))
}

/// Resumes a rewind that stopped, or whose process died. One that is done is returned without any change.
///
/// Errors: `rewind_not_found`, `busy` while its process works on it, `nothing_to_resume` if it was undone.
pub fn resume(
    kernel: &Kernel,
    settings: &CaptureSettings,
    reference: &str,
    watch: &VectorWatch,
) -> Result<RewindEntry> {
    kernel.ledger.require_one_host("A rewind")?;
    let found = here(kernel, kernel.read(|snapshot| journal::resolve(snapshot, reference))?);
    let _lock = lock::database(kernel.store(), &found.database, settings.busy_timeout)?;
    // Read again under the lock: the process that had the lock may have finished the rewind.
    let entry = here(kernel, kernel.read(|snapshot| journal::get(snapshot, &found.id))?);
    match entry.status {
        RewindStatus::Done => return Ok(entry),
        RewindStatus::Undone => {
            return Err(Diagnosis::new(
                Code::NothingToResume,
                format!("The rewind {} was undone; there is nothing to resume.", entry.id.short()),
            )
            .hint(format!("rewind again: ic rewind to {} --yes", entry.task_id))
            .detail("rewind_id", entry.id.as_str()));
        }
        RewindStatus::InProgress | RewindStatus::Stopped => {}
    }
    // A rewind that has begun would be refused because of itself, and no second one can have begun beside it.
    if !entry.has_begun() {
        refuse_unfinished(kernel, &entry.setup.target)?;
    }
    // A command that a dead process left must not prune beside the one that is started now.
    vectors::end_leftover(&entry)?;
    let entry = kernel.write(|tx, now| {
        journal::reopen(tx, now, &entry.id)?;
        journal::get(tx, &entry.id)
    })?;
    let entry = here(kernel, entry);
    stages::carry_out(kernel, settings, entry, watch)
}

/// Whether resuming a rewind needs the configuration of the tree: for the checkpoint before git moves. After that the tree may be an old
/// one with another configuration.
pub fn needs_configuration(entry: &RewindEntry) -> bool {
    entry.stage == Stage::Planned
}

/// One rewind: the one that `reference` names, else the newest. Errors: `rewind_not_found`.
pub fn show(kernel: &Kernel, reference: Option<&str>) -> Result<RewindEntry> {
    let entry = kernel.read(|snapshot| match reference {
        Some(reference) => journal::resolve(snapshot, reference),
        None => journal::newest(snapshot)?.ok_or_else(|| {
            Diagnosis::new(Code::RewindNotFound, "Nothing was rewound here yet.")
                .hint("begin one: ic rewind to TASK --dry-run")
        }),
    })?;
    Ok(here(kernel, entry))
}

/// Removes the archives that retention does not keep, after a rewind is done. A failure is returned as a warning.
pub fn tidy(kernel: &Kernel, settings: &CaptureSettings) -> Option<Warning> {
    let error = give_up_archives(kernel, &settings.retention.policy(), false).err()?;
    Some(Warning {
        code: "retention_failed",
        message: format!("old archives of rewinds were not removed: {}", error.message()),
    })
}

/// Errors: `not_finished` while a rewind of the database has begun to change something and is not finished.
pub fn refuse_unfinished(kernel: &Kernel, target: &RewindTarget) -> Result<()> {
    let unfinished = kernel.read(|snapshot| journal::unfinished(snapshot, &target.database))?;
    let Some(entry) = unfinished.first() else { return Ok(()) };
    let id = entry.id.short();
    Err(Diagnosis::new(
        Code::NotFinished,
        format!(
            "The rewind {id} of this database to {} is not finished: it reached {}.",
            entry.task_id,
            entry.stage.as_str()
        ),
    )
    .hint(format!("finish it: ic rewind resume {id} --yes; or undo it: ic undo {id} --yes"))
    .detail("rewind_id", entry.id.as_str())
    .detail("stage", entry.stage.as_str()))
}

/// The file for the rows of a rewind; its directory is made.
fn archive_path(kernel: &Kernel, id: &RewindId) -> Result<PathBuf> {
    Ok(lock::directory(kernel.store())?.join(format!("{id}.db")))
}

/// The sentence that every preview ends with.
pub const NOTE: &str = "It removes rows; it does not restore rows that were updated since.";

/// The stages that are still to be done, in their order: `git`, `sqlite`, `vectors`. Empty for a rewind that is done or undone.
pub fn stages_left(entry: &RewindEntry) -> Vec<&'static str> {
    if !entry.is_unfinished() {
        return Vec::new();
    }
    let git = entry.git_commit.is_some() && entry.stage < Stage::GitDone;
    let sqlite = entry.stage < Stage::DbDone;
    let vectors = entry.setup.vectors.is_some() && entry.stage < Stage::VectorDone;
    let all = [("git", git), ("sqlite", sqlite), ("vectors", vectors)];
    all.into_iter().filter(|(_, is_left)| *is_left).map(|(stage, _)| stage).collect()
}

/// The command that resumes an unfinished rewind.
pub fn resume_command(entry: &RewindEntry) -> Option<String> {
    entry.is_unfinished().then(|| format!("ic rewind resume {} --yes", entry.id.short()))
}
