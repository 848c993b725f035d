//! Retention that acts by itself: after a checkpoint of a person, a hook or a run, within a few milliseconds.
//!
//! A call only prunes rows, and few of them. Their content goes with a sweep, which reads every tree that is kept and may
//! take seconds: a process of its own makes it, at most once an hour. Two empty files beside the stat caches say
//! when: `looked`, when rows were looked at, and `pruned`, when a sweep began; `unswept` is there while content waits for one.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ic_base::{Code, Diagnose, Result};
use ic_checkpoint::lock::{self, LockMode};
use ic_checkpoint::record;
use ic_checkpoint::retention::{self, Policy};
use ic_kernel::Kernel;
use ic_kernel::config::Retention;
use ic_ledger::private;

use super::{GRACE, Pruned, RetentionRequest, pinned, prune};
use crate::store_location::objects_path;
use crate::workspace::{CaptureSettings, Warning, Workspace, root_of};

/// Sweeps happen at most this often, and looks at rows no more often than they must.
const EVERY: Duration = Duration::from_hours(1);

/// The most kept rows that a call reads: about 2 ms. If there are more, the sweep prunes them.
const MANY: usize = 500;

/// The most rows that a call prunes: about 1 ms.
const FEW: usize = 32;

/// Prunes what the configuration does not keep, after a checkpoint is committed; what goes wrong is a warning. It never waits.
pub fn tidy(kernel: &Kernel, settings: &CaptureSettings, project_dir: &Path) -> Option<Warning> {
    // Most calls have nothing to do here, and see it without opening the store.
    let objects = objects_path(kernel.ledger.path());
    // A store that is too large needs nothing new where a sweep of it is noted already.
    let is_known = !is_big(&objects, &settings.retention) || stamp(&objects, "unswept").exists();
    if is_known && is_looked(&objects, &settings.retention) {
        return None;
    }
    // No waiting: a process that captures or writes now comes first, and a later call prunes.
    let settings = CaptureSettings { busy_timeout: Duration::ZERO, ..settings.clone() };
    // `at_once` is for the ledger, the timeout of zero for locks of files: neither of them is waited for.
    let tidied = kernel.ledger.at_once(|| {
        let workspace = Workspace::open(kernel, root_of(project_dir), &settings)?;
        prune_rows(&workspace, &settings.retention)
    });
    match tidied {
        Err(error) if error.code() != Code::Busy => Some(Warning {
            code: "retention_failed",
            message: format!("old checkpoints were not pruned: {}", error.message()),
        }),
        _ => None,
    }
}

fn prune_rows(workspace: &Workspace<'_>, configured: &Retention) -> Result<()> {
    // A budget is kept by the sweep, which sees what each checkpoint gives back.
    if is_big(workspace.objects.path(), configured) {
        touch(&workspace.stamp("unswept"))?;
    }
    // Asked again: the caller may have come here for the size of the store alone.
    if is_looked(workspace.objects.path(), configured) {
        return Ok(());
    }
    let looked = workspace.stamp("looked");
    // Alone: a restore that is planned now must find its checkpoint until its plan is recorded.
    let _lock = lock::store(workspace.objects.path(), LockMode::Exclusive, Duration::ZERO)?;
    let all = workspace.kernel.read(|snapshot| record::oldest_kept(snapshot, MANY + 1))?;
    if all.len() > MANY {
        touch(&workspace.stamp("unswept"))?;
        return touch(&looked);
    }
    let now = workspace.kernel.context.now();
    let given_up = |pinned| retention::given_up(&all, configured.policy(), now, &pinned);
    let mut old = given_up(HashSet::new());
    // What is needed is asked for only if something may go: mostly nothing may.
    if !old.is_empty() {
        let policy = configured.policy();
        old = given_up(workspace.kernel.read(|snapshot| pinned(workspace.kernel, snapshot, policy.points))?);
    }
    let (chosen, rest) = old.split_at(old.len().min(FEW));
    if !chosen.is_empty() {
        // Before the rows: a call that dies in between causes one needless sweep. The other way round, content would be left that no sweep
        // looks for.
        touch(&workspace.stamp("unswept"))?;
        workspace.kernel.write(|tx, now| {
            for checkpoint in chosen {
                // Read again: pruning an earlier one of this list may have changed this one's parent.
                let checkpoint = record::get(tx, &checkpoint.id)?;
                record::prune(tx, now, &checkpoint, "retention")?;
            }
            Ok(())
        })?;
    }
    // While old rows are left, the next call looks again.
    if rest.is_empty() { touch(&looked) } else { Ok(()) }
}

/// Whether the content of pruned checkpoints waits to be swept, and no sweep began within the hour. No store is opened for it.
pub fn is_sweep_due(kernel: &Kernel) -> bool {
    let objects = objects_path(kernel.ledger.path());
    stamp(&objects, "unswept").exists() && !is_younger(&stamp(&objects, "pruned"), EVERY)
}

/// Claims the sweep that is due: a caller that gets `true` has to make it, and no other caller gets `true` within the hour.
///
/// Errors: `io_error` where the claim cannot be written.
pub fn claim_sweep(workspace: &Workspace<'_>) -> Result<bool> {
    // Looked at and touched under a lock, which ends with `note`: of two calls at the same time one gets the sweep.
    let Ok(note) = fs::File::open(workspace.stamp("unswept")) else { return Ok(false) };
    if note.try_lock().is_err() || !is_sweep_due(workspace.kernel) {
        return Ok(false);
    }
    touch(&workspace.stamp("pruned"))?;
    Ok(true)
}

/// Prunes as the configuration says, budget included, and sweeps.
///
/// Errors: as [`prune`].
pub fn sweep(workspace: &Workspace<'_>, configured: &Retention) -> Result<Pruned> {
    let unswept = workspace.stamp("unswept");
    let noted = when(&unswept);
    let request = RetentionRequest { policy: configured.policy(), grace: GRACE, dry_run: false, is_tight: false };
    let swept = prune(workspace, &request);
    let swept = match configured.max_size {
        Some(max_size) => swept.and_then(|swept| shrink(workspace, &request, max_size, swept)),
        None => swept,
    };
    // The note stays if the sweep failed, or if another call pruned during it: then the next sweep is due.
    if swept.is_ok() && when(&unswept) == noted {
        let _ = fs::remove_file(&unswept);
    }
    swept
}

/// Keeps the store below a size: prunes the oldest checkpoints that may go, whatever their age, a quarter of them at a time. Checkpoints
/// share most of their content, so the freed space shows only after a step, and no more than needed should go.
fn shrink(workspace: &Workspace<'_>, request: &RetentionRequest, max_size: u64, swept: Pruned) -> Result<Pruned> {
    let mut last = swept;
    while workspace.objects.file_size() > max_size {
        let Some(max_age) = age_of_oldest(workspace, request)? else { break };
        let policy = Policy { max_age, ..request.policy };
        last = prune(workspace, &RetentionRequest { policy, ..*request })?;
        // What was kept within the last minute stays, because a writer may still need it: the next sweep frees it.
        if last.swept.bytes == 0 {
            break;
        }
    }
    Ok(last)
}

/// The age beyond which a quarter is of those that may go for a budget; `None` if none may.
fn age_of_oldest(workspace: &Workspace<'_>, request: &RetentionRequest) -> Result<Option<Duration>> {
    let now = workspace.kernel.context.now();
    let (all, pinned) = workspace.kernel.read(|snapshot| {
        Ok((record::all_kept(snapshot)?, pinned(workspace.kernel, snapshot, request.policy.points)?))
    })?;
    let policy = Policy { max_age: Duration::ZERO, ..request.policy };
    let old = retention::given_up(&all, policy, now, &pinned);
    // Those of tool calls go with the others of their dispatch.
    let mut ages = old.iter().filter(|one| !one.link.of_call).map(|one| now.millis() - one.created_at.millis());
    let quarter = ages.clone().count().div_ceil(4);
    // The oldest come first, so the last one of the quarter is its youngest.
    let age = quarter.checked_sub(1).and_then(|last| ages.nth(last));
    let age = age.or_else(|| (!old.is_empty()).then_some(0));
    // A policy prunes what is older than its age: one millisecond less takes this checkpoint along.
    Ok(age.map(|age| Duration::from_millis(u64::try_from(age - 1).unwrap_or(0))))
}

/// Whether the store takes more than it may. Its size is told without opening it.
fn is_big(objects: &Path, configured: &Retention) -> bool {
    configured.max_size.is_some_and(|max| ic_checkpoint::objects::file_size(objects) > max)
}

/// Whether ages were looked at lately. Those of days need no look at every call; short ones, as a chat may want them, do.
fn is_looked(objects: &Path, configured: &Retention) -> bool {
    is_younger(&stamp(objects, "looked"), EVERY.min(configured.max_age / 10))
}

impl Workspace<'_> {
    fn stamp(&self, name: &str) -> PathBuf {
        stamp(self.objects.path(), name)
    }
}

fn stamp(objects: &Path, name: &str) -> PathBuf {
    objects.with_extension("cache").join(name)
}

fn when(stamp: &Path) -> Option<SystemTime> {
    fs::metadata(stamp).and_then(|meta| meta.modified()).ok()
}

fn is_younger(stamp: &Path, than: Duration) -> bool {
    when(stamp).and_then(|time| time.elapsed().ok()).is_some_and(|age| age < than)
}

fn touch(stamp: &Path) -> Result<()> {
    let mut how = fs::File::options();
    private::open(stamp, how.create(true).truncate(true).write(true))
        .map(drop)
        .while_doing(|| format!("writing {}", stamp.display()))
}
